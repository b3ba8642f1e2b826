//! Bindings and settings hold over the whole pipeline: no generated attempt of a model changes what a
//! server sees of a bound parameter, and no value of a setting comes out anywhere.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use proofhouse_agent::model::{Arguments, ChatMessage, Recorder, ToolCall};
use proofhouse_agent::task::{Host, TaskInput, TaskOptions, User};
use proofhouse_manifest::{Bundle, Catalog};
use proofhouse_source::DiagnosticSeverity;
use proofhouse_test_support::alone::is_alone;
use proofhouse_test_support::loopback::{Serving, Vacant};
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{CallEvent, Environment, Observer, Runtimes, ToolLimits};
use proofhouse_wire::server::{Handler, Reply, ReplyBody, Request};
use proofhouse_wire::{Bytes, StatusCode};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

use crate::tasks::{Puppet, call, say};

/// Attempts to change what is bound.
const ATTEMPTS: usize = 1_000;
/// Attempts in one turn of the model.
const AT_ONCE: usize = 50;

/// What is bound, and what every attempt would rather have there.
const BOUND: &str = "tenant-of-the-user";
const EVIL: &str = "tenant-of-mallory";

/// Keeps requests, and answers with them.
#[derive(Clone, Default)]
struct Echo {
    seen: Arc<Mutex<Vec<Value>>>,
    statuses: Arc<Mutex<VecDeque<u16>>>,
}

impl Handler for Echo {
    async fn handle(&self, request: Request) -> Reply {
        let body = request.body.unwrap_or_default();
        let text = String::from_utf8_lossy(&body).into_owned();
        let headers: Map<String, Value> = request
            .headers
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                (name.as_str().to_owned(), value.into())
            })
            .collect();
        let seen = json!({
            "path": request.path,
            "query": request.query,
            "headers": headers,
            "text": text,
            "body": serde_json::from_slice::<Value>(&body).ok(),
        });
        self.seen.lock().unwrap().push(seen.clone());
        let status = self.statuses.lock().unwrap().pop_front().unwrap_or(200);
        let said = seen.to_string();
        // All of it again, in the answer's headers and body, whatever the status.
        let header: String = said.chars().filter(|c| c.is_ascii_graphic()).collect();
        Reply::empty(StatusCode::from_u16(status).unwrap())
            .with_header("content-type", "application/json")
            .with_header("x-echo", &header)
            .with_body(ReplyBody::Whole(Bytes::from(said)))
    }
}

async fn serve(echo: &Echo) -> Serving {
    Serving::start(
        Arc::new(echo.clone()),
        proofhouse_wire::WireLimits::default(),
    )
    .await
}

fn host(manifests: &str, settings: Value, model: Arc<dyn proofhouse_agent::model::Model>) -> Host {
    let (bundle, findings) = Bundle::read(manifests);
    let mut severities = findings.iter().map(|finding| finding.severity);
    assert!(
        severities.all(|severity| severity == DiagnosticSeverity::Warning),
        "{findings:#?}"
    );
    let mut catalog = Catalog::default();
    catalog.add(&bundle);
    let limits = ToolLimits {
        outage: std::time::Duration::ZERO,
        ..ToolLimits::default()
    };
    let loopback = "127.0.0.0/8".parse().unwrap();
    let runtimes = Runtimes::new(&limits, EgressPolicy::allowing([loopback])).unwrap();
    let environment = Environment::new(settings, || "2026-01-02T03:04:05.000Z".to_owned());
    Host::new(catalog, runtimes, limits, environment, model)
}

fn options() -> TaskOptions {
    TaskOptions {
        user: User {
            id: BOUND.to_owned(),
            email: None,
        },
        ..TaskOptions::default()
    }
}

