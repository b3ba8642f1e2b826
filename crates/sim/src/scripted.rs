//! The scripted simulation: says what a file tells it to.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Mutex;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use proofhouse_source::{NodeRef, ReadLimits, Source, did_you_mean};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value};

use super::conversation::ConversationView;
use super::reply::{SimReply, speak};
use super::{careful, reference_code};
use proofhouse_model::{
    Arguments, ChatMessage, MAX_CALLS_PER_TURN, Model, ModelError, ModelErrorKind, ModelEvent,
    ModelReply, ModelRequest, ModelSink, StopReason, ToolCall,
};

/// The largest script.
const MAX_BYTES: u64 = 2 << 20;
/// Turns of one script, and calls of one turn: what a person writes by hand, and enough for any test.
const MAX_TURNS: usize = 10_000;
const MAX_CALLS: usize = 20_000;

/// What is wrong with a script, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(String);

impl From<String> for ScriptError {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<&str> for ScriptError {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

impl From<std::io::Error> for ScriptError {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Replies from a file, one per request.
///
/// Turns are taken in order. A turn with `when` is passed over until the last message contains its words;
/// a turn with `repeat: true` stays. Questions of channel probes are answered without taking a turn, unless the turn
/// that would be taken fails.
pub struct ScriptedModel {
    name: String,
    turns: Vec<ScriptedTurn>,
    used: Mutex<Vec<bool>>,
}

#[derive(Debug, Clone, PartialEq)]
struct ScriptedTurn {
    text: String,
    calls: Vec<ScriptedCall>,
    when: Option<String>,
    repeat: bool,
    fails: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct ScriptedCall {
    name: String,
    arguments: Arguments,
    id: Option<String>,
}

impl ScriptedModel {
    /// Reads a script from a file; `name` is what the user called it.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the file, in one sentence.
    pub fn open(name: &str, path: &Path) -> Result<Self, ScriptError> {
        let file = File::open(path)?;
        let mut text = String::new();
        #[expect(clippy::disallowed_methods, reason = "`take` caps it")]
        file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(format!("the script has more than {MAX_BYTES} bytes").into());
        }
        Self::read(name, &text)
    }

    /// Reads a script: a list of turns in YAML or JSON.
    ///
    /// ```
    /// use proofhouse_sim::ScriptedModel;
    /// let script = "- calls: [{name: add, arguments: {a: 1, b: 2}}]\n- text: It is 3.\n";
    /// assert!(ScriptedModel::read("sum.yaml", script).is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns what is wrong with it, in one sentence.
    pub fn read(name: &str, text: &str) -> Result<Self, ScriptError> {
        let source = Source::read(text, &ReadLimits::default()).map_err(|errors| {
            let first = errors.first().map(|error| error.message.clone());
            first.unwrap_or_else(|| "not YAML".to_owned())
        })?;
        let items = source.root().items().ok_or("a script is a list of turns")?;
        if items.len() > MAX_TURNS {
            return Err(format!("a script has at most {MAX_TURNS} turns").into());
        }
        let turns: Vec<ScriptedTurn> = items
            .enumerate()
            .map(|(place, node)| {
                turn(node).map_err(|reason| format!("turn {}: {reason}", place + 1))
            })
            .collect::<Result<_, _>>()?;
        let calls: usize = turns.iter().map(|turn| turn.calls.len()).sum();
        if calls > MAX_CALLS {
            return Err(format!("a script has at most {MAX_CALLS} calls").into());
        }
        Ok(Self {
            name: format!("sim:scripted:{name}"),
            used: Mutex::new(vec![false; turns.len()]),
            turns,
        })
    }

    /// The first turn that is left and fits; it stays.
    fn peek(&self, request: &ModelRequest) -> Option<&ScriptedTurn> {
        self.place(&lock(&self.used), request)
            .map(|place| &self.turns[place])
    }

    /// The first turn that is left and fits.
    fn take(&self, request: &ModelRequest) -> Option<ScriptedTurn> {
        let mut used = lock(&self.used);
        let place = self.place(&used, request)?;
        let turn = self.turns[place].clone();
        used[place] = !turn.repeat;
        Some(turn)
    }

