//! What is elsewhere as capabilities, beside the manifests: MCP servers become tools, and an address that
//! speaks A2A, of either generation, becomes a function that asks the agent there.
//!
//! What the other agent says of itself stands in the description of the function, as it does in every agent
//! that delegates: a card is text that a model reads, and so is every answer.

mod answer;
mod grant_servers;
mod mcp;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proofhouse_protocol::a2a::{A2aMethod, A2aVersion, VERSION_HEADER, card, values};
use proofhouse_protocol::{JSON, rpc};
use proofhouse_wire::HeaderValue;
use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::{
    AddressGuard, Bytes, CancellationToken, HeaderMap, Method, StatusCode, WireLimits,
};
use serde_json::{Value, json};

pub use grant_servers::{GrantError, grant_servers};
pub use mcp::{McpServerError, grant_mcp, mcp_tool};

use self::answer::RemoteAnswer;

/// What is read of one answer, in bytes.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// What of a card goes into the description of the function, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 8 << 10;
/// Skills of a card that are told.
const MAX_SKILLS: usize = 50;
/// How often a task that goes on is asked for.
const POLL: Duration = Duration::from_millis(500);
/// How long one question may take in all.
const PATIENCE: Duration = Duration::from_secs(300);

/// An agent somewhere else.
#[derive(Debug, Clone)]
pub struct RemoteAgent {
    url: url::Url,
    name: Option<String>,
    client: Client,
}

/// Why another agent cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteAgentError {
    /// The address is none.
    #[error("`{0}` is not the address of an agent: it must be a URL with http or https")]
    Address(String),
    /// Nobody answers there, or may be asked there.
    #[error("{0}")]
    Unreachable(String),
    /// What is there is not a card that we can use.
    #[error("{0}")]
    Card(String),
    /// The other agent refused, or said something that is no answer.
    #[error("{0}")]
    Answer(String),
    /// The question took too long.
    #[error("the other agent did not answer in time")]
    TooSlow,
    /// The question was taken back.
    #[error("the question was cancelled")]
    Cancelled,
}

/// What a card says: who is there, and where and how to speak.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Card {
    /// The name, as a part of the name of a function.
    pub(crate) name: String,
    /// What the model is told.
    pub(crate) description: String,
    url: String,
    generation: A2aVersion,
}

/// A conversation with another agent, as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    context: Option<String>,
    /// The task that waits for the next message.
    task: Option<String>,
    asked: AtomicU64,
}