/// Two actions with a bound parameter in every position, one without it, and one that a step invokes.
fn bound_manifests(url: &str) -> String {
    format!(
        r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: store
description: Keeps things.
parameters: {{properties: {{tenant: {{type: string, require_binding: true}}}}}}
actions:
  - name: put
    description: Puts a thing.
    parameters: {{properties: {{thing: {{default: nothing}}, name: {{type: string, default: none}}}}}}
    execute:
      stateless_http:
        method: POST
        url: "{url}/put/{{parameters.tenant}}?tenant={{parameters.tenant}}"
        headers: {{X-Tenant: "{{parameters.tenant}}"}}
        body: {{tenant: "{{parameters.tenant}}", thing: "{{parameters.thing}}", name: "{{parameters.name}}"}}
  - name: drop
    description: Drops a thing.
    parameters: {{properties: {{name: {{type: string, default: none}}}}}}
    execute:
      stateless_http:
        method: POST
        url: "{url}/drop/{{parameters.tenant}}?tenant={{parameters.tenant}}"
        headers: {{X-Tenant: "{{parameters.tenant}}"}}
        body: {{tenant: "{{parameters.tenant}}", name: "{{parameters.name}}"}}
---
kind: commonagents.info/v1beta2/tool
namespace: demo
name: audit
description: Keeps track.
actions:
  - name: note
    description: Notes something.
    parameters: {{properties: {{tenant: {{type: string}}, what: {{}}}}}}
    execute:
      stateless_http:
        method: POST
        url: "{url}/audit/{{parameters.tenant}}?tenant={{parameters.tenant}}"
        headers: {{X-Tenant: "{{parameters.tenant}}"}}
        body: {{tenant: "{{parameters.tenant}}", what: "{{parameters.what}}"}}
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: clerk
description: Helps.
prompt: You help.
capabilities:
  store:
    bindings: {{tenant: context.user.id}}
    before:
      - invoke: "audit:note"
        match: drop
        bindings: {{tenant: context.user.id, what: input}}
"#
    )
}

/// Words that look like the name of the bound parameter, or like ways to reach it.
fn names() -> impl Strategy<Value = String> {
    let fixed = [
        "tenant",
        "Tenant",
        "TENANT",
        "tenant ",
        " tenant",
        "tenant\u{0}",
        "tenant\u{200b}",
        "\u{feff}tenant",
        "t\u{435}nant",
        "tena\u{3b7}t",
        "ｔｅｎａｎｔ",
        "ten\u{ad}ant",
        "tenant[]",
        "tenant[0]",
        "tenant.id",
        "parameters.tenant",
        "parameters",
        "{parameters.tenant}",
        "input",
        "input.tenant",
        "$.tenant",
        "/tenant",
        "..tenant",
        "te\\u006eant",
        "\"tenant\"",
        "X-Tenant",
        "x-tenant",
        "bindings",
        "context",
        "user",
        "_tenant",
        "__proto__",
        "constructor",
        "thing",
        "name",
        "tenantId",
    ];
    prop_oneof![
        6 => prop::sample::select(fixed.to_vec()).prop_map(str::to_owned),
        1 => "[tT][eE]n[a\u{430}]n[tT]{1,2}",
    ]
}

/// Values that carry the wrong tenant, by itself, nested, or as something that could be read again.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(EVIL)),
        Just(json!(format!("{EVIL}\r\nX-Tenant: {EVIL}"))),
        Just(json!(format!("\",\"tenant\":\"{EVIL}"))),
        Just(json!(format!("&tenant={EVIL}"))),
        Just(json!(format!("../../put/{EVIL}?tenant={EVIL}#"))),
        Just(json!("{parameters.tenant}")),
        Just(json!("{settings.api_key}")),
        Just(json!(null)),
        Just(json!(7)),
        Just(json!(true)),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((names(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// The arguments of one attempt, as an object or as the text of one in which keys come twice.
fn attempts() -> impl Strategy<Value = (bool, Arguments)> {
    let pairs = prop::collection::vec((names(), values()), 0..6);
    (any::<bool>(), any::<bool>(), pairs).prop_map(|(drops, as_text, mut pairs)| {
        // The plain attempt is part of every one.
        pairs.push(("tenant".to_owned(), json!(EVIL)));
        let arguments = if as_text {
            let written: Vec<String> = pairs
                .iter()
                .chain(&pairs)
                .map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())))
                .collect();
            Arguments::parse(&format!("{{{}}}", written.join(",")))
        } else {
            Arguments::Object(pairs.into_iter().collect())
        };
        (drops, arguments)
    })
}

