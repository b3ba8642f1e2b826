//! Agents: messages of A2A in both generations, judged as calls of tools are. Policies, traces and indicators see them as 0.3 has them.
//!
//! What people and models wrote is followed and judged; ids, kinds and states of the protocol are not.

use proofhouse_detect::UNPARSED;
use proofhouse_oatf::Direction;
use proofhouse_protocol::a2a::{
    self, A2aMethod, A2aShape, A2aVersion, translate_params, translate_result,
};
use proofhouse_protocol::rpc;
use proofhouse_source::printable_line;
use serde_json::{Map, Value};

use super::answers::refusal;
use super::open_calls::PendingCall;
use super::pin_asks::{AskedDefinition, ExaminedDefinition};
use super::results::{unjudged, with_id};
use super::{CardRewriteError, GuardAction, GuardSession, OneMessage, listings, spans};
use crate::finding::{FindingCode, GuardDecision};
use crate::pins::{
    CardKind, Lock, LockFile, LockFileError, canonical_card, changes_of_card, hidden_text,
};
use crate::share::SharedFact;
use crate::taint::{TaintLabel, texts_below};

/// How much of a stream is read together with what comes next: a value may be cut in two.
const TAIL: usize = 2048;

impl GuardSession {
    pub(super) fn agent_request(
        &mut self,
        id: Value,
        method: &str,
        params: Value,
        value: &Value,
    ) -> OneMessage {
        let known = A2aMethod::parse(method).map(|(method, _)| method);
        let event = A2aMethod::event_of(method).to_owned();
        self.span = spans::of_request(&self.setup.server, &event, &params);
        let params = match known {
            Some(known) => translate_params(known, &params, A2aVersion::V0_3),
            None => params,
        };
        let arguments = known.map_or(Value::Null, |known| arguments_of(known, &params));
        let enforced = self.saw_of_client(&event, Direction::Request, params.clone());
        let call = PendingCall {
            exchange: self.exchange,
            id,
            method: event,
            params,
            arguments,
            tail: String::new(),
            is_modern: false,
            span: self.span.clone(),
        };
        if let Err(reason) = self.open.check(self.exchange, &call.id) {
            self.tell(self.finding(FindingCode::Malformed, GuardDecision::Block, reason));
            return OneMessage::Answer(rpc::error(&call.id, rpc::INVALID_REQUEST, reason, None));
        }
        if let Some(indicator) = enforced {
            let message = format!("the indicator {indicator} matches this message");
            return OneMessage::Answer(refusal(&call, &message));
        }
        if !self.withheld_cards.is_empty() && known != Some(A2aMethod::GetExtendedCard) {
            let reason = "the card of this agent is not approved; run `proofhouse guard approve` to look at it";
            let finding = self.finding(FindingCode::WithheldCall, GuardDecision::Block, reason);
            self.tell(finding.about(call.method.as_str()));
            self.history.refused();
            return OneMessage::Answer(refusal(&call, reason));
        }
        if call.arguments.is_null() {
            self.open.add(call);
            return OneMessage::Pass;
        }
        match self.judge_call(call, value) {
            Ok((one, call)) => {
                self.open.add(call);
                one
            }
            Err(one) => one,
        }
    }

    pub(super) fn agent_response(
        &mut self,
        id: &Value,
        outcome: Result<Value, Value>,
        value: &Value,
    ) -> OneMessage {
        // A stream has many answers to one request.
        let is_streamed = |call: &PendingCall| {
            A2aMethod::parse(&call.method).is_some_and(|(method, _)| method.is_streamed())
        };
        let call = match self.open.peek(self.exchange, id) {
            Some(call) if is_streamed(call) => Some(call.clone()),
            _ => self.open.take(self.exchange, id),
        };
        let Some(mut call) = call else {
            return self.unasked_response(id, outcome, value);
        };
        self.span = call.span.clone();
        let method = A2aMethod::parse(&call.method).map(|(method, _)| method);
        let result = match outcome {
            Ok(result) => result,
            Err(error) => {
                self.saw(&call.method, Some(Direction::Response), error.clone());
                return self.judge_error(&call, error, value);
            }
        };
        let content = match method {
            Some(method) => translate_result(method, &result, A2aVersion::V0_3),
            None => result.clone(),
        };
        self.saw(&call.method, Some(Direction::Response), content.clone());
        let event = A2aShape::recognise(&content).and_then(|(shape, _)| match shape {
            A2aShape::StatusUpdate => Some(a2a::STATUS_EVENT),
            A2aShape::ArtifactUpdate => Some(a2a::ARTIFACT_EVENT),
            A2aShape::Task | A2aShape::Message => None,
        });
        if let Some(event) = event {
            self.saw(event, Some(Direction::Response), content.clone());
        }
        if method == Some(A2aMethod::GetExtendedCard) {
            return self.judge_extended_card(&call, result, value);
        }
        let mut texts = contents_of(&content);
        if is_streamed(&call) {
            let joined = texts.iter().filter_map(Value::as_str);
            let joined = joined.fold(std::mem::take(&mut call.tail), |all, text| all + text);
            let mut from = joined.len().saturating_sub(TAIL);
            while !joined.is_char_boundary(from) {
                from += 1;
            }
            self.open.keep_tail(self.exchange, id, &joined[from..]);
            texts.push(Value::from(joined));
        }
        self.judge_content(&call, result, Some(&Value::Array(texts)), value)
    }

