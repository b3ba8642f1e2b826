//! The dialects of the providers, against servers that speak them: whole replies, streams, and everything that goes wrong.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use proofhouse_agent::model::{
    Arguments, ModelConfig, ModelErrorKind, ModelEvent, StopReason, ToolCall, Usage, open,
};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

use crate::players::{End, KEY, Play, Provider, ask, config, events, request};

fn call(id: &str, name: &str, arguments: &Value) -> ToolCall {
    ToolCall::new(id, name, arguments.as_object().unwrap().clone())
}

fn openai_stream() -> Vec<String> {
    let mut list = events(&[
        json!({"id": "x", "model": "gpt-5-2026", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": "Let me "}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": "look."}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "get_weather", "arguments": ""}}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{\"city\":"}}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "\"Rome\"}"}}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "get_weather", "arguments": "{\"city\": oops"}}]}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 31, "completion_tokens": 7}}),
    ]);
    list.push("[DONE]".to_owned());
    list
}

#[tokio::test]
async fn openai_streams() {
    let provider = Provider::start([Play::Events(openai_stream(), End::Properly)]).await;
    let (reply, heard) = ask("openai:gpt-5", &config(&provider)).await;
    let reply = reply.unwrap();
    assert_eq!(reply.text, "Let me look.");
    assert_eq!(
        reply.calls[0],
        call("a", "get_weather", &json!({"city": "Rome"}))
    );
    assert!(
        matches!(&reply.calls[1].arguments, Arguments::Malformed { text, reason }
        if text == "{\"city\": oops" && reason.starts_with("not JSON"))
    );
    assert_eq!(
        reply.usage,
        Usage {
            prompt: 31,
            completion: 7
        }
    );
    assert_eq!(
        (reply.stop, reply.model.as_str()),
        (StopReason::ToolCalls, "gpt-5-2026")
    );
    assert_eq!(heard[0], ModelEvent::Text("Let me ".to_owned()));
    assert_eq!(heard[1], ModelEvent::Text("look.".to_owned()));
    assert_eq!(heard[3], ModelEvent::Call(reply.calls[1].clone()));
    assert_eq!(heard.len(), 4);

    let seen = provider.seen().remove(0);
    assert_eq!(seen.path, "/chat/completions");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(
        seen.body,
        json!({
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Weather in Paris?"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
                    "function": {"name": "get_weather", "arguments": "{\"city\":\"Paris\"}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "18 degrees"},
                {"role": "user", "content": "And in Rome?"},
            ],
            "model": "gpt-5",
            "tools": [{"type": "function", "function": {"name": "get_weather", "description": "Gets the weather.",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}],
            "temperature": 0.5, "seed": 42, "max_tokens": 100,
            "stream": true, "stream_options": {"include_usage": true},
        })
    );
}

#[tokio::test]
async fn openai_answers_in_one_piece() {
    let body = json!({"model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 2}, "choices": [{
        "finish_reason": "stop",
        "message": {"content": "Hi.", "tool_calls": [
            {"id": "a", "function": {"name": "x", "arguments": {"already": "an object"}}},
            {"id": "a", "function": {"name": "y", "arguments": ""}},
            {"id": "", "function": {"name": "z", "arguments": "[1]"}},
        ]},
    }]});
    // Also when a stream was asked for: some gateways do not know how.
    for stream in [true, false] {
        let provider = Provider::start([Play::Json(200, body.clone())]).await;
        let config = ModelConfig {
            stream,
            ..config(&provider)
        };
        let (reply, heard) = ask("openai:m", &config).await;
        let reply = reply.unwrap();
        assert_eq!(
            reply.calls[0],
            call("a", "x", &json!({"already": "an object"}))
        );
        assert_eq!(
            reply.calls[1].arguments,
            Arguments::Object(serde_json::Map::new())
        );
        assert!(matches!(
            reply.calls[2].arguments,
            Arguments::Malformed { .. }
        ));
        let mut ids: Vec<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3, "results are told apart by ids: {reply:?}");
        assert_eq!(reply.stop, StopReason::ToolCalls);
        assert_eq!(heard.len(), 4);
        assert_eq!(provider.seen()[0].body.get("stream").is_some(), stream);
    }
}

