//! Statements about tasks.

use serde_json::Value;

use super::deliveries::DeliveryQueue;
use super::interests::AllowTime;
use super::row::{SqlRow, first};
use super::transaction::{SqlValue, Tx, json, json_or_null, name, params, short};
use super::{deliveries, interests, leases, page, polls};
use crate::error::{Result, StoreError};
use crate::model::{HeldLease, LeaseKind, Millis, NewTask, StateChange, TaskRecord, TaskState};

macro_rules! columns {
    () => {
        "t.id, t.agent_namespace, t.agent_name, t.model, t.user_id, t.user_email, t.params, t.origin, t.state, \
         t.detail, t.next_seq, t.created_at, t.last_activity"
    };
}
pub(super) use columns;

pub(super) fn read(mut row: SqlRow) -> Result<TaskRecord> {
    Ok(TaskRecord {
        id: row.text()?,
        agent_namespace: row.text()?,
        agent_name: row.text()?,
        model: row.text_or_null()?,
        user_id: row.text()?,
        user_email: row.text_or_null()?,
        params: row.json()?,
        origin: row.json()?,
        state: row.word(TaskState::from_word)?,
        detail: row.json_or_null()?,
        next_seq: row.int()?,
        created_at: row.int()?,
        last_activity: row.int()?,
    })
}

pub(super) fn missing(id: &str) -> StoreError {
    StoreError::NotFound(format!("task `{id}`"))
}

pub(crate) async fn create(tx: Tx<'_>, new: &NewTask) -> Result<TaskRecord> {
    let inserted = tx
        .query(
            "INSERT INTO tasks (id, agent_namespace, agent_name, model, user_id, user_email, params, origin, state, \
             next_seq, created_at, last_activity) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'idle', 0, {now}, {now}) ON CONFLICT (id) DO NOTHING RETURNING id",
            &[
                name("the id of the task", &new.id)?.into(),
                short("the namespace of the agent", &new.agent_namespace)?.into(),
                name("the name of the agent", &new.agent_name)?.into(),
                new.model.as_deref().map(|model| short("the model", model)).transpose()?.into(),
                short("the id of the user", &new.user_id)?.into(),
                new.user_email.as_deref().map(|email| short("the address of the user", email)).transpose()?.into(),
                json("the parameters of the task", &new.params)?,
                json("the origin of the task", &new.origin)?,
            ],
        )
        .await?;
    if inserted.is_empty() {
        return Err(StoreError::Conflict(format!(
            "there is a task `{}`",
            new.id
        )));
    }
    interests::add(tx, &new.id, &new.interests).await?;
    interests::allow(tx, &new.id, &new.sealed, AllowTime::AtStart).await?;
    polls::add(tx, &new.id, &new.polls).await?;
    if let Some(delivery) = &new.first {
        deliveries::deliver(tx, &new.id, delivery, DeliveryQueue::Inputs).await?;
    }
    get(tx, &new.id).await
}

pub(crate) async fn get(tx: Tx<'_>, id: &str) -> Result<TaskRecord> {
    let rows = tx
        .query(
            concat!("SELECT ", columns!(), " FROM tasks t WHERE t.id = $1"),
            &params![id],
        )
        .await?;
    first(rows).map_or_else(|| Err(missing(id)), read)
}

/// The tasks with these ids, in this order.
pub(crate) async fn get_each(tx: Tx<'_>, ids: &[Vec<SqlValue<'_>>]) -> Result<Vec<TaskRecord>> {
    let found = tx
        .query_each(
            concat!("SELECT ", columns!(), " FROM tasks t WHERE t.id = $1"),
            ids,
        )
        .await?;
    let gone = || missing("that was there just now");
    found
        .into_iter()
        .map(|rows| first(rows).map_or_else(|| Err(gone()), read))
        .collect()
}

/// Whether a task has something to do, as a condition on its row. One that waits for a person only has something to do when
/// a person wants something.
macro_rules! has_work {
    () => {
        "(state = 'running' OR (state IN ('idle', 'interrupted') AND EXISTS (SELECT 1 FROM deliveries d \
         WHERE d.task_id = tasks.id AND d.state = 'pending' AND d.command = 0)) OR (state <> 'ended' \
         AND EXISTS (SELECT 1 FROM deliveries d WHERE d.task_id = tasks.id AND d.state = 'pending' AND d.command = 1)))"
    };
}
pub(super) use has_work;

/// Notes that tasks have something to do, if they have, and since when. Each was given something just now.
pub(crate) async fn note_ready(tx: Tx<'_>, ids: &[Vec<SqlValue<'_>>]) -> Result<()> {
    tx.query_each(
        concat!(
            "UPDATE tasks SET ready_at = {now} WHERE id = $1 AND (ready_at IS NULL OR ready_at > {now}) AND ",
            has_work!()
        ),
        ids,
    )
    .await?;
    Ok(())
}

