//! The key `x-proofhouse: {checksum: …}` of an indicator with a regular expression: a match counts only if the checksum
//! of its letters and digits holds, so that most of what only looks like a token or a card number is no match.

use std::collections::HashMap;
use std::ops::Range;

use proofhouse_oatf::{Condition, Document, Indicator, MatchBudget, Span, coerce_to_text};
use serde_json::Value;

use super::canaries::EXTENSION_FIELD;
use super::group::RuleId;
use super::{BuildError, Scanner};

const CHECKSUM: &str = "checksum";

/// How many matches of one value are tried.
const MAX_MATCHES: usize = 1000;

/// How many letters and digits at the end are the checksum of a token.
const TOKEN_CHECK: usize = 6;

/// In the order of their values.
const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What a match is checked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checksum {
    /// The digits, as card numbers have it.
    Luhn,
    /// The last six letters and digits are the CRC-32 of those between the last `_` and them, in base 62: tokens of
    /// GitHub and npm.
    Crc32Base62,
}

impl Checksum {
    const ALL: &'static [Self] = &[Self::Luhn, Self::Crc32Base62];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Luhn => "luhn",
            Self::Crc32Base62 => "crc32_base62",
        }
    }

    /// The first match of a condition's regular expression for which the checksum holds.
    pub(super) fn find(self, condition: &Condition, text: &str) -> Option<Range<usize>> {
        let Condition::Operators(operators) = condition else {
            return None;
        };
        let regex = operators.regex.as_ref()?.regex().ok()?;
        let mut budget = MatchBudget::default();
        let mut from = 0;
        for _ in 0..MAX_MATCHES {
            let found = regex.find(&text[from..], &mut budget).ok()??;
            let found = from + found.start..from + found.end;
            if self.holds(&text[found.clone()]) {
                return Some(found);
            }
            let next = text[found.end..].chars().next().map_or(1, char::len_utf8);
            from = if found.is_empty() {
                found.end + next
            } else {
                found.end
            };
            if from >= text.len() {
                return None;
            }
        }
        None
    }

    fn holds(self, text: &str) -> bool {
        match self {
            Self::Luhn => luhn(text),
            Self::Crc32Base62 => crc32_base62(text),
        }
    }
}

fn luhn(text: &str) -> bool {
    let digits = text.chars().rev().filter_map(|c| c.to_digit(10));
    let sum: u32 = digits
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    sum > 0 && sum.is_multiple_of(10)
}

fn crc32_base62(text: &str) -> bool {
    let token = text.rsplit('_').next().unwrap_or(text).as_bytes();
    let Some(split) = token.len().checked_sub(TOKEN_CHECK) else {
        return false;
    };
    let (body, check) = token.split_at(split);
    let mut crc = flate2::Crc::new();
    crc.update(body);
    let value = check.iter().try_fold(0_u64, |value, letter| {
        let digit = BASE62.iter().position(|known| known == letter)?;
        Some(value * 62 + u64::try_from(digit).ok()?)
    });
    !body.is_empty() && value == Some(u64::from(crc.sum()))
}

/// What is wrong with the checksum of an indicator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`x-proofhouse.checksum` {problem}")]
pub struct ChecksumKeyError {
    /// The indicator, by its position in the document.
    pub indicator: usize,
    /// Where the key stands in the text of the document.
    pub span: Option<Span>,
    /// What is wrong.
    pub problem: ChecksumKeyProblem,
}

/// Why the key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChecksumKeyProblem {
    /// It is none that is known.
    #[error("must be `luhn` or `crc32_base62`")]
    Unknown,
    /// There is nothing whose checksum it could be.
    #[error("needs a `regex` in the pattern of the indicator")]
    NoRegex,
}

/// What is wrong with the checksums of a document's indicators.
///
/// ```
/// let text = "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {}}\n  indicators:\n    \
///     - target: a\n      pattern: {contains: x}\n      x-proofhouse: {checksum: luhn}\n";
/// let document = proofhouse_oatf::load(text).unwrap().document;
/// let errors = proofhouse_detect::check_checksums(&document);
/// assert_eq!(errors[0].to_string(), "`x-proofhouse.checksum` needs a `regex` in the pattern of the indicator");
/// ```
#[must_use]
pub fn check_checksums(document: &Document) -> Vec<ChecksumKeyError> {
    let indicators = document.attack.indicators().iter().enumerate();
    let checked = indicators.filter_map(|(indicator, declared)| {
        let problem = checksum(declared).err()?;
        Some(ChecksumKeyError {
            indicator,
            span: document.indicator_field_span(indicator, &[EXTENSION_FIELD, CHECKSUM]),
            problem,
        })
    });
    checked.collect()
}

