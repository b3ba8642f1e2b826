//! Reads the events of one run: names them, expands chunks, tells which tool a call is of.

use proofhouse_protocol::ag_ui::{AgUiChunk, AgUiEventType, is_aside};
use serde_json::{Map, Value, json};

use super::history::History;
use super::names::EventNames;

/// An event as the document sees it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeenEvent {
    pub(super) operation: String,
    pub(super) content: Value,
    /// The event as it came, where that differs.
    pub(super) raw: Option<Value>,
}

/// How a run ended, as the agent tells it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AgUiOutcome {
    /// It is done; calls with these ids wait for a result, if it names any.
    Finished(Option<Vec<String>>),
    /// It waits for answers.
    Interrupted(Vec<Value>),
    /// It was cancelled.
    Stopped,
    /// It failed, and this is what it told.
    Failed(String),
}

/// Reads one run.
#[derive(Debug)]
pub(super) struct AgUiEventReader<'n> {
    names: &'n EventNames,
    pub(super) history: History,
    pub(super) outcome: Option<AgUiOutcome>,
    open: Option<(AgUiChunk, String)>,
}

impl<'n> AgUiEventReader<'n> {
    pub(super) fn new(names: &'n EventNames, messages: Vec<Value>) -> Self {
        Self {
            names,
            history: History::new(messages),
            outcome: None,
            open: None,
        }
    }

    /// What an event means; several things for a chunk.
    pub(super) fn read(&mut self, event: Value) -> Vec<SeenEvent> {
        let mut seen = Vec::new();
        let kind = text(&event, "type").to_owned();
        if let Some(chunk) = AgUiEventType::parse(&kind).and_then(AgUiChunk::of) {
            self.read_chunk(chunk, event, &mut seen);
            return seen;
        }
        if !is_aside(&kind) {
            self.close(&mut seen);
        }
        self.see(&kind, event, None, &mut seen);
        seen
    }

    /// The stream ended: what chunks left open is closed.
    pub(super) fn end(&mut self) -> Vec<SeenEvent> {
        let mut seen = Vec::new();
        self.close(&mut seen);
        seen
    }

    fn read_chunk(&mut self, chunk: AgUiChunk, event: Value, seen: &mut Vec<SeenEvent>) {
        let id = text(&event, chunk.id_member());
        let is_open =
            |(kind, open): &(AgUiChunk, String)| *kind == chunk && (id.is_empty() || id == open);
        let starts = !id.is_empty() && !self.open.as_ref().is_some_and(is_open);
        if starts || !self.open.as_ref().is_some_and(is_open) {
            self.close(seen);
        }
        let (start, grow) = (chunk.start().as_str(), chunk.content().as_str());
        if starts {
            self.open = Some((chunk, id.to_owned()));
        }
        let Some((_, id)) = self.open.clone() else {
            // It continues something that never began.
            self.see(text(&event, "type").to_owned().as_str(), event, None, seen);
            return;
        };
        let known = chunk == AgUiChunk::Tool && self.history.tool_of(&id).is_some();
        let mut begin = Map::new();
        if starts && !known {
            begin.insert("type".to_owned(), start.into());
            begin.insert(chunk.id_member().to_owned(), id.clone().into());
            for key in ["toolCallName", "parentMessageId", "role", "name"] {
                if let Some(value) = event.get(key) {
                    begin.insert(key.to_owned(), value.clone());
                }
            }
            // The chunk's own name must be known before the chunk is shown.
            if chunk == AgUiChunk::Tool {
                let parent = event.get("parentMessageId").and_then(Value::as_str);
                self.history
                    .call_starts(&id, text(&event, "toolCallName"), parent);
            }
        }
        let delta = event.get("delta").cloned();
        let raw = event.clone();
        let mut shown = event;
        if let Value::Object(map) = &mut shown {
            map.entry(chunk.id_member())
                .or_insert_with(|| id.clone().into());
        }
        let kind = text(&shown, "type").to_owned();
        let (shown, changed) = self.enrich(shown, &id);
        let differs = changed || shown != raw;
        seen.push(SeenEvent {
            operation: self.names.operation(&kind),
            content: shown,
            raw: differs.then(|| raw.clone()),
        });
        if !begin.is_empty() {
            self.see(start, Value::Object(begin), Some(&raw), seen);
        }
        if let Some(delta) = delta.filter(|delta| delta != "") {
            let mut event = json!({"type": grow, "delta": delta});
            event[chunk.id_member()] = id.into();
            self.see(grow, event, Some(&raw), seen);
        }
    }

