//! Looks around in a directory: MCP configurations, agent manifests, threat documents, and files that hint
//! at how an agent is started. Whatever it finds may be hostile, so everything is bounded and nothing is run.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use proofhouse_manifest::Bundle;
use proofhouse_source::DiagnosticSeverity;
use proofhouse_wire::files::FileInput;
use serde_json::Value;

use super::frameworks::FrameworkUse;
use super::packages;

/// Where the usual clients keep their MCP servers in a project.
const MCP_CONFIGS: [&str; 10] = [
    ".mcp.json",
    "mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".claude/mcp.json",
    ".gemini/settings.json",
    ".roo/mcp.json",
    ".windsurf/mcp.json",
    "mcp_config.json",
    "claude_desktop_config.json",
];
/// Directories that hold other people's files.
const SKIPPED: [&str; 8] = [
    "node_modules",
    "target",
    "venv",
    "vendor",
    "dist",
    "build",
    "site-packages",
    "__pycache__",
];
/// How large a file may be to be looked into.
const MAX_BYTES: usize = 1 << 20;
/// How deep directories are searched.
const MAX_DEPTH: usize = 4;
/// How many entries of directories are looked at; a project has fewer, a disk has more.
const MAX_ENTRIES: usize = 5_000;
/// How many files are read, at most.
const MAX_FILES: usize = 500;
/// How many of a kind are told and written.
const MAX_FOUND: usize = 8;

/// What was found in a directory; all paths are relative to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DiscoveredProject {
    /// Configurations of MCP servers.
    pub mcp_configs: Vec<McpConfigFile>,
    /// Manifests of agents.
    pub agents: Vec<AgentFile>,
    /// Directories with threat documents.
    pub documents: Vec<String>,
    /// Commands that may start an agent, each with where it stands.
    pub commands: Vec<Hint>,
    /// Files that use a framework for agents; those with an adapter come first.
    pub frameworks: Vec<FrameworkUse>,
}

/// A configuration of MCP servers.
#[derive(Debug, PartialEq, Eq)]
pub struct McpConfigFile {
    /// The file.
    pub file: String,
    /// How many servers it names.
    pub servers: usize,
    /// Their names.
    pub names: Vec<String>,
    /// Where on this machine it says a server is.
    pub listens: Option<SocketAddr>,
}

/// The manifest of an agent.
#[derive(Debug, PartialEq, Eq)]
pub struct AgentFile {
    /// The file.
    pub file: String,
    /// The first agent in it.
    pub agent: String,
    /// The model that it names.
    pub model: Option<String>,
}

/// A command that may start an agent.
#[derive(Debug, PartialEq, Eq)]
pub struct Hint {
    /// The file that hints at it.
    pub file: String,
    /// The command, with placeholders.
    pub command: String,
}

/// The command that most likely starts a program, by the ending of its file.
///
/// ```
/// use proofhouse_subjects::discover::start_command;
///
/// assert_eq!(start_command("agent.py".as_ref()), "python agent.py {prompt}");
/// assert_eq!(start_command("bin/agent".as_ref()), "bin/agent {prompt}");
/// assert_eq!(start_command("agent".as_ref()), "./agent {prompt}");
/// ```
#[must_use]
pub fn start_command(file: &Path) -> String {
    let name = file.display();
    let ending = file.extension().and_then(|ending| ending.to_str());
    let program = match ending {
        Some("py") => "python ",
        Some("js" | "mjs" | "cjs" | "ts") => "node ",
        Some("sh") => "sh ",
        _ if file.components().count() == 1 => "./",
        _ => "",
    };
    format!("{program}{name} {{prompt}}")
}

