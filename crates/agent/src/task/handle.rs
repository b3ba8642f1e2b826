//! The handle of a task: how those outside talk to it, watch it and end it.

use std::sync::{Arc, Mutex};

use proofhouse_tools::runtime::ToolTask;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use proofhouse_wire::trace::TraceScope;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::review::Reviews;
use super::runner::{AnswerInterrupt, Delegating};
use super::watch::{TaskEvents, Watchers};
use super::{CallStatus, Decision, EndReason, JournalError, Review, TaskAllowList, TaskEnd, Turn};
use crate::model::{ChatMessage, ToolCall, ToolSpec};

/// What is said to an agent.
#[derive(Debug, Clone, Default)]
pub struct TaskInput {
    /// The message; the default of the `message` parameter when absent.
    pub message: Option<String>,
    /// The parameters of the agent.
    pub parameters: Map<String, Value>,
    /// Ends the answer early; the task stays.
    pub cancel: CancellationToken,
    /// What was said elsewhere since the last answer: it stands in the conversation before the message.
    /// Results of calls that were left open are found in it.
    pub preceding: Vec<ChatMessage>,
    /// The model goes on from what precedes. A message is then only what the rules see: it stands in the
    /// conversation already.
    pub goes_on: bool,
    /// Functions of whoever asks. A call of one is left open: [`TaskOutput::pending`].
    pub tools: Vec<ToolSpec>,
    /// What whoever asks says about the circumstances of this input, for the model.
    pub context: Option<String>,
    /// The event that this is, with its message rendered. Its parameters are not those of the agent.
    pub event: Option<InputEvent>,
    /// Names this input for the journal, which settles it with the turn that it becomes.
    pub delivery: Option<String>,
}

/// An event of a capability.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputEvent {
    /// The capability, as the agent's manifest names it.
    pub capability: String,
    /// The name of the event.
    pub name: String,
    /// What rules read as `event`: the payload, and whatever else there is to know.
    pub value: Value,
}

impl TaskInput {
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
pub struct TaskOutput {
    /// What it says.
    pub message: String,
    /// What the manifest exposes beside that.
    pub exposes: Map<String, Value>,
    /// Calls of functions of whoever asked, whose results come with the next input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<ToolCall>,
    /// Why there is no answer this time; the task waits for the next input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Why a rule of the agent kept an event out; the task waits for the next input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discarded: Option<String>,
    /// Whether somebody stopped the answer; the task can go on with it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Why this part of the task stopped, though the task is not over: its journal could not be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<JournalError>,
    /// How the task ended, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<TaskEnd>,
}

/// What came of a call from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct CallOutput {
    /// What the function gave, or why not.
    pub result: Value,
    /// How it ended.
    pub status: CallStatus,
    /// How the task ended, if it did.
    pub ended: Option<TaskEnd>,
}

/// A call from outside.
pub(super) struct DirectCall {
    pub(super) function: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) cancel: CancellationToken,
}

pub(super) enum TaskCommand {
    /// On the heap: a queue has room for many before any comes.
    Input(Box<TaskInput>, TraceScope, oneshot::Sender<TaskOutput>),
    Call(Box<DirectCall>, oneshot::Sender<CallOutput>),
    Functions(oneshot::Sender<Result<Vec<ToolSpec>, TaskEnd>>),
    Resume(TraceScope, oneshot::Sender<TaskOutput>),
    Interrupt(oneshot::Sender<TaskOutput>),
    End(oneshot::Sender<()>),
}

/// What is known of a task from outside while it goes on.
#[derive(Debug, Default)]
pub(super) struct TaskStatus {
    pub(super) history: Vec<Turn>,
    pub(super) context: Arc<Value>,
    pub(super) allowed: TaskAllowList,
    pub(super) ended: Option<TaskEnd>,
}

/// A task that goes on until it is ended, or nobody holds it any more. Cheap to clone.
#[derive(Clone)]
pub struct Task {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) model: String,
    pub(super) simulation: bool,
    pub(super) commands: mpsc::Sender<TaskCommand>,
    pub(super) events: Watchers,
    pub(super) reviews: Reviews,
    pub(super) delegating: Delegating,
    pub(super) known: Arc<Mutex<TaskStatus>>,
    pub(super) cancel: CancellationToken,
    pub(super) interrupt: Arc<AnswerInterrupt>,
    pub(super) lost: Arc<Mutex<Option<JournalError>>>,
    pub(super) tools: Arc<Mutex<Vec<ToolTask>>>,
    pub(super) unfinished: bool,
}

