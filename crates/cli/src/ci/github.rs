//! The workflow for GitHub Actions.

use std::fmt::Write;

use super::project::Project;
use super::{CiFile, install};

/// Where it goes.
const PATH: &str = ".github/workflows/proofhouse.yml";

/// The workflow; the words in capitals between `@` are filled in.
const TEMPLATE: &str = include_str!("github.yml");

pub(super) fn file(project: &Project) -> CiFile {
    let directory = project.directory.as_deref();
    let prefix = directory
        .map(|directory| format!("{directory}/"))
        .unwrap_or_default();
    let defaults = directory.map(|directory| {
        format!("    defaults:\n      run:\n        working-directory: {directory}\n")
    });
    let mut environment = String::new();
    for name in &project.variables {
        let _ = writeln!(environment, "          {name}: ${{{{ secrets.{name} }}}}");
    }
    let environment = if environment.is_empty() {
        "        # Secrets that proofhouse.yaml names as ${NAME}:\n        # env:\n        #   \
                 NAME: ${{ secrets.NAME }}\n"
            .to_owned()
    } else {
        format!("        env:\n{environment}")
    };
    // Where proofhouse itself is made, another source is another binary.
    let source = match project.source {
        Some(_) => "-${{ hashFiles('Cargo.lock', 'crates/**') }}",
        None => "",
    };
    let text = TEMPLATE
        .replace("@SOURCE@", source)
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@INSTALL@", &install(project, None))
        .replace("    @DEFAULTS@\n", &defaults.unwrap_or_default())
        .replace("        @ENVIRONMENT@\n", &environment)
        .replace("@PREFIX@", &prefix);
    CiFile {
        path: PATH,
        text,
        next: match project.variables.as_slice() {
            [] => None,
            names => Some(format!(
                "the workflow reads {} from the secrets of the repository",
                names.join(", ")
            )),
        },
    }
}
