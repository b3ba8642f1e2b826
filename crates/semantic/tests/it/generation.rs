//! Content that a model writes: structures, texts, and refusals.

use proofhouse_oatf::{GenerationErrorKind, GenerationProvider, Protocol};
use proofhouse_semantic::{Method, OpenAiGeneration};
use serde_json::json;

use crate::server::{TestReply, TestServer, judgement};
use crate::{KEY, config};

#[test]
fn what_the_model_writes_is_used_as_structure_or_text() {
    let server = TestServer::start(|_, number| {
        judgement(["{\"content\": []}", "It is sunny.", " "][number.min(2)])
    });
    let provider = OpenAiGeneration::new(config(&server, Method::Judge)).unwrap();
    let generate =
        |prompt: &str| provider.generate(prompt, &Protocol::Mcp, &json!({"name": "weather"}));
    assert_eq!(generate("a result"), Ok(json!({"content": []})));
    assert_eq!(generate("a text"), Ok(json!("It is sunny.")));
    let refused = generate("a secret").unwrap_err();
    assert_eq!(refused.kind, GenerationErrorKind::ContentPolicy);
    assert_eq!(refused.prompt_preview.as_deref(), Some("a secret"));
    let asked = server.requests();
    let question = asked[0].json()["messages"].to_string();
    assert!(
        question.contains("a result") && question.contains("weather"),
        "{question}"
    );
}

#[test]
fn failures_are_told_by_kind_and_without_the_key() {
    let server = TestServer::start(|_, _| TestReply::Plain(401, "", format!("wrong key {KEY}")));
    let provider = OpenAiGeneration::new(config(&server, Method::Judge)).unwrap();
    let error = provider
        .generate("x", &Protocol::Mcp, &json!(null))
        .unwrap_err();
    assert_eq!(error.kind, GenerationErrorKind::ProviderUnavailable);
    assert!(!error.message.contains(KEY), "{}", error.message);
}