    fn close(&mut self, seen: &mut Vec<SeenEvent>) {
        if let Some((chunk, id)) = self.open.take() {
            let end = chunk.end().as_str();
            let mut event = json!({"type": end});
            event[chunk.id_member()] = id.into();
            self.see(end, event, Some(&Value::Null), seen);
        }
    }

    /// Takes an event in and adds it, enriched. `origin` is the chunk that it comes from.
    fn see(&mut self, kind: &str, event: Value, origin: Option<&Value>, seen: &mut Vec<SeenEvent>) {
        self.remember(kind, &event);
        let call = text(&event, "toolCallId").to_owned();
        let untouched = event.clone();
        let (content, changed) = self.enrich(event, &call);
        let raw = match origin {
            Some(Value::Null) => None,
            Some(chunk) => Some(chunk.clone()),
            None => changed.then_some(untouched),
        };
        seen.push(SeenEvent {
            operation: self.names.operation(kind),
            content,
            raw,
        });
    }

    /// Says which tool an event of a call is about.
    fn enrich(&self, mut event: Value, call: &str) -> (Value, bool) {
        if let Value::Object(map) = &mut event
            && !map.contains_key("toolCallName")
            && let Some(name) = self.history.tool_of(call)
        {
            map.insert("toolCallName".to_owned(), name.into());
            return (event, true);
        }
        (event, false)
    }

    fn remember(&mut self, kind: &str, event: &Value) {
        let (call, message) = (text(event, "toolCallId"), text(event, "messageId"));
        let delta = text(event, "delta");
        match AgUiEventType::parse(kind) {
            Some(AgUiEventType::TextMessageStart) => {
                let role = event.get("role").and_then(Value::as_str);
                self.history
                    .text_starts(message, role.unwrap_or("assistant"));
            }
            Some(AgUiEventType::TextMessageContent) => self.history.text_grows(message, delta),
            Some(AgUiEventType::ToolCallStart) => {
                let parent = event.get("parentMessageId").and_then(Value::as_str);
                let name = text(event, "toolCallName");
                self.history.call_starts(call, name, parent);
            }
            Some(AgUiEventType::ToolCallArgs) => self.history.call_grows(call, delta),
            Some(AgUiEventType::ToolCallResult) => {
                let content = event.get("content").unwrap_or(&Value::Null);
                self.history.call_answered(call, message, content);
            }
            Some(AgUiEventType::StateSnapshot) => {
                self.history.state = event.get("snapshot").cloned();
            }
            Some(AgUiEventType::MessagesSnapshot) => {
                if let Some(messages) = event.get("messages").and_then(Value::as_array) {
                    self.history.replaced(messages);
                }
            }
            Some(AgUiEventType::RunFinished) => self.outcome = Some(outcome(event)),
            Some(AgUiEventType::RunError) => {
                let why = text(event, "message").to_owned();
                self.outcome = Some(AgUiOutcome::Failed(why));
            }
            _ => {}
        }
    }
}

fn outcome(event: &Value) -> AgUiOutcome {
    let outcome = event.get("outcome").unwrap_or(&Value::Null);
    let interrupts = outcome
        .get("interrupts")
        .or_else(|| event.get("interrupts"));
    let kind = outcome.as_str().unwrap_or_else(|| text(outcome, "type"));
    match (kind, interrupts.and_then(Value::as_array)) {
        ("cancelled", _) => AgUiOutcome::Stopped,
        ("interrupt", Some(interrupts)) if !interrupts.is_empty() => {
            AgUiOutcome::Interrupted(interrupts.clone())
        }
        _ => {
            let named = outcome.get("pendingToolCallIds").and_then(Value::as_array);
            AgUiOutcome::Finished(named.map(|ids| {
                let ids = ids.iter().filter_map(Value::as_str);
                ids.map(str::to_owned).collect()
            }))
        }
    }
}

pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &[Value]) -> (Vec<SeenEvent>, Option<AgUiOutcome>) {
        let names = EventNames::default();
        let mut reader = AgUiEventReader::new(&names, Vec::new());
        let mut seen = Vec::new();
        for event in events {
            seen.extend(reader.read(event.clone()));
        }
        seen.extend(reader.end());
        (seen, reader.outcome)
    }

    fn operations(seen: &[SeenEvent]) -> Vec<&str> {
        seen.iter().map(|seen| seen.operation.as_str()).collect()
    }

    #[test]
    fn events_of_a_call_name_its_tool() {
        let (seen, outcome) = read(&[
            json!({"type": "RUN_STARTED"}),
            json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "send"}),
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c"}),
            json!({"type": "TOOL_CALL_RESULT", "toolCallId": "c", "messageId": "m", "content": "ok"}),
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "unknown", "delta": "{}"}),
            json!({"type": "RUN_FINISHED"}),
        ]);
        for position in [1, 2, 3, 4] {
            assert_eq!(seen[position].content["toolCallName"], "send");
            assert_eq!(seen[position].raw.is_some(), position > 1);
        }
        assert_eq!(seen[5].content.get("toolCallName"), None);
        assert_eq!(outcome, Some(AgUiOutcome::Finished(None)));
    }

    #[test]
    fn chunks_expand_and_a_call_starts_once() {
        let (seen, _) = read(&[
            json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "send", "delta": "{"}),
            json!({"type": "TOOL_CALL_CHUNK", "delta": "}"}),
            json!({"type": "CUSTOM", "name": "aside"}),
            json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "delta": " "}),
            json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "hi"}),
            json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "delta": "x"}),
            json!({"type": "REASONING_MESSAGE_CHUNK", "delta": "lost"}),
        ]);
        assert_eq!(
            operations(&seen),
            [
                "tool_call_chunk",
                "tool_call_start",
                "tool_call_args",
                "tool_call_chunk",
                "tool_call_args",
                "custom",
                "tool_call_chunk",
                "tool_call_args",
                "tool_call_end",
                "text_message_chunk",
                "text_message_start",
                "text_message_content",
                "text_message_end",
                "tool_call_chunk",
                "tool_call_args",
                "tool_call_end",
                "reasoning_message_chunk",
            ]
        );
        assert_eq!(seen[1].content["toolCallName"], "send");
        assert_eq!(
            seen[3].content["toolCallName"], "send",
            "a continuation is enriched"
        );
        assert_eq!(
            seen[3].raw,
            Some(json!({"type": "TOOL_CALL_CHUNK", "delta": "}"}))
        );
        assert_eq!(seen[8].content["toolCallName"], "send");
    }

    #[test]
    fn outcomes_are_told_apart() {
        for (event, expected) in [
            (json!({}), AgUiOutcome::Finished(None)),
            (
                json!({"outcome": {"type": "success"}}),
                AgUiOutcome::Finished(None),
            ),
            (
                json!({"outcome": {"type": "success", "pendingToolCallIds": ["a"]}}),
                AgUiOutcome::Finished(Some(vec!["a".to_owned()])),
            ),
            (
                json!({"outcome": {"type": "cancelled"}}),
                AgUiOutcome::Stopped,
            ),
            (
                json!({"outcome": {"type": "interrupt", "interrupts": [{"id": "i"}]}}),
                AgUiOutcome::Interrupted(vec![json!({"id": "i"})]),
            ),
            (json!({"outcome": 7}), AgUiOutcome::Finished(None)),
        ] {
            assert_eq!(outcome(&event), expected, "{event}");
        }
    }
}
