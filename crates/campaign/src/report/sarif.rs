//! The report as SARIF 2.1.0: rules are documents, and a result points at the line of the indicator that
//! found something and at the message that shows it.

use serde_json::{Value, json};

use super::text::{cut, fingerprint, interval, line, of, plural, visible};
use super::view::{Finding, Pair, View};
use crate::comparison::Change;
use crate::result::{DocumentInfo, Outcome};

/// How much of a text is told.
const MOST_CHARACTERS: usize = 1_000;

/// How many results there are; services refuse files with more.
const MOST_RESULTS: usize = 5_000;

pub(super) fn render(view: &View<'_>) -> String {
    let rules: Vec<Value> = view.result.documents.iter().map(rule).collect();
    let (mut results, mut notifications) = (Vec::new(), Vec::new());
    for pair in view.pairs() {
        match pair.cell.outcome {
            Some(Outcome::Exploited | Outcome::Partial) => {
                let findings = pair.findings();
                results.extend(findings.iter().map(|finding| result(&pair, Some(finding))));
                // Some detectors of a whole run name no indicator.
                if findings.is_empty() {
                    results.push(result(&pair, None));
                }
            }
            Some(Outcome::NotReached) => notifications.push(notification(
                &pair,
                "not-reached",
                "note",
                "nothing of the attack reached the subject, so nothing is proved",
            )),
            Some(Outcome::Error) => notifications.push(notification(
                &pair,
                "no-verdict",
                "warning",
                pair.error().unwrap_or("no reason was given"),
            )),
            Some(Outcome::Resisted) | None => {}
        }
    }
    if results.len() > MOST_RESULTS {
        notifications.push(json!({
            "level": "warning",
            "descriptor": {"id": "results-left-out"},
            "message": {"text": format!("{} results are left out", results.len() - MOST_RESULTS)},
        }));
        results.truncate(MOST_RESULTS);
    }
    let mut invocation = json!({
        "executionSuccessful": view.result.complete,
        "toolExecutionNotifications": notifications,
    });
    if is_time(&view.result.started_at) {
        invocation["startTimeUtc"] = json!(view.result.started_at);
    }
    if let Some(ended) = view
        .result
        .finished_at
        .as_deref()
        .filter(|time| is_time(time))
    {
        invocation["endTimeUtc"] = json!(ended);
    }
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "proofhouse",
                "version": line(&view.result.proofhouse),
                "informationUri": "https://github.com/proofhouse/proofhouse",
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

fn rule(document: &DocumentInfo) -> Value {
    let name = if document.name.is_empty() {
        &document.id
    } else {
        &document.name
    };
    let about = if document.description.is_empty() {
        name
    } else {
        &document.description
    };
    let mut tags = vec!["security".to_owned()];
    tags.extend(document.category.iter().map(|category| line(category)));
    tags.extend(
        document
            .mappings
            .iter()
            .map(|mapping| line(&format!("{}/{}", mapping.framework, mapping.id))),
    );
    tags.extend(document.tags.iter().map(|tag| line(tag)));
    // The schema wants each tag once.
    let mut seen = std::collections::HashSet::new();
    tags.retain(|tag| seen.insert(tag.clone()));
    let mut properties = json!({"tags": tags});
    if let Some(score) = document.severity.as_deref().and_then(score) {
        properties["security-severity"] = json!(score);
    }
    json!({
        "id": line(&document.id),
        "name": line(&cut(name, MOST_CHARACTERS)),
        "shortDescription": {"text": some(&line(&cut(name, MOST_CHARACTERS)))},
        "fullDescription": {"text": some(&visible(&cut(about, MOST_CHARACTERS)))},
        "properties": properties,
    })
}

/// The middle of the range that code scanning services have for a level.
fn score(level: &str) -> Option<&'static str> {
    Some(match level {
        "informational" => "0.0",
        "low" => "2.0",
        "medium" => "5.5",
        "high" => "8.0",
        "critical" => "9.5",
        _ => return None,
    })
}