#[tokio::test]
async fn azure_has_its_own_address_and_header() {
    let provider = Provider::start([Play::Json(
        200,
        json!({"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}),
    )])
    .await;
    let config = ModelConfig {
        api_version: Some("2025-01-01".to_owned()),
        ..config(&provider)
    };
    let (reply, _) = ask("azure:my deployment", &config).await;
    assert_eq!(reply.unwrap().text, "Hi.");
    let seen = provider.seen().remove(0);
    assert_eq!(
        seen.path,
        "/openai/deployments/my%20deployment/chat/completions"
    );
    assert_eq!(seen.query, "api-version=2025-01-01");
    assert_eq!(seen.headers["api-key"], KEY);
    assert!(seen.headers.get("authorization").is_none());
    assert!(seen.body.get("model").is_none());
}

fn anthropic_stream() -> Vec<String> {
    events(&[
        json!({"type": "message_start", "message": {"model": "claude-x", "usage": {"input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Look"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ing."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"city\": "}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "\"Rome\"}"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 15}}),
        json!({"type": "message_stop"}),
    ])
}

#[tokio::test]
async fn anthropic_streams_and_answers() {
    let whole = json!({"type": "message", "model": "claude-x", "stop_reason": "tool_use",
        "usage": {"input_tokens": 25, "output_tokens": 15},
        "content": [{"type": "text", "text": "Looking."}, {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Rome"}}]});
    for play in [
        Play::Events(anthropic_stream(), End::Properly),
        Play::Json(200, whole),
    ] {
        let provider = Provider::start([play]).await;
        let (reply, _) = ask("anthropic:claude", &config(&provider)).await;
        let reply = reply.unwrap();
        assert_eq!(reply.text, "Looking.");
        assert_eq!(
            reply.calls,
            [call("t1", "get_weather", &json!({"city": "Rome"}))]
        );
        assert_eq!(
            reply.usage,
            Usage {
                prompt: 25,
                completion: 15
            }
        );
        assert_eq!(
            (reply.stop, reply.model.as_str()),
            (StopReason::ToolCalls, "claude-x")
        );

        let seen = provider.seen().remove(0);
        assert_eq!(seen.path, "/v1/messages");
        assert_eq!(seen.headers["x-api-key"], KEY);
        assert_eq!(seen.headers["anthropic-version"], "2023-06-01");
        assert_eq!(seen.body["system"], "Be brief.");
        assert_eq!(seen.body["max_tokens"], 100);
        assert_eq!(
            seen.body["messages"][1]["content"][0]["input"],
            json!({"city": "Paris"})
        );
        // The result and what the user says next are one message, as the API wants it.
        assert_eq!(seen.body["messages"].as_array().unwrap().len(), 3);
        assert_eq!(seen.body["messages"][2]["content"][0]["tool_use_id"], "c1");
        assert_eq!(
            seen.body["messages"][2]["content"][1]["text"],
            "And in Rome?"
        );
    }
}

fn google_pieces() -> Vec<Value> {
    vec![
        json!({"modelVersion": "gemini-x", "candidates": [{"content": {"role": "model", "parts": [{"text": "thinking", "thought": true}, {"text": "Look"}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"text": "ing."}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}, "thoughtSignature": "c2ln"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 2}}),
    ]
}

#[tokio::test]
async fn google_streams_and_answers() {
    let plays = [
        Play::Events(events(&google_pieces()), End::Properly),
        Play::Json(200, Value::Array(google_pieces())),
    ];
    for play in plays {
        let provider = Provider::start([play]).await;
        let (reply, _) = ask("google:gemini", &config(&provider)).await;
        let reply = reply.unwrap();
        assert_eq!(reply.text, "Looking.");
        assert_eq!(reply.calls[0].name, "get_weather");
        assert_eq!(reply.calls[0].opaque.as_deref(), Some("c2ln"));
        assert_eq!(
            reply.usage,
            Usage {
                prompt: 9,
                completion: 6
            }
        );
        assert_eq!(
            (reply.stop, reply.model.as_str()),
            (StopReason::ToolCalls, "gemini-x")
        );

        let seen = provider.seen().remove(0);
        assert_eq!(seen.path, "/v1beta/models/gemini:streamGenerateContent");
        assert_eq!(
            (seen.query.as_str(), &seen.headers["x-goog-api-key"]),
            ("alt=sse", &KEY.parse().unwrap())
        );
        assert_eq!(
            seen.body["systemInstruction"]["parts"][0]["text"],
            "Be brief."
        );
        assert_eq!(
            seen.body["contents"][1]["parts"][0]["functionCall"]["args"],
            json!({"city": "Paris"})
        );
        assert_eq!(
            seen.body["contents"][2]["parts"][0]["functionResponse"]["response"],
            json!({"result": "18 degrees"})
        );
        assert_eq!(
            seen.body["generationConfig"],
            json!({"temperature": 0.5, "seed": 42, "maxOutputTokens": 100})
        );
    }
    // The signature goes back with the call.
    let provider = Provider::start([Play::Json(200, google_pieces()[2].clone())]).await;
    let model = open("google:gemini", &config(&provider)).unwrap();
    let mut asked = request();
    if let proofhouse_agent::model::ChatMessage::Assistant { calls, .. } = &mut asked.messages[1] {
        calls[0].opaque = Some("c2ln".to_owned());
    }
    model
        .complete(&asked, &mut Vec::new(), &CancellationToken::new())
        .await
        .unwrap();
    let seen = provider.seen().remove(0);
    assert_eq!(
        seen.body["contents"][1]["parts"][0]["thoughtSignature"],
        "c2ln"
    );
}

fn hello() -> Play {
    Play::Json(
        200,
        json!({"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}),
    )
}

#[tokio::test]
async fn busy_providers_are_asked_again() {
    let later = || Play::Plain(429, ("retry-after", "0"), String::new());
    for (plays, asked) in [
        (vec![later(), hello()], 2),
        (
            vec![
                Play::Json(500, json!({})),
                Play::Json(503, json!({})),
                hello(),
            ],
            3,
        ),
        (vec![Play::Cut, hello()], 2),
        (
            vec![
                Play::Plain(429, ("retry-after-ms", "3"), String::new()),
                hello(),
            ],
            2,
        ),
        (
            vec![
                Play::Plain(
                    503,
                    ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
                    String::new(),
                ),
                hello(),
            ],
            2,
        ),
    ] {
        let provider = Provider::start(plays).await;
        let (reply, _) = ask("openai:m", &config(&provider)).await;
        assert_eq!(reply.unwrap().text, "Hi.");
        assert_eq!(provider.seen().len(), asked);
    }
}

#[tokio::test]
async fn pauses_that_are_too_long_are_the_callers_to_wait() {
    let provider = Provider::start([Play::Plain(
        429,
        ("retry-after", "3600"),
        json!({"error": {"message": format!("slow down, {KEY}")}}).to_string(),
    )])
    .await;
    let (reply, _) = ask("openai:m", &config(&provider)).await;
    let error = reply.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::RateLimited);
    assert_eq!(error.retry_after, Some(Duration::from_secs(3600)));
    assert!(error.is_recoverable());
    assert_eq!(
        error.message,
        "the provider asks for a pause (HTTP 429): slow down, [redacted]"
    );
    assert_eq!(provider.seen().len(), 1);
}

/// One row per way to fail: what the provider plays, the kind of error, and the text that had come.
#[tokio::test]
async fn failures_have_kinds_and_keep_what_came() {
    let delta = |text: &str| json!({"choices": [{"delta": {"content": text}}]}).to_string();
    let stop = |word: &str| json!({"choices": [{"delta": {}, "finish_reason": word}]}).to_string();
    let cut_call = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{\"y\": "}}]}}]}).to_string();
    let rows: Vec<(&str, Vec<Play>, ModelErrorKind, &str)> = vec![
        ("500 for ever", (0..4).map(|_| Play::Json(500, json!({"error": "down"}))).collect(), ModelErrorKind::Server, ""),
        ("429 for ever", (0..4).map(|_| Play::Plain(429, ("retry-after", "0"), String::new())).collect(), ModelErrorKind::RateLimited, ""),
        ("wrong key", vec![Play::Json(401, json!({"error": {"message": format!("bad key {KEY}")}}))], ModelErrorKind::Unauthorized, ""),
        ("wrong request", vec![Play::Json(400, json!({"error": {"message": "no such model"}}))], ModelErrorKind::Rejected, ""),
        ("hang", vec![Play::Hang], ModelErrorKind::Timeout, ""),
        ("silence midway", vec![Play::Events(vec![delta("Half")], End::Silence)], ModelErrorKind::Timeout, "Half"),
        ("cut midway", vec![Play::Events(vec![delta("Half"), cut_call], End::Cut)], ModelErrorKind::Cut, "Half"),
        ("end midway", vec![Play::Events(vec![delta("Half")], End::Properly)], ModelErrorKind::Cut, "Half"),
        ("garbage event", vec![Play::Events(vec![delta("Half"), "{oops".to_owned()], End::Properly)], ModelErrorKind::Garbage, "Half"),
        ("garbage body", vec![Play::Plain(200, ("content-type", "text/html"), "<html>".to_owned())], ModelErrorKind::Garbage, ""),
        ("error midway", vec![Play::Events(vec![delta("Half"), json!({"error": {"message": "overloaded", "code": 503}}).to_string()], End::Properly)], ModelErrorKind::Server, "Half"),
        ("unknown stop", vec![Play::Events(vec![delta("Half"), stop("tired")], End::Properly)], ModelErrorKind::UnknownStop, "Half"),
        ("nothing", vec![Play::Events(vec![stop("stop"), "[DONE]".to_owned()], End::Properly)], ModelErrorKind::Empty, ""),
        ("nothing at all", vec![Play::Json(200, json!({}))], ModelErrorKind::Empty, ""),
        ("filtered", vec![Play::Events(vec![stop("content_filter")], End::Properly)], ModelErrorKind::Refused, ""),
        ("endless nothing", vec![Play::Endless(json!({"choices": []}).to_string())], ModelErrorKind::TooLarge, ""),
        ("endless arguments", vec![Play::Endless(json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "x".repeat(1000)}}]}}]}).to_string())], ModelErrorKind::TooLarge, ""),
    ];
    for (what, plays, kind, came) in rows {
        let provider = Provider::start(plays).await;
        let (reply, _) = ask("openai:m", &config(&provider)).await;
        let error = reply.expect_err(what);
        assert_eq!(error.kind, kind, "{what}: {error:?}");
        let partial = error
            .partial
            .as_ref()
            .map_or("", |partial| partial.text.as_str());
        assert_eq!(partial, came, "{what}: {error:?}");
        if what == "cut midway" {
            let call = &error.partial.unwrap().calls[0];
            assert!(
                matches!(&call.arguments, Arguments::Malformed { text, .. } if text == "{\"y\": "),
                "{call:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_other_dialects_fail_as_well() {
    let rows: Vec<(&str, Play, ModelErrorKind)> = vec![
        (
            "anthropic:m",
            Play::Events(anthropic_stream()[..4].to_vec(), End::Properly),
            ModelErrorKind::Cut,
        ),
        (
            "anthropic:m",
            Play::Events(
                events(&[
                    json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
                ]),
                End::Properly,
            ),
            ModelErrorKind::Server,
        ),
        (
            "anthropic:m",
            Play::Json(
                200,
                json!({"stop_reason": "pause_turn", "content": [{"type": "text", "text": "x"}]}),
            ),
            ModelErrorKind::UnknownStop,
        ),
        (
            "google:m",
            Play::Events(events(&google_pieces()[..2]), End::Properly),
            ModelErrorKind::Cut,
        ),
        (
            "google:m",
            Play::Json(200, json!({"promptFeedback": {"blockReason": "SAFETY"}})),
            ModelErrorKind::Refused,
        ),
        (
            "google:m",
            Play::Json(
                200,
                json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}),
            ),
            ModelErrorKind::Garbage,
        ),
        (
            "google:m",
            Play::Json(200, json!({"candidates": [{"finishReason": "SAFETY"}]})),
            ModelErrorKind::Refused,
        ),
    ];
    for (spec, play, kind) in rows {
        let provider = Provider::start([play]).await;
        let (reply, _) = ask(spec, &config(&provider)).await;
        assert_eq!(reply.unwrap_err().kind, kind, "{spec}");
    }
}

