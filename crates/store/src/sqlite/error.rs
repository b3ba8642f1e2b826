//! What errors of SQLite mean to callers.

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY;

use crate::error::StoreError;

/// The error in our words. SQLite's messages name tables and columns, never values.
pub(super) fn translate(error: &rusqlite::Error) -> StoreError {
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return StoreError::Corrupt(error.to_string());
    };
    match failure.code {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::DiskFull
        | ErrorCode::SystemIoFailure
        | ErrorCode::CannotOpen
        | ErrorCode::ReadOnly
        | ErrorCode::PermissionDenied
        | ErrorCode::OutOfMemory
        | ErrorCode::OperationInterrupted
        | ErrorCode::OperationAborted
        | ErrorCode::NoLargeFileSupport
        | ErrorCode::FileLockingProtocolFailed => StoreError::Unavailable(error.to_string()),
        ErrorCode::ConstraintViolation if failure.extended_code == SQLITE_CONSTRAINT_FOREIGNKEY => {
            StoreError::NotFound("row that this one refers to".to_owned())
        }
        ErrorCode::ConstraintViolation => StoreError::Conflict(error.to_string()),
        ErrorCode::TooBig => StoreError::TooLarge {
            what: "a row, in bytes,".to_owned(),
            size: 0,
            limit: 1_000_000_000,
        },
        _ => StoreError::Corrupt(error.to_string()),
    }
}
