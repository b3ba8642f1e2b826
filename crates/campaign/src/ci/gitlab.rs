//! The job for GitLab CI/CD: a file of its own to be included, or the whole configuration where there is none.

use super::project::CiProject;
use super::{CiFile, all_of, missing_address, releases, script};

/// Where it goes when the repository has no configuration yet.
const ALONE: &str = ".gitlab-ci.yml";
/// Where it goes otherwise.
const INCLUDED: &str = ".gitlab/proofhouse.yml";

/// The job; the words in capitals between `@` are filled in.
const TEMPLATE: &str = include_str!("gitlab.yml");

pub(super) fn file(project: &CiProject) -> CiFile {
    let directory = project.directory.as_deref();
    let prefix = directory
        .map(|directory| format!("{directory}/"))
        .unwrap_or_default();
    let enter = directory.map(|directory| format!("    - cd {directory}\n"));
    let image = if project.source.is_some() {
        "rust:1"
    } else {
        "buildpack-deps:stable-curl"
    };
    let text = TEMPLATE
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@IMAGE@", image)
        .replace("    @INSTALL@\n", &install(project))
        .replace("    @ENTER@\n", &enter.unwrap_or_default())
        .replace("@PREFIX@", &prefix);
    let path = if project.has_gitlab_file {
        INCLUDED
    } else {
        ALONE
    };
    let next = all_of([
        project
            .has_gitlab_file
            .then(|| format!("add to .gitlab-ci.yml: include: [{{local: {INCLUDED}}}]")),
        (!project.variables.is_empty()).then(|| {
            let names = project.variables.join(", ");
            format!("the job reads {names} from the CI/CD variables of the project")
        }),
        missing_address(project, "project"),
    ]);
    CiFile { path, text, next }
}

/// The lines that put the binary into the directory that is cached.
fn install(project: &CiProject) -> String {
    let directory = "$CI_PROJECT_DIR/.proofhouse";
    if let Some(path) = &project.source {
        return format!("    - cargo install --locked --root \"{directory}\" --path {path}\n");
    }
    let version = env!("CARGO_PKG_VERSION");
    let set =
        releases(project).map(|releases| format!("      export PROOFHOUSE_RELEASES={releases}\n"));
    let set = set.unwrap_or_default();
    let script = script("        ");
    format!(
        "    - |\n{set}      export PROOFHOUSE_VERSION={version} PROOFHOUSE_INSTALL_DIR=\"{directory}/bin\"\n      \
         if [ ! -x \"$PROOFHOUSE_INSTALL_DIR/proofhouse\" ]; then (\n{script}      ) fi\n"
    )
}