    /// An answer that nobody waits for.
    pub(super) fn unasked_response(
        &mut self,
        id: &Value,
        outcome: Result<Value, Value>,
        value: &Value,
    ) -> OneMessage {
        // Answers to what could not be read have no id.
        if id.is_null()
            && let Err(error) = outcome
        {
            self.saw(UNPARSED, Some(Direction::Response), error.clone());
            let call = PendingCall::unknown(self.exchange);
            return self.judge_error(&call, error, value);
        }
        let message = "the server answered what the client did not ask";
        self.tell(self.finding(FindingCode::Unasked, GuardDecision::Block, message));
        OneMessage::Drop
    }

    /// The card for those who are known: as the one that everybody gets, in an answer.
    fn judge_extended_card(
        &mut self,
        call: &PendingCall,
        card: Value,
        value: &Value,
    ) -> OneMessage {
        match self.questions_of_card(CardKind::Extended, &card) {
            Ok(asked) if asked.is_empty() => {}
            Ok(asked) => return self.hold_definitions(call, asked, value),
            Err(error) => return unjudged(call, &printable_line(&error.to_string())),
        }
        match self.judge_card(CardKind::Extended, &card) {
            Ok(None) => {}
            Ok(Some(reason)) => return OneMessage::Answer(refusal(call, &reason)),
            Err(error) => return unjudged(call, &printable_line(&error.to_string())),
        }
        let Some(rewrite) = &self.card_rewriter else {
            return OneMessage::Pass;
        };
        match rewrite(card) {
            Ok(card) => {
                let mut answer = with_id(value, call);
                answer["result"] = card;
                OneMessage::Replace(answer)
            }
            Err(CardRewriteError(problem)) => {
                self.refused(&problem);
                OneMessage::Answer(refusal(call, &problem))
            }
        }
    }

    /// Asks about a card that nobody approved, if the policy says so; whoever asks judges it with the answer.
    pub(crate) fn ask_about_public_card(&mut self, card: &Value) -> Vec<GuardAction> {
        match self.questions_of_card(CardKind::Public, card) {
            Ok(asked) if !asked.is_empty() => self.ask_about_card(asked),
            // A lock that cannot be used is told by who judges the card.
            _ => Vec::new(),
        }
    }

    fn questions_of_card(
        &mut self,
        kind: CardKind,
        card: &Value,
    ) -> Result<Vec<AskedDefinition>, LockFileError> {
        if !self.setup.policy.pins.asks() {
            return Ok(Vec::new());
        }
        let file = self.setup.lock.clone();
        let lock = file.as_ref().map(LockFile::read).transpose()?;
        let definition = [(String::new(), canonical_card(card))];
        let examined = self.examine_card(lock.as_ref(), kind, card, &definition[0].1);
        Ok(self.questions(kind.noun(), &examined, &definition))
    }

    /// Judges a card of an agent, as the agent wrote it. Returns why it does not pass, if so.
    ///
    /// # Errors
    ///
    /// Returns an error when the lock cannot be used.
    pub fn judge_card(
        &mut self,
        kind: CardKind,
        card: &Value,
    ) -> Result<Option<String>, LockFileError> {
        if kind == CardKind::Public {
            self.has_card = true;
            self.saw(a2a::CARD_EVENT, Some(Direction::Response), card.clone());
        }
        let file = self.setup.lock.clone();
        let decision = self.compare_card(file.as_ref(), kind, card)?;
        let is_withheld = decision == GuardDecision::Block;
        if is_withheld {
            self.withheld_cards.insert(kind);
        } else {
            self.withheld_cards.remove(&kind);
        }
        Ok(is_withheld.then(|| {
            format!(
                "the {} of this agent is not approved; run `proofhouse guard approve` to look at it",
                kind.noun()
            )
        }))
    }