#[tokio::test]
async fn endless_text_stops_at_its_limit() {
    let event = json!({"choices": [{"delta": {"content": "é".repeat(500)}}]}).to_string();
    let provider = Provider::start([Play::Endless(event)]).await;
    let (reply, heard) = ask("openai:m", &config(&provider)).await;
    let error = reply.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::TooLarge);
    let text = &error.partial.unwrap().text;
    assert_eq!(text.len(), 64 << 10);
    let pieces: String = heard
        .iter()
        .map(|event| match event {
            ModelEvent::Text(text) => text.as_str(),
            ModelEvent::Call(_) => "",
        })
        .collect();
    assert_eq!(&pieces, text);
}

#[tokio::test]
async fn ten_thousand_calls_are_cut() {
    let calls: Vec<Value> = (0..10_000)
        .map(|number| json!({"index": number, "id": format!("c{number}"), "function": {"name": "x", "arguments": "{}"}}))
        .collect();
    let stream = vec![json!({"choices": [{"delta": {"tool_calls": calls}}]}).to_string()];
    let provider = Provider::start([Play::Events(stream, End::Properly)]).await;
    let (reply, heard) = ask("openai:m", &config(&provider)).await;
    let reply = reply.unwrap();
    assert_eq!(
        (reply.calls.len(), reply.stop),
        (128, StopReason::CallLimit)
    );
    assert_eq!(heard.len(), 128);
}

