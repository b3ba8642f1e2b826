//! Delivers prompts to an agent that is reached over a protocol, as its user would, and hears the answers.

use std::time::{Duration, Instant};

use proofhouse_protocol::a2a::values::state_of;
use proofhouse_protocol::a2a::{A2aMethod, A2aTaskState, A2aVersion};
use proofhouse_protocol::ag_ui::{AgUiEventType, AgUiRunEnd, is_of_agent};
use proofhouse_protocol::{EVENT_STREAM, rpc, text};
use proofhouse_range::PollPace;
use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, WireLimits};
use serde_json::{Value, json};

use crate::subject::{SubjectAnswer, SubjectError};

/// Characters of an answer that are kept.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Bytes of an error that are told.
const MAX_TOLD_BYTES: usize = 300;

/// Where an agent is spoken to.
#[derive(Debug, Clone)]
pub(crate) enum PromptEndpoint {
    AgUi(String),
    A2a(String),
}

/// Why a prompt has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PromptError {
    #[error(transparent)]
    Client(ClientError),
    #[error("the agent cannot be reached: {0}")]
    Unreachable(#[from] ClientError),
    #[error("the agent answered the run with {0}")]
    RunStatus(StatusCode),
    #[error("the agent's run failed: {0}")]
    RunFailed(String),
    #[error(
        "the agent's run waits for a decision of its user (`outcome` of RUN_FINISHED is `interrupt`), and nobody is there to decide"
    )]
    RunWaits,
    #[error("the agent cancelled the run")]
    RunCancelled,
    #[error("the agent's answer ends without RUN_FINISHED, so it is not AG-UI")]
    NoEnd,
    #[error(
        "the agent's answer is not AG-UI: {nonsense} events are no JSON, and none ends the run"
    )]
    NotAgUi { nonsense: u64 },
    #[error("the agent answered a message with {0} and without JSON")]
    NotJson(StatusCode),
    #[error("the agent refused the message: {0}")]
    Refused(String),
    #[error(
        "the agent answers a message with {0} and neither a result nor an error, so it is not A2A"
    )]
    NotA2a(StatusCode),
    #[error("the agent's task ended in the state `{state}`{}{why}", if why.is_empty() { "" } else { ": " })]
    TaskState { state: String, why: String },
    #[error("the agent's task is `{state}`, and the agent does not say how it goes on: {why}")]
    TaskGone { state: String, why: String },
}

impl From<PromptError> for SubjectError {
    fn from(error: PromptError) -> Self {
        Self::of(error)
    }
}

/// A conversation.
pub(crate) struct PromptDelivery {
    endpoint: PromptEndpoint,
    headers: HeaderMap,
    client: Client,
    /// Names the conversation.
    thread: String,
    /// What was said so far, as AG-UI has it.
    messages: Vec<Value>,
    turn: u64,
}

impl PromptDelivery {
    /// Begins a conversation with an agent that may think until the deadline of its run.
    pub(crate) fn new(
        endpoint: PromptEndpoint,
        headers: &[(String, String)],
        thread: &str,
        deadline: Duration,
    ) -> Result<Self, PromptError> {
        let mut map = header_map(headers);
        map.insert("content-type", HeaderValue::from_static("application/json"));
        Ok(Self {
            endpoint,
            headers: map,
            client: Client::new(WireLimits::default().patient(deadline))
                .map_err(PromptError::Client)?,
            thread: thread.to_owned(),
            messages: Vec::new(),
            turn: 0,
        })
    }

    /// Says something and waits until the agent is done with it.
    pub(crate) async fn say(&mut self, text: &str) -> Result<SubjectAnswer, PromptError> {
        self.turn += 1;
        match self.endpoint.clone() {
            PromptEndpoint::AgUi(url) => self.run(&url, text).await,
            PromptEndpoint::A2a(url) => self.message(&url, text).await,
        }
    }