    /// Whether no card of the agent was compared yet, or looked for in vain.
    pub(crate) fn takes_card(&self) -> bool {
        !self.has_card
    }

    /// The card that the guard asked for itself.
    pub(crate) fn first_card(&mut self, card: &Value) {
        if let Err(error) = self.judge_card(CardKind::Public, card) {
            let message = printable_line(&error.to_string());
            self.tell(self.finding(FindingCode::PinFailed, GuardDecision::Block, message));
            self.withheld_cards.insert(CardKind::Public);
        }
    }

    /// The agent has no card where clients look for it.
    pub(crate) fn no_card(&mut self) {
        self.has_card = true;
        let message =
            "the card of this agent was not compared with the lock, because none was found";
        self.tell(self.finding(FindingCode::UncomparedCall, GuardDecision::Log, message));
    }

    fn compare_card(
        &mut self,
        file: Option<&LockFile>,
        kind: CardKind,
        card: &Value,
    ) -> Result<GuardDecision, LockFileError> {
        let (server, now) = (self.setup.server.clone(), canonical_card(card));
        let lock = file.map(LockFile::read).transpose()?;
        let pinned = lock.as_ref().and_then(|lock| lock.servers.get(&server));
        if pinned.and_then(|pins| pins.cards.get(&kind)) == Some(&now) {
            return Ok(GuardDecision::Allow);
        }
        self.note_card(card);
        let examined = self.examine_card(lock.as_ref(), kind, card, &now);
        let (mut decision, offers) = (GuardDecision::Allow, !examined.is_empty());
        for mut one in examined {
            let form = std::iter::once(("", &now));
            let answers = &self.pin_answers;
            one.finding.decision = answers.resolve(one.finding.decision, kind.noun(), form);
            decision = decision.max(one.finding.decision);
            self.tell(one.finding);
        }
        let Some(file) = file else {
            return Ok(decision);
        };
        let origin = self.setup.origin.clone();
        let set = |lock: &mut Lock| {
            let pins = lock.servers.entry(server).or_default();
            pins.origin = pins.origin.take().or(origin);
            pins.cards.insert(kind, now);
        };
        if offers {
            file.pending().update(set)?;
        } else {
            file.update(set)?;
            let message = format!("recorded the {} in {}", kind.noun(), file.path().display());
            self.tell(self.finding(FindingCode::PinRecorded, GuardDecision::Log, message));
        }
        Ok(decision)
    }

    /// What is found about a card; nothing about one that is approved.
    fn examine_card(
        &self,
        lock: Option<&Lock>,
        kind: CardKind,
        card: &Value,
        now: &Value,
    ) -> Vec<ExaminedDefinition> {
        let policy = &self.setup.policy.pins;
        let pinned = lock.and_then(|lock| lock.servers.get(&self.setup.server));
        let pinned = pinned.and_then(|pins| pins.cards.get(&kind));
        let mut examined = Vec::new();
        if pinned == Some(now) {
            return examined;
        }
        let decision = match pinned {
            Some(_) => Some(policy.on_change),
            None => (lock.is_some() && !policy.records_first_use).then_some(GuardDecision::Block),
        };
        if let Some(decision) = decision
            && let Some(change) = changes_of_card(kind, pinned, Some(now))
        {
            examined.push(ExaminedDefinition {
                finding: self.pin_finding(&change, decision),
                change: Some(change),
                on_page: vec![0],
            });
        }
        if let Some((path, c)) = hidden_text(card) {
            let message = format!(
                "the {} has the hidden character U+{:04X}",
                kind.noun(),
                u32::from(c)
            );
            let finding = self.finding(FindingCode::HiddenText, policy.on_hidden, message);
            examined.push(ExaminedDefinition {
                finding: finding.at(path),
                change: None,
                on_page: vec![0],
            });
        }
        examined
    }

    /// What a card says that nobody approved may come from anybody.
    fn note_card(&mut self, card: &Value) {
        let texts = Value::Array(super::mentions::texts_of_definition(card));
        let origin = format!("{}/{} the card", self.setup.server, listings::DEFINITION);
        self.mentions.read(&origin, &texts, None);
        self.taint.remember(TaintLabel::Untrusted, &origin, &texts);
        self.fact(|| SharedFact::Texts {
            label: TaintLabel::Untrusted,
            origin,
            texts: texts_below(&texts),
        });
    }
}

