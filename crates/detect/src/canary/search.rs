//! The search: through the texts as they are, then through what they decode to.

use std::collections::BTreeMap;

use serde_json::Value;

use super::decode::{ESCAPES, Run, inflate, runs, to_text};
use super::fold::push_significant;
use super::form::{CanaryEncoding, CanaryForm, CanaryShape};
use super::patterns::CanaryPattern;
use super::{CanaryMatcher, DECODED_BYTES};

/// How often what was decoded is decoded again.
const MAX_LAYERS: usize = 2;

/// How much is read of what was compressed.
const MAX_INFLATED: usize = 256 * 1024;

/// A canary that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryHit {
    /// Which one, by its position in the matcher.
    pub canary: usize,
    /// Its form.
    pub form: CanaryForm,
    /// The value in which it begins, by its position in what was searched.
    pub value: usize,
    /// The place below that value, such as `body.parts[2]`; empty for the value itself.
    pub path: String,
    /// The text that held it.
    pub text: String,
}

/// The same before anyone knows where the text stands.
struct Found {
    form: CanaryForm,
    /// The text in which it begins.
    text: usize,
    words: String,
}

/// One search.
struct CanarySearch<'m> {
    matcher: &'m CanaryMatcher,
    /// By canary.
    found: Vec<Option<Found>>,
    missing: usize,
    /// Bytes that may still be decoded.
    budget: usize,
}

/// Where decoded text comes from: the text it begins in, and its words there.
struct DecodedOrigin<'o> {
    text: usize,
    words: &'o str,
}

pub(super) fn in_texts(matcher: &CanaryMatcher, texts: &[&str]) -> Vec<CanaryHit> {
    let mut search = CanarySearch::new(matcher);
    search.look(texts, &mut Vec::new(), None);
    let hits = search.found.into_iter().enumerate();
    hits.filter_map(|(canary, found)| {
        let found = found?;
        Some(found.at(canary, found.text, String::new()))
    })
    .collect()
}

pub(super) fn in_values(matcher: &CanaryMatcher, values: &[&Value]) -> Vec<CanaryHit> {
    let mut texts = Texts::default();
    for value in values {
        texts.add(value, "");
    }
    let mut search = CanarySearch::new(matcher);
    let mut hits: Vec<CanaryHit> = Vec::new();
    let mut look = |texts: &[&str], leaf: Leaf, number: &dyn Fn(usize) -> usize| {
        search.look(texts, &mut Vec::new(), None);
        for (canary, found) in search.found.iter().enumerate() {
            let Some(found) = found else { continue };
            if !hits.iter().any(|hit| hit.canary == canary) {
                let (value, path) = place(values, leaf, number(found.text));
                hits.push(found.at(canary, value, path));
            }
        }
        search.missing > 0
    };
    let mut is_missing = look(&texts.values, Leaf::Value, &|text| text);
    // Parts of a message are often mappings, with other texts beside the one that goes on in the next.
    for numbers in texts.by_key() {
        if is_missing {
            let of_key: Vec<&str> = numbers.iter().map(|number| texts.values[*number]).collect();
            is_missing = look(&of_key, Leaf::Value, &|text| numbers[text]);
        }
    }
    // Keys by themselves: they stand between values that belong together.
    if is_missing {
        look(&texts.keys, Leaf::Key, &|text| text);
    }
    hits.sort_by_key(|hit| hit.canary);
    hits
}

impl Found {
    fn at(&self, canary: usize, value: usize, path: String) -> CanaryHit {
        CanaryHit {
            canary,
            form: self.form.clone(),
            value,
            path,
            text: self.words.clone(),
        }
    }
}

impl<'m> CanarySearch<'m> {
    fn new(matcher: &'m CanaryMatcher) -> Self {
        let mut found = Vec::new();
        found.resize_with(matcher.canaries.len(), || None);
        Self {
            matcher,
            missing: found.len(),
            found,
            budget: DECODED_BYTES,
        }
    }
}