fn result(pair: &Pair<'_>, finding: Option<&Finding<'_>>) -> Value {
    let cell = pair.cell;
    let level = match cell.outcome {
        Some(Outcome::Exploited) => "error",
        _ => "warning",
    };
    let mut text = format!(
        "{} {} in {} runs (95% interval {})",
        pair.subject.name,
        if level == "error" {
            "was exploited"
        } else {
            "gave way in part"
        },
        of(&cell.attacks.success),
        interval(&cell.attacks.success),
    );
    let indicator = finding.map_or("", |finding| finding.indicator.id.as_str());
    let evidence = finding.and_then(|finding| finding.evidence);
    if let Some(finding) = finding {
        text.push_str(&format!(
            "; {indicator} matched in {}",
            plural(finding.runs, "run")
        ));
    }
    if let Some(evidence) = evidence {
        text.push_str(&format!(", message {}", evidence.seq));
        if let Some(path) = &evidence.path {
            text.push_str(&format!(" at {}", cut(path, MOST_CHARACTERS)));
        }
        if let Some(found) = &evidence.text {
            text.push_str(&format!(": {}", cut(found, MOST_CHARACTERS)));
        }
    }
    let number = finding.and_then(|finding| finding.info?.line);
    let mut place = location(&pair.document.path, number);
    if let Some(path) = evidence.and_then(|evidence| evidence.path.as_deref()) {
        place["logicalLocations"] = json!([{
            "name": line(&cut(indicator, MOST_CHARACTERS)),
            "fullyQualifiedName": line(&cut(path, MOST_CHARACTERS)),
        }]);
    }
    let print = fingerprint(&[&pair.document.id, &pair.subject.name, indicator]);
    let mut result = json!({
        "ruleId": line(&pair.document.id),
        "ruleIndex": pair.document_number,
        "level": level,
        "message": {"text": visible(&text)},
        "locations": [place],
        "partialFingerprints": {"documentSubjectIndicator/v1": format!("{print:016x}")},
        "properties": {
            "subject": line(&pair.subject.name),
            "simulation": pair.subject.simulation,
            "outcome": cell.outcome.map(Outcome::word),
            "tier": cell.tier.as_deref().map(line),
            "flaky": cell.flaky,
            "successRate": cell.attacks.success,
            "notReached": cell.attacks.not_reached,
        },
    });
    let recorded = finding.and_then(|finding| Some((finding, finding.run.trace.as_deref()?)));
    if let Some((finding, trace)) = recorded {
        let mut at =
            json!({"id": 1, "physicalLocation": {"artifactLocation": {"uri": as_uri(trace)}}});
        let seq = finding.evidence.map_or(0, |evidence| evidence.seq);
        at["message"] = json!({"text": format!("message {seq} of the recording")});
        result["relatedLocations"] = json!([at]);
    }
    if let Some(change) = pair.change {
        result["baselineState"] = json!(match change.change {
            Change::New => "new",
            Change::Unknown if change.before.is_none() => "new",
            Change::Worse | Change::Better => "updated",
            _ => "unchanged",
        });
    }
    result
}

fn notification(pair: &Pair<'_>, id: &str, level: &str, why: &str) -> Value {
    json!({
        "level": level,
        "descriptor": {"id": id},
        "message": {"text": visible(&cut(
            &format!("{} on {}: {why}", pair.document.id, pair.subject.name),
            MOST_CHARACTERS,
        ))},
        "locations": [location(&pair.document.path, None)],
    })
}

fn location(file: &str, number: Option<usize>) -> Value {
    let mut place = json!({"artifactLocation": {"uri": as_uri(file)}});
    // Services show results at lines only.
    place["region"] = json!({"startLine": number.unwrap_or(1).max(1)});
    json!({"physicalLocation": place})
}

/// A file name as a relative URI reference.
fn as_uri(name: &str) -> String {
    let mut uri = String::new();
    for byte in name.replace('\\', "/").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Whether a text is a time as the schema wants it: in UTC.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 20
        && bytes.len() <= 40
        && bytes.ends_with(b"Z")
        && bytes.get(10) == Some(&b'T')
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(byte))
}

/// A text, or a word where there must be one.
fn some(text: &str) -> &str {
    if text.is_empty() { "untitled" } else { text }
}
