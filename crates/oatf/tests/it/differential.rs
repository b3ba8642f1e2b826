//! The same documents and messages, here and in the public crate `oatf`: every difference is of a class that is listed with its
//! reason.
//!
//! Documents are the public ones, changed at random from a fixed seed. The peer is asked through its documented functions only.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proofhouse_oatf::{
    DefaultCelEvaluator, OatfError, ReadLimits, evaluate_indicator, load_with, parse, to_value,
};
use proofhouse_source::to_yaml;
use serde_json::{Value, json};

use super::differential_table::DIFFERENCES;

/// How many changed documents are compared.
const MUTANTS: u64 = 10_000;

/// Random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }
}

/// What takes the place of a value.
fn replacement(random: &mut Random) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(101),
        json!(7),
        json!(0.5),
        json!(1e300),
        json!(""),
        json!(" "),
        json!("x"),
        json!("tools[*].name"),
        json!("tools[0]"),
        json!("a..b"),
        json!("{{request.name}}"),
        json!("{{nobody.x}}"),
        json!("{{unclosed"),
        json!("30s"),
        json!("PT1M"),
        json!("2026-02-30"),
        json!("9999-12-31"),
        json!("mcp_server"),
        json!("voice_client"),
        json!("mcp"),
        json!("(?=a)"),
        json!("a+(b)"),
        json!("has(v)"),
        json!("message.a =="),
        json!("$.a[0]"),
        json!("$.["),
        json!("high"),
        json!("ACME-001"),
        json!("ACME-001-01"),
        json!([]),
        json!({}),
        json!(["x"]),
        json!({"contains": "x"}),
        json!({"regex": "["}),
        json!({"exists": false}),
    ];
    let chosen = random.below(values.len());
    values[chosen].clone()
}

