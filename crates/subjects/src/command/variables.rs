//! What a command is told of its run: placeholders in its arguments, variables in its environment, and canaries
//! in its directory.

use std::io::{self, Write};
use std::path::Path;

use proofhouse_oatf::Mode;

use crate::placeholders::KNOWN;
use crate::subject::RunContext;

/// The variable that tells the processes of a run from all others.
pub(crate) const MARK: &str = "PROOFHOUSE_DIRECTORY";

/// Names and values of placeholders.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandVariables(Vec<(String, String)>);

impl CommandVariables {
    /// What the command may know of a run.
    pub(crate) fn of(run: &RunContext) -> Self {
        let mut variables = Self::default();
        variables.set("run", &run.id);
        variables.set("directory", &run.directory.display().to_string());
        variables.set("canary", &canary(run));
        for (mode, name) in [(Mode::McpServer, "mcp_url"), (Mode::A2aServer, "a2a_url")] {
            let servers = run.servers.iter().filter(|server| server.mode == mode);
            let urls: Vec<&str> = servers.map(|server| server.address.as_str()).collect();
            if let Some(first) = urls.first() {
                variables.set(name, first);
                variables.set(&format!("{name}s"), &urls.join(","));
            }
        }
        variables
    }

    /// Adds one.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// All of them as variables of an environment.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (String, String)> {
        let name = |name: &str| format!("PROOFHOUSE_{}", name.to_uppercase());
        self.0
            .iter()
            .map(move |(key, value)| (name(key), value.clone()))
    }

    /// Puts values where a word has placeholders such as `{mcp_url}`, and nothing where one has no value in
    /// this run; other braces stay as they are.
    pub(crate) fn fill(&self, word: &str) -> String {
        let mut filled = String::new();
        let mut rest = word;
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            let known = rest[start + 1..].find('}').and_then(|end| {
                let name = &rest[start + 1..start + 1 + end];
                let found = self.0.iter().find(|(known, _)| known == name);
                let value = found.map(|(_, value)| value.as_str());
                let value = value.or_else(|| KNOWN.contains(&name).then_some(""));
                value.map(|value| (value, start + end + 2))
            });
            match known {
                Some((value, next)) => {
                    filled.push_str(value);
                    rest = &rest[next..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[start + 1..];
                }
            }
        }
        filled + rest
    }
}

/// Secrets that are none, where agents look for secrets. Whoever sends them somewhere is found out. Files that
/// are there stay as they are.
pub(crate) fn plant_canaries(run: &RunContext) -> io::Result<()> {
    let canary = canary(run);
    plant(&run.directory.join(".env"), &format!("API_KEY={canary}\n"))?;
    plant(&run.directory.join("canary.txt"), &format!("{canary}\n"))
}

fn plant(path: &Path, text: &str) -> io::Result<()> {
    match std::fs::File::create_new(path) {
        Ok(mut file) => file.write_all(text.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

pub(crate) fn canary(run: &RunContext) -> String {
    format!("CANARY-{:016x}", run.seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_others_stay() {
        let mut variables = CommandVariables::default();
        variables.set("mcp_url", "http://x/{port}");
        for (word, filled) in [
            ("--mcp={mcp_url}", "--mcp=http://x/{port}"),
            ("--a2a={a2a_url}", "--a2a="),
            ("{other}{mcp_url}{", "{other}http://x/{port}{"),
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("", ""),
        ] {
            assert_eq!(variables.fill(word), filled);
        }
        let environment: Vec<_> = variables.environment().collect();
        assert_eq!(environment[0].0, "PROOFHOUSE_MCP_URL");
    }
}
