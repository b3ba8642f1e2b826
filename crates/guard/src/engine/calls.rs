//! Calls of tools on their way to the server: pins, taint, rules.

use std::cell::OnceCell;

use proofhouse_protocol::rpc;
use serde_json::{Value, json};

use super::agents::redacted_message;
use super::answers::refusal;
use super::asks::{HeldAsk, HeldCall};
use super::open_calls::PendingCall;
use super::{GuardProtocol, GuardSession, OneMessage};
use crate::finding::{FindingCode, GuardDecision};
use crate::pins::PinKind;
use crate::policy::{ALLOW_LIST, PolicyRule, ToolLabel};
use crate::share::SharedFact;
use crate::taint::{CallTaint, TaintHit, TaintLabel};

/// What the rules say about a message.
pub(super) struct RuleOutcome {
    pub(super) decision: GuardDecision,
    /// The rule, by its number in the policy.
    pub(super) rule: Option<usize>,
    /// What the model is told.
    pub(super) message: String,
}

/// A tool that must not be called.
enum WithheldTool {
    /// The server offers it in this session, and it is not approved.
    Offered,
    /// Nobody approved it, and in this session nobody offered it.
    Unknown,
}

impl GuardSession {
    /// Judges a call. One that is sent now is returned, to be remembered until its answer comes.
    pub(super) fn judge_call(
        &mut self,
        call: PendingCall,
        value: &Value,
    ) -> Result<(OneMessage, PendingCall), OneMessage> {
        let tool = match self.protocol {
            GuardProtocol::Mcp => call.item().to_owned(),
            GuardProtocol::A2a => call.method.clone(),
        };
        if self.protocol == GuardProtocol::Mcp {
            self.note_unfinished(PinKind::Tool);
            if let Some(refused) = self.judge_lock(&call) {
                self.history.refused();
                return Err(refused);
            }
        }
        if let Some(withheld) = self.is_withheld(&tool) {
            let reason = "the definition of this tool is not approved; run `proofhouse guard approve` to look at it";
            let finding = self.finding(FindingCode::WithheldCall, GuardDecision::Block, reason);
            self.tell(finding.about(&*tool));
            self.history.refused();
            let answer = match withheld {
                WithheldTool::Offered => refusal(&call, reason),
                // What nobody offered is an error of the protocol, as servers say it.
                WithheldTool::Unknown => {
                    let message = format!("Unknown tool: {tool} (not among the approved tools)");
                    rpc::error(&call.id, rpc::INVALID_PARAMS, &message, None)
                }
            };
            return Err(OneMessage::Answer(answer));
        }
        self.note_uncompared(&tool);
        let arguments = call.arguments.clone();
        let taint = self.taint.look(&arguments);
        let policy = std::sync::Arc::clone(&self.setup.policy);
        let label = policy.label(&self.setup.server, &tool);
        let values = |session: &Self| {
            vec![
                ("call", session.call_value(&call, label)),
                ("taint", taint_value(&taint, label)),
                ("history", session.history_value()),
                (ALLOW_LIST, session.allow_list_value()),
            ]
        };
        let path = taint.untrusted.first().map(|hit| hit.path.as_str());
        let outcome = self.decide(false, &values, &arguments, (&tool, path));
        let rule = outcome.rule.and_then(|number| policy.rules.get(number));
        match outcome.decision {
            GuardDecision::Allow | GuardDecision::Log => {
                self.passes(&tool, &arguments, &taint);
                Ok((OneMessage::Pass, call))
            }
            GuardDecision::Redact => match self.redact_call(value, rule, &taint) {
                Some(redacted) => {
                    self.history.passed(&tool);
                    let mut redacted = redacted;
                    redacted["id"] = call.id.clone();
                    Ok((OneMessage::Replace(redacted), call))
                }
                None => {
                    self.history.refused();
                    let reason = "what should be taken out of it could not be";
                    Err(OneMessage::Answer(refusal(&call, reason)))
                }
            },
            GuardDecision::Ask => Err(OneMessage::Hold(Box::new(HeldAsk::Call(HeldCall {
                rule: rule.map(|rule| rule.id.clone()).unwrap_or_default(),
                message: outcome.message,
                arguments,
                taint,
                line: String::new(),
                comes_again: false,
                call,
            })))),
            GuardDecision::Block => {
                self.history.refused();
                Err(OneMessage::Answer(refusal(&call, &outcome.message)))
            }
        }
    }

