//! The same documents and messages, here and in the public crate `oatf`: every difference is of a class that is listed with its
//! reason.
//!
//! Documents are the public ones, changed at random from a fixed seed. The peer is asked through its documented functions only.

use std::collections::BTreeMap;

use proofhouse_oatf::{
    DefaultCelEvaluator, Document, OatfError, ReadLimits, evaluate_extractor, evaluate_indicator,
    load_with, parse, to_value,
};
use proofhouse_source::to_yaml;
use serde_json::{Value, json};

use super::differential_table::{DIFFERENCES, Difference};

/// How many changed documents are compared.
const MUTANTS: u64 = 10_000;

/// Random numbers, the same in every run.
pub(crate) struct Random(u64);

impl Random {
    /// Those of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }

    /// One of these, which are some.
    pub(crate) fn pick<'a, T>(&mut self, some: &'a [T]) -> &'a T {
        &some[self.below(some.len())]
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

/// The key at the end of a path.
fn key_of(path: &str) -> &str {
    let key = path.rsplit('.').next().unwrap_or_default();
    key.split('[').next().unwrap_or_default()
}

/// The last sentence of an error, without what it quotes.
fn reason_in(text: &str) -> String {
    let text = text.replace("\\n", "\n");
    let found = text
        .lines()
        .filter_map(|line| line.split_once("error: ").map(|(_, said)| said))
        .chain(text.split("message: \"").skip(1))
        .chain(text.rsplit(": ").take(1))
        .next();
    let said = found.unwrap_or_default();
    let mut reason: String = said
        .split(['"', '`', '('])
        .next()
        .unwrap_or_default()
        .to_owned();
    reason.retain(|c| !c.is_ascii_digit());
    format!(": {}", reason.trim())
}

