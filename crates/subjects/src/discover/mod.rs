//! Finds agents to test: what is in a directory, which framework it is written with, and what runs on this machine. Nothing that
//! is found is run; whether it could be is looked up.

mod detect;
mod frameworks;
mod packages;
mod probe;
mod start;

pub use detect::{AgentFile, DiscoveredProject, Hint, McpConfigFile, detect, start_command};
pub use frameworks::{AgentFramework, FRAMEWORKS, FrameworkUse, ProjectLanguage};
pub use probe::{PORTS, ProbeError, Spoken, probe_ports, probe_url};
pub use start::{NotStartable, ProjectPrograms, Startable};
