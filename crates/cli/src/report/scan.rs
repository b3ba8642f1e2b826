//! What scans found, for people: the evidence with its places, then a summary.

use std::collections::BTreeMap;

use clap::builder::styling::{AnsiColor, Style};
use proofhouse_detect::{DocumentVerdict, Evidence, IndicatorReport, Scanner};
use proofhouse_oatf::{AttackResult, Document, Indicator, IndicatorResult};
use proofhouse_report::scan::{ScannedTrace, VerdictCounts, incomplete, partial, skipped};

use super::plural;
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, printable_line, quoted};

/// How wide the output is, names of files aside.
const WIDTH: usize = 80;

pub(crate) fn write(
    data: &mut StdoutData,
    scanner: &Scanner,
    scans: &[ScannedTrace],
    all: bool,
) -> Result<(), CommandError> {
    for scan in scans {
        trace(data, scanner, scan, all)?;
    }
    if scans.len() > 1 {
        totals(data, scanner, scans)?;
    }
    for (reason, count) in not_evaluated(scans) {
        data.line(&format!(
            "{} skipped: {}",
            plural(count, "indicator"),
            printable_line(reason)
        ))?;
    }
    let messages: u64 = scans.iter().map(|scan| scan.summary.messages).sum();
    data.line(&format!(
        "{}, {}, {} with {}: {}{}",
        plural(scans.len(), "trace"),
        plural(usize::try_from(messages).unwrap_or(usize::MAX), "message"),
        plural(scanner.documents().len(), "document"),
        plural(scanner.len(), "indicator"),
        in_words(VerdictCounts::of(
            scans.iter().flat_map(|scan| &scan.verdicts)
        )),
        remarks(scans),
    ))
}

/// What stands against the verdicts: whoever reads only the last line must not take what was not
/// looked at for clean.
fn remarks(scans: &[ScannedTrace]) -> String {
    let mut remarks = String::new();
    let skipped = usize::try_from(skipped(scans)).unwrap_or(usize::MAX);
    if skipped > 0 {
        remarks.push_str(&format!("; {} skipped", plural(skipped, "bad line")));
    }
    let incomplete = incomplete(scans);
    if incomplete > 0 {
        let traces = plural(incomplete, "trace");
        remarks.push_str(&format!("; {traces} not read to the end"));
    }
    remarks
}

/// Why indicators were skipped, and how many: a document that found nothing because it could not
/// look is not the same as one that did.
fn not_evaluated(scans: &[ScannedTrace]) -> BTreeMap<&str, usize> {
    let mut reasons = BTreeMap::new();
    // The evaluators are the same for all traces.
    let verdicts = scans.first().into_iter();
    let indicators = verdicts
        .flat_map(|scan| &scan.verdicts)
        .flat_map(|verdict| &verdict.indicators);
    for found in indicators.filter(|found| found.result == IndicatorResult::Skipped) {
        *reasons
            .entry(found.reason.as_deref().unwrap_or("not evaluated"))
            .or_default() += 1;
    }
    reasons
}

