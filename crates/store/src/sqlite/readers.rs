//! Reads beside the writer: a few connections, each used by one at a time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connection;
use super::error::translate;
use super::transaction::{SqliteTransaction, complete};
use crate::error::{Result, StoreError};
use crate::sql::dialect::SqlDialect;
use crate::sql::transaction::TransactionWork;
use crate::sync::lock;

/// How long a free connection is waited for.
const WAIT: Duration = Duration::from_secs(10);

/// More would not read faster.
const MAX_READERS: usize = 64;

/// The connections that only read.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    dialect: Arc<SqlDialect>,
    free: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
    count: u32,
}

impl Readers {
    pub(super) fn new(path: PathBuf, count: usize, dialect: Arc<SqlDialect>) -> Self {
        let count = u32::try_from(count.clamp(1, MAX_READERS)).unwrap_or(1);
        Self {
            path,
            dialect,
            free: Arc::default(),
            permits: Arc::new(Semaphore::new(count as usize)),
            count,
        }
    }

    pub(super) async fn run<T: Send + 'static>(&self, work: TransactionWork<T>) -> Result<T> {
        let busy = || StoreError::Unavailable("all who read are busy".to_owned());
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        let permit = tokio::time::timeout(WAIT, Arc::clone(&self.permits).acquire_owned())
            .await
            .map_err(|_| busy())?
            .map_err(|_| closed())?;
        let (free, path, dialect) = (
            Arc::clone(&self.free),
            self.path.clone(),
            Arc::clone(&self.dialect),
        );
        let reading = tokio::task::spawn_blocking(move || {
            let kept = lock(&free).pop();
            let mut connection = kept.map_or_else(|| connection::reader(&path), Ok)?;
            let outcome = read(&mut connection, &dialect, &work);
            // A connection that failed may be of a file that is gone; the next one is opened anew.
            if !matches!(
                outcome,
                Err(StoreError::Unavailable(_) | StoreError::Corrupt(_))
            ) {
                lock(&free).push(connection);
            }
            drop(permit);
            outcome
        });
        reading
            .await
            .map_err(|error| StoreError::Unavailable(format!("reading stopped: {error}")))?
    }

    pub(super) async fn close(&self) {
        // All permits are free when nobody reads any more.
        let _ = tokio::time::timeout(WAIT, self.permits.acquire_many(self.count)).await;
        self.permits.close();
        lock(&self.free).clear();
    }
}

/// All statements of the work see the same state.
fn read<T>(
    connection: &mut Connection,
    dialect: &SqlDialect,
    work: &TransactionWork<T>,
) -> Result<T> {
    connection
        .execute_batch("BEGIN")
        .map_err(|error| translate(&error))?;
    let outcome = complete(
        work,
        &mut SqliteTransaction {
            connection,
            dialect,
        },
    );
    let ended = connection
        .execute_batch("ROLLBACK")
        .map_err(|error| translate(&error));
    let output = outcome?;
    ended.map(|()| output)
}
