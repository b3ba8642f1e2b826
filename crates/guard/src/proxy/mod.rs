//! Proxies: they carry messages between a client and its server, and ask the engine about each.

mod frames;
mod process;
mod stdio;

pub use process::GuardedCommand;
pub use stdio::{ProxyError, ProxyLimits, StdioEnd, run_stdio};
