//! The JSON Schemas and `validate` agree, in every format that people write: valid files are changed at random, with a fixed
//! seed, and where the two differ, the difference is listed in `rules` with its reason.

mod change;
mod rules;
mod seeds;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jsonschema::Validator;
use proofhouse_lsp::formats::{FileKind, FormatKind, check_as};
use proofhouse_oatf::ReadLimits;
use proofhouse_source::{Diagnostic, DiagnosticSeverity};
use proofhouse_subjects::bundles::across;
use serde_json::{Value, json};

use change::{Chance, change};
use rules::{SCHEMA_ONLY, SEMANTIC, UNSTATED, WARNED};
use seeds::Seed;

/// What `validate` finds in a file that stands alone.
fn findings(kind: FileKind, value: &Value) -> Vec<Diagnostic> {
    let text = serde_json::to_string_pretty(value).unwrap();
    let path = Path::new("proofhouse.yaml");
    let mut checked = check_as(kind, Some(path), &text, &ReadLimits::default());
    if let Some(bundle) = &checked.bundle {
        let between = across(&[bundle]).into_iter().flatten();
        checked.findings.extend(between);
    }
    checked.findings
}

/// Whether a place is at one of these keys, or below it.
fn is_at(place: &str, keys: &[&str]) -> bool {
    let mut steps = place.split(['.', '/', '[']);
    keys.is_empty() || steps.any(|step| keys.contains(&step))
}

/// A difference that is not listed, if there is one.
fn unlisted(
    format: &str,
    schema: &Validator,
    value: &Value,
    found: &[Diagnostic],
) -> Option<String> {
    let mut errors = found
        .iter()
        .filter(|finding| finding.severity == DiagnosticSeverity::Error)
        .peekable();
    match (schema.iter_errors(value).next(), errors.peek().is_some()) {
        (None, false) | (Some(_), true) => None,
        (None, true) => {
            let is_listed = |finding: &Diagnostic| {
                let place = finding.path.as_deref().unwrap_or_default();
                let mut rules = SEMANTIC.iter().chain(UNSTATED);
                rules.any(|rule| rule.code == finding.code && is_at(place, rule.keys))
            };
            let open = errors.find(|finding| !is_listed(finding))?;
            Some(format!(
                "the schema accepts what `validate` refuses: {open}"
            ))
        }
        (Some(why), false) => {
            let place = why.instance_path().to_string();
            let is_warned =
                |finding: &Diagnostic| WARNED.iter().any(|(code, _)| *code == finding.code);
            let is_only =
                |(of, key, _): &(&str, &str, &str)| *of == format && is_at(&place, &[*key]);
            if found.iter().any(is_warned) || SCHEMA_ONLY.iter().any(is_only) {
                return None;
            }
            Some(format!(
                "`validate` accepts what the schema refuses: {why} at {place}, {found:?}"
            ))
        }
    }
}

/// How many changed files of each format are compared.
const CHANGED: usize = 500;

/// What chance rarely puts together: texts at a place that some files have.
const RARE: &[(&str, &[(&str, &str)])] =
    &[("/events/0", &[("timeout", "2h"), ("max_timeout", "1h")])];

/// The codes of errors that only `validate` finds in files with what is rare.
fn rare(seed: &Seed, schema: &Validator) -> Vec<&'static str> {
    let mut codes = Vec::new();
    for (place, texts) in RARE {
        let mut value = seed.value.clone();
        let Some(Value::Object(map)) = value.pointer_mut(place) else {
            continue;
        };
        map.extend(
            texts
                .iter()
                .map(|(key, text)| ((*key).to_owned(), json!(text))),
        );
        if schema.is_valid(&value) {
            let found = findings(seed.kind, &value).into_iter();
            let errors = found.filter(|finding| finding.severity == DiagnosticSeverity::Error);
            codes.extend(errors.map(|finding| finding.code));
        }
    }
    codes
}

#[test]
fn what_only_one_of_schema_and_validate_refuses_is_listed() {
    let seeds = seeds::all();
    let mut open = BTreeMap::new();
    let mut met = BTreeSet::new();
    for format in FormatKind::ALL {
        if matches!(format, FormatKind::Oatf | FormatKind::Result) {
            continue;
        }
        let name = format.name();
        let schema = format.schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let own: Vec<&Seed> = seeds.iter().filter(|seed| seed.format == *format).collect();
        assert!(!own.is_empty(), "there is no valid file of {name}");
        for seed in &own {
            let refused = validator.iter_errors(&seed.value).next();
            assert!(refused.is_none(), "{} as it is: {refused:?}", seed.name);
        }
        met.extend(own.iter().flat_map(|seed| rare(seed, &validator)));
        let mut chance = Chance::new(42);
        let mut both = 0;
        for (round, seed) in (0..CHANGED).zip(own.iter().cycle()) {
            let mut value = seed.value.clone();
            for _ in 0..=round % 3 {
                change(&mut value, &schema, &mut chance);
            }
            let found = findings(seed.kind, &value);
            let errors = found
                .iter()
                .filter(|finding| finding.severity == DiagnosticSeverity::Error);
            let is_valid = validator.is_valid(&value);
            let codes: Vec<&str> = errors.map(|finding| finding.code).collect();
            both += usize::from(!is_valid && !codes.is_empty());
            if is_valid {
                met.extend(codes);
            }
            if let Some(difference) = unlisted(name, &validator, &value, &found) {
                let line = format!("{}: {difference}", seed.name);
                let short: String = difference
                    .chars()
                    .filter(|c| !c.is_ascii_digit())
                    .take(90)
                    .collect();
                open.entry(format!("{name}: {short}")).or_insert(line);
            }
        }
        assert!(
            both > 50,
            "only {both} changes of {name} were refused by both"
        );
    }
    assert!(
        open.is_empty(),
        "{} differences are not listed: {:#?}",
        open.len(),
        open.values().collect::<Vec<_>>()
    );
    let idle: Vec<&str> = SEMANTIC
        .iter()
        .filter(|rule| !rule.why.is_empty() && !met.contains(rule.code))
        .map(|rule| rule.code)
        .collect();
    assert!(idle.is_empty(), "no change meets these rules: {idle:?}");
}

#[test]
fn a_wrong_word_is_refused_by_both() {
    let cases = [
        (
            FormatKind::Config,
            FileKind::Config,
            json!({"proofhouse": 2}),
        ),
        (
            FormatKind::Policy,
            FileKind::Policy,
            json!({"proofhouse_policy": 1, "pins": 3}),
        ),
        (FormatKind::Cases, FileKind::Cases, json!({"cases": 3})),
        (
            FormatKind::Tool,
            FileKind::Manifests,
            json!({"kind": "commonagents.info/v1/tool", "name": 3, "description": "d"}),
        ),
    ];
    for (format, kind, value) in cases {
        let schema = jsonschema::validator_for(&format.schema()).unwrap();
        assert!(!schema.is_valid(&value), "{value}");
        let found = findings(kind, &value);
        let is_refused = found
            .iter()
            .any(|finding| finding.severity == DiagnosticSeverity::Error);
        assert!(is_refused, "{value}: {found:?}");
    }
}
