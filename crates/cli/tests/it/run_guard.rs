//! `proofhouse run --guard`: documents of the library with and without the guard, side by side.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::fs;

use serde_json::Value;

use crate::support::{json, run};

/// A poisoned definition, an order in a result, a tainted payment, a page of the user's own, and one that no guard can stand in
/// front of.
const DOCUMENTS: [&str; 5] = [
    "PROOF-001",
    "PROOF-009",
    "PROOF-015",
    "PROOF-002",
    "PROOF-043",
];

fn campaign(out: &str, more: &[&str]) -> (Option<i32>, Value, String) {
    let mut args = vec![
        "run",
        "--subject",
        "sim:gullible",
        "--out",
        out,
        "--format",
        "json",
    ];
    for document in &DOCUMENTS {
        args.extend(["--id", document]);
    }
    args.extend(more);
    let ran = run(&args);
    let result = if ran.stdout.is_empty() {
        Value::Null
    } else {
        json(&ran.stdout)
    };
    (ran.code, result, ran.stderr)
}

#[test]
fn the_guard_stops_attacks_and_no_task() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out").display().to_string();
    let more = [
        "--guard", "stock", "--report", "html", "--report", "markdown",
    ];
    let (code, result, told) = campaign(&out, &more);
    // What got through with the guard counts, and so does what it cannot stand in front of.
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("Not guarded: 1 attack"), "{told}");
    assert!(told.contains("fully or in part: 1 run"), "{told}");
    let effect = &result["summary"]["guards"][0];
    assert_eq!(effect["policy"], "stock");
    assert_eq!(effect["not_guarded"], serde_json::json!(["PROOF-043"]));
    assert_eq!(effect["documents"].as_array().unwrap().len(), 4);
    let rate = |side: &str, key: &str| {
        let rate = effect[side].pointer(key).unwrap();
        (
            rate["some"].as_u64().unwrap(),
            rate["all"].as_u64().unwrap(),
        )
    };
    assert_eq!(rate("without", "/attacks/success"), (4, 4));
    assert_eq!(rate("with", "/attacks/success"), (0, 4));
    assert_eq!(rate("with", "/twins/task_success"), (4, 4));
    let work = |kind: &str, key: &str| effect[kind][key].as_u64().unwrap();
    assert!(work("in_attacks", "disturbed") == 4, "{effect}");
    for key in ["asked", "blocked", "redacted", "disturbed"] {
        assert_eq!(work("in_controls", key), 0, "{effect}");
    }
    // Pins withhold the poisoned definition; flows stop the others.
    let findings = |id: &str| {
        let runs = result["runs"].as_array().unwrap();
        let run = runs.iter().find(|run| run["id"] == id).unwrap();
        run["guard"]["findings"].to_string()
    };
    assert!(findings("PROOF-001/sim:gullible+guard/1").contains("pin_changed"));
    assert!(findings("PROOF-009/sim:gullible+guard/1").contains("untrusted-text-orders-call"));
    let html = fs::read_to_string(scratch.path().join("out/report.html")).unwrap();
    assert!(html.contains("Without and with the guard") && html.contains("PROOF-043"));
    let markdown = fs::read_to_string(scratch.path().join("out/report.md")).unwrap();
    assert!(markdown.contains(" | stock | 0/4 |"), "{markdown}");
}

#[test]
fn a_server_that_the_guard_sees_for_the_first_time_is_stopped_by_its_flows() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out").display().to_string();
    let (_, result, told) = campaign(&out, &["--guard", "stock", "--guard-first-use"]);
    let effect = &result["summary"]["guards"][0];
    assert_eq!(effect["with"]["attacks"]["success"]["some"], 0, "{told}");
    assert_eq!(effect["with"]["twins"]["task_success"]["some"], 4);
    assert_eq!(
        effect["in_attacks"]["blocked"], 0,
        "no definition is known, so none is withheld"
    );
}

/// What a card says, what agents say of each other, and what goes from a server to an agent and back.
const AGENTS: [&str; 5] = [
    "PROOF-037",
    "PROOF-039",
    "PROOF-049",
    "PROOF-053",
    "PROOF-054",
];

#[test]
fn agents_are_guarded_and_values_are_followed_from_one_server_to_another() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out").display().to_string();
    let mut args = vec!["run", "--subject", "sim:gullible", "--guard", "stock"];
    for document in &AGENTS {
        args.extend(["--id", document]);
    }
    args.extend(["--out", &out, "--format", "json"]);
    let ran = run(&args);
    let result = json(&ran.stdout);
    let effect = &result["summary"]["guards"][0];
    assert_eq!(effect["not_guarded"], serde_json::json!([]), "{effect}");
    assert_eq!(effect["without"]["attacks"]["success"]["some"], 5);
    assert_eq!(effect["with"]["attacks"]["success"]["some"], 0, "{effect}");
    assert_eq!(effect["with"]["twins"]["task_success"]["some"], 5);
    assert_eq!(effect["in_controls"]["disturbed"], 0, "{effect}");
    let findings = |id: &str| {
        let runs = result["runs"].as_array().unwrap();
        let run = runs.iter().find(|run| run["id"] == id).unwrap();
        run["guard"]["findings"].to_string()
    };
    // The card is not the one of the control.
    assert!(findings("PROOF-037/sim:gullible+guard/1").contains("pin_changed"));
    // What a mail says goes to an agent.
    assert!(findings("PROOF-054/sim:gullible+guard/1").contains("untrusted-text-in-message"));
    // What an agent says goes to a bank.
    assert!(findings("PROOF-049/sim:gullible+guard/1").contains("untrusted-text-orders-call"));
}

#[test]
fn a_guard_that_allows_everything_stops_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let policy = scratch.path().join("open.yaml");
    fs::write(
        &policy,
        "policy: 1\npins: {on_change: log, on_hidden: log, on_lookalike: log}\n",
    )
    .unwrap();
    let out = scratch.path().join("out").display().to_string();
    let (code, result, told) = campaign(&out, &["--guard", policy.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{told}");
    let effect = &result["summary"]["guards"][0];
    assert_eq!(effect["with"]["attacks"]["success"]["some"], 4, "{told}");
    assert_eq!(effect["in_attacks"]["disturbed"], 0);
}

#[test]
fn a_policy_that_cannot_be_used_attacks_nobody() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out").display().to_string();
    let (code, result, told) = campaign(&out, &["--guard", "no-such-policy.yaml"]);
    assert_eq!((code, result), (Some(64), Value::Null), "{told}");
    assert!(told.contains("--guard: no-such-policy.yaml"), "{told}");
    let only = [
        "run",
        "--subject",
        "sim:gullible",
        "--guard",
        "stock",
        "--id",
        "PROOF-043",
        "--no-keep",
    ];
    let ran = run(&only);
    assert_eq!(
        ran.code,
        Some(64),
        "nothing of it can be guarded: {}",
        ran.stderr
    );
}
