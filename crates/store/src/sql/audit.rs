//! Statements about the audit log.

use super::page;
use super::row::{SqlRow, first};
use super::transaction::{SqlValue, Tx, json_text, list_or_null, params, short};
use super::upkeep::now;
use crate::error::{Result, StoreError};
use crate::model::{AuditCheckpoint, AuditFilter, AuditHead, AuditRecord, NewAuditEntry};

fn read(mut row: SqlRow) -> Result<AuditRecord> {
    Ok(AuditRecord {
        seq: row.int()?,
        at: row.int()?,
        namespace: row.text_or_null()?,
        entry: row.text()?,
        hash: row.text()?,
    })
}

/// The end of the chain, which nobody else moves until the transaction ends.
async fn locked_head(tx: Tx<'_>) -> Result<AuditHead> {
    let rows = tx
        .query("SELECT seq, hash FROM audit_head WHERE id = 1 {lock}", &[])
        .await?;
    let mut row =
        first(rows).ok_or_else(|| StoreError::Corrupt("the audit log has no head".to_owned()))?;
    Ok(AuditHead {
        seq: row.int()?,
        hash: row.text()?,
    })
}

pub(crate) async fn head(tx: Tx<'_>) -> Result<AuditHead> {
    let rows = tx
        .query("SELECT seq, hash FROM audit_head WHERE id = 1", &[])
        .await?;
    let mut row =
        first(rows).ok_or_else(|| StoreError::Corrupt("the audit log has no head".to_owned()))?;
    Ok(AuditHead {
        seq: row.int()?,
        hash: row.text()?,
    })
}

pub(crate) async fn append(tx: Tx<'_>, new: &NewAuditEntry) -> Result<AuditRecord> {
    let head = locked_head(tx).await?;
    let (seq, at) = (head.seq.saturating_add(1), now(tx).await?);
    let namespace = new.namespace.as_deref();
    let namespace = namespace.map(|name| short("the namespace", name));
    let namespace = namespace.transpose()?;
    let entry = json_text("the entry of the audit log", &new.entry)?;
    let hash = AuditRecord::link(&head.hash, seq, at, namespace, &entry);
    tx.execute(
        "INSERT INTO audit (seq, at, namespace, entry, hash) VALUES ($1, $2, $3, $4, $5)",
        &[
            seq.into(),
            at.into(),
            SqlValue::from(namespace),
            (&entry).into(),
            (&hash).into(),
        ],
    )
    .await?;
    tx.execute(
        "UPDATE audit_head SET seq = $1, hash = $2 WHERE id = 1",
        &params![seq, &hash],
    )
    .await?;
    Ok(AuditRecord {
        seq,
        at,
        namespace: namespace.map(str::to_owned),
        entry,
        hash,
    })
}

pub(crate) async fn list(tx: Tx<'_>, filter: &AuditFilter) -> Result<Vec<AuditRecord>> {
    macro_rules! statement {
        ($order:literal) => {
            concat!(
                "SELECT seq, at, namespace, entry, hash FROM audit WHERE seq > $1 AND seq < $2 \
                 AND (CAST($3 AS TEXT) IS NULL OR (namespace IS NOT NULL AND {among namespace 3})) AND at < $4 \
                 ORDER BY seq ",
                $order,
                " LIMIT $5"
            )
        };
    }
    let sql = if filter.before.is_some() {
        statement!("DESC")
    } else {
        statement!("ASC")
    };
    let rows = tx
        .query(
            sql,
            &params![
                filter.after,
                filter.before.unwrap_or(i64::MAX),
                list_or_null(filter.namespaces.as_deref()).as_deref(),
                filter.until.unwrap_or(i64::MAX),
                page(filter.limit),
            ],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

pub(crate) async fn checkpoint(tx: Tx<'_>) -> Result<Option<AuditCheckpoint>> {
    let rows = tx
        .query(
            "SELECT seq, hash, statement, signature FROM audit_checkpoints ORDER BY seq DESC LIMIT 1",
            &[],
        )
        .await?;
    let Some(mut row) = first(rows) else {
        return Ok(None);
    };
    Ok(Some(AuditCheckpoint {
        seq: row.int()?,
        hash: row.text()?,
        statement: row.text()?,
        signature: row.text()?,
    }))
}

/// Removes entries up to a checkpoint, which takes their place.
pub(crate) async fn prune(tx: Tx<'_>, checkpoint: &AuditCheckpoint) -> Result<u64> {
    locked_head(tx).await?;
    let rows = tx
        .query(
            "SELECT hash FROM audit WHERE seq = $1",
            &params![checkpoint.seq],
        )
        .await?;
    let known = first(rows).map(|mut row| row.text()).transpose()?;
    if known.as_deref() != Some(&checkpoint.hash) {
        return Err(StoreError::Conflict(format!(
            "the audit log has no entry {} with this hash",
            checkpoint.seq
        )));
    }
    tx.execute(
        "INSERT INTO audit_checkpoints (seq, hash, statement, signature) VALUES ($1, $2, $3, $4)",
        &params![
            checkpoint.seq,
            &checkpoint.hash,
            &checkpoint.statement,
            &checkpoint.signature
        ],
    )
    .await?;
    tx.execute(
        "DELETE FROM audit WHERE seq <= $1",
        &params![checkpoint.seq],
    )
    .await
}
