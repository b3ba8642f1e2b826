//! Statements about the store itself: sweeping, counting, and whether it can be written to.

use std::collections::BTreeMap;

use super::row::first;
use super::transaction::{SqlValue, Tx, params};
use super::{page, tasks};
use crate::error::{Result, StoreError};
use crate::model::{Millis, Retention, StoreStats, SweepReport};

pub(crate) async fn sweep(tx: Tx<'_>, retention: &Retention) -> Result<SweepReport> {
    let batch = page(retention.batch.max(1));
    let now = now(tx).await?;
    let before = |age: Millis| now.saturating_sub(age.max(0));
    let dedupe_keys = tx
        .execute(
            "UPDATE events SET dedupe_key = NULL WHERE id IN (SELECT id FROM events WHERE dedupe_key IS NOT NULL \
             AND received_at <= $1 ORDER BY received_at LIMIT $2)",
            &params![before(retention.dedupe_ms), batch],
        )
        .await?;
    let mut swept = SweepReport {
        dedupe_keys,
        ..SweepReport::default()
    };
    if let Some(age) = retention.events_ms {
        // An event that is removed earlier than its key would let a duplicate in.
        let before = before(age.max(retention.dedupe_ms));
        swept.events = remove_events(tx, before, batch).await?;
    }
    if let Some(age) = retention.ended_tasks_ms {
        let rows = tx
            .query(
                "SELECT id FROM tasks t WHERE state = 'ended' AND last_activity <= $1 AND NOT EXISTS (SELECT 1 \
                 FROM leases l WHERE l.kind = 'task' AND l.name = t.id AND l.until > {now}) \
                 ORDER BY number LIMIT $2 {skip_locked t}",
                &params![before(age), batch],
            )
            .await?;
        let ids = rows
            .into_iter()
            .map(|mut row| row.text())
            .collect::<Result<Vec<_>>>()?;
        tasks::remove(tx, &ids).await?;
        swept.tasks = ids.len() as u64;
    }
    if let Some(age) = retention.channels_ms {
        let rows = tx
            .query(
                "DELETE FROM channels WHERE id IN (SELECT id FROM channels WHERE state IN ('closed', 'lost') \
                 AND updated_at <= $1 ORDER BY number LIMIT $2) RETURNING id",
                &params![before(age), batch],
            )
            .await?;
        swept.channels = rows.len() as u64;
        for mut row in rows {
            let id = row.text()?;
            tx.execute(
                "DELETE FROM leases WHERE kind = 'channel' AND name = $1",
                &params![&id],
            )
            .await?;
        }
    }
    let batch = batch as u64;
    swept.more = [swept.dedupe_keys, swept.events, swept.tasks, swept.channels].contains(&batch);
    Ok(swept)
}

async fn remove_events(tx: Tx<'_>, before: Millis, batch: usize) -> Result<u64> {
    let rows = tx
        .query(
            "SELECT id FROM events e WHERE state = 'routed' AND dedupe_key IS NULL AND received_at <= $1 \
             AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id AND d.state = 'pending') \
             ORDER BY received_at LIMIT $2 {skip_locked e}",
            &params![before, batch],
        )
        .await?;
    let mut ids: Vec<Vec<SqlValue<'_>>> = Vec::with_capacity(rows.len());
    for mut row in rows {
        ids.push(vec![row.int()?.into()]);
    }
    // Asked again now that nobody else can change them: a replay may have come between.
    let removed = tx
        .query_each(
            "DELETE FROM events WHERE id = $1 AND state = 'routed' AND NOT EXISTS (SELECT 1 FROM deliveries d \
             WHERE d.event_id = events.id AND d.state = 'pending') RETURNING id",
            &ids,
        )
        .await?;
    Ok(removed.iter().filter(|rows| !rows.is_empty()).count() as u64)
}

pub(crate) async fn stats(tx: Tx<'_>) -> Result<StoreStats> {
    let mut counts = tx
        .query(
            "SELECT (SELECT COUNT(*) FROM events WHERE state = 'received'), \
             (SELECT COUNT(*) FROM deliveries WHERE state = 'pending')",
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
