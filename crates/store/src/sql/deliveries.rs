//! Statements about deliveries, and about the tasks that have some.

use std::collections::{BTreeSet, HashMap};

use super::row::{SqlRow, first};
use super::transaction::{SqlValue, Tx, json, json_text, list_or_null, name, params, truncated};
use super::{interests, leases, page, tasks};
use crate::error::{Result, StoreError};
use crate::model::limits::MAX_PAGE;
use crate::model::{
    ClaimedTask, DeliveryDecision, DeliveryRecord, DeliveryState, DirectDelivery, HeldLease,
    LeaseKind, Millis, NewDelivery, ReceiveOutcome, TaskQueues, TaskState, ToolRef, WakeRules,
};

/// Reads deliveries. What routing composed of an event is kept beside them, once for all who get it.
macro_rules! select {
    () => {
        select!("")
    };
    ($first:literal) => {
        select!(
            $first,
            "COALESCE(b.body, d.body)",
            " LEFT JOIN bodies b ON b.id = d.body_id"
        )
    };
    ($first:literal, $body:literal, $from:literal) => {
        concat!(
            "SELECT ",
            $first,
            "d.id, d.task_id, d.event_id, d.attempt, d.tool_namespace, d.tool, d.name, d.key, ",
            $body,
            ", d.state, d.reason, d.turn_seq, d.created_at, d.settled_at FROM deliveries d",
            $from,
            " WHERE "
        )
    };
}

/// The queues that a task has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryQueue {
    /// What becomes a turn of the task.
    Inputs,
    /// What people want of it: read first, whatever else waits.
    Commands,
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
    queue: DeliveryQueue,
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
                "SELECT id, name, body FROM deliveries WHERE task_id = $1 AND key = $2",
                &params![task, key],
            )
            .await?;
        if let Some(mut row) = first(known) {
            let (id, name, body) = (row.int()?, row.text()?, row.json()?);
            // Refused here, so that nothing that is written with a delivery becomes true of one that is none.
            if name != new.name || !new.repeats(&body) {
                return Err(StoreError::KeyTaken(id));
            }
            return Ok(ReceiveOutcome::Duplicate(id));
        }
    }
    tasks::expect_state(&found, &[])?;
    if queue == DeliveryQueue::Commands
        && key.is_none()
        && let Some(same) = newest_command(tx, task, &new.name).await?
    {
        return Ok(ReceiveOutcome::Duplicate(same));
    }
    let rows = tx
        .query(
            "INSERT INTO deliveries (task_id, attempt, name, key, body, state, created_at, command) \
             VALUES ($1, 0, $2, $3, $4, 'pending', {now}, $5) RETURNING id",
            &[
                task.into(),
                name("the name of the delivery", &new.name)?.into(),
                key.into(),
                json("the delivery", &new.body)?,
                (queue == DeliveryQueue::Commands).into(),
            ],
        )
        .await?;
    tasks::note_ready(tx, &[vec![task.into()]]).await?;
    let mut row =
        first(rows).ok_or_else(|| StoreError::Corrupt("an insertion gave no id".to_owned()))?;
    Ok(ReceiveOutcome::Stored(row.int()?))
}

