//! Durable state: in SQLite for one machine, in PostgreSQL for several.
//!
//! [`Store`] is all of it, [`model`] has its rows. Whatever belongs together is one method and one transaction. A
//! write that depends on a [lease](model::lease) carries the lease's fence, which is checked in the same transaction:
//! a process that lost its lease without noticing cannot write any more.
//!
//! The statements are written once, in `sql/`; a backend says how they are run.

pub mod audit;
mod audit_scope;
mod backend;
mod error;
mod lock;
mod migrate;
pub mod model;
mod postgres;
mod simulated;
mod sql;
mod sqlite;
mod store;
mod sync;
mod timing;

pub use audit_scope::with_audit_entry;
pub use error::{Result, StoreError};
pub use lock::{LockError, StoreLock};
pub use postgres::PostgresOptions;
pub use simulated::{SimulatedDatabase, StoreFaults, TransactionFate};
pub use sqlite::SqliteOptions;
pub use store::Store;
pub use timing::{BOUNDS, Timing, Timings};
