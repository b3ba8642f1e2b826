//! Why indicators judged a trace as they did, for programs.

use proofhouse_detect::{IndicatorExplanation, Scanner};
use proofhouse_oatf::IndicatorResult;
use serde_json::{Map, Value, json};

use super::{Explained, deciding_line, filters};

/// The version of this format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// All explanations as one value.
#[must_use]
pub fn document(scanner: &Scanner, explained: &Explained<'_>) -> Value {
    let indicators: Vec<Value> = explained
        .explanations
        .iter()
        .filter_map(|explanation| indicator(scanner, explained, explanation))
        .collect();
    let documents: Vec<Value> = explained
        .verdicts
        .iter()
        .map(|verdict| {
            json!({
                "path": verdict.name,
                "id": verdict.attack.attack_id,
                "result": verdict.attack.result.as_str(),
                "diagnostic": verdict.attack.diagnostic,
                "summary": verdict.attack.evaluation_summary,
            })
        })
        .collect();
    json!({
        "version": VERSION,
        "trace": explained.trace,
        "complete": explained.error.is_none(),
        "error": explained.error,
        "skipped": explained.skipped,
        "indicators": indicators,
        "documents": documents,
    })
}

fn indicator(
    scanner: &Scanner,
    explained: &Explained<'_>,
    explanation: &IndicatorExplanation<'_>,
) -> Option<Value> {
    let (name, document) = scanner.documents().nth(explanation.document())?;
    let declared = document.attack.indicators().get(explanation.indicator())?;
    let report = explained.report(explanation)?;
    let deciding = deciding_line(document, explanation.indicator(), None)
        .map(|deciding| json!({"line": deciding.line, "text": deciding.text}));
    let wanted: Map<String, Value> = filters(declared)
        .into_iter()
        .map(|(filter, wanted)| (filter.to_owned(), json!(wanted)))
        .collect();
    let dropped: Vec<Value> = explanation
        .dropped()
        .iter()
        .map(|seen| {
            json!({
                "filter": seen.filter.filter(),
                "count": seen.count,
                "first": seen.first,
            })
        })
        .collect();
    let results: Map<String, Value> = IndicatorResult::ALL
        .iter()
        .filter(|result| explanation.count(**result) > 0)
        .map(|result| {
            let cases = json!({
                "count": explanation.count(*result),
                "first": explanation.first(*result),
            });
            (result.as_str().to_owned(), cases)
        })
        .collect();
    Some(json!({
        "id": report.id,
        "document": {"path": name, "line": report.line, "deciding": deciding},
        "filters": wanted,
        "messages": explanation.messages(),
        "dropped": dropped,
        "kept": {"count": explanation.kept(), "results": results},
        "result": report.result.as_str(),
        "reason": explanation.reason(),
    }))
}
