//! Evidence: which message, which place in it, and which words.

use proofhouse_oatf::{Condition, MatchBudget, coerce_to_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::canaries::{CanaryAt, PieceAt};
use crate::trace::{MessagePieces, TraceMessage, WholeMessage};

/// How much of a matched text is kept.
const MAX_CHARACTERS: usize = 200;

/// What an indicator matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The message, by its number in the trace; of one that came in pieces, the first of them.
    pub sequence: u64,
    /// The line of the trace, from 1, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Where the message ends, if it came in several pieces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pieces: Option<MessagePieces>,
    /// When the message was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The place in the message, such as `tools[3].description`.
    pub path: String,
    /// The words that matched, shortened; of an expression or a semantic indicator, what was judged.
    pub text: String,
    /// Why it matched, where the words do not say it: the expression, the score, or the form of a canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Evidence {
    /// A value matched a condition: the words that made it match, where they can be told.
    pub(super) fn of_condition(
        message: &TraceMessage,
        target: &str,
        value: &Value,
        text: &str,
        condition: &Condition,
    ) -> Self {
        let words = match condition {
            Condition::Operators(operators) => {
                let regex = operators
                    .regex
                    .as_ref()
                    .and_then(|regex| regex.regex().ok());
                regex
                    .and_then(|regex| regex.find(text, &mut MatchBudget::default()).ok()?)
                    .map(|found| &text[found])
                    .filter(|words| !words.is_empty())
                    .or(operators.contains.as_deref())
                    .unwrap_or(text)
            }
            Condition::Equals(_) => text,
        };
        Self::new(message, locate(target, &message.content, value), words)
    }

    /// These words of a value matched.
    pub(super) fn of_words(
        message: &TraceMessage,
        target: &str,
        value: &Value,
        words: &str,
    ) -> Self {
        Self::new(message, locate(target, &message.content, value), words)
    }

    pub(super) fn of_value(message: &TraceMessage, target: &str, value: &Value) -> Self {
        let path = locate(target, &message.content, value);
        Self::new(message, path, &coerce_to_text(value))
    }

    pub(super) fn of_absence(message: &TraceMessage, target: &str) -> Self {
        Self::new(message, target.to_owned(), "absent")
    }

    /// The message as a whole was judged; shown is `value`, if there is one at the target.
    pub(super) fn of_judgement(
        message: &TraceMessage,
        target: &str,
        value: Option<&Value>,
        reason: &str,
    ) -> Self {
        let mut evidence = match value {
            Some(value) => Self::of_value(message, target, value),
            None => Self::new(message, String::new(), &coerce_to_text(&message.content)),
        };
        evidence.reason = Some(shorten(reason)).filter(|reason| !reason.is_empty());
        evidence
    }

    /// A canary was found; the reason names its form.
    pub(super) fn of_canary(message: &TraceMessage, at: &CanaryAt) -> Self {
        let mut evidence = Self::new(message, below(&at.root, &at.path), &at.text);
        evidence.reason = Some(shorten(&at.form));
        evidence
    }

    /// The same, with why it matched.
    pub(super) fn because(mut self, reason: &str) -> Self {
        self.reason = Some(shorten(reason));
        self
    }

    /// A part of a canary was found; the reason follows when the rest is there.
    pub(super) fn of_piece(message: &TraceMessage, at: &PieceAt) -> Self {
        Self::new(message, below(&at.root, &at.path), &at.text)
    }

    /// The message or its pieces, as people read it: `message 5`, `messages 5 to 31`.
    #[must_use]
    pub fn messages(&self) -> String {
        match self.pieces {
            Some(pieces) => format!("messages {} to {}", self.sequence, pieces.last_sequence),
            None => format!("message {}", self.sequence),
        }
    }

    /// Points at the lines and pieces of the message it was found in.
    pub(super) fn stands_in(&mut self, whole: &WholeMessage<'_>) {
        self.line = whole.line;
        self.pieces = whole.pieces;
    }

    fn new(message: &TraceMessage, path: String, text: &str) -> Self {
        let text = shorten(text);
        Self {
            sequence: message.sequence,
            line: None,
            pieces: None,
            time: message.time.clone(),
            path,
            text,
            reason: None,
        }
    }
}

/// The path of a place below another.
fn below(root: &str, path: &str) -> String {
    let dot = if root.is_empty() || path.is_empty() || path.starts_with('[') {
        ""
    } else {
        "."
    };
    format!("{root}{dot}{path}")
}

/// The beginning of a text, as much as evidence keeps.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// The path of `wanted`, which `target` reaches, with its indices written out.
pub(super) fn locate(target: &str, content: &Value, wanted: &Value) -> String {
    fn search(rest: &str, at: &Value, wanted: &Value, path: &mut String) -> bool {
        if rest.is_empty() {
            return std::ptr::eq(at, wanted);
        }
        let (segment, tail) = rest.split_once('.').unwrap_or((rest, ""));
        let name = segment.strip_suffix("[*]").unwrap_or(segment);
        let Some(next) = at.get(name) else {
            return false;
        };
        let before = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        if name.len() < segment.len() {
            let with_name = path.len();
            for (index, item) in next.as_array().into_iter().flatten().enumerate() {
                path.push_str(&format!("[{index}]"));
                if search(tail, item, wanted, path) {
                    return true;
                }
                path.truncate(with_name);
            }
        } else if search(tail, next, wanted, path) {
            return true;
        }
        path.truncate(before);
        false
    }
    let mut path = String::new();
    if search(target, content, wanted, &mut path) {
        path
    } else {
        target.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_get_their_indices() {
        let content = json!({"a": [{"b": [1, 2]}, {"b": [3]}], "c": {"d": 4}});
        let three = &content["a"][1]["b"][0];
        assert_eq!(locate("a[*].b[*]", &content, three), "a[1].b[0]");
        assert_eq!(locate("c.d", &content, &content["c"]["d"]), "c.d");
        assert_eq!(locate("", &content, &content), "");
        assert_eq!(locate("a[*]", &content, &json!(9)), "a[*]");
    }
}
