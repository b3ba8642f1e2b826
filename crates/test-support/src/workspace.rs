//! Where things lie in this repository, what the environment says to tests, and how one says that it is skipped.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The directory of the workspace. Tests run in that of their package.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A switch of the tests in the environment, if it is set to something.
pub fn setting(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the tests' own switches")]
    let value = std::env::var(name).ok();
    value.filter(|value| !value.is_empty())
}

/// A switch that names a file or a directory. It is set in the directory of the workspace.
pub fn path_setting(name: &str) -> Option<PathBuf> {
    setting(name).map(|value| root().join(value))
}

/// Says loudly that a test is skipped, and why.
pub fn skipped(test: &str, why: &str) {
    // Not with `eprintln!`, which is only heard when a test fails.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
}

/// The directory of the public vectors, or one in it; says loudly when it is not there.
pub fn vectors(test: &str, directory: &str) -> Option<PathBuf> {
    let path = root().join("../shared/vectors").join(directory);
    if !path.is_dir() {
        skipped(test, "../shared/vectors is not here");
        return None;
    }
    Some(path)
}