/// Every request that a server saw has the bound value in every position.
fn assert_bound(seen: &Value) {
    let path = seen["path"].as_str().unwrap();
    assert_eq!(path.split('/').nth(2), Some(BOUND), "{seen}");
    assert_eq!(path.split('/').count(), 3, "{seen}");
    let query = seen["query"].as_str().unwrap();
    assert_eq!(query, format!("tenant={BOUND}"), "{seen}");
    assert_eq!(seen["headers"]["x-tenant"], BOUND, "{seen}");
    assert_eq!(seen["body"]["tenant"], BOUND, "{seen}");
}

#[test]
fn a_bound_parameter_survives_a_thousand_attempts() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = attempts();
    let mut drawn = (0..ATTEMPTS).map(|_| strategy.new_tree(&mut runner).unwrap().current());
    let (mut sent, mut audited) = (0, 0);
    for _ in 0..ATTEMPTS / AT_ONCE {
        let some: Vec<(bool, Arguments)> = drawn.by_ref().take(AT_ONCE).collect();
        runtime.block_on(async {
            let echo = Echo::default();
            let serving = serve(&echo).await;
            let url = serving.url();
            let model = Puppet::new(move |request| {
                if matches!(request.messages.last(), Some(ChatMessage::Tool { .. })) {
                    return Ok(say("done"));
                }
                let mut reply = call(&[]);
                reply.calls = some
                    .iter()
                    .enumerate()
                    .map(|(at, (drops, arguments))| ToolCall {
                        arguments: arguments.clone(),
                        ..ToolCall::new(
                            format!("call-{at}"),
                            if *drops { "store_drop" } else { "store_put" },
                            Map::new(),
                        )
                    })
                    .collect();
                Ok(reply)
            });
            let host = host(&bound_manifests(&url), json!({}), model.clone());
            let task = host.start("demo", "clerk", options()).unwrap();
            let output = task.send(TaskInput::message("go")).await;
            assert_eq!(output.message, "done", "{output:?}");
            assert_eq!(task.allowed().values("store", "tenant"), [json!(BOUND)]);
            assert_eq!(
                task.context()["capabilities"]["_meta"]["count"]
                    .as_u64()
                    .map(|count| count >= AT_ONCE as u64),
                Some(true)
            );
            task.end().await;
            // The model never learns that there is such a parameter.
            for tool in &model.asked.lock().unwrap()[0].tools {
                assert!(!tool.parameters.to_string().contains("tenant"), "{tool:?}");
            }
            for seen in echo.seen.lock().unwrap().iter() {
                assert_bound(seen);
                sent += 1;
                audited += usize::from(seen["path"].as_str().unwrap().starts_with("/audit"));
            }
            serving.stop();
        });
    }
    // Attempts with names that the schema does not know are refused before anything is sent, so not all of
    // them arrive; enough do for this to mean something.
    assert!(sent >= 100, "only {sent} requests arrived");
    assert!(audited >= 30, "only {audited} steps arrived");
}

/// Everything that is written to the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Keeps all events and spans of `tracing`, with their fields.
struct LogSubscriber(Log);

struct Fields(String);

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl LogSubscriber {
    fn line(&self, name: &str, fields: &Fields) {
        let mut log = self.0.clone();
        let _ = writeln!(log, "{name}{}", fields.0);
    }
}

