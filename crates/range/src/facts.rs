//! Facts of a run that a verdict rests on: what could not be seen, who spoke the protocol, which calls came, and
//! whether the subject did anything once the attack had reached it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::Instant;

use proofhouse_oatf::Mode;
use proofhouse_wire::client::ClientError;
use proofhouse_wire::server::{BodyProblem, ConnectionLoss};
use proofhouse_wire::sync::lock;
use serde::Serialize;

use crate::exposure::CarrierKind;
use crate::weight::Weight;

/// Something of the subject that could not be taken in as a message. Each is an entry of the trace too, with the
/// operation [`UNPARSED`](proofhouse_detect::UNPARSED).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnseenMessage {
    /// The actor that it came to.
    pub actor: String,
    /// What was wrong with it.
    pub kind: UnseenKind,
    /// How long it was.
    pub bytes: u64,
    /// How it begins, without secrets: at most 200 characters.
    pub excerpt: String,
    /// Whether every indicator that could match could be judged on its text all the same, so that nothing is lost.
    pub judged_as_text: bool,
}

/// Why something could not be taken in as a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnseenKind {
    /// It is not JSON, nor can it be mended.
    NotJson,
    /// It is not text.
    NotUtf8,
    /// It is longer than a message may be.
    TooLong,
    /// It is JSON, and no message of the protocol.
    NotAMessage,
    /// It is nested deeper than a message may be.
    TooDeep,
    /// It breaks off, or the connection broke while it came.
    CutOff,
    /// More came than is taken in at a time.
    TooMany,
    /// It is a message, and a trigger or an extractor could not be tried on it in time.
    NotCompared,
    /// It came in pieces that are together more than is held, and was judged in parts.
    InParts,
}

impl UnseenKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::NotJson,
        Self::NotUtf8,
        Self::TooLong,
        Self::NotAMessage,
        Self::TooDeep,
        Self::CutOff,
        Self::TooMany,
        Self::NotCompared,
        Self::InParts,
    ];

    /// Why a text is not JSON.
    pub(crate) fn of_text(bytes: &[u8]) -> Self {
        if std::str::from_utf8(bytes).is_err() {
            Self::NotUtf8
        } else {
            Self::NotJson
        }
    }

    /// Why the body of a request could not be read.
    pub(crate) fn of_body(problem: &BodyProblem) -> Self {
        match problem {
            BodyProblem::TooLarge { .. } => Self::TooLong,
            // Nobody has read on.
            BodyProblem::TooSlow | BodyProblem::Broken(_) | BodyProblem::NoRoom => Self::CutOff,
        }
    }

    /// Why a request is not there whose connection broke; `None` where no request was lost.
    pub(crate) fn of_loss(loss: ConnectionLoss) -> Option<Self> {
        match loss {
            ConnectionLoss::TooLong => Some(Self::TooLong),
            ConnectionLoss::CutOff => Some(Self::CutOff),
            ConnectionLoss::Reply | ConnectionLoss::Nothing => None,
        }
    }

    /// Why an answer could not be read; `None` when there was none.
    pub(crate) fn of_answer(error: &ClientError) -> Option<Self> {
        match error {
            ClientError::TooLarge { .. } | ClientError::EventTooLarge(_) => Some(Self::TooLong),
            ClientError::TooManyEvents { .. } => Some(Self::TooMany),
            ClientError::Broken(_) | ClientError::TooSlow => Some(Self::CutOff),
            ClientError::Setup(_)
            | ClientError::Url { .. }
            | ClientError::Connect { .. }
            | ClientError::Denied(_) => None,
        }
    }

    /// Whether something came of which nothing is there.
    pub(crate) fn is_missing(self, bytes: &[u8]) -> bool {
        bytes.is_empty() && matches!(self, Self::TooLong | Self::CutOff)
    }

    /// Its name in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotJson => "not_json",
            Self::NotUtf8 => "not_utf8",
            Self::TooLong => "too_long",
            Self::NotAMessage => "not_a_message",
            Self::TooDeep => "too_deep",
            Self::CutOff => "cut_off",
            Self::TooMany => "too_many",
            Self::NotCompared => "not_compared",
            Self::InParts => "in_parts",
        }
    }
}

/// What the peer of an actor spoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorSpeech {
    /// The actor.
    pub actor: String,
    /// Its mode.
    pub mode: Mode,
    /// How many messages of the protocol came from the peer.
    pub messages: u64,
    /// Whether the peer spoke the protocol.
    pub protocol: SpokenProtocol,
    /// What it said went wrong, if the last run that it was asked for ended with an error (AG-UI), or the last task of a
    /// message (A2A).
    pub failed: Option<String>,
    /// Tasks that still ran when it was last heard of them (A2A): nobody knows what it would have done.
    pub unfinished: usize,
}

