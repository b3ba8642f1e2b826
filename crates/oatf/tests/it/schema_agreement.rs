//! The JSON Schema and `check` agree: what the schema accepts and `check` refuses breaks a rule that is listed here with the
//! reason why no schema can say it, and what the schema refuses has a finding.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proofhouse_oatf::{DiagnosticSeverity, ReadLimits, check, json_schema};
use proofhouse_source::Source;
use serde_json::{Value, json};

/// The rules that a schema cannot state, each with its reason.
const SEMANTIC: &[(&str, &str)] = &[
    ("V-005", "what a state may hold depends on its mode"),
    ("V-008", "the order of phases"),
    (
        "V-009",
        "the first phase only, and only without a state above",
    ),
    ("V-010", "ids differ between indicators"),
    ("V-011", "names differ between phases"),
    ("V-013", "the syntax of regular expressions"),
    ("V-014", "the syntax of CEL"),
    ("V-015", "the syntax of JSONPath"),
    ("V-016", "the braces of templates"),
    (
        "V-024",
        "the id of an indicator begins with that of its attack",
    ),
    ("V-028", "a mode may stand in several places"),
    ("V-030", "which forms of execution go together"),
    ("V-031", "names differ between actors"),
    (
        "V-032",
        "templates name actors and extractors that are there",
    ),
    ("V-033", "one entry without a condition, and it is the last"),
    ("V-042", "a capture group in a regular expression"),
    ("V-044", "the mode of a phase is that of its actor"),
    ("V-048", "indicators name actors that are there"),
    ("V-049", "the method fits what is looked for"),
    ("PH-103", "texts of nothing but spaces"),
];

/// Where the schema is stricter: open words that the format does not forbid to be empty.
const SCHEMA_ONLY: &[&str] = &["/framework"];

struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }
}

fn documents() -> Vec<(PathBuf, Value)> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".yaml") && !name.contains(".cases.") {
                files.push(path);
            }
        }
    }
    files.sort();
    let read = |path: PathBuf| {
        #[expect(clippy::disallowed_methods, reason = "a file of this repository")]
        let text = std::fs::read_to_string(&path).unwrap();
        let source = Source::read(&text, &ReadLimits::default()).unwrap();
        let value = source.root().to_value(&mut |_| {});
        (path, value)
    };
    files.into_iter().map(read).collect()
}

/// The pointers of all nodes, but not of what the format has no say in.
fn places(value: &Value, at: String, into: &mut Vec<String>) {
    let is_free = ["state", "x-proofhouse", "content", "params"];
    let last = at.rsplit('/').next().unwrap_or_default();
    if is_free.contains(&last) {
        return;
    }
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            places(value, format!("{at}/{key}"), into);
        }),
        Value::Array(items) => items.iter().enumerate().for_each(|(number, item)| {
            places(item, format!("{at}/{number}"), into);
        }),
        _ => {}
    }
    into.push(at);
}

/// Changes one thing.
fn mutate(value: &mut Value, chance: &mut Chance) {
    let mut all = Vec::new();
    places(value, String::new(), &mut all);
    let chosen = all[chance.below(all.len())].clone();
    let others = [
        json!(7),
        json!(-1),
        json!(true),
        json!("x"),
        json!(""),
        json!([]),
        json!({}),
        json!(0.5),
        json!(["a"]),
    ];
    match chance.below(5) {
        0 => {
            let (parent, key) = chosen.rsplit_once('/').unwrap_or(("", ""));
            match value.pointer_mut(parent) {
                Some(Value::Object(map)) => drop(map.remove(key)),
                Some(Value::Array(items)) => {
                    let number = key.parse().unwrap_or(0);
                    if items.len() > number {
                        items.remove(number);
                    }
                }
                _ => {}
            }
        }
        1 => {
            if let Some(Value::Object(map)) = value.pointer_mut(&chosen)
                && let Some(key) = map.keys().nth(chance.below(map.len())).cloned()
                && let Some(held) = map.remove(&key)
            {
                map.insert(format!("{key}z"), held);
            }
        }
        2 => {
            if let Some(Value::Array(items)) = value.pointer_mut(&chosen)
                && let Some(first) = items.first().cloned()
            {
                items.push(first);
            }
        }
        3 => {
            if let Some(Value::String(text)) = value.pointer_mut(&chosen) {
                let mut letters: Vec<char> = text.chars().take(200).collect();
                if letters.len() > 2 {
                    letters.swap(1, 2);
                }
                *text = letters.into_iter().collect();
            }
        }
        _ => {
            if let Some(held) = value.pointer_mut(&chosen) {
                *held = others[chance.below(others.len())].clone();
            }
        }
    }
}

