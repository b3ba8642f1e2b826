//! The end of a campaign for people: a row per document, a column per subject, and what they come to.

use proofhouse_campaign::baseline::Change;
use proofhouse_campaign::count::{Counts, Tally};
use proofhouse_campaign::result::{CampaignResult, Outcome};
use proofhouse_campaign::statistics::Rate;

use crate::output::{CommandError, Data, printable_line};

/// How wide the column of documents is.
const NAMES: usize = 40;
/// How wide the column of a subject is.
const CELL: usize = 18;

pub(crate) fn print(
    data: &mut Data,
    result: &CampaignResult,
    changes: Option<&[Change]>,
) -> Result<(), CommandError> {
    let counts = Counts::of(result);
    let mut head = format!("{:<NAMES$}", "");
    for subject in &result.subjects {
        head.push_str(&format!(" {:<CELL$}", fit(&subject.name, CELL)));
    }
    data.line(head.trim_end())?;
    for document in &result.documents {
        let name = format!("{} {}", document.id, document.name);
        let mut line = format!("{:<NAMES$}", fit(&name, NAMES));
        for subject in &result.subjects {
            let cell = counts.cell(&document.id, &subject.name);
            let shown = cell.map_or_else(|| "not run".to_owned(), shown);
            line.push_str(&format!(" {:<CELL$}", fit(&shown, CELL)));
        }
        data.line(line.trim_end())?;
    }
    data.line("")?;
    for subject in &result.subjects {
        let Some(tally) = counts.subjects.get(&subject.name) else {
            continue;
        };
        let note = if subject.simulation {
            " (simulation)"
        } else {
            ""
        };
        data.line(&format!(
            "{}{note}: gave way in {}; {} not reached, {} without a verdict",
            printable_line(&subject.name),
            rate(tally.rate()),
            tally.not_reached,
            tally.errors,
        ))?;
        if let Some(twins) = counts.twins.get(&subject.name) {
            data.line(&format!(
                "  twins: task done in {}; false alarms in {}",
                rate(twins.success()),
                rate(twins.false_positive_rate()),
            ))?;
        }
    }
    for change in changes.into_iter().flatten() {
        let word = change.kind.word();
        if !matches!(word, "unchanged" | "unknown") {
            let p = change
                .p
                .map(|p| format!(" (p = {p:.3})"))
                .unwrap_or_default();
            data.line(&printable_line(&format!(
                "since the baseline: {word}: {} {}{p}",
                change.document, change.subject
            )))?;
        }
    }
    Ok(())
}

fn shown(tally: &Tally) -> String {
    let word = tally.outcome().map_or("not run", Outcome::word);
    let flaky = if tally.is_flaky() { "~" } else { "" };
    match tally.runs() {
        0 | 1 => word.to_owned(),
        _ => format!("{word}{flaky} {}/{}", tally.gave_way(), tally.counted()),
    }
}

fn rate(rate: Rate) -> String {
    let Some(value) = rate.value() else {
        return "0 of 0".to_owned();
    };
    format!(
        "{} of {} ({:.0} %, {:.0}-{:.0} %)",
        rate.some,
        rate.all,
        value * 100.0,
        rate.low * 100.0,
        rate.high * 100.0
    )
}

fn fit(text: &str, width: usize) -> String {
    let text = printable_line(text);
    match text.char_indices().nth(width) {
        None => text,
        Some(_) => {
            let kept: String = text.chars().take(width - 1).collect();
            format!("{kept}…")
        }
    }
}