/// The newest command of a task that is pending, if it has this name: wanting the same twice is wanting it once.
async fn newest_command(tx: Tx<'_>, task: &str, name: &str) -> Result<Option<i64>> {
    let rows = tx
        .query(
            "SELECT id, name FROM deliveries WHERE task_id = $1 AND state = 'pending' AND command = 1 \
             ORDER BY id DESC LIMIT 1",
            &params![task],
        )
        .await?;
    let Some(mut row) = first(rows) else {
        return Ok(None);
    };
    let id = row.int()?;
    Ok((row.text()? == name).then_some(id))
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
    let bodies = add_bodies(tx, event, new).await?;
    let mut rows: Vec<Vec<SqlValue<'_>>> = Vec::with_capacity(new.len());
    let mut ready: BTreeSet<&str> = BTreeSet::new();
    let mut pending = 0;
    for (delivery, body) in new.iter().zip(bodies) {
        let open = open
            .get(delivery.task.as_str())
            .ok_or_else(|| tasks::missing(&delivery.task))?;
        let reason = match &delivery.decision {
            DeliveryDecision::Discard(reason) => Some(reason.as_str()),
            DeliveryDecision::Deliver if !open => Some("the task had ended"),
            DeliveryDecision::Deliver => None,
        };
        if reason.is_none() {
            pending += 1;
            ready.insert(&delivery.task);
        }
        rows.push(vec![
            (&delivery.task).into(),
            event.into(),
            attempt.into(),
            (&delivery.tool.namespace).into(),
            name("the name of the tool", &delivery.tool.name)?.into(),
            name("the name of the event", &delivery.name)?.into(),
            body.into(),
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
            "INSERT INTO deliveries (task_id, event_id, attempt, tool_namespace, tool, name, body, body_id, state, \
             reason, created_at, settled_at) \
             VALUES ($1, $2, $3, $4, $5, $6, '', $7, $8, $9, {now}, CASE WHEN CAST($10 AS BIGINT) = 1 THEN {now} END) \
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
    let ready: Vec<Vec<SqlValue<'_>>> = ready.into_iter().map(|task| vec![task.into()]).collect();
    tasks::note_ready(tx, &ready).await?;
    Ok((ids, pending))
}

/// Keeps what was composed of an event, each text once, and gives the number of each delivery's.
async fn add_bodies(tx: Tx<'_>, event: i64, new: &[NewDelivery]) -> Result<Vec<i64>> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut texts: Vec<Vec<SqlValue<'_>>> = Vec::new();
    let mut places = Vec::with_capacity(new.len());
    for delivery in new {
        let text = json_text("the delivery", &delivery.body)?;
        let place = *known.entry(text).or_insert_with_key(|text| {
            texts.push(vec![event.into(), text.clone().into()]);
            texts.len() - 1
        });
        places.push(place);
    }
    let rows = tx
        .query_each(
            "INSERT INTO bodies (event_id, body) VALUES ($1, $2) RETURNING id",
            &texts,
        )
        .await?;
    let lost = || StoreError::Corrupt("an insertion gave no id".to_owned());
    let ids = rows
        .into_iter()
        .map(|rows| first(rows).ok_or_else(lost)?.int())
        .collect::<Result<Vec<i64>>>()?;
    places
        .into_iter()
        .map(|place| ids.get(place).copied().ok_or_else(lost))
        .collect()
}

pub(crate) async fn pending(tx: Tx<'_>, task: &str, limit: usize) -> Result<Vec<DeliveryRecord>> {
    let rows = tx
        .query(
            concat!(
                select!(),
                "d.task_id = $1 AND d.state = 'pending' AND d.command = 0 ORDER BY d.id LIMIT $2"
            ),
            &params![task, page(limit)],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

/// The commands of a task that are pending: one that ends it first, then in the order they came.
pub(crate) async fn commands(tx: Tx<'_>, task: &str, limit: usize) -> Result<Vec<DeliveryRecord>> {
    let rows = tx
        .query(
            concat!(
                select!(),
                "d.task_id = $1 AND d.state = 'pending' AND d.command = 1 \
                 ORDER BY CASE WHEN d.name = 'control.cancel' THEN 0 ELSE 1 END, d.id LIMIT $2"
            ),
            &params![task, page(limit)],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

/// What a task is to be given next: both queues, in one look.
pub(crate) async fn next_of(tx: Tx<'_>, task: &str, limit: usize) -> Result<TaskQueues> {
    Ok(TaskQueues {
        commands: commands(tx, task, limit).await?,
        input: pending(tx, task, 1).await?.into_iter().next(),
    })
}

pub(crate) async fn pending_of(tx: Tx<'_>, owner: &str, limit: usize) -> Result<Vec<String>> {
    let rows = tx
        .query(
            "SELECT t.id FROM tasks t JOIN leases l ON l.kind = 'task' AND l.name = t.id \
             WHERE t.ready_at IS NOT NULL AND t.state <> 'running' AND l.owner = $1 LIMIT $2",
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
                select!(),
                "d.task_id = $1 AND d.id < $2 ORDER BY d.id DESC LIMIT $3"
            ),
            &params![task, before.unwrap_or(i64::MAX), page(limit)],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

/// The same without what inputs say, which may be a lot, from the newest on.
pub(crate) async fn list_of_task(
    tx: Tx<'_>,
    task: &str,
    limit: usize,
) -> Result<Vec<DeliveryRecord>> {
    let rows = tx
        .query(
            concat!(
                select!(
                    "",
                    "CASE WHEN d.command = 1 THEN d.body ELSE 'null' END",
                    ""
                ),
                "d.task_id = $1 ORDER BY d.id DESC LIMIT $2"
            ),
            &params![task, page(limit)],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

/// The newest deliveries of an event, as many as a page has, in their order: all, or those to tasks of agents in these
/// namespaces.
pub(crate) async fn of_event(
    tx: Tx<'_>,
    event: i64,
    namespaces: Option<&[String]>,
) -> Result<Vec<DeliveryRecord>> {
    let rows = tx
        .query(
            concat!(
                select!(),
                "d.event_id = $1 AND (CAST($2 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM tasks t WHERE t.id = d.task_id \
                 AND {among t.agent_namespace 2})) ORDER BY d.id DESC LIMIT $3"
            ),
            &params![event, list_or_null(namespaces).as_deref(), page(MAX_PAGE)],
        )
        .await?;
    rows.into_iter().rev().map(read).collect()
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
    tasks::note_progress(tx, &held.name).await
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
                "WITH ready AS MATERIALIZED (SELECT t.id FROM tasks t WHERE (t.ready_at <= {now} OR t.ready_at > {now} + 60000) \
                 AND (t.state <> 'waiting' OR CAST($4 AS BIGINT) = 1) \
                 AND (t.state <> 'interrupted' OR CAST($5 AS BIGINT) = 1) \
                 AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.kind = 'task' AND l.name = t.id AND l.until > {now}) \
                 ORDER BY t.ready_at, t.number LIMIT $3 {skip_locked t}) \
                 INSERT INTO leases (kind, name, owner, until, fence) \
                 SELECT 'task', id, CAST($1 AS TEXT), {now} + $2, 1 FROM ready WHERE 1 = 1",
                leases::take_over!()
            ),
            &params![name("the owner", owner)?, lease_ms, page(limit), wake.waiting, wake.interrupted],
        )
        .await?;
    let leases = rows.into_iter().map(leases::read);
    let leases = leases.collect::<Result<Vec<_>>>()?;
    let each: Vec<Vec<SqlValue<'_>>> = leases.iter().map(|one| vec![(&one.name).into()]).collect();
    let found = tasks::get_each(tx, &each).await?;
    let next = tx
        .query_each(
            concat!(
                select!("d.command, "),
                "d.task_id = $1 AND d.state = 'pending' ORDER BY d.command DESC, d.id LIMIT 1"
            ),
            &each,
        )
        .await?;
    let allowed = interests::allow_lists(tx, &each).await?;
    let mut claimed = Vec::with_capacity(leases.len());
    let rows = leases.into_iter().zip(found).zip(next).zip(allowed);
    for (((lease, task), next), allow) in rows {
        let (is_command, next) = match first(next) {
            Some(mut row) => (row.flag()?, Some(read(row)?)),
            None => (false, None),
        };
        // Somebody may have done the work between the look and the lease.
        let has_work = match task.state {
            TaskState::Running => true,
            TaskState::Ended => false,
            TaskState::Idle | TaskState::Waiting | TaskState::Interrupted => next.is_some(),
        };
        if !has_work {
            leases::release(tx, &lease.held()).await?;
            continue;
        }
        claimed.push(ClaimedTask {
            task,
            lease,
            next,
            is_command,
            allow,
        });
    }
    claimed.sort_by(|one, other| {
        (one.task.last_activity, &one.task.id).cmp(&(other.task.last_activity, &other.task.id))
    });
    Ok(claimed)
}
