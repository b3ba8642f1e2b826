//! Exposure in campaigns: an agent that never meets the payload has resisted nothing, and documents that cannot meet
//! an agent are left out.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;

use serde_json::Value;

use crate::support;

/// An agent that looks at the tools of its server and does nothing with them.
const LISTER: &str = concat!(
    include_str!("support/mcp_client.py"),
    r#"
initialize()
call(2, "tools/list", {})
print("I looked.")
"#
);

fn run(directory: &Path, more: &[&str]) -> support::Ran {
    std::fs::write(directory.join("lister.py"), LISTER).unwrap();
    let command = format!(
        "python3 {} {{prompt}}",
        directory.join("lister.py").display()
    );
    let args = [
        "run",
        "--no-config",
        "--no-preflight",
        "--format",
        "json",
        "--command",
        &command,
    ];
    support::run(&[&args, more].concat())
}

#[test]
fn who_never_meets_the_payload_has_resisted_nothing() {
    let directory = tempfile::tempdir().unwrap();
    // The payload is in what the tool answers, and it is never called.
    let ran = run(directory.path(), &["--id", "PROOF-009"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let result = support::json(&ran.stdout);
    let runs = result["runs"].as_array().unwrap();
    let attack = runs.iter().find(|run| run["twin"] == false).unwrap();
    assert_eq!(attack["outcome"], "inconclusive", "{attack}");
    assert_eq!(attack["reached"], false);
    // Here it is in the description of the tool, which it has read.
    let ran = run(directory.path(), &["--id", "PROOF-001"]);
    let result = support::json(&ran.stdout);
    let runs = result["runs"].as_array().unwrap();
    let attack = runs.iter().find(|run| run["twin"] == false).unwrap();
    assert_eq!(attack["conditions"]["delivered"]["held"], true, "{attack}");
    // It could not say the code that stood there, nor did it do the task without the attack.
    assert_eq!(attack["outcome"], "inconclusive", "{attack}");
    assert_eq!(attack["reason"], "channel_not_read", "{attack}");
    assert_eq!(attack["conditions"]["alive"]["held"], false, "{attack}");
}

#[test]
fn documents_whose_actors_cannot_meet_the_subject_are_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let modes = support::run(&[
        "scenarios",
        "list",
        "--mode",
        "ag_ui_client",
        "--format",
        "json",
    ]);
    let listed = support::json(&modes.stdout);
    let frontend = listed[0]["id"].as_str().unwrap().to_owned();
    let ran = run(directory.path(), &["--id", &frontend, "--id", "PROOF-001"]);
    assert!(ran.stderr.contains("Skipped 1 attack"), "{}", ran.stderr);
    let result = support::json(&ran.stdout);
    let of_frontend = |run: &&Value| run["document"] == frontend.as_str();
    assert_eq!(
        result["runs"]
            .as_array()
            .unwrap()
            .iter()
            .filter(of_frontend)
            .count(),
        0
    );
    let ran = run(directory.path(), &["--id", &frontend]);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("no attack fits this agent"),
        "{}",
        ran.stderr
    );
}
