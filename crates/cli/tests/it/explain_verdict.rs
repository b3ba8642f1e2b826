//! `proofhouse explain-verdict` from outside: filters, paths, operators and reasons.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, helpers included")]

use std::fs;

use serde_json::{Value, json};

use crate::support::{Ran, json, run, run_with_input};

const TRACE: &str = "examples/traces/poisoned-tool.jsonl";
const RULES: &str = "examples/documents/poisoned-tool.yaml";

/// Explains one indicator, written as it stands in a document, over messages on stdin.
fn explain(indicator: &str, messages: &[Value], more: &[&str]) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    let rules = directory.path().join("rules.yaml");
    fs::write(
        &rules,
        format!("oatf: \"0.1\"\nattack:\n  id: CASE-001\n  execution: {{mode: mcp_server, state: {{tools: []}}}}\n  indicators:\n{indicator}"),
    )
    .unwrap();
    let trace: String = messages
        .iter()
        .map(|message| format!("{message}\n"))
        .collect();
    let rules = rules.to_str().unwrap();
    let mut ran = run_with_input(
        &[&["explain-verdict", "-", "--rules", rules], more].concat(),
        trace.as_bytes(),
    );
    ran.stdout = ran.stdout.replace(rules, "rules.yaml");
    ran
}

fn message(operation: &str, direction: &str, content: &Value) -> Value {
    json!({"protocol": "mcp", "operation": operation, "direction": direction, "content": content})
}

#[test]
fn the_example_is_explained() {
    let ran = run(&["explain-verdict", TRACE, "--rules", RULES]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!("explain-verdict-human", ran.stdout);
}

#[test]
fn programs_get_the_same() {
    let ran = run(&[
        "explain-verdict",
        TRACE,
        "--rules",
        RULES,
        "--indicator",
        "EXAMPLE-001-01",
        "--format",
        "json",
    ]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!("explain-verdict-json", ran.stdout);
}

#[test]
fn every_way_of_detection_is_explained() {
    let call = |content: Value| message("tools/call", "request", &content);
    for (name, indicator, messages) in [
        (
            "written-out",
            "    - target: a[*]\n      pattern:\n        condition:\n          starts_with: x\n          regex: y$\n",
            vec![call(json!({"a": ["xy", "xz", 1, 2, "zy"]}))],
        ),
        (
            "equality",
            "    - target: n\n      pattern:\n        condition: 3\n",
            vec![call(json!({"n": 4}))],
        ),
        (
            "absence",
            "    - target: a.b\n      pattern: {exists: false}\n",
            vec![call(json!({})), call(json!({"a": {"b": null}}))],
        ),
        (
            "expression",
            "    - target: \"\"\n      expression:\n        cel: size > 2\n        variables: {size: a.size}\n",
            vec![
                call(json!({"a": {"size": 3}})),
                call(json!({"a": {"size": "x"}})),
            ],
        ),
        (
            "semantic",
            "    - target: text\n      semantic: {intent: leak the key}\n",
            vec![call(json!({"text": "-----BEGIN"}))],
        ),
        (
            "all-dropped",
            "    - surface: tools/list\n      actor: default\n      target: text\n      pattern: {contains: x}\n",
            vec![
                call(json!({})),
                message("tools/list", "response", &json!({})),
                json!({"protocol": "a2a", "operation": "x", "content": 1}),
            ],
        ),
    ] {
        let ran = explain(indicator, &messages, &[]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{name}");
        insta::assert_snapshot!(format!("explain-verdict-{name}"), ran.stdout);
    }
}

#[test]
fn long_traces_are_counted_and_shown_in_part() {
    let messages: Vec<Value> = (0..1000)
        .map(|n| {
            message(
                if n % 2 == 0 { "tools/call" } else { "ping" },
                "request",
                &json!({"n": n}),
            )
        })
        .collect();
    let indicator = "    - surface: tools/call\n      target: n\n      pattern: {gte: 990}\n";
    let ran = explain(indicator, &messages, &["--limit", "2"]);
    assert!(ran.stdout.lines().count() < 50, "{}", ran.stdout);
    for words in [
        "dropped  500 of 1000 messages",
        "by surface: 500, lines 2, 4, …",
        "matched: 5\n",
        "and 3 more",
        "not_matched: 495",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    let report = json(&explain(indicator, &messages, &["--limit", "0", "--format", "json"]).stdout);
    let kept = &report["indicators"][0]["kept"];
    assert_eq!(kept["count"], 500);
    assert_eq!(kept["results"]["matched"], json!({"count": 5, "first": []}));
}

#[test]
fn unknown_indicators_are_guessed() {
    let ran = run(&[
        "explain-verdict",
        TRACE,
        "--rules",
        RULES,
        "--indicator",
        "EXAMPLE-001-1",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(64), ""));
    assert!(
        ran.stderr.contains("did you mean `EXAMPLE-001-01`?"),
        "{}",
        ran.stderr
    );
    for args in [
        &["explain-verdict", TRACE][..],
        &["explain-verdict", "examples", "--rules", RULES],
        &["explain-verdict", "no/such/trace", "--rules", RULES],
        &["explain-verdict", TRACE, "--rules", RULES, "--limit", "-1"],
    ] {
        assert_eq!(run(args).code, Some(64), "{args:?}");
    }
}

#[test]
fn what_could_not_be_read_is_said() {
    let indicator = "    - target: n\n      pattern: {gte: 990}\n";
    let ran = explain(
        indicator,
        &[
            json!("no message"),
            message("x", "request", &json!({"n": 999})),
        ],
        &[],
    );
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("1 bad line was skipped"),
        "{}",
        ran.stderr
    );
    let ran = explain(
        indicator,
        &[
            message("x", "request", &json!({"n": 999})),
            json!({"proofhouse_trace": 7}),
        ],
        &[],
    );
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.stdout.contains("matched: 1 of 1 kept message matched"),
        "{}",
        ran.stdout
    );
}
