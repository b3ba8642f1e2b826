//! What a workflow must know of a repository: who hosts it, where the project is in it, which secrets it needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proofhouse_tools::operator::variables::is_name;
use proofhouse_wire::files::FileInput;
use proofhouse_wire::repository::REPOSITORY;

use super::CiHost;
use crate::config;

/// How far up the root of a repository is looked for.
const MAX_UP: usize = 32;
/// How much of a file is read.
const MAX_BYTES: usize = 1 << 20;
/// How many variables a workflow hands over.
const MAX_VARIABLES: usize = 50;

/// What the files that we write say of themselves.
const MARK: &str = "Written by `proofhouse ci init`";

/// A project in a repository.
#[derive(Debug, Default)]
pub struct CiProject {
    /// The root of the repository.
    pub root: PathBuf,
    /// Where the project is in it; nothing at the root.
    pub directory: Option<String>,
    /// Whether there is a `proofhouse.yaml`.
    pub has_config: bool,
    /// The variables of the environment that it names.
    pub variables: Vec<String>,
    /// Where the source of proofhouse is in this repository, if it is there.
    pub source: Option<String>,
    /// The address of the repository of proofhouse, which has the action and the releases; nothing while there is none.
    pub address: Option<String>,
    /// Whether there is a `.gitlab-ci.yml` that we did not write.
    pub has_gitlab_file: bool,
    hosts: Vec<CiHost>,
}

impl CiProject {
    /// Looks at the repository that a directory is in.
    #[must_use]
    pub fn look(directory: &Path) -> Self {
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        let root = directory
            .ancestors()
            .take(MAX_UP)
            .find(|path| path.join(".git").exists());
        let root = root.unwrap_or(&directory).to_owned();
        let inner = directory.strip_prefix(&root).ok().and_then(Path::to_str);
        let inner = inner.filter(|inner| !inner.is_empty() && is_plain(inner));
        let text = read(&directory.join(config::FILE));
        let source = read(&root.join("crates/cli/Cargo.toml"))
            .filter(|text| text.lines().any(|line| line == "name = \"proofhouse\""));
        let remotes = read(&root.join(".git/config")).unwrap_or_default();
        let remote = |word: &str| {
            remotes
                .lines()
                .any(|line| line.contains("url") && line.contains(word))
        };
        let gitlab = root.join(".gitlab-ci.yml");
        let is_ours = read(&gitlab).is_some_and(|text| text.contains(MARK));
        let has_gitlab_file = gitlab.exists() && !is_ours;
        let mut hosts = Vec::new();
        if root.join(".github").exists() || remote("github") {
            hosts.push(CiHost::Github);
        }
        if gitlab.exists() || root.join(".gitlab").exists() || remote("gitlab") {
            hosts.push(CiHost::Gitlab);
        }
        Self {
            directory: inner.map(|inner| inner.replace('\\', "/")),
            has_config: text.is_some(),
            variables: variables(&text.unwrap_or_default()),
            source: source.map(|_| "crates/cli".to_owned()),
            address: REPOSITORY.map(str::to_owned),
            has_gitlab_file,
            hosts,
            root,
        }
    }

    /// Who seems to run the checks of this repository.
    #[must_use]
    pub fn hosts(&self) -> &[CiHost] {
        &self.hosts
    }
}

fn read(path: &Path) -> Option<String> {
    let is_file = path.is_file();
    is_file
        .then(|| FileInput::File(path.to_owned()).read(MAX_BYTES).ok())
        .flatten()
}

/// Whether a path can stand in YAML and in a shell as it is.
fn is_plain(path: &str) -> bool {
    path.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
}

/// The variables that a configuration names as `${NAME}`, outside of comments.
fn variables(text: &str) -> Vec<String> {
    let mut names = BTreeSet::new();
    for line in text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
    {
        for (at, _) in line.match_indices("${") {
            let name = line[at + 2..].split('}').next().unwrap_or_default();
            let is_escaped = line[..at].ends_with('$');
            if is_name(name) && !is_escaped && names.len() < MAX_VARIABLES {
                names.insert(name.to_owned());
            }
        }
    }
    names.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_recognized() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let inner = root.join("agents/clerk");
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(CiProject::look(root).hosts(), []);
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let remote = "[remote \"origin\"]\n\turl = git@gitlab.example:me/mine.git\n";
        std::fs::write(root.join(".git/config"), remote).unwrap();
        let text = "a: ${B_KEY}\n# b: ${NO}\nc: $${NO} ${A_KEY}${B_KEY} ${not a name}\n";
        std::fs::write(inner.join(config::FILE), text).unwrap();
        let project = CiProject::look(&inner);
        assert_eq!(project.hosts(), [CiHost::Gitlab]);
        assert_eq!(project.directory.as_deref(), Some("agents/clerk"));
        assert_eq!(project.variables, ["A_KEY", "B_KEY"]);
        assert!(project.has_config && project.source.is_none());
        std::fs::create_dir_all(root.join(".github")).unwrap();
        assert_eq!(
            CiProject::look(root).hosts(),
            [CiHost::Github, CiHost::Gitlab]
        );
        assert_eq!(CiProject::look(root).directory, None);
    }
}
