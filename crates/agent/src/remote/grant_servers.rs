//! MCP servers beside manifests: each becomes a tool that the agent may use whole.

use proofhouse_manifest::{Agent, Grant, Tool};
use proofhouse_source::Span;

use super::mcp::{McpServerError, mcp_tool};

/// A server that cannot be given to an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{server}: {source}")]
pub struct GrantError {
    /// The server, as it was named.
    pub server: String,
    /// What is wrong with it.
    pub source: McpServerError,
}

/// Adds the servers to an agent. The tools are to be added to the catalog. A name that is taken gets a
/// number.
///
/// # Errors
///
/// Returns an error when one of them is neither a URL nor a command.
pub fn grant_servers(agent: &mut Agent, servers: &[String]) -> Result<Vec<Tool>, GrantError> {
    let mut tools: Vec<Tool> = Vec::new();
    for server in servers {
        let mut tool = mcp_tool(&agent.namespace, server).map_err(|source| GrantError {
            server: server.clone(),
            source,
        })?;
        let taken = |name: &str| agent.capabilities.iter().any(|(known, _)| known == name);
        if taken(&tool.name) {
            let mut names = (2_u32..).map(|number| format!("{}-{number}", tool.name));
            if let Some(free) = names.find(|name| !taken(name)) {
                tool.name = free;
            }
        }
        let grant = Grant {
            capability: None,
            span: Span {
                offset: 0,
                length: 0,
                line: 1,
                column: 1,
            },
        };
        agent.capabilities.push((tool.name.clone(), grant));
        tools.push(tool);
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_manifest::Bundle;

    fn assistant() -> Agent {
        let text = "kind: commonagents.info/v1beta2/agent\nnamespace: demo\nname: assistant\n\
                    description: d\nprompt: p\n";
        Bundle::read(text).0.agents().next().unwrap().clone()
    }

    #[test]
    fn servers_are_tools_with_names_of_their_own() {
        let mut agent = assistant();
        let servers = [
            "https://tools.example.com:8443/mcp?x=1",
            "files=npx -y @acme/server-files '/a dir'",
            "/opt/bin/my-server --fast",
            "my-server again",
        ];
        let tools = grant_servers(&mut agent, &servers.map(str::to_owned)).unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let expected = ["tools-example-com", "files", "my-server", "my-server-2"];
        assert_eq!(names, expected);
        let capabilities = agent.capabilities.iter();
        let granted: Vec<&str> = capabilities.map(|(name, _)| name.as_str()).collect();
        assert_eq!(granted, expected);
        assert!(tools.iter().all(|tool| !tool.deriving().is_empty()));
    }

    #[test]
    fn what_is_no_server_is_said() {
        for wrong in ["", "  ", "run 'this", "http://"] {
            let error = grant_servers(&mut assistant(), &[wrong.to_owned()]).unwrap_err();
            assert_eq!(error.server, wrong);
        }
    }
}
