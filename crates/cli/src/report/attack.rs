//! What came of an attack, for people and for programs.

use std::time::Duration;

use proofhouse_campaign::outcome::{JudgedAttack, RunOutcome, broken_by, ending_words};
use proofhouse_campaign::planted::Planted;
use proofhouse_oatf::Document;
use proofhouse_range::{Ending, RunReport};
use serde_json::{Value, json};

use super::{plural, scan};
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, printable_line};

/// The version of the JSON form; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// How many carriers that were not delivered are named.
const NAMED: usize = 5;

/// The exit code: that of the outcome, unless the run was cut short before anything got through.
pub(crate) fn exit(judged: Option<&JudgedAttack>, report: &RunReport) -> Exit {
    let outcome = judged.map(|judged| judged.outcome);
    match outcome {
        Some(RunOutcome::Exploited | RunOutcome::Partial) => Exit::Failure,
        _ if report.ending == Ending::Interrupted => Exit::Interrupted,
        Some(RunOutcome::Resisted) => Exit::Success,
        Some(RunOutcome::Inconclusive) => Exit::Inconclusive,
        None if report.exposure.reached && broken_by(report).is_none() => Exit::Success,
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
                RunOutcome::Inconclusive => scan::YELLOW,
                RunOutcome::Exploited | RunOutcome::Partial | RunOutcome::Resisted => {
                    scan::attack_style(verdict.attack.result)
                }
            };
            let word = judged.outcome.word();
            let tier = verdict.attack.max_tier;
            let tier = tier.map(|tier| format!(" ({})", tier.as_str()));
            let headline = scan::headline(word, style, document);
            data.line(&format!("{headline}{}", tier.unwrap_or_default()))?;
            scan::findings(data, trace, path, document, verdict)?;
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
        ending_words(report.ending, !report.errors.is_empty()),
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

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
