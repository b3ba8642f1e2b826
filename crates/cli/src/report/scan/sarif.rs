//! What scans found as SARIF 2.1.0: results locate the line of the trace, and point at that of the
//! document.

use std::collections::BTreeMap;

use proofhouse_detect::{DocumentVerdict, Evidence, IndicatorReport, Scanner};
use proofhouse_oatf::{AttackResult, Document, Indicator, IndicatorResult};
use serde_json::{Value, json};

use super::Outcome;
use crate::report::sarif::{location, log};

pub(crate) fn document(scanner: &Scanner, outcomes: &[Outcome]) -> Value {
    let documents: Vec<(&str, &Document)> = scanner.documents().collect();
    let mut rules = Rules::default();
    let (mut results, mut notifications) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        notifications.extend(unread(outcome));
        for ((name, document), verdict) in documents.iter().zip(&outcome.verdicts) {
            notifications.extend(inconclusive(outcome, name, verdict));
            let declared = document.attack.indicators().iter();
            for (found, declared) in verdict.indicators.iter().zip(declared) {
                if found.result != IndicatorResult::Matched {
                    continue;
                }
                let rule = rules.number(name, document, declared, found);
                for evidence in &found.evidence {
                    let found = (verdict, found, evidence);
                    results.push(result(outcome, &rules.list[rule]["id"], rule, found));
                }
            }
        }
    }
    log(&rules.list, &results, &notifications)
}

/// The indicators that matched, each once.
#[derive(Default)]
struct Rules<'a> {
    list: Vec<Value>,
    known: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> Rules<'a> {
    fn number(
        &mut self,
        name: &'a str,
        document: &Document,
        declared: &Indicator,
        found: &'a IndicatorReport,
    ) -> usize {
        if let Some(number) = self.known.get(&(name, found.id.as_str())) {
            return *number;
        }
        // Documents without an id of their own number their indicators alike.
        let taken = self.known.keys().any(|(_, id)| *id == found.id);
        let id = if taken {
            format!("{name}#{}", found.id)
        } else {
            found.id.clone()
        };
        let title = document.attack.name.as_deref().unwrap_or("Untitled");
        let about = [
            declared.description.as_deref(),
            document.attack.description.as_deref(),
        ];
        let text = about.into_iter().flatten().next().unwrap_or(title);
        self.list.push(json!({
            "id": id,
            "shortDescription": {"text": title},
            "fullDescription": {"text": text.trim_end()},
        }));
        let number = self.list.len() - 1;
        self.known.insert((name, found.id.as_str()), number);
        number
    }
}

fn result(
    outcome: &Outcome,
    id: &Value,
    rule: usize,
    (verdict, found, evidence): (&DocumentVerdict, &IndicatorReport, &Evidence),
) -> Value {
    let level = match verdict.attack.result {
        AttackResult::Exploited => "error",
        _ => "warning",
    };
    let at_line = |line: Option<u64>| line.map(|line| json!({"startLine": line}));
    let line = found.line.and_then(|line| u64::try_from(line).ok());
    let mut declared = location(&verdict.name, at_line(line), None);
    declared["id"] = json!(1);
    declared["message"] = json!({"text": "the indicator"});
    let logical = Some(evidence.path.as_str()).filter(|path| !path.is_empty());
    let place = if evidence.path.is_empty() {
        String::new()
    } else {
        format!(" at {}", evidence.path)
    };
    json!({
        "ruleId": id,
        "ruleIndex": rule,
        "level": level,
        "message": {"text": format!(
            "{} matched message {}{place}: {}",
            found.id, evidence.sequence, evidence.text
        )},
        "locations": [location(&outcome.name, at_line(evidence.line), logical)],
        "relatedLocations": [declared],
        "properties": {
            "verdict": verdict.attack.result.as_str(),
            "matches": found.matches,
        },
    })
}

/// What is wrong with the trace itself.
fn unread(outcome: &Outcome) -> Vec<Value> {
    let problems = outcome.problems.iter().map(|problem| {
        let region = json!({"startLine": problem.line});
        json!({
            "level": if problem.kind.is_warning() { "note" } else { "warning" },
            "descriptor": {"id": problem.kind.as_str()},
            "message": {"text": problem.message},
            "locations": [location(&outcome.name, Some(region), None)],
        })
    });
    let failure = outcome.failure().map(|failure| {
        json!({
            "level": "error",
            "descriptor": {"id": "incomplete"},
            "message": {"text": failure},
            "locations": [location(&outcome.name, None, None)],
        })
    });
    problems.chain(failure).collect()
}

/// That a document has no trustworthy answer.
fn inconclusive(outcome: &Outcome, name: &str, verdict: &DocumentVerdict) -> Option<Value> {
    if verdict.attack.result != AttackResult::Error {
        return None;
    }
    let why = verdict.attack.diagnostic.as_deref().unwrap_or_default();
    let reasons = verdict.indicators.iter().filter_map(|found| {
        let reason = found.reason.as_ref()?;
        Some(format!("{}: {reason}", found.id))
    });
    let reasons: Vec<String> = reasons.collect();
    Some(json!({
        "level": "warning",
        "descriptor": {"id": "inconclusive"},
        "message": {"text": format!("no verdict on {name} in {}: {why} ({})", outcome.name, reasons.join("; "))},
        "locations": [location(name, None, None)],
    }))
}