    /// A run of AG-UI. Its answer is the last message: those before announce calls.
    async fn run(&mut self, url: &str, text: &str) -> Result<SubjectAnswer, PromptError> {
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
        let answer = answer?;
        if !answer.status.is_success() {
            return Err(PromptError::RunStatus(answer.status));
        }
        let mut said: Vec<String> = Vec::new();
        let (mut message, mut said_at, mut length) = (Value::Null, None, 0);
        let (mut is_finished, mut is_agents) = (false, true);
        let mut nonsense = 0_u64;
        let mut events = answer.events();
        while let Some(event) = events.next().await? {
            let Ok(event) = serde_json::from_str::<Value>(&event.data) else {
                nonsense += 1;
                continue;
            };
            let delta = event["delta"].as_str().unwrap_or_default();
            let known = event["type"].as_str().and_then(AgUiEventType::parse);
            let begins = match known {
                Some(AgUiEventType::TextMessageStart) => true,
                // Chunks begin a message by naming another one.
                Some(AgUiEventType::TextMessageChunk) => {
                    event["messageId"].is_string() && event["messageId"] != message
                }
                _ => false,
            };
            if begins {
                message = event["messageId"].clone();
                is_agents = is_of_agent(&event);
                if is_agents {
                    said.push(String::new());
                }
            }
            match known {
                // What the user said is no answer, whoever sends it.
                Some(known) if known.has_text() && !is_agents => {}
                Some(known) if known.has_text() && length + delta.len() <= MAX_ANSWER_BYTES => {
                    length += delta.len();
                    if said.is_empty() {
                        said.push(String::new());
                    }
                    if let Some(last) = said.last_mut() {
                        last.push_str(delta);
                    }
                    if !delta.trim().is_empty() {
                        said_at = Some(Instant::now());
                    }
                }
                Some(AgUiEventType::RunError) => {
                    let why = event["message"].as_str().unwrap_or_default();
                    return Err(PromptError::RunFailed(why.to_owned()));
                }
                Some(AgUiEventType::RunFinished) => match AgUiRunEnd::of(&event) {
                    AgUiRunEnd::Finished => {
                        is_finished = true;
                        break;
                    }
                    AgUiRunEnd::Interrupted(_) => return Err(PromptError::RunWaits),
                    AgUiRunEnd::Cancelled => return Err(PromptError::RunCancelled),
                },
                _ => {}
            }
        }
        if !is_finished {
            return Err(match nonsense {
                0 => PromptError::NoEnd,
                nonsense => PromptError::NotAgUi { nonsense },
            });
        }
        let heard = said.iter().filter(|text| !text.is_empty()).enumerate();
        self.messages.extend(heard.map(|(number, text)| {
            json!({"id": format!("{id}-agent-{number}"), "role": "assistant", "content": text})
        }));
        Ok(SubjectAnswer {
            text: Some(said.pop().unwrap_or_default()),
            said_at,
        })
    }

    /// A message of A2A. Whoever answers with a task that goes on is asked for it until it has ended: the run waits no longer
    /// than it may.
    async fn message(&mut self, url: &str, text: &str) -> Result<SubjectAnswer, PromptError> {
        let id = format!("{}-{}", self.thread, self.turn);
        let params = json!({
            "message": {
                "kind": "message", "messageId": id, "role": "user",
                "parts": [{"kind": "text", "text": text}],
            },
            "configuration": {"blocking": true},
        });
        let mut result = self.ask(url, A2aMethod::SendMessage, &params).await?;
        let mut pace = PollPace::default();
        while let Some(state) = state_of(&result) {
            let state = state.to_owned();
            match A2aTaskState::parse(&state) {
                Some(
                    A2aTaskState::Completed | A2aTaskState::InputRequired | A2aTaskState::Rejected,
                ) => break,
                Some(A2aTaskState::Submitted | A2aTaskState::Working) => {}
                Some(
                    A2aTaskState::Failed
                    | A2aTaskState::Canceled
                    | A2aTaskState::AuthRequired
                    | A2aTaskState::Unknown,
                )
                | None => {
                    let mut why = String::new();
                    text::collect_answer(&result["status"], MAX_TOLD_BYTES, &mut why);
                    return Err(PromptError::TaskState {
                        state,
                        why: why.trim().to_owned(),
                    });
                }
            }
            tokio::time::sleep(pace.next_pause()).await;
            let params = json!({"id": result["id"]});
            let polled = self.ask(url, A2aMethod::GetTask, &params).await;
            result = polled.map_err(|error| PromptError::TaskGone {
                state,
                why: error.to_string(),
            })?;
        }
        let mut said = String::new();
        text::collect_answer(&result, MAX_ANSWER_BYTES, &mut said);
        Ok(SubjectAnswer {
            text: Some(said),
            // It came in one piece, and nobody knows when it was written.
            said_at: None,
        })
    }

    /// One request of A2A, and its result.
    async fn ask(
        &self,
        url: &str,
        method: A2aMethod,
        params: &Value,
    ) -> Result<Value, PromptError> {
        let method = method.as_str(A2aVersion::V0_3);
        let request = rpc::request(&json!(self.turn), method, Some(params));
        let body = Bytes::from(request.to_string());
        let answer = self
            .client
            .send(Method::POST, url, self.headers.clone(), body);
        let answer = answer.await?;
        let status = answer.status;
        let bytes = answer.bytes().await?;
        let mut answer: Value =
            serde_json::from_slice(&bytes).map_err(|_| PromptError::NotJson(status))?;
        if let Some(error) = answer.get("error") {
            let why = error["message"].as_str().unwrap_or_default();
            return Err(PromptError::Refused(why.to_owned()));
        }
        if !answer["result"].is_object() {
            return Err(PromptError::NotA2a(status));
        }
        Ok(answer["result"].take())
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
