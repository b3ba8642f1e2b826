//! The user of an agent that is reached over a protocol: says something and hears the answer.

use proofhouse_protocol::a2a::{A2aMethod, A2aVersion};
use proofhouse_protocol::ag_ui::AgUiEventType;
use proofhouse_protocol::{EVENT_STREAM, rpc, text};
use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Limits, Method};
use serde_json::{Value, json};

/// Characters of an answer that are kept.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Where an agent is spoken to.
#[derive(Debug, Clone)]
pub(crate) enum Door {
    AgUi(String),
    A2a(String),
}

/// A conversation.
pub(crate) struct User {
    door: Door,
    headers: HeaderMap,
    client: Client,
    /// Names the conversation.
    thread: String,
    /// What was said so far, as AG-UI has it.
    messages: Vec<Value>,
    turn: u64,
}

impl User {
    /// Begins a conversation.
    pub(crate) fn new(
        door: Door,
        headers: &[(String, String)],
        thread: &str,
    ) -> Result<Self, String> {
        let mut map = header_map(headers);
        map.insert("content-type", HeaderValue::from_static("application/json"));
        Ok(Self {
            door,
            headers: map,
            client: Client::new(Limits::default()).map_err(|error| error.to_string())?,
            thread: thread.to_owned(),
            messages: Vec::new(),
            turn: 0,
        })
    }

    /// Says something and waits until the agent is done with it.
    pub(crate) async fn say(&mut self, text: &str) -> Result<String, String> {
        self.turn += 1;
        match self.door.clone() {
            Door::AgUi(url) => self.run(&url, text).await,
            Door::A2a(url) => self.message(&url, text).await,
        }
    }

    async fn run(&mut self, url: &str, text: &str) -> Result<String, String> {
        let id = format!("{}-{}", self.thread, self.turn);
        self.messages
            .push(json!({"id": format!("{id}-user"), "role": "user", "content": text}));
        let input = json!({
            "threadId": self.thread, "runId": id, "messages": self.messages,
            "tools": [], "context": [], "state": {}, "forwardedProps": {},
        });
        let mut headers = self.headers.clone();
        headers.insert("accept", HeaderValue::from_static(EVENT_STREAM));
        let body = Bytes::from(input.to_string());
        let answer = self.client.send(Method::POST, url, headers, body).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        if !answer.status.is_success() {
            return Err(format!("the agent answers a run with {}", answer.status));
        }
        let mut said = String::new();
        let mut is_finished = false;
        let mut nonsense = 0_u64;
        let mut events = answer.events();
        while let Some(event) = events.next().await.map_err(|error| unreachable(&error))? {
            let Ok(event) = serde_json::from_str::<Value>(&event.data) else {
                nonsense += 1;
                continue;
            };
            let delta = event["delta"].as_str().unwrap_or_default();
            match event["type"].as_str().and_then(AgUiEventType::parse) {
                Some(known) if known.has_text() => {
                    if said.len() + delta.len() <= MAX_ANSWER_BYTES {
                        said.push_str(delta);
                    }
                }
                Some(AgUiEventType::RunError) => {
                    let why = event["message"].as_str().unwrap_or_default();
                    return Err(format!("the agent's run failed: {why}"));
                }
                Some(AgUiEventType::RunFinished) => {
                    is_finished = true;
                    break;
                }
                _ => {}
            }
        }
        if !is_finished {
            return Err(match nonsense {
                0 => "the agent's answer ends without RUN_FINISHED, so it is not AG-UI".to_owned(),
                _ => format!(
                    "the agent's answer is not AG-UI: {nonsense} events are no JSON, and none ends the run"
                ),
            });
        }
        self.messages
            .push(json!({"id": format!("{id}-agent"), "role": "assistant", "content": said}));
        Ok(said)
    }

    async fn message(&mut self, url: &str, text: &str) -> Result<String, String> {
        let id = format!("{}-{}", self.thread, self.turn);
        let params = json!({
            "message": {
                "kind": "message", "messageId": id, "role": "user",
                "parts": [{"kind": "text", "text": text}],
            },
            "configuration": {"blocking": true},
        });
        let method = A2aMethod::SendMessage.as_str(A2aVersion::V0_3);
        let request = rpc::request(&json!(self.turn), method, Some(&params));
        let body = Bytes::from(request.to_string());
        let answer = self
            .client
            .send(Method::POST, url, self.headers.clone(), body);
        let answer = answer.await.map_err(|error| unreachable(&error))?;
        let status = answer.status;
        let bytes = answer.bytes().await.map_err(|error| unreachable(&error))?;
        let answer: Value = serde_json::from_slice(&bytes)
            .map_err(|_| format!("the agent answers a message with {status} and no JSON"))?;
        if let Some(error) = answer.get("error") {
            let why = error["message"].as_str().unwrap_or_default();
            return Err(format!("the agent refused the message: {why}"));
        }
        if !answer["result"].is_object() {
            return Err(format!(
                "the agent answers a message with {status} and neither a result nor an error, so it is not A2A"
            ));
        }
        let mut said = String::new();
        text::collect_answer(&answer["result"], MAX_ANSWER_BYTES, &mut said);
        Ok(said)
    }
}

/// Headers for requests. What cannot be one was refused before.
pub(crate) fn header_map(headers: &[(String, String)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        if let (Ok(name), Ok(mut value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            value.set_sensitive(true);
            map.append(name, value);
        }
    }
    map
}

fn unreachable(error: &ClientError) -> String {
    format!("the agent cannot be asked: {error}")
}
