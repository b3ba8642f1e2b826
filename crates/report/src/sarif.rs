//! The report as SARIF 2.1.0: rules are documents, and a result points at the line of the indicator that
//! found something and at the message that shows it.

use serde_json::{Value, json};

use super::sarif_log::{
    self, SarifLog, fingerprint, location, physical_location, security_severity,
};
use super::text::{cut, interval, line, of, plural, visible};
use super::view::{Finding, MatrixCell, ReportView};
use proofhouse_campaign::comparison::Change;
use proofhouse_campaign::outcome::{InconclusiveReason, RunOutcome};
use proofhouse_campaign::result::DocumentInfo;

/// How much of a text is told.
const MOST_CHARACTERS: usize = 1_000;

/// How many results there are; services refuse files with more.
const MOST_RESULTS: usize = 5_000;

pub(crate) fn render(view: &ReportView<'_>) -> String {
    let rules: Vec<Value> = view.result.documents.iter().map(rule).collect();
    let (mut results, mut notifications) = (Vec::new(), Vec::new());
    for cell in view.cells() {
        match cell.summary.outcome {
            Some(RunOutcome::Exploited | RunOutcome::Partial) => {
                let findings = cell.findings();
                results.extend(
                    findings
                        .iter()
                        .map(|finding| result(view, &cell, Some(finding))),
                );
                // Some detectors of a whole run name no indicator.
                if findings.is_empty() {
                    results.push(result(view, &cell, None));
                }
            }
            Some(RunOutcome::Inconclusive) => {
                let level = if cell.summary.attacks.errors > 0 {
                    "warning"
                } else {
                    "note"
                };
                let why = format!("inconclusive: {}", cell.unproved());
                let mut told = notification(view, &cell, "inconclusive", level, &why);
                told["properties"] = json!({
                    "reason": cell.reason().map(InconclusiveReason::code),
                    "conditions": conditions(&cell),
                });
                notifications.push(told);
            }
            Some(RunOutcome::Resisted) | None => {}
        }
    }
    if results.len() > MOST_RESULTS {
        let text = format!("{} results are left out", results.len() - MOST_RESULTS);
        notifications.push(sarif_log::notification(
            "warning",
            "results-left-out",
            &text,
            None,
        ));
        results.truncate(MOST_RESULTS);
    }
    let mut invocation = sarif_log::invocation(view.result.complete, &notifications);
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
    let log = SarifLog {
        version: &line(&view.result.proofhouse),
        information_uri: proofhouse_wire::repository::REPOSITORY,
        rules,
        invocation: Some(invocation),
        results,
    };
    format!("{:#}\n", log.into_value())
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
    let name = line(&cut(name, MOST_CHARACTERS));
    let about = visible(&cut(about, MOST_CHARACTERS));
    let mut rule = sarif_log::rule(
        &line(&document.id),
        Some(&name),
        or_untitled(&name),
        or_untitled(&about),
    );
    let fixes: Vec<String> = document
        .mitigation
        .parts()
        .map(|(place, what)| format!("{place}: {}", visible(&cut(what, MOST_CHARACTERS))))
        .collect();
    if !fixes.is_empty() {
        rule["help"] = json!({"text": format!("How to fix it.\n{}", fixes.join("\n"))});
    }
    rule["properties"] = json!({"tags": tags});
    let severity = document.severity.as_deref();
    if let Some(level) = severity.and_then(|level| level.parse().ok()) {
        rule["properties"]["security-severity"] = json!(security_severity(level));
    }
    rule
}

