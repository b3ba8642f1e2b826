//! One run: everyone ready, everyone playing, and an end that always comes.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use proofhouse_detect::{
    BuildError, DocumentVerdict, Redactor, Scanner, TraceMessage, TraceWriter,
};
use proofhouse_oatf::{Document, GenerationProvider, Mode, SemanticEvaluator};
use proofhouse_wire::gate::GateClock;
use proofhouse_wire::server::TrafficBudget;
use proofhouse_wire::{CancellationToken, WireLimits};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::actor::{ActorContext, RunShared};
use crate::aliases;
use crate::authorization::ClientAuthorization;
use crate::delivery::DeliveryError;
use crate::driver::{ActorEndpoint, ActorError, BoxFuture, Driver, PreparedActor};
use crate::drivers::driver_of;
use crate::exposure::{Exposure, Ledger};
use crate::extractors::Extractors;
use crate::facts::{ActorSpeech, Facts, SeenCall, SpokenProtocol, UnseenMessage};
use crate::phases::Phases;
use crate::presence::Presence;
use crate::recorder::{RunEvent, RunObserver, RunRecorder, RunSecrets, TraceLimits};
use crate::twin_baseline::TwinBaseline;

/// How a document is run.
pub struct RunOptions {
    /// Where actors meet the subject, by name; the driver's default otherwise.
    pub endpoints: HashMap<String, ActorEndpoint>,
    /// How long to go on observing once every actor is in its last phase and has done its part;
    /// the document's `grace_period` wins.
    pub grace: Duration,
    /// Clients have done their part, and nothing was seen for so long: the subject is done.
    pub settle: Duration,
    /// Nothing was seen for so long, and it was not for us to speak: the run ends, and what the subject would have done
    /// is not known.
    pub idle_limit: Duration,
    /// Nobody came for so long: the run ends as one whose subject is silent.
    pub arrival_limit: Duration,
    /// Whether the subject is done once it has ended every session it began and waits for nothing. Not where a process
    /// or an answer tells the end: a subject may make a session for each of its calls.
    pub ends_with_sessions: bool,
    /// The longest a run may take.
    pub max_session: Duration,
    /// What requests of the subject's model wait for caps that others share. It counts neither as silence nor as time of the run.
    pub gates: Arc<GateClock>,
    /// Bounds on what the subject may send.
    pub limits: WireLimits,
    /// Bounds on what is kept of the trace.
    pub trace_limits: TraceLimits,
    /// Whether HTTP servers refuse requests of foreign origins.
    pub check_origin: bool,
    /// Whether AG-UI threads are new in every run: what the document calls a thread gets some digits on the wire. An agent
    /// that runs on remembers the threads of earlier runs, and may have nothing left to say in them.
    pub new_threads: bool,
    /// Headers that requests of clients carry besides those of the protocol.
    pub headers: Vec<(String, String)>,
    /// How clients get tokens for MCP servers that want one; they get none when absent.
    pub authorization: Option<ClientAuthorization>,
    /// Where the trace goes, line by line.
    pub trace: Option<Box<dyn Write + Send>>,
    /// What the header of the trace has besides the document.
    pub trace_header: serde_json::Map<String, serde_json::Value>,
    /// Texts that must not leave: not in the trace, nor in evidence, warnings and errors.
    pub secrets: Vec<String>,
    /// Hears what happens.
    pub observer: Option<RunObserver>,
    /// Answers `synthesize` blocks.
    pub generation: Option<Arc<dyn GenerationProvider>>,
    /// Judges semantic indicators.
    pub semantic: Option<Arc<dyn SemanticEvaluator>>,
    /// Drivers besides those of [`BuiltInMode`](crate::BuiltInMode); for the same mode, these win.
    pub drivers: Vec<Arc<dyn Driver>>,
    /// Starts the subject once every server is there for it, and says where clients meet it.
    pub connect_subject: Option<ConnectSubject>,
    /// The same without the payload, normalized. What it shows in the same form does not count as reaching the
    /// subject.
    pub twin: Option<Arc<Document>>,
}

