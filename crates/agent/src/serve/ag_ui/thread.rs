//! A thread of AG-UI: what of its history the agent knows already, and how the rest becomes input.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::super::run::AnswerRun;
use super::input::{ClientMessage, ClientSaid, RunInput};
use crate::model::{ChatMessage, ToolCall, ToolSpec};
use crate::task::TaskInput;

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
    /// What the client has said so far, in bytes.
    bytes: usize,
    /// What the run under way is to answer.
    asked: Option<RunRequest>,
    /// What a run did not answer: the client may try again.
    unanswered: Option<RunRequest>,
    /// What the model is told of the functions of an agent that has bindings, by their names.
    pub(super) functions: Option<HashMap<String, ToolSpec>>,
    /// A run that waits for decisions.
    pub(super) paused: Option<AnswerRun>,
}

/// What a run is to answer.
#[derive(Debug)]
enum RunRequest {
    /// The message of an id, which is taken in again if it comes again.
    Message(String),
    /// What stands in the conversation.
    Conversation,
}

impl Thread {
    /// Whether it has grown beyond what is kept of a thread.
    pub(super) fn is_full(&self, most_bytes: usize) -> bool {
        self.known.len() + self.calls.len() > MAX_IDS || self.bytes > most_bytes
    }

    /// A run has come to its end, with an answer or without.
    pub(super) fn answered(&mut self, is_answered: bool) {
        self.unanswered = self.asked.take().filter(|_| !is_answered);
    }

    /// The arguments of a call without those that are bound: the model does not know them, and neither
    /// does the client need to.
    pub(super) fn shown(
        &self,
        function: &str,
        mut arguments: Map<String, Value>,
        bound: &[&str],
    ) -> Map<String, Value> {
        let functions = self.functions.as_ref();
        let properties = functions
            .and_then(|functions| functions.get(function))
            .and_then(|spec| spec.parameters.get("properties"));
        let is_seen = |name: &str| properties.is_some_and(|all| all.get(name).is_some());
        arguments.retain(|name, _| !bound.contains(&name.as_str()) || is_seen(name));
        arguments
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

    /// What is new in what the client sent, as input; nothing if nothing is. What was not answered is
    /// new if it comes again.
    pub(super) fn input(&mut self, run: &RunInput, parameters: &[&str]) -> Option<TaskInput> {
        let unanswered = self.unanswered.take();
        if let (Some(RunRequest::Message(id)), Some(last)) = (&unanswered, run.messages.last())
            && *id == last.id
        {
            self.known.remove(id);
        }
        let fresh: Vec<&ClientMessage> = run
            .messages
            .iter()
            .filter(|message| self.known.insert(message.id.clone()))
            .filter(|message| message.said != ClientSaid::Other)
            .collect();
        let Some(last) = fresh.last() else {
            matches!(unanswered, Some(RunRequest::Conversation)).then_some(())?;
            self.asked = unanswered;
            return Some(TaskInput {
                goes_on: true,
                tools: run.tools.clone(),
                context: run.context.clone(),
                ..TaskInput::default()
            });
        };
        self.bytes += fresh
            .iter()
            .map(|message| message.said.bytes())
            .sum::<usize>();
        let mut preceding = self.conversation(&fresh);
        let last_words = |messages: &[&ClientMessage]| {
            let mut words = messages.iter().rev();
            words.find_map(|message| match &message.said {
                ClientSaid::User(text) => Some(text.clone()),
                _ => None,
            })
        };
        let goes_on = !matches!(last.said, ClientSaid::User(_));
        self.asked = Some(if goes_on {
            RunRequest::Conversation
        } else {
            RunRequest::Message(last.id.clone())
        });
        let message = if !goes_on {
            preceding.pop();
            last_words(&fresh)
        } else if !self.has_input {
            // The rules of the agent see the words that the run is about, whoever wrote them down.
            Some(last_words(&fresh).unwrap_or_default())
        } else {
            None
        };
        self.has_input = true;
        let is_parameter = |name: &String| parameters.contains(&name.as_str());
        let properties = run.properties.iter().filter(|(name, _)| is_parameter(name));
        let parameters: Map<String, Value> = properties
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Some(TaskInput {
            message,
            parameters,
            preceding,
            goes_on,
            tools: run.tools.clone(),
            context: run.context.clone(),
            ..TaskInput::default()
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
    fn what_was_not_answered_can_be_asked_again() {
        let mut thread = Thread::default();
        let asked = run(&json!([{"id": "1", "role": "user", "content": "hi"}]));
        assert!(thread.input(&asked, &[]).is_some());
        thread.answered(false);
        let again = thread.input(&asked, &[]).unwrap();
        assert_eq!(again.message.as_deref(), Some("hi"));
        thread.answered(true);
        assert!(thread.input(&asked, &[]).is_none());
        let result = run(&json!([{"id": "2", "role": "tool", "toolCallId": "c", "content": "ok"}]));
        assert!(thread.input(&result, &[]).unwrap().goes_on);
        thread.answered(false);
        let again = thread.input(&result, &[]).unwrap();
        assert!(again.goes_on && again.preceding.is_empty() && again.message.is_none());
        assert!(!thread.is_full(6) && thread.is_full(5));
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
