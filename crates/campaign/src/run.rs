//! One run: the document's servers, the subject that is started for it, what the user says, and the record.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, LineWriter};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use proofhouse_detect::{RedactError, Redactor};
use proofhouse_oatf::Mode;
use proofhouse_range::{
    ActorEndpoint, ActorErrorKind, ConnectError, ConnectSubject, Ending, RunError, RunHandle,
    RunOptions, RunReport, offered_cards, offered_tools, run as run_range,
};
use proofhouse_subjects::{
    BenignOffers, LiveSubject, Pace, RunContext, Shutdown, Subject, SubjectAnswer, SubjectError,
};
use proofhouse_wire::gate::GateClock;
use proofhouse_wire::{CancellationToken, fnv};
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};

use crate::canaries::{CANARIES, CanariesError, fresh_for};
use crate::document::Script;
use crate::engine::CampaignSettings;
use crate::judging::{cut, error_line, indicators};
use crate::matchable::blind;
use crate::outcome::{
    Conditions, ControlState, InconclusiveReason, ObservedRun, ended_early, failed_run,
    heard_answer, heard_last, is_task_done, unfinished_tasks,
};
use crate::plan::PlannedRun;
use crate::probes::{NonceWatch, ProvenChannels};
use crate::result::{RunOutcome, RunRecord};
use crate::scratch::ScratchDirectory;
use crate::trace_digest::TraceDigest;

/// Warnings of a run that are kept.
const MAX_WARNINGS: usize = 10;

/// Lines of a subject's error output that are kept.
const MAX_STDERR_LINES: usize = 20;
/// Characters of each.
const MAX_STDERR_LINE: usize = 400;
/// Bytes of all of them.
const MAX_STDERR_BYTES: usize = 4_000;

