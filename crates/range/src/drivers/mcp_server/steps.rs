//! `x-steps`: what happens between a request and its reply, such as progress, logs and questions.

use std::time::Duration;

use proofhouse_oatf::parse_duration;
use proofhouse_protocol::mcp::McpMethod;
use serde_json::{Map, Value, json};

use crate::branches;

/// The longest a step may pause, whatever the document says.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The most steps of one list; the rest is left out.
const MAX_STEPS: usize = 1_000;

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DeliveryStep {
    /// Wait.
    Pause(Duration),
    /// A progress notification, for a caller that gave a token.
    Progress(Map<String, Value>),
    /// A log message, for a caller that wants its level.
    Log(Map<String, Value>),
    /// Any notification, on the stream of the call.
    Notify { method: String, params: Value },
    /// Any notification, to everyone who listens.
    Broadcast { method: String, params: Value },
    /// A question to the client.
    Ask(Ask),
    /// The stream of the call ends without a reply; the client has to come back for it.
    CloseStream,
}

/// A request of ours that must be answered before the reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ask {
    /// The name of its answer.
    pub(super) key: String,
    pub(super) method: String,
    pub(super) params: Value,
    /// Questions of one round are asked together, where the protocol allows it.
    pub(super) round: u64,
    /// Asked even of a client that did not say it could answer.
    pub(super) force: bool,
}

impl Ask {
    /// What it is in the exposure.
    pub(super) fn branch(&self) -> Value {
        branches::of_message(&self.method, Some(&self.params))
    }

    /// What the client must have declared to be asked.
    pub(super) fn capability(&self) -> Option<&'static str> {
        McpMethod::parse(&self.method).and_then(McpMethod::client_capability)
    }
}

/// Reads a list of steps; what is no step is told to `warn` and left out.
pub(super) fn read(value: Option<&Value>, warn: &mut dyn FnMut(String)) -> Vec<DeliveryStep> {
    let Some(value) = value else {
        return Vec::new();
    };
    let Some(list) = value.as_array() else {
        warn("x-steps is not a list".to_owned());
        return Vec::new();
    };
    let mut steps = Vec::new();
    for item in list.iter().take(MAX_STEPS) {
        match step(item, steps.len()) {
            Some(step) => steps.push(step),
            None => warn(format!("x-steps: there is no step {item}")),
        }
    }
    steps
}

fn step(item: &Value, position: usize) -> Option<DeliveryStep> {
    let (kind, value) = item.as_object()?.iter().next()?;
    Some(match kind.as_str() {
        "pause" => DeliveryStep::Pause(pause(value)?),
        "progress" => DeliveryStep::Progress(match value {
            Value::Object(map) => map.clone(),
            number => Map::from_iter([("progress".to_owned(), number.clone())]),
        }),
        "log" => DeliveryStep::Log(match value {
            Value::Object(map) => map.clone(),
            data => Map::from_iter([
                ("level".to_owned(), json!("info")),
                ("data".to_owned(), data.clone()),
            ]),
        }),
        "notify" | "broadcast" => {
            let method = value.get("method")?.as_str()?.to_owned();
            let params = value.get("params").cloned().unwrap_or_default();
            if kind == "notify" {
                DeliveryStep::Notify { method, params }
            } else {
                DeliveryStep::Broadcast { method, params }
            }
        }
        "request" => {
            let method = value.get("method")?.as_str()?.to_owned();
            let text = |name| value.get(name).and_then(Value::as_str);
            DeliveryStep::Ask(Ask {
                key: text("key").map_or_else(|| format!("request-{}", position + 1), str::to_owned),
                params: value.get("params").cloned().unwrap_or_else(|| json!({})),
                round: value.get("round").and_then(Value::as_u64).unwrap_or(1),
                force: value.get("force").and_then(Value::as_bool).unwrap_or(false),
                method,
            })
        }
        "close_stream" => DeliveryStep::CloseStream,
        _ => return None,
    })
}

fn pause(value: &Value) -> Option<Duration> {
    let text = value.as_str()?;
    let millis = text.strip_suffix("ms").and_then(|text| text.parse().ok());
    let pause = millis
        .map(Duration::from_millis)
        .or_else(|| parse_duration(text).ok())?;
    Some(pause.min(MAX_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_nonsense_is_told() {
        let value = json!([
            {"pause": "50ms"},
            {"progress": 3},
            {"log": "hello"},
            {"notify": {"method": "notifications/message"}},
            {"request": {"method": "sampling/createMessage", "round": 2}},
            {"close_stream": true},
            {"pause": "2 parsecs"},
            {"dance": true},
            7,
        ]);
        let mut warnings = Vec::new();
        let steps = read(Some(&value), &mut |warning| warnings.push(warning));
        assert_eq!((steps.len(), warnings.len()), (6, 3));
        let DeliveryStep::Ask(ask) = &steps[4] else {
            panic!("{steps:?}")
        };
        assert_eq!((ask.key.as_str(), ask.round), ("request-5", 2));
        assert_eq!(ask.capability(), Some("sampling"));
        assert!(read(None, &mut |_| ()).is_empty());
    }
}