/// What the messages of indicators are made of.
pub(crate) enum About<'a> {
    /// The texts of a document.
    Document(&'a Value),
    /// Those of the document that was read.
    Read,
    /// It is this one.
    Message(&'a Value),
}

/// What was compared, and the differences by their classes: how often, and an example.
#[derive(Default)]
pub(crate) struct Comparison {
    found: BTreeMap<String, (u64, String)>,
    judged: BTreeMap<(&'static str, String), u64>,
    /// Whether normal forms and extractors are compared, too.
    is_wide: bool,
}

impl Comparison {
    /// One of normal forms and extractors, too.
    pub(crate) fn wide() -> Self {
        Self {
            is_wide: true,
            ..Self::default()
        }
    }

    fn note(&mut self, seed: u64, class: String, example: &str) {
        let entry = self.found.entry(class).or_insert_with(|| {
            let example: String = example.chars().take(600).collect();
            (0, format!("seed {seed}: {example}"))
        });
        entry.0 += 1;
    }

    /// Compares one document; notes each difference by its class.
    pub(crate) fn compare(
        &mut self,
        seed: u64,
        text: &str,
        about: &About<'_>,
        random: &mut Random,
    ) {
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
                let path = path.unwrap_or_default();
                let place = match code {
                    // Of unknown keys it matters whose they are; of values, which key they have.
                    "PH-009" => format!(" in {}", owner_of(&path)),
                    "PH-010" => format!(" for {}", key_of(&path)),
                    "V-013" if key_of(&path) != "cel" => reason_in(&message),
                    "V-013" => " in CEL".to_owned(),
                    _ => String::new(),
                };
                self.note(seed, format!("only we refuse: {code}{place}"), &message);
            }
            (Ok(_), Err(theirs)) => {
                let said = format!("{theirs:?}");
                let rule = rule_in(&said);
                let reason = match rule.as_str() {
                    "parse" | "V-013" if self.is_wide => reason_in(&said),
                    _ => String::new(),
                };
                self.note(seed, format!("only they refuse: {rule}{reason}"), &said);
            }
            (Err(_), Err(_)) => {}
            (Ok(ours), Ok(theirs)) => {
                self.judge(seed, &ours.document, &theirs.document, about, random);
                if self.is_wide {
                    let (our, their) = (to_value(&ours.document), json!(theirs.document));
                    if let Some((class, example)) = difference(&our, &their, "document") {
                        self.note(seed, format!("normal form: {class}"), &example);
                    }
                }
            }
        }
    }

    /// Judges a message with each indicator, and extracts from it.
    fn judge(
        &mut self,
        seed: u64,
        ours: &Document,
        theirs: &oatf::Document,
        about: &About<'_>,
        random: &mut Random,
    ) {
        let read = match about {
            About::Read => to_value(ours),
            _ => Value::Null,
        };
        let mut next_message = || match about {
            About::Document(document) => message(document, random),
            About::Read => message(&read, random),
            About::Message(message) => (*message).clone(),
        };
        let our_indicators = ours.attack.indicators();
        let their_indicators = theirs.attack.indicators.as_deref().unwrap_or_default();
        if our_indicators.len() != their_indicators.len() {
            self.note(seed, "other indicators".to_owned(), "");
            return;
        }
        for (our, their) in our_indicators.iter().zip(their_indicators) {
            let message = next_message();
            let our_verdict = evaluate_indicator(our, &message, Some(&DefaultCelEvaluator), None);
            let cel = oatf::evaluate::DefaultCelEvaluator;
            let their_verdict =
                oatf::evaluate::evaluate_indicator(their, &message, Some(&cel), None);
            let their_result = format!("{:?}", their_verdict.result);
            let our_result = format!("{:?}", our_verdict.result);
            let method = our.detection().map_or("none", |method| method.as_str());
            *self.judged.entry((method, our_result.clone())).or_default() += 1;
            if our_result != their_result {
                let detection = (&our.pattern, &our.expression);
                self.note(
                    seed,
                    format!("{method}: {our_result} here, {their_result} there"),
                    &format!("{message} {detection:?}"),
                );
            } else if our_verdict.indicator_id != their_verdict.indicator_id {
                self.note(
                    seed,
                    "other ids".to_owned(),
                    &format!("{our_verdict:?} {their_verdict:?}"),
                );
            }
        }
        if self.is_wide {
            self.extract(seed, ours, theirs, &next_message());
        }
    }

    fn extract(&mut self, seed: u64, ours: &Document, theirs: &oatf::Document, message: &Value) {
        let ours = ours.attack.execution.actors.iter().flatten();
        let ours = ours.flat_map(|actor| actor.phases.iter());
        let ours = ours.flat_map(|phase| phase.extractors.iter().flatten());
        let theirs = theirs.attack.execution.actors.iter().flatten();
        let theirs = theirs.flat_map(|actor| actor.phases.iter());
        let theirs = theirs.flat_map(|phase| phase.extractors.iter().flatten());
        for (our, their) in ours.zip(theirs) {
            let direction = our.source;
            let found = evaluate_extractor(our, message, direction);
            let there = oatf::primitives::evaluate_extractor(their, message, their.source.clone());
            *self
                .judged
                .entry(("extractor", found.is_some().to_string()))
                .or_default() += 1;
            if found != there {
                let kind = match (&found, &there) {
                    (Some(_), None) => "only here",
                    (None, Some(_)) => "only there",
                    _ => "another text",
                };
                let example = format!("{message} {our:?}: {found:?}, {there:?}");
                self.note(seed, format!("extractor: {kind}"), &example);
            }
        }
    }

    /// Agreement counts only where both have judged something, either way.
    pub(crate) fn judged_at_least(&self, counts: &[(&'static str, &str, u64)]) {
        for (method, result, least) in counts {
            let count = self.judged.get(&(*method, (*result).to_owned()));
            let is_enough = count.is_some_and(|count| count >= least);
            assert!(is_enough, "{method} {result}: {:?}", self.judged);
        }
    }

    /// Holds what was found to the table: nothing else, and each of its rows.
    pub(crate) fn expect(&self, known: &[Difference]) {
        let unlisted: Vec<String> = self
            .found
            .iter()
            .filter(|(class, _)| !known.iter().any(|known| known.class == **class))
            .map(|(class, (count, example))| format!("{class} ({count} times)\n    {example}"))
            .collect();
        assert!(
            unlisted.is_empty(),
            "differences without a reason:\n{}",
            unlisted.join("\n")
        );
        for known in known {
            assert!(
                self.found.contains_key(known.class),
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
}

/// The first difference between two values, where null is nothing: what kind it is, and an example.
fn difference(ours: &Value, theirs: &Value, name: &str) -> Option<(String, String)> {
    let example = || format!("{ours} and {theirs}");
    match (ours, theirs) {
        (Value::Object(our), Value::Object(their)) => {
            let keys = our.keys().chain(their.keys());
            for key in keys {
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(key).filter(|value| !value.is_null()).cloned()
                };
                let found = match (of(our), of(their)) {
                    (Some(our), Some(their)) => difference(&our, &their, key),
                    (None, None) => None,
                    (Some(_), None) => Some((format!("only ours has `{key}`"), example())),
                    (None, Some(_)) => Some((format!("only theirs has `{key}`"), example())),
                };
                if found.is_some() {
                    return found;
                }
            }
            None
        }
        (Value::Array(our), Value::Array(their)) if our.len() == their.len() => our
            .iter()
            .zip(their)
            .find_map(|(our, their)| difference(our, their, name)),
        (Value::Number(our), Value::Number(their)) if our.as_f64() == their.as_f64() => None,
        _ if ours == theirs => None,
        _ => Some((format!("`{name}` differs"), example())),
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
    let mut comparison = Comparison::default();
    for seed in 0..MUTANTS {
        let mut random = Random::of(seed);
        let chosen = random.below(documents.len());
        let mut value = documents[chosen].clone();
        for _ in 0..=random.below(2) {
            mutate(&mut value, &mut random);
        }
        let about = About::Document(&value);
        comparison.compare(seed, &to_yaml(&value), &about, &mut random);
    }
    comparison.judged_at_least(&[
        ("pattern", "Matched", 200),
        ("pattern", "NotMatched", 1000),
        ("expression", "Matched", 10),
        ("expression", "NotMatched", 10),
    ]);
    comparison.expect(DIFFERENCES);
}
