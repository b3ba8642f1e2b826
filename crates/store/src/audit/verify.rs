//! Whether the audit log is what was written: every entry follows the one before it, and what was removed is stood for by a
//! signed checkpoint.

use serde::Serialize;

use super::checkpoint::{CheckpointError, verify_checkpoint};
use crate::error::StoreError;
use crate::model::{AuditCheckpoint, AuditFilter};
use crate::store::Store;

/// Entries that are read at once.
const BATCH: usize = 1_000;

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Entries that were checked.
    pub entries: u64,
    /// The number of the last one; 0 if there never was one.
    pub last: i64,
    /// Its hash.
    pub hash: String,
    /// The last of the entries that were removed, and the public key that stands for them.
    pub checkpoint: Option<(i64, String)>,
}

/// What is wrong with the log.
#[derive(Debug, thiserror::Error)]
pub enum AuditFault {
    /// It cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An entry is missing.
    #[error("entry {0} is missing")]
    Missing(i64),
    /// An entry was changed, or put in.
    #[error("entry {0} was changed: its hash does not follow from it and the one before")]
    Changed(i64),
    /// Entries at the end are missing, or were added without the head.
    #[error("the log ends with entry {found}, and must end with entry {wanted}")]
    End {
        /// The last entry.
        found: i64,
        /// What the head says.
        wanted: i64,
    },
    /// What stands for removed entries does not count.
    #[error("the checkpoint at entry {seq}: {error}")]
    Checkpoint {
        /// Its entry.
        seq: i64,
        /// Why.
        error: CheckpointError,
    },
    /// A checkpoint that was kept elsewhere is about another log.
    #[error("entry {0} is not the one of the checkpoint that was given")]
    Elsewhere(i64),
}

/// Checks the whole log. `trusted` is the public key that checkpoints must be signed with; `known` is a checkpoint that was kept
/// elsewhere, of which the log must be a continuation; without `trusted`, checkpoints must be signed with its key.
///
/// # Errors
///
/// Returns the first fault.
pub async fn verify(
    store: &Store,
    trusted: Option<&str>,
    known: Option<&AuditCheckpoint>,
) -> Result<AuditReport, AuditFault> {
    // First: entries that are appended while it is read come after it.
    let head = store.audit_head().await?;
    let checkpoint = store.audit_checkpoint().await?;
    let (mut last, mut hash) = (0, String::new());
    let mut stands_for = None;
    let signed_by = |checkpoint: &AuditCheckpoint, trusted: Option<&str>| {
        let key = verify_checkpoint(checkpoint, trusted);
        key.map_err(|error| AuditFault::Checkpoint {
            seq: checkpoint.seq,
            error,
        })
    };
    // Whoever writes the log anew could sign the result: what stands for entries must be signed as the known one is.
    let known_key = known.map(|known| signed_by(known, trusted)).transpose()?;
    if let Some(checkpoint) = &checkpoint {
        let key = signed_by(checkpoint, known_key.as_deref().or(trusted))?;
        (last, hash) = (checkpoint.seq, checkpoint.hash.clone());
        stands_for = Some((checkpoint.seq, key));
    }
    if let Some(known) = known {
        let is_other = known.seq == last && known.hash != hash;
        if is_other || known.seq > head.seq {
            return Err(AuditFault::Elsewhere(known.seq));
        }
    }
    let mut entries = 0;
    loop {
        let filter = AuditFilter {
            after: last,
            limit: BATCH,
            ..AuditFilter::default()
        };
        let page = store.audit(filter).await?;
        let is_full = page.len() == BATCH;
        for record in page {
            if record.seq != last + 1 {
                return Err(AuditFault::Missing(last + 1));
            }
            if !record.follows(&hash) {
                return Err(AuditFault::Changed(record.seq));
            }
            (last, hash) = (record.seq, record.hash);
            entries += 1;
            if last == head.seq && hash != head.hash {
                return Err(AuditFault::Changed(last));
            }
            if known.is_some_and(|known| known.seq == last && known.hash != hash) {
                return Err(AuditFault::Elsewhere(last));
            }
        }
        if !is_full {
            break;
        }
    }
    if last < head.seq {
        return Err(AuditFault::End {
            found: last,
            wanted: head.seq,
        });
    }
    Ok(AuditReport {
        entries,
        last,
        hash,
        checkpoint: stands_for,
    })
}
