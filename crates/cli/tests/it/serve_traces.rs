//! `proofhouse serve` and the traces of others: whoever asks, the model and the tool are in one trace, across the store, as a
//! real collector gets it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::collections::BTreeMap;

use proofhouse_test_support::http::{SeenRequest, TestReply, TestServer};
use proofhouse_test_support::wait::until;
use serde_json::{Value, json};

use crate::support::served::Served;

const SHOP: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: shop
name: till
description: The till.
actions:
  - name: refund
    description: Refund money.
    parameters: {properties: {amount: {type: number, description: how much}}}
    execute: {stateless_http: {method: POST, url: "http://TOOL/refunds"}}
events:
  - name: said
    message: "{event.payload.text}"
    receive: {webhook: {filter: "true"}}
---
kind: commonagents.info/v1beta2/agent
namespace: shop
name: clerk
description: Refunds.
prompt: You refund.
capabilities:
  till: "*"
"#;

const OPERATOR: &str = "egress: {allow: [127.0.0.0/8]}\n\
                        prices: {currency: EUR, models: {gpt-5-*: {input: 2, output: 8}}}\n";

/// The trace and the span of somebody who asks.
const ASKED: (&str, &str) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
const POSTED: (&str, &str) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");

fn header((trace, span): (&str, &str)) -> String {
    format!("00-{trace}-{span}-01")
}

/// What a request says it is for: the trace and the span.
fn said(request: &SeenRequest) -> (String, String) {
    let said = request.header("traceparent").unwrap_or_default();
    let parts: Vec<&str> = said.split('-').collect();
    match parts[..] {
        ["00", trace, span, "01"] => (trace.to_owned(), span.to_owned()),
        _ => panic!("`{said}` in {request:?}"),
    }
}

/// A model that calls the first function it is offered, and then answers.
fn model() -> TestServer {
    TestServer::start(|request, _| {
        let asked = request.json();
        let last = asked["messages"].as_array().unwrap().last().unwrap();
        let message = if last["role"] == "tool" {
            json!({"role": "assistant", "content": "Done."})
        } else {
            let function = asked["tools"][0]["function"]["name"].as_str().unwrap();
            let call = json!({"name": function, "arguments": "{\"amount\": 5}"});
            json!({"role": "assistant", "content": null,
                "tool_calls": [{"id": "c1", "type": "function", "function": call}]})
        };
        let usage = json!({"prompt_tokens": 1000, "completion_tokens": 100});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        TestReply::Json(
            json!({"id": "1", "model": "gpt-5-2026", "choices": [choice], "usage": usage}),
        )
    })
}

/// A span as the collector gets it.
#[derive(Debug)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    attributes: BTreeMap<String, String>,
}

/// The fields of a message of protocol buffers: each number with its bytes, or with the bytes of its number.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => varint(&mut bytes).to_be_bytes().to_vec(),
            kind => {
                let length = match kind {
                    1 => 8,
                    2 => usize::try_from(varint(&mut bytes)).unwrap(),
                    5 => 4,
                    other => panic!("a field of kind {other}"),
                };
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                value.to_vec()
            }
        };
        found.push((key >> 3, value));
    }
    found
}

fn all(bytes: &[u8], number: u64) -> Vec<Vec<u8>> {
    let found = fields(bytes).into_iter();
    found
        .filter(|(known, _)| *known == number)
        .map(|(_, value)| value)
        .collect()
}

fn one(bytes: &[u8], number: u64) -> Vec<u8> {
    all(bytes, number).pop().unwrap_or_default()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The spans of an `ExportTraceServiceRequest`.
fn spans(body: &[u8]) -> Vec<Span> {
    let scopes = all(body, 1)
        .into_iter()
        .flat_map(|resource| all(&resource, 2));
    let spans = scopes.flat_map(|scope| all(&scope, 2));
    spans
        .map(|span| Span {
            trace: hex(&one(&span, 1)),
            id: hex(&one(&span, 2)),
            parent: hex(&one(&span, 4)),
            name: text(&one(&span, 5)),
            attributes: all(&span, 9)
                .iter()
                .map(|pair| {
                    let value = one(pair, 2);
                    let (kind, value) = fields(&value).pop().unwrap();
                    let value = match kind {
                        1 => text(&value),
                        _ => u64::from_be_bytes(value.try_into().unwrap()).to_string(),
                    };
                    (text(&one(pair, 1)), value)
                })
                .collect(),
        })
        .collect()
}

fn begun(served: &Served, trace: (&str, &str)) -> String {
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ntraceparent: {}\r\n\
         content-type: application/json",
        served.api,
        served.key,
        header(trace)
    );
    let order = json!({"agent": "clerk", "message": "Refund 5."}).to_string();
    let reply = Served::send(served.api, &head, order.as_bytes());
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.json()["id"].as_str().unwrap().to_owned()
}

