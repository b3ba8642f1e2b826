//! Statements about what ends: tasks that are finished, and rows that are old enough to be removed.

use super::row::first;
use super::transaction::{SqlValue, Tx, params};
use super::{leases, page, tasks};
use crate::error::Result;
use crate::model::{LeaseKind, Millis, Retention, SweepReport, TaskState};

pub(crate) async fn sweep(tx: Tx<'_>, retention: &Retention) -> Result<SweepReport> {
    let batch = page(retention.batch.max(1));
    let now = super::upkeep::now(tx).await?;
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
        swept.tasks = remove_tasks(tx, before(age), batch).await?;
    }
    if let Some(age) = retention.turns_ms {
        swept.turns = remove_turns(tx, before(age), batch).await?;
    }
    if let Some(age) = retention.traces_ms {
        swept.traces = tx.execute(
            "DELETE FROM traces WHERE (task_id, seq) IN (SELECT task_id, seq FROM traces WHERE created_at <= $1 \
             ORDER BY created_at LIMIT $2)",
            &params![before(age), batch],
        ).await?;
    }
    if let Some(age) = retention.keys_ms {
        swept.keys = tx.execute(
            "DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys WHERE revoked_at <= $1 OR expires_at <= $1 \
             ORDER BY number LIMIT $2)",
            &params![before(age), batch],
        ).await?;
    }
    if let Some(age) = retention.channels_ms {
        swept.channels = remove_channels(tx, before(age), batch).await?;
    }
    let full = batch as u64;
    let SweepReport {
        dedupe_keys,
        events,
        tasks,
        turns,
        traces,
        keys,
        channels,
        more: _,
    } = swept;
    swept.more = [dedupe_keys, events, tasks, turns, traces, keys, channels]
        .iter()
        .any(|count| *count >= full);
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

async fn remove_tasks(tx: Tx<'_>, before: Millis, batch: usize) -> Result<u64> {
    let rows = tx
        .query(
            "SELECT id FROM tasks t WHERE state = 'ended' AND last_activity <= $1 AND NOT EXISTS (SELECT 1 \
             FROM leases l WHERE l.kind = 'task' AND l.name = t.id AND l.until > {now}) \
             ORDER BY last_activity, number LIMIT $2 {skip_locked t}",
            &params![before, batch],
        )
        .await?;
    let ids = rows.into_iter().map(|mut row| row.text());
    let ids = ids.collect::<Result<Vec<_>>>()?;
    tasks::remove(tx, &ids).await?;
    Ok(ids.len() as u64)
}

/// Removes turns of ended tasks, of a few tasks at a time.
async fn remove_turns(tx: Tx<'_>, before: Millis, batch: usize) -> Result<u64> {
    tx.execute(
        "DELETE FROM turns WHERE (task_id, seq) IN (SELECT u.task_id, u.seq FROM tasks t \
         JOIN turns u ON u.task_id = t.id WHERE t.state = 'ended' AND t.last_activity <= $1 LIMIT $2)",
        &params![before, batch],
    )
    .await
}

async fn remove_channels(tx: Tx<'_>, before: Millis, batch: usize) -> Result<u64> {
    let rows = tx
        .query(
            "DELETE FROM channels WHERE id IN (SELECT id FROM channels WHERE state IN ('closed', 'lost') \
             AND updated_at <= $1 ORDER BY number LIMIT $2) RETURNING id",
            &params![before, batch],
        )
        .await?;
    let removed = rows.len() as u64;
    for mut row in rows {
        let id = row.text()?;
        tx.execute(
            "DELETE FROM leases WHERE kind = 'channel' AND name = $1",
            &params![&id],
        )
        .await?;
    }
    Ok(removed)
}

/// Ends idle tasks that nobody will wake: silent for so long, with nothing pending, and every interest timed out.
pub(crate) async fn end_finished(tx: Tx<'_>, idle_ms: Millis, limit: usize) -> Result<Vec<String>> {
    let now = super::upkeep::now(tx).await?;
    let rows = tx
        .query(
            "SELECT t.id FROM tasks t WHERE t.state = 'idle' AND t.last_activity <= $1 AND t.ready_at IS NULL \
             AND NOT EXISTS (SELECT 1 FROM interests i WHERE i.task_id = t.id AND i.active = 1 \
             AND (i.timeout_ms IS NULL OR i.timeout_ms > {now} - t.last_activity)) \
             AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.kind = 'task' AND l.name = t.id AND l.until > {now}) \
             ORDER BY t.last_activity LIMIT $2 {skip_locked t}",
            &params![now.saturating_sub(idle_ms.max(0)), page(limit)],
        )
        .await?;
    let ids = rows.into_iter().map(|mut row| row.text());
    let mut ended = Vec::new();
    for id in ids.collect::<Result<Vec<_>>>()? {
        // Asked again under the lock: something may have come between.
        let task = tasks::lock(tx, &id).await?;
        let ready = tx
            .query(
                "SELECT 1 FROM tasks WHERE id = $1 AND ready_at IS NOT NULL",
                &params![&id],
            )
            .await?;
        let is_ready = first(ready).is_some();
        if is_ready
            || task.state != TaskState::Idle
            || leases::is_live(tx, LeaseKind::Task, &id).await?
        {
            continue;
        }
        let detail = serde_json::json!({"end": "finished"});
        tasks::set_state(tx, &task, TaskState::Ended, Some(&detail)).await?;
        // It ended when it was last active: from then on it is kept as long as any that ended.
        tx.execute(
            "UPDATE tasks SET last_activity = $2 WHERE id = $1",
            &params![&id, task.last_activity],
        )
        .await?;
        ended.push(id);
    }
    Ok(ended)
}
