//! MCP servers as capabilities: a URL or a command line beside the manifests, made a tool of an agent.

use proofhouse_manifest::interpolate::{Template, UrlTemplate};
use proofhouse_manifest::{
    Bundle, Execute, Grant, Manifest, Mcp, McpTransport, ParameterSchema, SharedBlocks, Tool,
};
use proofhouse_source::Span;

/// The longest name of a tool that is made from a URL or a command.
const MAX_NAME_BYTES: usize = 40;

/// Why a text is no MCP server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpServerError {
    /// There is nothing in it.
    #[error("the MCP server is a URL or a command line; this is empty")]
    Empty,
    /// Braces would be read as placeholders.
    #[error("`{0}` has braces, which only manifests may use")]
    Braces(String),
    /// A quotation is not closed.
    #[error("a quotation in `{0}` is not closed")]
    Quote(String),
    /// It is not a URL.
    #[error("`{url}` cannot be used: {reason}")]
    Url {
        /// The text.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such agent.
    #[error("there is no agent `{0}`")]
    NoAgent(String),
    /// The name is taken.
    #[error("`{0}` is there already; give the MCP server another name with NAME=")]
    Taken(String),
}

/// A tool with all that an MCP server has. `target` is a URL or a command line, with `NAME=` before it to
/// name the tool; otherwise the name is taken from it.
///
/// ```
/// use proofhouse_agent::remote::mcp_tool;
/// use proofhouse_manifest::{BackendKind, Execute};
///
/// let tool = mcp_tool("demo", "files=npx server-filesystem '/srv/my files'").unwrap();
/// assert_eq!(tool.name, "files");
/// let Some(Execute::Mcp(server)) = tool.shared.of(BackendKind::Mcp) else { panic!() };
/// assert_eq!(server.args.as_ref().unwrap()[1].source(), "/srv/my files");
/// assert_eq!(mcp_tool("demo", "https://mcp.example.com/mcp").unwrap().name, "mcp-example-com");
/// ```
///
/// # Errors
///
/// Returns what is wrong with the text.
pub fn mcp_tool(namespace: &str, target: &str) -> Result<Tool, McpServerError> {
    let (name, target) = named(target.trim());
    if target.is_empty() {
        return Err(McpServerError::Empty);
    }
    if target.contains(['{', '}']) {
        return Err(McpServerError::Braces(target.to_owned()));
    }
    let (mcp, source) = if target.starts_with("http://") || target.starts_with("https://") {
        let wrong = |reason: String| McpServerError::Url {
            url: target.to_owned(),
            reason,
        };
        let parsed = url::Url::parse(target).map_err(|error| wrong(error.to_string()))?;
        let template = UrlTemplate::new(&Template::parse(target));
        let mcp = Mcp {
            // Newer servers are tried first, older ones then.
            transport: Some(McpTransport::Sse),
            url: Some(template.map_err(|error| wrong(error.to_string()))?),
            ..Mcp::default()
        };
        (mcp, parsed.host_str().unwrap_or_default().to_owned())
    } else {
        let mut words = words(target)?.into_iter();
        let command = words.next().ok_or(McpServerError::Empty)?;
        let file = command.rsplit(['/', '\\']).next().unwrap_or_default();
        let source = file.to_owned();
        let mcp = Mcp {
            transport: Some(McpTransport::Stdio),
            command: Some(Template::parse(&command)),
            args: Some(words.map(|word| Template::parse(&word)).collect()),
            ..Mcp::default()
        };
        (mcp, source)
    };
    let name = name.map_or_else(|| plain(&source), plain);
    Ok(Tool {
        namespace: namespace.to_owned(),
        description: format!("What the MCP server `{name}` can do."),
        name,
        synchronous: true,
        is_never_evicted: false,
        settings: None,
        parameters: ParameterSchema::default(),
        actions: Vec::new(),
        events: Vec::new(),
        shared: SharedBlocks::new([Execute::Mcp(mcp)]),
    })
}

