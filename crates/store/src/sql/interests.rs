//! Statements about interests and allow lists.

use super::row::SqlRow;
use super::transaction::{SqlValue, Tx, json, name, params, short};
use crate::error::Result;
use crate::model::{AllowEntry, Interest, InterestedTask, NewInterest, TaskState, ToolRef};

pub(crate) async fn add(tx: Tx<'_>, task: &str, interests: &[NewInterest]) -> Result<()> {
    let rows = interests.iter().map(|interest| {
        let timeout = interest.timeout_ms.into();
        event_row(task, &interest.tool, &interest.event, timeout)
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    tx.query_each(
        "INSERT INTO interests (task_id, tool_namespace, tool, event, timeout_ms, active) \
         VALUES ($1, $2, $3, $4, $5, 1)",
        &rows,
    )
    .await?;
    Ok(())
}

/// The parameters of a row about an event of a tool that a task waits for, with one more value.
pub(super) fn event_row<'a>(
    task: &'a str,
    tool: &'a ToolRef,
    event: &'a str,
    more: SqlValue<'a>,
) -> Result<Vec<SqlValue<'a>>> {
    Ok(vec![
        task.into(),
        short("the namespace of the tool", &tool.namespace)?.into(),
        name("the name of the tool", &tool.name)?.into(),
        name("the name of the event", event)?.into(),
        more,
    ])
}

/// How an allow list comes to have an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowTime {
    /// With the task: this is when parameters are sealed.
    AtStart,
    /// Later, when nothing is added to a sealed parameter.
    Later,
}

/// Adds to the allow list. What is there is not added again.
pub(crate) async fn allow(
    tx: Tx<'_>,
    task: &str,
    entries: &[AllowEntry],
    when: AllowTime,
) -> Result<()> {
    // The caller has the task locked, so nobody adds the same between the look and the insertion.
    let mut rows: Vec<Vec<SqlValue<'_>>> = Vec::with_capacity(entries.len());
    for entry in entries {
        rows.push(vec![
            task.into(),
            short("the namespace of the tool", &entry.tool.namespace)?.into(),
            name("the name of the tool", &entry.tool.name)?.into(),
            name("the name of the parameter", &entry.name)?.into(),
            json("the value of the parameter", &entry.value)?,
            entry.sealed.into(),
            (when == AllowTime::Later).into(),
        ]);
    }
    tx.query_each(
        "INSERT INTO allow_list (task_id, tool_namespace, tool, name, value, sealed) \
         SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), \
         CAST($6 AS BIGINT) \
         WHERE NOT EXISTS (SELECT 1 FROM allow_list a WHERE a.task_id = $1 AND a.tool_namespace = $2 AND a.tool = $3 \
         AND a.name = $4 AND (a.value = $5 OR (a.sealed = 1 AND CAST($7 AS BIGINT) = 1)))",
        &rows,
    )
    .await?;
    Ok(())
}

pub(crate) async fn allow_list(tx: Tx<'_>, task: &str) -> Result<Vec<AllowEntry>> {
    let mut lists = allow_lists(tx, &[vec![task.into()]]).await?;
    Ok(lists.pop().unwrap_or_default())
}

/// The allow list of each of these tasks.
pub(crate) async fn allow_lists(
    tx: Tx<'_>,
    tasks: &[Vec<SqlValue<'_>>],
) -> Result<Vec<Vec<AllowEntry>>> {
    let lists = tx
        .query_each(
            "SELECT tool_namespace, tool, name, value, sealed FROM allow_list WHERE task_id = $1 ORDER BY number",
            tasks,
        )
        .await?;
    lists.into_iter().map(allow_entries).collect()
}

fn allow_entries(rows: Vec<SqlRow>) -> Result<Vec<AllowEntry>> {
    rows.into_iter()
        .map(|mut row| {
            Ok(AllowEntry {
                tool: ToolRef {
                    namespace: row.text()?,
                    name: row.text()?,
                },
                name: row.text()?,
                value: row.json()?,
                sealed: row.flag()?,
            })
        })
        .collect()
}

pub(crate) async fn of_task(tx: Tx<'_>, task: &str) -> Result<Vec<Interest>> {
    let rows = tx
        .query(
            "SELECT task_id, tool_namespace, tool, event, timeout_ms, active FROM interests WHERE task_id = $1 \
             ORDER BY number",
            &params![task],
        )
        .await?;
    rows.into_iter()
        .map(|mut row| {
            Ok(Interest {
                task: row.text()?,
                tool: ToolRef {
                    namespace: row.text()?,
                    name: row.text()?,
                },
                event: row.text()?,
                timeout_ms: row.int_or_null()?,
                active: row.flag()?,
            })
        })
        .collect()
}

pub(crate) async fn in_tool(
    tx: Tx<'_>,
    tool: &ToolRef,
    task: Option<&str>,
) -> Result<Vec<InterestedTask>> {
    // One statement for all tasks: a row per allow-list entry, or one row for an interest without any.
    let rows = tx
        .query(
            "SELECT i.number, i.task_id, i.tool_namespace, i.tool, i.event, i.timeout_ms, t.agent_namespace, \
             t.agent_name, t.state, t.last_activity, a.name, a.value, a.sealed \
             FROM interests i JOIN tasks t ON t.id = i.task_id \
             LEFT JOIN allow_list a ON a.task_id = i.task_id AND a.tool_namespace = i.tool_namespace AND a.tool = i.tool \
             WHERE i.active = 1 AND i.tool = $1 AND (CAST($2 AS TEXT) = '' OR i.tool_namespace = $2) \
             AND (CAST($3 AS TEXT) IS NULL OR i.task_id = $3) ORDER BY i.number, a.number",
            &params![&tool.name, &tool.namespace, task],
        )
        .await?;
    let mut found: Vec<InterestedTask> = Vec::new();
    let mut last = None;
    for mut row in rows {
        let number = row.int()?;
        let interested = InterestedTask {
            interest: Interest {
                task: row.text()?,
                tool: ToolRef {
                    namespace: row.text()?,
                    name: row.text()?,
                },
                event: row.text()?,
                timeout_ms: row.int_or_null()?,
                active: true,
            },
            agent_namespace: row.text()?,
            agent_name: row.text()?,
            state: row.word(TaskState::from_word)?,
            last_activity: row.int()?,
            allow: Vec::new(),
        };
        if last.replace(number) != Some(number) {
            found.push(interested);
        }
        let (Some(name), Some(current)) = (row.text_or_null()?, found.last_mut()) else {
            continue;
        };
        let tool = current.interest.tool.clone();
        current.allow.push(AllowEntry {
            tool,
            name,
            value: row.json()?,
            sealed: row.flag()?,
        });
    }
    Ok(found)
}
