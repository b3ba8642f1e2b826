//! Where words and short pieces of texts stand, so that looking a value up does not read everything that is remembered.
//!
//! Pieces start at every `stride` letters or digits: a part of `min_part` or more holds one of them, wherever it begins.
//! Each piece points to the last few places where it stood, so a part that stands in many texts is found in one of the
//! latest. Words point to every text that has them. What a text brought goes when it is forgotten.

use std::collections::{VecDeque, vec_deque};
use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

/// How many places of one piece are known.
const MAX_PLACES: usize = 4;

/// How many words of a text are known by their hash while it is read: most words come more than once.
const RECENT_WORDS: usize = 512;

/// The index of the texts of one label. Texts have numbers, and the oldest goes first.
#[derive(Debug)]
pub(super) struct TextIndex {
    stride: usize,
    piece: usize,
    /// With a seed that nobody knows who writes texts. What has one hash shares its places, which costs a comparison.
    seed: DefaultHashBuilder,
    pieces: HashTable<(u64, PiecePlaces)>,
    words: HashTable<(u64, VecDeque<u32>)>,
    /// Places of pieces, and texts of words.
    places: usize,
}

/// The last places of a piece, from the oldest: the number of a text, and where in it.
#[derive(Debug, Default)]
struct PiecePlaces {
    count: usize,
    at: [(u32, u32); MAX_PLACES],
}

impl PiecePlaces {
    /// Returns whether one was given up for it.
    fn push(&mut self, place: (u32, u32)) -> bool {
        let is_full = self.count == MAX_PLACES;
        if is_full {
            self.at.rotate_left(1);
            self.count -= 1;
        }
        self.at[self.count] = place;
        self.count += 1;
        is_full
    }

    /// Removes the places of a text, and returns how many there were.
    fn remove(&mut self, number: u32) -> usize {
        let before = self.count;
        let mut kept = 0;
        for from in 0..before {
            if self.at[from].0 != number {
                self.at[kept] = self.at[from];
                kept += 1;
            }
        }
        self.count = kept;
        before - kept
    }
}

impl TextIndex {
    pub(super) fn new(min_part: usize) -> Self {
        let stride = (min_part / 2).max(1);
        Self {
            stride,
            piece: min_part.saturating_sub(stride) + 1,
            seed: DefaultHashBuilder::default(),
            pieces: HashTable::new(),
            words: HashTable::new(),
            places: 0,
        }
    }

    /// How long a piece is.
    pub(super) fn piece(&self) -> usize {
        self.piece
    }

    /// How many places it knows.
    pub(super) fn places(&self) -> usize {
        self.places
    }

    /// Adds a text: in lower case, and its letters and digits alone.
    pub(super) fn add(&mut self, number: u32, lower: &str, significant: &str) {
        for (place, piece) in pieces(significant, self.piece, self.stride) {
            let hash = self.seed.hash_one(piece);
            let entry = self
                .pieces
                .entry(hash, |(known, _)| *known == hash, |(known, _)| *known);
            let mut entry = entry.or_insert_with(|| (hash, PiecePlaces::default()));
            if !entry.get_mut().1.push((number, place)) {
                self.places += 1;
            }
        }
        let mut recent = [0; RECENT_WORDS];
        each_word(lower, |word| {
            let hash = self.seed.hash_one(word);
            if is_known(&mut recent, hash) {
                return;
            }
            let entry = self
                .words
                .entry(hash, |(known, _)| *known == hash, |(known, _)| *known);
            let mut entry = entry.or_insert_with(|| (hash, VecDeque::new()));
            let texts = &mut entry.get_mut().1;
            if texts.back() != Some(&number) {
                texts.push_back(number);
                self.places += 1;
            }
        });
    }

    /// Removes the oldest text, which must be the one that was added.
    pub(super) fn remove(&mut self, number: u32, lower: &str, significant: &str) {
        for (_, piece) in pieces(significant, self.piece, self.stride) {
            let hash = self.seed.hash_one(piece);
            let entry = self.pieces.find_entry(hash, |(known, _)| *known == hash);
            if let Ok(mut entry) = entry {
                self.places -= entry.get_mut().1.remove(number);
                if entry.get().1.count == 0 {
                    entry.remove();
                }
            }
        }
        let mut recent = [0; RECENT_WORDS];
        each_word(lower, |word| {
            let hash = self.seed.hash_one(word);
            if is_known(&mut recent, hash) {
                return;
            }
            let entry = self.words.find_entry(hash, |(known, _)| *known == hash);
            if let Ok(mut entry) = entry
                && entry.get().1.front() == Some(&number)
            {
                entry.get_mut().1.pop_front();
                self.places -= 1;
                if entry.get().1.is_empty() {
                    entry.remove();
                }
            }
        });
    }

