//! Whoever keeps a checkpoint of the audit log elsewhere notices when the log is another one.

use proofhouse_server::audit::{AuditFault, CheckpointError, CheckpointKey, verify};
use proofhouse_store::model::NewAuditEntry;
use proofhouse_store::{SqliteOptions, Store};
use serde_json::json;

/// Appends entries, and signs and prunes up to the last of them.
async fn pruned(
    store: &Store,
    key: &CheckpointKey,
    entries: usize,
) -> proofhouse_store::model::AuditCheckpoint {
    for number in 0..entries {
        let entry = NewAuditEntry {
            namespace: None,
            entry: json!({"number": number}),
        };
        store.append_audit(entry).await.unwrap();
    }
    let head = store.audit_head().await.unwrap();
    let checkpoint = key.sign(head.seq, &head.hash, 0);
    store.prune_audit(checkpoint.clone()).await.unwrap();
    checkpoint
}

/// A log that was written anew, with a checkpoint of whoever did that, is not the one that was known.
#[tokio::test]
async fn a_known_checkpoint_tells_who_may_sign_the_next() {
    let keys = [(); 2].map(|()| CheckpointKey::read(&CheckpointKey::generate().unwrap()).unwrap());
    let [own, other] = keys;
    let stores = [
        Store::open_sqlite(SqliteOptions::memory()).await.unwrap(),
        Store::open_sqlite(SqliteOptions::memory()).await.unwrap(),
    ];
    let known = pruned(&stores[0], &own, 3).await;
    pruned(&stores[0], &own, 2).await;
    let report = verify(&stores[0], None, Some(&known)).await.unwrap();
    assert_eq!(report.last, 5);
    pruned(&stores[1], &other, 5).await;
    let fault = verify(&stores[1], None, Some(&known)).await.unwrap_err();
    let is_other = matches!(
        fault,
        AuditFault::Checkpoint {
            seq: 5,
            error: CheckpointError::OtherKey
        }
    );
    assert!(is_other, "{fault:?}");
}