    fn place(&self, used: &[bool], request: &ModelRequest) -> Option<usize> {
        let last = match request.messages.last() {
            Some(ChatMessage::User { text } | ChatMessage::Assistant { text, .. }) => text.as_str(),
            Some(ChatMessage::Tool { content, .. }) => content.as_str(),
            None => "",
        };
        let fits = |turn: &ScriptedTurn| {
            turn.when
                .as_deref()
                .is_none_or(|words| last.contains(words))
        };
        (0..self.turns.len()).find(|place| !used[*place] && fits(&self.turns[*place]))
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            // A channel probe is no part of the script; who is down is down for it too.
            let is_down = self.peek(request).is_some_and(|turn| turn.fails.is_some());
            if !is_down && reference_code::is_asked(&ConversationView::new(request)) {
                let reply = careful::answer(request);
                return Ok(speak(reply, request, &self.name, events));
            }
            let Some(turn) = self.take(request) else {
                let message = "the script has no turn left that fits the last message";
                return Err(ModelError::new(ModelErrorKind::Script, message));
            };
            if let Some(message) = turn.fails {
                return Err(ModelError::new(ModelErrorKind::Server, message));
            }
            let said = SimReply {
                text: turn.text,
                calls: turn
                    .calls
                    .iter()
                    .map(|call| {
                        let arguments = call.arguments.object().cloned().unwrap_or_default();
                        (call.name.clone(), arguments)
                    })
                    .collect(),
            };
            // Ids and malformed arguments are the script's own; everything else is like any simulation.
            let mut heard: Vec<ModelEvent> = Vec::new();
            let mut reply = speak(said, request, &self.name, &mut heard);
            for (call, scripted) in reply.calls.iter_mut().zip(turn.calls) {
                call.arguments = scripted.arguments;
                call.id = scripted.id.unwrap_or_else(|| call.id.clone());
            }
            let limit = MAX_CALLS_PER_TURN;
            if reply.calls.len() > limit {
                reply.calls.truncate(limit);
                reply.stop = StopReason::CallLimit;
            }
            for event in heard {
                if let ModelEvent::Text(_) = event {
                    events.event(event);
                }
            }
            for call in &reply.calls {
                events.event(ModelEvent::Call(ToolCall::clone(call)));
            }
            if reply.is_empty() {
                return Err(ModelError::new(
                    ModelErrorKind::Empty,
                    "the script says nothing here",
                ));
            }
            Ok(reply)
        }
        .boxed()
    }
}

fn turn(node: NodeRef<'_>) -> Result<ScriptedTurn, ScriptError> {
    const KEYS: [&str; 5] = ["text", "calls", "when", "repeat", "error"];
    let value = plain(node);
    let Value::Object(fields) = &value else {
        return Err("a turn has `text` or `calls`".into());
    };
    known(fields, &KEYS)?;
    let calls = match fields.get("calls") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.iter().map(call).collect::<Result<_, _>>()?,
        Some(_) => return Err("`calls` is a list".into()),
    };
    Ok(ScriptedTurn {
        text: text(fields, "text")?.unwrap_or_default(),
        calls,
        when: text(fields, "when")?,
        repeat: fields
            .get("repeat")
            .and_then(Value::as_bool)
            .unwrap_or(false),
        fails: text(fields, "error")?,
    })
}

fn call(value: &Value) -> Result<ScriptedCall, ScriptError> {
    const KEYS: [&str; 3] = ["name", "arguments", "id"];
    let Value::Object(fields) = value else {
        return Err("a call has a `name`".into());
    };
    known(fields, &KEYS)?;
    let arguments = match fields.get("arguments") {
        None | Some(Value::Null) => Arguments::Object(Map::new()),
        // Text is what a model would have written, also when it is not JSON.
        Some(Value::String(text)) => Arguments::parse(text),
        Some(other) => Arguments::from_value(other.clone()),
    };
    Ok(ScriptedCall {
        name: text(fields, "name")?.ok_or("a call has a `name`")?,
        arguments,
        id: text(fields, "id")?,
    })
}

fn text(fields: &Map<String, Value>, key: &str) -> Result<Option<String>, ScriptError> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` is text").into()),
    }
}

fn known(fields: &Map<String, Value>, keys: &[&'static str]) -> Result<(), ScriptError> {
    match fields.keys().find(|key| !keys.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(ScriptError(match did_you_mean(key, keys.iter().copied()) {
            Some(near) => format!("`{key}` is not known; did you mean `{near}`?"),
            None => format!("`{key}` is not known; there are {}", keys.join(", ")),
        })),
    }
}

fn plain(node: NodeRef<'_>) -> Value {
    node.to_value(&mut |_| {})
}
