//! The dashboard in a real browser: see tests/browser/dashboard.mjs for what is checked.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::io::Write as _;
use std::process::Stdio;

use proofhouse_test_support::browser::{Browser, check};
use proofhouse_test_support::wait::until;
use serde_json::{Value, json};

use crate::support::served::{Served, example};

const SECRET: &str = "correct horse battery staple";

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
    let operator = format!("settings: {{engineering/github-pr: {{hook_secret: '{SECRET}'}}}}\n");
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
    let Some(browser) = Browser::find("the dashboard in a browser") else {
        return;
    };
    let served = busy();
    let mut command = browser.command("dashboard.mjs", format!("http://{}", served.api));
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", served.key).unwrap();
    check("dashboard", &child.wait_with_output().unwrap());
}
