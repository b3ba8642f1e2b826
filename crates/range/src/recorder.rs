//! The record of a run: every message in the trace, judged as it comes, and told to who watches.

use std::borrow::Cow;
use std::io::Write;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use proofhouse_detect::{
    DocumentVerdict, Evidence, LineError, REDACTED, Redactor, ScanFinding, ScanOutcome,
    ScanSession, Scanner, TraceMessage, TraceWriter,
};
use proofhouse_oatf::{AdvanceReason, Direction, LogLevel, Protocol};
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value};

use crate::driver::ActorError;

/// Something that happened in a run, for a live view.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunEvent {
    /// An actor is ready.
    Ready {
        /// The actor.
        actor: String,
        /// Where the subject finds it.
        address: Option<String>,
    },
    /// An actor entered a phase.
    Phase {
        /// The actor.
        actor: String,
        /// The phase.
        phase: String,
        /// Why the one before ended.
        reason: Option<AdvanceReason>,
    },
    /// A message went one way or the other.
    Message {
        /// The actor.
        actor: String,
        /// Its number in the trace.
        sequence: u64,
        /// The operation.
        operation: String,
        /// The protocol role.
        direction: Direction,
    },
    /// An indicator matched.
    Matched {
        /// The indicator.
        indicator: String,
        /// What it matched.
        evidence: Evidence,
    },
    /// Something went wrong that the run survives.
    Warning {
        /// The actor, if it is one's.
        actor: Option<String>,
        /// What happened.
        message: String,
    },
    /// The document says something to the operator.
    Log {
        /// The actor.
        actor: String,
        /// How loud.
        level: LogLevel,
        /// The text.
        message: String,
    },
}

/// Hears what happens. It must not block: it is called while messages wait.
pub type RunObserver = Arc<dyn Fn(&RunEvent) + Send + Sync>;

/// How much of a trace is kept in memory; the rest is judged, counted, and written to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLimits {
    /// Messages.
    pub max_messages: usize,
    /// Bytes of their content.
    pub max_bytes: usize,
    /// Warnings that are kept.
    pub max_warnings: usize,
}

impl Default for TraceLimits {
    fn default() -> Self {
        Self {
            max_messages: 10_000,
            max_bytes: 16 << 20,
            max_warnings: 1_000,
        }
    }
}

/// How much of one warning is told: what it quotes may be as long as a message.
const MAX_WARNING_BYTES: usize = 1_000;

/// A trace on its way to a file.
pub(crate) type TraceOutput = TraceWriter<Box<dyn Write + Send>>;

pub(crate) struct RunRecorder {
    inner: Mutex<RecorderState>,
    observer: Option<RunObserver>,
    limits: TraceLimits,
    secrets: Option<RunSecrets>,
}

/// What must not leave a run, in whatever it tells.
pub(crate) struct RunSecrets {
    pub(crate) redactor: Redactor,
    pub(crate) plain: Vec<String>,
}

impl RunSecrets {
    /// The fewest characters of a secret that are taken for its beginning.
    const SHORTEST_BEGINNING: usize = 4;

    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = self.redactor.redact(text);
        // What was shortened before it came here may end in the beginning of a secret.
        let Some(kept) = text.strip_suffix('…') else {
            return text;
        };
        let beginning = |secret: &String| {
            let ends = secret.char_indices().map(|(end, _)| end);
            let ends = ends.skip(Self::SHORTEST_BEGINNING);
            ends.filter(|end| kept.ends_with(&secret[..*end])).last()
        };
        match self.plain.iter().filter_map(beginning).max() {
            Some(length) => Cow::Owned(format!("{}{REDACTED}…", &kept[..kept.len() - length])),
            None => text,
        }
    }
}

struct RecorderState {
    session: Option<ScanSession<'static>>,
    output: Option<TraceOutput>,
    kept: Vec<TraceMessage>,
    kept_bytes: usize,
    messages: u64,
    warnings: Vec<String>,
    warned: u64,
}

/// What is left of a run's record.
pub(crate) struct FinishedRecording {
    pub(crate) session: Option<ScanSession<'static>>,
    pub(crate) kept: Vec<TraceMessage>,
    pub(crate) messages: u64,
    pub(crate) warnings: Vec<String>,
}

/// A message to be recorded.
pub(crate) struct RecordedMessage<'a> {
    pub(crate) actor: &'a str,
    pub(crate) phase: &'a str,
    pub(crate) protocol: &'a Protocol,
    pub(crate) operation: &'a str,
    pub(crate) direction: Direction,
    pub(crate) content: &'a Value,
    pub(crate) raw: Option<Value>,
}

/// What the observer has not heard yet of a message that was recorded.
#[must_use = "the observer wants to hear of it"]
pub(crate) struct Untold {
    /// The number of the message in the trace.
    pub(crate) sequence: u64,
    message: RunEvent,
    matched: Vec<ScanFinding>,
    /// Messages in pieces that were judged in parts.
    in_parts: Vec<LineError>,
    failed: Option<std::io::Error>,
}

