//! The dashboard in a real browser: see tests/browser/dashboard.mjs for what is checked.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::io::Write as _;
use std::process::Stdio;

use proofhouse_test_support::browser::{Browser, check};
use proofhouse_test_support::wait::until;
use serde_json::{Value, json};

use crate::support::served::{Served, example};
use crate::support::shop::shop;

const SECRET: &str = "correct horse battery staple";

/// Beside the clerk, whose work needs an approval: an agent whose work always fails.
const DEPOT: &str = r#"---
kind: commonagents.info/v1beta2/tool
namespace: depot
name: scale
description: A broken scale.
actions:
  - name: weigh
    description: Weigh goods.
    parameters: {properties: {amount: {type: integer, description: how much}}}
    execute: {cel: {expression: "{'weight': input.amount / 0}"}}
---
kind: commonagents.info/v1beta2/agent
namespace: depot
name: porter
description: Weighs.
prompt: You weigh.
capabilities: {scale: '*'}
"#;

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
        ("shop.yaml", &format!("{}{DEPOT}", shop("''"))),
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
    work(&served);
    let store = served.path("store.db").display().to_string();
    let run = ["run", "--subject", "sim:careful", "--id", "*-001"];
    let campaign = crate::support::command(&run)
        .args(["--no-config", "--name", "nightly", "--store", &store])
        .output()
        .unwrap();
    assert!(campaign.status.success(), "{campaign:?}");
    served
}

/// Tasks for the browser to work on, which another key began: two that wait for an answer, and two that failed alike.
fn work(served: &Served) {
    let other = served.new_key(&["--name", "starter", "--role", "admin"]);
    let begin = |agent: &str, message: &str| {
        let order = json!({"agent": agent, "message": message});
        let reply = served.ask_as(&other, "POST", "/v1/tasks", Some(&order));
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["id"].as_str().unwrap().to_owned()
    };
    let ended = |task: &str, state: &str| {
        until("task that waits", || {
            (served.get(&format!("/v1/tasks/{task}"))["state"] == state).then_some(())
        });
    };
    for _ in 0..2 {
        ended(&begin("clerk", "Refund money, amount: 3"), "waiting");
        ended(&begin("porter", "Weigh goods, amount: 7"), "idle");
    }
}

/// What the audit log has to say about what was done in the browser.
fn noted(served: &Served) {
    let page = served.get("/v1/audit?limit=200");
    let entries = page["entries"].as_array().unwrap();
    let noted = |action: &str, reason: Option<&str>| {
        entries.iter().any(|one| {
            let entry = &one["entry"];
            let of_session = entry["actor"]["kind"] == "session" && entry["outcome"] == "done";
            let why = entry["detail"]["reason"].as_str();
            entry["action"] == action && of_session && (reason.is_none() || why == reason)
        })
    };
    for (action, reason) in [
        ("task.message", None),
        ("task.review", Some("the customer is right")),
        ("task.review", Some("too often")),
        ("task.interrupt", Some("let me look")),
        ("task.cancel", Some("not needed")),
        ("event.replay", Some("sent too early")),
        ("campaign.start", None),
        ("campaign.cancel", None),
    ] {
        assert!(noted(action, reason), "{action} {reason:?}: {page:#}");
    }
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
    noted(&served);
}
