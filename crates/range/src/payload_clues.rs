//! Clues: the words by which the payload of a document is told from other differences to its control. An indicator waits
//! for what the payload asks for, so the payload names it: a canary, an argument, an address.

use std::collections::BTreeSet;

use proofhouse_oatf::{Document, to_value};
use serde_json::Value;

use crate::payload_field::ShownValue;

/// The shortest word that says anything.
const MIN_WORD: usize = 4;
/// As many words are looked for.
const MAX_WORDS: usize = 2_000;

/// Words of the protocols, and of expressions, that any document has.
const COMMON: [&str; 46] = [
    "arguments",
    "artifacts",
    "content",
    "contains",
    "context",
    "data",
    "delta",
    "description",
    "exists",
    "false",
    "filter",
    "lower",
    "matches",
    "message",
    "messages",
    "metadata",
    "method",
    "name",
    "null",
    "operation",
    "params",
    "parts",
    "prompt",
    "prompts",
    "request",
    "response",
    "result",
    "role",
    "size",
    "startswith",
    "endswith",
    "status",
    "string",
    "text",
    "this",
    "that",
    "tool",
    "tools",
    "toolcallname",
    "true",
    "type",
    "value",
    "with",
    "your",
    "must",
    "call",
];

/// The words of a document's indicators.
#[derive(Debug, Default)]
pub(crate) struct PayloadClues(BTreeSet<String>);

impl PayloadClues {
    /// The clues of a document.
    pub(crate) fn of(document: &Document) -> Self {
        let mut words = BTreeSet::new();
        let indicators = to_value(document)["attack"]["indicators"].take();
        for indicator in indicators.as_array().into_iter().flatten() {
            for key in [
                "target",
                "pattern",
                "expression",
                "semantic",
                "x-proofhouse",
            ] {
                if let Some(value) = indicator.get(key) {
                    collect(value, &mut words);
                }
            }
        }
        Self(words)
    }

    /// Whether a text has one of the words.
    pub(crate) fn are_in(&self, (_, value): &ShownValue) -> bool {
        let Some(text) = value.as_str() else {
            return false;
        };
        let text = text.to_lowercase();
        self.0.iter().any(|word| text.contains(word.as_str()))
    }
}

fn collect(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let text = text.to_lowercase();
            let parts = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
            let parts = parts.map(|part| part.trim_matches(['-', '_']));
            for part in parts.filter(|part| part.len() >= MIN_WORD && !COMMON.contains(part)) {
                if words.len() < MAX_WORDS {
                    words.insert(part.to_owned());
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(map) => map.values().for_each(|value| collect(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
