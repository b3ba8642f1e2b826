//! Canaries that were cut into pieces and sent in several messages.
//!
//! A text that ends with the beginning of a canary is remembered. When a later text begins with what is missing, the
//! canary is complete; a text that is nothing but the next part of it moves it on. What is sent in between does not matter.
//!
//! Limits: a piece has at least [`MIN_PIECE`] letters and digits. What is remembered is a place in a pattern, so there
//! is never more of it than the patterns are long. Only the two ends of a text are looked at.

use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::CanaryMatcher;
use super::fold::{significant_head, significant_tail};
use super::form::{CanaryForm, CanaryShape};
use super::patterns::CanaryPattern;
use super::search::{Leaf, Texts, place};

/// Letters and digits of the shortest piece. Shorter ones are in every text.
pub(super) const MIN_PIECE: usize = 3;

/// The first letters and digits of a piece, in lower case.
type PieceStart = [u8; MIN_PIECE];

/// What pieces are recognised by.
#[derive(Debug, Default)]
pub(super) struct PieceIndex {
    /// Patterns by what they begin with.
    begin_with: HashMap<PieceStart, Vec<u32>>,
    /// Whatever stands in a pattern, so that most texts are known to go on with none.
    within: HashSet<PieceStart>,
    longest: usize,
}

/// What a text may have of a canary that is in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CanaryPiece {
    /// Its first letters and digits, where a canary could go on with them.
    head: Option<Vec<u8>>,
    /// Whether it has no others.
    is_whole: bool,
    /// The patterns that it ends with the beginning of, and how much of them.
    begun: Vec<(u32, u32)>,
}

/// A piece, and where its text stands.
pub(crate) struct PlacedPiece<'v> {
    pub(crate) piece: CanaryPiece,
    /// The value, by its position in what was searched, and the place below it.
    pub(crate) value: usize,
    pub(crate) path: String,
    pub(crate) text: &'v str,
}

/// The beginnings that were seen so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct CanaryTrail(HashSet<(u32, u32)>);

fn start_of(text: &[u8]) -> Option<PieceStart> {
    let start: PieceStart = text.get(..MIN_PIECE)?.try_into().ok()?;
    Some(start.map(|byte| byte.to_ascii_lowercase()))
}

impl CanaryPattern {
    fn is_same(&self, part: &[u8], text: &[u8]) -> bool {
        if self.exact {
            part == text
        } else {
            part.eq_ignore_ascii_case(text)
        }
    }
}

impl PieceIndex {
    pub(super) fn new(patterns: &[CanaryPattern]) -> Self {
        let mut index = Self::default();
        for (number, pattern) in (0..).zip(patterns) {
            if !pattern.in_pieces || pattern.text.len() < 2 * MIN_PIECE {
                continue;
            }
            index.longest = index.longest.max(pattern.text.len());
            let starts = pattern.text.windows(MIN_PIECE).filter_map(start_of);
            index.within.extend(starts);
            if let Some(start) = start_of(&pattern.text) {
                index.begin_with.entry(start).or_default().push(number);
            }
        }
        index
    }

    pub(super) fn memory(&self) -> usize {
        let row = size_of::<PieceStart>() + size_of::<Vec<u32>>() + size_of::<u32>();
        self.within.len() * (size_of::<PieceStart>() + 1) + self.begin_with.len() * row
    }
}

impl CanaryMatcher {
    /// The texts below values that may have a piece of a canary, in their order.
    pub(crate) fn pieces<'v>(&self, values: &[&'v Value]) -> Vec<PlacedPiece<'v>> {
        let mut texts = Texts::default();
        for value in values {
            texts.add(value, "");
        }
        let texts = texts.values.into_iter().enumerate();
        let placed = texts.filter_map(|(number, text)| {
            let piece = self.piece(text)?;
            let (value, path) = place(values, Leaf::Value, number);
            Some(PlacedPiece {
                piece,
                value,
                path,
                text,
            })
        });
        placed.collect()
    }

    /// What a text may have of a canary that is in pieces; nothing for nearly all texts.
    fn piece(&self, text: &str) -> Option<CanaryPiece> {
        let index = &self.pieces;
        let (head, is_whole) = significant_head(text, index.longest);
        let goes_on = start_of(&head).is_some_and(|start| index.within.contains(&start));
        let tail = if is_whole {
            head.clone()
        } else {
            significant_tail(text, index.longest)
        };
        let mut begun = Vec::new();
        for start in 0..tail.len() {
            let end = &tail[start..];
            let Some(patterns) = start_of(end).and_then(|start| index.begin_with.get(&start))
            else {
                continue;
            };
            for number in patterns {
                let pattern = &self.patterns[*number as usize];
                let is_begun = end.len() + MIN_PIECE <= pattern.text.len()
                    && pattern.is_same(&pattern.text[..end.len()], end);
                if let Some(length) = is_begun.then(|| u32::try_from(end.len()).ok()).flatten() {
                    begun.push((*number, length));
                }
            }
        }
        (goes_on || !begun.is_empty()).then(|| CanaryPiece {
            head: goes_on.then_some(head),
            is_whole,
            begun,
        })
    }
}

