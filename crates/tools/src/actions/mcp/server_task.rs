//! Tasks of MCP servers: a call that is answered with a task is asked about until the task is over, and cancelled when
//! nobody waits for it any more.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_wire::sync::lock;
use rmcp::model::{
    CallToolResult, CancelTaskParams, GetTaskParams, InputRequests, JsonObject, Task, TaskPayload,
    UpdateTaskParams,
};
use rmcp::service::{Peer, RoleClient};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::call::{MAX_ROUNDS, declined, unusable};
use super::failure::{CallFailure, broken, of_call};
use crate::runtime::{ActionError, ActionFailure};

/// How often a task is asked about whose server does not say.
const USUAL_INTERVAL: Duration = Duration::from_secs(1);

/// The shortest time between two questions, whatever the server says.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

/// The longest time between two questions.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

/// How many questions in a row may get lost. To ask again changes nothing.
const MAX_LOST_QUESTIONS: usize = 3;

/// How long a server may take to hear that a task is cancelled.
const CANCEL_PATIENCE: Duration = Duration::from_secs(3);

/// The cancellations that are on their way to one server. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct TaskCancellations {
    on_their_way: Arc<Mutex<JoinSet<()>>>,
}

impl TaskCancellations {
    /// Tells the server that nobody waits for a task any more.
    fn send(&self, peer: Peer<RoleClient>, task: String) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let cancelling = async move {
            let cancelled = peer.cancel_task(CancelTaskParams::new(task));
            let told = tokio::time::timeout(CANCEL_PATIENCE, cancelled).await;
            if !matches!(told, Ok(Ok(()))) {
                tracing::warn!("an MCP server could not be told that a task is cancelled");
            }
        };
        let mut on_their_way = lock(&self.on_their_way);
        while on_their_way.try_join_next().is_some() {}
        on_their_way.spawn_on(cancelling, &runtime);
    }

    /// Waits until the server has heard of all of them, or was given up on.
    pub(super) async fn finish(&self) {
        let mut on_their_way = std::mem::take(&mut *lock(&self.on_their_way));
        while on_their_way.join_next().await.is_some() {}
    }
}

/// A task that is not over. The server is told when it is left.
struct OpenTask<'c> {
    id: String,
    peer: &'c Peer<RoleClient>,
    cancellations: &'c TaskCancellations,
    is_over: bool,
}

impl Drop for OpenTask<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let task = std::mem::take(&mut self.id);
            self.cancellations.send(self.peer.clone(), task);
        }
    }
}

/// Waits for the end of a task. Who stops waiting cancels it.
pub(super) async fn finish(
    peer: &Peer<RoleClient>,
    cancellations: &TaskCancellations,
    created: Task,
) -> Result<CallToolResult, CallFailure> {
    let info = peer.peer_info();
    if info.is_none_or(|info| info.protocol_version.has_initialize()) {
        return Err(unusable(
            "the server answers with a task, which was not asked for",
        ));
    }
    let mut pause = if created.status.is_terminal() {
        Duration::ZERO
    } else {
        interval(&created)
    };
    let mut task = OpenTask {
        id: created.task_id,
        peer,
        cancellations,
        is_over: false,
    };
    let (mut answered, mut rounds, mut lost) = (BTreeSet::new(), 0, 0);
    loop {
        tokio::time::sleep(pause).await;
        let told = match peer.get_task(GetTaskParams::new(&task.id)).await {
            Ok(told) => told.task,
            Err(error) => match of_call(error) {
                CallFailure::Gone(_)
                    if lost < MAX_LOST_QUESTIONS && !peer.is_transport_closed() =>
                {
                    lost += 1;
                    continue;
                }
                failure => return Err(untold(failure)),
            },
        };
        lost = 0;
        if told.task.task_id != task.id {
            return Err(unknown_outcome("the server tells of another task"));
        }
        pause = interval(&told.task);
        match told.payload {
            TaskPayload::Working => {}
            TaskPayload::InputRequired { input_requests } => {
                let asked = unanswered(input_requests, &answered);
                if asked.is_empty() {
                    continue;
                }
                rounds += 1;
                answer(&task, &asked, rounds).await?;
                answered.extend(asked.into_keys());
            }
            TaskPayload::Completed { result } => {
                task.is_over = true;
                let result = serde_json::from_value(Value::Object(result));
                return result.map_err(|_| {
                    unknown_outcome("the result of the server's task is not that of a tool")
                });
            }
            TaskPayload::Failed { error } => {
                task.is_over = true;
                return Err(CallFailure::Other(failed(&error)));
            }
            TaskPayload::Cancelled => {
                task.is_over = true;
                let reason = told.task.status_message.unwrap_or_default();
                let message = format!("the server cancelled its task: {reason}");
                let message = message.trim_end_matches(": ");
                let mut error = ActionError::new(ActionFailure::Tool, message);
                error.outcome_unknown = true;
                return Err(CallFailure::Other(error));
            }
            _ => return Err(unknown_outcome("the state of the server's task is unknown")),
        }
    }
}

/// How long to wait before the next question.
fn interval(task: &Task) -> Duration {
    let wanted = task.poll_interval_ms.map(Duration::from_millis);
    wanted
        .unwrap_or(USUAL_INTERVAL)
        .clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)
}

/// What a task asks for and has no answer to: a list may be told again before the answers have arrived.
fn unanswered(mut asked: InputRequests, answered: &BTreeSet<String>) -> InputRequests {
    asked.retain(|key, _| !answered.contains(key));
    asked
}

/// Declines what a task asks for. Something that cannot be declined would leave it waiting for ever.
async fn answer(
    task: &OpenTask<'_>,
    asked: &InputRequests,
    rounds: usize,
) -> Result<(), CallFailure> {
    if rounds > MAX_ROUNDS {
        return Err(unknown_outcome(&format!(
            "the server's task still asks for input after it was declined {MAX_ROUNDS} times"
        )));
    }
    let answers = declined(asked);
    if answers.len() < asked.len() {
        return Err(unknown_outcome(
            "the server's task asks for a model, which tools do not lend",
        ));
    }
    let update = UpdateTaskParams::new(&task.id, answers);
    let updated = task.peer.update_task(update).await;
    updated.map_err(|error| untold(of_call(error)))
}

/// The error that a task ended with.
fn failed(error: &JsonObject) -> ActionError {
    let said = error.get("message").and_then(Value::as_str);
    let said = said.unwrap_or("it says no more");
    let message = format!("the server's task failed: {said}");
    let mut failure = ActionError::new(ActionFailure::Tool, message);
    if let Some(code) = error.get("code").filter(|code| code.is_i64()) {
        failure.detail.insert("code".to_owned(), code.clone());
    }
    failure
}

/// A task whose end is not known, because its server could not be asked. The call is not made again: it has begun.
fn untold(failure: CallFailure) -> CallFailure {
    match failure {
        CallFailure::SessionEnded => {
            CallFailure::Gone(broken("the server ended the session before its task"))
        }
        CallFailure::Gone(mut error) => {
            error.outcome_unknown = true;
            CallFailure::Gone(error)
        }
        CallFailure::Other(mut error) => {
            error.message = format!("how the server's task ends is not known: {}", error.message);
            error.outcome_unknown = true;
            CallFailure::Other(error)
        }
    }
}

fn unknown_outcome(message: &str) -> CallFailure {
    let mut error = ActionError::new(ActionFailure::Response, message);
    error.outcome_unknown = true;
    CallFailure::Other(error)
}