/// Looks around.
#[must_use]
pub fn detect(directory: &Path) -> DiscoveredProject {
    let mut found = DiscoveredProject::default();
    for name in MCP_CONFIGS {
        if let Some(text) = read(&directory.join(name)) {
            found.mcp_configs.extend(mcp_config(name, &text));
        }
    }
    for (name, read_hints) in packages::FILES {
        if let Some(text) = read(&directory.join(name)) {
            let commands = read_hints(&text).into_iter();
            found.commands.extend(commands.map(|command| Hint {
                file: (*name).to_owned(),
                command,
            }));
        }
    }
    for name in packages::PROGRAMS {
        if directory.join(name).is_file() {
            found.commands.push(Hint {
                file: (*name).to_owned(),
                command: start_command(Path::new(name)),
            });
        }
    }
    let mut search = ProjectSearch {
        root: directory,
        entries: 0,
        files: 0,
        found: &mut found,
    };
    search.directory(directory, 0);
    found.commands.truncate(MAX_FOUND);
    found
        .frameworks
        .sort_by_key(|one| (one.object.is_none(), one.file.matches('/').count()));
    found.frameworks.truncate(MAX_FOUND);
    found
}

/// A file that is there and is text of a reasonable size.
fn read(path: &Path) -> Option<String> {
    // Pipes and devices would be waited for.
    if !path.is_file() {
        return None;
    }
    FileInput::File(path.to_owned()).read(MAX_BYTES).ok()
}

/// A file in JSON that lists MCP servers; comments in it are not understood, and then it is told all the same.
fn mcp_config(name: &str, text: &str) -> Option<McpConfigFile> {
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let servers = parsed.as_ref().and_then(|config| {
        let servers = ["mcpServers", "servers"]
            .iter()
            .find_map(|key| config.get(key));
        servers.and_then(Value::as_object)
    });
    if parsed.is_some() && servers.is_none() {
        return None;
    }
    let urls = servers.into_iter().flat_map(|servers| servers.values());
    let listens = urls
        .filter_map(|server| server.get("url").and_then(Value::as_str))
        .find_map(loopback);
    Some(McpConfigFile {
        file: name.to_owned(),
        servers: servers.map_or(0, serde_json::Map::len),
        names: servers.map_or_else(Vec::new, |servers| {
            servers.keys().take(MAX_FOUND).cloned().collect()
        }),
        listens,
    })
}

/// The address of a URL on this machine.
fn loopback(url: &str) -> Option<SocketAddr> {
    let rest = url.strip_prefix("http://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.replace("localhost", "127.0.0.1");
    let address: SocketAddr = authority.parse().ok()?;
    address.ip().is_loopback().then_some(address)
}

/// Whether a file may be the code of an agent.
fn is_code(name: &str) -> bool {
    let ends = [".py", ".ts", ".mts", ".js", ".mjs"];
    ends.iter().any(|end| name.ends_with(end))
        && !name.ends_with(".d.ts")
        && !name.starts_with("test_")
}

/// Whether a directory is what `proofhouse run --out` wrote. The documents in it are copies of those that were run.
fn is_campaign(directory: &Path) -> bool {
    directory.join("result.json").is_file() && directory.join("documents").is_dir()
}

struct ProjectSearch<'f> {
    root: &'f Path,
    entries: usize,
    files: usize,
    found: &'f mut DiscoveredProject,
}

