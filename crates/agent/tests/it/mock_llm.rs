//! The OpenAI dialect against `mock-llm`, a server that others wrote.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use proofhouse_agent::model::{
    ChatMessage, ModelConfig, ModelErrorKind, ModelEvent, ModelRequest, StopReason, ToolSpec,
    Usage, open,
};
use proofhouse_test_support::peers;
use proofhouse_wire::CancellationToken;
use serde_json::json;

fn asked(messages: Vec<ChatMessage>) -> ModelRequest {
    ModelRequest {
        messages,
        tools: vec![ToolSpec {
            name: "get_weather".to_owned(),
            description: "Gets the weather.".to_owned(),
            parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
        }],
        ..ModelRequest::default()
    }
}

#[tokio::test]
async fn a_server_of_others_is_understood() {
    let Some(peers) = peers::installed("mock-llm", "mock-llm") else {
        return;
    };
    let (url, child, stdin) = peers::listening(&peers::program(&peers, "mock-llm", &[])).await;
    let model = |stream| {
        let config = ModelConfig {
            base_url: Some(format!("{url}/v1")),
            stream,
            ..ModelConfig::default()
        };
        open("openai:some-model", &config).unwrap()
    };
    let cancel = CancellationToken::new();

    let words = "Say these words back to me, in several pieces, one after the other, please: one two three four five.";
    let echo = asked(vec![ChatMessage::user(words)]);
    let mut heard = Vec::new();
    let reply = model(true)
        .complete(&echo, &mut heard, &cancel)
        .await
        .unwrap();
    assert_eq!((reply.text.as_str(), reply.stop), (words, StopReason::End));
    assert_eq!(reply.model, "some-model");
    assert!(heard.len() > 1, "{heard:?}");
    assert!(
        heard
            .iter()
            .all(|event| matches!(event, ModelEvent::Text(_)))
    );

    let whole = model(false);
    let question = ChatMessage::user("How is the weather?");
    let first = asked(vec![question.clone()]);
    let reply = whole
        .complete(&first, &mut Vec::new(), &cancel)
        .await
        .unwrap();
    assert_eq!(reply.stop, StopReason::ToolCalls);
    assert_eq!(
        reply.usage,
        Usage {
            prompt: 11,
            completion: 5
        }
    );
    let call = reply.calls[0].clone();
    assert_eq!(
        (call.id.as_str(), call.name.as_str()),
        ("call_7", "get_weather")
    );
    assert_eq!(call.arguments.object().unwrap()["city"], "Rome");

    for stream in [false, true] {
        let second = asked(vec![
            question.clone(),
            ChatMessage::Assistant {
                text: String::new(),
                calls: vec![call.clone()],
            },
            ChatMessage::tool(&call, "18 degrees", false),
        ]);
        let reply = model(stream)
            .complete(&second, &mut Vec::new(), &cancel)
            .await
            .unwrap();
        assert_eq!(reply.text, "The tool said: 18 degrees");
    }

    // Whole, the status tells; streamed, this server answers 200 and tells in an event.
    for stream in [false, true] {
        let wrong = asked(vec![ChatMessage::user("error-401")]);
        let error = model(stream)
            .complete(&wrong, &mut Vec::new(), &cancel)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unauthorized, "{error}");
        assert!(
            error.message.contains("Incorrect API key provided."),
            "{error}"
        );
    }
    drop(stdin);
    child.stop().await;
}
