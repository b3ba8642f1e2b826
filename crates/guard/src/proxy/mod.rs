//! Proxies: they carry messages between a client and its server, and ask the engine about each.

mod agent_card;
mod asker;
mod events;
mod frames;
mod http;
mod process;
mod sign_in;
mod stdio;
mod way_back;

pub use asker::PersonAsker;
pub(crate) use frames::{GuardLine, GuardLines};
pub use http::{HttpGuard, HttpGuardError};
pub use process::GuardedCommand;
pub use stdio::{ProxyError, ProxyLimits, StdioEnd, StdioSetup, run_stdio};
