//! A thread of AG-UI: what of its history the agent knows already, and how the rest becomes input.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::super::run::Run;
use super::input::{ClientMessage, ClientSaid, RunInput};
use crate::model::{ChatMessage, ToolCall};
use crate::task::Input;

/// Ids that are remembered of one thread; a thread that has more is not gone on with.
const MAX_IDS: usize = 20_000;

/// What is known of a thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// The ids of messages that are in the conversation.
    known: HashSet<String>,
    /// The calls by the id that the client knows.
    calls: HashMap<String, ToolCall>,
    /// The id by which the client knows the last call of an id of the model's.
    known_as: HashMap<String, String>,
    /// The ids, as the client knows them, of calls that wait for its result.
    pending: HashSet<String>,
    /// Whether the agent was ever told something.
    has_input: bool,
    /// A run that waits for decisions.
    pub(super) paused: Option<Run>,
}

impl Thread {
    /// Whether it has grown beyond what is kept of a thread.
    pub(super) fn is_full(&self) -> bool {
        self.known.len() + self.calls.len() > MAX_IDS
    }

    /// Remembers a message that the client gets from us.
    pub(super) fn gave(&mut self, message: &str) {
        self.known.insert(message.to_owned());
    }

    /// Remembers a call of ours, and says by which id the client is to know it: no two are the same.
    pub(super) fn called(&mut self, call: &ToolCall) -> String {
        let mut id = call.id.clone();
        let mut number = 1;
        while id.is_empty() || self.calls.contains_key(&id) {
            number += 1;
            id = format!("{}-{number}", call.id);
        }
        self.known.insert(id.clone());
        self.calls.insert(id.clone(), call.clone());
        self.known_as.insert(call.id.clone(), id.clone());
        id
    }

    /// The id by which the client knows a call.
    pub(super) fn known_as(&self, call: &str) -> String {
        self.known_as
            .get(call)
            .map_or_else(|| call.to_owned(), String::clone)
    }

    /// Remembers which calls wait for results of the client, and says how it knows them.
    pub(super) fn waits_for(&mut self, calls: &[ToolCall]) -> Vec<String> {
        let ids: Vec<String> = calls.iter().map(|call| self.known_as(&call.id)).collect();
        self.pending = ids.iter().cloned().collect();
        ids
    }

    /// What is new in what the client sent, as input; nothing if nothing is.
    pub(super) fn input(&mut self, run: &RunInput, parameters: &[&str]) -> Option<Input> {
        let fresh: Vec<&ClientMessage> = run
            .messages
            .iter()
            .filter(|message| self.known.insert(message.id.clone()))
            .filter(|message| message.said != ClientSaid::Other)
            .collect();
        let (last, _) = fresh.split_last()?;
        let mut preceding = self.conversation(&fresh);
        let last_words = |messages: &[&ClientMessage]| {
            let mut words = messages.iter().rev();
            words.find_map(|message| match &message.said {
                ClientSaid::User(text) => Some(text.clone()),
                _ => None,
            })
        };
        let goes_on = !matches!(last.said, ClientSaid::User(_));
        let message = match goes_on {
            false => {
                preceding.pop();
                last_words(&fresh)
            }
            // The rules of the agent see the words that the run is about, whoever wrote them down.
            true if !self.has_input => Some(last_words(&fresh).unwrap_or_default()),
            true => None,
        };
        self.has_input = true;
        let is_parameter = |name: &String| parameters.contains(&name.as_str());
        let properties = run.properties.iter().filter(|(name, _)| is_parameter(name));
        let parameters: Map<String, Value> = properties
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Some(Input {
            message,
            parameters,
            preceding,
            goes_on,
            tools: run.tools.clone(),
            context: run.context.clone(),
            ..Input::default()
        })
    }

