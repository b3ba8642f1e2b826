//! Evidence shows what was judged, also where no pattern says which words matched.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use proofhouse_detect::{Evidence, Scanner, TraceMessage};
use proofhouse_oatf::{EvaluationError, SemanticEvaluator, SemanticExamples, SemanticIntentClass};
use serde_json::{Value, json};

/// Scores texts with `bad` in them high.
struct Simple;

impl SemanticEvaluator for Simple {
    fn evaluate(
        &self,
        text: &str,
        _: &str,
        _: Option<SemanticIntentClass>,
        _: Option<f64>,
        _: Option<&SemanticExamples>,
    ) -> Result<f64, EvaluationError> {
        Ok(if text.contains("bad") { 0.9 } else { 0.1 })
    }
}

fn evidence(indicator: &Value, content: Value) -> Evidence {
    let document = json!({"oatf": "0.1", "attack": {
        "execution": {"mode": "mcp_server", "state": {"tools": []}},
        "indicators": [indicator],
    }});
    let document = proofhouse_oatf::load(&document.to_string())
        .unwrap()
        .document;
    let builder = Scanner::builder().add("d", document);
    let scanner = builder.semantic(Arc::new(Simple)).build().unwrap();
    let mut session = scanner.session();
    session.feed(&TraceMessage::new("mcp", "x", content));
    session.verdicts()[0].indicators[0].evidence[0].clone()
}

#[test]
fn what_was_judged_is_shown() {
    let cel = "size(message.note) > 3";
    for (indicator, path, text, reason) in [
        (
            json!({"target": "note", "expression": {"cel": cel}}),
            "note",
            "long note",
            Some(cel),
        ),
        (
            json!({"target": "absent", "expression": {"cel": cel}}),
            "",
            r#"{"list":["good","bad one","bad two"],"note":"long note"}"#,
            Some(cel),
        ),
        (
            json!({"target": "list[*]", "semantic": {"intent": "harm"}}),
            "list[1]",
            "bad one",
            Some("score 0.9"),
        ),
        (
            json!({"target": "note", "pattern": {"contains": "long"}}),
            "note",
            "long",
            None,
        ),
    ] {
        let content = json!({"note": "long note", "list": ["good", "bad one", "bad two"]});
        let found = evidence(&indicator, content);
        assert_eq!(
            (&*found.path, &*found.text, found.reason.as_deref()),
            (path, text, reason),
            "{indicator}"
        );
    }
}

#[test]
fn verdicts_come_back() {
    let document = proofhouse_oatf::load(
        "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {tools: []}}\n  indicators:\n    \
         - {surface: tools/call, target: arguments, pattern: {contains: passwd}}\n    \
         - {surface: tools/list, target: tools, pattern: {contains: x}}\n",
    );
    let document = document.unwrap().document;
    let scanner = proofhouse_detect::Scanner::builder()
        .add("d", document)
        .build()
        .unwrap();
    let mut session = scanner.session();
    let content = serde_json::json!({"arguments": {"path": "/etc/passwd"}});
    session.feed(&proofhouse_detect::TraceMessage::new(
        "mcp",
        "tools/call",
        content,
    ));
    let verdicts = session.verdicts();
    assert_eq!(verdicts[0].indicators[0].evidence.len(), 1);
    let json = serde_json::to_string(&verdicts).unwrap();
    let again: Vec<proofhouse_detect::DocumentVerdict> = serde_json::from_str(&json).unwrap();
    assert_eq!(again, verdicts);
}
