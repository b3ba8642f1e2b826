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

/// Indicators on what a client says unasked, on its answers, and on what a server asks.
const SAID: &str = r#"
oatf: "0.1"
attack:
  execution: {mode: mcp_server, state: {tools: []}}
  indicators:
    - {id: notice, surface: notifications/cancelled, direction: request, target: reason, tier: boundary_breach, pattern: {contains: id_rsa}}
    - {id: request, surface: elicitation/create, direction: request, target: message, tier: boundary_breach, pattern: {contains: id_rsa}}
"#;

#[test]
fn one_that_earned_it_blocks_what_the_client_says_and_not_what_the_server_says() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    std::fs::write(directory.join("said.yaml"), SAID).unwrap();
    let clean = |operation: &str| {
        format!(
            r#"{{"protocol":"mcp","operation":"{operation}","direction":"request","content":{{"reason":"x","message":"x"}}}}"#
        )
    };
    let control = format!(
        "{}\n{}\n",
        clean("notifications/cancelled"),
        clean("elicitation/create")
    );
    std::fs::write(directory.join("control.jsonl"), control).unwrap();
    let text = "policy: 1\nindicators:\n  pack: false\n  documents: [said.yaml]\n  enforce:\n    - {indicator: notice, control: control.jsonl}\n    - {indicator: request, control: control.jsonl}\n";
    let watcher = Watcher::load(&policy(text).indicators, directory).unwrap();
    let mut tried = Tried::watched(policy("policy: 1\n"), None, watcher);
    let cancelled = |text: &str| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": text}});
    assert_eq!(tried.client_says(&cancelled("half")), Passage::Pass);
    let judged = tried.client_says(&cancelled("~/.ssh/id_rsa"));
    assert_eq!(judged, Passage::Instead(Vec::new()));
    let decisions = |tried: &Tried| -> Vec<GuardDecision> {
        let found = tried.findings();
        found.iter().map(|finding| finding.decision).collect()
    };
    assert_eq!(decisions(&tried), [GuardDecision::Block]);
    // What the server says passes, and the finding says so.
    let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {"message": "~/.ssh/id_rsa", "requestedSchema": {}}});
    assert_eq!(tried.server_says(&ask), Passage::Pass);
    assert_eq!(
        tried.server_says(&cancelled("~/.ssh/id_rsa")),
        Passage::Pass
    );
    assert_eq!(decisions(&tried), [GuardDecision::Log; 2]);
}