#[test]
fn what_the_schema_accepts_and_check_refuses_is_a_semantic_rule() {
    let schema = jsonschema::validator_for(&json_schema()).unwrap();
    let documents = documents();
    assert!(documents.len() > 50, "only {} documents", documents.len());
    let mut chance = Chance(42);
    let mut unlisted: BTreeMap<&str, String> = BTreeMap::new();
    let mut unseen: Vec<String> = Vec::new();
    let (mut both, mut met) = (0, BTreeSet::new());
    let semantic: BTreeSet<&str> = SEMANTIC.iter().map(|(code, _)| *code).collect();
    for round in 0..12 {
        for (path, document) in &documents {
            let mut value = document.clone();
            if round > 0 {
                mutate(&mut value, &mut chance);
            }
            let text = serde_json::to_string_pretty(&value).unwrap();
            let findings = check(&text, &ReadLimits::default());
            let errors = findings
                .iter()
                .filter(|one| one.severity == DiagnosticSeverity::Error);
            let errors: Vec<_> = errors.collect();
            let refused = schema.iter_errors(&value).next();
            let name = path.file_name().unwrap().to_string_lossy();
            match (&refused, errors.is_empty()) {
                (Some(why), _)
                    if SCHEMA_ONLY
                        .iter()
                        .any(|end| why.instance_path().as_str().ends_with(end)) => {}
                (Some(why), _) if findings.is_empty() => {
                    unseen.push(format!("{name}: {why} at {}", why.instance_path()));
                }
                (Some(_), _) => both += 1,
                (None, true) => {}
                (None, false) => {
                    for error in errors {
                        met.insert(error.code);
                        if !semantic.contains(error.code) {
                            unlisted.insert(error.code, format!("{name}: {error}"));
                        }
                    }
                }
            }
            assert!(
                round > 0
                    || (refused.is_none()
                        && findings
                            .iter()
                            .all(|one| one.severity != DiagnosticSeverity::Error)),
                "{name} as it is: {findings:?}"
            );
        }
    }
    assert!(both > 150, "only {both} changes were refused by both");
    assert!(met.len() > 4, "only {met:?} were met");
    assert!(
        unlisted.is_empty(),
        "the schema accepts what these rules refuse: {unlisted:#?}"
    );
    unseen.truncate(10);
    assert!(
        unseen.is_empty(),
        "the schema refuses what nobody finds anything wrong with: {unseen:#?}"
    );
}

#[test]
fn a_word_that_is_no_severity_is_refused_by_both() {
    let schema = jsonschema::validator_for(&json_schema()).unwrap();
    for (severity, is_right) in [
        (json!("high"), true),
        (json!("hihg"), false),
        (json!({"level": "high", "confidence": 80}), true),
        (json!({"level": "hihg"}), false),
        (json!(3), false),
    ] {
        let document = json!({"oatf": "0.1", "attack": {
            "severity": severity,
            "execution": {"mode": "mcp_server", "state": {"tools": []}},
        }});
        assert_eq!(schema.is_valid(&document), is_right, "{document}");
        let findings = check(&document.to_string(), &ReadLimits::default());
        let is_refused = findings
            .iter()
            .any(|one| one.severity == DiagnosticSeverity::Error);
        assert_eq!(is_refused, !is_right, "{document}: {findings:?}");
    }
}
