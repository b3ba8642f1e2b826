//! The guard's own documents: found in the attack, silent on the control, on unless turned off, and discreet.

use std::path::Path;

use proofhouse_detect::{Scanner, TraceMessage};
use proofhouse_guard::FindingCode;
use proofhouse_guard::engine::{Passage, Watcher};
use proofhouse_guard::pack::DOCUMENTS;
use proofhouse_oatf::{Direction, Document, load};
use serde_json::json;

use crate::support::{Tried, policy};

fn document(text: &str) -> Document {
    load(text)
        .unwrap_or_else(|errors| panic!("{errors:?}"))
        .document
}

fn control(name: &str) -> Document {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/pack/{name}.twin.yaml"));
    document(&std::fs::read_to_string(path).unwrap())
}

/// What the server of a document sends, and the calls that an agent makes which does what the answers say.
fn traffic(document: &Document) -> Vec<TraceMessage> {
    let phase = &document.attack.execution.actors()[0].phases[0];
    let tools = phase
        .state
        .as_ref()
        .and_then(|state| state["tools"].as_array());
    let tools = tools.unwrap();
    let message = |operation: &str, direction, content| {
        let mut message = TraceMessage::new("mcp", operation, content);
        message.direction = Some(direction);
        message
    };
    let mut all = vec![message(
        "tools/list",
        Direction::Response,
        json!({"tools": tools}),
    )];
    for tool in tools {
        let said = tool.pointer("/responses/0/content").unwrap();
        let result = json!({"name": tool["name"], "arguments": {}, "content": said});
        all.push(message("tools/call", Direction::Response, result));
        // Whoever obeys passes on what it reads.
        let obeys = json!({"name": "read_page", "arguments": {"url": said[0]["text"]}});
        all.push(message("tools/call", Direction::Request, obeys));
    }
    all
}

fn matches(judge: &Document, of: &Document) -> usize {
    let mut judge = judge.clone();
    for indicator in judge.attack.indicators.iter_mut().flatten() {
        indicator.actor = None;
    }
    let scanner = Scanner::builder().add("x", judge).build().unwrap();
    let found = traffic(of);
    found
        .iter()
        .map(|message| scanner.scan(message).len())
        .sum()
}

#[test]
fn every_document_finds_its_attack_and_is_silent_on_its_control() {
    for (name, text) in DOCUMENTS {
        let attack = document(text);
        // What the agent does with a credential is in the labelled cases; its server only asks for one.
        if *name != "credential-in-arguments" {
            assert!(matches(&attack, &attack) > 0, "{name}");
        }
        assert_eq!(matches(&attack, &control(name)), 0, "{name}");
    }
}

#[test]
fn they_watch_by_default_and_only_observe() {
    let directory = tempfile::tempdir().unwrap();
    let watcher = |text: &str| Watcher::load(&policy(text).indicators, directory.path()).unwrap();
    assert!(watcher("policy: 1\nindicators: {pack: false}\n").is_none());
    let mut tried = Tried::watched(policy("policy: 1\n"), None, watcher("policy: 1\n"));
    let secret = "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";
    let arguments = json!({"text": format!("use {secret} at http://127.0.0.1/")});
    assert_eq!(tried.call("post_note", &arguments), Passage::Pass);
    let found = tried.findings();
    let rules: Vec<_> = found.iter().filter_map(|one| one.rule.as_deref()).collect();
    assert_eq!(rules, ["PROOF-GUARD-003-02", "PROOF-GUARD-004-01"]);
    assert!(
        found
            .iter()
            .all(|one| one.code == FindingCode::IndicatorMatched)
    );
    // A finding goes to logs, where a token has no place.
    assert!(
        found.iter().all(|one| !one.message.contains("zQWBuTS")),
        "{found:?}"
    );
    assert!(found[0].message.contains("ghp_…"), "{found:?}");
}
