//! What a driver tells of its actor besides messages: what reached the subject, and what could not be taken in.

use std::borrow::Cow;
use std::collections::BTreeSet;

use proofhouse_detect::{TraceMessage, UNPARSED, text_is_enough};
use proofhouse_oatf::{
    Direction, MatchBudget, Mode, Protocol, ResponseEntry, interpolate_value,
    select_response_within,
};
use proofhouse_protocol::a2a::values::state_of;
use proofhouse_protocol::a2a::{A2aMethod, A2aTaskState};
use proofhouse_protocol::base64;
use proofhouse_wire::server::{BrokenConnection, Request};
use serde_json::{Value, json};

use crate::actor::ActorContext;
use crate::branches::{self, of_message};
use crate::exposure::{CarrierKind, CountedDelivery, is_armed};
use crate::facts::{SeenCall, UnseenKind, UnseenMessage};
use crate::payload_field::PayloadField;
use crate::phases::PhaseView;
use crate::weight::{Weight, weigh};

/// How much is told of what the subject sent.
const MAX_EXCERPT_CHARS: usize = 200;
const MAX_NAME_CHARS: usize = 200;
/// How much is kept of something that is no message.
const MAX_UNPARSED_BYTES: usize = 1 << 20;

impl ActorContext {
    /// Something that carries a part of the attack, as the phase that holds now has it, reached the
    /// subject.
    pub fn delivered(&self, kind: CarrierKind, name: &str) {
        self.delivered_in(&self.phase(), kind, name);
    }

    /// The same, as `phase` has it: an answer belongs to the phase that was asked. All that the state may show through
    /// this carrier counts as shown; where only one branch of it was, use `delivered_branch`.
    pub fn delivered_in(&self, phase: &PhaseView, kind: CarrierKind, name: &str) {
        let _ = self.counted_in(phase, kind, name, None);
    }

    /// The same, for those who learn later whether it was read. `message` is the number of the message that carried it,
    /// where that is known; otherwise it is taken for the last one that was recorded, which may be one of somebody else.
    pub(crate) fn counted_in(
        &self,
        phase: &PhaseView,
        kind: CarrierKind,
        name: &str,
        message: Option<u64>,
    ) -> CountedDelivery {
        let branches = branches::branches(&phase.state, kind, name);
        let fields = match &branches[..] {
            [] => self.payload(phase, kind, name, &of_message(name, None)),
            branches => branches
                .iter()
                .flat_map(|branch| self.payload(phase, kind, name, branch))
                .collect(),
        };
        self.count_delivery(kind, name, fields, message)
    }

    /// One branch of what a carrier may show reached the subject: the entry of a dispatch list that was chosen, or
    /// a message of our own accord. `null` when nothing of the document was shown.
    pub(crate) fn delivered_branch(
        &self,
        phase: &PhaseView,
        kind: CarrierKind,
        name: &str,
        branch: &Value,
    ) -> CountedDelivery {
        self.counted_branch(phase, kind, name, branch, None)
    }

    /// The same, with the number of the message, as in `counted_in`.
    pub(crate) fn counted_branch(
        &self,
        phase: &PhaseView,
        kind: CarrierKind,
        name: &str,
        branch: &Value,
        message: Option<u64>,
    ) -> CountedDelivery {
        let fields = self.payload(phase, kind, name, branch);
        self.count_delivery(kind, name, fields, message)
    }

    /// What was counted was never read: the connection broke before its bytes were taken.
    pub(crate) fn never_read(&self, lost: &[CountedDelivery]) {
        let shared = &self.inner.shared;
        for lost in lost {
            shared.ledger.lost(&self.inner.name, lost);
            if lost.armed {
                shared.facts.armed_delivery_lost(lost.kind);
            }
        }
        if lost.iter().any(|lost| lost.armed) {
            self.warn("an answer with the payload was sent, and the connection was closed before it was read");
        }
    }

    /// What a peer over A2A tells of a task. Only the task of a message may fail a run: one that a document cancels is
    /// cancelled. A task that went on and `is_latest` no more does not make good what has failed since.
    pub(crate) fn heard_task(
        &self,
        operation: &str,
        direction: Direction,
        content: &Value,
        is_latest: bool,
    ) {
        if *self.mode() != Mode::A2aClient || direction != Direction::Response {
            return;
        }
        let Some(state) = state_of(content) else {
            return;
        };
        let task = content.get("taskId").or_else(|| content.get("id"));
        let task = task.and_then(Value::as_str).unwrap_or_default();
        let facts = &self.inner.shared.facts;
        let of_message = matches!(
            A2aMethod::parse(operation),
            Some((A2aMethod::SendMessage | A2aMethod::StreamMessage, _))
        );
        let state = A2aTaskState::parse(state);
        let runs = matches!(state, Some(A2aTaskState::Submitted | A2aTaskState::Working));
        facts.task_runs(self.name(), operation, task, runs);
        if of_message && !runs {
            let failed = match weigh(self.mode(), operation, direction, content) {
                Weight::Error(why) => Some(why),
                _ => None,
            };
            if is_latest || failed.is_some() {
                facts.run_ended(self.name(), failed);
            }
        }
    }