/// Notes that something was done for a task: it waits for the next only from now on, if there is more to do.
pub(crate) async fn note_progress(tx: Tx<'_>, id: &str) -> Result<()> {
    tx.execute(
        concat!(
            "UPDATE tasks SET ready_at = CASE WHEN ",
            has_work!(),
            " THEN {now} END WHERE id = $1"
        ),
        &params![id],
    )
    .await?;
    Ok(())
}

/// Leaves a task alone for so long, unless something comes for it, and ends the lease on it.
pub(crate) async fn postpone(tx: Tx<'_>, held: &HeldLease, pause_ms: Millis) -> Result<()> {
    lock(tx, &held.name).await?;
    leases::check(tx, held, LeaseKind::Task, &held.name).await?;
    tx.execute(
        "UPDATE tasks SET ready_at = {now} + $2 WHERE id = $1 AND ready_at IS NOT NULL",
        &params![&held.name, pause_ms],
    )
    .await?;
    leases::release(tx, held).await
}

/// The task, which nobody else changes until the transaction ends.
pub(crate) async fn lock(tx: Tx<'_>, id: &str) -> Result<TaskRecord> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM tasks t WHERE t.id = $1 {lock}"
            ),
            &params![id],
        )
        .await?;
    first(rows).map_or_else(|| Err(missing(id)), read)
}

/// The tasks that changed at this time or later, and the time now.
pub(crate) async fn changed(
    tx: Tx<'_>,
    since: Option<Millis>,
    limit: usize,
) -> Result<(Millis, Vec<(String, i64, TaskState)>)> {
    let now = super::upkeep::now(tx).await?;
    let Some(since) = since else {
        return Ok((now, Vec::new()));
    };
    let rows = tx
        .query(
            "SELECT id, next_seq, state FROM tasks WHERE last_activity >= $1 ORDER BY last_activity LIMIT $2",
            &params![since, page(limit)],
        )
        .await?;
    let changed = rows
        .into_iter()
        .map(|mut row| Ok((row.text()?, row.int()?, row.word(TaskState::from_word)?)));
    Ok((now, changed.collect::<Result<_>>()?))
}

/// Refuses when the task is in none of these states; an empty list stands for all but `ended`.
pub(super) fn expect_state(task: &TaskRecord, from: &[TaskState]) -> Result<()> {
    let fine = if from.is_empty() {
        task.state != TaskState::Ended
    } else {
        from.contains(&task.state)
    };
    if fine {
        Ok(())
    } else {
        Err(StoreError::Conflict(format!(
            "task `{}` is {}",
            task.id, task.state
        )))
    }
}

pub(crate) async fn change_state(tx: Tx<'_>, change: &StateChange) -> Result<TaskRecord> {
    let task = lock(tx, &change.task).await?;
    if let Some(held) = &change.held {
        leases::check(tx, held, LeaseKind::Task, &change.task).await?;
    }
    expect_state(&task, &change.from)?;
    set_state(tx, &task, change.to, change.detail.as_ref()).await?;
    note_progress(tx, &change.task).await?;
    get(tx, &change.task).await
}

/// Sets the state of a locked task, with all that follows from it but whether it has something to do, which the caller notes.
pub(crate) async fn set_state(
    tx: Tx<'_>,
    task: &TaskRecord,
    to: TaskState,
    detail: Option<&Value>,
) -> Result<()> {
    tx.execute(
        "UPDATE tasks SET state = $2, detail = $3, last_activity = {now} WHERE id = $1",
        &[
            (&task.id).into(),
            to.as_str().into(),
            json_or_null("the detail of the state", detail)?,
        ],
    )
    .await?;
    let listens = |state| !matches!(state, TaskState::Interrupted | TaskState::Ended);
    if listens(to) != listens(task.state) {
        tx.execute(
            "UPDATE interests SET active = $2 WHERE task_id = $1",
            &[(&task.id).into(), listens(to).into()],
        )
        .await?;
    }
    if to == TaskState::Ended {
        deliveries::discard_pending(tx, &task.id, "the task ended").await?;
    }
    Ok(())
}

pub(crate) async fn delete(tx: Tx<'_>, id: &str) -> Result<()> {
    lock(tx, id).await?;
    if leases::is_live(tx, LeaseKind::Task, id).await? {
        return Err(StoreError::Conflict(format!(
            "task `{id}` is being worked on"
        )));
    }
    remove(tx, &[id.to_owned()]).await
}

/// Removes tasks. What refers to them goes with them; only channels stay, to be closed at the platforms.
pub(crate) async fn remove(tx: Tx<'_>, ids: &[String]) -> Result<()> {
    let each: Vec<Vec<SqlValue<'_>>> = ids.iter().map(|id| vec![id.into()]).collect();
    tx.query_each(
        "DELETE FROM leases WHERE kind = 'poll' \
         AND name IN (SELECT CAST(p.id AS TEXT) FROM polls p WHERE p.task_id = $1)",
        &each,
    )
    .await?;
    tx.query_each(
        "DELETE FROM leases WHERE kind = 'task' AND name = $1",
        &each,
    )
    .await?;
    tx.query_each("DELETE FROM tasks WHERE id = $1", &each)
        .await?;
    Ok(())
}
