//! The conversation as the agent's events tell it: messages, tool calls, and which wait for us.

use std::collections::HashMap;

use serde_json::{Value, json};

/// Tool calls of one run that are remembered; an agent that starts more is not answered for them.
const MAX_CALLS: usize = 1_000;

/// A tool call of the agent.
#[derive(Debug)]
pub(super) struct AgUiToolCall {
    pub(super) id: String,
    pub(super) name: String,
    arguments: String,
    /// A result came, or the agent went on talking after the call: it has no need of ours.
    settled: bool,
    /// It was told that all arguments are there.
    ended: bool,
}

/// What an agent says in a list of messages, and nowhere else.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SnapshotSaying {
    Text {
        id: String,
        text: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
    },
}

/// Messages and calls of one run, on top of those that were sent.
#[derive(Debug)]
pub(super) struct History {
    messages: Vec<Value>,
    /// Where messages with an id are.
    places: HashMap<String, usize>,
    calls: Vec<AgUiToolCall>,
    by_id: HashMap<String, usize>,
    /// How many messages were sent; later ones are the agent's.
    sent: usize,
    /// The state, if the agent told it.
    pub(super) state: Option<Value>,
}

impl History {
    pub(super) fn new(messages: Vec<Value>) -> Self {
        Self {
            sent: messages.len(),
            messages,
            places: HashMap::new(),
            calls: Vec::new(),
            by_id: HashMap::new(),
            state: None,
        }
    }

    /// The name of a tool call.
    pub(super) fn tool_of(&self, call: &str) -> Option<&str> {
        let place = *self.by_id.get(call)?;
        Some(&self.calls[place].name)
    }

    pub(super) fn text_starts(&mut self, id: &str, role: &str) {
        for call in &mut self.calls {
            call.settled = true;
        }
        if !self.places.contains_key(id) {
            self.places.insert(id.to_owned(), self.messages.len());
            let message = json!({"id": id, "role": role, "content": ""});
            self.messages.push(message);
        }
    }

    pub(super) fn text_grows(&mut self, id: &str, delta: &str) {
        if let Some(Value::String(text)) = self
            .places
            .get(id)
            .and_then(|place| self.messages.get_mut(*place)?.get_mut("content"))
        {
            text.push_str(delta);
        }
    }

    /// A call starts. `false` when it is known already. An id that is used again is of another call if the one before has
    /// ended, or is of another tool.
    pub(super) fn call_starts(&mut self, id: &str, name: &str, parent: Option<&str>) -> bool {
        let known = self.by_id.get(id).map(|place| &self.calls[*place]);
        if known.is_some_and(|known| !known.ended && known.name == name) {
            return false;
        }
        if self.adopt(id, name, String::new()) {
            self.attach(id, name, parent);
        }
        true
    }

