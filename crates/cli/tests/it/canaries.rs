//! Canaries as a user meets them: fresh in every run, found in any form, searched for in traces, and told when they are
//! wrong.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::documents::POISONED;

const LITERAL: &str = "CANARY-KEY-93b4aa10";

/// A document with a canary that indicators ask for, and its twin.
fn documents() -> [(&'static str, String); 2] {
    let attack = POISONED
        .replace("text: \"CANARY-KEY-1\"", &format!("text: \"{LITERAL}\""))
        .replace(
            "{contains: CANARY-KEY}",
            &format!("{{contains: {LITERAL}}}, x-proofhouse: {{canary: {LITERAL}}}"),
        )
        .replace(
            "twin: poisoned.twin.yaml}",
            &format!("twin: poisoned.twin.yaml, canaries: [{LITERAL}]}}"),
        );
    let (before, rest) = attack.split_once(" Before you call").unwrap();
    let (_, after) = rest.split_once("note parameter.").unwrap();
    let twin = format!("{before}{after}")
        .replace("T-001", "T-TWIN-001")
        .replace("twin: poisoned.twin.yaml", "success: {tool: get_weather}");
    [("poisoned.yaml", attack), ("poisoned.twin.yaml", twin)]
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in documents() {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn proofhouse(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proofhouse"));
    command.current_dir(directory).args(arguments);
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(path: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "a file of this test")]
    let text = std::fs::read_to_string(path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn told(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}

/// The values of the canary in the runs of a result, by the id of the run.
fn values(result: &Path) -> Vec<(String, String)> {
    let result: Value = serde_json::from_str(&text(result)).unwrap();
    let runs = result["runs"].as_array().unwrap().iter();
    let value = |run: &Value| run["canaries"][LITERAL].as_str().unwrap().to_owned();
    runs.map(|run| (run["id"].as_str().unwrap().to_owned(), value(run)))
        .collect()
}

#[test]
fn every_run_has_canaries_of_its_own() {
    let directory = directory();
    let path = directory.path();
    let arguments = [
        "run",
        "poisoned.yaml",
        "--subject",
        "sim:gullible",
        "--repeats",
        "2",
    ];
    let output = proofhouse(path, &[&arguments[..], &["--out", "one"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let found = values(&path.join("one/result.json"));
    // Two attacks and the control.
    assert_eq!(found.len(), 3, "{found:?}");
    let mut different: Vec<&String> = found.iter().map(|(_, value)| value).collect();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 3, "{found:?}");
    for (id, value) in &found {
        assert!(
            value.starts_with("CANARY-KEY-") && value != LITERAL,
            "{id}: {value}"
        );
    }
    let result: Value = serde_json::from_str(&text(&path.join("one/result.json"))).unwrap();
    for run in result["runs"].as_array().unwrap() {
        let trace = text(&path.join("one").join(run["trace"].as_str().unwrap()));
        // The header says what became of it.
        let (header, messages) = trace.split_once('\n').unwrap();
        assert!(header.contains(LITERAL), "{header}");
        assert!(!messages.contains(LITERAL), "{}", run["id"]);
        if run["twin"] == false {
            assert_eq!(run["outcome"], "exploited", "{run}");
            assert!(trace.contains(run["canaries"][LITERAL].as_str().unwrap()));
        }
    }
    // The same seed makes the same ones, another makes others.
    for (seed, same) in [("0", true), ("9", false)] {
        let out = format!("seed-{seed}");
        let output = proofhouse(
            path,
            &[&arguments[..], &["--out", &out, "--seed", seed]].concat(),
        );
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        assert_eq!(values(&path.join(out).join("result.json")) == found, same);
    }
    // Recorded runs are judged by the values that they had.
    let output = proofhouse(path, &["replay", "one", "--fail-on-change"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn an_attack_tells_its_seed_and_its_canaries() {
    let directory = directory();
    let attack = |seed: &[&str]| -> Value {
        let arguments = [
            "attack",
            "poisoned.yaml",
            "--max-session",
            "100ms",
            "--format",
            "json",
        ];
        let output = proofhouse(directory.path(), &[&arguments, seed].concat());
        // Nobody came, so nothing is proved.
        assert_eq!(output.status.code(), Some(2), "{}", told(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let first = attack(&[]);
    let seed = first["seed"].as_u64().unwrap().to_string();
    assert!(first["canaries"][LITERAL].is_string(), "{first}");
    let again = attack(&["--seed", &seed]);
    assert_eq!(
        (&again["seed"], &again["canaries"]),
        (&first["seed"], &first["canaries"])
    );
    assert_ne!(
        attack(&["--seed", "1"])["canaries"],
        attack(&["--seed", "2"])["canaries"]
    );
}

#[test]
fn what_is_wrong_with_canaries_is_told_with_its_place() {
    let directory = directory();
    let path = directory.path();
    let [(_, attack), _] = documents();
    for (from, to, expected) in [
        (
            format!("canaries: [{LITERAL}]"),
            "canaries: [CANARY-OTHER-00000000]".to_owned(),
            "XP-002",
        ),
        (
            format!("canaries: [{LITERAL}]"),
            "canaries: 3".to_owned(),
            "XP-002",
        ),
        (
            format!("{{canary: {LITERAL}}}"),
            "{canary: abc}".to_owned(),
            "XP-001",
        ),
        (
            format!("{{canary: {LITERAL}}}"),
            "{canary: [3]}".to_owned(),
            "XP-001",
        ),
    ] {
        std::fs::write(path.join("wrong.yaml"), attack.replace(&from, &to)).unwrap();
        let output = proofhouse(path, &["validate", "wrong.yaml", "--format", "json"]);
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let shown = found.to_string();
        assert!(
            shown.contains(expected) && shown.contains("\"line\""),
            "{shown}"
        );
        let output = proofhouse(path, &["run", "wrong.yaml", "--subject", "sim:careful"]);
        assert_ne!(output.status.code(), Some(0), "{}", told(&output));
        assert!(
            told(&output).contains("x-proofhouse.canar"),
            "{}",
            told(&output)
        );
    }
    let output = proofhouse(path, &["validate", "poisoned.yaml", "poisoned.twin.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn traces_are_searched_for_canaries() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    // Base64 of `key=CANARY-KEY-93b4aa10`.
    let hidden = "a2V5PUNBTkFSWS1LRVktOTNiNGFhMTA=";
    let line =
        json!({"protocol": "mail", "operation": "send", "content": {"body": {"text": hidden}}});
    std::fs::write(path.join("trace.jsonl"), format!("{line}\n")).unwrap();
    let arguments = ["scan", "trace.jsonl", "--canary", "CANARY-OTHER-00000000"];
    let output = proofhouse(path, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let output = proofhouse(
        path,
        &[&arguments[..], &["--canary", LITERAL, "--format", "json"]].concat(),
    );
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let document = &found["traces"][0]["documents"][0];
    assert_eq!(
        (&document["path"], &document["result"]),
        (&json!("canary"), &json!("exploited"))
    );
    assert_eq!(document["indicators"][0]["result"], "not_matched");
    let evidence = &document["indicators"][1]["evidence"][0];
    assert_eq!(evidence["path"], "body.text");
    assert_eq!(evidence["reason"], "base64 of CANARY-KEY-93b4aa10");
    for format in ["human", "sarif"] {
        let output = proofhouse(
            path,
            &[
                "scan",
                "trace.jsonl",
                "--canary",
                LITERAL,
                "--format",
                format,
            ],
        );
        assert_eq!(output.status.code(), Some(1));
        assert!(
            told(&output).contains("base64 of CANARY-KEY-93b4aa10"),
            "{}",
            told(&output)
        );
    }
    let output = proofhouse(
        path,
        &["explain-verdict", "trace.jsonl", "--canary", LITERAL],
    );
    assert!(
        told(&output).contains("holds    canary"),
        "{}",
        told(&output)
    );
    let output = proofhouse(path, &["scan", "trace.jsonl", "--canary", "abc"]);
    assert_eq!(output.status.code(), Some(64), "{}", told(&output));
    let output = proofhouse(path, &["scan", "trace.jsonl"]);
    assert_eq!(output.status.code(), Some(64), "{}", told(&output));
}