/// What a request carries to the agent, of parameters as 0.3 has them; nothing where it has only ids.
fn arguments_of(method: A2aMethod, params: &Value) -> Value {
    let mut arguments = Map::new();
    match method {
        A2aMethod::SendMessage | A2aMethod::StreamMessage => {
            let message = params.get("message").unwrap_or(&Value::Null);
            let parts = message.get("parts").and_then(Value::as_array);
            let parts = parts.into_iter().flatten().map(part_of).collect();
            arguments.insert("parts".to_owned(), parts);
            for (holder, key) in [(message, "metadata"), (params, "metadata")] {
                if let Some(value) = holder.get(key) {
                    arguments.entry(key).or_insert_with(|| value.clone());
                }
            }
            if let Some(push) = params.pointer("/configuration/pushNotificationConfig") {
                arguments.insert("pushNotificationConfig".to_owned(), push.clone());
            }
        }
        A2aMethod::SetPushConfig => {
            let push = params.get("pushNotificationConfig").unwrap_or(params);
            arguments.insert("pushNotificationConfig".to_owned(), push.clone());
        }
        A2aMethod::GetTask
        | A2aMethod::CancelTask
        | A2aMethod::ResubscribeTask
        | A2aMethod::ListTasks
        | A2aMethod::GetPushConfig
        | A2aMethod::ListPushConfigs
        | A2aMethod::DeletePushConfig
        | A2aMethod::GetExtendedCard => return Value::Null,
    }
    Value::Object(arguments)
}

/// What a part says: its text or its data alone, or else all that it has but its kind and the type of its file.
fn part_of(part: &Value) -> Value {
    let Value::Object(members) = part else {
        return part.clone();
    };
    let mut said: Map<String, Value> = members.clone();
    said.shift_remove("kind");
    if let Some(Value::Object(file)) = said.get_mut("file") {
        file.shift_remove("mimeType");
    }
    let mut values = said.values();
    match (values.next(), values.next()) {
        (Some(only), None) => only.clone(),
        _ => Value::Object(said),
    }
}

/// What people and models wrote in a result, as 0.3 has it.
fn contents_of(result: &Value) -> Vec<Value> {
    fn walk(value: &Value, found: &mut Vec<Value>, depth: usize) {
        if depth == 0 {
            return;
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, found, depth - 1)),
            Value::Object(members) => {
                for (key, item) in members {
                    match key.as_str() {
                        "parts" => {
                            let parts = item.as_array().into_iter().flatten();
                            found.extend(parts.map(part_of));
                        }
                        "metadata" | "name" | "description" => found.push(item.clone()),
                        _ => walk(item, found, depth - 1),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    walk(result, &mut found, 32);
    found
}

/// A call without what a rule's pattern matches, in the generation that it is written in.
pub(super) fn redacted_message(
    value: &Value,
    redact: impl Fn(&mut Value) -> Option<()>,
) -> Option<Value> {
    let mut value = value.clone();
    redact(value.pointer_mut("/params")?)?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_followed_and_ids_are_not() {
        let params = json!({
            "message": {
                "kind": "message", "messageId": "m-12345", "contextId": "c-12345", "role": "user",
                "parts": [
                    {"kind": "text", "text": "hello"},
                    {"kind": "data", "data": {"to": "eve"}},
                    {"kind": "text", "text": "hello", "data": {"to": "mallory"}, "metadata": {"note": "x"}},
                    {"kind": "file", "file": {"name": "a.txt", "uri": "http://f.example/", "mimeType": "text/plain"}},
                ],
            },
            "configuration": {"pushNotificationConfig": {"url": "http://hook.example/"}, "blocking": true},
        });
        assert_eq!(
            arguments_of(A2aMethod::SendMessage, &params),
            json!({
                "parts": ["hello", {"to": "eve"}, {"text": "hello", "data": {"to": "mallory"}, "metadata": {"note": "x"}}, {"name": "a.txt", "uri": "http://f.example/"}],
                "pushNotificationConfig": {"url": "http://hook.example/"},
            })
        );
        assert_eq!(
            arguments_of(A2aMethod::GetTask, &json!({"id": "t"})),
            Value::Null
        );
        let task = json!({
            "kind": "task", "id": "t-12345", "contextId": "c-12345",
            "status": {"state": "completed", "message": {"role": "agent", "parts": [{"kind": "text", "text": "done"}]}},
            "artifacts": [{"artifactId": "a-12345", "name": "report", "parts": [{"kind": "text", "text": "words"}]}],
        });
        let mut found = contents_of(&task);
        found.sort_by_key(ToString::to_string);
        assert_eq!(found, [json!("done"), json!("report"), json!("words")]);
    }
}