/// Whether the peer of an actor spoke the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpokenProtocol {
    /// It did.
    Yes,
    /// Nobody said anything.
    Nobody,
    /// Somebody answered, with something else.
    NotTheProtocol {
        /// What it was, for people.
        why: String,
    },
    /// All that was asked of it was answered with errors.
    OnlyErrors {
        /// The first of them.
        first: String,
    },
}

/// A tool call of the subject that came to a server of the document, or to a frontend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenCall {
    /// The actor.
    pub actor: String,
    /// The tool.
    pub tool: String,
    /// Whether there is such a tool, and its schema allows the arguments. A server answers an invalid call with an error.
    pub valid: bool,
}

/// How many of a kind are kept; what comes from the subject has no end of its own.
const MAX_KEPT: usize = 10_000;
const MAX_EXCERPT: usize = 200;

/// What is noted while a run goes on.
#[derive(Debug, Default)]
pub(crate) struct Facts(Mutex<FactsState>);

#[derive(Debug, Default)]
struct FactsState {
    unseen: Vec<UnseenMessage>,
    calls: Vec<SeenCall>,
    speech: BTreeMap<String, Speech>,
    /// How often something that carries the attack reached the subject.
    armed: u64,
    /// How often it did so other than in the answer to something that the subject's model had asked for.
    armed_unasked: u64,
    /// The number of the message with which it did so first, as near as is known.
    armed_message: Option<u64>,
    /// When the first of it did.
    armed_at: Option<Instant>,
    acted: bool,
    acted_surely: bool,
    said: bool,
    /// Calls after answers that carried the attack: a model may have decided on them together with what was answered.
    calls_since: Vec<u64>,
    /// The calls that were made, by their hashes: the same one again is a library that tries again.
    calls_made: HashSet<u64>,
}

/// What was noted until a run ended.
#[derive(Debug)]
pub(crate) struct NotedFacts {
    pub(crate) unseen: Vec<UnseenMessage>,
    pub(crate) calls: Vec<SeenCall>,
    /// Whether the subject acted, or said something to a client, after the attack had reached it.
    pub(crate) acted: bool,
    pub(crate) said: bool,
    /// Whether it acted after it had the attack before any call, so that whatever it called was decided after that.
    pub(crate) acted_surely: bool,
    /// Its calls after the delivery, where that is not so.
    pub(crate) calls_since: Vec<u64>,
    /// All of its calls.
    pub(crate) calls_made: Vec<u64>,
    /// When the attack reached it first, and with which message.
    pub(crate) armed_at: Option<Instant>,
    pub(crate) armed_message: Option<u64>,
}

/// What was heard of one peer.
#[derive(Debug, Default)]
struct Speech {
    messages: u64,
    /// Answers that do what was asked, or calls.
    well: u64,
    first_error: Option<String>,
    foreign: Option<String>,
    failed: Option<String>,
    /// Tasks that have not ended, each with the operation that told of it first.
    running: BTreeMap<String, String>,
}

impl Facts {
    /// A message of the protocol came.
    pub(crate) fn heard(&self, actor: &str, is_server: bool, weight: Weight) {
        if weight == Weight::Own {
            return;
        }
        let mut state = lock(&self.0);
        let is_armed = state.armed > 0;
        let is_act = match &weight {
            Weight::Act => true,
            Weight::Call(call) => {
                let has_room = state.calls_made.len() < MAX_KEPT;
                has_room && state.calls_made.insert(*call)
            }
            Weight::Own | Weight::Contact | Weight::Served | Weight::Said | Weight::Error(_) => {
                false
            }
        };
        let called = if let Weight::Call(call) = &weight {
            Some(*call)
        } else {
            None
        };
        let is_served = matches!(weight, Weight::Call(_) | Weight::Served);
        let is_said = weight == Weight::Said;
        let speech = state.speech.entry(actor.to_owned()).or_default();
        speech.messages += 1;
        // Who comes to a server of ours speaks the protocol, whatever it asks for.
        if is_act || is_served || is_said || (is_server && weight == Weight::Contact) {
            speech.well += 1;
        }
        if let Weight::Error(error) = weight {
            speech.first_error.get_or_insert(error);
        }
        state.acted |= is_act && is_armed;
        state.said |= is_said && is_armed;
        match called {
            Some(call) if is_act && is_armed && state.armed_unasked == 0 => {
                state.calls_since.push(call);
            }
            Some(_) | None => state.acted_surely |= is_act && is_armed,
        }
    }

    /// A run that the peer was asked for ended, with an error or well.
    pub(crate) fn run_ended(&self, actor: &str, failed: Option<String>) {
        let mut state = lock(&self.0);
        let speech = state.speech.entry(actor.to_owned()).or_default();
        speech.failed = failed;
    }

