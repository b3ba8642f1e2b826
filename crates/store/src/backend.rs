//! The databases that a store can be in: a closed set.

use crate::error::Result;
use crate::postgres::PostgresBackend;
use crate::simulated::SimulatedBackend;
use crate::sql::transaction::{TransactionMode, TransactionWork};
use crate::sqlite::SqliteBackend;

/// Runs transactions on one of the databases.
pub(crate) enum Backend {
    /// One file, for one machine.
    Sqlite(SqliteBackend),
    /// A server, for several processes.
    Postgres(PostgresBackend),
    /// Memory, with the faults of a simulation.
    Simulated(SimulatedBackend),
}

impl Backend {
    /// Runs the work in one transaction, which is durable when this returns.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        mode: TransactionMode,
        work: TransactionWork<T>,
    ) -> Result<T> {
        match self {
            Self::Sqlite(sqlite) => sqlite.run(mode, work).await,
            Self::Postgres(postgres) => postgres.run(mode, work).await,
            Self::Simulated(simulated) => simulated.run(mode, work).await,
        }
    }

    /// Finishes what is under way and ends.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(sqlite) => sqlite.close().await,
            Self::Postgres(postgres) => postgres.close(),
            Self::Simulated(_) => {}
        }
    }
}
