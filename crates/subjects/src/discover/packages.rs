//! Files of packages that hint at how an agent is started. They are suggestions: nothing of them is run.

use serde_json::Value;

/// The names of programs that are often an agent.
pub(crate) const PROGRAMS: &[&str] = &["agent.py", "main.py", "agent.js", "agent.mjs", "index.js"];

/// The scripts of a package that may be the agent.
const SCRIPTS: [&str; 4] = ["agent", "start", "dev", "serve"];

/// Finds commands in the text of a file.
type ReadHints = fn(&str) -> Vec<String>;

/// The files, and how each is read.
pub(crate) const FILES: &[(&str, ReadHints)] = &[
    ("pyproject.toml", of_pyproject),
    ("package.json", of_package),
];

/// The commands that a Python package installs. Its file is read line by line, which is enough to suggest.
fn of_pyproject(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = matches!(line, "[project.scripts]" | "[tool.poetry.scripts]");
        } else if inside && let Some((name, _)) = line.split_once('=') {
            let name = name.trim().trim_matches(['"', '\'']);
            if is_plain(name) {
                commands.push(format!("{name} {{prompt}}"));
            }
        }
    }
    commands
}

fn of_package(text: &str) -> Vec<String> {
    let package: Value = serde_json::from_str(text).unwrap_or_default();
    let known = SCRIPTS
        .iter()
        .filter(|name| package["scripts"][**name].is_string());
    known
        .map(|name| format!("npm run --silent {name} -- {{prompt}}"))
        .collect()
}

/// Whether a name is one of a command, and nothing that a shell or YAML would read otherwise.
fn is_plain(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_become_suggestions() {
        let text = "[project]\nname = \"x\"\n[project.scripts]\nmy-agent = \"a:main\"\n\"b;rm\" = \"b:main\"\n[other]\nc = 1\n";
        assert_eq!(of_pyproject(text), ["my-agent {prompt}"]);
        let text = r#"{"scripts": {"start": "node x", "test": "y", "dev": 1}}"#;
        assert_eq!(of_package(text), ["npm run --silent start -- {prompt}"]);
        assert!(of_package("[").is_empty() && of_package("[]").is_empty());
    }
}
