//! Why indicators judged a trace as they did, for people: the line of the document above the entry
//! of the trace.

use proofhouse_detect::{ExplainedMessage, IndicatorExplanation, OperatorCheck, Resolved, Scanner};
use proofhouse_oatf::{Document, IndicatorResult};
use proofhouse_source::printable_line;

use super::{DecidingLine, Explained, deciding_line, deciding_operator, filters};
use crate::quoting::quoted;
use crate::text::plural;

/// How wide the output is, names of files aside.
const WIDTH: usize = 80;

/// The whole explanation.
#[must_use]
pub fn text(scanner: &Scanner, explained: &Explained<'_>) -> String {
    let out = &mut String::new();
    for explanation in &explained.explanations {
        if let Some((name, document)) = scanner.documents().nth(explanation.document()) {
            indicator(out, explained, explanation, name, document);
        }
    }
    for (position, verdict) in explained.verdicts.iter().enumerate() {
        let of_it = |explanation: &IndicatorExplanation<'_>| explanation.document() == position;
        if !explained.explanations.iter().any(of_it) {
            continue;
        }
        let counts = verdict.attack.evaluation_summary;
        let mut line = format!(
            "{}: {} ({} matched, {} not matched, {} error, {} skipped)",
            printable_line(&verdict.name),
            verdict.attack.result,
            counts.matched,
            counts.not_matched,
            counts.error,
            counts.skipped,
        );
        if let Some(diagnostic) = &verdict.attack.diagnostic {
            line.push_str(&format!(": {}", printable_line(diagnostic)));
        }
        put(out, &line);
    }
    std::mem::take(out)
}

fn indicator(
    out: &mut String,
    explained: &Explained<'_>,
    explanation: &IndicatorExplanation<'_>,
    name: &str,
    document: &Document,
) {
    let index = explanation.indicator();
    let Some(declared) = document.attack.indicators().get(index) else {
        return;
    };
    let Some(report) = explained.report(explanation) else {
        return;
    };
    let name = printable_line(name);
    let line = report
        .line
        .map(|line| format!(":{line}"))
        .unwrap_or_default();
    put(
        out,
        &format!("{} {}", printable_line(&report.id), report.result),
    );
    put(out, &format!("  rule     {name}{line}"));
    let wanted = filters(declared).into_iter();
    let wanted: Vec<_> = wanted
        .map(|(filter, wanted)| format!("{filter} {}", printable_line(wanted)))
        .collect();
    put(out, &format!("  asks for {}", wanted.join(", ")));
    let messages = explanation.messages();
    let dropped = messages - explanation.kept();
    put(
        out,
        &format!("  dropped  {dropped} of {}", plural(messages, "message")),
    );
    for seen in explanation.dropped() {
        let filter = seen.filter.filter();
        let lines: Vec<_> = seen
            .first
            .iter()
            .map(|place| place.line.to_string())
            .collect();
        let more = if seen.count > lines.len() as u64 {
            ", …"
        } else {
            ""
        };
        let lines = match lines.as_slice() {
            [] => String::new(),
            [one] if more.is_empty() => format!(", line {one}"),
            several => format!(", lines {}{more}", several.join(", ")),
        };
        put(out, &format!("    by {filter}: {}{lines}", seen.count));
        // What was there instead is most often what explains it.
        if let Some(place) = seen.first.first() {
            let instead = match filter {
                "protocol" => Some(place.protocol.as_str()),
                "surface" => Some(place.operation.as_str()),
                "actor" => place.actor.as_deref(),
                _ => place.direction.map(proofhouse_oatf::Direction::as_str),
            };
            let instead = match instead {
                Some(instead) => quoted(instead, 40),
                None => "none".to_owned(),
            };
            put(out, &format!("      the first has {instead}"));
        }
    }
    put(
        out,
        &format!("  kept     {}", plural(explanation.kept(), "message")),
    );
    for result in [
        IndicatorResult::Matched,
        IndicatorResult::Error,
        IndicatorResult::Skipped,
        IndicatorResult::NotMatched,
    ] {
        let total = explanation.count(result);
        if total == 0 {
            continue;
        }
        put(out, &format!("    {result}: {total}"));
        let shown = explanation.first(result);
        for found in shown {
            let operator = deciding_operator(&found.kept);
            let deciding = deciding_line(document, index, operator);
            case(out, &explained.trace, &name, deciding.as_ref(), found);
        }
        let more = total - shown.len() as u64;
        if more > 0 {
            put(
                out,
                &format!("      and {more} more; --limit shows more of them"),
            );
        }
    }
    let reason = printable_line(&explanation.reason());
    put(out, &format!("  result   {}: {reason}", report.result));
    put(out, "");
}

/// One kept message: the line of the document, the entry of the trace, and what came of it.
fn case(
    out: &mut String,
    trace: &str,
    document: &str,
    deciding: Option<&DecidingLine<'_>>,
    case: &ExplainedMessage,
) {
    let indent = "      ";
    let place = &case.place;
    let trace = printable_line(trace);
    if let Some(DecidingLine { line, text }) = deciding {
        put(out, &format!("{indent}document {document}:{line}"));
        let shown = clipped(
            &printable_line(text.trim_start()),
            WIDTH - indent.len() - 11,
        );
        put(out, &format!("{indent}         | {shown}"));
    }
    let direction = place.direction.map(|direction| format!(" {direction}"));
    put(out, &format!("{indent}trace    {trace}:{}", place.line));
    put(
        out,
        &format!(
            "{indent}         | message {}, {} {}{}",
            place.sequence,
            printable_line(place.protocol.as_str()),
            printable_line(&place.operation),
            direction.unwrap_or_default(),
        ),
    );
    let kept = &case.kept;
    let target = printable_line(&kept.target);
    let target = if target.is_empty() {
        "the message"
    } else {
        &target
    };
    if kept.reached == 0 {
        put(
            out,
            &format!("{indent}         | {target} leads to no value"),
        );
    }
    for value in &kept.values {
        resolved(out, indent, value);
    }
    let shown = kept
        .values
        .iter()
        .filter(|value| !value.path.contains(" = "))
        .count();
    if kept.reached > shown {
        let more = kept.reached - shown;
        put(
            out,
            &format!(
                "{indent}         | and {} more",
                plural(more as u64, "value")
            ),
        );
    }
    for one in kept.whole.iter().chain(&kept.canary) {
        put(out, &format!("{indent}{}", check(one)));
    }
    if let Some(reason) = &kept.reason {
        put(out, &format!("{indent}because  {}", printable_line(reason)));
    }
}

fn resolved(out: &mut String, indent: &str, value: &Resolved) {
    let path = if value.path.is_empty() {
        "the message".to_owned()
    } else {
        printable_line(&value.path)
    };
    let room = WIDTH
        .saturating_sub(indent.len() + 14 + path.chars().count())
        .max(20);
    let text = quoted(&value.text, room);
    put(out, &format!("{indent}         | {path} = {text}"));
    for one in &value.checks {
        put(out, &format!("{indent}{}", check(one)));
    }
}

fn clipped(text: &str, width: usize) -> String {
    match text.char_indices().nth(width.saturating_sub(1)) {
        Some((cut, last)) if cut + last.len_utf8() < text.len() => format!("{}…", &text[..cut]),
        _ => text.to_owned(),
    }
}

fn check(check: &OperatorCheck) -> String {
    let says = match check.holds {
        Some(true) => "holds   ",
        Some(false) => "fails   ",
        None => "unknown ",
    };
    format!("{says} {} {}", check.operator, quoted(&check.operand, 50))
}

fn put(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
