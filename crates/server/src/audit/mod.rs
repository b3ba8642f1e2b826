//! The audit log outside of requests: whether its chain holds, checkpoints that are signed, and forms to export it in.

mod ocsf;

pub use ocsf::ocsf_event;
pub use proofhouse_store::audit::{
    AuditFault, AuditReport, CheckpointError, CheckpointKey, verify, verify_checkpoint,
};

use std::time::Duration;

use proofhouse_store::model::{AuditFilter, AuditRecord, Millis, NewAuditEntry};
use proofhouse_store::{Result, Store};
use serde_json::{Value, json};

use crate::engine::Engine;

/// How often old entries are looked for.
const SWEEP: Duration = Duration::from_secs(60 * 60);
/// Entries that are read or removed at once.
const BATCH: usize = 1_000;

/// An entry about something that was done at a command line, by whoever may use the store.
#[must_use]
pub fn by_command_line(action: &str, object: &Value) -> NewAuditEntry {
    NewAuditEntry {
        namespace: None,
        entry: json!({
            "action": action, "actor": {"kind": "command_line"}, "object": object, "from": null,
            "outcome": "done", "status": null,
        }),
    }
}

/// An entry about something that the server itself did.
#[must_use]
pub fn by_server(action: &str, object: &Value, outcome: &str) -> NewAuditEntry {
    NewAuditEntry {
        namespace: None,
        entry: json!({
            "action": action, "actor": {"kind": "server"}, "object": object, "from": null,
            "outcome": outcome, "status": null,
        }),
    }
}

/// An entry as a line of JSON Lines: as it is kept, so that whoever has it can check the chain.
#[must_use]
pub fn json_line(record: &AuditRecord) -> Value {
    json!({
        "seq": record.seq, "at": record.at, "namespace": record.namespace, "hash": record.hash,
        "entry": serde_json::from_str::<Value>(&record.entry).unwrap_or_default(),
        "text": record.entry,
    })
}

/// Removes the entries that are older than the engine keeps them, now and every hour, without an end; none without a key to sign
/// what takes their place.
pub async fn keep(engine: &Engine, key: Option<&CheckpointKey>) {
    let Some(key) = key else {
        return std::future::pending().await;
    };
    loop {
        if let Some(age) = engine.retention().audit_ms {
            let pruning = async {
                let before = engine.store().now().await?.saturating_sub(age);
                prune(engine.store(), key, before).await
            };
            match pruning.await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(removed, "removed old entries of the audit log"),
                // Another process may have removed them first.
                Err(error) => {
                    tracing::warn!(%error, "old entries of the audit log could not be removed");
                }
            }
        }
        tokio::time::sleep(SWEEP).await;
    }
}

/// Removes the entries that are older than this, behind checkpoints, and says how many there were.
///
/// # Errors
///
/// Returns an error when the store cannot be used.
pub async fn prune(store: &Store, key: &CheckpointKey, before: Millis) -> Result<u64> {
    let mut removed = 0;
    loop {
        let filter = AuditFilter {
            until: Some(before),
            limit: BATCH,
            ..AuditFilter::default()
        };
        let old = store.audit(filter).await?;
        let Some(last) = old.last() else {
            return Ok(removed);
        };
        let is_full = old.len() == BATCH;
        let checkpoint = key.sign(last.seq, &last.hash, store.now().await?);
        removed += store.prune_audit(checkpoint).await?;
        if !is_full {
            return Ok(removed);
        }
    }
}
