//! Indicators of threat documents observe, and block only where they earned it.

use std::path::Path;

use proofhouse_guard::engine::{Passage, Watcher};
use proofhouse_guard::policy::IndicatorPolicy;
use proofhouse_guard::{FindingCode, GuardDecision};
use serde_json::json;

use crate::support::{Tried, policy, refusal};

const DOCUMENT: &str = r#"
oatf: "0.1"
attack:
  execution: {mode: mcp_server, state: {tools: []}}
  indicators:
    - {id: breach, surface: tools/call, direction: request, target: arguments, tier: boundary_breach, pattern: {contains: id_rsa}}
    - {id: read, surface: tools/call, direction: response, target: content, tier: local_action, pattern: {contains: id_rsa}}
    - {id: seen, surface: tools/call, direction: request, target: arguments, tier: ingested, pattern: {contains: id_rsa}}
    - {id: bare, surface: tools/call, direction: request, target: arguments, pattern: {contains: id_rsa}}
"#;

const SILENT: &str = r#"{"protocol":"mcp","operation":"tools/call","direction":"request","content":{"name":"read","arguments":{"path":"notes.txt"}}}"#;
const LOUD: &str = r#"{"protocol":"mcp","operation":"tools/call","direction":"request","content":{"name":"read","arguments":{"path":"~/.ssh/id_rsa"}}}"#;
const OTHER: &str =
    r#"{"protocol":"mcp","operation":"tools/list","direction":"request","content":{}}"#;

fn indicators(directory: &Path, enforce: Option<(&str, &str)>) -> IndicatorPolicy {
    std::fs::write(directory.join("attack.yaml"), DOCUMENT).unwrap();
    let mut text = "policy: 1\nindicators:\n  pack: false\n  documents: [attack.yaml]\n".to_owned();
    if let Some((indicator, control)) = enforce {
        std::fs::write(directory.join("control.jsonl"), format!("{control}\n")).unwrap();
        text.push_str(&format!(
            "  enforce:\n    - {{indicator: {indicator}, control: control.jsonl}}\n"
        ));
    }
    policy(&text).indicators
}

#[test]
fn they_observe_by_default() {
    let directory = tempfile::tempdir().unwrap();
    let watcher = Watcher::load(&indicators(directory.path(), None), directory.path()).unwrap();
    let mut tried = Tried::watched(policy("policy: 1\n"), None, watcher);
    assert_eq!(
        tried.call("read", &json!({"path": "~/.ssh/id_rsa"})),
        Passage::Pass
    );
    let found = tried.findings();
    assert_eq!(found.len(), 3);
    assert!(
        found
            .iter()
            .all(|one| one.code == FindingCode::IndicatorMatched
                && one.decision == GuardDecision::Log)
    );
    assert_eq!(found[0].rule.as_deref(), Some("breach"));
}

#[test]
fn one_that_earned_it_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let policies = indicators(directory.path(), Some(("breach", SILENT)));
    let watcher = Watcher::load(&policies, directory.path()).unwrap();
    let mut tried = Tried::watched(policy("policy: 1\n"), None, watcher);
    assert!(refusal(&tried.call("read", &json!({"path": "~/.ssh/id_rsa"}))).contains("breach"));
    assert_eq!(
        tried.call("read", &json!({"path": "notes.txt"})),
        Passage::Pass
    );
}

#[test]
fn others_are_refused_with_a_reason() {
    for (indicator, control, reason) in [
        ("seen", SILENT, "its tier is ingested"),
        ("bare", SILENT, "its tier is not given"),
        ("read", SILENT, "it looks at answers"),
        ("none", SILENT, "no document has an indicator `none`"),
        ("breach", LOUD, "it matches message 1 of its control"),
        ("breach", OTHER, "its silence shows nothing"),
        ("breach", "not a trace", "cannot be read"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let policies = indicators(directory.path(), Some((indicator, control)));
        let error = Watcher::load(&policies, directory.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{indicator}: {error}");
    }
}