    /// The peer told of a task, in the answer to an operation, whether it still runs.
    pub(crate) fn task_runs(&self, actor: &str, operation: &str, task: &str, runs: bool) {
        let mut state = lock(&self.0);
        let speech = state.speech.entry(actor.to_owned()).or_default();
        if !runs {
            speech.running.remove(task);
        } else if speech.running.len() < MAX_KEPT {
            let first = speech.running.entry(task.to_owned());
            first.or_insert_with(|| operation.to_owned());
        }
    }

    /// Some of the tasks of the peer that have not ended, each with the operation that told of it first.
    pub(crate) fn running_tasks(&self, actor: &str, at_most: usize) -> Vec<(String, String)> {
        let state = lock(&self.0);
        let running = state.speech.get(actor).map(|speech| &speech.running);
        let tasks = running.into_iter().flatten().take(at_most);
        tasks
            .map(|(task, operation)| (task.clone(), operation.clone()))
            .collect()
    }

    /// The peer did not take an input. Who never spoke the protocol has not failed at a run.
    pub(crate) fn run_refused(&self, actor: &str, why: String) {
        let mut state = lock(&self.0);
        if let Some(speech) = state.speech.get_mut(actor)
            && speech.well > 0
        {
            speech.failed = Some(why);
        }
    }

    /// What was asked of the peer was answered with an error.
    pub(crate) fn answered_with_error(&self, actor: &str, error: String) {
        let mut state = lock(&self.0);
        let speech = state.speech.entry(actor.to_owned()).or_default();
        speech.first_error.get_or_insert(error);
    }

    /// The peer said something that is not of the protocol.
    pub(crate) fn spoke_otherwise(&self, actor: &str, why: String) {
        let mut state = lock(&self.0);
        let speech = state.speech.entry(actor.to_owned()).or_default();
        speech.foreign.get_or_insert(why);
    }

    /// Something that carries the attack reached the subject, with about this message.
    pub(crate) fn armed_delivery(&self, kind: CarrierKind, message: u64) {
        let mut state = lock(&self.0);
        state.armed += 1;
        state.armed_unasked += u64::from(!kind.is_asked_for());
        state.armed_at.get_or_insert_with(Instant::now);
        state.armed_message.get_or_insert(message);
    }

    /// It did not reach the subject after all. Where nothing else did, what it has done since proves nothing.
    pub(crate) fn armed_delivery_lost(&self, kind: CarrierKind) {
        let mut state = lock(&self.0);
        state.armed = state.armed.saturating_sub(1);
        let unasked = u64::from(!kind.is_asked_for());
        state.armed_unasked = state.armed_unasked.saturating_sub(unasked);
        if state.armed_unasked == 0 {
            state.acted_surely = false;
        }
        if state.armed == 0 {
            (state.acted, state.said) = (false, false);
            (state.armed_at, state.armed_message) = (None, None);
            state.calls_since.clear();
        }
    }

    pub(crate) fn called(&self, call: SeenCall) {
        let mut state = lock(&self.0);
        if state.calls.len() < MAX_KEPT {
            state.calls.push(call);
        }
    }

    pub(crate) fn unseen(&self, mut unseen: UnseenMessage) {
        let end = unseen.excerpt.char_indices().nth(MAX_EXCERPT);
        if let Some((end, _)) = end {
            unseen.excerpt.truncate(end);
        }
        let mut state = lock(&self.0);
        if state.unseen.len() < MAX_KEPT {
            state.unseen.push(unseen);
        }
    }

    /// What the peer of an actor spoke.
    pub(crate) fn speech(&self, actor: &str, mode: &Mode) -> ActorSpeech {
        let state = lock(&self.0);
        let speech = state.speech.get(actor);
        let messages = speech.map_or(0, |speech| speech.messages);
        let protocol = match speech {
            None => SpokenProtocol::Nobody,
            Some(Speech { well: 1.., .. }) => SpokenProtocol::Yes,
            Some(Speech {
                first_error: Some(first),
                ..
            }) => SpokenProtocol::OnlyErrors {
                first: first.clone(),
            },
            Some(Speech { messages: 1.., .. }) => SpokenProtocol::Yes,
            Some(Speech {
                foreign: Some(why), ..
            }) => SpokenProtocol::NotTheProtocol { why: why.clone() },
            Some(Speech { foreign: None, .. }) => SpokenProtocol::Nobody,
        };
        ActorSpeech {
            actor: actor.to_owned(),
            mode: mode.clone(),
            messages,
            protocol,
            failed: speech.and_then(|speech| speech.failed.clone()),
            unfinished: speech.map_or(0, |speech| speech.running.len()),
        }
    }

