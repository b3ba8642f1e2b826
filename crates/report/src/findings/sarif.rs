//! Findings as SARIF 2.1.0, which code scanning services read.

use proofhouse_oatf::CodeExplanation;
use serde_json::{Value, json};

use super::Checked;
use crate::sarif_log::{self, SarifLog, invocation};

/// The findings of all files as one log; of the explanations, it has those that findings need.
pub fn document(checked: &[Checked], explanations: impl Iterator<Item = CodeExplanation>) -> Value {
    let mut used: Vec<&str> = checked
        .iter()
        .flat_map(|file| &file.findings)
        .map(|finding| finding.code)
        .collect();
    used.sort_unstable();
    used.dedup();
    let rules = explanations
        .filter(|explanation| used.contains(&explanation.code))
        .map(|explanation| {
            let (title, text) = (explanation.title, explanation.text);
            sarif_log::rule(explanation.code, None, &title, &text)
        })
        .collect();
    log(rules, checked.iter().flat_map(results).collect(), &[])
}

/// A log of one run, with what the tool has to say about itself.
pub(crate) fn log(rules: Vec<Value>, results: Vec<Value>, notifications: &[Value]) -> Value {
    let failed = notifications.iter().any(|note| note["level"] == "error");
    SarifLog {
        version: env!("CARGO_PKG_VERSION"),
        information_uri: None,
        rules,
        invocation: (!notifications.is_empty()).then(|| invocation(!failed, notifications)),
        results,
    }
    .into_value()
}

/// A place in a file: all of it, or the lines and columns of `region`.
pub(crate) fn location(name: &str, region: Option<Value>, logical: Option<&str>) -> Value {
    let mut place = sarif_log::location(name, region);
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
        let place = location(&file.name, region, finding.path.as_deref());
        let level = finding.severity.to_string();
        sarif_log::result(finding.code, None, &level, &message, place)
    })
}
