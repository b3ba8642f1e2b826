//! What came of an attack, for people and for programs.

use std::time::Duration;

use proofhouse_campaign::document::Success;
use proofhouse_campaign::matchable::blind;
use proofhouse_campaign::outcome::{
    Conditions, ControlState, InconclusiveReason, ObservedRun, RunOutcome, ended_early, failed_run,
    heard_answer, heard_last, is_task_done, settle,
};
use proofhouse_oatf::Document;
use proofhouse_range::{Ending, RunReport};
use serde_json::{Value, json};

use super::{plural, scan};
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, printable_line};
use crate::planted::Planted;

/// The version of the JSON form; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// How many carriers that were not delivered are named.
const NAMED: usize = 5;

/// What a run comes to, and why.
pub(crate) struct JudgedAttack {
    pub(crate) outcome: RunOutcome,
    reason: Option<InconclusiveReason>,
    conditions: Conditions,
}

impl JudgedAttack {
    /// Judges a run by its verdict and what is known of its control; `None` where the document has no indicators.
    pub(crate) fn new(
        document: &Document,
        report: &RunReport,
        control: &ControlState,
    ) -> Option<Self> {
        let verdict = report.verdict.as_ref()?.attack.result;
        let conditions = conditions(document, report, control);
        let broken = broken(report).map(|(by, _)| by);
        let (outcome, reason) = settle(Some(verdict), broken, &conditions);
        Some(Self {
            outcome,
            reason,
            conditions,
        })
    }
}

/// What a control run shows.
pub(crate) fn control_state(
    document: &Document,
    success: Option<&Success>,
    report: &RunReport,
) -> ControlState {
    let answer = answer(document, report, heard_answer);
    let done = success.and_then(|success| is_task_done(success, report, answer.as_deref()));
    let acted = conditions(document, report, &ControlState::Pending)
        .exposed
        .held;
    let broken = broken(report).map(|(_, why)| why);
    ControlState::from_run(done, broken.as_deref(), acted)
}

