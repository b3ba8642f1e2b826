//! What came of an attack, for people and for programs.

use std::time::Duration;

use proofhouse_oatf::{AttackResult, Document};
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

/// The exit code: that of the verdict, unless the subject was never reached or the run was cut short.
pub(crate) fn exit(report: &RunReport) -> Exit {
    let result = report.verdict.as_ref().map(|verdict| verdict.attack.result);
    match result {
        _ if report.ending == Ending::Interrupted => Exit::Interrupted,
        Some(AttackResult::Exploited | AttackResult::Partial) => Exit::Failure,
        Some(AttackResult::Error) => Exit::Inconclusive,
        // Nothing is proved about a subject that never saw the attack.
        _ if !report.exposure.reached || !report.errors.is_empty() => Exit::CannotRun,
        // The agent may still have been thinking.
        Some(AttackResult::NotExploited) if is_cut_short(report.ending) => Exit::Inconclusive,
        Some(AttackResult::NotExploited) | None => Exit::Success,
    }
}

/// Whether the agent could have gone on.
fn is_cut_short(ending: Ending) -> bool {
    matches!(ending, Ending::Idle | Ending::TimeUp)
}

pub(crate) fn human(
    data: &mut StdoutData,
    document: &Document,
    path: &str,
    trace: Option<&str>,
    report: &RunReport,
) -> Result<(), CommandError> {
    match &report.verdict {
        Some(verdict) => {
            let result = verdict.attack.result;
            let unmoved = result == AttackResult::NotExploited;
            let (word, style) = if unmoved && !report.exposure.reached {
                // Nothing is proved about a subject that never saw the attack.
                ("not reached", scan::human::YELLOW)
            } else if unmoved && is_cut_short(report.ending) {
                ("inconclusive", scan::human::YELLOW)
            } else {
                (result.as_str(), scan::human::attack_style(result))
            };
            let tier = verdict.attack.max_tier;
            let tier = tier.map(|tier| format!(" ({})", tier.as_str()));
            let headline = scan::human::headline(word, style, document);
            data.line(&format!("{headline}{}", tier.unwrap_or_default()))?;
            scan::human::findings(data, trace, path, document, verdict)?;
        }
        None => data.line("no verdict: the document has no indicators\n")?,
    }
    let carriers = &report.exposure.carriers;
    let delivered = carriers
        .iter()
        .filter(|carrier| carrier.delivered > 0)
        .count();
    if report.exposure.reached {
        data.line(&format!(
            "reached: {delivered} of {}",
            plural(carriers.len(), "carrier")
        ))?;
    } else {
        data.line("not reached: nothing of the attack was delivered, so nothing is proved")?;
    }
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

pub(crate) fn json(
    document: &Document,
    path: &str,
    planted: Option<&Planted>,
    report: &RunReport,
) -> Value {
    let mut json = json!({
        "version": VERSION,
        "document": {
            "path": path,
            "id": document.attack.id,
            "name": document.attack.name,
        },
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
