//! Puts a reply together from its pieces, within the limits, and tells the sink on the way.

use std::collections::HashSet;

use serde_json::Value;

use super::super::{
    Arguments, ModelError, ModelErrorKind, ModelEvent, ModelLimits, ModelReply, ModelSink,
    StopReason, ToolCall, Usage,
};

/// A reply in the making.
pub(super) struct Assembly<'a> {
    sink: &'a mut dyn ModelSink,
    limits: &'a ModelLimits,
    reply: ModelReply,
    open: Vec<OpenCall>,
    ids: HashSet<String>,
    stop: Option<ReadStop>,
    /// The provider said that nothing follows.
    ended: bool,
}

/// Why reading goes no further.
pub(super) enum AssemblyProblem {
    /// The calls of one turn are all there may be.
    CallLimit,
    /// It is an error.
    Error(ModelError),
}

impl From<ModelError> for AssemblyProblem {
    fn from(error: ModelError) -> Self {
        Self::Error(error)
    }
}

enum ReadStop {
    Known(StopReason),
    Unknown(String),
}

struct OpenCall {
    /// What the provider calls it while it streams.
    key: u64,
    id: String,
    name: String,
    arguments: String,
    opaque: Option<String>,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(sink: &'a mut dyn ModelSink, limits: &'a ModelLimits, model: &str) -> Self {
        Self {
            sink,
            limits,
            reply: ModelReply {
                model: model.to_owned(),
                ..ModelReply::default()
            },
            open: Vec::new(),
            ids: HashSet::new(),
            stop: None,
            ended: false,
        }
    }

    pub(super) fn text(&mut self, piece: &str) -> Result<(), AssemblyProblem> {
        if piece.is_empty() {
            return Ok(());
        }
        let room = self
            .limits
            .max_text_bytes
            .saturating_sub(self.reply.text.len());
        let fits = floor_char(piece, room);
        if fits > 0 {
            self.reply.text.push_str(&piece[..fits]);
            self.sink.event(ModelEvent::Text(piece[..fits].to_owned()));
        }
        if fits < piece.len() {
            let limit = self.limits.max_text_bytes;
            return Err(too_large(&format!(
                "the reply has more than {limit} bytes of text"
            )));
        }
        Ok(())
    }

    /// A call begins. `key` tells it apart while it streams.
    pub(super) fn begin_call(
        &mut self,
        key: u64,
        id: &str,
        name: &str,
    ) -> Result<(), AssemblyProblem> {
        self.close_call(key);
        if self.reply.calls.len() + self.open.len() >= self.limits.max_calls {
            return Err(AssemblyProblem::CallLimit);
        }
        self.open.push(OpenCall {
            key,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            opaque: None,
        });
        Ok(())
    }

    /// The id and the name of an open call.
    pub(super) fn open_call(&self, key: u64) -> Option<(&str, &str)> {
        let call = self.open.iter().find(|call| call.key == key)?;
        Some((&call.id, &call.name))
    }

    /// Fills in what came later than the beginning of a call.
    pub(super) fn name_call(&mut self, key: u64, id: &str, name: &str) {
        if let Some(call) = self.open.iter_mut().find(|call| call.key == key) {
            if call.id.is_empty() {
                id.clone_into(&mut call.id);
            }
            if call.name.is_empty() {
                name.clone_into(&mut call.name);
            }
        }
    }

    pub(super) fn call_arguments(&mut self, key: u64, piece: &str) -> Result<(), AssemblyProblem> {
        let limit = self.limits.max_argument_bytes;
        if let Some(call) = self.open.iter_mut().find(|call| call.key == key) {
            let fits = floor_char(piece, limit.saturating_sub(call.arguments.len()));
            call.arguments.push_str(&piece[..fits]);
            if fits < piece.len() {
                let name = &call.name;
                return Err(too_large(&format!(
                    "the arguments of a call of `{name}` have more than {limit} bytes"
                )));
            }
        }
        Ok(())
    }

    /// Everything of this call has come.
    pub(super) fn close_call(&mut self, key: u64) {
        if let Some(place) = self.open.iter().position(|call| call.key == key) {
            let call = self.open.remove(place);
            let arguments = Arguments::parse(&call.arguments);
            self.finish_call(call, arguments);
        }
    }

    /// A call that came in one piece.
    pub(super) fn whole_call(
        &mut self,
        id: &str,
        name: &str,
        arguments: &Value,
        opaque: Option<String>,
    ) -> Result<(), AssemblyProblem> {
        // No stream uses this key; it is closed again at once.
        let key = u64::MAX;
        self.begin_call(key, id, name)?;
        match arguments {
            Value::String(text) => self.call_arguments(key, text)?,
            Value::Null => {}
            other => self.call_arguments(key, &other.to_string())?,
        }
        if let Some(call) = self.open.last_mut() {
            call.opaque = opaque;
        }
        self.close_call(key);
        Ok(())
    }

