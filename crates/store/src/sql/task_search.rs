//! Statements that look for tasks: lists, text, what waits, and what went wrong.

use super::page;
use super::tasks::{columns, read};
use super::transaction::{SqlValue, Tx, list_or_null, params};
use crate::error::Result;
use crate::model::{
    FailureFilter, FailureRecord, SEARCHED_TASKS, TaskFilter, TaskRecord, TaskWait, TurnRecord,
};

/// The longest text that is searched for.
const MAX_TEXT: usize = 200;
/// How many tasks are looked through for failures: the newest.
const FAILURE_TASKS: i64 = 1_000;

/// Whether nobody works on a task `t`: a lease `l` on it has run out, or there is none.
macro_rules! is_left_alone {
    () => {
        "NOT EXISTS (SELECT 1 FROM leases l WHERE l.kind = 'task' AND l.name = t.id AND l.until > {now})"
    };
}

/// The condition of a list. Parameters 1 to 12 are those of [`filtered`].
macro_rules! matching {
    () => {
        concat!(
            "(CAST($1 AS TEXT) IS NULL OR t.state = $1) \
             AND (CAST($2 AS TEXT) IS NULL OR t.agent_namespace = $2) \
             AND (CAST($3 AS TEXT) IS NULL OR t.agent_name = $3) \
             AND (CAST($4 AS TEXT) IS NULL OR t.user_id = $4) \
             AND (CAST($5 AS TEXT) IS NULL OR t.number < (SELECT a.number FROM tasks a WHERE a.id = $5)) \
             AND (CAST($7 AS TEXT) IS NULL OR {among t.agent_namespace 7}) \
             AND (CAST($8 AS BIGINT) IS NULL OR t.last_activity >= $8) \
             AND (CAST($9 AS BIGINT) IS NULL OR t.last_activity < $9) \
             AND (CAST($10 AS TEXT) IS NULL OR (t.state = 'idle' AND t.detail LIKE $10)) \
             AND (CAST($11 AS BIGINT) IS NULL OR (t.ready_at < {now} - $11 AND ",
            is_left_alone!(),
            ") OR (t.ready_at IS NOT NULL AND CAST($12 AS TEXT) IS NOT NULL \
             AND NOT {among t.agent_namespace||'/'||t.agent_name 12})) "
        )
    };
}

/// The parameters of a list; the sixth is how many rows there may be.
fn filtered(filter: &TaskFilter, rows: usize) -> Vec<SqlValue<'static>> {
    let text = |text: &Option<String>| text.clone().map_or(SqlValue::Null, owned);
    let number = |number: Option<i64>| number.map_or(SqlValue::Null, SqlValue::Int);
    vec![
        filter
            .state
            .map_or(SqlValue::Null, |state| owned(state.as_str().to_owned())),
        text(&filter.agent_namespace),
        text(&filter.agent_name),
        text(&filter.user_id),
        text(&filter.after),
        SqlValue::Int(i64::try_from(rows).unwrap_or(i64::MAX)),
        text(&list_or_null(filter.namespaces.as_deref())),
        number(filter.active_since),
        number(filter.active_before),
        // How the engine keeps it: the key comes first.
        filter
            .failed
            .then_some("{\"failed\":%")
            .map_or(SqlValue::Null, |pattern| owned(pattern.to_owned())),
        number(filter.stuck_ms),
        text(&list_or_null(filter.agents.as_deref())),
    ]
}

fn owned(text: String) -> SqlValue<'static> {
    SqlValue::Text(text.into())
}

pub(crate) async fn list(tx: Tx<'_>, filter: &TaskFilter) -> Result<Vec<TaskRecord>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM tasks t WHERE ",
                matching!(),
                "ORDER BY t.number DESC LIMIT $6"
            ),
            &filtered(filter, page(filter.limit)),
        )
        .await?;
    rows.into_iter().map(read).collect()
}