/// A server of the document that the subject can come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListeningServer {
    /// The actor.
    pub actor: String,
    /// Its mode, such as [`Mode::McpServer`].
    pub mode: Mode,
    /// Where it is.
    pub address: String,
}

/// Why the subject could not be started or reached, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub String);

/// Is told where the servers are, and returns the endpoints of clients, by the actor's name. The servers
/// answer already, so a subject may come to them while it starts. What it returns as an error is why
/// the run cannot take place.
pub type ConnectSubject = Box<
    dyn FnOnce(
            Vec<ListeningServer>,
        ) -> BoxFuture<'static, Result<HashMap<String, ActorEndpoint>, ConnectError>>
        + Send,
>;

impl RunOptions {
    /// The usual ones for a subject that may be silent for so long, and whose answers are waited for until then.
    #[must_use]
    pub fn patient(silence: Duration) -> Self {
        Self {
            idle_limit: silence,
            arrival_limit: silence,
            limits: WireLimits::default().patient(silence),
            ..Self::default()
        }
    }
}

impl Default for RunOptions {
    /// Half an hour at most, five minutes of silence, five seconds of grace.
    fn default() -> Self {
        Self {
            endpoints: HashMap::new(),
            grace: Duration::from_secs(5),
            settle: Duration::from_secs(10),
            idle_limit: Duration::from_secs(300),
            arrival_limit: Duration::from_secs(300),
            ends_with_sessions: true,
            max_session: Duration::from_secs(1_800),
            gates: Arc::default(),
            limits: WireLimits::default(),
            trace_limits: TraceLimits::default(),
            check_origin: true,
            new_threads: false,
            headers: Vec::new(),
            authorization: None,
            trace: None,
            trace_header: serde_json::Map::new(),
            secrets: Vec::new(),
            observer: None,
            generation: None,
            semantic: None,
            drivers: Vec::new(),
            connect_subject: None,
            twin: None,
        }
    }
}

/// Ends a run from outside; what was seen until then is judged.
#[derive(Debug, Clone, Default)]
pub struct RunHandle {
    subject_done: CancellationToken,
    interrupted: CancellationToken,
}

impl RunHandle {
    /// The subject has done what it was asked: the grace period begins.
    pub fn subject_is_done(&self) {
        self.subject_done.cancel();
    }

    /// Ends the run at once.
    pub fn interrupt(&self) {
        self.interrupted.cancel();
    }
}

