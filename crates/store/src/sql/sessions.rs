//! Statements about sessions. Only hashes of what browsers hold are kept.

use serde_json::Value;

use super::row::first;
use super::transaction::{Tx, json, name, params};
use crate::error::{Result, StoreError};
use crate::model::{Millis, SessionKind};

/// Sessions of a kind at a time. Beyond that the oldest ends.
const MAX_SESSIONS: i64 = 10_000;

pub(crate) async fn begin(
    tx: Tx<'_>,
    kind: SessionKind,
    hash: &str,
    body: &Value,
    lifetime_ms: Millis,
) -> Result<()> {
    tx.execute("DELETE FROM sessions WHERE expires_at <= {now}", &[])
        .await?;
    let inserted = tx
        .execute(
            "INSERT INTO sessions (kind, hash, body, expires_at) VALUES ($1, $2, $3, {now} + $4) ON CONFLICT DO NOTHING",
            &[
                kind.as_str().into(),
                name("the hash of the session", hash)?.into(),
                json("the session", body)?,
                lifetime_ms.max(0).into(),
            ],
        )
        .await?;
    if inserted == 0 {
        return Err(StoreError::Conflict("there is such a session".to_owned()));
    }
    tx.execute(
        "DELETE FROM sessions WHERE kind = $1 AND number <= (SELECT number FROM sessions WHERE kind = $1 \
         ORDER BY number DESC LIMIT 1 OFFSET $2)",
        &params![kind.as_str(), MAX_SESSIONS],
    )
    .await?;
    Ok(())
}

pub(crate) async fn get(tx: Tx<'_>, kind: SessionKind, hash: &str) -> Result<Option<Value>> {
    let rows = tx
        .query(
            "SELECT body FROM sessions WHERE kind = $1 AND hash = $2 AND expires_at > {now}",
            &params![kind.as_str(), hash],
        )
        .await?;
    first(rows).map(|mut row| row.json()).transpose()
}

pub(crate) async fn take(tx: Tx<'_>, kind: SessionKind, hash: &str) -> Result<Option<Value>> {
    let rows = tx
        .query(
            "DELETE FROM sessions WHERE kind = $1 AND hash = $2 AND expires_at > {now} RETURNING body",
            &params![kind.as_str(), hash],
        )
        .await?;
    first(rows).map(|mut row| row.json()).transpose()
}