impl Untold {
    /// What was judged in parts, for people: each a message that is longer than what is held of one.
    pub(crate) fn in_parts(&self) -> impl Iterator<Item = &str> {
        self.in_parts.iter().map(|part| part.message.as_str())
    }
}

impl RunRecorder {
    pub(crate) fn new(
        scanner: Option<&Arc<Scanner>>,
        output: Option<TraceOutput>,
        secrets: Option<RunSecrets>,
        observer: Option<RunObserver>,
        limits: TraceLimits,
    ) -> Self {
        Self {
            inner: Mutex::new(RecorderState {
                session: scanner.map(Scanner::shared_session),
                output,
                kept: Vec::new(),
                kept_bytes: 0,
                messages: 0,
                warnings: Vec::new(),
                warned: 0,
            }),
            observer,
            limits,
            secrets,
        }
    }

    /// How many messages were recorded until now.
    pub(crate) fn messages(&self) -> u64 {
        self.lock().messages
    }

    pub(crate) fn header(&self, metadata: &Map<String, Value>) {
        let mut inner = self.lock();
        if let Some(output) = &mut inner.output
            && let Err(error) = output.write_header(metadata)
        {
            inner.output = None;
            drop(inner);
            self.warn(None, &format!("the trace cannot be written: {error}"));
        }
    }

    /// Writes a message down and judges it. What is to be told of it is returned, for [`tell_all`](Self::tell_all).
    pub(crate) fn record(&self, recorded: RecordedMessage<'_>) -> Untold {
        let mut message = TraceMessage {
            sequence: 0,
            time: Some(Timestamp::now().to_string()),
            actor: Some(recorded.actor.to_owned()),
            phase: Some(recorded.phase.to_owned()),
            direction: Some(recorded.direction),
            raw: recorded.raw,
            ..TraceMessage::new(
                recorded.protocol.clone(),
                recorded.operation,
                recorded.content.clone(),
            )
        };
        let mut failed = None;
        let mut matched = Vec::new();
        let mut in_parts = Vec::new();
        let sequence = {
            let mut inner = self.lock();
            let inner = &mut *inner;
            inner.messages += 1;
            message.sequence = inner.messages;
            if let Some(output) = &mut inner.output
                && let Err(error) = output.write(&message)
            {
                // A full disk costs the file, never the run.
                inner.output = None;
                failed = Some(error);
            }
            if let Some(session) = &mut inner.session {
                if self.observer.is_some() {
                    matched = session.feed_and_tell(&message);
                } else {
                    session.feed(&message);
                }
                in_parts = session.take_in_parts();
            }
            let sequence = message.sequence;
            inner.keep(message, self.limits);
            sequence
        };
        Untold {
            sequence,
            message: RunEvent::Message {
                actor: recorded.actor.to_owned(),
                sequence,
                operation: recorded.operation.to_owned(),
                direction: recorded.direction,
            },
            matched,
            in_parts,
            failed,
        }
    }

    /// Tells what there is to tell of a message.
    pub(crate) fn tell_all(&self, untold: Untold) {
        self.tell(&untold.message);
        self.tell_matched(untold.matched);
        for problem in untold.in_parts {
            self.warn(None, &problem.message);
        }
        if let Some(error) = untold.failed {
            self.warn(None, &format!("the trace cannot be written: {error}"));
        }
    }

    fn tell_matched(&self, matched: Vec<ScanFinding>) {
        for found in matched {
            if let ScanOutcome::Matched(evidence) = found.outcome {
                let indicator = self.indicator(found.document, found.indicator);
                self.tell(&RunEvent::Matched {
                    indicator,
                    evidence,
                });
            }
        }
    }

    fn indicator(&self, document: usize, indicator: usize) -> String {
        let inner = self.lock();
        inner
            .session
            .as_ref()
            .and_then(|session| session.scanner().documents().nth(document))
            .and_then(|(_, document)| document.attack.indicators().get(indicator)?.id.clone())
            .unwrap_or_default()
    }

    pub(crate) fn warn(&self, actor: Option<&str>, message: &str) {
        // Secrets go first: one that is cut in two is not found any more.
        let message = self.redact(message);
        let end = message.floor_char_boundary(MAX_WARNING_BYTES);
        let message = &message[..end];
        {
            let mut inner = self.lock();
            inner.warned += 1;
            if inner.warnings.len() < self.limits.max_warnings {
                let line = match actor {
                    Some(actor) => format!("{actor}: {message}"),
                    None => message.to_owned(),
                };
                inner.warnings.push(line);
            }
        }
        self.tell(&RunEvent::Warning {
            actor: actor.map(str::to_owned),
            message: message.to_owned(),
        });
    }

    pub(crate) fn tell(&self, event: &RunEvent) {
        let Some(observer) = &self.observer else {
            return;
        };
        if self.secrets.is_none() {
            return observer(event);
        }
        let mut event = event.clone();
        match &mut event {
            RunEvent::Ready { address, .. } => {
                if let Some(address) = address {
                    self.clean(address);
                }
            }
            RunEvent::Matched { evidence, .. } => self.clean_evidence(evidence),
            RunEvent::Warning { message, .. } | RunEvent::Log { message, .. } => {
                self.clean(message);
            }
            RunEvent::Phase { .. } => {}
            RunEvent::Message { operation, .. } => self.clean(operation),
        }
        observer(&event);
    }

