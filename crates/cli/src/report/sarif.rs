//! Findings as SARIF 2.1.0, which code scanning services read.

use proofhouse_oatf::{DiagnosticSeverity, explanations};
use serde_json::{Value, json};

use super::Checked;

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
    json!({
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
    })
}

fn results(file: &Checked) -> impl Iterator<Item = Value> {
    file.findings.iter().map(|finding| {
        let level = match finding.severity {
            DiagnosticSeverity::Error => "error",
            DiagnosticSeverity::Warning => "warning",
        };
        let mut location = json!({"artifactLocation": {"uri": as_uri(&file.name)}});
        if let Some(span) = finding.span {
            let shown = file
                .text
                .get(span.range())
                .unwrap_or_default()
                .chars()
                .count();
            location["region"] = json!({
                "startLine": span.line,
                "startColumn": span.column,
                "endColumn": span.column + shown.max(1),
            });
        }
        let message = match &finding.help {
            Some(help) => format!("{} ({help})", finding.message),
            None => finding.message.clone(),
        };
        let mut place = json!({"physicalLocation": location});
        if let Some(path) = &finding.path {
            place["logicalLocations"] = json!([{"fullyQualifiedName": path}]);
        }
        json!({
            "ruleId": finding.code,
            "level": level,
            "message": {"text": message},
            "locations": [place],
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
