//! Statements about the keys of the API.

use serde_json::Value;

use super::row::{SqlRow, first};
use super::transaction::{SqlValue, Tx, json, json_or_null, name, params, short};
use crate::error::{Result, StoreError};
use crate::model::{ApiKey, Millis, NewApiKey};

macro_rules! columns {
    () => {
        "id, name, scopes, namespaces, holder, family, created_at, expires_at, revoked_at"
    };
}

fn read(mut row: SqlRow) -> Result<ApiKey> {
    let list = |value: Value, what: &str| {
        serde_json::from_value(value)
            .map_err(|error| StoreError::Corrupt(format!("the {what} of a key: {error}")))
    };
    Ok(ApiKey {
        id: row.text()?,
        name: row.text()?,
        scopes: list(row.json()?, "scopes")?,
        namespaces: row
            .json_or_null()?
            .map(|value| list(value, "namespaces"))
            .transpose()?,
        holder: row.text_or_null()?,
        family: row.text_or_null()?,
        created_at: row.int()?,
        expires_at: row.int_or_null()?,
        revoked_at: row.int_or_null()?,
    })
}

pub(crate) async fn add(tx: Tx<'_>, key: &NewApiKey) -> Result<ApiKey> {
    insert(tx, key, None).await
}

async fn insert(tx: Tx<'_>, key: &NewApiKey, family: Option<&str>) -> Result<ApiKey> {
    let namespaces = key.namespaces.as_deref().map(Value::from);
    let rows = tx
        .query(
            concat!(
                "INSERT INTO api_keys (id, name, hash, scopes, namespaces, holder, family, created_at, expires_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, {now}, $8) ON CONFLICT DO NOTHING RETURNING ",
                columns!()
            ),
            &[
                name("the id of the key", &key.id)?.into(),
                short("the name of the key", &key.name)?.into(),
                name("the hash of the key", &key.hash)?.into(),
                json("the scopes of the key", &Value::from(key.scopes.as_slice()))?,
                json_or_null("the namespaces of the key", namespaces.as_ref())?,
                key.holder.as_deref().map(|holder| short("the holder of the key", holder)).transpose()?.into(),
                SqlValue::from(family),
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
        read,
    )
}

pub(crate) async fn get(tx: Tx<'_>, hash: &str) -> Result<Option<ApiKey>> {
    let rows = tx
        .query(
            concat!("SELECT ", columns!(), " FROM api_keys WHERE hash = $1"),
            &params![hash],
        )
        .await?;
    first(rows).map(read).transpose()
}

pub(crate) async fn list(tx: Tx<'_>) -> Result<Vec<ApiKey>> {
    let rows = tx
        .query(
            concat!("SELECT ", columns!(), " FROM api_keys ORDER BY number"),
            &[],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

pub(crate) async fn revoke(tx: Tx<'_>, id: &str) -> Result<()> {
    let changed = tx
        .execute(
            "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, {now}) WHERE id = $1",
            &params![id],
        )
        .await?;
    if changed == 0 {
        return Err(missing(id));
    }
    Ok(())
}

fn missing(id: &str) -> StoreError {
    StoreError::NotFound(format!("key `{id}`"))
}

/// A successor of a key, with everything that the key has but its secret. The key itself ends after `overlap_ms`, unless it
/// ends sooner.
pub(crate) async fn rotate(
    tx: Tx<'_>,
    id: &str,
    secret: (&str, &str),
    expires_at: Option<Millis>,
    overlap_ms: Millis,
) -> Result<ApiKey> {
    let rows = tx
        .query(
            concat!(
                "SELECT hash, {now}, ",
                columns!(),
                " FROM api_keys WHERE id = $1 {lock}"
            ),
            &params![id],
        )
        .await?;
    let mut row = first(rows).ok_or_else(|| missing(id))?;
    let (hash, now) = (row.text()?, row.int()?);
    let old = read(row)?;
    let has_ended = old.expires_at.is_some_and(|end| end <= now);
    if old.revoked_at.is_some() || has_ended {
        return Err(StoreError::Conflict(format!(
            "key `{id}` is not valid any more; make a new one"
        )));
    }
    let (new_id, new_hash) = secret;
    let new = NewApiKey {
        id: new_id.to_owned(),
        name: old.name,
        hash: new_hash.to_owned(),
        scopes: old.scopes,
        namespaces: old.namespaces,
        holder: old.holder,
        expires_at,
    };
    let family = old.family.unwrap_or(hash);
    let made = insert(tx, &new, Some(&family)).await?;
    let end = now.saturating_add(overlap_ms.max(0));
    let end = old.expires_at.map_or(end, |known| known.min(end));
    tx.execute(
        "UPDATE api_keys SET expires_at = $2 WHERE id = $1",
        &params![id, end],
    )
    .await?;
    Ok(made)
}
