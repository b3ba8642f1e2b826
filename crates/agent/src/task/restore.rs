//! Restoring: a task as it was, from the turns that a journal kept.

use std::time::Duration;

use jiff::Timestamp;
use proofhouse_tools::runtime::{ActionError, ActionFailure};
use serde_json::Value;

use super::context::{self, TaskContext};
use super::{CallStatus, TaskEnd, TaskState, Turn};
use crate::model::{ChatMessage, ToolCall};

/// What was kept of a task.
#[derive(Debug, Clone, Default)]
pub struct Restored {
    /// Everything its journal kept, oldest first.
    pub turns: Vec<Turn>,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
}

/// What is left to do for the last input.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum UnfinishedInput {
    /// It is answered, or nobody waits for an answer.
    #[default]
    Nothing,
    /// The rules have not let it in yet. With `begun`, one of them was making a call.
    Guard { message: String, begun: bool },
    /// The model is to be asked, after the calls of its last reply have results.
    Model,
    /// The model has said this, and the rules have not let it out yet.
    Answer(String),
}

/// What is known after reading turns.
#[derive(Debug, Default)]
pub(super) struct RestoredTurns {
    pub(super) messages: Vec<ChatMessage>,
    pub(super) open: UnfinishedInput,
    /// Calls of the last reply that have no result.
    pub(super) unanswered: Vec<ToolCall>,
    /// The ids of those among them that may have been made.
    pub(super) begun: Vec<String>,
    pub(super) turns: u64,
    pub(super) calls: u64,
    pub(super) invocations: u64,
    pub(super) interrupted: bool,
    /// The number of the last question, and of the first one whose answer is not acted on yet.
    last_asked: u64,
    open_asked: Option<u64>,
    pub(super) ended: Option<TaskEnd>,
}

impl RestoredTurns {
    /// Reads turns, one after the other; the context becomes what it was.
    pub(super) fn new(turns: &[Turn], context: &mut TaskContext) -> Self {
        let mut reading = Self::default();
        for turn in turns {
            if let Some(word) = turn.word() {
                context.turn(word);
            }
            reading.read(turn, context);
        }
        reading
    }

    fn read(&mut self, turn: &Turn, context: &mut TaskContext) {
        if !matches!(turn, Turn::Interrupted { .. }) {
            self.interrupted = false;
        }
        match turn {
            Turn::Asked { review, .. } => {
                self.last_asked = self.last_asked.max(review.id);
                self.open_asked.get_or_insert(review.id);
            }
            // Steps may make calls between two questions.
            Turn::Calling { step: true, .. } | Turn::Invoked { .. } => {}
            Turn::Input { .. }
            | Turn::Llm { .. }
            | Turn::Capability { .. }
            | Turn::Failed { .. }
            | Turn::Discarded { .. }
            | Turn::Interrupted { .. }
            | Turn::Calling { .. }
            | Turn::Decided { .. }
            | Turn::Output { .. }
            | Turn::Ended { .. } => self.open_asked = None,
        }
        match turn {
            Turn::Input {
                message,
                parameters,
                ..
            } => {
                // An input that was never let in stays out of the conversation.
                self.close("no result was given");
                context.input(message, parameters);
                self.open = UnfinishedInput::Guard {
                    message: message.clone(),
                    begun: false,
                };
            }
            Turn::Llm {
                text, calls, usage, ..
            } => {
                self.let_in();
                self.close("no result was given");
                context.used(usage.prompt, usage.completion);
                self.turns += 1;
                self.messages.push(ChatMessage::Assistant {
                    text: text.clone(),
                    calls: calls.clone(),
                });
                self.unanswered.clone_from(calls);
                self.begun.clear();
                self.open = if calls.is_empty() {
                    UnfinishedInput::Answer(text.clone())
                } else {
                    UnfinishedInput::Model
                };
            }
            Turn::Calling { call, step, .. } => {
                self.invocations += u64::from(!step);
                match &mut self.open {
                    UnfinishedInput::Guard { begun, .. } => *begun = true,
                    UnfinishedInput::Model => self.begun.push(call.clone()),
                    UnfinishedInput::Nothing | UnfinishedInput::Answer(_) => {}
                }
            }
            Turn::Invoked {
                time,
                function,
                arguments,
                output,
                status,
            } => {
                if let UnfinishedInput::Guard { begun, .. } = &mut self.open {
                    // It is known what became of it, but not whether the rules let the input in.
                    *begun = true;
                }
                context.called(function, time, arguments, output, *status, None);
            }
            Turn::Capability {
                time,
                call,
                function,
                arguments,
                result,
                output,
                status,
                task,
            } => {
                self.calls += 1;
                context.called(
                    function,
                    time,
                    arguments,
                    output.as_ref().unwrap_or(result),
                    *status,
                    task.as_deref(),
                );
                if let Some(at) = self.unanswered.iter().position(|open| open.id == *call) {
                    let call = self.unanswered.remove(at);
                    self.messages.push(told(&call, result, *status));
                }
            }
            Turn::Failed { turns, .. } => {
                if *turns > self.turns {
                    // The model was asked, so the rules had let the input in.
                    self.turns = *turns;
                    self.let_in();
                }
                self.close("the call was cancelled");
                self.open = UnfinishedInput::Nothing;
            }
            Turn::Output {
                message, exposes, ..
            } => {
                context.output(message, exposes);
                if let Some(ChatMessage::Assistant { text, .. }) = self.messages.last_mut() {
                    text.clone_from(message);
                }
                self.open = UnfinishedInput::Nothing;
            }
            Turn::Interrupted { .. } => {
                self.close(INTERRUPTED);
                self.interrupted = true;
            }
            Turn::Ended { end, .. } => self.ended = Some(end.clone()),
            Turn::Discarded { .. } | Turn::Asked { .. } | Turn::Decided { .. } => {}
        }
    }

