//! Finds agents to test: what is in a directory, and what runs on this machine. Nothing that is found is run.

mod detect;
mod packages;
mod probe;

pub use detect::{AgentFile, DiscoveredProject, Hint, McpConfigFile, detect};
pub use probe::{PORTS, ProbeError, Spoken, probe_ports, probe_url};