    fn finish_call(&mut self, call: OpenCall, arguments: Arguments) {
        let number = self.reply.calls.len() + 1;
        let mut id = call.id;
        // Results are told apart by these ids, so each must be there and be the only one.
        while id.is_empty() || self.ids.contains(&id) {
            id = format!("{}call_{number}", if id.is_empty() { "" } else { "again_" });
            if self.ids.contains(&id) {
                id = format!("{id}_{}", self.ids.len());
            }
        }
        self.ids.insert(id.clone());
        let call = ToolCall {
            id,
            name: call.name,
            arguments,
            opaque: call.opaque,
        };
        self.sink.event(ModelEvent::Call(call.clone()));
        self.reply.calls.push(call);
    }

    pub(super) fn model(&mut self, name: &str) {
        if !name.is_empty() && name.len() <= 256 {
            name.clone_into(&mut self.reply.model);
        }
    }

    /// Takes counts that are there; later ones replace earlier ones.
    pub(super) fn usage(&mut self, usage: Usage) {
        if usage.prompt > 0 {
            self.reply.usage.prompt = usage.prompt;
        }
        if usage.completion > 0 {
            self.reply.usage.completion = usage.completion;
        }
    }

    pub(super) fn stop(&mut self, reason: Option<StopReason>, word: &str) {
        self.stop = Some(match reason {
            Some(reason) => ReadStop::Known(reason),
            None => ReadStop::Unknown(word.chars().take(64).collect()),
        });
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The reply, or why it is none.
    pub(super) fn finish(
        mut self,
        outcome: Result<(), AssemblyProblem>,
    ) -> Result<ModelReply, ModelError> {
        match outcome {
            Err(AssemblyProblem::Error(error)) => {
                // A call that was cut is shown as far as it came, and never as if it were whole.
                for call in std::mem::take(&mut self.open) {
                    let arguments = Arguments::Malformed {
                        text: call.arguments.clone(),
                        reason: "the stream ended in the middle of the call".to_owned(),
                    };
                    self.reply.calls.push(ToolCall {
                        id: call.id,
                        name: call.name,
                        arguments,
                        opaque: call.opaque,
                    });
                }
                return Err(error.with_partial(self.reply));
            }
            Err(AssemblyProblem::CallLimit) => {
                self.stop = Some(ReadStop::Known(StopReason::CallLimit));
                self.close_all();
            }
            Ok(())
                if self.stop.is_none()
                    && (!self.ended || self.reply.is_empty() && self.open.is_empty()) =>
            {
                let kind = if self.ended {
                    ModelErrorKind::Empty
                } else {
                    ModelErrorKind::Cut
                };
                let message = match kind {
                    ModelErrorKind::Empty => "the model said nothing",
                    _ => "the reply ended in the middle",
                };
                return self.finish(Err(ModelError::new(kind, message).into()));
            }
            Ok(()) => self.close_all(),
        }
        self.reply.stop = match self.stop.take() {
            Some(ReadStop::Unknown(word)) => {
                let message = format!("the reply ended for an unknown reason: `{word}`");
                let error = ModelError::new(ModelErrorKind::UnknownStop, message);
                return Err(error.with_partial(self.reply));
            }
            Some(ReadStop::Known(StopReason::End)) | None if !self.reply.calls.is_empty() => {
                StopReason::ToolCalls
            }
            Some(ReadStop::Known(reason)) => reason,
            None => StopReason::End,
        };
        if self.reply.is_empty() {
            let (kind, message) = match self.reply.stop {
                StopReason::Refused => (ModelErrorKind::Refused, "the provider declined to answer"),
                StopReason::MaxTokens => (
                    ModelErrorKind::Empty,
                    "the model used up its tokens before it said anything",
                ),
                StopReason::End | StopReason::ToolCalls | StopReason::CallLimit => {
                    (ModelErrorKind::Empty, "the model said nothing")
                }
            };
            return Err(ModelError::new(kind, message));
        }
        Ok(self.reply)
    }

    fn close_all(&mut self) {
        while let Some(key) = self.open.first().map(|call| call.key) {
            self.close_call(key);
        }
    }
}

fn too_large(message: &str) -> AssemblyProblem {
    ModelError::new(ModelErrorKind::TooLarge, message).into()
}

/// The most bytes of a text that end between two characters and are at most so many.
fn floor_char(text: &str, most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}
