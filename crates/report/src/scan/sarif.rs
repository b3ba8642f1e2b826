//! What scans found as SARIF 2.1.0: results locate the line of the trace, and point at that of the
//! document.

use std::collections::HashMap;

use proofhouse_detect::{DocumentVerdict, Evidence, IndicatorReport, Scanner};
use proofhouse_oatf::{AttackResult, Document, Indicator, IndicatorResult};
use serde_json::{Value, json};

use super::ScannedTrace;
use crate::findings::sarif::{location, log};
use crate::sarif_log::{self, fingerprint, notification, security_severity};

/// What was found in all traces, as one log.
#[must_use]
pub fn document(scanner: &Scanner, scans: &[ScannedTrace]) -> Value {
    let documents: Vec<(&str, &Document)> = scanner.documents().collect();
    let mut rules = SarifRules::new(&documents);
    let mut seen = HashMap::new();
    let (mut results, mut notifications) = (Vec::new(), Vec::new());
    for scan in scans {
        notifications.extend(unread(scan));
        for (position, ((name, document), verdict)) in
            documents.iter().zip(&scan.verdicts).enumerate()
        {
            notifications.extend(inconclusive(scan, name, verdict));
            let declared = document.attack.indicators().iter();
            for (index, (found, declared)) in verdict.indicators.iter().zip(declared).enumerate() {
                if found.result != IndicatorResult::Matched {
                    continue;
                }
                let rule = rules.number((position, index), document, declared);
                for evidence in &found.evidence {
                    let id = rules.list[rule]["id"].as_str().unwrap_or_default();
                    let mut result = result(scan, id, rule, (verdict, found, evidence));
                    let print = fingerprint(&[id, &scan.name, &evidence.path, &evidence.text]);
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
    log(rules.list, results, &notifications)
}

/// The indicators that matched, each once.
struct SarifRules {
    /// The id of every indicator there is, by document and position, whether it matched or not.
    ids: Vec<Vec<String>>,
    list: Vec<Value>,
    known: HashMap<(usize, usize), usize>,
}

impl SarifRules {
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
        let mut rule = sarif_log::rule(id.map_or("", String::as_str), None, title, &text);
        let attack_level = attack.severity.as_ref().map(|severity| severity.level);
        if let Some(level) = declared.severity.or(attack_level) {
            rule["properties"] = json!({
                "security-severity": security_severity(level),
                "tags": ["security"],
            });
        }
        self.list.push(rule);
        let number = self.list.len() - 1;
        self.known.insert(place, number);
        number
    }
}

fn result(
    scan: &ScannedTrace,
    id: &str,
    rule: usize,
    (verdict, found, evidence): (&DocumentVerdict, &IndicatorReport, &Evidence),
) -> Value {
    let level = match verdict.attack.result {
        AttackResult::Exploited => "error",
        AttackResult::Partial | AttackResult::NotExploited | AttackResult::Error => "warning",
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
    let text = format!(
        "{} matched {}{place}: {}{}",
        found.id,
        evidence.messages(),
        evidence.text,
        reason.unwrap_or_default()
    );
    let at = location(&scan.name, at_line(evidence.line), logical);
    let mut result = sarif_log::result(id, Some(rule), level, &text, at);
    result["relatedLocations"] = json!([declared]);
    result["properties"] = json!({
        "verdict": verdict.attack.result.as_str(),
        "matches": found.matches,
    });
    result
}

/// What is wrong with the trace itself.
fn unread(scan: &ScannedTrace) -> Vec<Value> {
    let problems = scan.problems.iter().map(|problem| {
        let level = if problem.kind.is_warning() {
            "note"
        } else {
            "warning"
        };
        let region = json!({"startLine": problem.line});
        let at = location(&scan.name, Some(region), None);
        notification(level, problem.kind.as_str(), &problem.message, Some(at))
    });
    let failure = scan.failure().map(|failure| {
        let at = location(&scan.name, None, None);
        notification("error", "incomplete", &failure, Some(at))
    });
    problems.chain(failure).collect()
}

/// That a document has no trustworthy answer.
fn inconclusive(scan: &ScannedTrace, name: &str, verdict: &DocumentVerdict) -> Option<Value> {
    if verdict.attack.result != AttackResult::Error {
        return None;
    }
    let why = verdict.attack.diagnostic.as_deref().unwrap_or_default();
    let reasons = verdict.indicators.iter().filter_map(|found| {
        let reason = found.reason.as_ref()?;
        Some(format!("{}: {reason}", found.id))
    });
    let reasons: Vec<String> = reasons.collect();
    let text = format!(
        "no verdict on {name} in {}: {why} ({})",
        scan.name,
        reasons.join("; ")
    );
    let at = location(name, None, None);
    Some(notification("warning", "inconclusive", &text, Some(at)))
}