fn conditions(document: &Document, report: &RunReport, control: &ControlState) -> Conditions {
    let blind = blind(document);
    let answer = answer(document, report, heard_last);
    let observed = ObservedRun {
        report,
        answer: answer.as_deref(),
        answered_at: None,
        blind: &blind,
        subject: "",
        // Channels are proved in campaigns.
        channels: None,
    };
    Conditions::of(&observed, control)
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
fn broken(report: &RunReport) -> Option<(InconclusiveReason, String)> {
    if let Some(error) = report.errors.first() {
        return Some((InconclusiveReason::AttackFailed, error.to_string()));
    }
    if let Some(why) = failed_run(report) {
        return Some((InconclusiveReason::SubjectFailed, why));
    }
    let why = ending(report.ending, false).to_owned();
    ended_early(report.ending).map(|by| (by, why))
}

/// The exit code: that of the outcome, unless the run was cut short before anything got through.
pub(crate) fn exit(judged: Option<&JudgedAttack>, report: &RunReport) -> Exit {
    let outcome = judged.map(|judged| judged.outcome);
    match outcome {
        Some(RunOutcome::Exploited | RunOutcome::Partial) => Exit::Failure,
        _ if report.ending == Ending::Interrupted => Exit::Interrupted,
        Some(RunOutcome::Resisted) => Exit::Success,
        Some(RunOutcome::Inconclusive) => Exit::Inconclusive,
        None if report.exposure.reached && broken(report).is_none() => Exit::Success,
        None => Exit::Inconclusive,
    }
}

pub(crate) fn human(
    data: &mut StdoutData,
    document: &Document,
    path: &str,
    trace: Option<&str>,
    judged: Option<&JudgedAttack>,
    report: &RunReport,
) -> Result<(), CommandError> {
    match (&report.verdict, judged) {
        (Some(verdict), Some(judged)) => {
            let style = match judged.outcome {
                RunOutcome::Inconclusive => scan::human::YELLOW,
                RunOutcome::Exploited | RunOutcome::Partial | RunOutcome::Resisted => {
                    scan::human::attack_style(verdict.attack.result)
                }
            };
            let word = judged.outcome.word();
            let tier = verdict.attack.max_tier;
            let tier = tier.map(|tier| format!(" ({})", tier.as_str()));
            let headline = scan::human::headline(word, style, document);
            data.line(&format!("{headline}{}", tier.unwrap_or_default()))?;
            scan::human::findings(data, trace, path, document, verdict)?;
            conditions_lines(data, judged)?;
        }
        _ => data.line("no verdict: the document has no indicators\n")?,
    }
    let carriers = &report.exposure.carriers;
    let delivered = carriers
        .iter()
        .filter(|carrier| carrier.delivered > 0)
        .count();
    data.line(&format!(
        "delivered: {delivered} of {}",
        plural(carriers.len(), "carrier")
    ))?;
    let missed: Vec<_> = carriers
        .iter()
        .filter(|carrier| carrier.delivered == 0)
        .collect();
    for carrier in missed.iter().take(NAMED) {
        let kind = serde_json::to_value(carrier.kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default().replace('_', " ");
        data.line(&format!(
            "  never: {kind} {}",
            printable_line(&carrier.name)
        ))?;
    }
    if missed.len() > NAMED {
        data.line(&format!("  and {} more", missed.len() - NAMED))?;
    }
    for error in &report.errors {
        data.line(&format!(
            "broke off: {}",
            printable_line(&error.to_string())
        ))?;
    }
    data.line(&format!(
        "ended after {} and {}: {}",
        seconds(report.duration),
        plural(
            usize::try_from(report.messages).unwrap_or(usize::MAX),
            "message"
        ),
        ending(report.ending, !report.errors.is_empty()),
    ))
}

/// Why a run is inconclusive and what to do about it, and which conditions hold.
fn conditions_lines(data: &mut StdoutData, judged: &JudgedAttack) -> Result<(), CommandError> {
    if let Some(reason) = judged.reason {
        data.line(&format!("reason: {}: {}", reason.code(), reason.sentence()))?;
        data.line(&format!("  {}", reason.advice()))?;
    }
    if judged.outcome.gave_way() {
        return Ok(());
    }
    data.line("conditions:")?;
    for (name, condition) in judged.conditions.each() {
        let mark = if condition.held { "yes" } else { "no " };
        let name = name.replace('_', " ");
        let why = printable_line(&condition.why);
        let text = format!("  {mark} {name:<20} {why}");
        data.line(text.trim_end())?;
    }
    Ok(())
}

pub(crate) fn json(
    document: &Document,
    path: &str,
    planted: Option<&Planted>,
    judged: Option<&JudgedAttack>,
    report: &RunReport,
) -> Value {
    let mut json = json!({
        "version": VERSION,
        "document": {
            "path": path,
            "id": document.attack.id,
            "name": document.attack.name,
        },
        "outcome": judged.map(|judged| judged.outcome),
        "reason": judged.and_then(|judged| judged.reason),
        "conditions": judged.map(|judged| &judged.conditions),
        "ending": match report.ending {
            Ending::Complete => "complete",
            Ending::SubjectDone => "subject_done",
            Ending::Idle => "idle",
            Ending::TimeUp => "time_up",
            Ending::Interrupted => "interrupted",
        },
        "seconds": report.duration.as_secs_f64(),
        "messages": report.messages,
        "verdict": report.verdict.as_ref().map(|verdict| &verdict.attack),
        "indicators": report.verdict.as_ref().map(|verdict| &verdict.indicators),
        "exposure": report.exposure,
        "warnings": report.warnings,
        "errors": report.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    if let Some(planted) = planted {
        json["seed"] = planted.seed.into();
        json["canaries"] = json!(planted.values);
    }
    json
}

fn ending(ending: Ending, broke_off: bool) -> &'static str {
    match ending {
        Ending::Complete if broke_off => "an actor broke off",
        Ending::Complete => "every actor did its part",
        Ending::SubjectDone => "the agent ended its sessions, or fell silent after its last answer",
        Ending::Idle => "the agent was silent for too long (--idle-limit)",
        Ending::TimeUp => "the time was up (--max-session)",
        Ending::Interrupted => "interrupted",
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_broke_off_did_not_do_its_part() {
        assert_eq!(ending(Ending::Complete, false), "every actor did its part");
        assert_eq!(ending(Ending::Complete, true), "an actor broke off");
        assert_eq!(ending(Ending::Interrupted, true), "interrupted");
    }
}
