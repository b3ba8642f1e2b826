//! The store: everything durable goes through its methods. Both databases keep the same contract (`tests/it/contract/`).

mod access;
mod audit;
mod campaigns;
mod events;
mod leases;
mod listening;
mod records;
mod tasks;
mod triggers;

use std::sync::Arc;

use crate::audit_scope::DueEntry;
use crate::backend::Backend;
use crate::error::Result;
use crate::model::{Millis, Retention, StoreProgress, StoreStats, SweepReport};
use crate::postgres::{PostgresBackend, PostgresOptions};
use crate::simulated::{SimulatedBackend, SimulatedDatabase, StoreFaults};
use crate::sql::transaction::{TransactionMode, TransactionWork};
use crate::sql::{retention, upkeep};
use crate::sqlite::{SqliteBackend, SqliteOptions};
use crate::timing::Timings;

/// Durable state, in a SQLite file or in PostgreSQL.
///
/// Each method is one transaction: all of it is durable when it returns, or none of it happened. After
/// [`StoreError::Unavailable`](crate::StoreError::Unavailable) a write may have happened; each says how repeating it
/// is safe: by a key, by an expected number, or by a fence. Lease times are counted by the clock of the database,
/// never by that of the process.
pub struct Store {
    backend: Backend,
    timings: Arc<Timings>,
}

/// Runs statements in one transaction. They may be run again, so what they need is shared with them.
macro_rules! transaction {
    ($self:ident, $mode:ident, [$($input:ident = $value:expr),*], |$tx:ident| $statements:expr) => {{
        let input = ::std::sync::Arc::new(($($value,)*));
        let work: $crate::sql::transaction::TransactionWork<_> = Box::new(move |$tx| {
            let input = ::std::sync::Arc::clone(&input);
            Box::pin(async move {
                let ($($input,)*) = &*input;
                $statements.await
            })
        });
        $self.run($crate::sql::transaction::TransactionMode::$mode, work).await
    }};
}
use transaction;

impl Store {
    /// Opens a store in a SQLite file or in memory, and brings its schema up to date.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened, is no database, or was written by a newer version.
    pub async fn open_sqlite(options: SqliteOptions) -> Result<Self> {
        let backend = SqliteBackend::open(options).await?;
        Ok(Self::on(Backend::Sqlite(backend)))
    }

    /// Connects to a store in PostgreSQL, and brings its schema up to date. Several processes may do so at once.
    ///
    /// # Errors
    ///
    /// When the address is wrong, the server cannot be reached, or a newer version has written the database.
    pub async fn open_postgres(options: PostgresOptions) -> Result<Self> {
        let backend = PostgresBackend::open(&options).await?;
        Ok(Self::on(Backend::Postgres(backend)))
    }

    /// Uses a simulated database as one process, with the faults that the simulation has for it.
    #[must_use]
    pub fn simulated(database: Arc<SimulatedDatabase>, faults: Arc<dyn StoreFaults>) -> Self {
        Self::on(Backend::Simulated(SimulatedBackend { database, faults }))
    }

    fn on(backend: Backend) -> Self {
        Self {
            backend,
            timings: Arc::default(),
        }
    }

    /// Runs the work in one transaction and measures it.
    async fn run<T: Send + 'static>(
        &self,
        mode: TransactionMode,
        work: TransactionWork<T>,
    ) -> Result<T> {
        let due = DueEntry::current().filter(|_| !mode.is_read());
        let work = match &due {
            Some(due) => due.after(work),
            None => work,
        };
        let transaction = self.backend.run(mode, work);
        let outcome = self.timings.measured(mode, transaction).await;
        if let (Ok(_), Some(due)) = (&outcome, due) {
            due.written();
        }
        outcome
    }

    /// Removes what is old enough.
    pub async fn sweep(&self, retention: Retention) -> Result<SweepReport> {
        transaction!(self, Write, [retention = retention], |tx| retention::sweep(
            tx, retention
        ))
    }

    /// Ends tasks that are finished: idle for so long, with nothing pending, and listening to nothing any more. As many as
    /// this at most. Returns their ids.
    pub async fn end_finished(&self, idle_ms: Millis, limit: usize) -> Result<Vec<String>> {
        transaction!(self, Write, [idle_ms = idle_ms, limit = limit], |tx| {
            retention::end_finished(tx, *idle_ms, *limit)
        })
    }

    /// How long the oldest work has waited, and how many leases an owner holds. What waits for a task counts only if its agent
    /// is one of these, each as `namespace/name`; without a list all are.
    pub async fn progress(
        &self,
        owner: &str,
        agents: Option<Arc<[String]>>,
    ) -> Result<StoreProgress> {
        transaction!(
            self,
            Read,
            [owner = owner.to_owned(), agents = agents],
            |tx| upkeep::progress(tx, owner, agents.as_deref())
        )
    }

    /// How many tasks have something to do and an agent that is not among these, each as `namespace/name`.
    pub async fn tasks_without_agent(&self, agents: Arc<[String]>) -> Result<i64> {
        transaction!(self, Read, [agents = agents], |tx| {
            upkeep::without_agent(tx, agents)
        })
    }

    /// How much there is.
    pub async fn stats(&self) -> Result<StoreStats> {
        transaction!(self, Read, [], |tx| upkeep::stats(tx))
    }

    /// Writes something, to see whether that is possible.
    pub async fn health(&self) -> Result<()> {
        transaction!(self, Write, [], |tx| upkeep::health(tx))
    }

    /// The time, by the clock that leases are counted by.
    pub async fn now(&self) -> Result<Millis> {
        transaction!(self, Read, [], |tx| upkeep::now(tx))
    }

    /// How long transactions took and how many failed, as far as this process made them.
    #[must_use]
    pub fn timings(&self) -> Arc<Timings> {
        Arc::clone(&self.timings)
    }

    /// Finishes what is under way and closes the database. Later calls are `Unavailable`.
    pub async fn close(&self) {
        self.backend.close().await;
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Store").finish_non_exhaustive()
    }
}