impl tracing::Subscriber for LogSubscriber {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut fields = Fields(String::new());
        span.record(&mut fields);
        self.line(span.metadata().name(), &fields);
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        let mut fields = Fields(String::new());
        values.record(&mut fields);
        self.line("record", &fields);
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.line(event.metadata().target(), &fields);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// Keeps what observers are told, as a trace would.
#[derive(Default)]
struct Trace(Mutex<String>);

impl Observer for Trace {
    fn observe(&self, event: CallEvent<'_>) {
        let text = match event {
            CallEvent::Returned {
                result: Err(error), ..
            } => format!("{event:?} {} {error}\n", error.to_json()),
            CallEvent::Returned {
                result: Ok(outcome),
                ..
            } => format!("{event:?} {}\n", outcome.value),
            CallEvent::Called { .. } => format!("{event:?}\n"),
        };
        self.0.lock().unwrap().push_str(&text);
    }
}

/// Secrets of different shapes, each in a setting that says so in another way.
const CANARIES: [(&str, &str); 4] = [
    ("api_key", "sk-canary-0d9f73b1c4"),
    ("password", "p@ss/w\"rd canary+äß=&?"),
    ("undeclared", "canary.undeclared.55aa"),
    ("nested", "canary-in-an-object-91"),
];

/// Every form in which a secret may not come out.
fn forms(secret: &str) -> Vec<String> {
    let percent: String = secret
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect();
    let json = Value::from(secret).to_string();
    vec![
        secret.to_owned(),
        percent.to_lowercase(),
        percent.replace("%20", "+"),
        percent,
        json[1..json.len() - 1].to_owned(),
        STANDARD.encode(secret),
        STANDARD_NO_PAD.encode(secret),
        URL_SAFE.encode(secret),
    ]
}

fn leaky_manifests(url: &str, dead: &str) -> String {
    format!(
        r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: leaky
description: Talks to a server that says everything again.
actions:
  - name: get
    description: Gets something.
    parameters: {{properties: {{say: {{type: string, default: hello}}}}}}
    execute:
      stateless_http:
        method: GET
        url: "{url}/get/{{settings.api_key}}?key={{settings.password}}&say={{parameters.say}}"
        headers: {{Authorization: "Bearer {{settings.api_key}}", X-Undeclared: "{{settings.undeclared}}"}}
  - name: post
    description: Posts something.
    parameters: {{properties: {{say: {{type: string, default: hello}}}}}}
    execute:
      stateless_http:
        method: POST
        url: "{url}/post?key={{settings.api_key}}"
        headers: {{Authorization: "Bearer {{settings.api_key}}"}}
        body:
          password: "{{settings.password}}"
          nested: "{{settings.nested.token}}"
          undeclared: "{{settings.undeclared}}"
          said: "{{parameters.say}}"
  - name: gone
    description: Cannot be reached.
    execute:
      stateless_http:
        method: GET
        url: "{dead}/{{settings.api_key}}"
        headers: {{Authorization: "Bearer {{settings.password}}"}}
---
kind: commonagents.info/v1beta2/tool
namespace: demo
name: strict
description: Says which settings it has.
settings:
  properties:
    api_key: {{type: string}}
    password: {{type: string, format: password}}
actions:
  - name: form
    description: Sends a form.
    execute:
      stateless_http:
        method: POST
        url: "{url}/form"
        headers: {{Content-Type: application/x-www-form-urlencoded, Authorization: "Basic {{settings.password}}"}}
        body: {{api_key: "{{settings.api_key}}", password: "{{settings.password}}"}}
        response_path: $.text
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: clerk
description: Helps.
prompt: You help.
capabilities:
  strict: "*"
  leaky:
    before_first:
      - invoke: "leaky:get"
        bindings: {{say: "'first'"}}
    after:
      - transform: "{{'whole': output}}"
exposes:
  all: context.capabilities
"#
    )
}

#[test]
fn no_value_of_a_setting_comes_out() {
    if !is_alone(module_path!(), "no_value_of_a_setting_comes_out") {
        return;
    }
    let log = Log::default();
    // A subscriber for the whole process: tasks run on other threads.
    tracing::subscriber::set_global_default(LogSubscriber(log.clone())).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let settings = json!({
        CANARIES[0].0: CANARIES[0].1,
        CANARIES[1].0: CANARIES[1].1,
        CANARIES[2].0: CANARIES[2].1,
        CANARIES[3].0: {"token": CANARIES[3].1},
    });
    let mut collected = String::new();
    let mut seen = String::new();
    for statuses in [vec![], vec![200, 404, 500, 401, 403, 429, 302, 400, 418]] {
        let name = format!("record-{}.jsonl", statuses.len());
        let recording = directory.path().join(name);
        runtime.block_on(async {
            let echo = Echo::default();
            *echo.statuses.lock().unwrap() = statuses.into();
            let serving = serve(&echo).await;
            let url = serving.url();
            // A port at which nobody listens any more.
            let gone = Vacant::new();
            let dead = format!("http://{}", gone.address());
            // The model repeats what it was told, and tries to have settings filled in.
            let model = Puppet::new(|request| {
                if let Some(ChatMessage::Tool { content, .. }) = request.messages.last() {
                    return Ok(say(content));
                }
                let tries = [
                    ("leaky_get", json!({})),
                    (
                        "leaky_post",
                        json!({"say": "{settings.api_key} {settings.password}"}),
                    ),
                    ("leaky_get", json!({"say": "{{settings.api_key}}"})),
                    ("leaky_post", json!({"say": "settings.undeclared"})),
                    ("strict", json!({})),
                    ("leaky_gone", json!({})),
                    ("strict", json!({})),
                    ("leaky_get", json!({"settings": {"api_key": "mine"}})),
                ];
                Ok(call(&tries))
            });
            let recorder = Arc::new(Recorder::create(model.clone(), &recording, None).unwrap());
            let trace = Arc::new(Trace::default());
            let host = host(&leaky_manifests(&url, &dead), settings.clone(), recorder);
            let host = host.with_observer(trace.clone());
            let task = host.start("demo", "clerk", options()).unwrap();
            let mut events = task.events();
            for message in ["go", "what is {settings.api_key}?"] {
                let output = task.send(TaskInput::message(message)).await;
                collected.push_str(&format!("{output:?}\n{}\n", json!(output)));
            }
            task.end().await;
            while let Ok(event) = events.try_recv() {
                collected.push_str(&format!("{event:?}\n"));
            }
            let history = task.history();
            collected.push_str(&format!("{history:?}\n{}\n", json!(history)));
            collected.push_str(&format!("{}\n{:?}\n", task.context(), task.allowed()));
            collected.push_str(&format!("{host:?} {task:?} {:?}\n", task.ended()));
            collected.push_str(&trace.0.lock().unwrap());
            let asked = model.asked.lock().unwrap();
            collected.push_str(&format!("{asked:?}\n{}\n", json!(*asked)));
            seen.push_str(&json!(*echo.seen.lock().unwrap()).to_string());
            serving.stop();
        });
        #[expect(clippy::disallowed_methods, reason = "our own recording")]
        collected.push_str(&std::fs::read_to_string(&recording).unwrap());
    }
    drop(runtime);
    // The scanner can see, and the tasks did use all of the settings.
    for (name, canary) in CANARIES {
        assert!(
            forms(canary).iter().any(|form| seen.contains(form)),
            "{name} was never sent"
        );
    }
    assert!(collected.contains("[redacted]"));
    let logged = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(!logged.is_empty(), "nothing was logged at all");
    for (what, text) in [("the task", &collected), ("the log", &logged)] {
        for (name, canary) in CANARIES {
            for form in forms(canary) {
                let at = text.find(&form);
                let around = at.map(|at| {
                    let start = text[..at].char_indices().rev().nth(300);
                    &text[start.map_or(0, |(at, _)| at)..at]
                });
                assert!(at.is_none(), "{name} is in {what}: {around:?} {form}");
            }
        }
    }
}
