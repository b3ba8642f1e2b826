//! Findings as SARIF 2.1.0, which code scanning services read.

use serde_json::{Value, json};

use super::Checked;
use crate::explanations::explanations;

pub(crate) fn document(checked: &[Checked]) -> Value {
    let mut used: Vec<&str> = checked
        .iter()
        .flat_map(|file| &file.findings)
        .map(|finding| finding.code)
        .collect();
    used.sort_unstable();
    used.dedup();
    let rules: Vec<Value> = explanations()
        .filter(|explanation| used.contains(&explanation.code))
        .map(|explanation| {
            json!({
                "id": explanation.code,
                "shortDescription": {"text": explanation.title},
                "fullDescription": {"text": explanation.text},
            })
        })
        .collect();
    let results: Vec<Value> = checked.iter().flat_map(results).collect();
    log(&rules, &results, &[])
}

/// A log of one run, with what the tool has to say about itself.
pub(crate) fn log(rules: &[Value], results: &[Value], notifications: &[Value]) -> Value {
    let mut log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "proofhouse",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    if !notifications.is_empty() {
        log["runs"][0]["invocations"] = json!([{
            "executionSuccessful": !notifications.iter().any(|note| note["level"] == "error"),
            "toolExecutionNotifications": notifications,
        }]);
    }
    log
}

/// A place in a file: all of it, or the lines and columns of `region`.
pub(crate) fn location(name: &str, region: Option<Value>, logical: Option<&str>) -> Value {
    let mut place = json!({"physicalLocation": {"artifactLocation": {"uri": as_uri(name)}}});
    if let Some(region) = region {
        place["physicalLocation"]["region"] = region;
    }
    if let Some(logical) = logical {
        place["logicalLocations"] = json!([{"fullyQualifiedName": logical}]);
    }
    place
}

fn results(file: &Checked) -> impl Iterator<Item = Value> {
    file.findings.iter().map(|finding| {
        let region = finding.span.map(|span| {
            json!({
                "startLine": span.line,
                "startColumn": span.column,
                "endColumn": file.end_column(span),
            })
        });
        let message = match &finding.help {
            Some(help) => format!("{} ({help})", finding.message),
            None => finding.message.clone(),
        };
        json!({
            "ruleId": finding.code,
            "level": finding.severity,
            "message": {"text": message},
            "locations": [location(&file.name, region, finding.path.as_deref())],
        })
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_uris() {
        assert_eq!(as_uri("a b/ü.yaml"), "a%20b/%C3%BC.yaml");
        assert_eq!(as_uri("<stdin>"), "%3Cstdin%3E");
    }
}