#[tokio::test]
async fn a_slow_trickle_ends_with_the_total_time() {
    let event = json!({"choices": [{"delta": {"content": ""}}]}).to_string();
    let provider = Provider::start([Play::Endless(event)]).await;
    let mut config = config(&provider);
    config.limits.max_bytes = usize::MAX >> 1;
    config.limits.total = Duration::from_millis(300);
    let (reply, _) = ask("openai:m", &config).await;
    assert_eq!(reply.unwrap_err().kind, ModelErrorKind::Timeout);
}

#[tokio::test]
async fn cancelling_ends_a_reply_and_keeps_what_came() {
    let delta = json!({"choices": [{"delta": {"content": "Half"}}]}).to_string();
    let provider = Provider::start([Play::Events(vec![delta], End::Silence)]).await;
    let model = open("openai:m", &config(&provider)).unwrap();
    let cancel = CancellationToken::new();
    let asked = request();
    let mut sink = |event: ModelEvent| {
        assert_eq!(event, ModelEvent::Text("Half".to_owned()));
        cancel.cancel();
    };
    let error = model
        .complete(&asked, &mut sink, &cancel)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Cancelled);
    assert_eq!(error.partial.unwrap().text, "Half");
}

#[tokio::test]
async fn nobody_there_is_told_without_the_address() {
    let mut config = config(&Provider::start([]).await);
    config.base_url = Some(format!("http://127.0.0.1:1/{KEY}"));
    config.limits.retry.attempts = 2;
    let (reply, _) = ask("openai:m", &config).await;
    let error = reply.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    assert!(
        error.message.starts_with("cannot connect to 127.0.0.1"),
        "{error}"
    );
}