/// Waits until a task has answered so often.
fn answered(served: &Served, task: &str, times: usize) {
    until("an answer", || {
        let turns = served.get(&format!("/v1/tasks/{task}/turns?limit=100"));
        let turns = turns["turns"].as_array().unwrap().clone();
        let outputs = turns.iter().filter(|turn| turn["kind"] == "output");
        (outputs.count() == times).then_some(())
    });
}

fn serve(more: &[&str]) -> (Served, TestServer, TestServer) {
    let tool = TestServer::start(|_, _| TestReply::Json(json!({"paid": 5})));
    serve_with(tool, more)
}

fn serve_with(tool: TestServer, more: &[&str]) -> (Served, TestServer, TestServer) {
    let model = model();
    let shop = SHOP.replace("TOOL", &tool.address().to_string());
    let base = format!("http://{}/v1", model.address());
    let asked = ["--model", "openai:gpt-5", "--base-url", &base];
    let served = Served::start(
        &[("shop.yaml", &shop)],
        OPERATOR,
        &[&asked[..], more].concat(),
    );
    (served, model, tool)
}

#[test]
fn a_request_its_model_and_its_tools_are_one_trace() {
    let collector = TestServer::start(|_, _| TestReply::Plain(200, "", String::new()));
    let url = format!("http://{}", collector.address());
    let (served, model, tool) = serve(&["--otlp", &url]);
    let task = begun(&served, ASKED);
    answered(&served, &task, 1);
    let posted = format!("\r\ntraceparent: {}", header(POSTED));
    let hooked = served.hook("till", &posted, br#"{"text": "Refund it."}"#);
    assert_eq!(hooked.status, 202, "{hooked:?}");
    answered(&served, &task, 2);
    served.terminate();
    assert_eq!(served.ended().0, Some(0));

    // The model was asked twice for the request and twice for the webhook, and the tool was called once for each.
    let traces: Vec<String> = model.requests().iter().map(|asked| said(asked).0).collect();
    assert_eq!(traces, [ASKED.0, ASKED.0, POSTED.0, POSTED.0]);
    let called: Vec<(String, String)> = tool.requests().iter().map(said).collect();
    assert_eq!(called.len(), 2);
    let bodies = collector.requests();
    let spans: Vec<Span> = bodies.iter().flat_map(|sent| spans(&sent.body)).collect();
    for (asker, (trace, parent)) in [ASKED, POSTED].into_iter().zip(&called) {
        assert_eq!(trace, asker.0);
        // From the call of the tool up to whoever asked, every span is there.
        let (mut at, mut names) = (parent.clone(), Vec::new());
        while at != asker.1 {
            let span = spans.iter().find(|span| span.id == at);
            let span = span.unwrap_or_else(|| panic!("no span {at} above {names:?}: {spans:#?}"));
            assert_eq!(span.trace, asker.0);
            names.push(span.name.as_str());
            at.clone_from(&span.parent);
        }
        let path = [
            "tool.invoke",
            "execute_tool refund",
            "invoke_agent clerk",
            "http.request",
        ];
        assert_eq!(names, path);
    }
    let chats: Vec<&Span> = spans
        .iter()
        .filter(|span| span.name == "chat gpt-5")
        .collect();
    assert_eq!(chats.len(), 4, "{spans:#?}");
    let ids: Vec<String> = model.requests().iter().map(|asked| said(asked).1).collect();
    for chat in chats {
        assert!(ids.contains(&chat.id), "the model was told of another span");
        for (name, wanted) in [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "openai"),
            ("gen_ai.request.model", "gpt-5"),
            ("gen_ai.response.model", "gpt-5-2026"),
            ("gen_ai.usage.input_tokens", "1000"),
            ("gen_ai.usage.output_tokens", "100"),
            ("gen_ai.agent.name", "clerk"),
            ("gen_ai.conversation.id", &task),
        ] {
            assert_eq!(
                chat.attributes.get(name).map(String::as_str),
                Some(wanted),
                "{name}"
            );
        }
    }
}

