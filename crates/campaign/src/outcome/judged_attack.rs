//! One attack by itself, without a campaign around it: what it and its control come to.

use proofhouse_oatf::Document;
use proofhouse_range::{Ending, RunReport};

use super::{
    Conditions, ControlState, Deeds, InconclusiveReason, ObservedRun, RunOutcome, ended_early,
    failed_run, heard_answer, heard_last, is_task_done, settle,
};
use crate::document::Success;
use crate::matchable::blind;

/// What a run comes to, and why.
#[derive(Debug)]
pub struct JudgedAttack {
    /// What it comes to.
    pub outcome: RunOutcome,
    /// Why it is inconclusive, if it is.
    pub reason: Option<InconclusiveReason>,
    /// What holds and what does not.
    pub conditions: Conditions,
}

impl JudgedAttack {
    /// Judges a run by its verdict and what is known of its control; `None` where the document has no indicators.
    #[must_use]
    pub fn new(document: &Document, report: &RunReport, control: &ControlState) -> Option<Self> {
        let verdict = report.verdict.as_ref()?.attack.result;
        let (mut conditions, deeds) = seen(document, report, control);
        conditions.settle_exposed(&deeds, control);
        let broken = broken_by(report).map(|(by, _)| by);
        let (outcome, reason) = settle(Some(verdict), broken, &conditions);
        Some(Self {
            outcome,
            reason,
            conditions,
        })
    }
}

/// What a control run shows.
#[must_use]
pub fn control_state(
    document: &Document,
    success: Option<&Success>,
    report: &RunReport,
) -> ControlState {
    let answer = answer(document, report, heard_answer);
    let done = success.and_then(|success| is_task_done(success, report, answer.as_deref()));
    let (_, deeds) = seen(document, report, &ControlState::Pending);
    let broken = broken_by(report).map(|(_, why)| why);
    ControlState::from_run(done, broken.as_deref(), Some(Box::new(deeds)))
}

fn seen(document: &Document, report: &RunReport, control: &ControlState) -> (Conditions, Deeds) {
    let blind = blind(document);
    let answer = answer(document, report, heard_last);
    let observed = ObservedRun {
        report,
        answer: answer.as_deref(),
        answered_at: None,
        // Nobody says anything but the clients of the document.
        prompts: &[],
        blind: &blind,
        subject: "",
        // Channels are proved in campaigns.
        channels: None,
    };
    (Conditions::of(&observed, control), observed.deeds())
}

/// What the agent said to the clients of the document, to all that they asked or to the last.
fn answer(
    document: &Document,
    report: &RunReport,
    heard: fn(&RunReport, &[&str]) -> Option<String>,
) -> Option<String> {
    let actors = document.attack.execution.actors().iter();
    let clients: Vec<&str> = actors
        .filter(|actor| !actor.mode.is_server())
        .map(|actor| actor.name.as_str())
        .collect();
    heard(report, &clients)
}

/// What broke a run off, if something did.
#[must_use]
pub fn broken_by(report: &RunReport) -> Option<(InconclusiveReason, String)> {
    if let Some(error) = report.errors.first() {
        return Some((InconclusiveReason::AttackFailed, error.to_string()));
    }
    if let Some(why) = failed_run(report) {
        return Some((InconclusiveReason::SubjectFailed, why));
    }
    let why = ending_words(report.ending, false).to_owned();
    ended_early(report.ending).map(|by| (by, why))
}

/// Why a run ended, for people. `broke_off` is whether an actor could not go on.
#[must_use]
pub fn ending_words(ending: Ending, broke_off: bool) -> &'static str {
    match ending {
        Ending::Complete if broke_off => "an actor broke off",
        Ending::Complete => "every actor did its part",
        Ending::SubjectDone => "the agent ended its sessions, or fell silent after its last answer",
        Ending::Idle => "the agent did not connect, or was silent for too long (--idle-limit)",
        Ending::TimeUp => "the time was up (--max-session)",
        Ending::Interrupted => "interrupted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_broke_off_did_not_do_its_part() {
        assert_eq!(
            ending_words(Ending::Complete, false),
            "every actor did its part"
        );
        assert_eq!(ending_words(Ending::Complete, true), "an actor broke off");
        assert_eq!(ending_words(Ending::Interrupted, true), "interrupted");
    }
}