#[tokio::test]
async fn the_egress_policy_is_asked() {
    let provider = Provider::start([hello()]).await;
    let mut config = config(&provider);
    config.guard = Some(std::sync::Arc::new(
        proofhouse_tools::http::EgressPolicy::default(),
    ));
    let (reply, _) = ask("openai:m", &config).await;
    assert_eq!(reply.unwrap_err().kind, ModelErrorKind::Denied);
    assert!(provider.seen().is_empty());
}

#[tokio::test]
async fn extra_headers_go_along_and_stay_secret() {
    let provider = Provider::start([Play::Json(
        400,
        json!({"error": "tenant-canary-9 is unknown"}),
    )])
    .await;
    let mut config = config(&provider);
    config.headers = proofhouse_manifest::interpolate::Sealed::new(vec![(
        "x-tenant".to_owned(),
        "tenant-canary-9".to_owned(),
    )]);
    let (reply, _) = ask("openai:m", &config).await;
    let message = reply.unwrap_err().message;
    assert_eq!(
        message,
        "the provider rejects the request (HTTP 400): [redacted] is unknown"
    );
    assert_eq!(provider.seen()[0].headers["x-tenant"], "tenant-canary-9");
    assert!(!format!("{config:?}").contains(KEY));
}

#[test]
fn names_lead_to_models_or_to_a_better_name() {
    let config = ModelConfig::default();
    for (spec, name) in [
        ("openai:gpt-5", "openai:gpt-5"),
        ("anthropic:claude-x", "anthropic:claude-x"),
        ("google:gemini-x", "google:gemini-x"),
        ("sim:gullible", "sim:gullible"),
        ("sim:careful", "sim:careful"),
    ] {
        let model = open(spec, &config).unwrap();
        assert_eq!(model.name(), name);
        assert_eq!(model.is_simulation(), name.starts_with("sim:"));
    }
    for (spec, message) in [
        (
            "opneai:gpt-5",
            "`opneai:gpt-5` names no model; did you mean `openai:gpt-5`? It starts with one of openai, azure, anthropic, google, sim, replay",
        ),
        (
            "gpt-5",
            "`gpt-5` names no model; it starts with one of openai, azure, anthropic, google, sim, replay",
        ),
        (
            "sim:carefull",
            "`sim:carefull` names no model; did you mean `sim:careful`?",
        ),
        ("openai:", "`openai:` is not complete: write openai:MODEL"),
        (
            "sim:scripted",
            "`sim:scripted` is not complete: write sim:scripted:FILE",
        ),
        ("azure:x", "azure models need a base URL"),
    ] {
        assert_eq!(open(spec, &config).err().unwrap().to_string(), message);
    }
    let odd = ModelConfig {
        base_url: Some("file:///etc".to_owned()),
        ..ModelConfig::default()
    };
    assert_eq!(
        open("openai:x", &odd).err().unwrap().to_string(),
        "the base URL must be http or https"
    );
}

#[tokio::test]
async fn web_search_is_asked_for_in_the_words_of_each_provider() {
    for (spec, pointer, expected) in [
        ("openai:gpt-5", "/web_search_options", json!({})),
        ("anthropic:claude", "/tools/1/name", json!("web_search")),
        ("google:gemini", "/tools/1/googleSearch", json!({})),
    ] {
        let provider = Provider::start([Play::Events(vec![], End::Properly)]).await;
        let model = open(spec, &config(&provider)).unwrap();
        let mut request = request();
        request.options.built_in.push("web-search".to_owned());
        // What comes back does not matter here.
        let _ = model
            .complete(&request, &mut Vec::new(), &CancellationToken::new())
            .await;
        let seen = provider.seen().remove(0);
        assert_eq!(seen.body.pointer(pointer), Some(&expected), "{spec}");
    }
}
