//! Answers a message: the agent's task is asked, and the record tells what happens.

use std::sync::Arc;

use proofhouse_protocol::a2a::A2aTaskState;
use serde_json::Value;
use tokio::time::Instant;

use super::super::AgentService;
use super::super::conversations::Conversation;
use super::super::run::{AnswerRun, AnswerStep};
use super::super::texts::fresh_id;
use super::ConversationState;
use super::records::A2aTaskRecord;
use super::shapes::{A2aMessage, A2aPart, Artifact};
use crate::task::{EndReason, Review, TaskEvent, TaskInput, TaskOutput};

/// Answers one message; messages of one conversation are answered one after the other.
pub(super) async fn answer(
    service: Arc<AgentService>,
    conversation: Arc<Conversation<ConversationState>>,
    record: Arc<A2aTaskRecord>,
    input: TaskInput,
) {
    let deadline = Instant::now() + service.limits.run;
    let turn = Arc::clone(&conversation.turn);
    let turn = tokio::select! {
        turn = turn.lock_owned() => turn,
        () = record.cancel.cancelled() => {
            record.reach(A2aTaskState::Canceled, None);
            return;
        }
        () = tokio::time::sleep_until(deadline) => {
            let late = A2aMessage::of_agent("the messages before this one took too long");
            record.reach(A2aTaskState::Failed, Some(late));
            return;
        }
    };
    record.reach(A2aTaskState::Working, None);
    let mut run = AnswerRun::start(&conversation.task, input);
    let guarded = service.is_guarded();
    let mut is_late = false;
    // What the model says before it calls something is told as progress; what it says last is the answer.
    let mut saying = String::new();
    let output = loop {
        let step = tokio::select! {
            step = run.next() => step,
            () = record.cancel.cancelled(), if !run.cancel.is_cancelled() => {
                run.cancel.cancel();
                continue;
            }
            () = tokio::time::sleep_until(deadline), if !is_late => {
                is_late = true;
                run.cancel.cancel();
                continue;
            }
        };
        match step {
            AnswerStep::Event(TaskEvent::Text(text)) if !guarded => saying.push_str(&text),
            AnswerStep::Event(TaskEvent::Call { .. }) if !saying.is_empty() => {
                let said = A2aMessage::of_agent(std::mem::take(&mut saying));
                record.reach(A2aTaskState::Working, Some(said));
            }
            AnswerStep::Event(TaskEvent::Review(review)) => {
                saying.clear();
                ask(&record, &review);
            }
            AnswerStep::Event(_) | AnswerStep::Missed => {}
            AnswerStep::Done(output) => break output,
        }
    };
    drop(turn);
    finish(&record, output, is_late);
}

/// Asks the client to approve something.
fn ask(record: &A2aTaskRecord, review: &Review) {
    let what = match review.function.as_str() {
        "" => "the conversation".to_owned(),
        function => format!("`{function}`"),
    };
    let text = format!(
        "{} is asked to approve {what}. Answer with `approve` or `deny`.",
        review.reviewer
    );
    let mut message = A2aMessage::of_agent(text);
    let review = serde_json::to_value(review).unwrap_or_default();
    message
        .parts
        .push(A2aPart::Data(serde_json::json!({"review": review})));
    record.reach(A2aTaskState::InputRequired, Some(message));
}

fn finish(record: &A2aTaskRecord, output: TaskOutput, is_late: bool) {
    let failed = match (output.failed, output.ended) {
        (_, Some(end)) if end.reason == EndReason::Cancelled => {
            record.reach(A2aTaskState::Canceled, None);
            return;
        }
        (failed, ended) => failed.or_else(|| ended.map(|end| end.message)),
    };
    if let Some(why) = failed {
        if record.cancel.is_cancelled() {
            return record.reach(A2aTaskState::Canceled, None);
        }
        let why = if is_late {
            "the answer took too long".to_owned()
        } else {
            why
        };
        return record.reach(A2aTaskState::Failed, Some(A2aMessage::of_agent(why)));
    }
    let mut parts = vec![A2aPart::Text(output.message)];
    if !output.exposes.is_empty() {
        parts.push(A2aPart::Data(Value::Object(output.exposes)));
    }
    record.produce(Artifact {
        id: fresh_id(),
        parts,
    });
    record.reach(A2aTaskState::Completed, None);
}