    /// Takes in a call. `false` when there are too many.
    fn adopt(&mut self, id: &str, name: &str, arguments: String) -> bool {
        if self.calls.len() >= MAX_CALLS {
            return false;
        }
        self.by_id.insert(id.to_owned(), self.calls.len());
        self.calls.push(AgUiToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
            settled: false,
            ended: false,
        });
        true
    }

    /// All arguments of a call are there.
    pub(super) fn call_ends(&mut self, id: &str) {
        if let Some(place) = self.by_id.get(id) {
            self.calls[*place].ended = true;
        }
    }

    /// The agent acted in a way of its own; nobody waits for what comes of it.
    pub(super) fn acted(&mut self, id: &str, name: &str, arguments: String) {
        if self.adopt(id, name, arguments)
            && let Some(call) = self.calls.last_mut()
        {
            call.settled = true;
        }
    }

    /// What of a list of messages the agent has not said before. Calls are taken in, so that they are answered.
    pub(super) fn news(&mut self, messages: &[Value]) -> Vec<SnapshotSaying> {
        let is_agents =
            |message: &&Value| message.get("role").is_some_and(|role| role == "assistant");
        let text = |value: &Value, key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let mut news = Vec::new();
        for message in messages.iter().filter(is_agents) {
            let said = text(message, "content");
            let mut known = self.messages.iter().filter(is_agents);
            let is_known =
                known.any(|known| known.get("content").is_some_and(|known| *known == said));
            if !said.is_empty() && !is_known {
                news.push(SnapshotSaying::Text {
                    id: text(message, "id"),
                    text: said,
                });
            }
            let calls = message.get("toolCalls").and_then(Value::as_array);
            for call in calls.into_iter().flatten() {
                let (id, function) = (text(call, "id"), call.get("function").unwrap_or(call));
                let name = text(function, "name");
                if self.tool_of(&id).is_some_and(|known| known == name) || self.was_sent(&id) {
                    continue;
                }
                let arguments = match function.get("arguments") {
                    Some(Value::String(arguments)) => arguments.clone(),
                    Some(other) => other.to_string(),
                    None => String::new(),
                };
                if !self.adopt(&id, &name, arguments.clone()) {
                    continue;
                }
                news.push(SnapshotSaying::Call {
                    id,
                    name,
                    arguments,
                });
            }
        }
        news
    }

    /// Whether a call is one of those that were sent with the input.
    fn was_sent(&self, id: &str) -> bool {
        let sent = self.messages.iter().take(self.sent);
        let mut calls = sent.filter_map(|message| message.get("toolCalls")?.as_array());
        calls.any(|calls| {
            calls
                .iter()
                .any(|call| call.get("id").is_some_and(|known| known == id))
        })
    }

    /// Puts a call into the message that it belongs to, or into one of its own. Calls that follow
    /// each other share a message: models want their results right after it.
    fn attach(&mut self, id: &str, name: &str, parent: Option<&str>) {
        let call = json!({
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": ""},
        });
        let own = parent.and_then(|parent| self.places.get(parent).copied());
        let last = self.messages.len().checked_sub(1);
        let last = last.filter(|place| {
            parent.is_none() && *place >= self.sent && self.messages[*place]["toolCalls"].is_array()
        });
        if let Some(Value::Object(message)) =
            own.or(last).and_then(|place| self.messages.get_mut(place))
        {
            let calls = message.entry("toolCalls").or_insert_with(|| json!([]));
            if let Value::Array(calls) = calls {
                calls.push(call);
                return;
            }
        }
        let message_id = parent.map_or_else(|| format!("assistant-{id}"), str::to_owned);
        self.places.insert(message_id.clone(), self.messages.len());
        let message = json!({"id": message_id, "role": "assistant", "toolCalls": [call]});
        self.messages.push(message);
    }

    pub(super) fn call_grows(&mut self, id: &str, delta: &str) {
        if let Some(place) = self.by_id.get(id) {
            self.calls[*place].arguments.push_str(delta);
        }
    }

    pub(super) fn call_answered(&mut self, id: &str, message: &str, content: &Value) {
        if let Some(place) = self.by_id.get(id) {
            self.calls[*place].settled = true;
        }
        let message = json!({"id": message, "role": "tool", "toolCallId": id, "content": content});
        self.messages.push(message);
    }

    /// The agent says what the conversation is.
    pub(super) fn replaced(&mut self, messages: &[Value]) {
        self.messages = messages.to_vec();
        self.sent = messages.len();
        self.places.clear();
        for (place, message) in messages.iter().enumerate() {
            if let Some(id) = message.get("id").and_then(Value::as_str) {
                self.places.insert(id.to_owned(), place);
            }
            let answered = message.get("toolCallId").and_then(Value::as_str);
            if let Some(place) = answered.and_then(|id| self.by_id.get(id)) {
                self.calls[*place].settled = true;
            }
        }
    }

    /// The calls of the run: their tools, and the arguments as they came.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&str, &str)> {
        let calls = self.calls.iter();
        calls.map(|call| (call.name.as_str(), call.arguments.as_str()))
    }

    /// The calls that wait for a result: those that the agent named, or those it left open.
    pub(super) fn waiting(&self, named: Option<&[String]>) -> Vec<&AgUiToolCall> {
        let waits = |call: &&AgUiToolCall| match named {
            Some(named) if !named.is_empty() => named.contains(&call.id),
            _ => !call.settled,
        };
        self.calls.iter().filter(waits).collect()
    }

    /// All messages, with the calls as they were made.
    pub(super) fn into_messages(mut self) -> Vec<Value> {
        let mut seen = vec![false; self.calls.len()];
        for message in &mut self.messages {
            let calls = message.get_mut("toolCalls").and_then(Value::as_array_mut);
            for call in calls.into_iter().flatten() {
                // Of calls that share an id, each has its own.
                let is_it = |(place, known): &(usize, &AgUiToolCall)| {
                    !seen[*place] && call["id"] == known.id.as_str()
                };
                let place = self.calls.iter().enumerate().find(is_it);
                if let Some(place) = place.map(|(place, _)| place) {
                    seen[place] = true;
                    if call["function"]["arguments"] == "" {
                        let arguments = std::mem::take(&mut self.calls[place].arguments);
                        call["function"]["arguments"] = arguments.into();
                    }
                }
            }
        }
        // A snapshot may have left out the calls of the run that it came in.
        let calls = std::mem::take(&mut self.calls);
        let missing = calls
            .into_iter()
            .zip(seen)
            .filter(|(call, seen)| !seen && !call.settled);
        let missing: Vec<Value> = missing
            .map(|(call, _)| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": call.id, "type": "function", "function": function})
            })
            .collect();
        if let Some(first) = missing.first() {
            let id = format!("assistant-{}", first["id"].as_str().unwrap_or_default());
            let message = json!({"id": id, "role": "assistant", "toolCalls": missing});
            self.messages.push(message);
        }
        self.messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(calls: &[&AgUiToolCall]) -> Vec<String> {
        calls.iter().map(|call| call.id.clone()).collect()
    }

    #[test]
    fn calls_wait_until_they_are_answered_or_the_agent_goes_on() {
        let mut history = History::new(vec![json!({"role": "user"})]);
        history.text_starts("m1", "assistant");
        history.text_grows("m1", "hel");
        history.text_grows("m1", "lo");
        assert!(history.call_starts("c1", "look", Some("m1")));
        assert!(!history.call_starts("c1", "look", Some("m1")));
        history.call_grows("c1", "{\"a\":");
        history.call_grows("c1", "1}");
        history.call_starts("c2", "take", None);
        assert_eq!(ids(&history.waiting(None)), ["c1", "c2"]);
        assert_eq!(ids(&history.waiting(Some(&["c2".to_owned()]))), ["c2"]);
        history.call_answered("c2", "r", &json!("done"));
        assert_eq!(ids(&history.waiting(None)), ["c1"]);
        let messages = history.into_messages();
        assert_eq!(messages[1]["content"], "hello");
        let function = &messages[1]["toolCalls"][0]["function"];
        assert_eq!(function, &json!({"name": "look", "arguments": "{\"a\":1}"}));
        assert_eq!(
            messages[1]["toolCalls"][1]["id"], "c2",
            "calls in a row share a message"
        );
        assert_eq!(messages[2]["toolCallId"], "c2");

        let mut history = History::new(Vec::new());
        history.call_starts("c1", "look", None);
        history.text_starts("m1", "assistant");
        assert!(history.waiting(None).is_empty(), "it did without us");
    }

    #[test]
    fn a_snapshot_replaces_the_messages_and_keeps_the_calls() {
        let mut history = History::new(vec![json!({"role": "user"})]);
        history.call_starts("c1", "look", None);
        history.call_starts("c2", "take", None);
        history.replaced(&[json!({"id": "x", "role": "tool", "toolCallId": "c1"})]);
        assert_eq!(ids(&history.waiting(None)), ["c2"]);
        let messages = history.into_messages();
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[1]["toolCalls"][0]["id"], "c2");
    }

    #[test]
    fn an_id_that_is_used_again_is_another_call() {
        let mut history = History::new(Vec::new());
        history.call_starts("a", "show", None);
        history.call_grows("a", "{}");
        history.call_ends("a");
        assert!(history.call_starts("a", "open", None));
        history.call_grows("a", "{\"url\":1}");
        assert_eq!(history.tool_of("a"), Some("open"));
        let calls: Vec<_> = history.calls().collect();
        assert_eq!(calls, [("show", "{}"), ("open", "{\"url\":1}")]);
        assert_eq!(ids(&history.waiting(None)), ["a", "a"]);
        let messages = history.into_messages();
        let calls = messages[0]["toolCalls"].as_array().unwrap().iter();
        let arguments: Vec<&str> = calls
            .map(|call| call["function"]["arguments"].as_str().unwrap())
            .collect();
        assert_eq!(arguments, ["{}", "{\"url\":1}"]);
    }

    #[test]
    fn news_of_a_snapshot_are_what_was_not_said() {
        let call =
            |id: &str, name: &str| json!({"id": id, "function": {"name": name, "arguments": "{}"}});
        let sent = json!({"role": "assistant", "toolCalls": [call("old", "x")]});
        let mut history =
            History::new(vec![json!({"role": "user", "content": "hi"}), sent.clone()]);
        history.text_starts("m", "assistant");
        history.text_grows("m", "hello");
        let snapshot = [
            json!({"role": "user", "content": "not the agent"}),
            sent,
            json!({"id": "m", "role": "assistant", "content": "hello"}),
            json!({"id": "n", "role": "assistant", "content": "more", "toolCalls": [call("c", "open")]}),
        ];
        let news = history.news(&snapshot);
        assert_eq!(news.len(), 2, "{news:?}");
        assert!(matches!(&news[0], SnapshotSaying::Text { text, .. } if text == "more"));
        assert!(matches!(&news[1], SnapshotSaying::Call { name, .. } if name == "open"));
        history.replaced(&snapshot);
        assert_eq!(ids(&history.waiting(None)), ["c"]);
        assert!(history.news(&snapshot).is_empty());
    }

    #[test]
    fn calls_are_bounded() {
        let mut history = History::new(Vec::new());
        for n in 0..2 * MAX_CALLS {
            history.call_starts(&n.to_string(), "flood", None);
        }
        assert_eq!(history.waiting(None).len(), MAX_CALLS);
    }
}
