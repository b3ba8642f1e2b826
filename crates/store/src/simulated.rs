//! A database in memory for simulations: several simulated processes share it, and whoever simulates decides what its clock
//! says, how long each transaction takes and which of them fail.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use rusqlite::Connection;

use crate::error::{Result, StoreError};
use crate::migrate;
use crate::model::Millis;
use crate::sql::dialect::{Flavor, SqlDialect};
use crate::sql::transaction::{TransactionMode, TransactionWork};
use crate::sqlite::inline;
use crate::sync::lock;

/// What becomes of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionFate {
    /// It is done, and whoever asked is told so.
    Done,
    /// It is not done: the database cannot be reached.
    Refused,
    /// It is done, but whoever asked is not told: the connection broke at the wrong moment.
    Unknown,
}

/// Decides how a simulated database treats one of the processes that use it.
pub trait StoreFaults: Send + Sync {
    /// The time by the clock of the database, in milliseconds since 1970.
    fn now(&self) -> Millis;

    /// Waits as long as the transaction takes to get to the database, and says what becomes of it. A process that is paused
    /// or dead waits here.
    fn arrive(&self, writes: bool) -> BoxFuture<'_, TransactionFate>;

    /// Waits as long as the answer takes to come back.
    fn answer(&self) -> BoxFuture<'_, ()>;
}

/// A database in memory, without threads: each transaction runs where it is asked for.
pub struct SimulatedDatabase {
    connection: Mutex<Connection>,
    dialect: SqlDialect,
}

impl SimulatedDatabase {
    /// An empty database with the newest schema.
    ///
    /// # Errors
    ///
    /// When there is no memory for it.
    pub fn new() -> Result<Arc<Self>> {
        let database = Self {
            connection: Mutex::new(inline::open()?),
            dialect: SqlDialect::new(Flavor::Simulated),
        };
        let work: TransactionWork<()> = Box::new(|tx| Box::pin(migrate::run(tx, migrate::NEWEST)));
        database.run(0, &work)?;
        Ok(Arc::new(database))
    }

    fn run<T>(&self, now: Millis, work: &TransactionWork<T>) -> Result<T> {
        inline::run(&mut lock(&self.connection), &self.dialect, now, work)
    }
}

impl std::fmt::Debug for SimulatedDatabase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SimulatedDatabase")
            .finish_non_exhaustive()
    }
}

/// How one simulated process uses the database.
pub(crate) struct SimulatedBackend {
    pub(crate) database: Arc<SimulatedDatabase>,
    pub(crate) faults: Arc<dyn StoreFaults>,
}

impl SimulatedBackend {
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        mode: TransactionMode,
        work: TransactionWork<T>,
    ) -> Result<T> {
        let fate = self.faults.arrive(!mode.is_read()).await;
        let gone = || StoreError::Unavailable("the simulation says so".to_owned());
        let outcome = match fate {
            TransactionFate::Refused => Err(gone()),
            TransactionFate::Done => self.database.run(self.faults.now(), &work),
            TransactionFate::Unknown => self
                .database
                .run(self.faults.now(), &work)
                .and_then(|_| Err(gone())),
        };
        self.faults.answer().await;
        outcome
    }
}
