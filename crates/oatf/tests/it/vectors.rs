//! The public vectors: scenario documents load, and the JSON Schemas agree with each other.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on fails"
)]

use std::path::{Path, PathBuf};

use jsonschema::Validator;
use proofhouse_oatf::{json_schema, load};
use proofhouse_source::{ReadLimits, Source};
use proofhouse_test_support::workspace::vectors;
use serde_json::Value;

/// Where our schema and the published one differ, and why. A case that is not listed must agree,
/// and one that is listed must not.
const DISAGREEMENTS: &[(&str, Verdict, &str)] = &[(
    "VAL-009b",
    Verdict::OnlyOursAccepts,
    "that the first phase has `state` is left to V-009, which says so at its place",
)];

/// What the two schemas say of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    OnlyOursAccepts,
    OnlyTheirsAccepts,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the vectors are files of this project"
)]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The YAML files below a directory that are documents, in order.
fn documents(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                directories.push(path);
            } else if name.ends_with(".yaml") && !name.ends_with(".meta.yaml") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The texts of the public documents, scenarios and those of the suite, in order; none where the vectors are not at hand.
pub(crate) fn public_texts() -> Vec<String> {
    let Some(vectors) = vectors("the public documents", "") else {
        return Vec::new();
    };
    let mut paths = documents(&vectors.join("oatf-scenarios"));
    paths.extend(documents(&vectors.join("oatf-conformance/parse/valid")));
    paths.iter().map(|path| read(path)).collect()
}

/// The text as a value, if it is YAML we read at all; what we refuse outright no schema sees.
fn to_json(text: &str) -> Option<Value> {
    let source = Source::read(text, &ReadLimits::default()).ok()?;
    let mut odd = false;
    let value = source.root().to_value(&mut |_| odd = true);
    (!odd).then_some(value)
}

fn ours() -> Validator {
    jsonschema::draft202012::new(&json_schema()).unwrap()
}

fn why_not(schema: &Validator, value: &Value) -> Vec<String> {
    schema
        .iter_errors(value)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect()
}

#[test]
fn the_schema_is_a_schema() {
    jsonschema::draft202012::meta::validate(&json_schema()).unwrap();
}

#[test]
fn all_forty_scenarios_load_and_fit_the_schema() {
    let Some(vectors) = vectors("the public vectors", "") else {
        return;
    };
    let schema = ours();
    let scenarios = documents(&vectors.join("oatf-scenarios"));
    assert_eq!(scenarios.len(), 40);
    for path in scenarios {
        let text = read(&path);
        if let Err(errors) = load(&text) {
            panic!("{}: {errors:#?}", path.display());
        }
        let value = to_json(&text).unwrap();
        assert!(
            schema.is_valid(&value),
            "{}: {:#?}",
            path.display(),
            why_not(&schema, &value)
        );
    }
}

#[test]
fn the_schema_accepts_what_parses_and_refuses_what_does_not() {
    let Some(vectors) = vectors("the public vectors", "") else {
        return;
    };
    let schema = ours();
    let parse = vectors.join("oatf-conformance/parse");
    for path in documents(&parse.join("valid")) {
        let value = to_json(&read(&path)).unwrap();
        assert!(
            schema.is_valid(&value),
            "{}: {:#?}",
            path.display(),
            why_not(&schema, &value)
        );
    }
    let mut refused = 0;
    for path in documents(&parse.join("invalid")) {
        if let Some(value) = to_json(&read(&path)).filter(Value::is_object) {
            assert!(!schema.is_valid(&value), "{}", path.display());
            refused += 1;
        }
    }
    assert!(refused >= 2, "the invalid vectors hold mappings");
}

#[test]
fn our_schema_and_the_published_one_agree_but_for_what_is_explained() {
    let Some(vectors) = vectors("the public vectors", "") else {
        return;
    };
    let published: Value =
        serde_json::from_str(&read(&vectors.join("schemas/oatf-v0.1.json"))).unwrap();
    let published = jsonschema::validator_for(&published).unwrap();
    let ours = ours();
    let suite = to_json(&read(&vectors.join("oatf-conformance/validate/suite.yaml"))).unwrap();
    let mut problems = Vec::new();
    let mut compared = 0;
    for case in suite.as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        let listed = DISAGREEMENTS.iter().find(|(listed, ..)| *listed == id);
        let Some(value) = case["input"].as_str().and_then(to_json) else {
            assert!(listed.is_none(), "{id} is not compared");
            continue;
        };
        compared += 1;
        let found = match (ours.is_valid(&value), published.is_valid(&value)) {
            (true, false) => Some(Verdict::OnlyOursAccepts),
            (false, true) => Some(Verdict::OnlyTheirsAccepts),
            _ => None,
        };
        if found != listed.map(|(_, verdict, _)| *verdict) {
            let reasons = [why_not(&ours, &value), why_not(&published, &value)].concat();
            problems.push(format!(
                "{id} {}: {found:?}\n    {}",
                case["name"],
                reasons.join("\n    ")
            ));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(compared > 140, "only {compared} documents compared");
    for (id, ..) in DISAGREEMENTS {
        assert!(
            suite
                .as_array()
                .unwrap()
                .iter()
                .any(|case| case["id"] == *id),
            "no case {id}"
        );
    }
}