impl CanaryTrail {
    /// Takes the next piece, and tells which canaries are complete with it: each once, in their order.
    pub(crate) fn follow(
        &mut self,
        matcher: &CanaryMatcher,
        piece: &CanaryPiece,
    ) -> Vec<(usize, CanaryForm)> {
        let mut found: Vec<(usize, CanaryForm)> = Vec::new();
        let mut grown = Vec::new();
        if let Some(head) = &piece.head {
            for (number, length) in &self.0 {
                let pattern = &matcher.patterns[*number as usize];
                let rest = &pattern.text[*length as usize..];
                let common = rest.len().min(head.len());
                if !pattern.is_same(&rest[..common], &head[..common]) {
                    continue;
                }
                let is_complete = common == rest.len();
                if is_complete && !found.iter().any(|(canary, _)| *canary == pattern.canary) {
                    let form = CanaryForm {
                        encodings: pattern.encodings.to_vec(),
                        shape: CanaryShape::SplitOverMessages,
                    };
                    found.push((pattern.canary, form));
                }
                let next = *length as usize + common;
                if !is_complete && piece.is_whole && next + MIN_PIECE <= pattern.text.len() {
                    grown.extend(u32::try_from(next).map(|next| (*number, next)));
                }
            }
        }
        self.0.extend(grown);
        self.0.extend(piece.begun.iter().copied());
        found.sort_by_key(|(canary, _)| *canary);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "CANARY-PERSON-77c2d91b";

    fn complete(texts: &[&str]) -> Vec<String> {
        let matcher = CanaryMatcher::new([CANARY, "SECOND-aabbccdd"]).unwrap();
        let mut trail = CanaryTrail::default();
        let pieces = texts.iter().filter_map(|text| matcher.piece(text));
        let found = pieces.flat_map(|piece| trail.follow(&matcher, &piece));
        found
            .map(|(canary, form)| form.describe(["C", "S"][canary]))
            .collect()
    }

    #[test]
    fn pieces_come_together() {
        for texts in [
            &["the number is CANARY-PERSO", "N-77c2d91b, and so on"][..],
            &["CANARY", "person", "77c2", "d91b"],
            &[
                "CANARY-PERSON",
                "something else",
                "ends with CAN",
                "77c2d91b",
            ],
        ] {
            assert_eq!(
                complete(texts),
                ["C split over several messages"],
                "{texts:?}"
            );
        }
        // What comes first may be the end, turned around.
        assert_eq!(
            complete(&["b19d2c77-NOS", "REP-YRANAC"]),
            ["reversed C split over several messages"]
        );
        // Base64 of the canary.
        assert_eq!(
            complete(&["Q0FOQVJZLVBFUlNP", "Ti03N2MyZDkxYg=="]),
            ["base64 of C split over several messages"]
        );
    }

    #[test]
    fn what_is_missing_is_missing() {
        for texts in [
            &["CANARY-PERSON", "77c2d91"][..],
            &["CANARY-PERSON", "x77c2d91b"],
            &["CANARY-PERSON.", "CANARY-PERSON."],
            &["77c2d91b", "CANARY-PERSON-"],
            &["CA", "NARY-PERSON-77c2d91b"],
            &["CANARY-PERSON-77c2d9", "1b"],
            &["Q0FOQVJZLVBFUlNP", "TI03N2MYZDKXYG=="],
        ] {
            assert!(complete(texts).is_empty(), "{texts:?}");
        }
    }

    #[test]
    fn a_trail_is_no_longer_than_its_patterns() {
        let matcher = CanaryMatcher::new([CANARY]).unwrap();
        let all: usize = matcher
            .patterns
            .iter()
            .map(|pattern| pattern.text.len())
            .sum();
        let mut trail = CanaryTrail::default();
        for round in 0..1000 {
            let end = 3 + round % CANARY.len().saturating_sub(3);
            if let Some(piece) = matcher.piece(&format!("{round} {}", &CANARY[..end])) {
                trail.follow(&matcher, &piece);
            }
        }
        assert!(trail.0.len() <= all);
    }
}
