//! The handle of a task: how those outside talk to it, watch it and end it.

use std::sync::{Arc, Mutex, PoisonError};

use proofhouse_wire::CancellationToken;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::{broadcast, mpsc, oneshot};

use super::review::Reviews;
use super::{AllowList, Decision, End, EndReason, Review, TaskEvent, Turn};

/// What is said to an agent.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// The message; the default of the `message` parameter when absent.
    pub message: Option<String>,
    /// The parameters of the agent.
    pub parameters: Map<String, Value>,
    /// Ends the answer early; the task stays.
    pub cancel: CancellationToken,
}

impl Input {
    /// A message without parameters.
    #[must_use]
    pub fn message(text: impl Into<String>) -> Self {
        Self {
            message: Some(text.into()),
            ..Self::default()
        }
    }
}

/// What an agent answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Output {
    /// What it says.
    pub message: String,
    /// What the manifest exposes beside that.
    pub exposes: Map<String, Value>,
    /// Why there is no answer this time; the task waits for the next input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// How the task ended, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<End>,
}

pub(super) enum Command {
    Input(Input, oneshot::Sender<Output>),
    End(oneshot::Sender<()>),
}

/// What is known of a task from outside while it goes on.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) history: Vec<Turn>,
    pub(super) context: Value,
    pub(super) allowed: AllowList,
    pub(super) ended: Option<End>,
}

/// A task that goes on until it is ended, or nobody holds it any more. Cheap to clone.
#[derive(Clone)]
pub struct Task {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) model: String,
    pub(super) simulation: bool,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) events: broadcast::Sender<TaskEvent>,
    pub(super) reviews: Reviews,
    pub(super) known: Arc<Mutex<Known>>,
    pub(super) cancel: CancellationToken,
}

impl Task {
    /// Names the task.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The model, as it names itself, and whether it is a simulation.
    #[must_use]
    pub fn model(&self) -> (&str, bool) {
        (&self.model, self.simulation)
    }

    /// Says something and waits for the answer. Inputs are answered one after the other.
    pub async fn send(&self, input: Input) -> Output {
        let (reply, answer) = oneshot::channel();
        // What could not be sent is dropped here, and the end of the answer with it.
        let sent = self
            .commands
            .send(Command::Input(input, reply))
            .await
            .is_ok();
        match (sent, answer.await) {
            (true, Ok(output)) => output,
            _ => Output {
                ended: Some(
                    self.ended()
                        .unwrap_or_else(|| End::new(EndReason::Closed, "the task has ended")),
                ),
                ..Output::default()
            },
        }
    }

    /// Watches the task. Who falls far behind misses events.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<TaskEvent> {
        self.events.subscribe()
    }

    /// The questions that wait for an answer.
    #[must_use]
    pub fn reviews(&self) -> Vec<Review> {
        self.reviews.waiting()
    }

    /// Answers a question; `false` if it is not open.
    pub fn decide(&self, review: u64, decision: Decision) -> bool {
        self.reviews.decide(review, decision)
    }

    /// What happened so far.
    #[must_use]
    pub fn history(&self) -> Vec<Turn> {
        self.look(|known| known.history.clone())
    }

    /// The context as expressions see it.
    #[must_use]
    pub fn context(&self) -> Value {
        self.look(|known| known.context.clone())
    }

    /// The values of parameters that events may be about.
    #[must_use]
    pub fn allowed(&self) -> AllowList {
        self.look(|known| known.allowed.clone())
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.look(|known| known.ended.clone())
    }

    fn look<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Cancels whatever is under way and ends the task.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Ends the task once it is idle, and waits until its tools are torn down.
    pub async fn end(&self) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(Command::End(reply)).await.is_ok() {
            let _ = done.await;
        }
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task")
            .field("id", &self.id)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}
