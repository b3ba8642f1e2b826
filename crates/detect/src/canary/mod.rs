//! Finds canaries, the secrets that a test plants, in whatever form they come back.
//!
//! A canary that was stolen rarely travels as it was written: it is encoded, spelled with spaces,
//! turned around or cut in two. One matcher knows these forms, so that no document has to.
//!
//! How it works: only letters and digits count, so separators are no disguise, and letters that look like others are
//! taken for those. One automaton looks through them for every canary, its reversal, its rot13, the numbers of its
//! characters, and what its base64, base32 and hex look like at each alignment. What else is encoded (percent, backslash
//! and HTML escapes, long runs of base64 or hex, compressed or not) is decoded and looked through again. What was cut into
//! pieces for several messages is followed from one to the next.
//!
//! Limits: the first look is at the whole text. Of what is decoded, [`DECODED_BYTES`] are looked at per
//! call, through at most two layers (a third is known by its pattern). Work grows with the length of the
//! text, whatever is in it.

mod decode;
mod fold;
mod form;
mod patterns;
mod pieces;
mod search;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use serde_json::Value;

pub use form::{CanaryEncoding, CanaryForm, CanaryShape};
use patterns::CanaryPattern;
use pieces::PieceIndex;
pub(crate) use pieces::{CanaryPiece, CanaryTrail};
pub use search::CanaryHit;

/// How many letters and digits a canary has at least. Shorter ones turn up by chance.
pub const MIN_SIGNIFICANT: usize = 8;

/// How long a canary may be.
pub const MAX_CANARY_BYTES: usize = 4096;

/// How many bytes are decoded per call; the text itself is always looked through.
pub const DECODED_BYTES: usize = 8 * 1024 * 1024;

/// Why a matcher could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanaryError {
    /// It would turn up by chance.
    #[error(
        "canary `{canary}` has {significant} letters and digits; it needs at least {MIN_SIGNIFICANT}, \
         or it would be found by chance"
    )]
    TooShort {
        /// The canary.
        canary: String,
        /// How many letters and digits it has.
        significant: usize,
    },
    /// It is no secret but a document.
    #[error("a canary is {bytes} bytes long; the limit is {MAX_CANARY_BYTES}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// The canaries do not fit into one automaton.
    #[error("the canaries are too large together: {reason}")]
    TooLarge {
        /// What the automaton says.
        reason: String,
    },
}

/// Canaries, compiled once.
///
/// ```
/// use proofhouse_detect::CanaryMatcher;
/// use serde_json::json;
///
/// let matcher = CanaryMatcher::new(["CANARY-KEY-93b4aa10"]).unwrap();
/// // Base64 of `key: CANARY-KEY-93b4aa10`.
/// let value = json!({"body": {"note": "a2V5OiBDQU5BUlktS0VZLTkzYjRhYTEw"}});
/// let hits = matcher.find(&value);
/// assert_eq!(hits[0].path, "body.note");
/// assert_eq!(hits[0].form.describe("CANARY-KEY-93b4aa10"), "base64 of CANARY-KEY-93b4aa10");
///
/// assert!(CanaryMatcher::new(["a-b-c"]).is_err());
/// ```
#[derive(Debug)]
pub struct CanaryMatcher {
    canaries: Vec<String>,
    patterns: Vec<CanaryPattern>,
    automaton: AhoCorasick,
    /// Letters and digits of the shortest pattern: less text holds none.
    shortest: usize,
    pieces: PieceIndex,
}

impl CanaryMatcher {
    /// Compiles canaries.
    ///
    /// # Errors
    ///
    /// Returns an error when one is too short, too long, or all are too large together.
    pub fn new<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Result<Self, CanaryError> {
        let canaries: Vec<String> = values.into_iter().map(Into::into).collect();
        let mut patterns = Vec::new();
        for (index, canary) in canaries.iter().enumerate() {
            check(canary)?;
            patterns::add(index, canary, &mut patterns);
        }
        let automaton = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(patterns.iter().map(|pattern| &pattern.text))
            .map_err(|error| CanaryError::TooLarge {
                reason: error.to_string(),
            })?;
        let shortest = patterns.iter().map(|pattern| pattern.text.len()).min();
        Ok(Self {
            pieces: PieceIndex::new(&patterns),
            canaries,
            patterns,
            automaton,
            shortest: shortest.unwrap_or(usize::MAX),
        })
    }

    /// Whether these can be canaries, without compiling them.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the first that cannot.
    pub fn check<'s>(values: impl IntoIterator<Item = &'s str>) -> Result<(), CanaryError> {
        values.into_iter().try_for_each(check)
    }

    /// The canaries, in the order they were given.
    #[must_use]
    pub fn canaries(&self) -> &[String] {
        &self.canaries
    }

    /// The canaries in a text: each at most once, in the order they were given.
    #[must_use]
    pub fn find_in_text(&self, text: &str) -> Vec<CanaryHit> {
        search::in_texts(self, &[text])
    }

    /// The canaries in the texts below a value, one of which may hold only a part of it; the next text, or the next one
    /// under the same key, has the rest. Each canary is found at most once, in the order they were given.
    #[must_use]
    pub fn find(&self, value: &Value) -> Vec<CanaryHit> {
        self.find_in_values(&[value])
    }

    /// The canaries in the texts below several values that belong together, in their order.
    #[must_use]
    pub fn find_in_values(&self, values: &[&Value]) -> Vec<CanaryHit> {
        search::in_values(self, values)
    }

    /// Bytes that the compiled form holds.
    #[must_use]
    pub fn memory(&self) -> usize {
        let texts = self.patterns.iter().map(|pattern| pattern.text.len());
        self.automaton.memory_usage()
            + self.pieces.memory()
            + texts.sum::<usize>()
            + self.patterns.len() * size_of::<CanaryPattern>()
            + self.canaries.iter().map(String::len).sum::<usize>()
    }
}

/// Whether a text can be a canary.
///
/// # Errors
///
/// Returns why not.
pub(crate) fn check(canary: &str) -> Result<(), CanaryError> {
    if canary.len() > MAX_CANARY_BYTES {
        return Err(CanaryError::TooLong {
            bytes: canary.len(),
        });
    }
    let significant = canary.chars().filter(|c| c.is_alphanumeric()).count();
    if significant < MIN_SIGNIFICANT {
        return Err(CanaryError::TooShort {
            canary: canary.to_owned(),
            significant,
        });
    }
    Ok(())
}
