//! Statements about deliveries, and about the tasks that have some.

use std::collections::{BTreeSet, HashMap};

use super::row::{SqlRow, first};
use super::transaction::{SqlValue, Tx, json, name, params, truncated};
use super::{leases, page, tasks};
use crate::error::{Result, StoreError};
use crate::model::{
    ClaimedTask, DeliveryDecision, DeliveryRecord, DeliveryState, DirectDelivery, HeldLease,
    LeaseKind, Millis, NewDelivery, ReceiveOutcome, TaskState, ToolRef, WakeRules,
};

macro_rules! columns {
    () => {
        "id, task_id, event_id, attempt, tool_namespace, tool, name, key, body, state, reason, turn_seq, created_at, \
         settled_at"
    };
}

fn read(mut row: SqlRow) -> Result<DeliveryRecord> {
    Ok(DeliveryRecord {
        id: row.int()?,
        task: row.text()?,
        event: row.int_or_null()?,
        attempt: row.int()?,
        tool: {
            let namespace = row.text_or_null()?;
            let name = row.text_or_null()?;
            namespace
                .zip(name)
                .map(|(namespace, name)| ToolRef { namespace, name })
        },
        name: row.text()?,
        key: row.text_or_null()?,
        body: row.json()?,
        state: row.word(DeliveryState::from_word)?,
        reason: row.text_or_null()?,
        turn_seq: row.int_or_null()?,
        created_at: row.int()?,
        settled_at: row.int_or_null()?,
    })
}

pub(crate) async fn deliver(
    tx: Tx<'_>,
    task: &str,
    new: &DirectDelivery,
) -> Result<ReceiveOutcome> {
    let found = tasks::lock(tx, task).await?;
    let key = new
        .key
        .as_deref()
        .map(|key| name("the key of the delivery", key))
        .transpose()?;
    // Asked before the state: repeating a delivery is fine after the task has ended.
    if let Some(key) = key {
        let known = tx
            .query(
                "SELECT id FROM deliveries WHERE task_id = $1 AND key = $2",
                &params![task, key],
            )
            .await?;
        if let Some(mut row) = first(known) {
            return Ok(ReceiveOutcome::Duplicate(row.int()?));
        }
    }
    tasks::expect_state(&found, &[])?;
    let rows = tx
        .query(
            "INSERT INTO deliveries (task_id, attempt, name, key, body, state, created_at) \
             VALUES ($1, 0, $2, $3, $4, 'pending', {now}) RETURNING id",
            &[
                task.into(),
                name("the name of the delivery", &new.name)?.into(),
                key.into(),
                json("the delivery", &new.body)?,
            ],
        )
        .await?;
    let mut row =
        first(rows).ok_or_else(|| StoreError::Corrupt("an insertion gave no id".to_owned()))?;
    Ok(ReceiveOutcome::Stored(row.int()?))
}

/// Locks the tasks of deliveries against ending: a task that ends discards what is pending, and must not miss these.
/// Returns which of them are there, and whether they go on.
pub(crate) async fn lock_tasks<'d>(
    tx: Tx<'_>,
    deliveries: impl IntoIterator<Item = &'d NewDelivery>,
) -> Result<HashMap<&'d str, bool>> {
    // Sorted, so that two processes that route to the same tasks lock them in the same order.
    let tasks = deliveries.into_iter().map(|one| one.task.as_str());
    let tasks: BTreeSet<&str> = tasks.collect();
    let each: Vec<Vec<SqlValue<'_>>> = tasks.iter().map(|task| vec![(*task).into()]).collect();
    let states = tx
        .query_each("SELECT state FROM tasks WHERE id = $1 {lock}", &each)
        .await?;
    let mut open = HashMap::new();
    for (task, rows) in tasks.iter().zip(states) {
        if let Some(mut row) = first(rows) {
            open.insert(*task, row.word(TaskState::from_word)? != TaskState::Ended);
        }
    }
    Ok(open)
}

/// Stores what routing decided about tasks. Returns the ids, and how many of them are pending.
pub(crate) async fn add(
    tx: Tx<'_>,
    event: i64,
    attempt: i64,
    new: &[NewDelivery],
) -> Result<(Vec<i64>, i64)> {
    let open = lock_tasks(tx, new).await?;
    let mut rows: Vec<Vec<SqlValue<'_>>> = Vec::with_capacity(new.len());
    let mut pending = 0;
    for delivery in new {
        let open = open
            .get(delivery.task.as_str())
            .ok_or_else(|| tasks::missing(&delivery.task))?;
        let reason = match &delivery.decision {
            DeliveryDecision::Discard(reason) => Some(reason.as_str()),
            DeliveryDecision::Deliver if !open => Some("the task had ended"),
            DeliveryDecision::Deliver => None,
        };
        pending += i64::from(reason.is_none());
        rows.push(vec![
            (&delivery.task).into(),
            event.into(),
            attempt.into(),
            (&delivery.tool.namespace).into(),
            name("the name of the tool", &delivery.tool.name)?.into(),
            name("the name of the event", &delivery.name)?.into(),
            json("the delivery", &delivery.body)?,
            if reason.is_some() {
                "discarded"
            } else {
                "pending"
            }
            .into(),
            reason.map_or(SqlValue::Null, truncated),
            i64::from(reason.is_some()).into(),
        ]);
    }
    let inserted = tx
        .query_each(
            "INSERT INTO deliveries (task_id, event_id, attempt, tool_namespace, tool, name, body, state, reason, \
             created_at, settled_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {now}, CASE WHEN CAST($10 AS BIGINT) = 1 THEN {now} END) \
             RETURNING id",
            &rows,
        )
        .await?;
    let mut ids = Vec::with_capacity(inserted.len());
    for row in inserted {
        let mut row =
            first(row).ok_or_else(|| StoreError::Corrupt("an insertion gave no id".to_owned()))?;
        ids.push(row.int()?);
    }
    Ok((ids, pending))
}

