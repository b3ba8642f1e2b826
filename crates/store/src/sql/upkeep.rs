//! Statements about the store itself: counting, how old its work is, and whether it can be written to.

use std::collections::BTreeMap;

use super::row::first;
use super::transaction::{Tx, params};
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

/// How long the oldest work has waited. A task that is running under a live lease makes progress; what waits for it comes
/// after that. So does what waits for one that waits for a person.
pub(crate) async fn progress(tx: Tx<'_>, owner: &str) -> Result<StoreProgress> {
    let now = now(tx).await?;
    let age = |since: Option<Millis>| since.map(|since| now.saturating_sub(since).max(0));
    let oldest = async |tx: Tx<'_>, sql: &'static str| -> Result<Option<Millis>> {
        let rows = tx.query(sql, &[]).await?;
        first(rows).map(|mut row| row.int()).transpose()
    };
    let event = oldest(
        &mut *tx,
        "SELECT received_at FROM events WHERE state = 'received' ORDER BY id LIMIT 1",
    )
    .await?;
    // The end of a lease that ran out is when the work was left alone.
    let task = oldest(
        &mut *tx,
        "SELECT CASE WHEN l.until > t.ready_at AND l.until <= {now} THEN l.until ELSE t.ready_at END FROM tasks t \
         LEFT JOIN leases l ON l.kind = 'task' AND l.name = t.id WHERE t.ready_at <= {now} \
         AND (t.state <> 'running' OR COALESCE(l.until, 0) <= {now}) ORDER BY t.ready_at, t.number LIMIT 1",
    )
    .await?;
    let command = oldest(
        &mut *tx,
        "SELECT created_at FROM deliveries WHERE state = 'pending' AND command = 1 ORDER BY id LIMIT 1",
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
        oldest_event_ms: age(event).max(age(task)),
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
