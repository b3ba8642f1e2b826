//! Durable state behind one trait: SQLite for one machine, PostgreSQL for several.
//!
//! [`Store`] is the trait, [`model`] has its rows. Whatever belongs together is one method and one transaction. A
//! write that depends on a [lease](model::lease) carries the lease's fence, which is checked in the same transaction:
//! a process that lost its lease without noticing cannot write any more.
//!
//! The statements are written once, in `sql/`; an engine says how they are run.

mod error;
mod lock;
mod migrate;
pub mod model;
mod postgres;
mod sql;
mod sqlite;
mod store;
mod timing;

pub use error::{Result, StoreError};
pub use lock::{LockError, StoreLock};
pub use postgres::{PostgresEngine, PostgresOptions, PostgresStore};
pub use sql::SqlStore;
pub use sqlite::{SqliteEngine, SqliteOptions, SqliteStore};
pub use store::Store;
pub use timing::{BOUNDS, Timing, Timings};