impl CanarySearch<'_> {
    /// Looks through texts, and through what they decode to.
    fn look(
        &mut self,
        texts: &[&str],
        layers: &mut Vec<CanaryEncoding>,
        origin: Option<&DecodedOrigin<'_>>,
    ) {
        let length: usize = texts.iter().map(|text| text.len()).sum();
        if self.missing == 0 || length < self.matcher.shortest {
            return;
        }
        self.look_at(texts, layers, origin);
        if layers.len() < MAX_LAYERS {
            self.look_behind_escapes(texts, layers, origin);
            self.look_into_runs(texts, layers, origin);
        }
    }

    /// Looks through texts as they are.
    fn look_at(
        &mut self,
        texts: &[&str],
        layers: &[CanaryEncoding],
        origin: Option<&DecodedOrigin<'_>>,
    ) {
        let matcher = self.matcher;
        let mut significant = Vec::with_capacity(texts.iter().map(|text| text.len()).sum());
        for text in texts {
            push_significant(text, &mut significant);
        }
        for hit in matcher.automaton.find_overlapping_iter(&significant) {
            let pattern = &matcher.patterns[hit.pattern().as_usize()];
            if self.found[pattern.canary].is_some()
                || (pattern.exact && significant[hit.range()] != pattern.text)
            {
                continue;
            }
            let canary = &matcher.canaries[pattern.canary];
            let range = locate(texts, hit.start(), hit.end());
            let mut encodings = layers.to_vec();
            // The number of every character, with a separator that has a name of its own.
            match pattern.encodings {
                [CanaryEncoding::Hex] if range.words.contains('%') => {
                    encodings.push(CanaryEncoding::Percent);
                }
                [CanaryEncoding::CharacterCodes] if range.words.contains("&#") => {
                    encodings.push(CanaryEncoding::HtmlEntity);
                }
                written => encodings.extend_from_slice(written),
            }
            let found = Found {
                form: CanaryForm {
                    encodings,
                    shape: shape(pattern, canary, &range),
                },
                text: origin.map_or(range.text, |origin| origin.text),
                words: origin.map_or(range.words, |origin| origin.words.to_owned()),
            };
            self.found[pattern.canary] = Some(found);
            self.missing -= 1;
            if self.missing == 0 {
                return;
            }
        }
    }

    fn look_behind_escapes(
        &mut self,
        texts: &[&str],
        layers: &mut Vec<CanaryEncoding>,
        origin: Option<&DecodedOrigin<'_>>,
    ) {
        let length: usize = texts.iter().map(|text| text.len()).sum();
        for escape in ESCAPES {
            if length > self.budget {
                return;
            }
            let decoded = texts.iter().map(|text| escape.decode(text));
            let decoded: Vec<Option<String>> = decoded.collect();
            let Some(first) = decoded.iter().position(Option::is_some) else {
                continue;
            };
            self.budget -= length;
            let plain = texts.iter().zip(&decoded);
            let plain: Vec<&str> = plain
                .map(|(text, plain)| plain.as_deref().unwrap_or(text))
                .collect();
            let here = DecodedOrigin {
                text: first,
                words: texts[first],
            };
            layers.push(escape.encoding);
            self.look(&plain, layers, Some(origin.unwrap_or(&here)));
            layers.pop();
        }
    }

    fn look_into_runs(
        &mut self,
        texts: &[&str],
        layers: &mut Vec<CanaryEncoding>,
        origin: Option<&DecodedOrigin<'_>>,
    ) {
        runs(texts, |run| {
            let words = String::from_utf8_lossy(run.characters);
            let here = DecodedOrigin {
                text: run.text,
                words: &words,
            };
            for reading in 0..Run::READINGS {
                if run.characters.len() > self.budget || self.missing == 0 {
                    return self.missing > 0;
                }
                let Some((encoding, bytes)) = run.decode(reading) else {
                    continue;
                };
                self.budget -= run.characters.len();
                let origin = origin.unwrap_or(&here);
                layers.push(encoding);
                if let Some(plain) = inflate(&bytes, self.budget.min(MAX_INFLATED)) {
                    self.budget -= plain.len().min(self.budget);
                    layers.push(CanaryEncoding::Compressed);
                    self.look(&[&plain], layers, Some(origin));
                    layers.pop();
                }
                self.look(&[&to_text(bytes)], layers, Some(origin));
                layers.pop();
            }
            true
        });
    }
}

/// A part of texts that follow each other.
struct Range {
    /// The text in which it begins.
    text: usize,
    /// What it covers there, or all of that text and the rest where it goes on.
    words: String,
    is_over_values: bool,
}