/// A call that fails says so in its span, with the word that the model is told.
#[test]
fn a_call_that_fails_says_why_in_its_span() {
    let collector = TestServer::start(|_, _| TestReply::Plain(200, "", String::new()));
    let url = format!("http://{}", collector.address());
    let tool = TestServer::start(|_, _| TestReply::Plain(404, "", "no such till".to_owned()));
    let (served, _model, _tool) = serve_with(tool, &["--otlp", &url]);
    let task = begun(&served, ASKED);
    answered(&served, &task, 1);
    served.terminate();
    assert_eq!(served.ended().0, Some(0));
    let bodies = collector.requests();
    let spans: Vec<Span> = bodies.iter().flat_map(|sent| spans(&sent.body)).collect();
    let call = spans.iter().find(|span| span.name == "execute_tool refund");
    let call = call.unwrap_or_else(|| panic!("{spans:#?}"));
    for (name, wanted) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "refund"),
        ("gen_ai.tool.type", "function"),
        ("error.type", "http_status"),
    ] {
        let said = call.attributes.get(name).map(String::as_str);
        assert_eq!(said, Some(wanted), "{name}: {call:?}");
    }
}

/// Without a collector, what somebody handed in is passed on as it is, and nobody is told of spans that nobody has.
#[test]
fn what_was_handed_in_is_passed_on_without_a_collector() {
    let (served, model, tool) = serve(&[]);
    let task = begun(&served, ASKED);
    answered(&served, &task, 1);
    let asker = (ASKED.0.to_owned(), ASKED.1.to_owned());
    assert_eq!(said(&model.requests()[0]), asker);
    assert_eq!(said(&tool.requests()[0]), asker);
    // Whoever repeats a request repeats it for something else, and it is the same request all the same.
    let say = |trace: (&str, &str)| {
        let head = format!(
            "POST /v1/tasks/{task}/messages HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             traceparent: {}\r\nidempotency-key: one\r\ncontent-type: application/json",
            served.api,
            served.key,
            header(trace)
        );
        let said = json!({"message": "And again."}).to_string();
        Served::send(served.api, &head, said.as_bytes()).status
    };
    assert_eq!((say(ASKED), say(POSTED)), (202, 202));
    answered(&served, &task, 2);
    // What is no trace is nobody's.
    let order = json!({"agent": "clerk", "message": "Refund 5."});
    let reply = served.ask("POST", "/v1/tasks", Some(&order));
    let other = reply.json()["id"].as_str().unwrap().to_owned();
    answered(&served, &other, 1);
    let last = model.requests().pop().unwrap();
    assert_eq!(last.header("traceparent"), None);
}

#[test]
fn tokens_and_what_they_cost_are_counted_and_shown() {
    let (served, _model, _tool) = serve(&[]);
    let task = begun(&served, ASKED);
    answered(&served, &task, 1);
    let text = served.ask("GET", "/v1/metrics", None).text;
    // Two requests of 1,000 and 100 tokens: 2,000 × 2 and 200 × 8 for a million.
    for line in [
        "proofhouse_model_replies_total{model=\"gpt-5-2026\"} 2",
        "proofhouse_model_tokens_total{model=\"gpt-5-2026\",type=\"input\"} 2000",
        "proofhouse_model_tokens_total{model=\"gpt-5-2026\",type=\"output\"} 200",
        "proofhouse_model_cost_total{model=\"gpt-5-2026\",currency=\"EUR\"} 0.0056",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
    let session = crate::support::served::cookie_of(&served.sign_in(&served.key));
    let page = served
        .look(&session, &format!("/dashboard/tasks/{task}"))
        .text;
    assert!(page.contains("<dt>Cost</dt><dd>0.0056 EUR</dd>"), "{page}");
    assert!(page.contains("0.0028 EUR"), "{page}");
    // Another price counts from the next reload on, and a model without one has no cost.
    let file = served.path("operator.yaml");
    let others = OPERATOR.replace("gpt-5-*", "other");
    std::fs::write(file, others).unwrap();
    served.signal("-HUP");
    until("the reload", || {
        let page = served
            .look(&session, &format!("/dashboard/tasks/{task}"))
            .text;
        page.contains("<dt>Cost</dt><dd>not known</dd>")
            .then_some(())
    });
    let _: Value = served.get("/v1/tasks");
}