/// The tasks among the newest that have this text in what is known about them or in a turn. Large letters of ASCII are
/// small ones.
pub(crate) async fn search(tx: Tx<'_>, filter: &TaskFilter, text: &str) -> Result<Vec<TaskRecord>> {
    let mut given = filtered(filter, SEARCHED_TASKS);
    given.push(owned(pattern(text)));
    given.push(SqlValue::Int(
        i64::try_from(page(filter.limit)).unwrap_or(i64::MAX),
    ));
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM (SELECT t.* FROM tasks t WHERE ",
                matching!(),
                "ORDER BY t.number DESC LIMIT $6) t WHERE {folded t.id} LIKE $13 ESCAPE '!' \
                 OR {folded t.agent_namespace || '/' || t.agent_name} LIKE $13 ESCAPE '!' \
                 OR {folded t.user_id} LIKE $13 ESCAPE '!' OR {folded COALESCE(t.user_email, '')} LIKE $13 ESCAPE '!' \
                 OR {folded t.params} LIKE $13 ESCAPE '!' OR {folded COALESCE(t.detail, '')} LIKE $13 ESCAPE '!' \
                 OR EXISTS (SELECT 1 FROM turns u WHERE u.task_id = t.id AND {folded u.body} LIKE $13 ESCAPE '!') \
                 ORDER BY t.number DESC LIMIT $14"
            ),
            &given,
        )
        .await?;
    rows.into_iter().map(read).collect()
}

/// What a text is in the `LIKE` of a statement, as it stands in JSON.
fn pattern(text: &str) -> String {
    let text: String = text.chars().take(MAX_TEXT).collect();
    let written = serde_json::Value::from(text.to_ascii_lowercase()).to_string();
    let written = written.strip_prefix('"').unwrap_or(&written);
    let written = written.strip_suffix('"').unwrap_or(written);
    let mut pattern = String::with_capacity(written.len() + 2);
    pattern.push('%');
    for letter in written.chars() {
        if matches!(letter, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

/// How long the work of these tasks has waited, for those that have some and that nobody works on. Those that are left alone
/// for a while wait too.
pub(crate) async fn waits(tx: Tx<'_>, tasks: &[String]) -> Result<Vec<TaskWait>> {
    let rows = tx
        .query(
            concat!(
                "SELECT t.id, {now} - t.ready_at FROM tasks t WHERE t.ready_at IS NOT NULL AND {among t.id 1} AND ",
                is_left_alone!()
            ),
            &params![list_or_null(Some(tasks)).as_deref()],
        )
        .await?;
    rows.into_iter()
        .map(|mut row| {
            Ok(TaskWait {
                task: row.text()?,
                waited_ms: row.int()?.max(0),
            })
        })
        .collect()
}

/// Turns of the newest tasks that tell of something that went wrong: the model could not be asked, a call came to nothing or was
/// forbidden, or the task ended otherwise than by somebody's wish.
pub(crate) async fn failures(tx: Tx<'_>, filter: &FailureFilter) -> Result<Vec<FailureRecord>> {
    let rows = tx
        .query(
            "SELECT t.id, t.agent_namespace, t.agent_name, u.seq, u.kind, u.body, u.created_at FROM \
             (SELECT a.id, a.agent_namespace, a.agent_name FROM tasks a \
             WHERE (CAST($1 AS TEXT) IS NULL OR {among a.agent_namespace 1}) \
             AND (CAST($2 AS TEXT) IS NULL OR a.agent_namespace = $2) \
             AND (CAST($3 AS TEXT) IS NULL OR a.agent_name = $3) \
             AND (CAST($4 AS BIGINT) IS NULL OR a.last_activity >= $4) ORDER BY a.number DESC LIMIT $5) t \
             JOIN turns u ON u.task_id = t.id AND (u.kind = 'failed' \
             OR (u.kind = 'capability' AND u.body NOT LIKE $6) \
             OR (u.kind = 'ended' AND u.body NOT LIKE $7 AND u.body NOT LIKE $8)) \
             WHERE (CAST($4 AS BIGINT) IS NULL OR u.created_at >= $4) \
             ORDER BY u.created_at DESC, t.id, u.seq LIMIT $9",
            &params![
                list_or_null(filter.namespaces.as_deref()).as_deref(),
                filter.agent_namespace.as_deref(),
                filter.agent_name.as_deref(),
                filter.since,
                FAILURE_TASKS,
                "%\"status\":\"successful\"%",
                "%\"reason\":\"closed\"%",
                "%\"reason\":\"cancelled\"%",
                page(filter.limit),
            ],
        )
        .await?;
    rows.into_iter()
        .map(|mut row| {
            Ok(FailureRecord {
                task: row.text()?,
                agent_namespace: row.text()?,
                agent_name: row.text()?,
                turn: TurnRecord {
                    seq: row.int()?,
                    kind: row.text()?,
                    body: row.json()?,
                    created_at: row.int()?,
                },
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_searched_as_it_stands_in_json() {
        assert_eq!(pattern("Rain"), "%rain%");
        assert_eq!(pattern("50%_!"), "%50!%!_!!%");
        assert_eq!(pattern("say \"no\"\n"), r#"%say \"no\"\n%"#);
    }
}
