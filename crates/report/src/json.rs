//! The report for programs: the result as it is, with what it adds up to, and the schema of that.

use proofhouse_source::format::schema::id;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::Value;

use super::text::is_hidden;
use super::view::ReportView;
use proofhouse_campaign::comparison::Comparison;
use proofhouse_campaign::result::CampaignResult;
use proofhouse_campaign::summary::CampaignSummary;

/// What a campaign found, and what that adds up to.
///
/// The form of the JSON report. Fields may be added; `version` grows when one changes or goes away.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Result")]
struct JsonReport<'a> {
    #[serde(flatten)]
    result: &'a CampaignResult,
    /// What the runs add up to. It follows from them, and is not read back.
    summary: &'a CampaignSummary,
    /// What changed since the baseline, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<&'a Comparison>,
}

pub(crate) fn render(view: &ReportView<'_>) -> String {
    let report = JsonReport {
        result: view.result,
        summary: &view.summary,
        comparison: view.input.comparison,
    };
    // Every type here has text for keys, so there is nothing that cannot be written.
    let json = serde_json::to_string_pretty(&report).unwrap_or_default();
    let mut escaped = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        // Line feeds stand between lines; all else that cannot be seen is in texts, and means the same
        // as an escape.
        if c != '\n' && is_hidden(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped.push('\n');
    escaped
}

/// The JSON Schema of the JSON report, made from the types themselves.
#[must_use]
pub fn json_schema() -> Value {
    let mut fields = serde_json::Map::new();
    fields.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    fields.insert("$id".to_owned(), id("result").into());
    fields.insert("title".to_owned(), "Result of a Proofhouse campaign".into());
    // What the types say comes after what the whole is.
    if let Value::Object(generated) = schema_for!(JsonReport<'static>).to_value() {
        for (name, value) in generated {
            fields.entry(name).or_insert(value);
        }
    }
    Value::Object(fields)
}