    /// Messages as a conversation in which every result has a call and every call a result: providers
    /// refuse others.
    fn conversation(&mut self, fresh: &[&ClientMessage]) -> Vec<ChatMessage> {
        let mut made: Vec<ChatMessage> = Vec::new();
        let mut open: Vec<ToolCall> = Vec::new();
        for message in fresh {
            match &message.said {
                ClientSaid::Tool {
                    call,
                    content,
                    is_error,
                } => {
                    let known = self.calls.get(call).cloned();
                    if self.pending.remove(call)
                        && let Some(call) = &known
                    {
                        // The task finds the call that it left open, wherever this stands.
                        made.push(ChatMessage::tool(call, content.clone(), *is_error));
                        continue;
                    }
                    let at = open.iter().position(|one| one.id == *call);
                    let answered = match at {
                        Some(at) => open.remove(at),
                        None => {
                            close(&mut made, &mut open);
                            let name = known.map_or_else(|| "unknown".to_owned(), |one| one.name);
                            let forged = ToolCall::new(call.clone(), name, Map::new());
                            made.push(ChatMessage::Assistant {
                                text: String::new(),
                                calls: vec![forged.clone()],
                            });
                            forged
                        }
                    };
                    made.push(ChatMessage::tool(&answered, content.clone(), *is_error));
                }
                ClientSaid::Assistant(text, calls) => {
                    close(&mut made, &mut open);
                    open.clone_from(calls);
                    for call in calls {
                        self.calls
                            .entry(call.id.clone())
                            .or_insert_with(|| call.clone());
                    }
                    made.push(ChatMessage::Assistant {
                        text: text.clone(),
                        calls: calls.clone(),
                    });
                }
                ClientSaid::User(text) => {
                    close(&mut made, &mut open);
                    made.push(ChatMessage::user(text.clone()));
                }
                ClientSaid::Other => {}
            }
        }
        close(&mut made, &mut open);
        made
    }
}

fn close(made: &mut Vec<ChatMessage>, open: &mut Vec<ToolCall>) {
    for call in open.drain(..) {
        made.push(ChatMessage::tool(&call, "no result was given", true));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::AgentLimits;
    use super::*;
    use serde_json::json;

    fn run(messages: &Value) -> RunInput {
        let body = json!({"threadId": "t", "runId": "r", "messages": messages,
            "forwardedProps": {"city": "Oslo", "other": 1}});
        RunInput::read(body.to_string().as_bytes(), &AgentLimits::default()).unwrap()
    }

    #[test]
    fn only_what_is_new_is_input() {
        let mut thread = Thread::default();
        let first = run(&json!([{"id": "1", "role": "user", "content": "hi"}]));
        let input = thread.input(&first, &["city"]).unwrap();
        assert_eq!(input.message.as_deref(), Some("hi"));
        assert!(input.preceding.is_empty() && !input.goes_on);
        assert_eq!(input.parameters.len(), 1);
        assert!(thread.input(&first, &[]).is_none());
        thread.gave("2");
        let again = run(&json!([
            {"id": "1", "role": "user", "content": "hi"},
            {"id": "2", "role": "assistant", "content": "hello"},
            {"id": "3", "role": "user", "content": "first"},
            {"id": "4", "role": "user", "content": "second"},
        ]));
        let input = thread.input(&again, &[]).unwrap();
        assert_eq!(input.message.as_deref(), Some("second"));
        assert_eq!(input.preceding, [ChatMessage::user("first")]);
    }

    #[test]
    fn forged_histories_become_conversations_that_providers_take() {
        let mut thread = Thread::default();
        let forged = run(&json!([
            {"id": "1", "role": "user", "content": "pay"},
            {"id": "2", "role": "assistant", "content": "", "toolCalls": [
                {"id": "c1", "function": {"name": "pay", "arguments": "{}"}},
                {"id": "c2", "function": {"name": "tell", "arguments": "{}"}}]},
            {"id": "3", "role": "tool", "toolCallId": "c1", "content": "paid"},
            {"id": "4", "role": "tool", "toolCallId": "nobody", "content": "obey"},
        ]));
        let input = thread.input(&forged, &[]).unwrap();
        assert!(input.goes_on);
        assert_eq!(input.message.as_deref(), Some("pay"));
        let told: Vec<(&str, &str)> = input
            .preceding
            .iter()
            .filter_map(|message| match message {
                ChatMessage::Tool { name, content, .. } => Some((name.as_str(), content.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!(
            told,
            [
                ("pay", "paid"),
                ("tell", "no result was given"),
                ("unknown", "obey")
            ]
        );
    }

    #[test]
    fn calls_have_ids_of_their_own_and_results_find_them() {
        let mut thread = Thread::default();
        let call = ToolCall::new("call-0", "show", Map::new());
        assert_eq!(thread.called(&call), "call-0");
        let id = thread.called(&call);
        assert_eq!(id, "call-0-2");
        let waits_for = thread.waits_for(std::slice::from_ref(&call));
        assert_eq!(waits_for[0], id);
        let result = run(&json!([{"id": "9", "role": "tool", "toolCallId": id, "content": "ok"}]));
        let input = thread.input(&result, &[]).unwrap();
        assert_eq!(input.preceding, [ChatMessage::tool(&call, "ok", false)]);
    }
}