    /// How many questions were asked before the next one: what is asked again has its old number.
    pub(super) fn asked(&self) -> u64 {
        match self.open_asked {
            Some(id) if self.asks_again() => id.saturating_sub(1),
            _ => self.last_asked,
        }
    }

    /// Whether what asked is done again. What may have had an effect is not, and its question is gone with it: were its
    /// number given to another, an answer that is on its way would be taken for the answer to that.
    fn asks_again(&self) -> bool {
        match &self.open {
            UnfinishedInput::Guard { begun, .. } => !begun,
            UnfinishedInput::Model => {
                let mut unanswered = self.unanswered.iter();
                !unanswered.any(|call| self.begun.contains(&call.id))
            }
            UnfinishedInput::Nothing | UnfinishedInput::Answer(_) => true,
        }
    }

    /// What came after an input says that the rules let it in.
    fn let_in(&mut self) {
        if let UnfinishedInput::Guard { message, .. } = std::mem::take(&mut self.open) {
            self.messages.push(ChatMessage::user(message));
        }
    }

    fn close(&mut self, why: &str) {
        for call in self.unanswered.drain(..) {
            self.messages.push(ChatMessage::tool(&call, why, true));
        }
    }
}

/// What the model is told of calls that were stopped.
pub(super) const INTERRUPTED: &str = "the call was interrupted; nobody knows whether it was made";

/// What the model is told of a call.
pub(super) fn told(call: &ToolCall, result: &Value, status: CallStatus) -> ChatMessage {
    let content = match result {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    ChatMessage::tool(call, content, status != CallStatus::Successful)
}

/// The result of a call of which only the beginning is known.
pub(super) fn outcome_unknown() -> Value {
    let message = "the server stopped while the call was under way; it may have been made";
    let mut error = ActionError::new(ActionFailure::Cancelled, message);
    error.outcome_unknown = true;
    error.to_json()
}

/// How old a task is that began at this time.
pub(super) fn age(started_at: &str, now: &str) -> Duration {
    let at = |text: &str| text.parse::<Timestamp>().ok();
    match (at(started_at), at(now)) {
        (Some(started), Some(now)) => {
            Duration::try_from(now.duration_since(started)).unwrap_or_default()
        }
        _ => Duration::ZERO,
    }
}

/// What a task that kept these turns is doing.
#[must_use]
pub fn state_of(turns: &[Turn]) -> TaskState {
    turns.last().map_or(TaskState::Idle, Turn::state)
}

/// What a task said last, with what it exposes.
#[must_use]
pub fn last_output(turns: &[Turn]) -> Option<Value> {
    turns.iter().rev().find_map(|turn| match turn {
        Turn::Output {
            message, exposes, ..
        } => Some(context::task_io(message, exposes)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::task::User;

    /// How many questions were asked before the next one, after these turns.
    fn asked(turns: &[Value]) -> u64 {
        let turns: Vec<Turn> = turns
            .iter()
            .map(|turn| serde_json::from_value(turn.clone()).unwrap())
            .collect();
        let mut context =
            TaskContext::new("t", "agent", "2026-01-01T00:00:00Z", &User::default(), "m");
        RestoredTurns::new(&turns, &mut context).asked()
    }

    #[test]
    fn a_number_belongs_to_one_question() {
        let time = "2026-01-01T00:00:00Z";
        let input = json!({"turn": "input", "time": time, "message": "m", "parameters": {}});
        let llm = json!({"turn": "llm", "time": time, "model": "m", "simulation": true, "text": "",
                         "calls": [ToolCall::new("c1", "send", serde_json::Map::new())],
                         "usage": {"prompt": 0, "completion": 0}});
        let asks = |id: u64| {
            json!({"turn": "asked", "time": time, "review": {"id": id, "reviewer": "ann",
                   "function": "send", "arguments": {}}})
        };
        let calling = |step: bool| {
            json!({"turn": "calling", "time": time, "call": "c1", "function": "send", "arguments": {},
                   "step": step})
        };
        // The call was not made: it is asked again, as the same question.
        let before = [input.clone(), llm.clone(), asks(1)];
        assert_eq!(asked(&before), 0);
        // It may have been made, and is not made again. Whoever asks next asks something else.
        for step in [false, true] {
            let after = [input.clone(), llm.clone(), calling(step), asks(1)];
            assert_eq!(asked(&after), 1);
        }
        let between = [input.clone(), llm.clone(), asks(1), calling(true)];
        assert_eq!(asked(&between), 1);
        let guard = [input.clone(), calling(true), asks(1)];
        assert_eq!(asked(&guard), 1);
        assert_eq!(asked(&[input.clone(), asks(1)]), 0);
        // One of two that were open at once is named again when the other is answered.
        let decided = json!({"turn": "decided", "time": time, "review": 2});
        let both = [
            input,
            llm,
            calling(false),
            asks(1),
            asks(2),
            decided,
            asks(1),
        ];
        assert_eq!(asked(&both), 2);
    }
}
