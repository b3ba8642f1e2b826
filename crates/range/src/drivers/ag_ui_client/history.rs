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

    /// A call starts. `false` when it is known already.
    pub(super) fn call_starts(&mut self, id: &str, name: &str, parent: Option<&str>) -> bool {
        if self.by_id.contains_key(id) {
            return false;
        }
        if self.calls.len() < MAX_CALLS {
            self.by_id.insert(id.to_owned(), self.calls.len());
            self.calls.push(AgUiToolCall {
                id: id.to_owned(),
                name: name.to_owned(),
                arguments: String::new(),
                settled: false,
            });
            self.attach(id, name, parent);
        }
        true
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
                let place = call["id"].as_str().and_then(|id| self.by_id.get(id));
                if let Some(place) = place.copied() {
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
    fn calls_are_bounded() {
        let mut history = History::new(Vec::new());
        for n in 0..2 * MAX_CALLS {
            history.call_starts(&n.to_string(), "flood", None);
        }
        assert_eq!(history.waiting(None).len(), MAX_CALLS);
    }
}