/// Where letters and digits stand, by their numbers.
fn locate(texts: &[&str], start: usize, end: usize) -> Range {
    let mut range: Option<Range> = None;
    let (mut before, mut one) = (0, Vec::new());
    for (index, text) in texts.iter().enumerate() {
        let (mut from, mut to) = (None, text.len());
        for (at, c) in text.char_indices() {
            one.clear();
            push_significant(c.encode_utf8(&mut [0; 4]), &mut one);
            if before + one.len() > start && before < end && !one.is_empty() {
                from.get_or_insert(at);
                to = at + c.len_utf8();
            }
            before += one.len();
            if before >= end {
                break;
            }
        }
        if let Some(from) = from {
            let words = &text[from..to];
            match &mut range {
                None => {
                    range = Some(Range {
                        text: index,
                        words: words.to_owned(),
                        is_over_values: false,
                    });
                }
                Some(range) => {
                    range.words.push_str(" … ");
                    range.words.push_str(words);
                    range.is_over_values = true;
                }
            }
        }
        if before >= end {
            break;
        }
    }
    range.unwrap_or(Range {
        text: 0,
        words: String::new(),
        is_over_values: false,
    })
}

fn shape(pattern: &CanaryPattern, canary: &str, range: &Range) -> CanaryShape {
    if range.is_over_values {
        return CanaryShape::SplitOverValues;
    }
    if let Some(shape) = pattern.shape {
        return shape;
    }
    let canary = canary.trim_matches(|c: char| !c.is_alphanumeric());
    let words: String = if pattern.encodings.is_empty() {
        range.words.clone()
    } else {
        range.words.chars().rev().collect()
    };
    if words == canary {
        CanaryShape::AsWritten
    } else if words.to_lowercase() == canary.to_lowercase() {
        CanaryShape::CaseFolded
    } else if words.contains(|c: char| !c.is_ascii() && c.is_alphanumeric()) && canary.is_ascii() {
        CanaryShape::Lookalikes
    } else {
        CanaryShape::Split
    }
}

/// The texts below values, in the order in which they stand there.
#[derive(Default)]
pub(super) struct Texts<'v> {
    pub(super) values: Vec<&'v str>,
    /// The key of each value, or of the list that it stands in.
    key_of: Vec<&'v str>,
    keys: Vec<&'v str>,
}

impl<'v> Texts<'v> {
    pub(super) fn add(&mut self, value: &'v Value, key: &'v str) {
        match value {
            Value::String(text) => {
                self.values.push(text);
                self.key_of.push(key);
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item, key)),
            Value::Object(map) => {
                for (key, value) in map {
                    self.keys.push(key);
                    self.add(value, key);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The numbers of the values that have a key in common, where other values stand among them.
    fn by_key(&self) -> Vec<Vec<usize>> {
        let mut by_key: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, key) in self.key_of.iter().enumerate() {
            by_key.entry(key).or_default().push(number);
        }
        let is_apart = |numbers: &Vec<usize>| numbers.windows(2).any(|two| two[0] + 1 < two[1]);
        by_key.into_values().filter(is_apart).collect()
    }
}

/// What is counted to find a place again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    Value,
    Key,
}

/// The value and the path below it of the text with this number.
pub(super) fn place(values: &[&Value], wanted: Leaf, number: usize) -> (usize, String) {
    let mut left = number;
    let mut path = String::new();
    for (index, value) in values.iter().enumerate() {
        if walk(value, wanted, &mut left, &mut path) {
            return (index, path);
        }
    }
    (0, path)
}

/// Follows the values in the order of [`Texts::add`] until none is left before the one that is wanted.
fn walk(value: &Value, wanted: Leaf, left: &mut usize, path: &mut String) -> bool {
    let before = path.len();
    match value {
        Value::String(_) => return wanted == Leaf::Value && count(left),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                if walk(item, wanted, left, path) {
                    return true;
                }
                path.truncate(before);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                if (wanted == Leaf::Key && count(left)) || walk(item, wanted, left, path) {
                    return true;
                }
                path.truncate(before);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    false
}

/// Counts one more; whether none was left.
fn count(left: &mut usize) -> bool {
    let is_last = *left == 0;
    *left = left.saturating_sub(1);
    is_last
}
