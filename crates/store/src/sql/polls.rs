//! Statements about polls: cursor, seen ids and what was found are committed together.

use serde_json::Value;

use super::interests::event_row;
use super::row::SqlRow;
use super::transaction::{SqlValue, Tx, json, json_or_null, name, params, truncated};
use super::{events, leases, page};
use crate::error::{Result, StoreError};
use crate::model::limits::MAX_SEEN_IDS;
use crate::model::{
    ClaimedPoll, LeaseKind, Millis, NewPoll, PollCommit, PollRecord, ReceiveOutcome, ToolRef,
};

macro_rules! columns {
    () => {
        "id, task_id, tool_namespace, tool, event, cursor, seen, next_due, failures, last_error"
    };
}

fn read(mut row: SqlRow) -> Result<PollRecord> {
    Ok(PollRecord {
        id: row.int()?,
        task: row.text()?,
        tool: ToolRef {
            namespace: row.text()?,
            name: row.text()?,
        },
        event: row.text()?,
        cursor: row.json_or_null()?,
        seen: serde_json::from_value(row.json()?).map_err(|error| {
            StoreError::Corrupt(format!("the ids that a poll has seen: {error}"))
        })?,
        next_due: row.int()?,
        failures: row.int()?,
        last_error: row.text_or_null()?,
    })
}

pub(crate) async fn add(tx: Tx<'_>, task: &str, polls: &[NewPoll]) -> Result<()> {
    let rows = polls
        .iter()
        .map(|poll| event_row(task, &poll.tool, &poll.event, poll.due_in_ms.into()));
    let rows = rows.collect::<Result<Vec<_>>>()?;
    tx.query_each(
        "INSERT INTO polls (task_id, tool_namespace, tool, event, seen, next_due, failures) \
         VALUES ($1, $2, $3, $4, '[]', {now} + $5, 0) \
         ON CONFLICT (task_id, tool_namespace, tool, event) DO NOTHING",
        &rows,
    )
    .await?;
    Ok(())
}

pub(crate) async fn of_task(tx: Tx<'_>, task: &str) -> Result<Vec<PollRecord>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM polls WHERE task_id = $1 ORDER BY id"
            ),
            &params![task],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

pub(crate) async fn claim(
    tx: Tx<'_>,
    owner: &str,
    lease_ms: Millis,
    limit: usize,
    per_tool: usize,
) -> Result<Vec<ClaimedPoll>> {
    let rows = tx
        .query(
            concat!(
                "WITH busy AS (SELECT b.tool_namespace, b.tool, COUNT(*) AS polls FROM leases l JOIN polls b \
                 ON b.id = CASE WHEN l.kind = 'poll' THEN CAST(l.name AS BIGINT) END \
                 WHERE l.kind = 'poll' AND l.until > {now} GROUP BY b.tool_namespace, b.tool), \
                 waiting AS (SELECT q.id, q.next_due, q.tool_namespace, q.tool, ROW_NUMBER() OVER \
                 (PARTITION BY q.tool_namespace, q.tool ORDER BY q.next_due, q.id) AS turn \
                 FROM polls q JOIN tasks t ON t.id = q.task_id \
                 WHERE q.next_due <= {now} AND t.state <> 'interrupted' AND t.state <> 'ended' \
                 AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.kind = 'poll' AND l.name = CAST(q.id AS TEXT) \
                 AND l.until > {now})), \
                 turns AS (SELECT w.id FROM waiting w LEFT JOIN busy b ON b.tool_namespace = w.tool_namespace \
                 AND b.tool = w.tool WHERE w.turn + COALESCE(b.polls, 0) <= $4 \
                 ORDER BY w.turn + COALESCE(b.polls, 0), w.next_due, w.id LIMIT $3), \
                 due AS MATERIALIZED (SELECT p.id FROM polls p WHERE p.id IN (SELECT id FROM turns) {skip_locked p}) \
                 INSERT INTO leases (kind, name, owner, until, fence) \
                 SELECT 'poll', CAST(id AS TEXT), CAST($1 AS TEXT), {now} + $2, 1 FROM due WHERE 1 = 1",
                leases::take_over!()
            ),
            &params![
                name("the owner", owner)?,
                lease_ms,
                page(limit),
                page(per_tool)
            ],
        )
        .await?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in rows {
        let lease = leases::read(row)?;
        let poll = get(tx, &lease.name).await?;
        claimed.push(ClaimedPoll { poll, lease });
    }
    claimed.sort_by_key(|claimed| (claimed.poll.next_due, claimed.poll.id));
    Ok(claimed)
}

async fn get(tx: Tx<'_>, id: &str) -> Result<PollRecord> {
    let number: i64 = id
        .parse()
        .map_err(|_| StoreError::Invalid(format!("`{id}` names no poll")))?;
    let rows = tx
        .query(
            concat!("SELECT ", columns!(), " FROM polls WHERE id = $1 {lock}"),
            &params![number],
        )
        .await?;
    super::row::first(rows).map_or_else(|| Err(StoreError::NotFound(format!("poll {id}"))), read)
}

pub(crate) async fn commit(tx: Tx<'_>, commit: &PollCommit) -> Result<Vec<ReceiveOutcome>> {
    let poll = match get(tx, &commit.held.name).await {
        Ok(poll) => poll,
        // The task is gone, and its poll with it: the lease was taken away.
        Err(StoreError::NotFound(_)) => {
            return Err(StoreError::Fenced(format!("poll `{}`", commit.held.name)));
        }
        Err(error) => return Err(error),
    };
    leases::check(tx, &commit.held, LeaseKind::Poll, &commit.held.name).await?;
    let newest = commit.seen.len().saturating_sub(MAX_SEEN_IDS);
    let seen = Value::from(&commit.seen[newest..]);
    let received = events::receive(tx, &commit.events).await?;
    tx.execute(
        "UPDATE polls SET cursor = $2, seen = $3, next_due = {now} + $4, failures = $5, last_error = $6 WHERE id = $1",
        &[
            poll.id.into(),
            json_or_null("the cursor of the poll", commit.cursor.as_ref())?,
            json("the ids that the poll has seen", &seen)?,
            commit.due_in_ms.into(),
            commit.failures.into(),
            commit.last_error.as_deref().map_or(SqlValue::Null, truncated),
        ],
    )
    .await?;
    leases::release(tx, &commit.held).await?;
    Ok(received)
}