/// Why a run could not take place.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An actor could not get ready.
    #[error(transparent)]
    Actor(#[from] ActorError),
    /// No actor has a mode that anyone can drive.
    #[error("no actor can be played: {modes} has no driver")]
    NoDriver {
        /// The modes.
        modes: String,
    },
    /// The document asks for a delivery that is not there.
    #[error(transparent)]
    DeliveryModifiers(#[from] DeliveryError),
    /// The indicators cannot be compiled.
    #[error(transparent)]
    Indicators(#[from] BuildError),
    /// A secret cannot be redacted.
    #[error("a secret cannot be kept out of the trace: {0}")]
    Secret(String),
    /// The subject could not be met.
    #[error(transparent)]
    Subject(#[from] ConnectError),
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every actor did its part, and the grace period passed.
    Complete,
    /// The subject said that it was done, or ended every session; or it fell silent after clients did their part.
    SubjectDone,
    /// Nothing was seen for as long as a subject may be silent: it may still be thinking.
    Idle,
    /// It took as long as it may.
    TimeUp,
    /// It was interrupted.
    Interrupted,
}

/// What came of a run.
#[derive(Debug)]
pub struct RunReport {
    /// Why it ended.
    pub ending: Ending,
    /// How long it took.
    pub duration: Duration,
    /// The verdict; `None` for a document without indicators.
    pub verdict: Option<DocumentVerdict>,
    /// What reached the subject.
    pub exposure: Exposure,
    /// How many messages were seen.
    pub messages: u64,
    /// The first of them.
    pub trace: Vec<TraceMessage>,
    /// What of the subject could not be taken in as a message: dropped, cut, refused or not parsed.
    pub unseen: Vec<UnseenMessage>,
    /// What the peer of each actor spoke.
    pub spoke: Vec<ActorSpeech>,
    /// Tool calls of the subject, in the order in which they came.
    pub calls: Vec<SeenCall>,
    /// Whether the subject did something of its own accord (a call, an answer that is more than text) after the first
    /// delivery that carried the attack.
    pub acted_after_delivery: bool,
    /// Whether it did so when it had the attack before any call, as in a description. A call after a result that carried the
    /// attack may have been decided together with the one that was answered: those are in `calls_since_delivery`.
    pub acted_surely: bool,
    /// Such calls, as hashes of what was called and how.
    pub calls_since_delivery: Vec<u64>,
    /// All calls, as such hashes.
    pub calls_made: Vec<u64>,
    /// Whether it said something to a client after that. What it said may be the text of an error.
    pub said_after_delivery: bool,
    /// When the first delivery that carried the attack was sent.
    pub delivered_at: Option<Instant>,
    /// The number of the message with which it was sent. Where a client that sends it tells that only with the answer, it is that
    /// of the last message until then.
    pub delivered_with: Option<u64>,
    /// What went wrong on the way.
    pub warnings: Vec<String>,
    /// Actors that broke off.
    pub errors: Vec<ActorError>,
}

/// Runs a normalized document against the subject.
///
/// # Errors
///
/// Returns an error when the run cannot take place: an address in use, an endpoint missing. What
/// happens after everyone was ready never is an error, but part of the report.
pub async fn run(
    document: &Document,
    mut options: RunOptions,
    handle: &RunHandle,
) -> Result<RunReport, RunError> {
    let started = Instant::now();
    let mut document = document.clone();
    aliases::resolve(&mut document, &options.drivers);
    let document = Arc::new(document);
    let shared = Arc::new(shared(&document, &mut options)?);
    let name = document.attack.name.clone().unwrap_or_default();
    let mut header = serde_json::Map::new();
    header.insert("tool".to_owned(), "proofhouse".into());
    header.insert("document".to_owned(), json!(document.attack.id));
    header.insert("name".to_owned(), name.into());
    header.extend(std::mem::take(&mut options.trace_header));
    shared.recorder.header(&header);

    let clean = |error: RunError| match error {
        RunError::Actor(mut error) => {
            shared.recorder.clean_error(&mut error);
            RunError::Actor(error)
        }
        other => other,
    };
    let cast = cast(&document, &options.drivers, &shared)?;
    let (servers, callers): (Vec<_>, Vec<_>) =
        cast.into_iter().partition(|(_, driver)| driver.is_server());
    let grace = document
        .attack
        .grace_period
        .as_ref()
        .and_then(|grace| grace.duration())
        .unwrap_or(options.grace);

    let gates = Arc::clone(&options.gates);
    let waits = Waits {
        grace,
        settle: options.settle,
        idle_limit: options.idle_limit,
        arrival_limit: options.arrival_limit,
        ends_with_sessions: options.ends_with_sessions,
        gates: &gates,
    };

    let mut tasks = JoinSet::new();
    let mut clients = JoinSet::new();
    let mut contexts: Vec<ActorContext> = Vec::new();
    let mut listening = Vec::new();
    // Every server holds a sender, so that the channel closes when the last of them has played.
    let (serving, mut served) = mpsc::channel::<Infallible>(1);
    // All of them listen before one of them plays.
    let prepared = prepare(servers, &options.endpoints, &shared).await;
    for (context, prepared) in prepared.map_err(clean)? {
        context.begin();
        tasks.spawn(context.clone().keep_time().map_to_ok());
        if let Some(address) = prepared.address {
            listening.push(ListeningServer {
                actor: context.name().to_owned(),
                mode: context.mode().clone(),
                address,
            });
        }
        let serving = serving.clone();
        tasks.spawn(async move {
            let played = prepared.play.await;
            drop(serving);
            played
        });
        contexts.push(context);
    }
    if let Some(connect_subject) = options.connect_subject.take() {
        let met = connect_subject(listening).await;
        let met = met.map_err(|ConnectError(mut reason)| {
            shared.recorder.clean(&mut reason);
            RunError::Subject(ConnectError(reason))
        })?;
        options.endpoints.extend(met);
    }
    let prepared = prepare(callers, &options.endpoints, &shared).await;
    for (context, prepared) in prepared.map_err(clean)? {
        context.begin();
        tasks.spawn(context.clone().keep_time().map_to_ok());
        clients.spawn(prepared.play);
        contexts.push(context);
    }
    drop(serving);
    let only_servers = clients.is_empty();
    let mut errors = Vec::new();
    let ending = tokio::select! {
        () = handle.interrupted.cancelled() => Ending::Interrupted,
        () = gates.sleep(options.max_session) => Ending::TimeUp,
        // Its only client is gone for good: there is nothing left to observe, and it may be waiting
        // for us to end.
        None = served.recv(), if only_servers => Ending::SubjectDone,
        ending = play(&contexts, &mut clients, &mut errors, &shared, waits, handle) => ending,
    };
    shared.over.cancel();
    stop(tasks, clients, &mut errors).await;

    let record = shared.recorder.finish();
    let mut verdict = record
        .session
        .and_then(|session| session.verdicts().into_iter().next());
    if let Some(verdict) = &mut verdict {
        shared.recorder.clean_verdict(verdict);
    }
    for error in &mut errors {
        shared.recorder.clean_error(error);
    }
    let mut exposure = shared.ledger.exposure();
    for carrier in &mut exposure.carriers {
        shared.recorder.clean(&mut carrier.name);
    }
    let noted = shared.facts.finish();
    let mut spoke: Vec<ActorSpeech> = contexts
        .iter()
        .map(|context| shared.facts.speech(context.name(), context.mode()))
        .collect();
    for speech in &mut spoke {
        match &mut speech.protocol {
            SpokenProtocol::NotTheProtocol { why: text }
            | SpokenProtocol::OnlyErrors { first: text } => shared.recorder.clean(text),
            SpokenProtocol::Yes | SpokenProtocol::Nobody => {}
        }
        if let Some(failed) = &mut speech.failed {
            shared.recorder.clean(failed);
        }
    }
    Ok(RunReport {
        ending,
        duration: started.elapsed(),
        verdict,
        exposure,
        messages: record.messages,
        trace: record.kept,
        unseen: noted.unseen,
        spoke,
        calls: noted.calls,
        acted_after_delivery: noted.acted,
        acted_surely: noted.acted_surely,
        calls_since_delivery: noted.calls_since,
        calls_made: noted.calls_made,
        said_after_delivery: noted.said,
        delivered_at: noted.armed_at,
        delivered_with: noted.armed_message,
        warnings: record.warnings,
        errors,
    })
}

/// What judges the messages of a run of a normalized document, also those of one that was recorded.
///
/// # Errors
///
/// Returns an error when the indicators cannot be compiled.
pub fn scanner(
    document: &Document,
    semantic: Option<Arc<dyn SemanticEvaluator>>,
) -> Result<Scanner, BuildError> {
    let mut document = document.clone();
    aliases::resolve(&mut document, &[]);
    compile(document, semantic)
}

fn compile(
    document: Document,
    semantic: Option<Arc<dyn SemanticEvaluator>>,
) -> Result<Scanner, BuildError> {
    let name = document.attack.name.clone().unwrap_or_default();
    let mut builder = Scanner::builder().add(name, document);
    if let Some(semantic) = semantic {
        builder = builder.semantic(semantic);
    }
    builder.build()
}

trait MapToOk: Future<Output = ()> + Sized {
    /// The same, as an actor's part that cannot fail.
    async fn map_to_ok(self) -> Result<(), ActorError> {
        self.await;
        Ok(())
    }
}

impl<F: Future<Output = ()>> MapToOk for F {}

fn shared(document: &Arc<Document>, options: &mut RunOptions) -> Result<RunShared, RunError> {
    let redactor = (!options.secrets.is_empty())
        .then(|| Redactor::new(&options.secrets))
        .transpose()
        .map_err(|error| RunError::Secret(error.to_string()))?;
    let output = options.trace.take().map(|output| {
        let writer = TraceWriter::new(output);
        match &redactor {
            Some(redactor) => writer.with_redactor(redactor.clone()),
            None => writer,
        }
    });
    let scanner = match document.attack.indicators() {
        [] => None,
        _ => Some(Arc::new(compile(
            (**document).clone(),
            options.semantic.take(),
        )?)),
    };
    let actors = document.attack.execution.actors();
    Ok(RunShared {
        document: Arc::clone(document),
        recorder: RunRecorder::new(
            scanner.as_ref(),
            output,
            redactor.map(|redactor| RunSecrets {
                redactor,
                plain: options.secrets.clone(),
            }),
            options.observer.take(),
            options.trace_limits,
        ),
        extractors: Extractors::new(actors.iter().map(|actor| actor.name.clone())),
        ledger: Ledger::default(),
        facts: Facts::default(),
        twin_baseline: options
            .twin
            .take()
            .and_then(|twin| TwinBaseline::of(document, &twin)),
        generation: options.generation.take(),
        limits: options.limits.clone(),
        traffic: TrafficBudget::new(&options.limits),
        check_origin: options.check_origin,
        settle: options.settle,
        presence: watch::Sender::new(Presence::default()),
        thread_suffix: options.new_threads.then(thread_suffix),
        headers: options.headers.clone(),
        authorization: options.authorization.clone(),
        activity: watch::Sender::new(0),
        owed: Arc::default(),
        over: CancellationToken::new(),
    })
}

/// Digits that no other run has.
fn thread_suffix() -> String {
    // Hashers begin with chance from the system.
    let chance = RandomState::new().build_hasher().finish();
    format!("{:08x}", chance >> 32)
}

/// Everyone who can play, in the order of the document.
fn cast<'d>(
    document: &Document,
    drivers: &'d [Arc<dyn Driver>],
    shared: &Arc<RunShared>,
) -> Result<Vec<(ActorContext, &'d dyn Driver)>, RunError> {
    let mut cast: Vec<(ActorContext, &dyn Driver)> = Vec::new();
    let mut unknown = Vec::new();
    for actor in document.attack.execution.actors() {
        let Some(driver) = driver_of(&actor.mode, drivers) else {
            let warning = format!(
                "there is no driver for `{}`; the actor is left out",
                actor.mode
            );
            shared.recorder.warn(Some(&actor.name), &warning);
            unknown.push(actor.mode.as_str());
            continue;
        };
        let phases = Phases::new(actor, Instant::now())?;
        let context = ActorContext::new(&actor.name, &actor.mode, phases, Arc::clone(shared));
        cast.push((context, driver));
    }
    if cast.is_empty() {
        return Err(RunError::NoDriver {
            modes: unknown.join(", "),
        });
    }
    Ok(cast)
}

/// Gets these ready.
async fn prepare(
    cast: Vec<(ActorContext, &dyn Driver)>,
    endpoints: &HashMap<String, ActorEndpoint>,
    shared: &Arc<RunShared>,
) -> Result<Vec<(ActorContext, PreparedActor)>, RunError> {
    let mut ready = Vec::new();
    for (context, driver) in cast {
        let endpoint = endpoints
            .get(context.name())
            .cloned()
            .or_else(|| driver.default_endpoint())
            .ok_or_else(|| {
                context.error(
                    crate::ActorErrorKind::Endpoint,
                    format!("no endpoint for `{}`", driver.mode()),
                )
            })?;
        let prepared = driver.prepare(context.clone(), endpoint).await?;
        shared.recorder.tell(&RunEvent::Ready {
            actor: context.name().to_owned(),
            address: prepared.address.clone(),
        });
        ready.push((context, prepared));
    }
    Ok(ready)
}

/// How long what is waited for.
#[derive(Debug, Clone, Copy)]
struct Waits<'a> {
    grace: Duration,
    settle: Duration,
    idle_limit: Duration,
    arrival_limit: Duration,
    ends_with_sessions: bool,
    gates: &'a GateClock,
}

/// Plays until there is nothing more to see, then observes for the grace period.
async fn play(
    contexts: &[ActorContext],
    clients: &mut JoinSet<Result<(), ActorError>>,
    errors: &mut Vec<ActorError>,
    shared: &RunShared,
    waits: Waits<'_>,
    handle: &RunHandle,
) -> Ending {
    let has_clients = !clients.is_empty();
    let ends_with_sessions = waits.ends_with_sessions && !has_clients;
    let ending = {
        let complete = async {
            // A run of servers only is complete when the subject is.
            if !has_clients {
                std::future::pending::<()>().await;
            }
            while let Some(played) = clients.join_next().await {
                if let Ok(Err(error)) = played {
                    errors.push(error);
                }
            }
            let all_there = async {
                if errors.is_empty() {
                    join_all(contexts.iter().map(ActorContext::reaches_terminal)).await;
                }
            };
            // Clients that are done ask nothing more of the subject: once it is silent, a phase
            // that still waits for it waits in vain.
            tokio::select! {
                () = all_there => Ending::Complete,
                () = silence(shared, contexts, waits.settle, waits.gates) => Ending::SubjectDone,
            }
        };
        tokio::select! {
            ending = complete => ending,
            () = idle(shared, contexts, waits) => Ending::Idle,
            () = farewell(shared, waits.grace), if ends_with_sessions => return Ending::SubjectDone,
            () = handle.subject_done.cancelled() => Ending::SubjectDone,
        }
    };
    tokio::time::sleep(waits.grace).await;
    ending
}

/// Waits until something was seen, and then nothing more for as long as a subject may be silent; or until nobody came for as
/// long as one may stay away.
async fn idle(shared: &RunShared, contexts: &[ActorContext], waits: Waits<'_>) {
    let mut activity = shared.activity.subscribe();
    // A quick subject may have said all it has to say before this looks for the first time.
    let arrival = activity.wait_for(|messages| *messages > 0);
    match waits.gates.timeout(waits.arrival_limit, arrival).await {
        Some(Ok(_)) => {}
        Some(Err(_)) | None => return,
    }
    silence(shared, contexts, waits.idle_limit, waits.gates).await;
}

/// Silence is the subject's only while it waits neither for our answer nor for time to lead on.
async fn silence(
    shared: &RunShared,
    contexts: &[ActorContext],
    limit: Duration,
    gates: &GateClock,
) {
    let mut activity = shared.activity.subscribe();
    loop {
        let changed = gates.timeout(limit, activity.changed()).await;
        let ours = shared.owed.load(Ordering::Relaxed) > 0
            || contexts.iter().any(ActorContext::waits_for_time);
        match changed {
            Some(Ok(())) => {}
            None if ours => {}
            _ => return,
        }
    }
}

/// Waits until the subject has ended every session and waits for no answer, and stays away for the grace period. Who
/// speaks without sessions never says farewell.
async fn farewell(shared: &RunShared, grace: Duration) {
    let mut presence = shared.presence.subscribe();
    let mut activity = shared.activity.subscribe();
    loop {
        let gone = presence
            .wait_for(|presence| presence.is_over())
            .await
            .is_ok();
        if !gone {
            return std::future::pending().await;
        }
        activity.mark_unchanged();
        let came_back = async {
            tokio::select! {
                _ = activity.changed() => {}
                _ = presence.wait_for(|presence| !presence.is_over()) => {}
            }
        };
        if tokio::time::timeout(grace, came_back).await.is_err()
            && shared.owed.load(Ordering::Relaxed) == 0
        {
            return;
        }
    }
}

/// Gives everyone a moment to stop, then stops them.
async fn stop(
    mut tasks: JoinSet<Result<(), ActorError>>,
    mut clients: JoinSet<Result<(), ActorError>>,
    errors: &mut Vec<ActorError>,
) {
    const MOMENT: Duration = Duration::from_secs(3);
    let _ = tokio::time::timeout(MOMENT, async {
        for set in [&mut tasks, &mut clients] {
            while let Some(played) = set.join_next().await {
                if let Ok(Err(error)) = played {
                    errors.push(error);
                }
            }
        }
    })
    .await;
    tasks.shutdown().await;
    clients.shutdown().await;
}
