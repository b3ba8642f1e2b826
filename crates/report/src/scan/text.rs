//! What scans found, for people: the evidence with its places, then a summary.

use std::collections::BTreeMap;

use proofhouse_detect::{DocumentVerdict, Evidence, IndicatorReport, Scanner};
use proofhouse_oatf::{AttackResult, Document, Indicator, IndicatorResult};

use proofhouse_source::printable_line;

use super::{ScannedTrace, VerdictCounts, incomplete, result_word, skipped};
use crate::quoting::quoted;
use crate::text::{plural, push_line};

/// How wide the output is, names of files aside.
const WIDTH: usize = 80;

/// The text of scans. Documents that found nothing are listed only if `all` are wanted. It is styled: who writes it where nobody
/// sees colours takes them out.
#[must_use]
pub fn text(scanner: &Scanner, scans: &[ScannedTrace], all: bool) -> String {
    let mut text = String::new();
    let out = &mut text;
    for scan in scans {
        trace(out, scanner, scan, all);
    }
    if scans.len() > 1 {
        totals(out, scanner, scans);
    }
    for (reason, count) in not_evaluated(scans) {
        push_line(
            out,
            &format!(
                "{} skipped: {}",
                plural(count, "indicator"),
                printable_line(reason)
            ),
        );
    }
    let messages: u64 = scans.iter().map(|scan| scan.summary.messages).sum();
    push_line(
        out,
        &format!(
            "{}, {}, {} with {}: {}{}",
            plural(scans.len() as u64, "trace"),
            plural(messages, "message"),
            plural(scanner.documents().len() as u64, "document"),
            plural(scanner.len() as u64, "indicator"),
            in_words(VerdictCounts::of(
                scans.iter().flat_map(|scan| &scan.verdicts)
            )),
            remarks(scans),
        ),
    );
    text
}

/// What stands against the verdicts: whoever reads only the last line must not take what was not
/// looked at for clean.
fn remarks(scans: &[ScannedTrace]) -> String {
    let mut remarks = String::new();
    let skipped = skipped(scans);
    if skipped > 0 {
        remarks.push_str(&format!("; {} skipped", plural(skipped, "bad line")));
    }
    let without: u64 = scans
        .iter()
        .map(|scan| scan.summary.without_arguments)
        .sum();
    if without > 0 {
        let calls = plural(without, "call");
        remarks.push_str(&format!(
            "; {calls} without readable arguments, which were not judged"
        ));
    }
    let incomplete = incomplete(scans);
    if incomplete > 0 {
        let traces = plural(incomplete as u64, "trace");
        remarks.push_str(&format!("; {traces} not read to the end"));
    }
    remarks
}