/// The checksum that an indicator asks for.
fn checksum(indicator: &Indicator) -> Result<Option<Checksum>, ChecksumKeyProblem> {
    let ours = indicator.extensions.get(EXTENSION_FIELD);
    let Some(value) = ours.and_then(|ours| ours.get(CHECKSUM)) else {
        return Ok(None);
    };
    let mut all = Checksum::ALL.iter();
    let found = all.find(|known| value.as_str() == Some(known.as_str()));
    let condition = indicator
        .pattern
        .as_ref()
        .and_then(|p| p.condition.as_ref());
    match condition {
        Some(Condition::Operators(operators)) if operators.regex.is_some() => {}
        _ => return Err(ChecksumKeyProblem::NoRegex),
    }
    found.copied().map(Some).ok_or(ChecksumKeyProblem::Unknown)
}

/// Whether an indicator that matches these values does so by its checksum, too; true where it asks for none.
pub(super) fn holds_for(indicator: &Indicator, values: &[&Value]) -> bool {
    let condition = indicator
        .pattern
        .as_ref()
        .and_then(|p| p.condition.as_ref());
    let (Ok(Some(checksum)), Some(condition)) = (checksum(indicator), condition) else {
        return true;
    };
    let mut values = values.iter();
    values.any(|value| checksum.find(condition, &coerce_to_text(value)).is_some())
}

impl Scanner {
    /// The checksums of all indicators.
    pub(super) fn compile_checksums(&mut self) -> Result<(), BuildError> {
        for source in &self.documents {
            if let Some(error) = check_checksums(&source.document).into_iter().next() {
                return Err(BuildError::Checksum {
                    name: source.name.clone(),
                    error: Box::new(error),
                });
            }
        }
        let rules = 0..RuleId::try_from(self.rules.len()).unwrap_or(RuleId::MAX);
        let checked = rules.filter_map(|rule| Some((rule, checksum(self.indicator(rule)).ok()??)));
        let checked: HashMap<RuleId, Checksum> = checked.collect();
        self.checksums = checked;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Checksum;
    use crate::{Judgement, ScanOutcome, Scanner, TraceMessage};
    use proofhouse_oatf::IndicatorResult;
    use serde_json::json;

    const WRONG: &str = "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    const RIGHT: &str = "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";

    fn scanner(key: &str) -> Result<Scanner, crate::BuildError> {
        let text = format!(
            "oatf: \"0.1\"\nattack:\n  execution: {{mode: mcp_server, state: {{tools: []}}}}\n  indicators:\n    \
             - surface: tools/call\n      target: arguments.texts[*]\n      pattern: {{regex: 'gh[ps]_[A-Za-z0-9]{{36}}'}}\n      \
             x-proofhouse: {{{key}}}\n"
        );
        let document = proofhouse_oatf::load(&text).unwrap().document;
        Scanner::builder().add("tokens", document).build()
    }

    #[test]
    fn a_match_counts_only_if_its_checksum_holds() {
        let scanner = scanner("checksum: crc32_base62").unwrap();
        let call = |texts: &[String]| {
            let content = json!({"name": "post", "arguments": {"texts": texts}});
            TraceMessage::new("mcp", "tools/call", content)
        };
        let found = |texts: &[String]| match scanner.scan(&call(texts)).as_slice() {
            [] => None,
            [one] => match &one.outcome {
                ScanOutcome::Matched(evidence) => Some(evidence.text.clone()),
                other => panic!("{other:?}"),
            },
            several => panic!("{several:?}"),
        };
        assert_eq!(found(&[WRONG.to_owned()]), None);
        // Behind a wrong one in the same text, and in another one.
        assert_eq!(found(&[format!("{WRONG} {RIGHT}")]).as_deref(), Some(RIGHT));
        assert_eq!(
            found(&[WRONG.to_owned(), RIGHT.to_owned()]).as_deref(),
            Some(RIGHT)
        );
        // Who explains it says the same.
        for (texts, matched) in [
            (vec![WRONG.to_owned()], false),
            (vec![RIGHT.to_owned()], true),
        ] {
            let Some(Judgement::Kept(kept)) = scanner.explain(0, 0, &call(&texts)) else {
                panic!("it was dropped");
            };
            assert_eq!(kept.result == IndicatorResult::Matched, matched, "{kept:?}");
        }
    }

    #[test]
    fn a_checksum_that_is_none_is_an_error() {
        let error = scanner("checksum: md5").unwrap_err().to_string();
        assert!(
            error.contains("tokens:8:") && error.contains("`luhn` or `crc32_base62`"),
            "{error}"
        );
    }

    #[test]
    fn checksums_tell_tokens_and_cards_from_what_looks_like_them() {
        for (checksum, text, holds) in [
            (Checksum::Luhn, "4242 4242 4242 4242", true),
            (Checksum::Luhn, "4242-4242-4242-4241", false),
            (Checksum::Luhn, "0000000000000000", false),
            (Checksum::Luhn, "", false),
            (Checksum::Crc32Base62, RIGHT, true),
            (
                Checksum::Crc32Base62,
                "ghp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq18",
                false,
            ),
            (Checksum::Crc32Base62, WRONG, false),
            (Checksum::Crc32Base62, "é", false),
        ] {
            assert_eq!(checksum.holds(text), holds, "{text}");
        }
    }
}
