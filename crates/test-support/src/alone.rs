//! Runs a test in a process of its own, for those that look at what all tests of a program share.

use std::process::Command;

/// Tells a test that its process is its own.
const ALONE: &str = "PROOFHOUSE_TEST_ALONE";

/// Whether the test has its process to itself: then it goes on. Where it does not, it is run in a new process,
/// which must pass, and has nothing left to do.
///
/// A test needs this when it counts what a process has open, listens to all that is traced, or the like. `module`
/// is its `module_path!()`, `test` the name of its function.
///
/// # Panics
///
/// If the test fails in its own process.
pub fn is_alone(module: &str, test: &str) -> bool {
    // The first part of the path is the name of the program.
    let module = module.split_once("::").map_or("", |(_, module)| module);
    let name = format!("{module}::{test}");
    #[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
    if std::env::var_os(ALONE).is_some_and(|alone| alone == *name) {
        return true;
    }
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture", "--include-ignored"])
        .env(ALONE, &name)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && said.contains("test result: ok. 1 passed"),
        "{name}, alone: {}\n{said}\n{}",
        ran.status,
        String::from_utf8_lossy(&ran.stderr)
    );
    false
}