    /// Hands out what was noted.
    pub(crate) fn finish(&self) -> NotedFacts {
        let mut state = lock(&self.0);
        NotedFacts {
            unseen: std::mem::take(&mut state.unseen),
            calls: std::mem::take(&mut state.calls),
            acted: state.acted,
            said: state.said,
            acted_surely: state.acted_surely,
            calls_since: std::mem::take(&mut state.calls_since),
            calls_made: state.calls_made.iter().copied().collect(),
            armed_at: state.armed_at,
            armed_message: state.armed_message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_spoke_is_the_best_it_said() {
        let facts = Facts::default();
        let spoke = || facts.speech("a", &Mode::A2aClient).protocol;
        assert_eq!(spoke(), SpokenProtocol::Nobody);
        facts.spoke_otherwise("a", "a page".to_owned());
        facts.spoke_otherwise("a", "another".to_owned());
        let why = "a page".to_owned();
        assert_eq!(spoke(), SpokenProtocol::NotTheProtocol { why });
        facts.heard("a", false, Weight::Own);
        assert_ne!(spoke(), SpokenProtocol::Yes, "that was us");
        facts.heard("a", false, Weight::Contact);
        assert_eq!(spoke(), SpokenProtocol::Yes, "it shook hands");
        facts.heard("a", false, Weight::Error("no".to_owned()));
        let first = "no".to_owned();
        assert_eq!(spoke(), SpokenProtocol::OnlyErrors { first });
        facts.heard("a", false, Weight::Act);
        assert_eq!(spoke(), SpokenProtocol::Yes);
    }

    #[test]
    fn only_what_follows_the_attack_is_an_act() {
        let facts = Facts::default();
        let did = || {
            let noted = facts.finish();
            (noted.acted, noted.said)
        };
        facts.heard("a", true, Weight::Act);
        facts.heard("a", false, Weight::Said);
        facts.armed_delivery(CarrierKind::ToolListed, 1);
        facts.heard("a", true, Weight::Contact);
        assert_eq!(did(), (false, false));
        facts.heard("a", false, Weight::Said);
        assert_eq!(did(), (false, true));
        facts.heard("a", true, Weight::Act);
        assert_eq!(did(), (true, true));
    }

    #[test]
    fn the_same_call_again_is_no_act() {
        let facts = Facts::default();
        facts.heard("a", true, Weight::Call(1));
        facts.armed_delivery(CarrierKind::ToolListed, 1);
        facts.heard("a", true, Weight::Call(1));
        assert!(!facts.finish().acted, "a library tries again");
        facts.heard("a", true, Weight::Call(2));
        assert!(facts.finish().acted);
        facts.armed_delivery_lost(CarrierKind::ToolListed);
        assert!(!facts.finish().acted, "it never had the payload");
    }

    /// A model may ask for two calls in one turn: the second is made after the result of the first, and was decided before.
    #[test]
    fn a_call_after_a_result_may_have_been_decided_before_it() {
        let facts = Facts::default();
        facts.heard("a", true, Weight::Call(1));
        facts.armed_delivery(CarrierKind::ToolResponse, 4);
        facts.heard("a", true, Weight::Call(2));
        let noted = facts.finish();
        assert!(noted.acted && !noted.acted_surely);
        assert_eq!((noted.calls_since, noted.armed_message), (vec![2], Some(4)));
        facts.armed_delivery(CarrierKind::ToolListed, 6);
        facts.heard("a", true, Weight::Call(3));
        let noted = facts.finish();
        assert!(noted.acted_surely && noted.calls_since.is_empty());
    }

    #[test]
    fn an_input_that_is_not_taken_fails_a_run_of_those_who_spoke() {
        let facts = Facts::default();
        let failed = || facts.speech("a", &Mode::AgUiClient).failed;
        facts.spoke_otherwise("a", "a page".to_owned());
        facts.run_refused("a", "status 404".to_owned());
        assert_eq!(failed(), None, "it is no agent");
        facts.heard("a", false, Weight::Act);
        facts.run_refused("a", "status 500".to_owned());
        assert_eq!(failed().as_deref(), Some("status 500"));
    }

    #[test]
    fn a_task_runs_until_it_is_told_that_it_has_ended() {
        let facts = Facts::default();
        let unfinished = || facts.speech("a", &Mode::A2aClient).unfinished;
        facts.task_runs("a", "message/send", "t1", true);
        facts.task_runs("a", "tasks/get", "t1", true);
        facts.task_runs("a", "message/stream", "t2", true);
        let first = ("t1".to_owned(), "message/send".to_owned());
        assert_eq!(facts.running_tasks("a", 1), [first]);
        facts.task_runs("a", "message/send", "t1", false);
        assert_eq!((unfinished(), facts.running_tasks("a", 9).len()), (1, 1));
        facts.task_runs("a", "tasks/get", "t2", false);
        assert_eq!((unfinished(), facts.running_tasks("a", 9).len()), (0, 0));
    }

    #[test]
    fn kinds_have_one_name() {
        for kind in UnseenKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