/// Changes one place of a document.
fn mutate(value: &mut Value, random: &mut Random) {
    // Two times of three the walk goes on, so that all depths are reached.
    let deeper = random.below(8) != 0;
    match value {
        Value::Object(map) if !map.is_empty() => {
            let chosen = random.below(map.len());
            let Some(key) = map.keys().nth(chosen).cloned() else {
                return;
            };
            match (deeper, random.below(4)) {
                (false, 0) => {
                    map.shift_remove(&key);
                }
                (false, 1) => {
                    if let Some(value) = map.shift_remove(&key) {
                        map.insert(format!("{key}s"), value);
                    }
                }
                (false, 2) => {
                    map.insert("x-more".to_owned(), replacement(random));
                }
                _ => {
                    if let Some(inner) = map.get_mut(&key) {
                        mutate(inner, random);
                    }
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let chosen = random.below(items.len());
            match (deeper, random.below(3)) {
                (false, 0) => {
                    items.remove(chosen);
                }
                (false, 1) => {
                    let twice = items[chosen].clone();
                    items.push(twice);
                }
                _ => mutate(&mut items[chosen], random),
            }
        }
        other => *other = replacement(random),
    }
}

/// A message that has something to do with the document: its texts at the places that indicators look at.
fn message(document: &Value, random: &mut Random) -> Value {
    let mut texts = vec![
        json!("x"),
        json!(7),
        json!(null),
        json!(["a", "b"]),
        json!({"k": "v"}),
    ];
    for indicator in document["attack"]["indicators"]
        .as_array()
        .into_iter()
        .flatten()
    {
        for part in ["contains", "starts_with", "ends_with", "regex"] {
            let pattern = &indicator["pattern"];
            for found in [
                &pattern[part],
                &pattern["condition"][part],
                &pattern["condition"],
            ] {
                if found.is_string() {
                    texts.push(found.clone());
                }
            }
        }
    }
    let mut pick = || {
        let chosen = random.below(texts.len());
        texts[chosen].clone()
    };
    json!({
        "name": pick(),
        "arguments": {"command": pick(), "path": pick(), "text": pick(), "url": pick(), "query": pick(), "a": pick()},
        "content": [{"type": "text", "text": pick()}, {"text": pick()}],
        "tools": [{"name": pick(), "description": pick()}],
        "messages": [{"role": "user", "content": pick(), "parts": [{"text": pick()}]}],
        "parts": [{"text": pick()}],
        "delta": pick(),
        "text": pick(),
        "artifacts": [{"parts": [{"text": pick()}]}],
    })
}

/// The rule that is named first in what the peer says.
fn rule_in(text: &str) -> String {
    let found = text.match_indices("V-").find_map(|(at, _)| {
        let code = text.get(at..at + 5)?;
        code[2..]
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then_some(code)
    });
    found.unwrap_or("parse").to_owned()
}

/// The name of the list or mapping that holds the key at the end of a path.
fn owner_of(path: &str) -> String {
    let mut keys = path.rsplit('.');
    keys.next();
    let owner = keys.next().unwrap_or_default();
    owner.split('[').next().unwrap_or_default().to_owned()
}

/// Compares one document; notes each difference by its class, with an example.
fn compare(
    seed: u64,
    text: &str,
    value: &Value,
    random: &mut Random,
    found: &mut BTreeMap<String, (u64, String)>,
    compared: &mut BTreeMap<(&'static str, String), u64>,
) {
    let mut note = |class: String, example: &str| {
        let entry = found.entry(class).or_insert_with(|| {
            let example: String = example.chars().take(600).collect();
            (0, format!("seed {seed}: {example}"))
        });
        entry.0 += 1;
    };
    let ours = load_with(text, &ReadLimits::default());
    let theirs = oatf::load(text);
    match (ours, theirs) {
        (Err(ours), Ok(_)) => {
            let (code, path, message) = match &ours[0] {
                OatfError::Parse(error) => (error.code, error.path.clone(), error.to_string()),
                OatfError::Validation(error) => {
                    (error.rule, Some(error.path.clone()), error.to_string())
                }
            };
            // Of unknown keys it matters whose they are.
            let place = match (code, path) {
                ("PH-009", Some(path)) => format!(" in {}", owner_of(&path)),
                _ => String::new(),
            };
            note(format!("only we refuse: {code}{place}"), &message);
        }
        (Ok(_), Err(theirs)) => {
            let said = format!("{theirs:?}");
            note(format!("only they refuse: {}", rule_in(&said)), &said);
        }
        (Err(_), Err(_)) => {}
        (Ok(ours), Ok(theirs)) => {
            let our_indicators = ours.document.attack.indicators();
            let their_indicators = theirs.document.attack.indicators.unwrap_or_default();
            if our_indicators.len() != their_indicators.len() {
                note("other indicators".to_owned(), text);
                return;
            }
            for (our, their) in our_indicators.iter().zip(&their_indicators) {
                let message = message(value, random);
                let our_verdict =
                    evaluate_indicator(our, &message, Some(&DefaultCelEvaluator), None);
                let cel = oatf::evaluate::DefaultCelEvaluator;
                let their_verdict =
                    oatf::evaluate::evaluate_indicator(their, &message, Some(&cel), None);
                let their_result = format!("{:?}", their_verdict.result);
                let our_result = format!("{:?}", our_verdict.result);
                let method = our.detection().map_or("none", |method| method.as_str());
                *compared.entry((method, our_result.clone())).or_default() += 1;
                if our_result != their_result {
                    let mut example = String::new();
                    let _ = write!(example, "{:?} on {message}", our.target);
                    note(
                        format!("{method}: {our_result} here, {their_result} there"),
                        &example,
                    );
                } else if Some(&our_verdict.indicator_id) != Some(&their_verdict.indicator_id) {
                    note(
                        "other ids".to_owned(),
                        &format!("{our_verdict:?} {their_verdict:?}"),
                    );
                }
            }
        }
    }
}

#[test]
fn every_difference_to_the_public_crate_has_its_reason() {
    let documents: Vec<Value> = super::vectors::public_texts()
        .into_iter()
        .map(|text| to_value(&parse(&text).unwrap()))
        .collect();
    if documents.is_empty() {
        return;
    }
    let mut found = BTreeMap::new();
    let mut compared = BTreeMap::new();
    for seed in 0..MUTANTS {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let chosen = random.below(documents.len());
        let mut value = documents[chosen].clone();
        for _ in 0..=random.below(2) {
            mutate(&mut value, &mut random);
        }
        compare(
            seed,
            &to_yaml(&value),
            &value,
            &mut random,
            &mut found,
            &mut compared,
        );
    }
    // Agreement counts only where both have judged something, either way.
    for (method, result, least) in [
        ("pattern", "Matched", 200),
        ("pattern", "NotMatched", 1000),
        ("expression", "Matched", 10),
        ("expression", "NotMatched", 10),
    ] {
        let count = compared.get(&(method, result.to_owned()));
        let is_enough = count.is_some_and(|count| *count >= least);
        assert!(is_enough, "{method} {result}: {compared:?}");
    }
    let unlisted: Vec<String> = found
        .iter()
        .filter(|(class, _)| !DIFFERENCES.iter().any(|known| known.class == **class))
        .map(|(class, (count, example))| format!("{class} ({count} times)\n    {example}"))
        .collect();
    assert!(
        unlisted.is_empty(),
        "differences without a reason:\n{}",
        unlisted.join("\n")
    );
    for known in DIFFERENCES {
        assert!(
            found.contains_key(known.class),
            "not seen any more: {}",
            known.class
        );
        assert!(
            !known.reason.is_empty() && known.sentence.contains('§'),
            "{}",
            known.class
        );
    }
}
