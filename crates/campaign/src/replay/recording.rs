//! The recording of a run, read to its end and handed on message by message.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use proofhouse_detect::{LineError, TraceItem, TraceMessage, TraceReader};

use super::ReplayError;
use crate::result::{CampaignResult, RunRecord};
use crate::trace_digest::TraceDigest;

/// Messages of a run that are shown; longer conversations are read in the recording itself.
const MAX_SHOWN: usize = 1_000;
/// Bytes of messages of all runs that are held to be shown, about.
const MAX_SHOWN_BYTES: usize = 256 << 20;
/// Problems of a recording that are kept.
const MAX_PROBLEMS: usize = 20;

/// Messages of one run that a report shows.
const MAX_REPORTED: usize = 500;
/// Messages of all runs together; a page with more is no page.
const MAX_REPORTED_IN_ALL: usize = 50_000;

/// The messages of runs, by the id of the run.
pub type Traces = BTreeMap<String, Vec<TraceMessage>>;

/// What was read of a recording.
#[derive(Debug, Default)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// The first messages.
    pub shown: Vec<TraceMessage>,
    /// All messages.
    pub messages: u64,
    /// The first things that are wrong with it.
    pub problems: Vec<LineError>,
    /// Lines that were skipped.
    pub skipped: u64,
    /// Places where messages are missing, or another recording begins.
    pub breaks: u64,
    /// Why reading ended early.
    pub broke_off: Option<String>,
    /// Whether it is not what the run wrote.
    pub is_changed: bool,
}

impl Recording {
    /// Whether it is what was recorded: no line was skipped, and every message is there, and nothing else.
    #[must_use]
    pub fn is_whole(&self, record: &RunRecord) -> bool {
        self.skipped == 0
            && self.breaks == 0
            && self.broke_off.is_none()
            && !self.is_changed
            && self.messages >= record.messages
    }
}

/// How many bytes of messages may still be held to be shown.
#[derive(Debug)]
pub struct MessageBudget(usize);

impl MessageBudget {
    /// Room for what people can read, or for nothing.
    #[must_use]
    pub fn new(shown: bool) -> Self {
        Self(if shown { MAX_SHOWN_BYTES } else { 0 })
    }
}

/// Reads the recording of a run, and hands each message on.
pub(super) fn read(
    directory: &Path,
    record: &RunRecord,
    room: &mut MessageBudget,
    mut hand_on: impl FnMut(&TraceMessage),
) -> Result<Recording, ReplayError> {
    let Some(trace) = &record.trace else {
        return Err(ReplayError::NotRecorded);
    };
    // A result that was made elsewhere must not make us read elsewhere.
    if !trace.starts_with("traces/") || trace.contains("..") {
        return Err(ReplayError::ElsewhereRecorded(trace.clone()));
    }
    let path = directory.join(trace);
    let unreadable = |error: std::io::Error| ReplayError::Unreadable {
        path: path.clone(),
        reason: error.to_string(),
    };
    match std::fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(ReplayError::NoFile(path)),
        Err(error) => return Err(unreadable(error)),
    }
    let file = File::open(&path).map_err(unreadable)?;
    let mut recording = Recording {
        path,
        ..Recording::default()
    };
    let digest = TraceDigest::new();
    for item in TraceReader::new(BufReader::new(digest.of(file))) {
        match item {
            Ok(TraceItem::Message { message, .. }) => {
                recording.messages += 1;
                hand_on(&message);
                if recording.shown.len() < MAX_SHOWN && room.0 > 0 {
                    let size = message.content.to_string().len();
                    room.0 = room.0.saturating_sub(size);
                    recording.shown.push(message);
                }
            }
            Ok(TraceItem::Problem(problem)) => {
                recording.skipped += u64::from(!problem.kind.is_warning());
                recording.breaks += u64::from(problem.kind.breaks_run());
                if recording.problems.len() < MAX_PROBLEMS {
                    recording.problems.push(problem);
                }
            }
            Err(error) => {
                recording.broke_off = Some(error.to_string());
                break;
            }
        }
    }
    let written = record.trace_digest.as_ref();
    recording.is_changed =
        recording.broke_off.is_none() && written.is_some_and(|written| *written != digest.hex());
    if recording.messages == 0 && (recording.skipped > 0 || recording.broke_off.is_some()) {
        let first = recording.problems.first().map(ToString::to_string);
        let why = recording.broke_off.or(first).unwrap_or_default();
        return Err(ReplayError::NoRecording {
            path: recording.path,
            reason: why,
        });
    }
    Ok(recording)
}

/// The recordings of a campaign, as far as a report shows them. One that cannot be read is left out: the result has what matters.
#[must_use]
pub fn traces(result: &CampaignResult, directory: &Path) -> Traces {
    let mut traces = Traces::new();
    let mut left = MAX_REPORTED_IN_ALL;
    for run in &result.runs {
        // A result that was made elsewhere must not make us read elsewhere.
        let is_ours = |file: &&String| file.starts_with("traces/") && !file.contains("..");
        let Some(file) = run.trace.as_ref().filter(is_ours) else {
            continue;
        };
        let Ok(file) = File::open(directory.join(file)) else {
            continue;
        };
        let messages: Vec<TraceMessage> = TraceReader::new(BufReader::new(file))
            .map_while(Result::ok)
            .filter_map(|item| match item {
                TraceItem::Message { message, .. } => Some(message),
                TraceItem::Problem(_) => None,
            })
            .take(MAX_REPORTED.min(left))
            .collect();
        left -= messages.len();
        traces.insert(run.id.clone(), messages);
    }
    traces
}
