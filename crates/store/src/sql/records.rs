//! Statements about the traces of tasks.

use serde_json::Value;

use super::transaction::{SqlValue, Tx, json, params};
use super::{page, tasks};
use crate::error::Result;
use crate::model::TraceEntry;

pub(crate) async fn append_trace(tx: Tx<'_>, task: &str, entries: &[Value]) -> Result<()> {
    tasks::lock(tx, task).await?;
    let mut rows: Vec<Vec<SqlValue<'_>>> = Vec::with_capacity(entries.len());
    for entry in entries {
        rows.push(vec![task.into(), json("the entry of the trace", entry)?]);
    }
    tx.query_each(
        "INSERT INTO traces (task_id, seq, entry, created_at) \
         SELECT CAST($1 AS TEXT), COALESCE(MAX(seq), -1) + 1, CAST($2 AS TEXT), {now} FROM traces WHERE task_id = $1",
        &rows,
    )
    .await?;
    Ok(())
}

pub(crate) async fn newest_trace(tx: Tx<'_>, task: &str, limit: usize) -> Result<Vec<TraceEntry>> {
    let rows = tx
        .query(
            "SELECT seq, entry, created_at FROM traces WHERE task_id = $1 ORDER BY seq DESC LIMIT $2",
            &params![task, page(limit)],
        )
        .await?;
    rows.into_iter()
        .rev()
        .map(|mut row| {
            Ok(TraceEntry {
                seq: row.int()?,
                entry: row.json()?,
                created_at: row.int()?,
            })
        })
        .collect()
}
