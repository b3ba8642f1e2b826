//! The connection to a server: tasks move bytes, what arrives comes through one queue.

mod http;
mod stdio;

use proofhouse_detect::read_lenient;
use proofhouse_protocol::mcp::McpNotification;
use proofhouse_protocol::rpc;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::delivery::DeliveryModifiers;
use crate::facts::UnseenKind;

pub(super) use http::HttpLink;
pub(super) use stdio::StdioLink;

/// Messages that wait to be looked at; a server that is faster has to wait.
const QUEUE: usize = 64;

/// Where something came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageOrigin {
    /// The process.
    Process,
    /// The answer to what was posted, by its number.
    Post(u64),
    /// The stream that the server may use at any time.
    Stream,
}

/// Something that arrived.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) source: MessageOrigin,
    pub(super) what: Arrival,
}

/// What arrived.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A response begins.
    Head {
        status: u16,
        session: Option<String>,
    },
    /// A message: JSON, and no more is known of it.
    Message(Value),
    /// Something that is no message.
    Garbage(Garbage),
    /// Nothing more comes from there.
    Ended(LinkEnd),
}

/// Something that is no message.
#[derive(Debug)]
pub(super) struct Garbage {
    pub(super) kind: UnseenKind,
    /// What it is, for people.
    pub(super) told: String,
    /// As much of it as is there.
    pub(super) bytes: Vec<u8>,
    /// How long it was.
    pub(super) length: u64,
}

impl Garbage {
    fn whole(kind: UnseenKind, told: String, bytes: &[u8]) -> Self {
        Self {
            kind,
            told,
            bytes: bytes.to_vec(),
            length: bytes.len() as u64,
        }
    }

    /// Something of which nothing was kept.
    fn lost(kind: UnseenKind, told: String, length: u64) -> Self {
        Self {
            kind,
            told,
            bytes: Vec::new(),
            length,
        }
    }
}

/// Why nothing more comes.
#[derive(Debug, Default)]
pub(super) struct LinkEnd {
    /// What went wrong, if anything did.
    pub(super) problem: Option<String>,
    /// Nobody was there at all.
    pub(super) unreachable: bool,
}

pub(super) type Sender = mpsc::Sender<Inbound>;
pub(super) type Receiver = mpsc::Receiver<Inbound>;

/// A queue for what arrives.
pub(super) fn queue() -> (Sender, Receiver) {
    mpsc::channel(QUEUE)
}

/// A message on its way out.
#[derive(Debug)]
pub(super) struct OutgoingMessage<'m> {
    pub(super) message: &'m Value,
    /// Headers, for those who have any.
    pub(super) headers: Vec<(String, String)>,
    pub(super) delivery: &'m DeliveryModifiers,
}

/// Why a message cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SendError {
    /// Too many requests wait.
    #[error("{limit} requests wait for an answer already")]
    TooManyWait {
        /// The most that may.
        limit: usize,
    },
    /// Our end of the pipe is closed.
    #[error("the input of the process is closed")]
    Closed,
    /// The other end of the pipe is closed.
    #[error("the process does not read any more")]
    ReadsNoMore,
    /// The pipe stays full.
    #[error("the process does not read")]
    DoesNotRead,
}

/// A connection to a server.
pub(super) enum Link {
    Http(HttpLink),
    Stdio(StdioLink),
}

impl Link {
    pub(super) fn is_http(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Sends a message; the number tells which answer is its, where that can be told.
    pub(super) async fn send(
        &mut self,
        outgoing: OutgoingMessage<'_>,
    ) -> Result<MessageOrigin, SendError> {
        match self {
            Self::Http(link) => link.send(&outgoing),
            Self::Stdio(link) => link.send(outgoing).await.map(|()| MessageOrigin::Process),
        }
    }

    /// Says goodbye as the protocol asks, and leaves nothing behind.
    pub(super) async fn close(self) {
        match self {
            Self::Http(link) => link.close().await,
            Self::Stdio(link) => link.close().await,
        }
    }
}

/// The notifications of a flood.
fn flood(delivery: &DeliveryModifiers) -> impl Iterator<Item = String> + use<> {
    (1..=delivery.notification_flood.unwrap_or(0)).map(|number| {
        let params = json!({"progressToken": "flood", "progress": number});
        rpc::notification(McpNotification::Progress.as_str(), Some(&params)).to_string()
    })
}

/// Messages in a text: one, or a batch of them.
fn messages(text: &[u8], max_batch: usize) -> Vec<Arrival> {
    match read_lenient(text) {
        Ok((Value::Array(batch), _)) => {
            let mut batch = batch.into_iter();
            let taken = batch.by_ref().take(max_batch);
            let mut all: Vec<Arrival> = taken.map(Arrival::Message).collect();
            let rest: Vec<Value> = batch.collect();
            if !rest.is_empty() {
                let told = format!("a batch of more than {max_batch}");
                let rest = Value::Array(rest).to_string();
                let garbage = Garbage::whole(UnseenKind::TooMany, told, rest.as_bytes());
                all.push(Arrival::Garbage(garbage));
            }
            all
        }
        Ok((value, _)) => vec![Arrival::Message(value)],
        Err(error) => {
            let start = String::from_utf8_lossy(&text[..text.len().min(100)]).into_owned();
            let told = format!("not JSON ({error}): {start}");
            let garbage = Garbage::whole(UnseenKind::of_text(text), told, text);
            vec![Arrival::Garbage(garbage)]
        }
    }
}