    /// A call goes to the server.
    pub(super) fn passes(&mut self, tool: &str, arguments: &Value, taint: &CallTaint) {
        self.history.passed(tool);
        if let Some(used) = &mut self.used_values {
            used.add(arguments);
        }
        let values = self.taint.remember_own(arguments, taint);
        self.fact(|| SharedFact::Named { values });
    }

    /// Why a tool must not be called, if so.
    fn is_withheld(&self, tool: &str) -> Option<WithheldTool> {
        if self.protocol == GuardProtocol::A2a {
            return None;
        }
        let pins = &self.setup.policy.pins;
        let withheld = self.withheld.get(&PinKind::Tool);
        // Clients call what they saw in an earlier session, too.
        let is_unapproved = match &self.pinned_tools {
            _ if self.setup.lock.is_none() => false,
            Some(pinned) => {
                pins.on_change != GuardDecision::Log
                    && !pinned.contains(tool)
                    && !self.pin_answers.has_allowed(PinKind::Tool.noun(), tool)
            }
            None => !pins.records_first_use,
        };
        let is_withheld = withheld.is_some_and(|withheld| withheld.contains(tool));
        match (is_withheld, is_unapproved) {
            (true, _) => Some(WithheldTool::Offered),
            (false, true) => Some(WithheldTool::Unknown),
            (false, false) => None,
        }
    }

    /// A tool of the lock is called before the server said in this session what it is. It is told once for each tool; where a
    /// list is under way, only if the list shows a change.
    fn note_uncompared(&mut self, tool: &str) {
        let is_pinned = self.setup.lock.is_some()
            && self.protocol == GuardProtocol::Mcp
            && self
                .pinned_tools
                .as_ref()
                .is_some_and(|pinned| pinned.contains(tool));
        if !is_pinned || self.compared.contains(tool) || !self.called_early.insert(tool.to_owned())
        {
            return;
        }
        if !self.listings.has(PinKind::Tool) && !self.open.lists(PinKind::Tool) {
            let message = "its definition was not compared with the lock in this session";
            let finding = self.finding(FindingCode::UncomparedCall, GuardDecision::Log, message);
            self.tell(finding.about(tool));
        }
    }