fn result(view: &ReportView<'_>, cell: &MatrixCell<'_>, finding: Option<&Finding<'_>>) -> Value {
    let summary = cell.summary;
    let level = match summary.outcome {
        Some(RunOutcome::Exploited) => "error",
        Some(RunOutcome::Partial | RunOutcome::Resisted | RunOutcome::Inconclusive) | None => {
            "warning"
        }
    };
    let mut text = format!(
        "{} {} in {} runs (95% interval {})",
        cell.subject.name,
        if level == "error" {
            "was exploited"
        } else {
            "gave way in part"
        },
        of(&summary.attacks.success),
        interval(&summary.attacks.success),
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
        text.push_str(&format!(", {}", evidence.messages()));
        if let Some(path) = &evidence.path {
            text.push_str(&format!(" at {}", cut(path, MOST_CHARACTERS)));
        }
        if let Some(found) = &evidence.text {
            text.push_str(&format!(": {}", cut(found, MOST_CHARACTERS)));
        }
    }
    let number = finding.and_then(|finding| finding.info?.line);
    let mut place = at_line(view.place_of(cell.document, number));
    if let Some(path) = evidence.and_then(|evidence| evidence.path.as_deref()) {
        place["logicalLocations"] = json!([{
            "name": line(&cut(indicator, MOST_CHARACTERS)),
            "fullyQualifiedName": line(&cut(path, MOST_CHARACTERS)),
        }]);
    }
    let mut result = sarif_log::result(
        &line(&cell.document.id),
        Some(cell.document_number),
        level,
        &visible(&text),
        place,
    );
    let print = fingerprint(&[&cell.document.id, &cell.subject.name, indicator]);
    result["partialFingerprints"] = json!({"documentSubjectIndicator/v1": format!("{print:016x}")});
    result["properties"] = json!({
        "subject": line(&cell.subject.name),
        "simulation": cell.subject.simulation,
        "outcome": summary.outcome.map(RunOutcome::word),
        "tier": summary.tier.as_deref().map(line),
        "flaky": summary.flaky,
        "successRate": summary.attacks.success,
        "inconclusive": summary.attacks.inconclusive,
        "conditions": conditions(cell),
    });
    if let Some(risk) = view.acceptance(cell) {
        result["suppressions"] = json!([{
            "kind": "external",
            "status": "accepted",
            "justification": visible(&cut(&format!("{} (until {})", risk.reason, risk.until), MOST_CHARACTERS)),
        }]);
    }
    let recorded = finding.and_then(|finding| Some((finding, finding.run.trace.as_deref()?)));
    if let Some((finding, trace)) = recorded {
        let seq = finding.evidence.map_or(0, |evidence| evidence.seq);
        result["relatedLocations"] = json!([{
            "id": 1,
            "physicalLocation": physical_location(&in_directory(view, trace), None),
            "message": {"text": format!("message {seq} of the recording")},
        }]);
    }
    if let Some(change) = cell.change {
        result["baselineState"] = json!(match change.change {
            Change::New => "new",
            Change::Unknown if change.before.is_none() => "new",
            Change::Worse | Change::Better => "updated",
            Change::Fixed | Change::Unchanged | Change::Unknown => "unchanged",
        });
    }
    result
}

/// A file of the campaign, from where the user is.
fn in_directory(view: &ReportView<'_>, file: &str) -> String {
    match view.input.directory {
        Some(directory) => format!("{}/{file}", directory.trim_end_matches('/')),
        None => file.to_owned(),
    }
}

/// In how many runs each condition held.
fn conditions(cell: &MatrixCell<'_>) -> Value {
    let conditions = cell.conditions().into_iter();
    let conditions = conditions.map(|(name, some, all)| {
        let counts = json!({"held": some, "runs": all});
        (name.to_owned(), counts)
    });
    Value::Object(conditions.collect())
}

fn notification(
    view: &ReportView<'_>,
    cell: &MatrixCell<'_>,
    id: &str,
    level: &str,
    why: &str,
) -> Value {
    let text = format!("{} on {}: {why}", cell.document.id, cell.subject.name);
    let text = visible(&cut(&text, MOST_CHARACTERS));
    let place = at_line(view.place_of(cell.document, None));
    sarif_log::notification(level, id, &text, Some(place))
}

/// A line of a file: services show results at lines only.
fn at_line((file, number): (String, usize)) -> Value {
    location(&file, Some(json!({"startLine": number})))
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
fn or_untitled(text: &str) -> &str {
    if text.is_empty() { "untitled" } else { text }
}