/// Why indicators were skipped, and how many: a document that found nothing because it could not
/// look is not the same as one that did.
fn not_evaluated(scans: &[ScannedTrace]) -> BTreeMap<&str, u64> {
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

/// Why documents were not judged, and how many: what was not looked at is not clean.
fn not_judged(out: &mut String, scan: &ScannedTrace) {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for reason in scan.verdicts.iter().filter_map(DocumentVerdict::not_judged) {
        *reasons.entry(reason.to_string()).or_default() += 1;
    }
    for (reason, count) in reasons {
        let documents = plural(count, "document");
        push_line(
            out,
            &format!("{documents} not judged: {}", printable_line(&reason)),
        );
    }
}

fn in_words(counts: VerdictCounts) -> String {
    let parts = [
        (counts.exploited, "exploited"),
        (counts.partial, "partial"),
        (counts.error, "error"),
        (counts.not_judged, "not judged"),
        (counts.not_exploited, "not exploited"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}

/// One trace: what was found in it, then its summary.
fn trace(out: &mut String, scanner: &Scanner, scan: &ScannedTrace, all: bool) {
    let summary = &scan.summary;
    let mut title = format!(
        "{} ({}, {}",
        printable_line(&scan.name),
        scan.format,
        plural(summary.messages, "message"),
    );
    if summary.skipped() > 0 {
        title.push_str(&format!(", {} skipped", summary.skipped()));
    }
    push_line(out, &styled(&format!("{title})"), BOLD));
    if let Some(failure) = scan.failure() {
        let failure = printable_line(&failure);
        push_line(
            out,
            &format!("  {}: {failure}", styled("not read to its end", RED)),
        );
    }
    push_line(out, "");
    for ((_, document), verdict) in scanner.documents().zip(&scan.verdicts) {
        if is_loud(verdict) {
            details(out, &scan.name, document, verdict);
        }
    }
    let shown = scan
        .verdicts
        .iter()
        .filter(|verdict| all || is_loud(verdict));
    let shown: Vec<_> = shown.collect();
    if !shown.is_empty() {
        table(out, &shown);
    }
    not_judged(out, scan);
    let counts = VerdictCounts::of(&scan.verdicts);
    let quiet = if all { 0 } else { counts.not_exploited };
    if quiet > 0 {
        let more = if shown.is_empty() { "" } else { "other " };
        push_line(
            out,
            &format!(
                "{} found nothing{}; --all lists {}",
                plural(quiet as u64, &format!("{more}document")),
                match scan.failure() {
                    Some(_) => " in what could be read",
                    None => "",
                },
                if quiet == 1 { "it" } else { "them" },
            ),
        );
    }
    push_line(out, "");
}

fn is_loud(verdict: &DocumentVerdict) -> bool {
    verdict.attack.result != AttackResult::NotExploited
}

/// A document that found something, or could not tell.
fn details(out: &mut String, trace: &str, document: &Document, verdict: &DocumentVerdict) {
    let result = verdict.attack.result;
    push_line(
        out,
        &headline(result.as_str(), attack_style(result), document),
    );
    findings(out, Some(trace), &verdict.name, document, verdict);
}

/// What came of a document, in one line.
pub(crate) fn headline(result: &str, style: &str, document: &Document) -> String {
    let id = document.attack.id.as_deref().unwrap_or_default();
    let name = document.attack.name.as_deref().unwrap_or_default();
    let title = printable_line(format!("{id} {name}").trim());
    format!("{} {title}", styled(result, style))
}

/// What the indicators of a document found, and why some did not look. `rules` is the file of the
/// document, `trace` that of the messages, where there is one.
pub(crate) fn findings(
    out: &mut String,
    trace: Option<&str>,
    rules: &str,
    document: &Document,
    verdict: &DocumentVerdict,
) {
    if let Some(diagnostic) = &verdict.attack.diagnostic {
        push_line(out, &format!("  {}", printable_line(diagnostic)));
    }
    for (found, declared) in verdict.indicators.iter().zip(document.attack.indicators()) {
        match found.result {
            IndicatorResult::NotMatched => continue,
            IndicatorResult::Matched => matched(out, trace, rules, found, declared),
            IndicatorResult::Error | IndicatorResult::Skipped => {
                push_line(
                    out,
                    &format!(
                        "  {} {}",
                        printable_line(&found.id),
                        styled(found.result.as_str(), YELLOW),
                    ),
                );
                push_line(out, &format!("    rule   {}", place(rules, found.line)));
                let reason = found.reason.as_deref().unwrap_or_default();
                push_line(out, &format!("    reason {}", printable_line(reason)));
            }
        }
    }
    push_line(out, "");
}

fn matched(
    out: &mut String,
    trace: Option<&str>,
    rules: &str,
    found: &IndicatorReport,
    declared: &Indicator,
) {
    let count = found.matches;
    let tier = declared.tier.map(|tier| format!(", {}", tier.as_str()));
    push_line(
        out,
        &format!(
            "  {} {} {}{}",
            printable_line(&found.id),
            styled("matched", RED),
            plural(count, "message"),
            tier.unwrap_or_default(),
        ),
    );
    push_line(out, &format!("    rule   {}", place(rules, found.line)));
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
        push_line(out, &format!("    found  {place}{}", evidence.messages()));
        let path = if path.is_empty() { "message" } else { path };
        let path = printable_line(path);
        let indent = "           ";
        // The path and the words share a line where they fit.
        let one = indent.len() + path.chars().count() + 2;
        if one + 30 <= WIDTH || one + text.chars().count() + 2 <= WIDTH {
            let words = quoted(text, WIDTH - one);
            push_line(out, &format!("{indent}{path}: {words}"));
        } else {
            push_line(out, &format!("{indent}{path}:"));
            push_line(
                out,
                &format!("{indent}{}", quoted(text, WIDTH - indent.len())),
            );
        }
        if let Some(reason) = reason {
            let room = WIDTH - indent.len() - "by ".len();
            push_line(out, &format!("{indent}by {}", quoted(reason, room)));
        }
    }
    let untold = found.matches.saturating_sub(found.evidence.len() as u64);
    if untold > 0 {
        push_line(out, &format!("    and {untold} more"));
    }
}

/// A row per document and one per indicator of it.
fn table(out: &mut String, verdicts: &[&DocumentVerdict]) {
    let head = format!(
        "{:<15}{:<49}{:>8}{:>8}",
        "RESULT", "ID", "MATCHES", "ERRORS"
    );
    push_line(out, &styled(&head, BOLD));
    for verdict in verdicts {
        let sum = |count: fn(&IndicatorReport) -> u64| -> u64 {
            verdict.indicators.iter().map(count).sum()
        };
        let style = match verdict.not_judged() {
            Some(_) => YELLOW,
            None => attack_style(verdict.attack.result),
        };
        let id = verdict.attack.attack_id.as_deref().unwrap_or(&verdict.name);
        let counts = (sum(|found| found.matches), sum(|found| found.errors));
        push_line(out, &row("", result_word(verdict), style, id, counts));
        for found in &verdict.indicators {
            let style = match found.result {
                IndicatorResult::Matched => RED,
                IndicatorResult::NotMatched => PLAIN,
                IndicatorResult::Error | IndicatorResult::Skipped => YELLOW,
            };
            let counts = (found.matches, found.errors);
            push_line(
                out,
                &row("  ", found.result.as_str(), style, &found.id, counts),
            );
        }
    }
}

fn row(indent: &str, result: &str, style: &str, id: &str, (matches, errors): (u64, u64)) -> String {
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
fn totals(out: &mut String, scanner: &Scanner, scans: &[ScannedTrace]) {
    let title = format!("All {} traces", scans.len());
    push_line(out, &styled(&title, BOLD));
    push_line(out, "");
    let mut quiet = 0;
    for (index, (name, document)) in scanner.documents().enumerate() {
        let verdicts = scans.iter().filter_map(|scan| scan.verdicts.get(index));
        let counts = VerdictCounts::of(verdicts);
        if counts.not_exploited == scans.len() {
            quiet += 1;
            continue;
        }
        let id = document.attack.id.as_deref().unwrap_or(name);
        push_line(
            out,
            &format!("{}: {}", printable_line(id), in_words(counts)),
        );
    }
    if quiet > 0 {
        push_line(
            out,
            &format!(
                "{} found nothing in any of them",
                plural(quiet as u64, "document")
            ),
        );
    }
    push_line(out, "");
}

/// A file and a line in it.
fn place(name: &str, line: Option<usize>) -> String {
    let name = printable_line(name);
    line.map_or_else(|| name.clone(), |line| format!("{name}:{line}"))
}

const PLAIN: &str = "";
const BOLD: &str = "1";
const RED: &str = "1;31";
pub(crate) const YELLOW: &str = "1;33";
const GREEN: &str = "32";

pub(crate) fn attack_style(result: AttackResult) -> &'static str {
    match result {
        AttackResult::Exploited | AttackResult::Partial => RED,
        AttackResult::Error => YELLOW,
        AttackResult::NotExploited => GREEN,
    }
}

/// A text in a style, which is the parameters of a terminal's sequence.
fn styled(text: &str, style: &str) -> String {
    if style.is_empty() {
        text.to_owned()
    } else {
        format!("\u{1b}[{style}m{text}\u{1b}[0m")
    }
}