    /// The places of a piece, the latest first.
    pub(super) fn places_of(&self, piece: &[u8]) -> impl Iterator<Item = (u32, u32)> {
        let hash = self.seed.hash_one(piece);
        let found = self.pieces.find(hash, |(known, _)| *known == hash);
        let places = found.map_or(&[][..], |(_, places)| &places.at[..places.count]);
        places.iter().rev().copied()
    }

    /// Texts among which are all that have each word of this one, from the oldest; nothing where none has one of them.
    pub(super) fn with_all(
        &self,
        lower: &str,
    ) -> Option<std::iter::Copied<vec_deque::Iter<'_, u32>>> {
        let mut fewest: Option<&VecDeque<u32>> = None;
        let mut is_missing = false;
        each_word(lower, |word| {
            let hash = self.seed.hash_one(word);
            match self.words.find(hash, |(known, _)| *known == hash) {
                Some((_, texts)) if fewest.is_none_or(|fewest| texts.len() < fewest.len()) => {
                    fewest = Some(texts);
                }
                Some(_) => {}
                None => is_missing = true,
            }
        });
        let texts = fewest.filter(|_| !is_missing)?;
        Some(texts.iter().copied())
    }
}

/// The pieces of a text, and where each begins.
fn pieces(significant: &str, length: usize, stride: usize) -> impl Iterator<Item = (u32, &[u8])> {
    let windows = significant.as_bytes().windows(length).step_by(stride);
    let places = (0..=u32::MAX).step_by(stride);
    places.zip(windows)
}

/// Whether a hash was seen a moment ago; remembers it.
fn is_known(recent: &mut [u64; RECENT_WORDS], hash: u64) -> bool {
    let place = usize::try_from(hash % RECENT_WORDS as u64).unwrap_or_default();
    std::mem::replace(&mut recent[place], hash) == hash
}

/// Calls `found` with every word of a text: what has letters and digits alone.
fn each_word(text: &str, mut found: impl FnMut(&[u8])) {
    if text.is_ascii() {
        for word in text.as_bytes().split(|byte| !byte.is_ascii_alphanumeric()) {
            if !word.is_empty() {
                found(word);
            }
        }
    } else {
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            if !word.is_empty() {
                found(word.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(index: &TextIndex, value: &str) -> Vec<u32> {
        let numbers = index.with_all(value);
        numbers.into_iter().flatten().collect()
    }

    #[test]
    fn nothing_stays_of_a_text_that_is_forgotten() {
        let mut index = TextIndex::new(4);
        let texts = ["one two two", "two three", "one two two"];
        for (number, text) in (0..).zip(texts) {
            index.add(number, text, &text.replace(' ', ""));
        }
        assert_eq!(found(&index, "two"), [0, 1, 2]);
        assert_eq!(found(&index, "two three"), [1], "the rarest word counts");
        assert!(found(&index, "two four").is_empty());
        assert!(found(&index, "...").is_empty());
        assert_eq!(index.places_of(b"one").next(), Some((2, 0)), "the latest");
        for (number, text) in (0..).zip(texts) {
            index.remove(number, text, &text.replace(' ', ""));
            assert!(!found(&index, "two").contains(&number));
        }
        index.add(3, "straße ÉTÉ", "straßeété");
        assert_eq!(found(&index, "straße"), [3]);
        index.remove(3, "straße ÉTÉ", "straßeété");
        assert_eq!(
            (index.places(), index.words.len(), index.pieces.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn of_many_places_the_latest_are_known() {
        let mut index = TextIndex::new(4);
        for number in 0..10 {
            index.add(number, "", "abc");
        }
        let places: Vec<(u32, u32)> = index.places_of(b"abc").collect();
        assert_eq!(places, [(9, 0), (8, 0), (7, 0), (6, 0)]);
        assert_eq!(index.places(), 4);
    }
}
