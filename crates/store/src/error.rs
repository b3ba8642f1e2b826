//! What can go wrong in a store, as types that callers act on.

/// Why an operation did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be used now: locked, vanished, full, or not reached. A write may or may not have
    /// happened; every write is made to be repeated safely. A server answers 503.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The state is not the one the caller expected; read it again.
    #[error("conflict: {0}")]
    Conflict(String),
    /// Somebody else holds the lease by now, so this write was refused. Stop working on it.
    #[error("the lease on {0} has moved to another owner")]
    Fenced(String),
    /// The key was used for something else before.
    #[error("the key was used for something else: delivery {0}")]
    KeyTaken(i64),
    /// There is no such row.
    #[error("there is no {0}")]
    NotFound(String),
    /// The value cannot be stored, whatever the state is.
    #[error("cannot be stored: {0}")]
    Invalid(String),
    /// The value is larger than the store takes.
    #[error("too large: {what} has {size}, at most {limit} are stored")]
    TooLarge {
        /// What was too large.
        what: String,
        /// How large it was.
        size: usize,
        /// How large it may be.
        limit: usize,
    },
    /// What the database holds cannot be understood.
    #[error("the database is damaged or was changed by something else: {0}")]
    Corrupt(String),
    /// A newer version of the program has written this database.
    #[error(
        "the database has schema version {found}, this program knows versions up to {known}; use a newer program or restore a backup"
    )]
    NewerSchema {
        /// The version found.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
}

impl StoreError {
    /// Whether the same write is refused however often it is tried: what it says is too much, or cannot be stored at all.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::Invalid(_) | Self::TooLarge { .. })
    }
}

/// What operations of a store return.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
