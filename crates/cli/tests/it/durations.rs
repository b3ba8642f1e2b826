//! Durations are the same everywhere: what the reader of a format accepts, its JSON Schema accepts, too.
#![allow(clippy::expect_used, reason = "tests")]

use std::fs;
use std::process::Command;

use proofhouse_source::DiagnosticSeverity;
use serde_json::{Value, json};

/// Durations, and whether threat documents and everything else accept them.
const DURATIONS: &[(&str, bool, bool)] = &[
    ("30s", true, true),
    ("5m", true, true),
    ("1h", true, true),
    ("2d", true, true),
    ("007s", true, true),
    ("PT30S", true, true),
    ("PT5M", true, true),
    ("PT1H", true, true),
    ("P2D", true, true),
    ("PT5M30S", true, true),
    ("PT1H30M", true, true),
    ("PT1H15S", true, true),
    ("PT1H30M15S", true, true),
    ("P1DT12H", true, true),
    ("P1DT12H30M15S", true, true),
    // Milliseconds are not for documents.
    ("250ms", false, true),
    // What takes no time makes sense in documents alone.
    ("0s", true, false),
    ("PT0S", true, false),
    ("P0DT0H0M0S", true, false),
    ("0ms", false, false),
    ("1h30m", false, false),
    ("1m500ms", false, false),
    ("90", false, false),
    ("", false, false),
    ("s", false, false),
    ("ms", false, false),
    ("1.5h", false, false),
    ("-5s", false, false),
    ("+5s", false, false),
    (" 5s", false, false),
    ("5s ", false, false),
    ("5s\n", false, false),
    ("5 s", false, false),
    ("5S", false, false),
    ("5M", false, false),
    ("5w", false, false),
    ("P", false, false),
    ("PT", false, false),
    ("P1DT", false, false),
    ("P1H", false, false),
    ("PT1D", false, false),
    ("PT-30S", false, false),
    ("PT30M1H", false, false),
    ("PT1S1M", false, false),
    ("P1W", false, false),
    ("PT1.5S", false, false),
    ("PT250MS", false, false),
    ("pt1s", false, false),
    ("P1Y", false, false),
    ("５s", false, false),
];

/// Has a reader and a schema judge a document with each of the durations.
fn check(
    format: &str,
    schema: &Value,
    is_document: bool,
    document: impl Fn(&str) -> Value,
    accepts: impl Fn(&str) -> bool,
) {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    for (duration, in_documents, elsewhere) in DURATIONS {
        let expected = if is_document {
            *in_documents
        } else {
            *elsewhere
        };
        let document = document(duration);
        let by_schema = validator.is_valid(&document);
        assert_eq!(by_schema, expected, "the schema of {format}: {duration:?}");
        // JSON is YAML.
        let by_reader = accepts(&document.to_string());
        assert_eq!(by_reader, expected, "the reader of {format}: {duration:?}");
    }
}

#[test]
fn threat_documents() {
    let accepts = |text: &str| proofhouse_oatf::load(text).is_ok();
    let schema = proofhouse_oatf::json_schema();
    check(
        "grace_period",
        &schema,
        true,
        |duration| {
            json!({"oatf": "0.1", "attack": {
                "grace_period": duration, "execution": {"mode": "mcp_server", "state": {}},
            }})
        },
        accepts,
    );
    check(
        "after",
        &schema,
        true,
        |duration| {
            json!({"oatf": "0.1", "attack": {"execution": {"mode": "mcp_server", "phases": [
                {"state": {}, "trigger": {"after": duration}}, {"state": {}},
            ]}}})
        },
        accepts,
    );
}

#[test]
fn manifests() {
    let accepts = |text: &str| {
        let (_, findings) = proofhouse_manifest::Bundle::read(text);
        findings
            .iter()
            .all(|finding| finding.severity != DiagnosticSeverity::Error)
    };
    let tool = |event: Value| {
        json!({
            "kind": "commonagents.info/v1beta2/tool", "namespace": "n", "name": "t", "description": "d",
            "events": [event],
        })
    };
    check(
        "timeout",
        &proofhouse_manifest::json_schema(),
        false,
        |duration| {
            tool(
                json!({"name": "e", "message": "m", "timeout": duration, "receive": {"webhook": {}}}),
            )
        },
        accepts,
    );
    check(
        "interval",
        &proofhouse_manifest::json_schema(),
        false,
        |duration| {
            tool(json!({"name": "e", "message": "m", "receive": {"poll": {
                "method": "GET", "url": "https://example.com/", "detect": "[]", "interval": duration,
            }}}))
        },
        accepts,
    );
    check(
        "max_age",
        &proofhouse_manifest::agent_json_schema(),
        false,
        |duration| {
            json!({
                "kind": "commonagents.info/v1beta2/agent", "namespace": "n", "name": "a", "description": "d",
                "prompt": "p", "limits": {"max_age": duration},
            })
        },
        accepts,
    );
}

#[test]
fn the_configuration_of_a_project() {
    let proofhouse = |arguments: &[&str]| {
        let command = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
            .args(arguments)
            .output();
        command.expect("proofhouse runs")
    };
    let schema = proofhouse(&["schema", "config"]).stdout;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("proofhouse.yaml");
    check(
        "deadline",
        &serde_json::from_slice(&schema).expect("JSON"),
        false,
        |duration| json!({"proofhouse": 1, "subjects": [{"name": "s", "model": "openai:x", "deadline": duration}]}),
        |text| {
            fs::write(&file, text).expect("a file");
            let path = file.to_str().expect("a path");
            proofhouse(&["validate", path]).status.success()
        },
    );
}