fn in_words(counts: VerdictCounts) -> String {
    let parts = [
        (counts.exploited, "exploited"),
        (counts.partial, "partial"),
        (counts.error, "error"),
        (counts.not_exploited, "not exploited"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}

/// One trace: what was found in it, then its summary.
fn trace(
    data: &mut StdoutData,
    scanner: &Scanner,
    scan: &ScannedTrace,
    all: bool,
) -> Result<(), CommandError> {
    let summary = &scan.summary;
    let mut title = format!(
        "{} ({}, {}",
        printable_line(&scan.name),
        scan.format,
        plural(
            usize::try_from(summary.messages).unwrap_or(usize::MAX),
            "message"
        ),
    );
    if summary.skipped() > 0 {
        title.push_str(&format!(", {} skipped", summary.skipped()));
    }
    data.line(&format!("{}{title}){}", BOLD.render(), BOLD.render_reset()))?;
    if let Some(failure) = scan.failure() {
        let failure = printable_line(&failure);
        data.line(&format!(
            "  {}: {failure}",
            styled("not read to its end", RED)
        ))?;
    }
    data.line("")?;
    for ((_, document), verdict) in scanner.documents().zip(&scan.verdicts) {
        if is_loud(verdict) {
            details(data, &scan.name, document, verdict)?;
        }
    }
    let shown = scan
        .verdicts
        .iter()
        .filter(|verdict| all || is_loud(verdict));
    let shown: Vec<_> = shown.collect();
    if !shown.is_empty() {
        table(data, &shown)?;
    }
    let quiet = scan.verdicts.len() - shown.len();
    if quiet > 0 {
        let more = if shown.is_empty() { "" } else { "other " };
        data.line(&format!(
            "{} found nothing{}; --all lists {}",
            plural(quiet, &format!("{more}document")),
            match scan.failure() {
                Some(_) => " in what could be read",
                None => "",
            },
            if quiet == 1 { "it" } else { "them" },
        ))?;
    }
    data.line("")
}

fn is_loud(verdict: &DocumentVerdict) -> bool {
    verdict.attack.result != AttackResult::NotExploited
}

/// A document that found something, or could not tell.
fn details(
    data: &mut StdoutData,
    trace: &str,
    document: &Document,
    verdict: &DocumentVerdict,
) -> Result<(), CommandError> {
    let result = verdict.attack.result;
    data.line(&headline(result.as_str(), attack_style(result), document))?;
    findings(data, Some(trace), &verdict.name, document, verdict)
}

/// What came of a document, in one line.
pub(crate) fn headline(result: &str, style: Style, document: &Document) -> String {
    let id = document.attack.id.as_deref().unwrap_or_default();
    let name = document.attack.name.as_deref().unwrap_or_default();
    let title = printable_line(format!("{id} {name}").trim());
    format!("{} {title}", styled(result, style))
}

/// What the indicators of a document found, and why some did not look. `rules` is the file of the
/// document, `trace` that of the messages, where there is one.
pub(crate) fn findings(
    data: &mut StdoutData,
    trace: Option<&str>,
    rules: &str,
    document: &Document,
    verdict: &DocumentVerdict,
) -> Result<(), CommandError> {
    if let Some(diagnostic) = &verdict.attack.diagnostic {
        data.line(&format!("  {}", printable_line(diagnostic)))?;
    }
    for (found, declared) in verdict.indicators.iter().zip(document.attack.indicators()) {
        match found.result {
            IndicatorResult::NotMatched => continue,
            IndicatorResult::Matched => matched(data, trace, rules, found, declared)?,
            IndicatorResult::Error | IndicatorResult::Skipped => {
                data.line(&format!(
                    "  {} {}",
                    printable_line(&found.id),
                    styled(found.result.as_str(), YELLOW),
                ))?;
                data.line(&format!("    rule   {}", place(rules, found.line)))?;
                let reason = found.reason.as_deref().unwrap_or_default();
                data.line(&format!("    reason {}", printable_line(reason)))?;
            }
        }
    }
    data.line("")
}

fn matched(
    data: &mut StdoutData,
    trace: Option<&str>,
    rules: &str,
    found: &IndicatorReport,
    declared: &Indicator,
) -> Result<(), CommandError> {
    let count = usize::try_from(found.matches).unwrap_or(usize::MAX);
    let tier = declared.tier.map(|tier| format!(", {}", tier.as_str()));
    data.line(&format!(
        "  {} {} {}{}",
        printable_line(&found.id),
        styled("matched", RED),
        plural(count, "message"),
        tier.unwrap_or_default(),
    ))?;
    data.line(&format!("    rule   {}", place(rules, found.line)))?;
    for evidence in &found.evidence {
        let Evidence {
            line,
            path,
            text,
            reason,
            ..
        } = evidence;
        let line = line.and_then(|line| usize::try_from(line).ok());
        let place = trace.map(|trace| format!("{}, ", place(trace, line)));
        let place = place.unwrap_or_default();
        data.line(&format!("    found  {place}{}", evidence.messages()))?;
        let path = if path.is_empty() { "message" } else { path };
        let path = printable_line(path);
        let indent = "           ";
        // The path and the words share a line where they fit.
        let one = indent.len() + path.chars().count() + 2;
        if one + 30 <= WIDTH || one + text.chars().count() + 2 <= WIDTH {
            let words = quoted(text, WIDTH - one);
            data.line(&format!("{indent}{path}: {words}"))?;
        } else {
            data.line(&format!("{indent}{path}:"))?;
            data.line(&format!("{indent}{}", quoted(text, WIDTH - indent.len())))?;
        }
        if let Some(reason) = reason {
            let room = WIDTH - indent.len() - "by ".len();
            data.line(&format!("{indent}by {}", quoted(reason, room)))?;
        }
    }
    let untold = found.matches.saturating_sub(found.evidence.len() as u64);
    if untold > 0 {
        data.line(&format!("    and {untold} more"))?;
    }
    Ok(())
}

/// A row per document and one per indicator of it.
fn table(data: &mut StdoutData, verdicts: &[&DocumentVerdict]) -> Result<(), CommandError> {
    let head = format!(
        "{:<15}{:<49}{:>8}{:>8}",
        "RESULT", "ID", "MATCHES", "ERRORS"
    );
    data.line(&styled(&head, BOLD))?;
    for verdict in verdicts {
        let sum = |count: fn(&IndicatorReport) -> u64| -> u64 {
            verdict.indicators.iter().map(count).sum()
        };
        let result = verdict.attack.result;
        let id = verdict.attack.attack_id.as_deref().unwrap_or(&verdict.name);
        let counts = (sum(|found| found.matches), sum(|found| found.errors));
        data.line(&row("", result.as_str(), attack_style(result), id, counts))?;
        for found in &verdict.indicators {
            let style = match found.result {
                IndicatorResult::Matched => RED,
                IndicatorResult::NotMatched => PLAIN,
                IndicatorResult::Error | IndicatorResult::Skipped => YELLOW,
            };
            let counts = (found.matches, found.errors);
            data.line(&row("  ", found.result.as_str(), style, &found.id, counts))?;
        }
    }
    Ok(())
}

fn row(
    indent: &str,
    result: &str,
    style: Style,
    id: &str,
    (matches, errors): (u64, u64),
) -> String {
    // Styles take no room on the screen, so widths are those of the words alone.
    let gap = " ".repeat(15usize.saturating_sub(indent.len() + result.len()));
    let id = printable_line(id);
    let count = id.chars().count();
    let id = match count.checked_sub(46) {
        Some(over @ 1..) => format!("{indent}…{}", id.chars().skip(over + 1).collect::<String>()),
        _ => format!("{indent}{id}"),
    };
    format!(
        "{indent}{}{gap}{id:<49}{matches:>8}{errors:>8}",
        styled(result, style)
    )
}

/// In how many traces each document had which result.
fn totals(
    data: &mut StdoutData,
    scanner: &Scanner,
    scans: &[ScannedTrace],
) -> Result<(), CommandError> {
    let title = format!("All {} traces", scans.len());
    data.line(&styled(&title, BOLD))?;
    data.line("")?;
    let mut quiet = 0;
    for (index, (name, document)) in scanner.documents().enumerate() {
        let verdicts = scans.iter().filter_map(|scan| scan.verdicts.get(index));
        let counts = VerdictCounts::of(verdicts);
        if counts.not_exploited == scans.len() {
            quiet += 1;
            continue;
        }
        let id = document.attack.id.as_deref().unwrap_or(name);
        data.line(&format!("{}: {}", printable_line(id), in_words(counts)))?;
    }
    if quiet > 0 {
        data.line(&format!(
            "{} found nothing in any of them",
            plural(quiet, "document")
        ))?;
    }
    data.line("")
}

/// A file and a line in it.
fn place(name: &str, line: Option<usize>) -> String {
    let name = printable_line(name);
    line.map_or_else(|| name.clone(), |line| format!("{name}:{line}"))
}

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default();

pub(crate) fn attack_style(result: AttackResult) -> Style {
    match result {
        AttackResult::Exploited | AttackResult::Partial => RED,
        AttackResult::Error => YELLOW,
        AttackResult::NotExploited => GREEN,
    }
}

/// Colours are stripped by the stream where nobody can see them.
fn styled(text: &str, style: Style) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}

/// How a scan ends. That a trace was not read to its end comes before everything: what was found
/// stands, but it may not be all. What was found comes before what could not be told.
pub(crate) fn exit(scans: &[ScannedTrace], allow_skipped: bool) -> Exit {
    let verdicts = || scans.iter().flat_map(|scan| &scan.verdicts);
    let counts = VerdictCounts::of(verdicts());
    let mut indicators = verdicts().flat_map(|verdict| &verdict.indicators);
    if scans.iter().any(|scan| scan.failure().is_some()) {
        Exit::CannotRun
    } else if counts.exploited + counts.partial > 0
        || indicators.any(|found| found.result == IndicatorResult::Matched)
    {
        Exit::Failure
    } else if counts.error > 0 || (skipped(scans) + partial(scans) as u64 > 0 && !allow_skipped) {
        Exit::Inconclusive
    } else {
        Exit::Success
    }
}
