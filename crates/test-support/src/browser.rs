//! Opens pages of ours in a real browser; `tests/browser/` says what is checked there.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::{peers, workspace};

/// Where Debian and others put the browser.
const BROWSERS: &[&str] = &[
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

/// A browser that is installed, and what drives it.
#[derive(Debug)]
pub struct Browser {
    peers: PathBuf,
    program: &'static str,
}

impl Browser {
    /// Finds it; says loudly when a part is missing.
    pub fn find(test: &str) -> Option<Self> {
        let peers = peers::installed(test, "browser/node_modules")?;
        let Some(program) = BROWSERS.iter().find(|path| Path::new(path).exists()) else {
            let why = "there is no chromium; on Debian: apt-get install chromium";
            workspace::skipped(test, why);
            return None;
        };
        Some(Self { peers, program })
    }

    /// What checks a page with a script of `tests/browser/`.
    pub fn command(&self, script: &str, page: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(peers::node(&self.peers));
        command
            .arg(workspace::root().join("tests/browser").join(script))
            .args([page.as_ref(), self.peers.as_ref(), self.program.as_ref()]);
        if let Some(screenshots) = workspace::path_setting("PROOFHOUSE_SCREENSHOTS") {
            std::fs::create_dir_all(&screenshots).unwrap();
            command.arg(screenshots);
        }
        command
    }
}

/// Insists that all was well, and tells what was seen.
///
/// # Panics
///
/// If something was not as it should be.
pub fn check(page: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let _ = writeln!(std::io::stderr(), "{page}: {}", said.trim());
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
