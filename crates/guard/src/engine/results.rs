//! Answers of the server on their way back: definitions are compared with the pins, results are followed and judged.

use proofhouse_protocol::mcp::McpMethod;
use proofhouse_protocol::rpc;
use serde_json::{Value, json};

use super::answers::refusal;
use super::calls::taint_value;
use super::open_calls::PendingCall;
use super::{GuardSession, OneMessage, shared};
use crate::finding::{FindingCode, GuardDecision};
use crate::pins::PinKind;
use crate::policy::fits;
use crate::share::{MAX_TOLD, SharedFact};
use crate::taint::fields::told_apart;
use crate::taint::{CallTaint, TaintLabel, texts_below};

/// How much of a result's text expressions see.
const MAX_TEXT: usize = 256 << 10;

impl GuardSession {
    pub(super) fn judge_result(
        &mut self,
        call: &PendingCall,
        result: Value,
        value: &Value,
    ) -> OneMessage {
        if let Some(kind) = PinKind::listed_by(&call.method) {
            return self.judge_listing(call, kind, result, value);
        }
        match McpMethod::parse(&call.method) {
            Some(McpMethod::Initialize | McpMethod::ServerDiscover) => {
                self.judge_instructions(call, &result, value)
            }
            Some(McpMethod::ToolsCall | McpMethod::ResourcesRead | McpMethod::PromptsGet) => {
                self.judge_content(call, result, None, value)
            }
            _ => OneMessage::Pass,
        }
    }

    /// A result that a model reads; `read` is what it reads of it, where that is not all.
    pub(super) fn judge_content(
        &mut self,
        call: &PendingCall,
        mut result: Value,
        read: Option<&Value>,
        value: &Value,
    ) -> OneMessage {
        let item = call.labelled().to_owned();
        self.follow(&call.method, &item, read.unwrap_or(&result));
        let policy = std::sync::Arc::clone(&self.setup.policy);
        if !policy.rules.iter().any(|rule| rule.is_about_results) {
            return OneMessage::Pass;
        }
        let values = |session: &Self| {
            let label = policy.label(&session.setup.server, &item);
            let is_error = result.get("isError") == Some(&Value::Bool(true));
            vec![
                ("call", session.call_value(call, label)),
                ("taint", taint_value(&CallTaint::default(), label)),
                ("history", session.history_value()),
                (
                    "result",
                    json!({"text": text_of(read.unwrap_or(&result)), "is_error": is_error}),
                ),
            ]
        };
        let outcome = self.decide(true, &values, &result, (call.item(), None));
        let redacted = |mut whole: Value, result: Value| {
            whole["result"] = result;
            OneMessage::Replace(whole)
        };
        match outcome.decision {
            GuardDecision::Allow | GuardDecision::Log => OneMessage::Pass,
            GuardDecision::Redact => {
                let rule = outcome.rule.and_then(|number| policy.rules.get(number));
                match rule.map(|rule| rule.redact(&mut result)) {
                    Some(Ok(())) => redacted(with_id(value, call), result),
                    _ => OneMessage::Answer(refusal(
                        call,
                        "what should be taken out of the result could not be",
                    )),
                }
            }
            GuardDecision::Ask | GuardDecision::Block => OneMessage::Answer(refusal(
                call,
                &format!("the result was withheld: {}", outcome.message),
            )),
        }
    }

    /// Remembers the texts of a result by what the policy says of it.
    pub(super) fn follow(&mut self, method: &str, item: &str, value: &Value) {
        let policy = std::sync::Arc::clone(&self.setup.policy);
        let label = policy.label(&self.setup.server, item);
        let label = label.or_else(|| policy.label(&self.setup.server, method));
        let Some((label, returns)) = label.and_then(|label| Some((label, label.returns?))) else {
            return;
        };
        let origin = shared::origin_of(&self.setup.server, item);
        if returns == TaintLabel::Untrusted {
            self.mentions.read(&origin, value, None);
        }
        let patterns = label.free_text.as_ref();
        let is_free_text = |key: &str| {
            let mut patterns = patterns.into_iter().flatten();
            patterns.any(|pattern| fits(pattern, key))
        };
        let fields = patterns.and_then(|_| structured(value));
        let mut all = match &fields {
            Some(fields) => {
                let taint = &mut self.taint;
                taint.remember_fields(returns, &origin, fields, &is_free_text)
            }
            None => self.taint.remember(returns, &origin, value),
        };
        if self.facts.is_some() {
            let (texts, values) = match &fields {
                Some(fields) => told_apart(fields, &is_free_text),
                None => (texts_below(value), Vec::new()),
            };
            all &= texts.iter().all(|text| text.len() <= MAX_TOLD);
            self.fact(|| SharedFact::Values { values });
            self.fact(|| SharedFact::Texts {
                label: returns,
                origin,
                texts,
            });
        }
        if !all {
            let message = "a result is larger than what is remembered; its end is not followed";
            let finding = self.finding(FindingCode::TaintBudget, GuardDecision::Log, message);
            self.tell(finding.about(item));
        }
    }
}

/// A result as one JSON value: its structured content, or its only text where that is JSON. Nothing where it says more
/// than that, such as a text beside the structured content that is not the same.
pub(crate) fn structured(result: &Value) -> Option<Value> {
    let texts = || {
        let items = result.get("content").and_then(Value::as_array);
        items.map(Vec::as_slice).unwrap_or_default()
    };
    let json_of = |item: &Value| -> Option<Value> {
        let is_text = item.get("type").and_then(Value::as_str) == Some("text");
        let text = item
            .get("text")
            .and_then(Value::as_str)
            .filter(|_| is_text)?;
        serde_json::from_str(text).ok()
    };
    match (result.get("structuredContent"), texts()) {
        (Some(value), texts) => {
            // Servers wrap what is no object.
            let inner = value.get("result");
            let is_same = |item: &Value| {
                json_of(item).is_some_and(|said| said == *value || Some(&said) == inner)
            };
            texts.iter().all(is_same).then(|| value.clone())
        }
        (None, [only]) => json_of(only),
        (None, _) => None,
    }
}

/// The whole answer, with the id as the client wrote it.
pub(super) fn with_id(value: &Value, call: &PendingCall) -> Value {
    let mut value = value.clone();
    value["id"] = call.id.clone();
    value
}

/// An error of the protocol, where a list cannot be judged.
pub(super) fn unjudged(call: &PendingCall, reason: &str) -> OneMessage {
    OneMessage::Answer(rpc::error(&call.id, super::BLOCKED, reason, None))
}

/// The texts of a result, one per line.
fn text_of(result: &Value) -> String {
    fn walk(value: &Value, out: &mut String) {
        if out.len() >= MAX_TEXT {
            return;
        }
        match value {
            Value::String(text) => {
                out.push_str(text);
                out.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, out)),
            Value::Object(members) => members.values().for_each(|item| walk(item, out)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut out = String::new();
    if result.is_array() {
        walk(result, &mut out);
    }
    for key in ["content", "contents", "messages", "structuredContent"] {
        walk(result.get(key).unwrap_or(&Value::Null), &mut out);
    }
    let mut end = out.len().min(MAX_TEXT);
    while !out.is_char_boundary(end) {
        end -= 1;
    }
    out.truncate(end);
    out
}
