//! What a driver holds of its actor: the phase, the trace, the templates, the end of the run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use proofhouse_oatf::{
    Action, ActionKind, Direction, Document, ExtractorSource, GenerationProvider, LogLevel,
    MatchBudget, Mode, Protocol, ProtocolEvent, evaluate_extractor_within, interpolate_template,
    interpolate_value,
};
use proofhouse_wire::server::TrafficBudget;
use proofhouse_wire::sync::lock;
use proofhouse_wire::{CancellationToken, WireLimits};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::authorization::ClientAuthorization;
use crate::driver::{ActorError, ActorErrorKind};
use crate::exposure::Ledger;
use crate::extractors::Extractors;
use crate::facts::Facts;
use crate::phase_gate::PhaseGate;
use crate::phases::{PhaseEntry, PhaseView, Phases};
use crate::presence::{self, OpenPresence, Presence};
use crate::recorder::{RecordedMessage, RunEvent, RunRecorder, Untold};
use crate::twin_baseline::TwinBaseline;
use crate::weight::{Weight, weigh};

/// What all actors of a run share.
pub(crate) struct RunShared {
    pub(crate) document: Arc<Document>,
    pub(crate) recorder: RunRecorder,
    pub(crate) extractors: Extractors,
    pub(crate) ledger: Ledger,
    pub(crate) facts: Facts,
    pub(crate) twin_baseline: Option<TwinBaseline>,
    pub(crate) generation: Option<Arc<dyn GenerationProvider>>,
    pub(crate) limits: WireLimits,
    /// The room that large messages to all servers have.
    pub(crate) traffic: Arc<TrafficBudget>,
    pub(crate) check_origin: bool,
    /// Silence after which nothing more is expected of a peer that owes nothing.
    pub(crate) settle: std::time::Duration,
    /// Whether the subject is there.
    pub(crate) presence: watch::Sender<Presence>,
    /// What the names of AG-UI threads get, if these are to be new.
    pub(crate) thread_suffix: Option<String>,
    /// Headers that clients send.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) authorization: Option<ClientAuthorization>,
    /// Counts every message, so that silence can be told.
    pub(crate) activity: watch::Sender<u64>,
    /// How many messages of the subject wait for their answer.
    pub(crate) owed: Arc<AtomicUsize>,
    /// The run is over: everyone stops.
    pub(crate) over: CancellationToken,
}

/// An actor, as its driver sees it. Cheap to clone.
#[derive(Clone)]
pub struct ActorContext {
    pub(crate) inner: Arc<ActorShared>,
}

pub(crate) struct ActorShared {
    pub(crate) name: String,
    pub(crate) mode: Mode,
    pub(crate) protocol: Protocol,
    pub(crate) phases: PhaseGate,
    pub(crate) shared: Arc<RunShared>,
    entries: mpsc::UnboundedSender<PhaseEntry>,
    waiting: Mutex<Option<mpsc::UnboundedReceiver<PhaseEntry>>>,
    /// The position of the phase that holds.
    position: watch::Sender<usize>,
}

/// A message that was received: the phase it belongs to, and the next one if it ended that.
#[derive(Debug)]
#[must_use = "the answer is built from the phase, and the next one begins when this is dropped"]
pub struct ActorTurn {
    /// The phase that held when the message came; the answer is its.
    pub phase: Arc<PhaseView>,
    /// The number of the message in the trace.
    pub message: u64,
    /// The phase that begins once the answer is on its way.
    pub advance: Advance,
}

/// The entry into the next phase, which happens when this is dropped: its actions must not overtake
/// the answer to the message that led there.
#[derive(Debug, Default)]
pub struct Advance {
    entered: Vec<PhaseEntry>,
    entries: Option<mpsc::UnboundedSender<PhaseEntry>>,
    /// While an answer is owed, silence is ours.
    owed: Option<Owed>,
}

impl ActorTurn {
    /// The message was our own: while its answer is waited for, silence is the subject's.
    pub fn of_ours(mut self) -> Self {
        self.advance.owed = None;
        self
    }
}

/// Something that the subject waits for.
#[derive(Debug)]
struct Owed(Arc<AtomicUsize>);

