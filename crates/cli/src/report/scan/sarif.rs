//! What scans found as SARIF 2.1.0: results locate the line of the trace, and point at that of the
//! document.

use std::collections::HashMap;

use proofhouse_detect::{DocumentVerdict, Evidence, IndicatorReport, Scanner};
use proofhouse_oatf::{AttackResult, Document, Indicator, IndicatorResult, SeverityLevel};
use serde_json::{Value, json};

use super::Outcome;
use crate::report::sarif::{location, log};

pub(crate) fn document(scanner: &Scanner, outcomes: &[Outcome]) -> Value {
    let documents: Vec<(&str, &Document)> = scanner.documents().collect();
    let mut rules = Rules::new(&documents);
    let mut seen = HashMap::new();
    let (mut results, mut notifications) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        notifications.extend(unread(outcome));
        for (position, ((name, document), verdict)) in
            documents.iter().zip(&outcome.verdicts).enumerate()
        {
            notifications.extend(inconclusive(outcome, name, verdict));
            let declared = document.attack.indicators().iter();
            for (index, (found, declared)) in verdict.indicators.iter().zip(declared).enumerate() {
                if found.result != IndicatorResult::Matched {
                    continue;
                }
                let rule = rules.number((position, index), document, declared);
                for evidence in &found.evidence {
                    let id = &rules.list[rule]["id"];
                    let mut result = result(outcome, id, rule, (verdict, found, evidence));
                    let print = fingerprint(&[
                        id.as_str().unwrap_or_default(),
                        &outcome.name,
                        &evidence.path,
                        &evidence.text,
                    ]);
                    // The same words may be found again; what counts is that they are told apart.
                    let times: &mut u64 = seen.entry(print).or_default();
                    *times += 1;
                    result["partialFingerprints"] =
                        json!({"evidence/v1": format!("{print:016x}:{times}")});
                    results.push(result);
                }
            }
        }
    }
    log(&rules.list, &results, &notifications)
}

/// The indicators that matched, each once.
struct Rules {
    /// The id of every indicator there is, by document and position, whether it matched or not.
    ids: Vec<Vec<String>>,
    list: Vec<Value>,
    known: HashMap<(usize, usize), usize>,
}

impl Rules {
    /// An id is that of the indicator where it is the only one of that name in documents that have
    /// an id themselves, and else has the name of its document before it. So it depends on what was
    /// loaded, never on what was found.
    fn new(documents: &[(&str, &Document)]) -> Self {
        let mut times: HashMap<&str, usize> = HashMap::new();
        let indicators = documents
            .iter()
            .flat_map(|(_, document)| document.attack.indicators());
        for indicator in indicators {
            *times
                .entry(indicator.id.as_deref().unwrap_or_default())
                .or_default() += 1;
        }
        let ids = documents.iter().map(|(name, document)| {
            let ids = document.attack.indicators().iter().map(|indicator| {
                let id = indicator.id.as_deref().unwrap_or_default();
                // Documents without an id of their own number their indicators alike.
                if document.attack.id.is_some() && times.get(id) == Some(&1) {
                    id.to_owned()
                } else {
                    format!("{name}#{id}")
                }
            });
            ids.collect()
        });
        Self {
            ids: ids.collect(),
            list: Vec::new(),
            known: HashMap::new(),
        }
    }

    fn number(
        &mut self,
        place: (usize, usize),
        document: &Document,
        declared: &Indicator,
    ) -> usize {
        if let Some(number) = self.known.get(&place) {
            return *number;
        }
        let id = self.ids.get(place.0).and_then(|ids| ids.get(place.1));
        let attack = &document.attack;
        let title = attack.name.as_deref().unwrap_or("Untitled");
        let about = [
            declared.description.as_deref(),
            attack.description.as_deref(),
        ];
        let about: Vec<_> = about.into_iter().flatten().map(str::trim_end).collect();
        let text = match about.as_slice() {
            [] => title.to_owned(),
            parts => parts.join("\n\n"),
        };
        let mut rule = json!({
            "id": id,
            "shortDescription": {"text": title},
            "fullDescription": {"text": text},
        });
        let attack_level = attack.severity.as_ref().map(|severity| severity.level);
        if let Some(level) = declared.severity.or(attack_level) {
            rule["properties"] = json!({
                "security-severity": score(level),
                "tags": ["security"],
            });
        }
        self.list.push(rule);
        let number = self.list.len() - 1;
        self.known.insert(place, number);
        number
    }
}

/// The middle of the range that code scanning services have for a level.
fn score(level: SeverityLevel) -> &'static str {
    match level {
        SeverityLevel::Informational => "0.0",
        SeverityLevel::Low => "2.0",
        SeverityLevel::Medium => "5.5",
        SeverityLevel::High => "8.0",
        SeverityLevel::Critical => "9.5",
    }
}

/// A number that stays the same from one version to the next (FNV-1a), so that services can tell what
/// they have seen before, even when lines moved.
fn fingerprint(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
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
    let reason = evidence.reason.as_ref();
    let reason = reason.map(|reason| format!(" (by {reason})"));
    json!({
        "ruleId": id,
        "ruleIndex": rule,
        "level": level,
        "message": {"text": format!(
            "{} matched message {}{place}: {}{}",
            found.id, evidence.sequence, evidence.text, reason.unwrap_or_default()
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
