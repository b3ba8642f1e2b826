//! What was found in a project, for people.

use proofhouse_source::{printable, printable_line};
use proofhouse_subjects::discover::{DiscoveredProject, Spoken};
use proofhouse_subjects::without_credentials;

/// A line for everything that was found; commands only where they are wanted.
#[must_use]
pub fn found_lines(
    found: &DiscoveredProject,
    endpoints: &[Spoken],
    with_commands: bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    for agent in &found.agents {
        lines.push(format!("found the agent {} in {}", agent.agent, agent.file));
    }
    for config in &found.mcp_configs {
        let many = if config.servers == 1 { "" } else { "s" };
        lines.push(format!(
            "found {} MCP server{many} in {}",
            config.servers, config.file
        ));
    }
    for endpoint in endpoints {
        lines.push(format!(
            "found an agent at {} that speaks {}",
            without_credentials(endpoint.place()),
            endpoint.protocols()
        ));
    }
    for framework in &found.frameworks {
        let name = framework.framework().name;
        lines.push(format!("found {name} in {}", framework.file));
    }
    for hint in found.commands.iter().filter(|_| with_commands) {
        lines.push(format!(
            "{} suggests the command: {}",
            hint.file, hint.command
        ));
    }
    for directory in &found.documents {
        lines.push(format!("found threat documents in {directory}"));
    }
    lines.iter().map(|line| printable_line(line)).collect()
}

/// Says that there is nobody to test, and what to do.
#[must_use]
pub fn nobody_found(hint: Option<&str>) -> String {
    let command = hint.unwrap_or("python agent.py {prompt}");
    printable(&format!(
        "no agent was found that can be started, so nothing was written. Try one of these:\n  \
         proofhouse init --command '{command}'   (a command that does one task and connects to \
         PROOFHOUSE_MCP_URLS)\n  \
         proofhouse init --endpoint http://127.0.0.1:8000/   (a running agent)\n  \
         proofhouse init --simulation sim:careful   (a simulated agent, to see how it works)"
    ))
}