    /// Some tasks of the peer that go on (A2A), each with the operation that told of it first.
    pub(crate) fn running_tasks(&self, at_most: usize) -> Vec<(String, String)> {
        let facts = &self.inner.shared.facts;
        facts.running_tasks(self.name(), at_most)
    }

    /// In which fields a branch carries the attack, if it does.
    fn payload(
        &self,
        phase: &PhaseView,
        kind: CarrierKind,
        name: &str,
        branch: &Value,
    ) -> BTreeSet<PayloadField> {
        let disguise = self.inner.phases.with(|phases| phases.disguise().cloned());
        if !is_armed(disguise.as_ref(), phase, kind, name, branch) {
            return BTreeSet::new();
        }
        match &self.inner.shared.twin_baseline {
            Some(baseline) => {
                let resolve = |value: &Value| self.resolved_quietly(value);
                baseline.payload(&self.inner.name, kind, name, branch, resolve)
            }
            None if self.carries_attack() => BTreeSet::from([PayloadField::Text]),
            None => BTreeSet::new(),
        }
    }

    fn count_delivery(
        &self,
        kind: CarrierKind,
        name: &str,
        fields: BTreeSet<PayloadField>,
        message: Option<u64>,
    ) -> CountedDelivery {
        let shared = &self.inner.shared;
        let armed = !fields.is_empty();
        shared
            .ledger
            .delivered(&self.inner.name, kind, name, fields);
        if armed {
            let message = message.unwrap_or_else(|| shared.recorder.messages());
            shared.facts.armed_delivery(kind, message);
        }
        CountedDelivery {
            kind,
            name: name.to_owned(),
            armed,
        }
    }

    fn resolved_quietly(&self, value: &Value) -> Value {
        let extractors = self.inner.shared.extractors.seen_by(&self.inner.name);
        interpolate_value(value, &extractors, None, None).0
    }

    /// A tool call came, and there is such a tool and its schema allows the arguments, or not.
    pub fn called(&self, tool: &str, valid: bool) {
        self.inner.shared.facts.called(SeenCall {
            actor: self.inner.name.clone(),
            tool: tool.chars().take(MAX_NAME_CHARS).collect(),
            valid,
        });
    }

    /// The peer, which spoke the protocol before, did not take an input: that run failed.
    pub fn run_refused(&self, why: &str) {
        let why = why.chars().take(MAX_EXCERPT_CHARS).collect();
        let facts = &self.inner.shared.facts;
        facts.run_refused(&self.inner.name, why);
    }

    /// A run that the peer was asked for ended: with an error that it told, or well.
    pub fn run_ended(&self, failed: Option<&str>) {
        let failed = failed.map(|why| why.chars().take(MAX_EXCERPT_CHARS).collect());
        let facts = &self.inner.shared.facts;
        facts.run_ended(&self.inner.name, failed);
    }

    /// The peer answered, and not in the protocol.
    pub fn spoke_otherwise(&self, why: &str) {
        let why = why.chars().take(MAX_EXCERPT_CHARS).collect();
        let facts = &self.inner.shared.facts;
        facts.spoke_otherwise(&self.inner.name, why);
    }

    /// The peer answered what was asked of it with an error that is no message of the protocol.
    pub fn answered_with_error(&self, error: &str) {
        let error = error.chars().take(MAX_EXCERPT_CHARS).collect();
        let facts = &self.inner.shared.facts;
        facts.answered_with_error(&self.inner.name, error);
    }

