//! What was found in a project, for people.

use std::path::Path;

use proofhouse_source::{printable, printable_line};
use proofhouse_subjects::discover::{DiscoveredProject, Spoken, start_command};
use proofhouse_subjects::without_credentials;
use proofhouse_wire::repository::page;

use crate::config::{Draft, FILE};

/// A line for everything that was found; commands only where they are wanted.
#[must_use]
pub fn found_lines(
    found: &DiscoveredProject,
    endpoints: &[Spoken],
    with_commands: bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    for agent in &found.agents {
        lines.push(format!("Found the agent {} in {}", agent.agent, agent.file));
    }
    for config in &found.mcp_configs {
        let many = if config.servers == 1 { "" } else { "s" };
        lines.push(format!(
            "Found {} MCP server{many} in {}",
            config.servers, config.file
        ));
    }
    for endpoint in endpoints {
        lines.push(format!(
            "Found an agent at {} that speaks {}",
            without_credentials(endpoint.place()),
            endpoint.protocols()
        ));
    }
    for framework in &found.frameworks {
        let name = framework.framework().name;
        lines.push(format!("Found {name} in {}", framework.file));
    }
    for hint in found.commands.iter().filter(|_| with_commands) {
        lines.push(format!(
            "{} suggests the command: {}",
            hint.file, hint.command
        ));
    }
    for directory in &found.documents {
        lines.push(format!("Found threat documents in {directory}"));
    }
    lines.iter().map(|line| printable_line(line)).collect()
}

/// Says that the configuration was written, and what comes next.
#[must_use]
pub fn wrote(draft: &Draft) -> String {
    // A simulation is always connected.
    let check = if draft.simulation.is_some() {
        ""
    } else {
        ". It first makes one run without an attack, which shows whether your agent is connected."
    };
    format!("Wrote {FILE}. Next: proofhouse run{check}")
}

/// Says that there is nobody to test, and what to do.
#[must_use]
pub fn nobody_found(found: &DiscoveredProject) -> String {
    let suggested = found.commands.first().map(|hint| hint.command.clone());
    let framework = found.frameworks.first();
    let own = framework.map(|found| start_command(Path::new(&found.file)));
    let command = suggested.or(own);
    let command = command.as_deref().unwrap_or("python agent.py {prompt}");
    let more = framework.map(|found| {
        let framework = found.framework();
        format!(
            "\nTo test an agent written with {}, see {}",
            framework.name,
            page(framework.page)
        )
    });
    printable(&format!(
        "no agent was found that can be started, so nothing was written. Try one of these:\n  \
         proofhouse init --command '{command}'   (a command that does one task and connects to \
         PROOFHOUSE_MCP_URLS)\n  \
         proofhouse init --endpoint http://127.0.0.1:8000/   (a running agent)\n  \
         proofhouse init --simulation sim:careful   (a simulated agent, to see how it works){}",
        more.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use proofhouse_subjects::discover::detect;

    use super::*;

    #[test]
    fn the_advice_names_the_file_and_the_page_of_a_framework() {
        let project = tempfile::tempdir().unwrap();
        std::fs::write(project.path().join("crew.py"), "from crewai import Crew\n").unwrap();
        let advice = nobody_found(&detect(project.path()));
        assert!(
            advice.contains("--command 'python crew.py {prompt}'"),
            "{advice}"
        );
        assert!(advice.contains("see docs/how-to/crewai.md in "), "{advice}");
    }
}
