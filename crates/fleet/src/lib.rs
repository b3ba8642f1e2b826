//! A campaign on many machines: its work in a store, its traces in a directory or an object store.
//!
//! [`plan`] writes a campaign down: the documents, the subjects and the seed as texts that are named by their digests, and one row
//! per run. [`join`] makes runs of them again on any machine, and [`worker`] works them off: it is handed runs with leases, makes
//! them, and has each counted once. [`report`] reads what came of it, [`listing`] tells it, and [`trend`] says how it changes over
//! time. One machine with SQLite is the same code as fifty with PostgreSQL.

pub mod caps;
pub mod digest;
mod error;
pub mod gate;
pub mod join;
pub mod kubernetes;
pub mod listing;
pub mod name;
mod object_http;
pub mod plan;
pub mod report;
pub mod retention;
pub mod retry;
mod steady;
pub mod subject;
pub mod trace_place;
pub mod traces;
pub mod trend;
pub mod worker;

pub use error::FleetError;