impl RemoteAgent {
    /// An agent at the URL of its card or of the place below which the card is, with `NAME=` before it to
    /// name the function `ask_NAME`; otherwise the card names it. The guard says which addresses may be
    /// asked, whatever the card says.
    ///
    /// # Errors
    ///
    /// Returns an error when the address is none, or when there is no HTTP client.
    pub fn new(target: &str, guard: Arc<dyn AddressGuard>) -> Result<Self, RemoteAgentError> {
        let (name, address) = match target.trim().split_once('=') {
            Some((name, rest)) if !name.contains([':', '/']) => (Some(plain(name)), rest),
            _ => (None, target.trim()),
        };
        let wrong = || RemoteAgentError::Address(address.to_owned());
        let url = url::Url::parse(address).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(wrong());
        }
        let limits = WireLimits {
            max_message_bytes: MAX_ANSWER_BYTES,
            ..WireLimits::default()
        };
        let client = Client::guarded(limits, guard);
        let client = client.map_err(|error| RemoteAgentError::Unreachable(error.to_string()))?;
        Ok(Self { url, name, client })
    }

    /// What it is called as long as there is no card.
    pub(crate) fn known_as(&self) -> String {
        let host = || plain(self.url.host_str().unwrap_or_default());
        self.name.clone().unwrap_or_else(host)
    }

    /// Reads the card.
    pub(crate) async fn card(&self, cancel: &CancellationToken) -> Result<Card, RemoteAgentError> {
        let mut last = String::new();
        for url in self.card_urls() {
            let asked = self
                .client
                .send(Method::GET, url.as_str(), HeaderMap::new(), Bytes::new());
            let response = within(cancel, asked).await?;
            if response.status != StatusCode::OK {
                last = format!("{url} answers with {}", response.status);
                continue;
            }
            let body = within(cancel, response.bytes()).await?;
            let card: Value = serde_json::from_slice(&body)
                .map_err(|error| RemoteAgentError::Card(format!("{url} is no card: {error}")))?;
            return self.read(&card);
        }
        Err(RemoteAgentError::Card(last))
    }

    /// Where the card may be: at the URL, below it, or at the root.
    fn card_urls(&self) -> Vec<url::Url> {
        if self.url.path().ends_with(".json") {
            return vec![self.url.clone()];
        }
        let mut below = self.url.clone();
        if !below.path().ends_with('/') {
            below.set_path(&format!("{}/", self.url.path()));
        }
        below.set_query(None);
        let mut urls = Vec::new();
        for url in [
            below.join(card::PATH),
            self.url.join(&format!("/{}", card::PATH)),
        ] {
            if let Ok(url) = url
                && !urls.contains(&url)
            {
                urls.push(url);
            }
        }
        urls
    }

    fn read(&self, card: &Value) -> Result<Card, RemoteAgentError> {
        let text = |value: &Value, key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (generation, url) = card::interface(card).ok_or_else(|| {
            RemoteAgentError::Card("the card names no JSON-RPC address".to_owned())
        })?;
        let said = text(card, "name");
        let mut description = format!("Asks the agent {said}. {}", text(card, "description"));
        let skills = card.get("skills").and_then(Value::as_array);
        for skill in skills.into_iter().flatten().take(MAX_SKILLS) {
            let line = format!(
                "\n- {}: {}",
                text(skill, "name"),
                text(skill, "description")
            );
            description.push_str(&line);
        }
        if description.len() > MAX_DESCRIPTION_BYTES {
            let mut end = MAX_DESCRIPTION_BYTES;
            while !description.is_char_boundary(end) {
                end -= 1;
            }
            description.truncate(end);
        }
        Ok(Card {
            name: self.name.clone().unwrap_or_else(|| plain(&said)),
            description,
            url: url.to_owned(),
            generation,
        })
    }

    /// Says something and waits for what comes of it.
    pub(crate) async fn ask(
        &self,
        card: &Card,
        talk: &mut Talk,
        message: &str,
        cancel: &CancellationToken,
    ) -> Result<Value, RemoteAgentError> {
        let asking = self.converse(card, talk, message, cancel);
        let asked = tokio::time::timeout(PATIENCE, asking).await;
        asked.map_err(|_| RemoteAgentError::TooSlow)?
    }

    async fn converse(
        &self,
        card: &Card,
        talk: &mut Talk,
        message: &str,
        cancel: &CancellationToken,
    ) -> Result<Value, RemoteAgentError> {
        let number = talk.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let said = json!({
            "kind": "message", "role": "user", "parts": [{"kind": "text", "text": message}],
        });
        let mut said = values::message(&said, card.generation);
        said["messageId"] = format!("{}-{number}", crate::serve::fresh_id()).into();
        if let Some(context) = &talk.context {
            said["contextId"] = context.clone().into();
        }
        if let Some(task) = talk.task.take() {
            said["taskId"] = task.into();
        }
        let send = A2aMethod::SendMessage.as_str(card.generation);
        let get = A2aMethod::GetTask.as_str(card.generation);
        let result = self
            .call(card, send, json!({"message": said}), cancel)
            .await?;
        let mut answer = RemoteAnswer::read(&result);
        while answer.goes_on()
            && let Some(task) = answer.task.clone()
        {
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                () = cancel.cancelled() => return Err(RemoteAgentError::Cancelled),
            }
            let result = self.call(card, get, json!({"id": task}), cancel).await?;
            answer = RemoteAnswer::read(&result);
        }
        talk.context = answer.context.take().or_else(|| talk.context.take());
        talk.task = answer.task.take().filter(|_| answer.waits());
        Ok(answer.into_value())
    }

    async fn call(
        &self,
        card: &Card,
        method: &str,
        params: Value,
        cancel: &CancellationToken,
    ) -> Result<Value, RemoteAgentError> {
        let body = rpc::request(&json!(1), method, Some(&params)).to_string();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(JSON));
        if let version @ A2aVersion::V1_0 = card.generation {
            headers.insert(VERSION_HEADER, HeaderValue::from_static(version.as_str()));
        }
        let sent = self
            .client
            .send(Method::POST, &card.url, headers, body.into());
        let response = within(cancel, sent).await?;
        let status = response.status;
        let body = within(cancel, response.bytes()).await?;
        let value: Value = serde_json::from_slice(&body).map_err(|_| {
            RemoteAgentError::Answer(format!("the other agent answers with {status} and no JSON"))
        })?;
        if let Some(error) = value.get("error") {
            let message = error.get("message").and_then(Value::as_str);
            let message = message.unwrap_or("no reason given");
            return Err(RemoteAgentError::Answer(format!(
                "the other agent refuses: {message}"
            )));
        }
        let result = value.get("result").cloned();
        result.ok_or_else(|| RemoteAgentError::Answer("the answer has no result".to_owned()))
    }
}

