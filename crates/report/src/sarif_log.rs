//! The skeleton of SARIF 2.1.0, which every report in that format is made of: the log with its one run, rules,
//! results, places, and what the tool has to say about itself.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use proofhouse_oatf::SeverityLevel;
use proofhouse_wire::fnv;
use serde_json::{Value, json};

/// What is written by its number in a URI reference.
const IN_URI: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~');

/// A log of one run of the tool.
#[derive(Debug)]
pub struct SarifLog<'a> {
    /// The version of the tool.
    pub version: &'a str,
    /// Where more is said about the tool.
    pub information_uri: Option<&'a str>,
    /// The rules that results name.
    pub rules: Vec<Value>,
    /// How the run went, if that is told.
    pub invocation: Option<Value>,
    /// What was found.
    pub results: Vec<Value>,
}

impl SarifLog<'_> {
    /// The log as JSON.
    #[must_use]
    pub fn into_value(self) -> Value {
        let mut driver = json!({"name": "proofhouse", "version": self.version});
        if let Some(uri) = self.information_uri {
            driver["informationUri"] = json!(uri);
        }
        driver["rules"] = Value::Array(self.rules);
        let mut run = json!({"tool": {"driver": driver}, "columnKind": "unicodeCodePoints"});
        if let Some(invocation) = self.invocation {
            run["invocations"] = Value::Array(vec![invocation]);
        }
        run["results"] = Value::Array(self.results);
        json!({
            "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
            "version": "2.1.0",
            "runs": [run],
        })
    }
}

/// How a run of the tool went.
#[must_use]
pub fn invocation(is_successful: bool, notifications: &[Value]) -> Value {
    json!({
        "executionSuccessful": is_successful,
        "toolExecutionNotifications": notifications,
    })
}

/// Something the tool has to say that is no result.
#[must_use]
pub fn notification(level: &str, id: &str, text: &str, location: Option<Value>) -> Value {
    let mut notification = json!({
        "level": level,
        "descriptor": {"id": id},
        "message": {"text": text},
    });
    if let Some(location) = location {
        notification["locations"] = Value::Array(vec![location]);
    }
    notification
}

/// A rule: its id, its name if it has one, and what it is about in short and in full.
#[must_use]
pub fn rule(id: &str, name: Option<&str>, short: &str, full: &str) -> Value {
    let mut rule = json!({"id": id});
    if let Some(name) = name {
        rule["name"] = json!(name);
    }
    rule["shortDescription"] = json!({"text": short});
    rule["fullDescription"] = json!({"text": full});
    rule
}

/// A result: the rule, its place in the list if that is told, and what was found where.
#[must_use]
pub fn result(
    rule: &str,
    rule_index: Option<usize>,
    level: &str,
    text: &str,
    location: Value,
) -> Value {
    let mut result = json!({"ruleId": rule});
    if let Some(index) = rule_index {
        result["ruleIndex"] = json!(index);
    }
    result["level"] = json!(level);
    result["message"] = json!({"text": text});
    result["locations"] = Value::Array(vec![location]);
    result
}

/// A place in a file: all of it, or the lines and columns of `region`.
#[must_use]
pub fn location(file: &str, region: Option<Value>) -> Value {
    json!({"physicalLocation": physical_location(file, region)})
}

/// What [`location`] says of the file.
#[must_use]
pub fn physical_location(file: &str, region: Option<Value>) -> Value {
    let mut location = json!({"artifactLocation": {"uri": as_uri(file)}});
    if let Some(region) = region {
        location["region"] = region;
    }
    location
}

/// The middle of the range that code scanning services have for a level.
#[must_use]
pub fn security_severity(level: SeverityLevel) -> &'static str {
    match level {
        SeverityLevel::Informational => "0.0",
        SeverityLevel::Low => "2.0",
        SeverityLevel::Medium => "5.5",
        SeverityLevel::High => "8.0",
        SeverityLevel::Critical => "9.5",
    }
}

/// A number that stays the same from one version to the next, so that services can tell what they have seen
/// before, even when lines moved.
#[must_use]
pub fn fingerprint(parts: &[&str]) -> u64 {
    fnv::hash_64(parts.iter().flat_map(|part| part.bytes().chain([0xff])))
}

/// A file name as a relative URI reference.
fn as_uri(name: &str) -> String {
    utf8_percent_encode(&name.replace('\\', "/"), IN_URI).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_uris() {
        assert_eq!(as_uri("a b/ü.yaml"), "a%20b/%C3%BC.yaml");
        assert_eq!(as_uri("<stdin>"), "%3Cstdin%3E");
        assert_eq!(as_uri("a\\b-c_d~e.f"), "a/b-c_d~e.f");
    }
}