pub(crate) async fn pending(tx: Tx<'_>, task: &str, limit: usize) -> Result<Vec<DeliveryRecord>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM deliveries WHERE task_id = $1 AND state = 'pending' ORDER BY id LIMIT $2"
            ),
            &params![task, page(limit)],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

pub(crate) async fn pending_of(tx: Tx<'_>, owner: &str, limit: usize) -> Result<Vec<String>> {
    let rows = tx
        .query(
            "SELECT DISTINCT d.task_id FROM deliveries d JOIN leases l ON l.kind = 'task' AND l.name = d.task_id \
             WHERE d.state = 'pending' AND l.owner = $1 LIMIT $2",
            &params![owner, page(limit)],
        )
        .await?;
    rows.into_iter().map(|mut row| row.text()).collect()
}

pub(crate) async fn of_task(
    tx: Tx<'_>,
    task: &str,
    before: Option<i64>,
    limit: usize,
) -> Result<Vec<DeliveryRecord>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM deliveries WHERE task_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
            ),
            &params![task, before.unwrap_or(i64::MAX), page(limit)],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

pub(crate) async fn of_event(tx: Tx<'_>, event: i64) -> Result<Vec<DeliveryRecord>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM deliveries WHERE event_id = $1 ORDER BY id"
            ),
            &params![event],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

pub(crate) async fn discard(
    tx: Tx<'_>,
    held: &HeldLease,
    delivery: i64,
    reason: &str,
) -> Result<()> {
    tasks::lock(tx, &held.name).await?;
    leases::check(tx, held, LeaseKind::Task, &held.name).await?;
    let changed = tx
        .execute(
            "UPDATE deliveries SET state = 'discarded', reason = $3, settled_at = {now} \
             WHERE id = $1 AND task_id = $2 AND state = 'pending'",
            &[delivery.into(), (&held.name).into(), truncated(reason)],
        )
        .await?;
    if changed == 0 {
        return Err(StoreError::Conflict(format!(
            "delivery {delivery} is not pending for task `{}`",
            held.name
        )));
    }
    Ok(())
}

pub(crate) async fn discard_pending(tx: Tx<'_>, task: &str, reason: &str) -> Result<()> {
    tx.execute(
        "UPDATE deliveries SET state = 'discarded', reason = $2, settled_at = {now} \
         WHERE task_id = $1 AND state = 'pending'",
        &[task.into(), truncated(reason)],
    )
    .await?;
    Ok(())
}

pub(crate) async fn claim_tasks(
    tx: Tx<'_>,
    owner: &str,
    lease_ms: Millis,
    wake: WakeRules,
    limit: usize,
) -> Result<Vec<ClaimedTask>> {
    let rows = tx
        .query(
            concat!(
                "WITH candidates AS MATERIALIZED (SELECT id FROM tasks WHERE state = 'running' \
                 UNION SELECT task_id FROM deliveries WHERE state = 'pending'), \
                 ready AS MATERIALIZED (SELECT t.id FROM tasks t WHERE t.id IN (SELECT id FROM candidates) \
                 AND (t.state IN ('running', 'idle') OR (t.state = 'waiting' AND CAST($4 AS BIGINT) = 1) \
                 OR (t.state = 'interrupted' AND CAST($5 AS BIGINT) = 1)) \
                 AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.kind = 'task' AND l.name = t.id AND l.until > {now}) \
                 ORDER BY t.last_activity, t.number LIMIT $3 {skip_locked t}) \
                 INSERT INTO leases (kind, name, owner, until, fence) \
                 SELECT 'task', id, CAST($1 AS TEXT), {now} + $2, 1 FROM ready WHERE 1 = 1",
                leases::take_over!()
            ),
            &params![name("the owner", owner)?, lease_ms, page(limit), wake.waiting, wake.interrupted],
        )
        .await?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in rows {
        let lease = leases::read(row)?;
        let task = tasks::get(tx, &lease.name).await?;
        let next = first_pending(tx, &lease.name).await?;
        // Somebody may have done the work between the look and the lease.
        if next.is_none() && task.state != TaskState::Running {
            leases::release(tx, &lease.held()).await?;
            continue;
        }
        claimed.push(ClaimedTask { task, lease, next });
    }
    claimed.sort_by(|one, other| {
        (one.task.last_activity, &one.task.id).cmp(&(other.task.last_activity, &other.task.id))
    });
    Ok(claimed)
}

async fn first_pending(tx: Tx<'_>, task: &str) -> Result<Option<DeliveryRecord>> {
    Ok(pending(tx, task, 1).await?.into_iter().next())
}
