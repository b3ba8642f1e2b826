//! What scans found, for programs.

use proofhouse_detect::{DocumentVerdict, LineErrorKind, ReadSummary, Scanner};
use proofhouse_oatf::Document;
use serde_json::{Map, Value, json};

use super::{ScannedTrace, VerdictCounts, incomplete, skipped};

/// The version of this format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// What was found in all traces, as one value.
#[must_use]
pub fn document(scanner: &Scanner, scans: &[ScannedTrace]) -> Value {
    let traces: Vec<Value> = scans
        .iter()
        .map(|scan| {
            let verdicts = scanner.documents().zip(&scan.verdicts);
            let documents: Vec<Value> = verdicts
                .map(|((_, document), verdict)| judged(document, verdict))
                .collect();
            let problems: Vec<Value> = scan
                .problems
                .iter()
                .map(|problem| {
                    json!({
                        "line": problem.line,
                        "kind": problem.kind.as_str(),
                        "message": problem.message,
                    })
                })
                .collect();
            json!({
                "path": scan.name,
                "format": scan.format.name(),
                "complete": scan.failure().is_none(),
                "error": scan.failure(),
                "read": read(&scan.summary),
                "problems": problems,
                "documents": documents,
                "summary": counts(VerdictCounts::of(&scan.verdicts)),
            })
        })
        .collect();
    let messages: u64 = scans.iter().map(|scan| scan.summary.messages).sum();
    let all = VerdictCounts::of(scans.iter().flat_map(|scan| &scan.verdicts));
    let mut summary = json!({
        "traces": scans.len(),
        "incomplete": incomplete(scans),
        "messages": messages,
        "skipped": skipped(scans),
        "documents": scanner.documents().len(),
        "indicators": scanner.len(),
    });
    if let (Value::Object(summary), Value::Object(all)) = (&mut summary, counts(all)) {
        summary.extend(all);
    }
    json!({
        "version": VERSION,
        "traces": traces,
        "summary": summary,
    })
}

fn judged(document: &Document, verdict: &DocumentVerdict) -> Value {
    let attack = &document.attack;
    let declared = attack.indicators().iter();
    let indicators: Vec<Value> = verdict
        .indicators
        .iter()
        .zip(declared)
        .map(|(found, declared)| {
            let mut value = json!(found);
            if let Some(tier) = declared.tier {
                value["tier"] = json!(tier.as_str());
            }
            value
        })
        .collect();
    json!({
        "path": verdict.name,
        "id": attack.id,
        "name": attack.name,
        "result": verdict.attack.result.as_str(),
        "not_judged": verdict.not_judged().map(ToString::to_string),
        "max_tier": verdict.attack.max_tier.map(proofhouse_oatf::Tier::as_str),
        "diagnostic": verdict.attack.diagnostic,
        "summary": verdict.attack.evaluation_summary,
        "indicators": indicators,
    })
}

fn read(summary: &ReadSummary) -> Value {
    let problems: Map<String, Value> = LineErrorKind::ALL
        .iter()
        .filter(|kind| summary.count(**kind) > 0)
        .map(|kind| (kind.as_str().to_owned(), json!(summary.count(*kind))))
        .collect();
    json!({
        "lines": summary.lines,
        "bytes": summary.bytes,
        "messages": summary.messages,
        "skipped": summary.skipped(),
        "warnings": summary.warnings(),
        "problems": problems,
        "unknown_fields": summary.unknown_fields,
        "ignored": summary.ignored,
        "forgotten_requests": summary.forgotten_requests,
        "without_arguments": summary.without_arguments,
    })
}

fn counts(counts: VerdictCounts) -> Value {
    json!({
        "exploited": counts.exploited,
        "partial": counts.partial,
        "not_exploited": counts.not_exploited,
        "not_judged": counts.not_judged,
        "error": counts.error,
    })
}
