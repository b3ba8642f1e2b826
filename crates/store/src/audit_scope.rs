//! An entry of the audit log that becomes true together with what it is about: both are one transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::model::NewAuditEntry;
use crate::sql::audit;
use crate::sql::transaction::TransactionWork;

tokio::task_local! {
    static DUE: Arc<DueEntry>;
}

/// An entry that waits for the write it is about.
pub(crate) struct DueEntry {
    entry: NewAuditEntry,
    is_written: AtomicBool,
}

/// Does some work on a store, whose first write that goes well also writes this entry. Returns whether one did: where nothing
/// was written, there is no entry either.
pub async fn with_audit_entry<T>(entry: NewAuditEntry, work: impl Future<Output = T>) -> (T, bool) {
    let due = Arc::new(DueEntry {
        entry,
        is_written: AtomicBool::new(false),
    });
    let output = DUE.scope(Arc::clone(&due), work).await;
    (output, due.is_written.load(Ordering::SeqCst))
}

impl DueEntry {
    /// The entry that a write is to have with it, if there is one.
    pub(crate) fn current() -> Option<Arc<Self>> {
        let due = DUE.try_with(Arc::clone).ok();
        due.filter(|due| !due.is_written.load(Ordering::SeqCst))
    }

    /// The work, and the entry after it.
    pub(crate) fn after<T: Send + 'static>(
        self: &Arc<Self>,
        work: TransactionWork<T>,
    ) -> TransactionWork<T> {
        let (work, due) = (Arc::new(work), Arc::clone(self));
        Box::new(move |tx| {
            let (work, due) = (Arc::clone(&work), Arc::clone(&due));
            Box::pin(async move {
                let output = work(&mut *tx).await?;
                audit::append(tx, &due.entry).await?;
                Ok(output)
            })
        })
    }

    /// The transaction is durable.
    pub(crate) fn written(&self) {
        self.is_written.store(true, Ordering::SeqCst);
    }
}
