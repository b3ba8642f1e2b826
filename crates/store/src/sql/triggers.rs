//! Statements about schedules and triggers. A tick fires once: the row is locked while it is looked at.

use super::row::{SqlRow, first};
use super::transaction::{Tx, name, params, short, truncated};
use super::{leases, tasks};
use crate::error::{Result, StoreError};
use crate::model::{
    Millis, ScheduleTick, TickOutcome, TriggerFailure, TriggerKey, TriggerKind, TriggerStatus,
};

macro_rules! columns {
    () => {
        "kind, namespace, name, last_at, last_task, next_at, total, failures, last_error"
    };
}

fn read(mut row: SqlRow) -> Result<TriggerStatus> {
    Ok(TriggerStatus {
        key: TriggerKey {
            kind: row.word(TriggerKind::from_word)?,
            namespace: row.text()?,
            name: row.text()?,
        },
        last_at: row.int_or_null()?,
        last_task: row.text_or_null()?,
        next_at: row.int_or_null()?,
        total: row.int()?,
        failures: row.int()?,
        last_error: row.text_or_null()?,
    })
}

pub(crate) async fn list(tx: Tx<'_>) -> Result<Vec<TriggerStatus>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM starts ORDER BY kind, namespace, name"
            ),
            &[],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

pub(crate) async fn get(tx: Tx<'_>, key: &TriggerKey) -> Result<Option<TriggerStatus>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM starts WHERE kind = $1 AND namespace = $2 AND name = $3"
            ),
            &params![key.kind.as_str(), &key.namespace, &key.name],
        )
        .await?;
    first(rows).map(read).transpose()
}

/// Makes sure that the row is there and that nobody else changes it until the transaction ends. Returns the last tick.
async fn lock(tx: Tx<'_>, key: &TriggerKey) -> Result<Option<Millis>> {
    let of = params![
        key.kind.as_str(),
        short("the namespace of the manifest", &key.namespace)?,
        name("the name of the manifest", &key.name)?
    ];
    tx.execute(
        "INSERT INTO starts (kind, namespace, name, total, failures) VALUES ($1, $2, $3, 0, 0) \
         ON CONFLICT (kind, namespace, name) DO NOTHING",
        &of,
    )
    .await?;
    let rows = tx
        .query(
            "SELECT last_tick FROM starts WHERE kind = $1 AND namespace = $2 AND name = $3 {lock}",
            &of,
        )
        .await?;
    first(rows)
        .ok_or_else(|| StoreError::Corrupt("a status row is gone".to_owned()))?
        .int_or_null()
}

/// Counts a task that a trigger began.
pub(crate) async fn began(tx: Tx<'_>, key: &TriggerKey, task: &str) -> Result<()> {
    lock(tx, key).await?;
    tx.execute(
        "UPDATE starts SET last_at = {now}, last_task = $4, total = total + 1, failures = 0, last_error = NULL \
         WHERE kind = $1 AND namespace = $2 AND name = $3",
        &params![key.kind.as_str(), &key.namespace, &key.name, task],
    )
    .await?;
    Ok(())
}

pub(crate) async fn set_next(tx: Tx<'_>, key: &TriggerKey, next_at: Option<Millis>) -> Result<()> {
    lock(tx, key).await?;
    tx.execute(
        "UPDATE starts SET next_at = $4 WHERE kind = $1 AND namespace = $2 AND name = $3",
        &params![key.kind.as_str(), &key.namespace, &key.name, next_at],
    )
    .await?;
    Ok(())
}

pub(crate) async fn fire(tx: Tx<'_>, fire: &ScheduleTick) -> Result<TickOutcome> {
    let key = &fire.key;
    let last_tick = lock(tx, key).await?;
    if let Some(held) = &fire.held {
        leases::check(tx, held, held.kind, &held.name).await?;
    }
    if last_tick.is_some_and(|last| fire.tick <= last) {
        return Ok(TickOutcome::AlreadyFired);
    }
    let of = params![
        key.kind.as_str(),
        &key.namespace,
        &key.name,
        fire.tick,
        fire.next_at
    ];
    tx.execute(
        "UPDATE starts SET last_tick = $4, next_at = $5 WHERE kind = $1 AND namespace = $2 AND name = $3",
        &of,
    )
    .await?;
    if let Some(task) = &fire.task {
        tasks::create(tx, task).await?;
        tx.execute(
            "UPDATE starts SET last_at = $4, last_task = $5, total = total + 1, failures = 0, last_error = NULL \
             WHERE kind = $1 AND namespace = $2 AND name = $3",
            &params![key.kind.as_str(), &key.namespace, &key.name, fire.tick, &task.id],
        )
        .await?;
    }
    Ok(TickOutcome::Fired)
}

pub(crate) async fn failed(tx: Tx<'_>, failure: &TriggerFailure) -> Result<()> {
    let key = &failure.key;
    let last_tick = lock(tx, key).await?;
    if let (Some(tick), Some(last)) = (failure.tick, last_tick)
        && tick <= last
    {
        // The tick fired elsewhere, or its failure is counted already.
        return Ok(());
    }
    tx.execute(
        "UPDATE starts SET failures = failures + 1, last_error = $4, last_tick = COALESCE($5, last_tick), \
         next_at = COALESCE($6, next_at) WHERE kind = $1 AND namespace = $2 AND name = $3",
        &[
            key.kind.as_str().into(),
            (&key.namespace).into(),
            (&key.name).into(),
            truncated(&failure.error),
            failure.tick.into(),
            failure.next_at.into(),
        ],
    )
    .await?;
    Ok(())
}