impl Owed {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Advance {
    fn drop(&mut self) {
        drop(self.owed.take());
        for entry in self.entered.drain(..) {
            if let Some(entries) = &self.entries {
                // Nobody listens any more when the run is over.
                let _ = entries.send(entry);
            }
        }
    }
}

impl ActorContext {
    pub(crate) fn new(name: &str, mode: &Mode, phases: Phases, shared: Arc<RunShared>) -> Self {
        let (entries, waiting) = mpsc::unbounded_channel();
        Self {
            inner: Arc::new(ActorShared {
                name: name.to_owned(),
                mode: mode.clone(),
                protocol: mode.protocol(),
                phases: PhaseGate::new(Mutex::new(phases)),
                shared,
                entries,
                waiting: Mutex::new(Some(waiting)),
                position: watch::Sender::new(0),
            }),
        }
    }

    /// The actor's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The actor's mode.
    #[must_use]
    pub fn mode(&self) -> &Mode {
        &self.inner.mode
    }

    /// The bounds on what the peer may send.
    #[must_use]
    pub fn limits(&self) -> &WireLimits {
        &self.inner.shared.limits
    }

    /// The room for large messages that all servers of the run have together.
    #[must_use]
    pub fn traffic(&self) -> Arc<TrafficBudget> {
        Arc::clone(&self.inner.shared.traffic)
    }

    /// The document that is being run.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.inner.shared.document
    }

    /// Whether requests of foreign origins are refused.
    #[must_use]
    pub fn checks_origin(&self) -> bool {
        self.inner.shared.check_origin
    }

    /// How long a peer that owes nothing may be silent before nothing more is expected of it.
    #[must_use]
    pub fn settle(&self) -> std::time::Duration {
        self.inner.shared.settle
    }

    /// The name of a thread on the wire.
    pub(crate) fn thread(&self, name: &str) -> String {
        match &self.inner.shared.thread_suffix {
            Some(suffix) => format!("{name}-{suffix}"),
            None => name.to_owned(),
        }
    }