impl ProjectSearch<'_> {
    fn directory(&mut self, directory: &Path, depth: usize) {
        let Ok(entries) = std::fs::read_dir(directory) else {
            return;
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                break;
            }
            paths.push(entry.path());
        }
        paths.sort();
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(name) = name.filter(|name| !name.starts_with('.')) else {
                continue;
            };
            // Links may lead out of the project, or around in circles.
            let Ok(kind) = path.symlink_metadata().map(|found| found.file_type()) else {
                continue;
            };
            if kind.is_dir() && is_campaign(&path) {
                continue;
            }
            if kind.is_dir() && depth < MAX_DEPTH && !SKIPPED.contains(&name) {
                self.directory(&path, depth + 1);
            } else if kind.is_file() && is_code(name) {
                self.files += 1;
                if self.files > MAX_FILES {
                    return;
                }
                self.code(&path);
            } else if kind.is_file() && (name.ends_with(".yaml") || name.ends_with(".yml")) {
                self.files += 1;
                if self.files > MAX_FILES {
                    return;
                }
                self.file(&path);
            }
        }
    }

    /// Looks for frameworks in a file of code. What we wrote ourselves is no agent of the project.
    fn code(&mut self, path: &Path) {
        let file = self.relative(path);
        let Some(file) = file.filter(|file| !file.starts_with("proofhouse_agent.")) else {
            return;
        };
        let Some(text) = read(path) else {
            return;
        };
        let is_package = |directory: &str| {
            let root = self.root.join(directory);
            root.join("__init__.py").is_file()
        };
        let found = FrameworkUse::find(&file, &text, is_package);
        self.found.frameworks.extend(found);
    }

    fn file(&mut self, path: &Path) {
        let Some(file) = self.relative(path) else {
            return;
        };
        let Some(text) = read(path) else {
            return;
        };
        if text.lines().any(|line| line.starts_with("oatf:")) {
            let directory = path.parent().and_then(|parent| self.relative(parent));
            let directory = directory.filter(|name| !name.is_empty());
            if let Some(directory) = directory
                && !self.found.documents.contains(&directory)
                && self.found.documents.len() < MAX_FOUND
            {
                self.found.documents.push(directory);
            }
        } else if Bundle::is_meant_by(&text) && self.found.agents.len() < MAX_FOUND {
            let (bundle, findings) = Bundle::read(&text);
            let broken = findings
                .iter()
                .any(|finding| finding.severity == DiagnosticSeverity::Error);
            let agent = bundle.agents().next().filter(|_| !broken);
            self.found.agents.extend(agent.map(|agent| AgentFile {
                file,
                agent: agent.name.clone(),
                model: agent.model.clone(),
            }));
        }
    }

    /// The path in the project, as a file of the project would write it.
    fn relative(&self, path: &Path) -> Option<String> {
        let path = path.strip_prefix(self.root).ok()?.to_str()?;
        Some(path.replace('\\', "/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, name: &str, text: &str) {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    const AGENT: &str = "kind: commonagents.info/v1beta2/agent\nnamespace: n\nname: clerk\n\
        description: d\nprompt: p\nmodel: sim:careful\n";

    #[test]
    fn a_project_is_looked_through() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        write(
            root,
            ".mcp.json",
            r#"{"mcpServers": {"a": {"url": "http://localhost:8931/mcp"}, "b": {"command": "x"}}}"#,
        );
        write(
            root,
            ".vscode/mcp.json",
            "{\n  // mine\n  \"servers\": {}\n}",
        );
        write(root, "mcp.json", r#"{"other": 1}"#);
        write(root, "agents/clerk.yaml", AGENT);
        write(
            root,
            "agents/broken.yaml",
            "kind: commonagents.info/v1beta2/agent\nname: [\n",
        );
        write(root, "node_modules/x/agent.yaml", AGENT);
        write(root, "attacks/one.yaml", "oatf: \"0.1\"\n");
        write(root, "attacks/two.yaml", "oatf: \"0.1\"\n");
        write(root, "results/result.json", "{}");
        write(root, "results/documents/A-001/a.yaml", "oatf: \"0.1\"\n");
        write(root, "agent.py", "");
        let found = detect(root);
        let configs: Vec<_> = found
            .mcp_configs
            .iter()
            .map(|one| (one.file.as_str(), one.servers))
            .collect();
        assert_eq!(configs, [(".mcp.json", 2), (".vscode/mcp.json", 0)]);
        assert_eq!(found.mcp_configs[0].listens, "127.0.0.1:8931".parse().ok());
        assert_eq!(
            found.agents,
            [AgentFile {
                file: "agents/clerk.yaml".to_owned(),
                agent: "clerk".to_owned(),
                model: Some("sim:careful".to_owned()),
            }]
        );
        assert_eq!(found.documents, ["attacks"]);
        assert_eq!(found.commands[0].command, "python agent.py {prompt}");
    }

    #[test]
    fn a_hostile_directory_costs_little() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for number in 0..MAX_FOUND * 2 {
            write(root, &format!("{number}/agent.yaml"), AGENT);
        }
        let deep: String = (0..20).map(|_| "d/").collect();
        write(root, &format!("{deep}agent.yaml"), AGENT);
        std::fs::write(root.join("mcp.json"), [0xff, 0xfe]).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root, root.join("loop")).unwrap();
        let found = detect(root);
        assert_eq!(found.agents.len(), MAX_FOUND);
        assert!(found.mcp_configs.is_empty());
    }
}
