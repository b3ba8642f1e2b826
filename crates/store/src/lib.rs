//! Durable state behind one trait: SQLite for one machine, PostgreSQL for several.
//!
//! [`Store`] is the trait, [`model`] has its rows. Whatever belongs together is one method and one transaction. A
//! write that depends on a [lease](model::lease) carries the lease's fence, which is checked in the same transaction:
//! a process that lost its lease without noticing cannot write any more.

mod error;
pub mod model;
mod store;

pub use error::{Result, StoreError};
pub use store::Store;