    /// Something came from the subject that cannot be taken in as a message, `length` bytes of which these are as many
    /// as are there. It becomes an entry of the trace, is judged as text by the indicators that can, and is told at the
    /// end.
    pub fn unparsed(&self, kind: UnseenKind, direction: Direction, bytes: &[u8], length: u64) {
        let kept = &bytes[..bytes.len().min(MAX_UNPARSED_BYTES)];
        let text = String::from_utf8_lossy(kept);
        let is_whole = kept.len() as u64 == length && !kind.is_missing(bytes);
        let is_text = matches!(text, Cow::Borrowed(_));
        let mut raw = json!({"problem": kind.as_str(), "bytes": length});
        // A secret would be in there unrecognised.
        if !is_text && !self.inner.shared.recorder.has_secrets() {
            raw["base64"] = base64::encode(kept).into();
        }
        let content = Value::String(text.into_owned());
        self.overheard_weighing(UNPARSED, direction, &content, Some(raw), Weight::Own);
        let shared = &self.inner.shared;
        let message = TraceMessage {
            actor: Some(self.inner.name.clone()),
            direction: Some(direction),
            ..TraceMessage::new(self.inner.protocol.clone(), UNPARSED, Value::Null)
        };
        let indicators = shared.document.attack.indicators();
        let judged_as_text = is_whole && is_text && text_is_enough(indicators, &message);
        // Secrets go first: one that is cut in two is not found any more.
        let text = content.as_str().unwrap_or_default();
        let start = text.char_indices().nth(10 * MAX_EXCERPT_CHARS);
        let excerpt = match start {
            Some((end, _)) => shared
                .recorder
                .redact(&format!("{}…", &text[..end]))
                .into_owned(),
            None => shared.recorder.redact(text).into_owned(),
        };
        let excerpt: String = excerpt.chars().take(MAX_EXCERPT_CHARS).collect();
        self.spoke_otherwise(&format!("{}: {excerpt}", kind.as_str()));
        shared.facts.unseen(UnseenMessage {
            actor: self.inner.name.clone(),
            kind,
            bytes: length,
            excerpt,
            judged_as_text,
        });
    }

    /// A request that the actor refused before it was read as a message: what it brought is not lost.
    pub fn refused_request(&self, request: &Request) {
        match &request.body {
            Ok(body) if body.is_empty() => {}
            Ok(body) => {
                let length = body.len() as u64;
                self.unparsed(UnseenKind::NotAMessage, Direction::Request, body, length);
            }
            Err(problem) => {
                let kind = UnseenKind::of_body(problem);
                self.unparsed(kind, Direction::Request, b"", 0);
            }
        }
    }

    /// A connection to the actor broke. Where a request was lost with it, nobody knows what it brought.
    pub fn connection_broke(&self, broken: &BrokenConnection) {
        if let Some(kind) = UnseenKind::of_loss(broken.loss) {
            self.unparsed(kind, Direction::Request, b"", 0);
        }
    }

    /// A message could not be compared with a trigger or an extractor: nobody knows whether it would have ended its
    /// phase, or what it would have given. The run proves nothing then.
    pub(crate) fn not_compared(&self, operation: &str, content: &Value, reason: &str) {
        self.warn(&format!("`{operation}` could not be compared: {reason}"));
        let shared = &self.inner.shared;
        let bytes = content.to_string().len() as u64;
        let excerpt = format!("{operation}: {reason}");
        shared.facts.unseen(UnseenMessage {
            actor: self.inner.name.clone(),
            kind: UnseenKind::NotCompared,
            bytes,
            excerpt: shared.recorder.redact(&excerpt).into_owned(),
            judged_as_text: false,
        });
    }

    /// A message that came in pieces is longer than what is held of one: what stands at both ends of it was never judged
    /// together.
    pub(crate) fn judged_in_parts(&self, what: &str) {
        // What an agent of ours streams is no message of the subject.
        let is_ours = self.inner.mode.is_server() && self.inner.protocol == Protocol::A2a;
        if !is_ours {
            self.inner.shared.facts.unseen(UnseenMessage {
                actor: self.inner.name.clone(),
                kind: UnseenKind::InParts,
                bytes: 0,
                excerpt: what.to_owned(),
                judged_as_text: false,
            });
        }
    }

    /// The entry of a dispatch list that answers a message. Where a condition cannot be evaluated in time, none does, and
    /// the run proves nothing: another branch might have been the answer.
    pub(crate) fn select<'e>(
        &self,
        operation: &str,
        entries: &'e [ResponseEntry],
        request: &Value,
    ) -> Option<&'e ResponseEntry> {
        match select_response_within(entries, request, &mut MatchBudget::default()) {
            Ok(entry) => entry,
            Err(error) => {
                let reason = format!("the `when` of a response: {error}");
                self.not_compared(operation, request, &reason);
                None
            }
        }
    }

    /// A frontend says what a user would say, and carries an attack only where nobody else does.
    fn carries_attack(&self) -> bool {
        let actors = self.inner.shared.document.attack.execution.actors();
        let is_frontend = |mode: &Mode| mode.is_client() && mode.protocol() == Protocol::AgUi;
        !is_frontend(&self.inner.mode) || actors.iter().all(|actor| is_frontend(&actor.mode))
    }

    /// Something that carries a part of the attack may be delivered; when it never is, the report
    /// says so.
    pub fn planned(&self, kind: CarrierKind, name: &str) {
        self.inner.shared.ledger.plan(&self.inner.name, kind, name);
    }
}
