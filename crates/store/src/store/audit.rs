//! The audit log: appended to, listed, and shortened behind a signed checkpoint.

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{AuditCheckpoint, AuditFilter, AuditHead, AuditRecord, NewAuditEntry};
use crate::sql::audit;

impl Store {
    /// Appends to the audit log. Entries of several processes get numbers without gaps.
    pub async fn append_audit(&self, entry: NewAuditEntry) -> Result<AuditRecord> {
        transaction!(self, Write, [entry = entry], |tx| audit::append(tx, entry))
    }

    /// Entries of the audit log.
    pub async fn audit(&self, filter: AuditFilter) -> Result<Vec<AuditRecord>> {
        transaction!(self, Read, [filter = filter], |tx| audit::list(tx, filter))
    }

    /// The end of the audit log.
    pub async fn audit_head(&self) -> Result<AuditHead> {
        transaction!(self, Read, [], |tx| audit::head(tx))
    }

    /// What stands for the entries that were removed, if any were.
    pub async fn audit_checkpoint(&self) -> Result<Option<AuditCheckpoint>> {
        transaction!(self, Read, [], |tx| audit::checkpoint(tx))
    }

    /// Removes the entries up to a checkpoint, which takes their place, and says how many. `Conflict` if the entry it is about is
    /// not there with its hash.
    pub async fn prune_audit(&self, checkpoint: AuditCheckpoint) -> Result<u64> {
        transaction!(self, Write, [checkpoint = checkpoint], |tx| audit::prune(
            tx, checkpoint
        ))
    }
}
