//! Answers of the server on their way back: definitions are compared with the pins, results are followed and judged.

use proofhouse_detect::UNPARSED;
use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::McpMethod;
use proofhouse_protocol::rpc;
use proofhouse_wire::trace::Span;
use serde_json::{Value, json};

use super::answers::refusal;
use super::calls::taint_value;
use super::open_calls::PendingCall;
use super::{GuardSession, OneMessage, shared};
use crate::finding::{FindingCode, GuardDecision};
use crate::pins::PinKind;
use crate::policy::{ALLOW_LIST, fits};
use crate::share::{MAX_TOLD, SharedFact};
use crate::taint::fields::told_apart;
use crate::taint::{CallTaint, TaintLabel, texts_below};

/// How much of a result's text expressions see; of a longer one they cannot say anything.
const MAX_TEXT: usize = 1 << 20;

/// What becomes of an answer that is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPassage {
    /// It passes as it is.
    Pass,
    /// This passes in its place.
    Redacted(String),
    /// It does not pass.
    Withheld(String),
}

/// What becomes of what a server answered.
enum SaidPassage {
    Pass,
    /// This passes in its place.
    Redacted(Value),
    /// It does not pass, and why.
    Withheld(String),
}

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
                self.tasks.note(call, &result);
                self.judge_content(call, result, None, value)
            }
            Some(McpMethod::TasksResult) => {
                let begun = self.tasks.begun_with(call);
                self.judge_content(begun.as_ref().unwrap_or(call), result, None, value)
            }
            Some(McpMethod::TasksGet) => {
                let begun = self.tasks.begun_with(call);
                let begun = begun.as_ref().unwrap_or(call);
                let is_error = result.get("isError") == Some(&Value::Bool(true));
                // A task is no result of a tool, and neither is what stands in its place.
                let judged = self.judge_said(begun, result, None, is_error);
                said_instead(call, judged, value)
            }
            _ => {
                let all = json!([result]);
                self.judge_content(call, result, Some(&all), value)
            }
        }
    }

    /// An error of the protocol; models read it as they read results.
    pub(super) fn judge_error(
        &mut self,
        call: &PendingCall,
        error: Value,
        value: &Value,
    ) -> OneMessage {
        let begun = self.tasks.begun_with(call);
        let call = begun.as_ref().unwrap_or(call);
        let texts = ["message", "data"].iter().filter_map(|key| error.get(key));
        let texts = Value::Array(texts.cloned().collect());
        match self.judge_said(call, error, Some(&texts), true) {
            SaidPassage::Pass => OneMessage::Pass,
            SaidPassage::Redacted(error) => {
                let mut whole = with_id(value, call);
                whole["error"] = error;
                OneMessage::Replace(whole)
            }
            SaidPassage::Withheld(why) => OneMessage::Answer(refusal(call, &why)),
        }
    }

    /// Judges an answer that is no message, such as the page of a proxy, as the result of what was asked in its exchange.
    pub fn judge_text(&mut self, exchange: u64, text: &str) -> TextPassage {
        self.sequence = 0;
        let mut calls = self.open.of_exchange(exchange);
        if calls.is_empty() {
            calls.push(PendingCall::unknown(exchange));
        }
        let mut said = Value::from(text);
        let shown = super::beginning_of(text.as_bytes());
        self.saw(UNPARSED, Some(Direction::Response), shown);
        for call in calls {
            self.span = call.span.clone();
            let judged = self.judge_said(&call, said.clone(), Some(&json!([said])), true);
            self.span = Span::none();
            match judged {
                SaidPassage::Pass => {}
                SaidPassage::Redacted(redacted) => said = redacted,
                SaidPassage::Withheld(why) => return TextPassage::Withheld(why),
            }
        }
        match said {
            Value::String(said) if said != text => TextPassage::Redacted(said),
            _ => TextPassage::Pass,
        }
    }

    /// A result that a model reads; `read` is what it reads of it, where that is not all.
    pub(super) fn judge_content(
        &mut self,
        call: &PendingCall,
        result: Value,
        read: Option<&Value>,
        value: &Value,
    ) -> OneMessage {
        let is_error = result.get("isError") == Some(&Value::Bool(true));
        let judged = self.judge_said(call, result, read, is_error);
        said_instead(call, judged, value)
    }

    /// Follows and judges what a server answered.
    fn judge_said(
        &mut self,
        call: &PendingCall,
        mut said: Value,
        read: Option<&Value>,
        is_error: bool,
    ) -> SaidPassage {
        let item = call.labelled().to_owned();
        self.follow(&call.method, &item, read.unwrap_or(&said));
        let policy = std::sync::Arc::clone(&self.setup.policy);
        if !policy.rules.iter().any(|rule| rule.is_about_results) {
            return SaidPassage::Pass;
        }
        let values = |session: &Self| {
            let label = policy.label(&session.setup.server, &item);
            // What the expression asks for and is not there is an error, which the rule has an answer for.
            let result = match text_of(read.unwrap_or(&said)) {
                Some(text) => json!({"text": text, "is_error": is_error}),
                None => json!({"is_error": is_error}),
            };
            vec![
                ("call", session.call_value(call, label)),
                ("taint", taint_value(&CallTaint::default(), label)),
                ("history", session.history_value()),
                (ALLOW_LIST, session.allow_list_value()),
                ("result", result),
            ]
        };
        let outcome = self.decide(true, &values, &said, (call.item(), None));
        match outcome.decision {
            GuardDecision::Allow | GuardDecision::Log => SaidPassage::Pass,
            GuardDecision::Redact => {
                let rule = outcome.rule.and_then(|number| policy.rules.get(number));
                match rule.map(|rule| rule.redact(&mut said)) {
                    Some(Ok(())) => SaidPassage::Redacted(said),
                    _ => SaidPassage::Withheld(
                        "what should be taken out of the result could not be".to_owned(),
                    ),
                }
            }
            GuardDecision::Ask | GuardDecision::Block => {
                SaidPassage::Withheld(format!("the result was withheld: {}", outcome.message))
            }
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
        // What could be read in another way is followed as a text.
        super::json::read(text.as_bytes()).ok()
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

/// What becomes of the answer to a request whose result was judged.
fn said_instead(call: &PendingCall, judged: SaidPassage, value: &Value) -> OneMessage {
    match judged {
        SaidPassage::Pass => OneMessage::Pass,
        SaidPassage::Redacted(result) => {
            let mut whole = with_id(value, call);
            whole["result"] = result;
            OneMessage::Replace(whole)
        }
        SaidPassage::Withheld(why) => OneMessage::Answer(refusal(call, &why)),
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

/// The texts of a result, one per line, unless they are longer than expressions see.
fn text_of(result: &Value) -> Option<String> {
    fn walk(value: &Value, out: &mut String) {
        if out.len() > MAX_TEXT {
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
    // A task tells what it came to as a result within its own.
    let inner = result.get("result").filter(|inner| inner.is_object());
    for result in [Some(result), inner].into_iter().flatten() {
        for key in ["content", "contents", "messages", "structuredContent"] {
            walk(result.get(key).unwrap_or(&Value::Null), &mut out);
        }
    }
    (out.len() <= MAX_TEXT).then_some(out)
}