    /// The rules, in order: the first that matches decides. `values` is what expressions see, made when one looks; a finding is
    /// about an item, at a path.
    pub(super) fn decide(
        &mut self,
        is_about_results: bool,
        values: &dyn Fn(&Self) -> Vec<(&'static str, Value)>,
        texts: &Value,
        (item, path): (&str, Option<&str>),
    ) -> RuleOutcome {
        let made = OnceCell::new();
        let policy = std::sync::Arc::clone(&self.setup.policy);
        let rules = policy.rules.iter().enumerate();
        let mut logged = RuleOutcome {
            decision: GuardDecision::Allow,
            rule: None,
            message: String::new(),
        };
        for (number, rule) in rules.filter(|(_, rule)| rule.is_about_results == is_about_results) {
            let matched = rule.matches(texts, || made.get_or_init(|| values(self)).as_slice());
            let (code, decision, message) = match matched {
                Ok(false) => continue,
                Ok(true) => (FindingCode::RuleMatched, rule.decision, told(rule)),
                Err(error) => {
                    let decision = if rule.fails_open {
                        GuardDecision::Log
                    } else {
                        GuardDecision::Block
                    };
                    let message = format!("the rule `{}` could not be evaluated", rule.id);
                    let finding =
                        self.finding(FindingCode::RuleFailed, decision, error.to_string());
                    self.tell(finding.about(item).by(&*rule.id));
                    if rule.fails_open {
                        continue;
                    }
                    return RuleOutcome {
                        decision,
                        rule: Some(number),
                        message,
                    };
                }
            };
            let mut finding = self
                .finding(code, decision, &message)
                .about(item)
                .by(&*rule.id);
            finding.path = path.map(str::to_owned);
            self.tell(finding);
            match decision {
                GuardDecision::Log => logged.decision = GuardDecision::Log,
                GuardDecision::Allow
                | GuardDecision::Redact
                | GuardDecision::Ask
                | GuardDecision::Block => {
                    return RuleOutcome {
                        decision,
                        rule: Some(number),
                        message,
                    };
                }
            }
        }
        logged
    }

    /// The call as expressions see it.
    pub(super) fn call_value(&self, call: &PendingCall, label: Option<&ToolLabel>) -> Value {
        let annotations = self.annotations.get(call.item());
        json!({
            "server": self.setup.server,
            "method": call.method,
            "tool": call.labelled(),
            "arguments": Some(&call.arguments).filter(|value| !value.is_null()).unwrap_or(&json!({})),
            "effects": label.map(|label| label.effects.as_slice()).unwrap_or_default(),
            "returns": label.and_then(|label| label.returns).map_or("", TaintLabel::as_str),
            "named_by": self.mentions.of(call.labelled()),
            "annotations": annotations.cloned().unwrap_or_else(|| json!({})),
        })
    }

    /// The call without what a rule wants out of it.
    fn redact_call(
        &self,
        value: &Value,
        rule: Option<&PolicyRule>,
        taint: &CallTaint,
    ) -> Option<Value> {
        match self.protocol {
            GuardProtocol::Mcp => redact_call(value, rule, taint),
            // Values are known by their places in 0.3, and the message may be one of 1.0.
            GuardProtocol::A2a => {
                let rule = rule.filter(|rule| rule.pattern.is_some())?;
                redacted_message(value, |params| rule.redact(params).ok())
            }
        }
    }

    /// What arguments had before, as expressions see it.
    pub(super) fn allow_list_value(&self) -> Value {
        let used = self.used_values.as_ref();
        used.map_or_else(|| json!({}), |used| used.value())
    }

    pub(super) fn history_value(&self) -> Value {
        self.history.value(
            self.taint.has_seen(TaintLabel::Untrusted),
            self.taint.has_seen(TaintLabel::Secret),
        )
    }
}

/// What the model is told.
fn told(rule: &PolicyRule) -> String {
    let message = rule.message.clone();
    message.unwrap_or_else(|| format!("the rule `{}` of the policy matches", rule.id))
}

/// Taint as expressions see it.
pub(super) fn taint_value(taint: &CallTaint, label: Option<&ToolLabel>) -> Value {
    let decides = |path: &str| label.is_none_or(|label| label.is_decided_by(path));
    let hits = |hits: &[TaintHit]| -> Value {
        hits.iter()
            .map(|hit| {
                json!({
                    "path": hit.path,
                    "form": hit.form.as_str(),
                    "origin": hit.origin,
                    "words": hit.words,
                    "decides": decides(&hit.path),
                    "address": hit.is_address,
                })
            })
            .collect()
    };
    let unnamed: Value = taint
        .unnamed
        .iter()
        .map(|path| json!({"path": path, "decides": decides(path)}))
        .collect();
    json!({
        "untrusted": hits(&taint.untrusted),
        "secret": hits(&taint.secret),
        "named": taint.named,
        "unnamed": unnamed,
        "complete": taint.is_complete,
        "unseen_arguments": taint.has_unseen_arguments,
    })
}

/// The call without what the rule's pattern matches, or without the tainted arguments where it has none.
fn redact_call(value: &Value, rule: Option<&PolicyRule>, taint: &CallTaint) -> Option<Value> {
    let rule = rule?;
    let mut value = value.clone();
    let arguments = value.pointer_mut("/params/arguments")?;
    if rule.pattern.is_some() {
        rule.redact(arguments).ok()?;
        return Some(value);
    }
    // Half of a value that is split over arguments would stay.
    let hits = || taint.untrusted.iter().chain(&taint.secret);
    // A key is no text that could be another one: under it stands what the server looks for there.
    let is_stuck = |hit: &TaintHit| hit.is_key || hit.form == crate::taint::TaintForm::Split;
    if hits().any(is_stuck) || hits().count() == 0 {
        return None;
    }
    for hit in hits() {
        replace_at(arguments, &hit.path)?;
    }
    Some(value)
}

/// Takes out the text at a path such as `files[0].path`.
fn replace_at(value: &mut Value, path: &str) -> Option<()> {
    fn walk(value: &mut Value, path: &mut String, wanted: &str) -> bool {
        if path == wanted && matches!(value, Value::String(_) | Value::Number(_)) {
            *value = Value::from(proofhouse_detect::REDACTED);
            return true;
        }
        let length = path.len();
        let mut step = |value: &mut Value, segment: &str| {
            path.push_str(segment);
            let found = walk(value, path, wanted);
            path.truncate(length);
            found
        };
        match value {
            Value::Array(items) => {
                let mut items = items.iter_mut().enumerate();
                items.any(|(index, item)| step(item, &format!("[{index}]")))
            }
            Value::Object(members) => {
                let dot = if length == 0 { "" } else { "." };
                let mut members = members.iter_mut();
                members.any(|(key, item)| step(item, &format!("{dot}{key}")))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    walk(value, &mut String::new(), path).then_some(())
}