/// Why a run came to nothing.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error("cannot make a directory for the run: {0}")]
    Directory(Arc<io::Error>),
    #[error(transparent)]
    Canaries(#[from] CanariesError),
    #[error("secrets cannot be kept out of the result: {0}")]
    Secrets(#[from] RedactError),
    /// What the attack said, without secrets.
    #[error("{message}")]
    Range {
        message: String,
        /// Whether it was the subject that could not be met.
        by_subject: bool,
    },
}

impl AttemptError {
    /// As what it counts.
    fn reason(&self) -> InconclusiveReason {
        match self {
            Self::Range {
                by_subject: true, ..
            } => InconclusiveReason::SubjectFailed,
            Self::Directory(_)
            | Self::Canaries(_)
            | Self::Secrets(_)
            | Self::Range {
                by_subject: false, ..
            } => InconclusiveReason::AttackFailed,
        }
    }
}

/// How a subject ended.
#[derive(Debug, Default)]
struct SubjectEnding {
    /// How it failed, if it did.
    crash: Option<String>,
    /// What of it was not done.
    unfinished: Option<String>,
}

/// Everything a run needs.
pub(crate) struct RunSetup {
    pub(crate) planned: PlannedRun,
    pub(crate) document: String,
    pub(crate) script: Arc<Script>,
    pub(crate) subject: Arc<dyn Subject>,
    pub(crate) name: String,
    pub(crate) settings: Arc<CampaignSettings>,
    /// Who may be in a run with the subject now, if not everyone.
    pub(crate) turns: Option<Arc<Semaphore>>,
    /// Where its directory is made, or why it cannot be.
    pub(crate) scratch: Result<Arc<ScratchDirectory>, Arc<io::Error>>,
    /// The directory of its trace, in that of the campaign.
    pub(crate) folder: &'static str,
    /// Which channels the subjects' models read.
    pub(crate) channels: Arc<ProvenChannels>,
    /// Looks for the code of a channel probe.
    pub(crate) watch: Option<Arc<NonceWatch>>,
}

impl RunSetup {
    /// An empty record of this run.
    pub(crate) fn record(&self) -> RunRecord {
        RunRecord {
            id: self.planned.id.clone(),
            document: self.document.clone(),
            subject: self.name.clone(),
            repeat: self.planned.repeat,
            twin: self.planned.twin,
            outcome: RunOutcome::Inconclusive,
            reason: Some(InconclusiveReason::AttackFailed),
            verdict: None,
            conditions: Conditions::default(),
            tier: None,
            reached: false,
            carriers: (0, 0),
            indicators: Vec::new(),
            task_done: None,
            answer: None,
            deeds: None,
            error: None,
            broken: None,
            broken_by: Some(InconclusiveReason::AttackFailed),
            warnings: Vec::new(),
            milliseconds: 0,
            messages: 0,
            tokens: None,
            trace: None,
            trace_digest: None,
            trace_lost: None,
            stderr: None,
            canaries: std::collections::BTreeMap::new(),
            guard: None,
        }
    }

    /// Makes the run; `None` when it was interrupted, and there is nothing to say.
    pub(crate) async fn make(mut self, cancel: CancellationToken) -> Option<RunRecord> {
        let mut record = self.record();
        let planted = self.plant(&mut record);
        let _turn = match &self.turns {
            None => None,
            Some(turns) => tokio::select! {
                turn = turns.acquire() => turn.ok(),
                () = cancel.cancelled() => return None,
            },
        };
        let started = Instant::now();
        let made = match planted {
            Ok(()) => self.attempt(&cancel, &mut record).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = made {
            record.error = Some(error_line(&error.to_string()));
            record.broken_by = Some(error.reason());
            record.settle(&ControlState::Pending);
        }
        // What a subject says on the way is worth keeping only where something went wrong.
        let went_well = record.outcome != RunOutcome::Inconclusive && record.broken.is_none();
        let is_done = record.twin && ControlState::of(&record).condition().held;
        if went_well || is_done {
            record.stderr = None;
        }
        record.milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        (!cancel.is_cancelled()).then_some(record)
    }

    /// Gives the canaries of the document the values of this run.
    fn plant(&mut self, record: &mut RunRecord) -> Result<(), CanariesError> {
        if !self.script.canaries.is_empty() {
            let (canaries, seed) = (&self.script.canaries, self.planned.seed);
            record.canaries = fresh_for(&self.script.document, canaries, seed);
            let kept = canaries
                .iter()
                .filter(|one| !record.canaries.contains_key(*one));
            let kept = kept.map(|one| {
                format!("canary `{one}` was not replaced: an indicator names a part of it that a fresh one does not have")
            });
            record.warnings.extend(kept);
            self.script = Arc::new(self.script.with_canaries(&record.canaries)?);
        }
        Ok(())
    }

    async fn attempt(
        &self,
        cancel: &CancellationToken,
        record: &mut RunRecord,
    ) -> Result<(), AttemptError> {
        let pace = self.subject.pace();
        let scratch = self.scratch.clone();
        let scratch = scratch.and_then(|scratch| scratch.run().map_err(Arc::new));
        let scratch = scratch.map_err(AttemptError::Directory)?;
        let secrets = self.subject.secrets();
        let redactor = Redactor::new(&secrets)?;
        let (handover, arrival) = oneshot::channel();
        let gates: Arc<GateClock> = Arc::default();
        let mut options = RunOptions {
            endpoints: self.places(),
            grace: pace.grace,
            settle: pace.quiet,
            ends_with_sessions: false,
            max_session: pace.deadline,
            gates: Arc::clone(&gates),
            new_threads: true,
            headers: self.subject.headers(),
            secrets: secrets.clone(),
            semantic: self.settings.semantic.clone(),
            generation: self.settings.generation.clone(),
            connect_subject: Some(self.connect_subject(
                scratch.path(),
                pace,
                cancel.clone(),
                handover,
                &gates,
            )),
            twin: self.script.twin.clone(),
            // Who is asked something says when it is done; until then, silence is thinking.
            ..RunOptions::patient(pace.deadline)
        };
        let digest = TraceDigest::new();
        if !record.canaries.is_empty() {
            let canaries = json!(record.canaries);
            options.trace_header.insert(CANARIES.to_owned(), canaries);
        }
        if let Some(directory) = &self.settings.directory {
            let file = trace_file(&self.planned.id);
            let folder = self.folder;
            match File::create(directory.join(folder).join(&file)) {
                Ok(output) => {
                    // A kill loses no message that was recorded, and cuts none in two.
                    options.trace = Some(Box::new(LineWriter::new(digest.of(output))));
                    record.trace = Some(format!("{folder}/{file}"));
                }
                // What came of the run is worth more than its recording.
                Err(error) => {
                    let lost = format!("{folder}/{file}: cannot write: {error}");
                    record.warnings.push(lost.clone());
                    record.trace_lost = Some(lost);
                }
            }
        }
        let handle = RunHandle::default();
        let mut live: Option<Box<dyn LiveSubject>> = None;
        let mut said = Ok(SubjectAnswer::default());
        let report = {
            let running = run_range(&self.script.document, options, &handle);
            let talking = talk(arrival, &mut live, &self.script.prompts);
            tokio::pin!(running, talking);
            let (mut talks, mut goes_on) = (true, true);
            loop {
                tokio::select! {
                    report = &mut running => break report,
                    outcome = &mut talking, if talks => {
                        talks = false;
                        // Clients go on until they have done their part.
                        if outcome.is_err() || !self.has_clients() {
                            handle.subject_is_done();
                        }
                        said = outcome;
                    }
                    () = cancel.cancelled(), if goes_on => {
                        goes_on = false;
                        handle.interrupt();
                    }
                }
            }
        };
        record.trace_digest = record.trace.as_ref().map(|_| digest.hex());
        let (mut crash, mut unfinished) = (None, None);
        if let Some(live) = live {
            let shutdown = tokio::time::timeout(pace.end, live.end()).await;
            let shutdown = shutdown.unwrap_or_else(|_| Shutdown {
                warnings: vec!["the subject did not end in time".to_owned()],
                ..Shutdown::default()
            });
            record.tokens = shutdown.tokens;
            record.guard = shutdown.guard.map(|mut counts| {
                for line in &mut counts.findings {
                    *line = error_line(&redactor.redact(line));
                }
                counts
            });
            crash = shutdown.failure;
            unfinished = shutdown.unfinished;
            record.stderr = shutdown
                .stderr
                .map(|text| last_lines(&redactor.redact(&text)));
            let warnings = shutdown.warnings.iter();
            let warnings = warnings.map(|text| error_line(&redactor.redact(text)));
            record.warnings.extend(warnings);
        }
        // What the subject says may hold what was said to it.
        let said = match said {
            Ok(SubjectAnswer { text, said_at }) => Ok(SubjectAnswer {
                text: text.map(|text| redactor.redact(&text).into_owned()),
                said_at,
            }),
            Err(SubjectError(message)) => Err(SubjectError(redactor.redact(&message).into_owned())),
        };
        let crash = crash.map(|why| redactor.redact(&why).into_owned());
        let report = report.map_err(|error| AttemptError::Range {
            message: redactor.redact(&error.to_string()).into_owned(),
            by_subject: is_by_subject(&error),
        })?;
        let ended = SubjectEnding { crash, unfinished };
        self.judge(&report, said, ended, &redactor, record);
        Ok(())
    }

    /// Where the servers listen, if the subject says so.
    fn places(&self) -> HashMap<String, ActorEndpoint> {
        let mut counts: HashMap<&Mode, u16> = HashMap::new();
        let mut places = HashMap::new();
        for actor in self.script.document.attack.execution.actors() {
            let Some(mut address) = self.subject.listen(&actor.mode) else {
                continue;
            };
            let count = counts.entry(&actor.mode).or_default();
            if address.port() != 0 {
                address.set_port(address.port().saturating_add(*count));
            }
            *count += 1;
            places.insert(actor.name.clone(), ActorEndpoint::Listen(address));
        }
        places
    }

    /// What the servers offer without the attack.
    fn benign_offers(&self) -> BenignOffers {
        let control = match &self.script.twin {
            Some(control) => control,
            None if self.planned.twin => &self.script.document,
            None => return BenignOffers::default(),
        };
        BenignOffers {
            tools: offered_tools(control),
            cards: offered_cards(control),
        }
    }

    fn has_clients(&self) -> bool {
        let actors = self.script.document.attack.execution.actors();
        actors.iter().any(|actor| !actor.mode.is_server())
    }

    /// Starts the subject when the servers are there.
    fn connect_subject(
        &self,
        directory: &Path,
        pace: Pace,
        cancel: CancellationToken,
        handover: oneshot::Sender<Box<dyn LiveSubject>>,
        gates: &Arc<GateClock>,
    ) -> ConnectSubject {
        let actors = self.script.document.attack.execution.actors();
        let callers: Vec<(String, Mode)> = actors
            .iter()
            .filter(|actor| !actor.mode.is_server())
            .map(|actor| (actor.name.clone(), actor.mode.clone()))
            .collect();
        let subject = Arc::clone(&self.subject);
        let mut context = RunContext {
            id: self.planned.id.clone(),
            directory: directory.to_owned(),
            servers: Vec::new(),
            clients: callers.iter().map(|(_, mode)| mode.clone()).collect(),
            seed: self.planned.seed,
            benign: self.benign_offers(),
            gates: Arc::clone(gates),
        };
        context.clients.sort();
        context.clients.dedup();
        Box::new(move |servers| {
            Box::pin(async move {
                context.servers = servers;
                let starting = tokio::time::timeout(pace.start, subject.start(&context));
                let started = tokio::select! {
                    started = starting => started,
                    () = cancel.cancelled() => return Err(ConnectError("interrupted".to_owned())),
                };
                let live = match started {
                    Ok(Ok(live)) => live,
                    Ok(Err(SubjectError(message))) => return Err(ConnectError(message)),
                    Err(_) => {
                        let seconds = pace.start.as_secs_f64();
                        return Err(ConnectError(format!(
                            "the subject was not ready within {seconds} s"
                        )));
                    }
                };
                let endpoints = endpoints(&*live, &callers)?;
                // The other end is there for as long as the run is.
                let _ = handover.send(live);
                Ok(endpoints)
            })
        })
    }

    /// Fills the record with what was seen.
    fn judge(
        &self,
        report: &RunReport,
        said: Result<SubjectAnswer, SubjectError>,
        ended: SubjectEnding,
        redactor: &Redactor,
        record: &mut RunRecord,
    ) {
        record.messages = report.messages;
        record.reached = report.exposure.reached;
        let carriers = &report.exposure.carriers;
        let armed = carriers.iter().filter(|carrier| carrier.armed > 0);
        record.carriers = (armed.count() as u64, carriers.len() as u64);
        let mut warnings: Vec<String> = report
            .warnings
            .iter()
            .map(|text| error_line(text))
            .collect();
        let (said, failure) = match said {
            Ok(said) => (said, None),
            Err(SubjectError(message)) => (SubjectAnswer::default(), Some(message)),
        };
        let SubjectAnswer {
            text: answer,
            said_at: answered_at,
        } = said;
        let actors = self.script.document.attack.execution.actors().iter();
        let clients: Vec<&str> = actors
            .filter(|actor| !actor.mode.is_server())
            .map(|actor| actor.name.as_str())
            .collect();
        let last = answer.clone().or_else(|| heard_last(report, &clients));
        let answer = answer.or_else(|| {
            let overheard = heard_answer(report, &clients)?;
            Some(redactor.redact(&overheard).into_owned())
        });
        record.answer = answer.as_deref().map(cut);
        if let Some(watch) = &self.watch {
            watch.look(&self.script.document, report, answer.as_deref());
        }
        if let Some(success) = &self.script.success {
            // An answer that nobody gave does not have the text.
            let done = is_task_done(success, report, answer.as_deref());
            record.task_done = Some(done.unwrap_or_default());
        }
        let failed = |by, why: String| (by, why);
        let broken = failure
            .map(|why| failed(InconclusiveReason::SubjectFailed, why))
            .or_else(|| Some(failed(InconclusiveReason::SubjectFailed, ended.crash?)))
            .or_else(|| Some(failed(InconclusiveReason::TimedOut, ended.unfinished?)))
            .or_else(|| {
                let first = report.errors.first()?;
                Some(failed(InconclusiveReason::AttackFailed, first.to_string()))
            })
            .or_else(|| {
                let why = failed_run(report)?;
                Some(failed(InconclusiveReason::SubjectFailed, why))
            })
            .or_else(|| self.ended_early(report.ending))
            .or_else(|| {
                Some(failed(
                    InconclusiveReason::TimedOut,
                    unfinished_tasks(report)?,
                ))
            });
        if let Some(verdict) = &report.verdict {
            record.verdict = Some(verdict.attack.result.as_str().to_owned());
            record.tier = verdict.attack.max_tier.map(|tier| tier.as_str().to_owned());
            record.indicators = indicators(verdict);
        }
        record.broken_by = broken.as_ref().map(|(by, _)| *by);
        record.broken = broken.map(|(_, why)| error_line(&why));
        let observed = ObservedRun {
            report,
            answer: last.as_deref(),
            answered_at,
            prompts: &self.script.prompts,
            blind: &blind(&self.script.document),
            subject: &self.name,
            // A control has no payload that it would have to read.
            channels: (!self.planned.twin).then_some(&*self.channels),
        };
        record.conditions = Conditions::of(&observed, &ControlState::Pending);
        if self.planned.twin || record.conditions.exposed.held {
            record.deeds = Some(observed.deeds());
        }
        record.settle(&self.control(record));
        if record.has_failed() {
            let diagnostic = report
                .verdict
                .as_ref()
                .and_then(|verdict| verdict.attack.diagnostic.as_deref());
            let why = record.broken.as_deref().or(diagnostic);
            record.error = Some(error_line(why.unwrap_or("there is no verdict")));
        } else if let Some(broken) = &record.broken {
            warnings.insert(0, broken.clone());
        }
        record.warnings.extend(warnings);
        record.warnings.truncate(MAX_WARNINGS);
    }
}

impl RunSetup {
    /// Why a run that ended like this says nothing, if so.
    fn ended_early(&self, ending: Ending) -> Option<(InconclusiveReason, String)> {
        let by = ended_early(ending)?;
        let seconds = self.subject.pace().deadline.as_secs_f64();
        let why = if by == InconclusiveReason::TimedOut {
            format!("the agent was not done within {seconds} s")
        } else {
            "the run was interrupted".to_owned()
        };
        Some((by, why))
    }

    /// What is known of the control while the run itself is all there is. A control is its own.
    fn control(&self, record: &RunRecord) -> ControlState {
        if record.twin {
            ControlState::of(record)
        } else if self.script.twin.is_some() {
            ControlState::Pending
        } else {
            no_control()
        }
    }
}

/// Whether a run could not begin because of its subject: it did not start, or does not answer at its address.
fn is_by_subject(error: &RunError) -> bool {
    match error {
        RunError::Subject(_) => true,
        RunError::Actor(error) => error.kind == ActorErrorKind::Unreachable,
        RunError::NoDriver { .. }
        | RunError::DeliveryModifiers(_)
        | RunError::Indicators(_)
        | RunError::Secret(_) => false,
    }
}

/// The document has no control.
pub(crate) fn no_control() -> ControlState {
    ControlState::Absent {
        why: "the document names no control (`x-proofhouse.twin`)".to_owned(),
    }
}

/// Where the clients of a document meet the subject.
fn endpoints(
    live: &dyn LiveSubject,
    callers: &[(String, Mode)],
) -> Result<HashMap<String, ActorEndpoint>, ConnectError> {
    let mut endpoints = HashMap::new();
    for (actor, mode) in callers {
        let endpoint = live.endpoint(mode).ok_or_else(|| {
            let protocol = mode.protocol_text().replace('_', "-");
            let protocol = protocol.to_uppercase();
            ConnectError(format!(
                "the subject cannot be reached over {protocol}, which actor `{actor}` needs"
            ))
        })?;
        endpoints.insert(actor.clone(), endpoint);
    }
    Ok(endpoints)
}

/// Says what the user says, one after the other, and returns the last answer.
async fn talk(
    arrival: oneshot::Receiver<Box<dyn LiveSubject>>,
    live: &mut Option<Box<dyn LiveSubject>>,
    prompts: &[String],
) -> Result<SubjectAnswer, SubjectError> {
    let Ok(arrived) = arrival.await else {
        // The run ends by itself, and says why.
        return std::future::pending().await;
    };
    let live = live.insert(arrived);
    let mut last = SubjectAnswer::default();
    for prompt in prompts {
        last = live.prompt(prompt).await?;
    }
    Ok(last)
}

/// The last lines of a text: programs put the cause last.
fn last_lines(text: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut length = 0;
    for line in text.lines().rev().filter(|line| !line.trim().is_empty()) {
        let line: String = line.chars().take(MAX_STDERR_LINE).collect();
        length += line.len();
        if kept.len() == MAX_STDERR_LINES || length > MAX_STDERR_BYTES {
            break;
        }
        kept.push(line);
    }
    kept.reverse();
    kept.join("\n")
}

/// The name of a run's trace.
fn trace_file(id: &str) -> String {
    file_name(id, ".jsonl")
}

/// The name of a file for what has this id: what cannot be in a file's name is written otherwise.
pub(crate) fn file_name(id: &str, end: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') => c,
        _ => '_',
    };
    let name: String = id.chars().map(plain).take(150).collect();
    let hash = fnv::hash_32(id.bytes());
    // Different names stay different, whatever was replaced.
    format!("{}-{hash:08x}{end}", name.trim_start_matches('.'))
}

/// The directory of the traces of runs, in that of a campaign.
pub(crate) const TRACES: &str = "traces";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_complaint_is_kept() {
        let text: String = (1..=100)
            .map(|number| format!("line {number}\n\n"))
            .collect();
        let kept = last_lines(&text);
        assert_eq!(kept.lines().count(), MAX_STDERR_LINES);
        assert!(
            kept.starts_with("line 81\n") && kept.ends_with("line 100"),
            "{kept}"
        );
        assert_eq!(
            last_lines(&"é".repeat(10_000)).chars().count(),
            MAX_STDERR_LINE
        );
        assert_eq!(last_lines("\n \n"), "");
    }

    #[test]
    fn names_of_traces_are_names_of_files() {
        assert_eq!(trace_file("A-1/sim:x/1"), "A-1_sim_x_1-53c4a0dc.jsonl");
        assert_ne!(trace_file("a/b"), trace_file("a_b"));
        assert!(!trace_file("../../x").starts_with('.'));
        assert!(trace_file(&"é".repeat(1000)).len() < 200);
    }
}
