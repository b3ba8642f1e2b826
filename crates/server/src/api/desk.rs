//! The desk: what the HTTP API asks of whoever runs the tasks.

use async_trait::async_trait;
use http::HeaderMap;
use proofhouse_store::StoreError;
use proofhouse_store::model::StartKey;
use serde_json::{Map, Value};
use tokio::sync::broadcast;

/// Runs tasks for the API. What is only looked at comes from the store.
#[async_trait]
pub trait Desk: Send + Sync + 'static {
    /// Begins a task and returns its id. It is kept when this returns; an order that may be repeated begins one task.
    async fn create(&self, order: Order) -> Result<String, DeskError>;

    /// Says something to a task and returns the number of the delivery. It is kept when this returns; the same key
    /// says it once.
    /// It is an error if the key was used to say something else.
    async fn say(&self, task: &str, message: Message) -> Result<i64, DeskError>;

    /// Answers a question that a task has.
    async fn decide(&self, task: &str, review: u64, answer: Answer) -> Result<(), DeskError>;

    /// Stops what a task is doing; it goes on with its next input.
    async fn interrupt(&self, task: &str) -> Result<(), DeskError>;

    /// Ends a task for good.
    async fn cancel(&self, task: &str) -> Result<(), DeskError>;

    /// Takes in a webhook. It is kept when this returns [`Reception::Stored`].
    async fn receive(&self, webhook: Webhook) -> Reception;

    /// Has an event routed again, and returns the number of the attempt.
    async fn replay(&self, event: i64) -> Result<i64, DeskError>;

    /// Pieces of text that a task's model says, while the task runs in this process.
    fn listen(&self, task: &str) -> Option<broadcast::Receiver<String>>;

    /// Whether it is about to end, so that nobody should wait for more.
    fn is_closing(&self) -> bool;

    /// The manifests as they are now.
    fn manifests(&self) -> Vec<ManifestFile>;

    /// Whether there is such a schedule or trigger among them.
    fn has_start(&self, key: &StartKey) -> bool;
}

/// A task to begin.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// The namespace of the agent; may be empty where the name says enough.
    pub namespace: String,
    /// The agent.
    pub agent: String,
    /// What is said to it first.
    pub message: Option<String>,
    /// The agent's parameters.
    pub parameters: Map<String, Value>,
    /// Who talks to the agent.
    pub user: String,
    /// The user's address.
    pub email: Option<String>,
    /// It may be repeated.
    pub once: Option<Once>,
}

/// Which task an order that may be repeated is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    /// The id of the task.
    pub id: String,
    /// Stands for all that the order says; another order with the same id is a mistake.
    pub request: String,
}

/// Something said to a task.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// What.
    pub text: Option<String>,
    /// The agent's parameters.
    pub parameters: Map<String, Value>,
    /// Whoever repeats a request repeats this.
    pub key: Option<String>,
}

/// An answer to a question of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Whether it may be done.
    pub approve: bool,
    /// Why, or why not.
    pub reason: Option<String>,
    /// Who says so.
    pub by: String,
}

/// A webhook as it came.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// The tool it is for.
    pub tool: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// What follows the question mark.
    pub query: Option<String>,
    /// Its body.
    pub body: bytes::Bytes,
    /// It only asks whether somebody is there; it is never kept.
    pub is_question: bool,
}

/// What became of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reception {
    /// It is kept.
    Stored(i64),
    /// It was kept before.
    Duplicate(i64),
    /// The platform wants to hear this, and nothing happened.
    Handshake(Handshake),
    /// There is no such tool, or it takes no webhooks.
    Unknown,
    /// The signature is not right: why, without a secret.
    Refused(String),
    /// It cannot be read.
    Malformed(String),
    /// It is more than is taken.
    TooLarge(String),
    /// It is in a form that is not read here.
    Unsupported(String),
    /// It asks, and this is no question that is known.
    NoAnswer,
    /// It cannot be kept now.
    Unavailable(String),
}

/// What a platform wants to hear before it sends events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handshake {
    /// Text, as it is.
    Text(String),
    /// JSON.
    Json(Value),
    /// Only that it arrived.
    Empty,
}

/// A file of manifests.
#[derive(Debug, Clone, Default)]
pub struct ManifestFile {
    /// Its path within the directory.
    pub path: String,
    /// Whether an earlier version is in use because this one is wrong.
    pub stale: bool,
    /// What is in it: kind, namespace and name.
    pub holds: Vec<(String, String, String)>,
    /// What is wrong with it.
    pub problems: Vec<ManifestProblem>,
}

/// Something wrong in a manifest.
#[derive(Debug, Clone, Default)]
pub struct ManifestProblem {
    /// The code.
    pub code: String,
    /// Whether it only warns.
    pub warning: bool,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub line: usize,
    /// Where in the line.
    pub column: usize,
}

/// Why the desk cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// What was asked for cannot be.
    #[error("{0}")]
    Invalid(String),
    /// It cannot be done as things stand.
    #[error("{0}")]
    Conflict(String),
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Closing,
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
}