/// Gives an agent everything that an MCP server can do, without rules. `target` is as in [`mcp_tool`].
///
/// # Errors
///
/// Returns an error when the text is none, when there is no such agent, or when the name is taken.
pub fn grant_mcp(bundle: &mut Bundle, agent: &str, target: &str) -> Result<(), McpServerError> {
    let found = bundle.agents().find(|found| found.name == agent);
    let found = found.ok_or_else(|| McpServerError::NoAgent(agent.to_owned()))?;
    let tool = mcp_tool(&found.namespace, target)?;
    let is_granted = found
        .capabilities
        .iter()
        .any(|(name, _)| *name == tool.name);
    let is_there = bundle
        .tools()
        .any(|other| other.namespace == tool.namespace && other.name == tool.name);
    if is_granted || is_there {
        return Err(McpServerError::Taken(tool.name));
    }
    let grant = Grant {
        capability: None,
        // It stands in no file.
        span: Span {
            offset: 0,
            length: 0,
            line: 1,
            column: 1,
        },
    };
    for manifest in &mut bundle.manifests {
        if let Manifest::Agent(found) = manifest
            && found.name == agent
        {
            found.capabilities.push((tool.name.clone(), grant));
            break;
        }
    }
    bundle.manifests.push(Manifest::Tool(tool));
    Ok(())
}

/// The name before the sign, if there is one that is a name.
fn named(target: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters
            .next()
            .is_some_and(|first| first.is_ascii_lowercase())
            && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    match target.split_once('=') {
        Some((name, rest)) if is_name(name) => (Some(name), rest.trim()),
        _ => (None, target),
    }
}

/// A text as the name of a tool: small letters, digits and hyphens.
fn plain(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    name.truncate(MAX_NAME_BYTES);
    let name = name.trim_end_matches('-');
    match name.chars().next() {
        None => "mcp".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("mcp-{name}"),
        Some(_) => name.to_owned(),
    }
}

/// The words of a command line; quotation marks keep words together.
fn words(line: &str) -> Result<Vec<String>, McpServerError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        None => Ok(words),
        Some(_) => Err(McpServerError::Quote(line.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(tool: &Tool) -> &Mcp {
        let blocks: Vec<&Execute> = tool.shared.blocks().collect();
        match blocks[..] {
            [Execute::Mcp(server)] => server,
            _ => panic!("{blocks:?}"),
        }
    }

    #[test]
    fn urls_and_command_lines_become_tools() {
        let url = mcp_tool("demo", "http://127.0.0.1:8000/mcp").unwrap();
        assert_eq!(url.name, "mcp-127-0-0-1");
        assert_eq!(server(&url).transport, Some(McpTransport::Sse));
        let command = mcp_tool("demo", "/usr/bin/My_Server --a \"b c\" ''").unwrap();
        assert_eq!(command.name, "my-server");
        let args = server(&command).args.as_deref().unwrap();
        let args: Vec<&str> = args.iter().map(Template::source).collect();
        assert_eq!(args, ["--a", "b c", ""]);
        for (wrong, error) in [
            ("", McpServerError::Empty),
            ("x=", McpServerError::Empty),
            (
                "run {settings.key}",
                McpServerError::Braces("run {settings.key}".into()),
            ),
            ("run 'a", McpServerError::Quote("run 'a".into())),
        ] {
            assert_eq!(mcp_tool("demo", wrong).unwrap_err(), error);
        }
        assert!(mcp_tool("demo", "http://").is_err());
    }

    #[test]
    fn an_agent_is_granted_a_server() {
        let (mut bundle, _) = Bundle::read(
            "kind: commonagents.info/v1beta2/agent\nnamespace: demo\nname: clerk\ndescription: d\nprompt: p\n",
        );
        grant_mcp(&mut bundle, "clerk", "files=server /srv").unwrap();
        let again = grant_mcp(&mut bundle, "clerk", "files=other").unwrap_err();
        assert_eq!(again, McpServerError::Taken("files".into()));
        assert!(grant_mcp(&mut bundle, "nobody", "server").is_err());
        let mut catalog = proofhouse_manifest::Catalog::default();
        catalog.add(&bundle);
        let agent = catalog.agents().next().unwrap();
        assert!(
            catalog.check(agent).is_empty(),
            "{:?}",
            catalog.check(agent)
        );
        assert_eq!(agent.capabilities[0].0, "files");
    }
}