    /// A text that leaves the run, without secrets.
    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.secrets {
            Some(secrets) => secrets.redact(text),
            None => Cow::Borrowed(text),
        }
    }

    /// Whether there is anything that must not leave.
    pub(crate) fn has_secrets(&self) -> bool {
        self.secrets.is_some()
    }

    /// Takes secrets out of a text.
    pub(crate) fn clean(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    fn clean_evidence(&self, evidence: &mut Evidence) {
        self.clean(&mut evidence.path);
        self.clean(&mut evidence.text);
        if let Some(reason) = &mut evidence.reason {
            self.clean(reason);
        }
    }

    /// Takes secrets out of everything that a verdict quotes.
    pub(crate) fn clean_verdict(&self, verdict: &mut DocumentVerdict) {
        if let Some(diagnostic) = &mut verdict.attack.diagnostic {
            self.clean(diagnostic);
        }
        for judged in &mut verdict.attack.indicator_verdicts {
            if let Some(evidence) = &mut judged.evidence {
                self.clean(evidence);
            }
        }
        for found in &mut verdict.indicators {
            if let Some(reason) = &mut found.reason {
                self.clean(reason);
            }
            for evidence in &mut found.evidence {
                self.clean_evidence(evidence);
            }
        }
    }

    /// Takes secrets out of what an actor says at its end.
    pub(crate) fn clean_error(&self, error: &mut ActorError) {
        self.clean(&mut error.message);
    }

    /// Ends the record: the file is flushed, what was found is handed out.
    pub(crate) fn finish(&self) -> FinishedRecording {
        // What the subject has not ended was cut off, and is judged as it stands.
        let matched = self.lock().session.as_mut().map(ScanSession::finish);
        self.tell_matched(matched.unwrap_or_default());
        let (output, record) = {
            let mut inner = self.lock();
            let dropped = inner.warned - inner.warnings.len() as u64;
            if dropped > 0 {
                inner.warnings.push(format!("{dropped} more warnings"));
            }
            let record = FinishedRecording {
                session: inner.session.take(),
                kept: std::mem::take(&mut inner.kept),
                messages: inner.messages,
                warnings: std::mem::take(&mut inner.warnings),
            };
            (inner.output.take(), record)
        };
        let mut record = record;
        if let Some(output) = output
            && let Err(error) = output.finish()
        {
            record
                .warnings
                .push(format!("the trace cannot be written: {error}"));
        }
        record
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RecorderState> {
        lock(&self.inner)
    }
}

impl RecorderState {
    fn keep(&mut self, message: TraceMessage, limits: TraceLimits) {
        if self.kept.len() >= limits.max_messages || self.kept_bytes >= limits.max_bytes {
            return;
        }
        self.kept_bytes += weight(&message.content) + message.raw.as_ref().map_or(0, weight);
        self.kept.push(message);
    }
}

/// About how many bytes a value holds.
fn weight(value: &Value) -> usize {
    16 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| key.len() + weight(value))
            .sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_leave_whole_or_cut() {
        let plain = vec!["sk-live-123456".to_owned()];
        let secrets = RunSecrets {
            redactor: Redactor::new(&plain).unwrap(),
            plain,
        };
        for (text, expected) in [
            ("key sk-live-123456 here", "key [redacted] here"),
            ("key sk-live-12…", "key [redacted]…"),
            ("key sk-…", "key sk-…"),
            ("nothing…", "nothing…"),
        ] {
            assert_eq!(secrets.redact(text), expected);
        }
    }

    #[test]
    fn everything_that_is_told_is_redacted() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&told);
        let plain = vec!["sk-live-123456".to_owned()];
        let recorder = RunRecorder::new(
            None,
            None,
            Some(RunSecrets {
                redactor: Redactor::new(&plain).unwrap(),
                plain,
            }),
            Some(Arc::new(move |event: &RunEvent| {
                hears.lock().unwrap().push(format!("{event:?}"));
            })),
            TraceLimits::default(),
        );
        // The secret stands where a warning is cut.
        let long = format!("{}sk-live-123456", "x".repeat(MAX_WARNING_BYTES - 6));
        recorder.warn(None, &long);
        recorder.tell(&RunEvent::Log {
            actor: "a".to_owned(),
            level: LogLevel::Info,
            message: "sk-live-123456".to_owned(),
        });
        recorder.tell(&RunEvent::Matched {
            indicator: "i".to_owned(),
            evidence: Evidence {
                sequence: 1,
                line: None,
                pieces: None,
                time: None,
                path: "a.sk-live-123456".to_owned(),
                text: "sk-live-123456".to_owned(),
                reason: Some("sk-live-123456".to_owned()),
            },
        });
        let told = told.lock().unwrap().join("\n");
        assert_eq!(told.lines().count(), 3);
        assert!(!told.contains("sk-l"), "{told}");
        assert!(!recorder.finish().warnings.concat().contains("sk-l"));
    }
}
