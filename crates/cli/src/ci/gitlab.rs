//! The job for GitLab CI/CD: a file of its own to be included, or the whole configuration where there is none.

use std::fmt::Write;

use super::project::Project;
use super::{CiFile, install};

/// Where it goes when the repository has no configuration yet.
const ALONE: &str = ".gitlab-ci.yml";
/// Where it goes otherwise.
const INCLUDED: &str = ".gitlab/proofhouse.yml";

/// The job; the words in capitals between `@` are filled in.
const TEMPLATE: &str = include_str!("gitlab.yml");

pub(super) fn file(project: &Project) -> CiFile {
    let directory = project.directory.as_deref();
    let prefix = directory
        .map(|directory| format!("{directory}/"))
        .unwrap_or_default();
    let enter = directory.map(|directory| format!("    - cd {directory}\n"));
    let install = install(project, Some("\"$CI_PROJECT_DIR/.proofhouse\""));
    // Where proofhouse itself is made, another source is another binary.
    let install = match project.source {
        Some(_) => install,
        None => format!("test -x .proofhouse/bin/proofhouse || {install}"),
    };
    let text = TEMPLATE
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@INSTALL@", &install)
        .replace("    @ENTER@\n", &enter.unwrap_or_default())
        .replace("@PREFIX@", &prefix);
    let mut next = String::new();
    let path = if project.has_gitlab_file {
        let _ = write!(
            next,
            "add to .gitlab-ci.yml: include: [{{local: {INCLUDED}}}]"
        );
        INCLUDED
    } else {
        ALONE
    };
    if !project.variables.is_empty() {
        let and = if next.is_empty() { "" } else { "; " };
        let names = project.variables.join(", ");
        let _ = write!(
            next,
            "{and}the job reads {names} from the CI/CD variables of the project"
        );
    }
    CiFile {
        path,
        text,
        next: Some(next).filter(|next| !next.is_empty()),
    }
}
