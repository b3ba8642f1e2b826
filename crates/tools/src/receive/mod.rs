//! Receive runtimes: what becomes of events that reach a tool, as functions over plain data.
//!
//! Nothing here stores, waits or reads a clock. Whoever drives these functions brings the time and a store,
//! and commits what they return in one transaction:
//!
//! - [`webhook`] says whether a delivery is genuine, which one it is, what it holds, and what to answer.
//! - [`filter`] says whether an event concerns a task, by its [`AllowList`](crate::allow_list::AllowList).
//! - [`message`] turns an event into the words that the task is told.
//! - [`subscription`] opens and closes push channels; [`poll`] asks an endpoint once.
//! - [`trigger`] and [`proofhouse_manifest::schedule`] say when a new task starts.
//! - [`timeout`] says how long a task listens, and to what.

mod calls;
mod delivery_outcome;
pub mod filter;
pub mod message;
pub mod poll;
pub mod subscription;
pub mod timeout;
pub mod trigger;
pub mod webhook;

pub use calls::EventListener;
pub use delivery_outcome::{DeliveryOutcome, Discard};
