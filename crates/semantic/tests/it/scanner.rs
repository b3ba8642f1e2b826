//! Semantic indicators in a scanner: matched, not matched, in error, and skipped with a reason.

use std::sync::Arc;

use proofhouse_detect::{Scanner, TraceMessage};
use proofhouse_oatf::{Document, SemanticEvaluator, load};
use proofhouse_semantic::{Config, Method, OpenAiSemantic};
use serde_json::json;

use crate::server::{TestReply, TestServer, judge_of_theft, url};

fn document(examples: &str) -> Document {
    let text = format!(
        r#"
oatf: "0.1"
attack:
  execution: {{mode: mcp_server, state: {{tools: []}}}}
  indicators:
    - id: X-01
      surface: tools/call
      target: arguments.notes[*]
      semantic: {{intent: asks to steal secrets{examples}}}
"#
    );
    load(&text).unwrap().document
}

/// The result and the reason of the one indicator, over one tool call with these notes.
fn judge(server: Option<&TestServer>, examples: &str, notes: &[&str]) -> (String, Option<String>) {
    let mut builder = Scanner::builder().add("theft", document(examples));
    if let Some(server) = server {
        let config = Config {
            retries: 0,
            ..Config::new(url(server), "m", Method::Judge)
        };
        let evaluator: Arc<dyn SemanticEvaluator> = Arc::new(OpenAiSemantic::new(config).unwrap());
        builder = builder.semantic(evaluator);
    }
    let scanner = builder.build().unwrap();
    let mut session = scanner.session();
    session.feed(&TraceMessage::new(
        "mcp",
        "tools/call",
        json!({"arguments": {"notes": notes}}),
    ));
    let verdicts = session.verdicts();
    let report = &verdicts[0].indicators[0];
    (report.result.to_string(), report.reason.clone())
}

#[test]
fn every_way_an_indicator_can_end() {
    let server = TestServer::start(judge_of_theft);
    let fits = ", examples: {positive: [steal it], negative: [be kind]}";
    let notes = ["nice weather", "go and steal it"];
    let (result, reason) = judge(Some(&server), fits, &notes);
    assert_eq!((result.as_str(), reason), ("matched", None));
    let (result, reason) = judge(Some(&server), fits, &notes[..1]);
    assert_eq!((result.as_str(), reason), ("not_matched", None));
    let (result, reason) = judge(Some(&server), fits, &[]);
    assert_eq!((result.as_str(), reason), ("not_matched", None));

    let (result, reason) = judge(Some(&server), ", examples: {positive: [take it]}", &notes);
    assert_eq!(result, "error");
    assert!(reason.unwrap().contains("positive example 1 scores 0.10"));
    let down = TestServer::start(|_, _| TestReply::Plain(500, "", "out of order".to_owned()));
    let (result, reason) = judge(Some(&down), fits, &notes);
    assert_eq!(result, "error");
    assert!(reason.unwrap().contains("status 500: out of order"));

    let (result, reason) = judge(None, fits, &notes);
    assert_eq!(result, "skipped");
    assert_eq!(
        reason.as_deref(),
        Some("no semantic evaluator is configured")
    );
}