/// What the tools of a task have open while it waits, such as sessions and servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldTools {
    /// Nothing that ends with this part of the task.
    Nothing,
    /// Something that may be ended, to be made again at the next call.
    Evictable,
    /// Something that has to stay as long as the task does.
    Kept,
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
    pub async fn send(&self, input: TaskInput) -> TaskOutput {
        let scope = TraceScope::current();
        self.ask(|reply| TaskCommand::Input(Box::new(input), scope, reply))
            .await
    }

    /// Goes on with an input that has no answer yet, because the task was restored or interrupted. Says
    /// nothing if there is none.
    pub async fn resume(&self) -> TaskOutput {
        let scope = TraceScope::current();
        self.ask(|reply| TaskCommand::Resume(scope, reply)).await
    }

    /// Whether the task was restored in the middle of an answer that nobody stopped: [`Task::resume`] goes
    /// on with it.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// Stops the answer that is under way, and waits until the task is idle.
    pub async fn interrupt(&self) -> TaskOutput {
        self.interrupt.stop();
        self.ask(TaskCommand::Interrupt).await
    }

    async fn ask(
        &self,
        command: impl FnOnce(oneshot::Sender<TaskOutput>) -> TaskCommand,
    ) -> TaskOutput {
        let (reply, answer) = oneshot::channel();
        // What could not be sent is dropped here, and the end of the answer with it.
        let sent = self.commands.send(command(reply)).await.is_ok();
        match (sent, answer.await) {
            (true, Ok(output)) => output,
            _ => match self.lost() {
                Some(lost) => TaskOutput {
                    lost: Some(lost),
                    ..TaskOutput::default()
                },
                None => TaskOutput {
                    ended: Some(self.over()),
                    ..TaskOutput::default()
                },
            },
        }
    }

    /// Why this part of the task stopped, if its journal could not be written.
    #[must_use]
    pub fn lost(&self) -> Option<JournalError> {
        let lost = lock(&self.lost);
        lost.clone()
    }

    /// Calls a function as the model would: bindings, steps and limits hold. The model does not hear of
    /// it.
    pub async fn call(
        &self,
        function: impl Into<String>,
        arguments: Map<String, Value>,
        cancel: CancellationToken,
    ) -> CallOutput {
        let (reply, answer) = oneshot::channel();
        let call = DirectCall {
            function: function.into(),
            arguments,
            cancel,
        };
        let sent = self
            .commands
            .send(TaskCommand::Call(Box::new(call), reply))
            .await
            .is_ok();
        match (sent, answer.await) {
            (true, Ok(output)) => output,
            _ => {
                let end = self.over();
                CallOutput {
                    result: json!({"error": "ended", "message": end.message}),
                    status: CallStatus::Errored,
                    ended: Some(end),
                }
            }
        }
    }

    /// The functions that the agent may call, as its model sees them.
    ///
    /// # Errors
    ///
    /// Returns how the task ended, if it did, also because a tool cannot be used at all.
    pub async fn functions(&self) -> Result<Vec<ToolSpec>, TaskEnd> {
        let (reply, answer) = oneshot::channel();
        let sent = self
            .commands
            .send(TaskCommand::Functions(reply))
            .await
            .is_ok();
        match (sent, answer.await) {
            (true, Ok(functions)) => functions,
            _ => Err(self.over()),
        }
    }

    fn over(&self) -> TaskEnd {
        let ended = self.ended();
        ended.unwrap_or_else(|| TaskEnd::new(EndReason::Closed, "the task has ended"))
    }

    /// Watches the task. Who falls far behind misses events.
    #[must_use]
    pub fn events(&self) -> TaskEvents {
        self.events.subscribe()
    }

    /// The questions that wait for an answer.
    #[must_use]
    pub fn reviews(&self) -> Vec<Review> {
        self.reviews.waiting()
    }

    /// Whether another agent works for this one right now. It lives only as long as this part of the task does.
    #[must_use]
    pub fn is_delegating(&self) -> bool {
        self.delegating.is_any()
    }

    /// What its tools have open. Ending this part of the task, or dropping it, ends that too.
    #[must_use]
    pub fn held_tools(&self) -> HeldTools {
        let tools = lock(&self.tools);
        let mut held = tools.iter().filter(|tool| tool.holds_state()).peekable();
        if held.peek().is_none() {
            HeldTools::Nothing
        } else if held.any(|tool| tool.tool().is_never_evicted) {
            HeldTools::Kept
        } else {
            HeldTools::Evictable
        }
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
        Value::clone(&self.look(|known| Arc::clone(&known.context)))
    }

    /// The values of parameters that events may be about.
    #[must_use]
    pub fn allowed(&self) -> TaskAllowList {
        self.look(|known| known.allowed.clone())
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn ended(&self) -> Option<TaskEnd> {
        self.look(|known| known.ended.clone())
    }

    fn look<T>(&self, look: impl FnOnce(&TaskStatus) -> T) -> T {
        look(&lock(&self.known))
    }

    /// Cancels whatever is under way and ends the task.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Ends the task once it is idle, and waits until its tools are torn down.
    pub async fn end(&self) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(TaskCommand::End(reply)).await.is_ok() {
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
