//! What `proofhouse ci init` writes: a workflow for GitHub Actions, a job for GitLab. They download a release, pinned to the
//! version of the program that writes them, and never compile.

mod github;
mod gitlab;
mod project;

pub use project::CiProject;

/// Downloads a release and checks it; the action of the repository runs the same file.
const INSTALL: &str = include_str!("../../../../scripts/install");

/// Who runs the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CiHost {
    /// GitHub Actions.
    Github,
    /// GitLab CI/CD.
    Gitlab,
}

impl CiHost {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Github, Self::Gitlab];
}

/// A file for a host, relative to the root of the repository.
#[derive(Debug, PartialEq, Eq)]
pub struct CiFile {
    /// Where it goes.
    pub path: &'static str,
    /// What is in it.
    pub text: String,
    /// What is left to do.
    pub next: Option<String>,
}

/// The file for a host.
#[must_use]
pub fn file(host: CiHost, project: &CiProject) -> CiFile {
    match host {
        CiHost::Github => github::file(project),
        CiHost::Gitlab => gitlab::file(project),
    }
}

/// Where the releases are, if the repository of proofhouse has an address.
fn releases(project: &CiProject) -> Option<String> {
    let address = project.address.as_deref()?;
    Some(format!(
        "{}/releases/download",
        address.trim_end_matches('/')
    ))
}

/// The script that installs a release, each line behind this indentation.
fn script(indent: &str) -> String {
    let lines = INSTALL.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| format!("{indent}{line}\n")).collect()
}

/// What is left to do where releases are to be downloaded and the repository of proofhouse has no address.
fn missing_address(project: &CiProject, host: &str) -> Option<String> {
    let is_missing = project.source.is_none() && project.address.is_none();
    is_missing.then(|| {
        format!("before the first run, set the variable PROOFHOUSE_RELEASES of the {host} to the URL of the release archives")
    })
}

/// What is left to do, in one line.
fn all_of(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
