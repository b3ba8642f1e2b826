//! MCP servers beside manifests: each becomes a tool that the agent may use whole.

use std::path::Path;

use proofhouse_oatf::DiagnosticSeverity;
use proofhouse_source::Span;
use proofhouse_tools::manifest::{Agent, Bundle, Grant, Tool};
use serde_json::{Value, json};

use crate::output::{CommandError, printable_line};

/// Programs that run others: the name of what they run says more.
const RUNNERS: &[&str] = &[
    "npx", "npm", "uvx", "uv", "bunx", "node", "deno", "python", "python3", "docker", "sh", "bash",
];
/// Words of such programs that name nothing.
const FILLERS: &[&str] = &["run", "exec", "tool", "x"];

/// Adds the servers to an agent. The tools are to be added to the catalog.
pub(crate) fn grant(agent: &mut Agent, servers: &[String]) -> Result<Vec<Tool>, CommandError> {
    let mut tools: Vec<Tool> = Vec::new();
    for server in servers {
        let taken = |name: &str| {
            let of_agent = agent.capabilities.iter().any(|(known, _)| known == name);
            of_agent || tools.iter().any(|tool| tool.name == name)
        };
        let (name, block) = block(server)?;
        let mut names = (2..).map(|number| format!("{name}-{number}"));
        let name = match taken(&name) {
            true => names.find(|name| !taken(name)).unwrap_or(name),
            false => name,
        };
        tools.push(tool(&agent.namespace, &name, &block, server)?);
    }
    for tool in &tools {
        let span = Span {
            offset: 0,
            length: 0,
            line: 1,
            column: 1,
        };
        let grant = Grant {
            capability: None,
            span,
        };
        agent.capabilities.push((tool.name.clone(), grant));
    }
    Ok(tools)
}

/// A name for the server, and the `mcp` block that reaches it.
fn block(server: &str) -> Result<(String, Value), CommandError> {
    let wrong = |reason: &str| {
        let shown = printable_line(server);
        CommandError::usage(format!("--mcp {shown}: {reason}"))
    };
    if server.starts_with("http://") || server.starts_with("https://") {
        let (_, rest) = server.split_once("://").unwrap_or_default();
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default();
        let block = json!({"transport": "streamable_http", "url": server});
        return Ok((plain(host), block));
    }
    let words = shlex::split(server).ok_or_else(|| wrong("a quote is not closed"))?;
    let [program, args @ ..] = words.as_slice() else {
        return Err(wrong("write a URL, or a command"));
    };
    let block = json!({"transport": "stdio", "command": program, "args": args});
    Ok((command_name(program, args), block))
}

/// What a command runs, as a name.
fn command_name(program: &str, args: &[String]) -> String {
    let stem = |word: &str| {
        let stem = Path::new(word).file_stem();
        stem.map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let name = stem(program);
    let runs = RUNNERS.contains(&name.as_str());
    let run = args
        .iter()
        .find(|word| !word.starts_with('-') && !FILLERS.contains(&word.as_str()));
    match run {
        Some(run) if runs => {
            // A package: `@scope/server-files@1.2` is about files.
            let package = run.rsplit('/').next().unwrap_or(run);
            let package = package.split('@').next().unwrap_or(package);
            plain(&stem(package))
        }
        _ => plain(&name),
    }
}

/// A text as the name of a tool.
fn plain(text: &str) -> String {
    let name: String = text
        .chars()
        .take(40)
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
            _ => '-',
        })
        .collect();
    let name = name.trim_matches('-');
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => name.to_owned(),
        false => format!("mcp-{name}").trim_end_matches('-').to_owned(),
    }
}

fn tool(namespace: &str, name: &str, block: &Value, server: &str) -> Result<Tool, CommandError> {
    // JSON is YAML, and nothing in it can be taken for anything else.
    let manifest = json!({
        "kind": "commonagents.info/v1beta2/tool",
        "namespace": namespace,
        "name": name,
        "description": format!("The MCP server {name}."),
        "mcp": block,
    });
    let (bundle, findings) = Bundle::read(&manifest.to_string());
    let wrong = findings
        .iter()
        .find(|finding| finding.severity == DiagnosticSeverity::Error);
    let tool = bundle.tools().next().cloned();
    match (tool, wrong) {
        (Some(tool), None) => Ok(tool),
        (_, wrong) => {
            let reason = wrong.map_or("it cannot be used", |finding| finding.message.as_str());
            let shown = printable_line(server);
            Err(CommandError::usage(format!("--mcp {shown}: {reason}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assistant() -> Agent {
        let text = include_str!("assistant.yaml");
        Bundle::read(text).0.agents().next().unwrap().clone()
    }

    #[test]
    fn servers_are_tools_with_names_of_their_own() {
        let mut agent = assistant();
        let servers = [
            "https://tools.example.com:8443/mcp?x=1",
            "npx -y @acme/server-files@1.2 '/a dir'",
            "/opt/bin/My_Server.sh --fast",
            "my-server again",
            "python3 -m 127",
        ];
        let tools = grant(&mut agent, &servers.map(str::to_owned)).unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let expected = [
            "tools-example-com",
            "server-files",
            "my-server",
            "my-server-2",
            "mcp-127",
        ];
        assert_eq!(names, expected);
        let granted: Vec<&str> = agent
            .capabilities
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(granted, expected);
        assert!(tools.iter().all(|tool| !tool.deriving().is_empty()));
    }

    #[test]
    fn what_is_no_server_is_said() {
        for wrong in ["", "  ", "run 'this", "http://"] {
            let error = grant(&mut assistant(), &[wrong.to_owned()]).unwrap_err();
            assert!(error.to_string().starts_with("--mcp"), "{error}");
        }
    }
}
