//! Watches what a model replies: a reply that was cut, filtered or cannot be read is no answer, and nobody knows what
//! the agent would have done.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proofhouse_agent::model::{
    Arguments, Model, ModelError, ModelReply, ModelRequest, ModelSink, StopReason,
};
use proofhouse_range::BoxFuture;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::gate::GateClock;
use proofhouse_wire::sync::lock;

/// Tools whose calls are remembered; a model may invent names.
const MAX_TOOLS: usize = 100;
/// Characters that are told of a name or a reason.
const MAX_TOLD_CHARS: usize = 100;

/// A model whose replies are watched.
pub(crate) struct WatchedModel {
    model: Arc<dyn Model>,
    watch: Arc<ReplyWatch>,
    /// What its requests wait at gates.
    gates: Arc<GateClock>,
}

/// What was wrong with the replies of a run.
#[derive(Debug, Default)]
pub(crate) struct ReplyWatch(Mutex<SeenReplies>);

#[derive(Debug, Default)]
struct SeenReplies {
    /// Why the last reply is not whole, if it is not.
    broken_off: Option<&'static str>,
    /// Calls that could not be read and were not made again, by their tool.
    unread: BTreeMap<String, String>,
}

impl WatchedModel {
    pub(crate) fn new(
        model: Arc<dyn Model>,
        watch: Arc<ReplyWatch>,
        gates: Arc<GateClock>,
    ) -> Self {
        Self {
            model,
            watch,
            gates,
        }
    }
}

impl Model for WatchedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn is_simulation(&self) -> bool {
        self.model.is_simulation()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let asking = self.model.complete(request, events, cancel);
            let reply = self.gates.measure(asking).await;
            if let Ok(reply) = &reply {
                self.watch.take(reply);
            }
            reply
        })
    }
}

impl ReplyWatch {
    fn take(&self, reply: &ModelReply) {
        let mut seen = lock(&self.0);
        seen.broken_off = match reply.stop {
            StopReason::End | StopReason::ToolCalls => None,
            StopReason::MaxTokens => {
                Some("the last reply of the model was cut at its token limit (`length`)")
            }
            StopReason::Refused => {
                Some("the last reply of the model was withheld by its provider (`content_filter`)")
            }
            StopReason::CallLimit => {
                Some("the last reply of the model had more calls than a turn may have")
            }
        };
        for call in &reply.calls {
            let name: String = call.name.chars().take(MAX_TOLD_CHARS).collect();
            match &call.arguments {
                // It said in the end what it wanted.
                Arguments::Object(_) => {
                    seen.unread.remove(&name);
                }
                Arguments::Malformed { reason, .. } => {
                    if seen.unread.len() < MAX_TOOLS {
                        let reason = reason.chars().take(MAX_TOLD_CHARS).collect();
                        seen.unread.insert(name, reason);
                    }
                }
            }
        }
    }

    /// Why what the model said is not all that it would have said, if it is not.
    pub(crate) fn failure(&self) -> Option<String> {
        let seen = lock(&self.0);
        if let Some(why) = seen.broken_off {
            return Some(why.to_owned());
        }
        let (tool, reason) = seen.unread.first_key_value()?;
        Some(format!(
            "the model called `{tool}` with arguments that cannot be read, and not again: {reason}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_agent::model::ToolCall;

    fn reply(stop: StopReason, calls: &[(&str, &str)]) -> ModelReply {
        let calls = calls.iter().map(|(name, arguments)| ToolCall {
            id: "c".to_owned(),
            name: (*name).to_owned(),
            arguments: Arguments::parse(arguments),
            opaque: None,
        });
        ModelReply {
            text: "Rates".to_owned(),
            calls: calls.collect(),
            stop,
            ..ModelReply::default()
        }
    }

    fn failure(replies: &[ModelReply]) -> Option<String> {
        let watch = ReplyWatch::default();
        replies.iter().for_each(|reply| watch.take(reply));
        watch.failure()
    }

    #[test]
    fn a_reply_that_is_not_whole_is_no_answer() {
        use StopReason::{End, MaxTokens, Refused, ToolCalls};
        let whole = || reply(End, &[]);
        let cut = "{\"path\": \"~/notes";
        for (replies, expected) in [
            (vec![whole()], None),
            (vec![reply(ToolCalls, &[("read", "{}")]), whole()], None),
            (vec![whole(), reply(MaxTokens, &[])], Some("token limit")),
            (vec![reply(Refused, &[])], Some("content_filter")),
            // What came after it is an answer.
            (vec![reply(MaxTokens, &[]), whole()], None),
            (
                vec![reply(ToolCalls, &[("read", cut)]), whole()],
                Some("called `read`"),
            ),
            (
                vec![
                    reply(ToolCalls, &[("read", cut)]),
                    reply(ToolCalls, &[("read", "{}")]),
                    whole(),
                ],
                None,
            ),
            (
                vec![
                    reply(ToolCalls, &[("read", cut)]),
                    reply(ToolCalls, &[("other", "{}")]),
                ],
                Some("called `read`"),
            ),
        ] {
            let failure = failure(&replies);
            let is_right = match (&failure, expected) {
                (None, None) => true,
                (Some(failure), Some(expected)) => failure.contains(expected),
                (Some(_), None) | (None, Some(_)) => false,
            };
            assert!(is_right, "{replies:?}: {failure:?}");
        }
    }
}