/// Waits for the other end, as long as somebody wants to know.
async fn within<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, RemoteAgentError> {
    tokio::select! {
        done = work => done.map_err(|error| RemoteAgentError::Unreachable(error.to_string())),
        () = cancel.cancelled() => Err(RemoteAgentError::Cancelled),
    }
}

/// A name as a part of the name of a function.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for c in name.trim().chars().take(40) {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => plain.push(c),
            _ if plain.is_empty() || plain.ends_with('-') => {}
            _ => plain.push('-'),
        }
    }
    match plain.trim_end_matches('-') {
        "" => "agent".to_owned(),
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Anywhere;

    impl AddressGuard for Anywhere {
        fn check(&self, _: std::net::IpAddr) -> Result<(), proofhouse_wire::AddressDenied> {
            Ok(())
        }
    }

    fn agent(target: &str) -> Result<RemoteAgent, RemoteAgentError> {
        RemoteAgent::new(target, Arc::new(Anywhere))
    }

    #[test]
    fn cards_are_looked_for_where_they_may_be() {
        let urls = |target: &str| {
            let urls = agent(target).unwrap().card_urls();
            urls.iter().map(url::Url::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            urls("http://a.test"),
            ["http://a.test/.well-known/agent-card.json"]
        );
        assert_eq!(
            urls("x=http://a.test/b?c=d"),
            [
                "http://a.test/b/.well-known/agent-card.json",
                "http://a.test/.well-known/agent-card.json"
            ]
        );
        assert_eq!(urls("http://a.test/card.json"), ["http://a.test/card.json"]);
        for wrong in ["", "a.test", "ftp://a.test", "file:///etc/passwd", "x="] {
            assert!(agent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hostile_cards_are_cut_and_named_plainly() {
        let card = json!({"name": "Évil\n Agent!", "description": "ä".repeat(100_000), "url": "http://a.test/"});
        let read = agent("http://a.test").unwrap().read(&card).unwrap();
        assert!(read.description.len() <= MAX_DESCRIPTION_BYTES);
        assert_eq!(read.name, "vil-agent");
        assert_eq!(
            agent("me=http://a.test").unwrap().read(&card).unwrap().name,
            "me"
        );
        for wrong in [
            json!({}),
            json!([]),
            json!({"url": 3}),
            json!({"url": "u", "preferredTransport": "GRPC"}),
        ] {
            assert!(
                agent("http://a.test").unwrap().read(&wrong).is_err(),
                "{wrong}"
            );
        }
    }
}
