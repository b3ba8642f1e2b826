//! Statements about the store itself: counting, how old its work is, and whether it can be written to.

use std::collections::BTreeMap;

use super::row::first;
use super::transaction::{Tx, list_or_null, params};
use crate::error::{Result, StoreError};
use crate::model::{Millis, StoreProgress, StoreStats};

pub(crate) async fn stats(tx: Tx<'_>) -> Result<StoreStats> {
    let mut counts = tx
        .query(
            "SELECT (SELECT COUNT(*) FROM events WHERE state = 'received'), \
             (SELECT COUNT(*) FROM deliveries WHERE state = 'pending' AND command = 0) \
             + (SELECT COUNT(*) FROM deliveries WHERE state = 'pending' AND command = 1)",
            &[],
        )
        .await?;
    let row = counts
        .first_mut()
        .ok_or_else(|| StoreError::Corrupt("a count gave nothing".to_owned()))?;
    let unrouted_events = row.int()?;
    let pending_deliveries = row.int()?;
    let tasks = tx
        .query("SELECT state, COUNT(*) FROM tasks GROUP BY state", &[])
        .await?;
    let channels = tx
        .query("SELECT state, COUNT(*) FROM channels GROUP BY state", &[])
        .await?;
    let counted = |rows: Vec<super::row::SqlRow>| {
        rows.into_iter()
            .map(|mut row| Ok((row.text()?, row.int()?)))
            .collect::<Result<BTreeMap<_, _>>>()
    };
    Ok(StoreStats {
        tasks: counted(tasks)?,
        unrouted_events,
        pending_deliveries,
        channels: counted(channels)?,
    })
}

/// Whether the agent of a task `t` is among those of parameter 1, each as `namespace/name`; all are if there is none.
macro_rules! has_agent {
    () => {
        "(CAST($1 AS TEXT) IS NULL OR {among t.agent_namespace||'/'||t.agent_name 1})"
    };
}

/// How many tasks have something to do and an agent that is not among these.
pub(crate) async fn without_agent(tx: Tx<'_>, agents: &[String]) -> Result<i64> {
    let rows = tx
        .query(
            concat!(
                "SELECT COUNT(*) FROM tasks t WHERE t.ready_at IS NOT NULL AND NOT ",
                has_agent!()
            ),
            &params![list_or_null(Some(agents)).as_deref()],
        )
        .await?;
    first(rows).map_or(Ok(0), |mut row| row.int())
}

/// How long the oldest work has waited, of tasks with one of these agents. A task that is running under a live lease makes
/// progress; what waits for it comes after that. So does what waits for one that waits for a person.
pub(crate) async fn progress(
    tx: Tx<'_>,
    owner: &str,
    agents: Option<&[String]>,
) -> Result<StoreProgress> {
    let now = now(tx).await?;
    let age = |since: Option<Millis>| since.map(|since| now.saturating_sub(since).max(0));
    let agents = list_or_null(agents);
    let oldest = async |tx: Tx<'_>, sql: &'static str| -> Result<Option<Millis>> {
        let rows = tx.query(sql, &params![agents.as_deref()]).await?;
        first(rows).map(|mut row| row.int()).transpose()
    };
    let rows = tx
        .query(
            "SELECT (SELECT received_at FROM events WHERE state = 'received' AND replayed_at IS NULL ORDER BY id LIMIT 1), \
             (SELECT MIN(replayed_at) FROM events WHERE replayed_at IS NOT NULL AND state = 'received')",
            &[],
        )
        .await?;
    let (event, replay) = match first(rows) {
        Some(mut row) => (row.int_or_null()?, row.int_or_null()?),
        None => (None, None),
    };
    // The end of a lease that ran out is when the work was left alone.
    let task = oldest(
        &mut *tx,
        concat!(
            "SELECT CASE WHEN l.until > t.ready_at AND l.until <= {now} THEN l.until ELSE t.ready_at END FROM tasks t \
             LEFT JOIN leases l ON l.kind = 'task' AND l.name = t.id WHERE t.ready_at <= {now} \
             AND (t.state <> 'running' OR COALESCE(l.until, 0) <= {now}) AND ",
            has_agent!(),
            " ORDER BY t.ready_at, t.number LIMIT 1"
        ),
    )
    .await?;
    let command = oldest(
        &mut *tx,
        concat!(
            "SELECT d.created_at FROM deliveries d JOIN tasks t ON t.id = d.task_id \
             WHERE d.state = 'pending' AND d.command = 1 AND ",
            has_agent!(),
            " ORDER BY d.id LIMIT 1"
        ),
    )
    .await?;
    let rows = tx
        .query(
            "SELECT COUNT(*) FROM leases WHERE owner = $1",
            &params![owner],
        )
        .await?;
    let leases = first(rows).map_or(Ok(0), |mut row| row.int())?;
    Ok(StoreProgress {
        oldest_event_ms: age(event).max(age(replay)).max(age(task)),
        oldest_command_ms: age(command),
        leases: u64::try_from(leases).unwrap_or(0),
    })
}

/// Writes a row that is made for it.
pub(crate) async fn health(tx: Tx<'_>) -> Result<()> {
    tx.execute(
        "INSERT INTO meta (key, value) VALUES ('last_health_check', CAST({now} AS TEXT)) \
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        &[],
    )
    .await?;
    Ok(())
}

pub(crate) async fn now(tx: Tx<'_>) -> Result<Millis> {
    let rows = tx.query("SELECT {now}", &[]).await?;
    first(rows)
        .ok_or_else(|| StoreError::Corrupt("the clock gave nothing".to_owned()))?
        .int()
}
