//! Reads the events of one run: names them, expands chunks, tells which tool a call is of.

use proofhouse_protocol::ag_ui::{AgUiChunk, AgUiEventType, AgUiRunEnd, is_aside};
use serde_json::{Map, Value, json};

use super::history::{History, SnapshotSaying};
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
    /// The tools of the frontend.
    tools: Vec<String>,
    /// How many calls came as events of another kind.
    custom_calls: usize,
}

impl<'n> AgUiEventReader<'n> {
    pub(super) fn new(names: &'n EventNames, messages: Vec<Value>) -> Self {
        Self {
            names,
            history: History::new(messages),
            outcome: None,
            open: None,
            tools: Vec::new(),
            custom_calls: 0,
        }
    }

    /// Says which tools the frontend has.
    pub(super) fn with_tools(mut self, tools: impl Iterator<Item = String>) -> Self {
        self.tools = tools.collect();
        self
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
        let said = self.said_otherwise(&kind, &event);
        self.see(&kind, event, None, &mut seen);
        for saying in said {
            self.show(saying, &mut seen);
        }
        seen
    }

    /// What an event says though it is neither a message nor a call: a snapshot has both, and a frontend that has a tool
    /// of the name of a custom event does what it says.
    fn said_otherwise(&mut self, kind: &str, event: &Value) -> Vec<SnapshotSaying> {
        let name = text(event, "name");
        match AgUiEventType::parse(kind) {
            Some(AgUiEventType::MessagesSnapshot) => {
                let messages = event.get("messages").and_then(Value::as_array);
                messages.map_or_else(Vec::new, |messages| self.history.news(messages))
            }
            Some(AgUiEventType::Custom) if self.tools.iter().any(|tool| tool == name) => {
                self.custom_calls += 1;
                let id = format!("custom-{}", self.custom_calls);
                let value = event.get("value").map(Value::to_string).unwrap_or_default();
                self.history.acted(&id, name, value.clone());
                vec![SnapshotSaying::Call {
                    id,
                    name: name.to_owned(),
                    arguments: value,
                }]
            }
            _ => Vec::new(),
        }
    }

    /// Shows what was said in another way as the events that usually say it.
    fn show(&self, saying: SnapshotSaying, seen: &mut Vec<SeenEvent>) {
        let (family, member, id, delta, name) = match saying {
            SnapshotSaying::Text { id, text } => {
                (AgUiChunk::Text, "role", id, text, "assistant".to_owned())
            }
            SnapshotSaying::Call {
                id,
                name,
                arguments,
            } => (AgUiChunk::Tool, "toolCallName", id, arguments, name),
        };
        for event in [family.start(), family.content(), family.end()] {
            let mut content = json!({"type": event.as_str()});
            content[family.id_member()] = id.as_str().into();
            if family == AgUiChunk::Tool || event == family.start() {
                content[member] = name.as_str().into();
            }
            if event == family.content() {
                content["delta"] = delta.as_str().into();
            }
            seen.push(SeenEvent {
                operation: self.names.operation(event.as_str()),
                content,
                raw: None,
            });
        }
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
        let name = text(&event, "toolCallName");
        let tool = self
            .history
            .tool_of(&id)
            .filter(|_| chunk == AgUiChunk::Tool);
        let known = tool.is_some_and(|tool| name.is_empty() || tool == name);
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

    fn has_failed(&self) -> bool {
        matches!(self.outcome, Some(AgUiOutcome::Failed(_)))
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
            Some(AgUiEventType::ToolCallEnd) => self.history.call_ends(call),
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
            // Whoever failed has not finished, whatever it says next.
            Some(AgUiEventType::RunFinished) if self.has_failed() => {}
            Some(AgUiEventType::RunFinished) => self.outcome = Some(outcome(event)),
            Some(AgUiEventType::RunStarted) if self.has_failed() => self.outcome = None,
            Some(AgUiEventType::RunError) => {
                let why = text(event, "message").to_owned();
                self.outcome = Some(AgUiOutcome::Failed(why));
            }
            _ => {}
        }
    }
}

fn outcome(event: &Value) -> AgUiOutcome {
    match AgUiRunEnd::of(event) {
        AgUiRunEnd::Cancelled => AgUiOutcome::Stopped,
        AgUiRunEnd::Interrupted(interrupts) => AgUiOutcome::Interrupted(interrupts),
        AgUiRunEnd::Finished => {
            let named = event.pointer("/outcome/pendingToolCallIds");
            AgUiOutcome::Finished(named.and_then(Value::as_array).map(|ids| {
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
    fn an_id_that_is_used_again_has_the_name_of_its_own_tool() {
        let call = |name: &str| {
            [
                json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": name}),
                json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"}),
                json!({"type": "TOOL_CALL_END", "toolCallId": "c"}),
            ]
        };
        let (seen, _) = read(&[call("show"), call("open")].concat());
        let names: Vec<&Value> = seen
            .iter()
            .map(|seen| &seen.content["toolCallName"])
            .collect();
        assert_eq!(names, ["show", "show", "show", "open", "open", "open"]);
    }

    #[test]
    fn a_snapshot_and_a_custom_event_say_what_they_say() {
        let names = EventNames::default();
        let tools = ["open_link".to_owned()];
        let mut reader = AgUiEventReader::new(&names, Vec::new()).with_tools(tools.into_iter());
        let link = json!({"url": "https://collector.example"});
        let function = json!({"name": "open_link", "arguments": link.to_string()});
        let seen = reader.read(json!({"type": "MESSAGES_SNAPSHOT", "messages": [
            {"id": "a", "role": "assistant", "content": "Opening it.", "toolCalls": [{"id": "t", "function": function}]}]}));
        assert_eq!(
            operations(&seen),
            [
                "messages_snapshot",
                "text_message_start",
                "text_message_content",
                "text_message_end",
                "tool_call_start",
                "tool_call_args",
                "tool_call_end",
            ]
        );
        assert_eq!(seen[2].content["delta"], "Opening it.");
        assert_eq!(seen[5].content["toolCallName"], "open_link");
        assert_eq!(seen[5].content["delta"], link.to_string());
        let seen = reader.read(json!({"type": "CUSTOM", "name": "open_link", "value": link}));
        assert_eq!(seen[2].content["delta"], link.to_string());
        let seen = reader.read(json!({"type": "CUSTOM", "name": "progress", "value": link}));
        assert_eq!(operations(&seen), ["custom"]);
        assert_eq!(reader.history.calls().count(), 2);
        assert_eq!(reader.history.waiting(None).len(), 1);
    }

    #[test]
    fn whoever_failed_has_not_finished() {
        let failed = Some(AgUiOutcome::Failed("model down".to_owned()));
        let error = json!({"type": "RUN_ERROR", "message": "model down"});
        let (started, finished) = (
            json!({"type": "RUN_STARTED"}),
            json!({"type": "RUN_FINISHED"}),
        );
        let (_, outcome) = read(&[started.clone(), error.clone(), finished.clone()]);
        assert_eq!(outcome, failed);
        let (_, outcome) = read(&[finished.clone(), error.clone()]);
        assert_eq!(outcome, failed);
        let (_, outcome) = read(&[error, started, finished]);
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
