//! What came of an attack, for people and for programs.

use std::time::Duration;

use proofhouse_campaign::outcome::{JudgedAttack, RunOutcome, ending_words};
use proofhouse_campaign::planted::Planted;
use proofhouse_oatf::Document;
use proofhouse_range::{Ending, RunReport};
use proofhouse_source::printable_line;
use serde_json::{Value, json};

use crate::scan::text as scan;
use crate::text::{plural, push_line};

/// The version of the JSON form; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// How many places that were not sent with the payload are named.
const NAMED: usize = 5;

/// The text for people. `path` is the file of the document, `trace` that of the recording, if there is one.
#[must_use]
pub fn text(
    document: &Document,
    path: &str,
    trace: Option<&str>,
    judged: Option<&JudgedAttack>,
    report: &RunReport,
) -> String {
    let mut text = String::new();
    let out = &mut text;
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
            push_line(out, &format!("{headline}{}", tier.unwrap_or_default()));
            scan::findings(out, trace, path, document, verdict);
            conditions_lines(out, judged);
        }
        _ => push_line(out, "no verdict: the document has no indicators\n"),
    }
    let carriers = &report.exposure.carriers;
    let missed: Vec<_> = carriers
        .iter()
        .filter(|carrier| carrier.armed == 0)
        .collect();
    push_line(
        out,
        &format!(
            "payload: sent in {} of {}",
            carriers.len() - missed.len(),
            plural(carriers.len() as u64, "place")
        ),
    );
    for carrier in missed.iter().take(NAMED) {
        let kind = serde_json::to_value(carrier.kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default().replace('_', " ");
        let what = if carrier.delivered > 0 {
            "sent without the payload"
        } else {
            "not sent"
        };
        push_line(
            out,
            &format!("  {what}: {kind} {}", printable_line(&carrier.name)),
        );
    }
    if missed.len() > NAMED {
        push_line(out, &format!("  and {} more", missed.len() - NAMED));
    }
    for error in &report.errors {
        push_line(
            out,
            &format!("broke off: {}", printable_line(&error.to_string())),
        );
    }
    push_line(
        out,
        &format!(
            "ended after {} and {}: {}",
            seconds(report.duration),
            plural(report.messages, "message"),
            ending_words(report.ending, !report.errors.is_empty()),
        ),
    );
    text
}

/// Why a run is inconclusive and what to do about it, and which conditions hold.
fn conditions_lines(out: &mut String, judged: &JudgedAttack) {
    if let Some(reason) = judged.reason {
        push_line(
            out,
            &format!("reason: {}: {}", reason.code(), reason.sentence()),
        );
        push_line(out, &format!("  {}", reason.advice()));
    }
    if judged.outcome.gave_way() {
        return;
    }
    push_line(out, "conditions:");
    for (name, condition) in judged.conditions.each() {
        let mark = if condition.held { "yes" } else { "no " };
        let name = name.replace('_', " ");
        let why = printable_line(&condition.why);
        let text = format!("  {mark} {name:<20} {why}");
        push_line(out, text.trim_end());
    }
}

/// The form for programs.
#[must_use]
pub fn json(
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
