//! A provider on the loopback address that plays what it is told, and remembers what it was asked.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_agent::model::{
    ChatMessage, Model, ModelConfig, ModelError, ModelEvent, ModelLimits, ModelOptions, ModelReply,
    ModelRequest, ToolCall, ToolSpec, open,
};
use proofhouse_manifest::interpolate::Sealed;
use proofhouse_test_support::loopback::Serving;
use proofhouse_wire::retry::RetryPolicy;
use proofhouse_wire::server::{Handler, Reply, Request};
use proofhouse_wire::{Bytes, CancellationToken, HeaderMap, StatusCode, WireLimits};
use serde_json::{Value, json};

/// The key of every test. It must not appear anywhere but in its header.
pub(crate) const KEY: &str = "sk-canary-51f0c2";

/// What the provider does with one request.
pub(crate) enum Play {
    Json(u16, Value),
    /// A status, a header and a body.
    Plain(u16, (&'static str, &'static str), String),
    /// Events, each the data of one, and how the stream ends.
    Events(Vec<String>, End),
    /// The same event again and again.
    Endless(String),
    Hang,
    Cut,
}

pub(crate) enum End {
    Properly,
    Cut,
    Silence,
}

/// A request as the provider saw it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

pub(crate) struct Provider {
    pub(crate) url: String,
    state: Arc<State>,
    _serving: Serving,
}

struct State {
    plays: Mutex<VecDeque<Play>>,
    seen: Mutex<Vec<Seen>>,
}

impl Provider {
    pub(crate) async fn start(plays: impl IntoIterator<Item = Play>) -> Self {
        let state = Arc::new(State {
            plays: Mutex::new(plays.into_iter().collect()),
            seen: Mutex::default(),
        });
        let answering = Arc::new(Answering(Arc::clone(&state)));
        let serving = Serving::start(answering, WireLimits::default()).await;
        Self {
            url: serving.url(),
            state,
            _serving: serving,
        }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.state.seen.lock().unwrap())
    }
}

struct Answering(Arc<State>);

impl Handler for Answering {
    async fn handle(&self, request: Request) -> Reply {
        let body = request.body.unwrap_or_default();
        self.0.seen.lock().unwrap().push(Seen {
            path: request.path,
            query: request.query.unwrap_or_default(),
            headers: request.headers,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        });
        let play = self.0.plays.lock().unwrap().pop_front();
        match play {
            None => Reply::json(StatusCode::IM_A_TEAPOT, "{}"),
            Some(Play::Json(status, body)) => {
                Reply::json(StatusCode::from_u16(status).unwrap(), body.to_string())
            }
            Some(Play::Plain(status, (name, value), body)) => {
                Reply::empty(StatusCode::from_u16(status).unwrap())
                    .with_header(name, value)
                    .with_body(proofhouse_wire::server::ReplyBody::Whole(Bytes::from(body)))
            }
            Some(Play::Hang) => std::future::pending().await,
            Some(Play::Cut) => Reply::cut(),
            Some(Play::Events(events, end)) => {
                let (reply, writer) = Reply::events();
                tokio::spawn(async move {
                    for event in events {
                        let _ = writer.write(format!("data: {event}\n\n")).await;
                    }
                    match end {
                        End::Properly => {}
                        End::Cut => writer.cut().await,
                        End::Silence => writer.closed().await,
                    }
                });
                reply
            }
            Some(Play::Endless(event)) => {
                let (reply, writer) = Reply::events();
                tokio::spawn(async move {
                    while writer.write(format!("data: {event}\n\n")).await.is_ok() {}
                });
                reply
            }
        }
    }
}

pub(crate) fn events(list: &[Value]) -> Vec<String> {
    list.iter().map(Value::to_string).collect()
}

/// Settings for tests: short waits, small bounds.
pub(crate) fn config(provider: &Provider) -> ModelConfig {
    ModelConfig {
        base_url: Some(provider.url.clone()),
        key: Some(Sealed::new(KEY.to_owned())),
        limits: ModelLimits {
            first_byte: Duration::from_secs(2),
            between_chunks: Duration::from_secs(1),
            total: Duration::from_secs(20),
            max_bytes: 1 << 20,
            max_text_bytes: 64 << 10,
            max_argument_bytes: 16 << 10,
            retry: RetryPolicy {
                base: Duration::from_millis(5),
                ..ModelLimits::default().retry
            },
            ..ModelLimits::default()
        },
        ..ModelConfig::default()
    }
}

/// A conversation with everything in it.
pub(crate) fn request() -> ModelRequest {
    let call = ToolCall::new(
        "c1",
        "get_weather",
        json!({"city": "Paris"}).as_object().unwrap().clone(),
    );
    ModelRequest {
        system: Some("Be brief.".to_owned()),
        messages: vec![
            ChatMessage::user("Weather in Paris?"),
            ChatMessage::Assistant {
                text: String::new(),
                calls: vec![call.clone()],
            },
            ChatMessage::tool(&call, "18 degrees", false),
            ChatMessage::user("And in Rome?"),
        ],
        tools: vec![ToolSpec {
            name: "get_weather".to_owned(),
            description: "Gets the weather.".to_owned(),
            parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
        }],
        options: ModelOptions {
            temperature: Some(0.5),
            seed: Some(42),
            max_tokens: Some(100),
            built_in: Vec::new(),
        },
    }
}

/// Asks once; the events beside the outcome.
pub(crate) async fn ask(
    spec: &str,
    config: &ModelConfig,
) -> (Result<ModelReply, ModelError>, Vec<ModelEvent>) {
    ask_model(&*open(spec, config).unwrap()).await
}

pub(crate) async fn ask_model(
    model: &dyn Model,
) -> (Result<ModelReply, ModelError>, Vec<ModelEvent>) {
    let mut events = Vec::new();
    let asked = model
        .complete(&request(), &mut events, &CancellationToken::new())
        .await;
    if let Err(error) = &asked {
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    }
    (asked, events)
}
