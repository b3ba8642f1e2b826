//! Statements about turns: the append that happens exactly once.

use super::interests::AllowTime;
use super::transaction::{SqlValue, Tx, json, name, params};
use super::{interests, leases, page, tasks};
use crate::error::{Result, StoreError};
use crate::model::{AppendTurns, AppendedTurns, LeaseKind, TurnRecord};

pub(crate) async fn append(tx: Tx<'_>, append: &AppendTurns) -> Result<AppendedTurns> {
    let task = tasks::lock(tx, &append.task).await?;
    leases::check(tx, &append.held, LeaseKind::Task, &append.task).await?;
    tasks::expect_state(&task, &append.from)?;
    if task.next_seq != append.expected_seq {
        return Err(StoreError::Conflict(format!(
            "the next turn of task `{}` is {}, not {}",
            task.id, task.next_seq, append.expected_seq
        )));
    }
    let mut rows: Vec<Vec<SqlValue<'_>>> = Vec::with_capacity(append.turns.len());
    for (seq, turn) in (append.expected_seq..).zip(&append.turns) {
        rows.push(vec![
            (&append.task).into(),
            seq.into(),
            name("the kind of the turn", &turn.kind)?.into(),
            json("the turn", &turn.body)?,
        ]);
    }
    tx.query_each(
        "INSERT INTO turns (task_id, seq, kind, body, created_at) VALUES ($1, $2, $3, $4, {now})",
        &rows,
    )
    .await?;
    if let Some(delivery) = append.delivered {
        settle(tx, append, delivery).await?;
    }
    interests::allow(tx, &append.task, &append.allow, AllowTime::Later).await?;
    if let Some((state, detail)) = &append.state {
        tasks::set_state(tx, &task, *state, detail.as_ref()).await?;
    }
    let mut changed = tx
        .query(
            concat!(
                "UPDATE tasks SET next_seq = next_seq + $2, last_activity = {now}, ready_at = CASE WHEN ",
                tasks::has_work!(),
                " THEN {now} END WHERE id = $1 \
                 RETURNING next_seq, last_activity, CASE WHEN ready_at IS NULL THEN 0 ELSE 1 END"
            ),
            &params![&append.task, append.turns.len()],
        )
        .await?;
    let row = changed
        .first_mut()
        .ok_or_else(|| tasks::missing(&append.task))?;
    Ok(AppendedTurns {
        next_seq: row.int()?,
        at: row.int()?,
        has_work: row.flag()?,
    })
}

/// Notes that a delivery is the first of these turns.
async fn settle(tx: Tx<'_>, append: &AppendTurns, delivery: i64) -> Result<()> {
    if append.turns.is_empty() {
        return Err(StoreError::Invalid(
            "a delivery becomes a turn, but there is none".to_owned(),
        ));
    }
    let changed = tx
        .execute(
            "UPDATE deliveries SET state = 'delivered', turn_seq = $3, settled_at = {now} \
             WHERE id = $1 AND task_id = $2 AND state = 'pending'",
            &params![delivery, &append.task, append.expected_seq],
        )
        .await?;
    if changed == 0 {
        return Err(StoreError::Conflict(format!(
            "delivery {delivery} is not pending for task `{}`",
            append.task
        )));
    }
    Ok(())
}

/// How many bytes turns have.
pub(crate) async fn sizes(tx: Tx<'_>, task: &str, from: i64, limit: usize) -> Result<Vec<usize>> {
    let rows = tx
        .query(
            "SELECT CAST(OCTET_LENGTH(body) AS BIGINT) FROM turns WHERE task_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3",
            &params![task, from, page(limit)],
        )
        .await?;
    rows.into_iter()
        .map(|mut row| Ok(usize::try_from(row.int()?).unwrap_or(usize::MAX)))
        .collect()
}

pub(crate) async fn list(
    tx: Tx<'_>,
    task: &str,
    from: i64,
    limit: usize,
) -> Result<Vec<TurnRecord>> {
    let rows = tx
        .query(
            "SELECT seq, kind, body, created_at FROM turns WHERE task_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3",
            &params![task, from, page(limit)],
        )
        .await?;
    rows.into_iter()
        .map(|mut row| {
            Ok(TurnRecord {
                seq: row.int()?,
                kind: row.text()?,
                body: row.json()?,
                created_at: row.int()?,
            })
        })
        .collect()
}
