//! What errors of PostgreSQL mean to callers.

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
        return StoreError::Unavailable(format!("PostgreSQL: {error}"));
    };
    let message = format!("PostgreSQL: {}", database.message());
    let code = database.code();
    match code.code().get(..2).unwrap_or_default() {
        _ if *code == SqlState::FOREIGN_KEY_VIOLATION => {
            StoreError::NotFound("row that this one refers to".to_owned())
        }
        "23" => StoreError::Conflict(message),
        // Program limits, such as a row that is too large for an index.
        "54" | "22" => StoreError::Invalid(message),
        // Connections, resources, the operator, the system, locks, transactions, rights, read-only servers.
        "08" | "53" | "57" | "58" | "55" | "40" | "28" | "42" if is_for_the_operator(code) => {
            StoreError::Unavailable(message)
        }
        "08" | "53" | "57" | "58" | "55" | "40" | "28" | "25" | "3D" => {
            StoreError::Unavailable(message)
        }
        _ => StoreError::Corrupt(message),
    }
}

/// Rights are a matter of the server's configuration, not of damaged data.
fn is_for_the_operator(code: &SqlState) -> bool {
    *code == SqlState::INSUFFICIENT_PRIVILEGE
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
