//! What errors of PostgreSQL mean to callers.

use std::error::Error as _;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::error::StoreError;

/// Whether the same transaction may work when it is tried again.
pub(super) fn is_transient(error: &tokio_postgres::Error) -> bool {
    matches!(
        error.code(),
        Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED)
    )
}

/// The error in our words. Only the message is kept: the detail quotes values.
pub(super) fn translate(error: &tokio_postgres::Error) -> StoreError {
    let Some(database) = error.as_db_error() else {
        // Everything that is not the server's word is about the connection, but for what we hand in.
        let mut message = format!("PostgreSQL: {error}");
        if let Some(cause) = error.source() {
            message.push_str(&format!(": {cause}"));
        }
        return StoreError::Unavailable(message);
    };
    let message = format!("PostgreSQL: {}", database.message());
    let code = database.code();
    if *code == SqlState::FOREIGN_KEY_VIOLATION {
        return StoreError::NotFound("row that this one refers to".to_owned());
    }
    // Rights are a matter of the server's configuration, not of damaged data.
    if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        return StoreError::Unavailable(message);
    }
    match code.code().get(..2).unwrap_or_default() {
        "23" => StoreError::Conflict(message),
        // Values that are wrong, or larger than a row or an index takes.
        "22" | "54" => StoreError::Invalid(message),
        // Connections, transactions that may not write, who may come in, no such database, undone transactions,
        // resources such as the disk, locks, the operator, the system.
        "08" | "25" | "28" | "3D" | "40" | "53" | "55" | "57" | "58" => {
            StoreError::Unavailable(message)
        }
        _ => StoreError::Corrupt(message),
    }
}

/// Why no connection was to be had.
pub(super) fn translate_pool(error: &PoolError) -> StoreError {
    match error {
        PoolError::Timeout(_) => {
            StoreError::Unavailable("PostgreSQL: no connection within the time limit".to_owned())
        }
        PoolError::Closed => StoreError::Unavailable("the store is closed".to_owned()),
        PoolError::Backend(error) => match translate(error) {
            // Whatever it is, there is no connection.
            StoreError::Unavailable(message) => StoreError::Unavailable(message),
            other => StoreError::Unavailable(other.to_string()),
        },
        other => StoreError::Unavailable(format!("PostgreSQL: {other}")),
    }
}
