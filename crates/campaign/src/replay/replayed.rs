//! A run that was replayed: what it came to then and now, why that differs, and how sure it is.

use proofhouse_detect::TraceMessage;

use super::ReplayError;
use super::find::KeptCampaign;
use super::judge::ReplayedRun;
use super::recording::{self, MessageBudget, Recording};
use super::sources::{DocumentState, Sources};
use crate::gates::Gate;
use crate::result::{CampaignResult, DocumentInfo, RunOutcome, RunRecord};

/// A run, replayed.
pub struct Replayed<'k> {
    /// The result that has it.
    pub result: &'k CampaignResult,
    /// Its record.
    pub record: &'k RunRecord,
    /// The document in the result.
    pub info: Option<&'k DocumentInfo>,
    /// What came of it, or why it cannot be judged again.
    pub again: Result<Again, ReplayError>,
}

/// What a run comes to now.
pub struct Again {
    /// What it comes to.
    pub judged: ReplayedRun,
    /// What was read of its recording.
    pub recording: Recording,
    /// The document that judged it.
    pub document: String,
    /// How that document relates to the one that was run.
    pub state: DocumentState,
    /// What the user said.
    pub prompts: Vec<String>,
}

/// Replays one run.
pub fn replay<'k>(
    kept: &'k KeptCampaign,
    place: usize,
    sources: &mut Sources<'_>,
    room: &mut MessageBudget,
) -> Replayed<'k> {
    let record = &kept.result.runs[place];
    let mut documents = kept.result.documents.iter();
    Replayed {
        result: &kept.result,
        record,
        info: documents.find(|info| info.id == record.document),
        again: again(kept, record, sources, room),
    }
}

fn again(
    kept: &KeptCampaign,
    record: &RunRecord,
    sources: &mut Sources<'_>,
    room: &mut MessageBudget,
) -> Result<Again, ReplayError> {
    let source = sources
        .of(kept, &record.document)
        .as_ref()
        .map_err(Clone::clone)?;
    let judge = source.judge(record)?;
    let mut judging = judge.begin();
    let feed = |message: &TraceMessage| judging.feed(message);
    let recording = recording::read(&kept.directory, record, room, feed)?;
    Ok(Again {
        judged: judging.end(record),
        recording,
        document: source.name.clone(),
        state: source.state,
        prompts: source.prompts(record),
    })
}

impl Replayed<'_> {
    /// Whether the verdict is another one now.
    #[must_use]
    pub fn differs(&self) -> bool {
        let again = self.again.as_ref();
        again.is_ok_and(|again| again.judged.differs(self.record))
    }

    /// Whether the answer can be trusted: the run did not fail, and its recording is whole.
    fn is_sure(&self) -> bool {
        let again = self.again.as_ref();
        again.is_ok_and(|again| {
            again.recording.is_whole(self.record)
                && again
                    .judged
                    .reason
                    .is_none_or(|reason| !reason.is_failure())
        })
    }

    /// Why the verdict differs, a line each: what indicators say now, and what is not as it was.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let Ok(again) = &self.again else {
            return Vec::new();
        };
        let mut reasons = Vec::new();
        for change in again.judged.changes(self.record) {
            let (then, now) = (change.then.as_deref(), change.now.as_deref());
            let mut reason = match (then, now) {
                (Some(then), Some(now)) => format!("{}: {then} then, {now} now", change.id),
                (Some(then), None) => {
                    format!("{}: {then} then, not in the document now", change.id)
                }
                (_, now) => format!(
                    "{}: not in the document then, {} now",
                    change.id,
                    now.unwrap_or("gone")
                ),
            };
            if let Some(why) = again.judged.reasons.get(&change.id) {
                reason.push_str(&format!(" ({why})"));
            }
            reasons.push(reason);
        }
        let recording = &again.recording;
        if recording.skipped > 0 {
            reasons.push(format!(
                "{} lines of the recording were skipped",
                recording.skipped
            ));
        }
        if recording.breaks > 0 {
            reasons.push(format!(
                "messages are missing in the recording, or others were added, at {} places",
                recording.breaks
            ));
        }
        if recording.is_changed {
            reasons
                .push("the recording was changed after the run: its digest is another".to_owned());
        }
        if let Some(error) = &recording.broke_off {
            reasons.push(format!("the recording breaks off: {error}"));
        }
        if recording.messages < self.record.messages {
            reasons.push(format!(
                "the recording has {} messages, the run had {}",
                recording.messages, self.record.messages
            ));
        }
        match again.state {
            DocumentState::Changed => {
                reasons.push("the document has changed since the run".to_owned());
            }
            DocumentState::Given => reasons.push(format!("judged by {}", again.document)),
            DocumentState::AsRun => {}
        }
        let version = env!("CARGO_PKG_VERSION");
        if self.result.proofhouse != version {
            reasons.push(format!(
                "the run was judged by version {}, this is {version}",
                self.result.proofhouse
            ));
        }
        if reasons.is_empty() {
            // The same indicators with the same results, which another correlation puts together.
            reasons.push("the same indicators come to another verdict".to_owned());
        }
        reasons
    }
}

/// What replayed runs come to. That a run cannot be judged again comes before everything. With `on_change`, only
/// differences count; otherwise the verdicts do, those of twins only when nothing but twins was replayed. A campaign
/// that broke off has not passed: nobody knows what its other runs would have come to.
#[must_use]
pub fn gate(replayed: &[Replayed<'_>], found: &[KeptCampaign], on_change: bool) -> Gate {
    if replayed.iter().any(|one| one.again.is_err()) {
        return Gate::NotJudged;
    }
    let only_twins = replayed.iter().all(|one| one.record.twin);
    let counts = |one: &&Replayed<'_>| on_change || only_twins || !one.record.twin;
    let outcome = |one: &Replayed<'_>| {
        let again = one.again.as_ref().ok();
        again.map(|again| again.judged.outcome)
    };
    let failed = |one: &Replayed<'_>| {
        if on_change {
            one.differs()
        } else {
            outcome(one).is_some_and(RunOutcome::gave_way)
        }
    };
    if replayed.iter().filter(counts).any(failed) {
        return Gate::Failed;
    }
    // What was an error and still is one has not changed.
    let is_sure = |one: &Replayed<'_>| {
        if on_change {
            let again = one.again.as_ref();
            again.is_ok_and(|again| again.recording.is_whole(one.record))
        } else {
            one.is_sure()
        }
    };
    let is_broken_off = |kept: &KeptCampaign| kept.is_whole && !kept.result.complete;
    if found.iter().any(is_broken_off) || !replayed.iter().filter(counts).all(is_sure) {
        return Gate::Inconclusive;
    }
    let proves = |one: &Replayed<'_>| outcome(one).is_some_and(RunOutcome::counts);
    if on_change || replayed.iter().filter(counts).any(proves) {
        Gate::Passed
    } else {
        Gate::NothingProved
    }
}
