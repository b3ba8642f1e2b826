//! Statements about traces and the keys of the API.

use serde_json::Value;

use super::row::{SqlRow, first};
use super::transaction::{SqlValue, Tx, json, name, params, short};
use super::{page, tasks};
use crate::error::{Result, StoreError};
use crate::model::{ApiKey, NewApiKey, TraceEntry};

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

fn read_key(mut row: SqlRow) -> Result<ApiKey> {
    Ok(ApiKey {
        id: row.text()?,
        name: row.text()?,
        scopes: serde_json::from_value(row.json()?)
            .map_err(|error| StoreError::Corrupt(format!("the scopes of a key: {error}")))?,
        created_at: row.int()?,
        expires_at: row.int_or_null()?,
        revoked_at: row.int_or_null()?,
    })
}

pub(crate) async fn add_key(tx: Tx<'_>, key: &NewApiKey) -> Result<ApiKey> {
    let rows = tx
        .query(
            "INSERT INTO api_keys (id, name, hash, scopes, created_at, expires_at) VALUES ($1, $2, $3, $4, {now}, $5) \
             ON CONFLICT DO NOTHING RETURNING id, name, scopes, created_at, expires_at, revoked_at",
            &[
                name("the id of the key", &key.id)?.into(),
                short("the name of the key", &key.name)?.into(),
                name("the hash of the key", &key.hash)?.into(),
                json("the scopes of the key", &Value::from(key.scopes.as_slice()))?,
                key.expires_at.into(),
            ],
        )
        .await?;
    first(rows).map_or_else(
        || {
            Err(StoreError::Conflict(format!(
                "there is a key `{}`, or one with its hash",
                key.id
            )))
        },
        read_key,
    )
}

pub(crate) async fn key(tx: Tx<'_>, hash: &str) -> Result<Option<ApiKey>> {
    let rows = tx
        .query(
            "SELECT id, name, scopes, created_at, expires_at, revoked_at FROM api_keys WHERE hash = $1",
            &params![hash],
        )
        .await?;
    first(rows).map(read_key).transpose()
}

pub(crate) async fn keys(tx: Tx<'_>) -> Result<Vec<ApiKey>> {
    let rows = tx
        .query(
            "SELECT id, name, scopes, created_at, expires_at, revoked_at FROM api_keys ORDER BY number",
            &[],
        )
        .await?;
    rows.into_iter().map(read_key).collect()
}

pub(crate) async fn revoke_key(tx: Tx<'_>, id: &str) -> Result<()> {
    let changed = tx
        .execute(
            "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, {now}) WHERE id = $1",
            &params![id],
        )
        .await?;
    if changed == 0 {
        return Err(StoreError::NotFound(format!("key `{id}`")));
    }
    Ok(())
}
