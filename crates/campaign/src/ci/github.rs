//! The workflow for GitHub Actions.

use std::fmt::Write;

use super::project::CiProject;
use super::{CiFile, all_of, missing_address, releases, script};

/// Where it goes.
const PATH: &str = ".github/workflows/proofhouse.yml";

/// The workflow; the words in capitals between `@` are filled in.
const TEMPLATE: &str = include_str!("github.yml");

pub(super) fn file(project: &CiProject) -> CiFile {
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
    let text = TEMPLATE
        .replace("      @INSTALL@\n", &install(project))
        .replace("    @DEFAULTS@\n", &defaults.unwrap_or_default())
        .replace("        @ENVIRONMENT@\n", &environment)
        .replace("@PREFIX@", &prefix);
    CiFile {
        path: PATH,
        text,
        next: all_of([
            (!project.variables.is_empty()).then(|| {
                let names = project.variables.join(", ");
                format!("the workflow reads {names} from the secrets of the repository")
            }),
            missing_address(project, "repository"),
        ]),
    }
}

/// The step that puts the binary on the path: from source where the source is here, with the action of the repository where
/// that has an address, and with the same script otherwise.
fn install(project: &CiProject) -> String {
    let version = env!("CARGO_PKG_VERSION");
    if let Some(path) = &project.source {
        return format!(
            "      - name: Install proofhouse\n        working-directory: ${{{{ github.workspace }}}}\n        run: |\n          \
             rustup toolchain install stable --profile minimal\n          rustup default stable\n          \
             cargo install --locked --path {path}\n"
        );
    }
    let address = project.address.as_deref();
    let on_github = address.and_then(|address| address.strip_prefix("https://github.com/"));
    if let Some(action) = on_github {
        return format!(
            "      - name: Install proofhouse\n        uses: {action}@v{version}\n        with:\n          run: false\n"
        );
    }
    let releases =
        releases(project).unwrap_or_else(|| "${{ vars.PROOFHOUSE_RELEASES }}".to_owned());
    let script = script("          ");
    format!(
        "      - name: Install proofhouse\n        shell: bash\n        env:\n          PROOFHOUSE_RELEASES: {releases}\n          \
         PROOFHOUSE_VERSION: {version}\n          PROOFHOUSE_INSTALL_DIR: ${{{{ runner.temp }}}}/proofhouse-bin\n        \
         run: |\n{script}          echo \"$PROOFHOUSE_INSTALL_DIR\" >> \"$GITHUB_PATH\"\n"
    )
}
