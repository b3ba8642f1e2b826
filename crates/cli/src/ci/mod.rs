//! What `proofhouse ci init` writes: a workflow for GitHub Actions, a job for GitLab.

mod github;
mod gitlab;
pub(crate) mod project;

use project::Project;

/// Who runs the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CiHost {
    /// GitHub Actions
    Github,
    /// GitLab CI/CD
    Gitlab,
}

/// A file for a host, relative to the root of the repository.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CiFile {
    pub(crate) path: &'static str,
    pub(crate) text: String,
    /// What is left to do.
    pub(crate) next: Option<String>,
}

/// The file for a host.
pub(crate) fn file(host: CiHost, project: &Project) -> CiFile {
    match host {
        CiHost::Github => github::file(project),
        CiHost::Gitlab => gitlab::file(project),
    }
}

/// The command that makes the binary; `root` is where it goes, if not to the usual place.
fn install(project: &Project, root: Option<&str>) -> String {
    let root = root
        .map(|root| format!(" --root {root}"))
        .unwrap_or_default();
    match &project.source {
        Some(path) => format!("cargo install --locked{root} --path {path}"),
        None => {
            let repository = env!("CARGO_PKG_REPOSITORY");
            format!("cargo install --locked{root} --git {repository} proofhouse")
        }
    }
}