    /// Headers that requests of clients carry besides those of the protocol.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.inner.shared.headers
    }

    /// How clients get tokens, if they may.
    pub(crate) fn authorization(&self) -> Option<&ClientAuthorization> {
        self.inner.shared.authorization.as_ref()
    }

    /// The subject began a session with this actor, which lasts as long as what is returned.
    #[must_use]
    pub fn session_began(&self) -> OpenPresence {
        OpenPresence::begin(&self.inner.shared.presence)
    }

    /// The subject spoke to this actor without a session, so that silence does not tell whether it is done.
    pub fn spoken_to_without_session(&self) {
        presence::without_session(&self.inner.shared.presence);
    }

    /// Cancelled when the run is over.
    #[must_use]
    pub fn over(&self) -> &CancellationToken {
        &self.inner.shared.over
    }

    /// The phase that holds now.
    #[must_use]
    pub fn phase(&self) -> Arc<PhaseView> {
        self.inner.phases.with(|phases| phases.current())
    }

    /// All phases, in order.
    #[must_use]
    pub fn all_phases(&self) -> Vec<Arc<PhaseView>> {
        self.inner.phases.with(|phases| phases.all().to_vec())
    }

    /// The actions that the actor's phases begin with, as the document has them.
    pub(crate) fn entry_actions(&self) -> impl Iterator<Item = &ActionKind> {
        let actors = self.document().attack.execution.actors();
        let own = actors.iter().filter(|actor| actor.name == self.name());
        own.flat_map(|actor| &actor.phases)
            .flat_map(|phase| phase.on_enter.iter().flatten())
            .filter_map(Action::kind)
    }

    /// The phases as they are entered, the first one included; to be taken once, by the driver.
    #[must_use]
    pub fn entries(&self) -> mpsc::UnboundedReceiver<PhaseEntry> {
        let mut waiting = lock(&self.inner.waiting);
        waiting
            .take()
            .unwrap_or_else(|| mpsc::unbounded_channel().1)
    }

    /// A message came from the subject. It is recorded, extractors of the phase read it, and it may
    /// end the phase; the answer still belongs to the phase that held when it came.
    ///
    /// `raw` is the message as it was on the wire, where that differs from the content.
    pub fn received(
        &self,
        operation: &str,
        direction: Direction,
        content: &Value,
        raw: Option<Value>,
    ) -> ActorTurn {
        let event = ProtocolEvent {
            event_type: operation.to_owned(),
            content: content.clone(),
        };
        let owed = Owed::new(&self.inner.shared.owed);
        self.heard(weigh(&self.inner.mode, operation, direction, content));
        self.heard_task(operation, direction, content, true);
        let admitted = self
            .inner
            .phases
            .admit(Some(&event), Instant::now(), |phase| {
                self.note(phase, operation, direction, content, raw)
            });
        let message = admitted.noted.sequence;
        self.tell(admitted.noted);
        if let Some(reason) = &admitted.untried {
            self.not_compared(operation, content, reason);
        }
        let mut advance = self.advance(admitted.entered);
        advance.owed = Some(owed);
        ActorTurn {
            phase: admitted.phase,
            message,
            advance,
        }
    }

    /// A message came that is no event of its own, such as the repetition of one: it is recorded
    /// and read by extractors, and ends no phase.
    pub fn overheard(
        &self,
        operation: &str,
        direction: Direction,
        content: &Value,
        raw: Option<Value>,
    ) -> Arc<PhaseView> {
        let weight = weigh(&self.inner.mode, operation, direction, content);
        self.overheard_weighing(operation, direction, content, raw, weight)
    }

    pub(crate) fn overheard_weighing(
        &self,
        operation: &str,
        direction: Direction,
        content: &Value,
        raw: Option<Value>,
        weight: Weight,
    ) -> Arc<PhaseView> {
        self.heard(weight);
        self.heard_task(operation, direction, content, false);
        let admitted = self.inner.phases.admit(None, Instant::now(), |phase| {
            self.note(phase, operation, direction, content, raw)
        });
        self.tell(admitted.noted);
        drop(self.advance(admitted.entered));
        admitted.phase
    }

    fn heard(&self, weight: Weight) {
        let is_server = self.inner.mode.is_server();
        let facts = &self.inner.shared.facts;
        facts.heard(&self.inner.name, is_server, weight);
    }

    /// A message goes to the subject, as `phase` has it.
    pub fn sent(
        &self,
        phase: &Arc<PhaseView>,
        operation: &str,
        direction: Direction,
        content: &Value,
        raw: Option<Value>,
    ) {
        self.sent_numbered(phase, operation, direction, content, raw);
    }

    /// The same, for those who tell later what the message carried: its number in the trace.
    pub(crate) fn sent_numbered(
        &self,
        phase: &Arc<PhaseView>,
        operation: &str,
        direction: Direction,
        content: &Value,
        raw: Option<Value>,
    ) -> u64 {
        let noted = self.note(phase, operation, direction, content, raw);
        let message = noted.sequence;
        self.tell(noted);
        message
    }

    /// Resolves the templates in a value, with what is known now. What does not resolve is empty
    /// and warned of.
    #[must_use]
    pub fn interpolate(
        &self,
        value: &Value,
        request: Option<&Value>,
        response: Option<&Value>,
    ) -> Value {
        let extractors = self.inner.shared.extractors.seen_by(&self.inner.name);
        let (value, warnings) = interpolate_value(value, &extractors, request, response);
        for warning in warnings {
            self.warn(&warning.message);
        }
        value
    }

    /// Resolves the templates in a text.
    #[must_use]
    pub fn interpolate_text(&self, text: &str) -> String {
        let extractors = self.inner.shared.extractors.seen_by(&self.inner.name);
        let (text, warnings) = interpolate_template(text, &extractors, None, None);
        for warning in warnings {
            self.warn(&warning.message);
        }
        text
    }

    /// Does what every binding does on entry (`log`), and returns what is left for the driver:
    /// `send` and the actions of its binding, templates resolved.
    #[must_use]
    pub fn enter(&self, entry: &PhaseEntry) -> Vec<ActionKind> {
        self.tell_phase(entry);
        let kinds = entry.actions.iter().filter_map(Action::kind);
        kinds
            .filter_map(|kind| match kind {
                ActionKind::Log { message, level } => {
                    self.inner.shared.recorder.tell(&RunEvent::Log {
                        actor: self.inner.name.clone(),
                        level: level.unwrap_or(LogLevel::Info),
                        message: self.interpolate_text(message),
                    });
                    None
                }
                ActionKind::Send { method, params } => Some(ActionKind::Send {
                    method: self.interpolate_text(method),
                    params: params
                        .as_ref()
                        .map(|params| self.interpolate(params, None, None)),
                }),
                ActionKind::Binding { name, value } => Some(ActionKind::Binding {
                    name: name.clone(),
                    value: self.interpolate(value, None, None),
                }),
            })
            .collect()
    }

    /// Generated content for a `synthesize` block, if there is a provider and it answers; a warning
    /// otherwise. May take as long as the provider takes.
    pub async fn generate(&self, prompt: &str, context: Value) -> Option<Value> {
        let Some(provider) = self.inner.shared.generation.clone() else {
            self.warn("`synthesize` is passed over: no generation provider is configured");
            return None;
        };
        let (prompt, protocol) = (self.interpolate_text(prompt), self.inner.protocol.clone());
        let generating =
            tokio::task::spawn_blocking(move || provider.generate(&prompt, &protocol, &context));
        match generating.await {
            Ok(Ok(content)) => Some(content),
            Ok(Err(error)) => {
                self.warn(&format!("`synthesize` failed: {error}"));
                None
            }
            Err(_) => {
                self.warn("`synthesize` failed: the provider panicked");
                None
            }
        }
    }

    /// Something went wrong that the run survives: the subject broke the protocol, a notification
    /// found no one.
    pub fn warn(&self, message: &str) {
        let recorder = &self.inner.shared.recorder;
        recorder.warn(Some(&self.inner.name), message);
    }

    /// An error of this actor.
    #[must_use]
    pub fn error(&self, kind: ActorErrorKind, message: impl Into<String>) -> ActorError {
        ActorError {
            actor: self.inner.name.clone(),
            kind,
            message: message.into(),
        }
    }

    /// The first phase begins.
    pub(crate) fn begin(&self) {
        let entry = self
            .inner
            .phases
            .with(|phases| phases.begin(Instant::now()));
        let _ = self.inner.entries.send(entry);
    }

    /// Ends phases when their time has come, until the run is over.
    pub(crate) async fn keep_time(self) {
        let mut position = self.inner.position.subscribe();
        loop {
            let left = self.time_left();
            let pause = async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.inner.shared.over.cancelled() => return,
                changed = position.changed() => if changed.is_err() { return },
                () = pause => drop(self.advance(self.inner.phases.admit(None, Instant::now(), |_| ()).entered)),
            }
        }
    }

    /// Whether time alone will end the phase that holds.
    pub(crate) fn waits_for_time(&self) -> bool {
        self.time_left().is_some()
    }

    fn time_left(&self) -> Option<std::time::Duration> {
        self.inner
            .phases
            .with(|phases| phases.time_left(Instant::now()))
    }

    /// Waits until the last phase has begun.
    pub(crate) async fn reaches_terminal(&self) {
        let mut position = self.inner.position.subscribe();
        while !self.phase().is_terminal() {
            if position.changed().await.is_err() {
                return;
            }
        }
    }

    /// The phases that were entered begin when what is returned is dropped.
    fn advance(&self, entered: Vec<PhaseEntry>) -> Advance {
        if let Some(last) = entered.last() {
            self.inner.position.send_replace(last.phase.index);
        }
        Advance {
            entered,
            entries: Some(self.inner.entries.clone()),
            owed: None,
        }
    }

    fn tell_phase(&self, entry: &PhaseEntry) {
        self.inner.shared.recorder.tell(&RunEvent::Phase {
            actor: self.inner.name.clone(),
            phase: entry.phase.name.clone(),
            reason: entry.reason,
        });
    }

    /// Records a message in its phase. What is to be told of it is told after the next one may come.
    fn note(
        &self,
        phase: &PhaseView,
        operation: &str,
        direction: Direction,
        content: &Value,
        raw: Option<Value>,
    ) -> Untold {
        let shared = &self.inner.shared;
        // Kept before it is told, so that whoever hears of a message can count on what it held.
        let source = match direction {
            Direction::Request => ExtractorSource::Request,
            Direction::Response => ExtractorSource::Response,
        };
        for extractor in &phase.extractors {
            let budget = &mut MatchBudget::default();
            match evaluate_extractor_within(extractor, content, source, budget) {
                Ok(None) => {}
                Ok(Some(value)) => {
                    let extractors = &shared.extractors;
                    extractors.set(&self.inner.name, &extractor.name, value);
                }
                Err(error) => {
                    let reason = format!("the extractor `{}`: {error}", extractor.name);
                    self.not_compared(operation, content, &reason);
                }
            }
        }
        let untold = shared.recorder.record(RecordedMessage {
            actor: &self.inner.name,
            phase: &phase.name,
            protocol: &self.inner.protocol,
            operation,
            direction,
            content,
            raw,
        });
        shared
            .activity
            .send_modify(|messages| *messages = messages.wrapping_add(1));
        untold
    }

    /// Tells the observer, who must not hold up the next message.
    fn tell(&self, untold: Untold) {
        for part in untold.in_parts() {
            self.judged_in_parts(part);
        }
        self.inner.shared.recorder.tell_all(untold);
    }
}

impl std::fmt::Debug for ActorContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActorContext")
            .field("name", &self.inner.name)
            .field("mode", &self.inner.mode)
            .finish_non_exhaustive()
    }
}
