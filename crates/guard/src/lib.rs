//! The guard between an agent and its servers.
//!
//! It reads every message on its way, and what passes is what was sent, byte for byte. What it enforces rests on three
//! things: definitions that must stay what they were when they were approved ([`pins`]), values that must not flow from
//! untrusted results into effects ([`taint`]), and rules about calls ([`policy`]). Indicators of threat documents
//! observe ([`engine`]), those of the guard's own documents ([`pack`]) as well. Guards of several servers can share a session
//! ([`share`]).

pub mod engine;
mod finding;
pub mod install;
pub mod learn;
mod open;
pub mod pack;
pub mod pins;
pub mod policy;
pub mod proxy;
pub mod record;
pub mod replay;
mod run;
pub mod share;
pub mod taint;

pub use finding::{FindingCode, FindingSeverity, GuardDecision, GuardFinding};
pub use open::{
    GuardFiles, GuardOpenError, OpenedGuard, OpenedPolicy, command_name, read_policy, url_name,
};
pub use run::{
    GuardAsks, GuardReach, GuardRunError, GuardTarget, ListeningGuard, UnknownAsks, guard_http,
    guard_stdio,
};
