//! Texts that are remembered within a budget, and found again by a whole value or by a part.
//!
//! Parts are found by an index of short pieces that start at every `stride` letters or digits: a part of `min_part` or
//! more holds one of them, wherever it begins. Each piece points to the last few places where it stood, so a part that
//! stands in many results is found in one of the latest.

use std::collections::{HashMap, VecDeque};

use memchr::memmem;

use super::{CALL, TaintForm, TaintHit};

/// How many places of one piece are known.
const MAX_PLACES: usize = 4;

/// How many characters of matched words are told.
const SHOWN: usize = 80;

#[derive(Debug)]
struct HeldText {
    number: u64,
    origin: String,
    /// How it was decoded from the result.
    form: TaintForm,
    /// As it came.
    text: String,
    /// The same in lower case.
    lower: String,
    /// Its letters and digits in lower case.
    significant: String,
}

impl HeldText {
    fn bytes(&self) -> usize {
        self.text.len() + self.lower.len() + self.significant.len()
    }
}

/// Texts of one label.
#[derive(Debug)]
pub(super) struct HeldTexts {
    texts: VecDeque<HeldText>,
    bytes: usize,
    budget: usize,
    next: u64,
    min_part: usize,
    stride: usize,
    piece: usize,
    index: HashMap<u64, Vec<(u64, u32)>>,
    /// Places in the index, of texts that are remembered and of others.
    places: usize,
    has_forgotten: bool,
}

/// What was found, before its argument is named.
impl TaintHit {
    pub(super) fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }
}

impl HeldTexts {
    pub(super) fn new(budget: usize, min_part: usize) -> Self {
        let stride = (min_part / 2).max(1);
        Self {
            texts: VecDeque::new(),
            bytes: 0,
            // Every text is held in three forms.
            budget: budget.saturating_mul(3),
            next: 0,
            min_part,
            stride,
            piece: min_part - stride + 1,
            index: HashMap::new(),
            places: 0,
            has_forgotten: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub(super) fn has_seen(&self) -> bool {
        self.next > 0
    }

    pub(super) fn has_forgotten(&self) -> bool {
        self.has_forgotten
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Remembers a text. Returns whether all of it fits.
    pub(super) fn add(&mut self, origin: &str, form: TaintForm, text: &str) -> bool {
        let known = self.texts.iter().rev().take(8);
        if text.trim().is_empty() || known.into_iter().any(|held| held.text == text) {
            return true;
        }
        let mut end = text.len().min(self.budget / 3);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let whole = end == text.len();
        self.has_forgotten |= !whole;
        let text = &text[..end];
        let held = HeldText {
            number: self.next,
            origin: origin.to_owned(),
            form,
            text: text.to_owned(),
            lower: text.to_lowercase(),
            significant: significant(text),
        };
        self.next += 1;
        self.bytes += held.bytes();
        self.learn(&held);
        self.texts.push_back(held);
        while self.bytes > self.budget
            && self.texts.len() > 1
            && let Some(oldest) = self.texts.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.has_forgotten = true;
        }
        // Places of texts that are forgotten go in one sweep, not one by one.
        if self.places > 1024 && self.places > 2 * self.bytes / self.stride {
            self.sweep();
        }
        whole
    }

    fn learn(&mut self, held: &HeldText) {
        let bytes = held.significant.as_bytes();
        let mut at = 0;
        while let Some(piece) = bytes.get(at..at + self.piece) {
            let places = self.index.entry(hash(piece)).or_default();
            if places.len() >= MAX_PLACES {
                places.remove(0);
                self.places -= 1;
            }
            if let Ok(place) = u32::try_from(at) {
                places.push((held.number, place));
                self.places += 1;
            }
            at += self.stride;
        }
    }

    fn sweep(&mut self) {
        let oldest = self.texts.front().map_or(self.next, |held| held.number);
        self.index.retain(|_, places| {
            places.retain(|(number, _)| *number >= oldest);
            !places.is_empty()
        });
        self.places = self.index.values().map(Vec::len).sum();
    }

    fn held(&self, number: u64) -> Option<&HeldText> {
        let oldest = self.texts.front()?.number;
        self.texts
            .get(usize::try_from(number.checked_sub(oldest)?).ok()?)
    }

    /// A whole value that stands in a text as a word or words of its own.
    pub(super) fn whole(&self, value: &str, min_value: usize) -> Option<TaintHit> {
        self.whole_where(value, min_value, &|_| true)
    }

    fn whole_where(
        &self,
        value: &str,
        min_value: usize,
        counts: &dyn Fn(&HeldText) -> bool,
    ) -> Option<TaintHit> {
        let value = value.trim();
        if value.chars().filter(|c| c.is_alphanumeric()).count() < min_value {
            return None;
        }
        let lower = value.to_lowercase();
        let finder = memmem::Finder::new(lower.as_bytes());
        let exact = memmem::Finder::new(value.as_bytes());
        self.texts
            .iter()
            .rev()
            .filter(|held| counts(held))
            .find_map(|held| {
                let mut places = finder.find_iter(held.lower.as_bytes());
                places.find(|at| stands_alone(&held.lower, *at, lower.len()))?;
                let form = match held.form {
                    TaintForm::Verbatim if exact.find(held.text.as_bytes()).is_some() => {
                        TaintForm::Verbatim
                    }
                    TaintForm::Verbatim => TaintForm::CaseFolded,
                    other => other,
                };
                Some(hit(held, form, value))
            })
    }

    /// Whether a result has a whole value; what the client said does not count.
    pub(super) fn whole_of_result(&self, value: &str) -> bool {
        let counts = |held: &HeldText| held.origin != CALL;
        self.whole_where(value, 1, &counts).is_some()
    }

    /// A part of a value that stands in a text.
    pub(super) fn part(&self, value: &str) -> Option<TaintHit> {
        self.part_over(&[value]).map(|(_, hit)| hit)
    }

    /// A part of values that follow each other, and the value in which it begins.
    pub(super) fn part_over(&self, values: &[&str]) -> Option<(usize, TaintHit)> {
        let mut all = String::new();
        let mut starts = Vec::with_capacity(values.len());
        for value in values {
            starts.push(all.len());
            push_significant(value, &mut all);
        }
        if all.len() < self.min_part {
            return None;
        }
        let bytes = all.as_bytes();
        for at in 0..=bytes.len().checked_sub(self.piece)? {
            let piece = &bytes[at..at + self.piece];
            let Some(places) = self.index.get(&hash(piece)) else {
                continue;
            };
            for (number, place) in places.iter().rev() {
                let (Some(held), Ok(place)) = (self.held(*number), usize::try_from(*place)) else {
                    continue;
                };
                let other = held.significant.as_bytes();
                let (from, to) = extend(bytes, at, other, place, self.piece);
                if to - from >= self.min_part {
                    let first = starts.partition_point(|start| *start <= from) - 1;
                    let words = String::from_utf8_lossy(&bytes[from..to]);
                    let form = match held.form {
                        TaintForm::Verbatim => TaintForm::Part,
                        other => other,
                    };
                    return Some((first, hit(held, form, &words)));
                }
            }
        }
        None
    }

    /// Whether the letters and digits of a text stand in one that is remembered.
    pub(super) fn contains(&self, words: &str) -> bool {
        let words = significant(words);
        let finder = memmem::Finder::new(words.as_bytes());
        !words.is_empty()
            && (self.texts.iter()).any(|held| finder.find(held.significant.as_bytes()).is_some())
    }
}

fn hit(held: &HeldText, form: TaintForm, words: &str) -> TaintHit {
    TaintHit {
        path: String::new(),
        form,
        origin: held.origin.clone(),
        words: words.chars().take(SHOWN).collect(),
        is_address: false,
    }
}

/// How far two texts agree around a piece that both have; nothing where they do not have it.
fn extend(one: &[u8], at: usize, other: &[u8], place: usize, length: usize) -> (usize, usize) {
    if one.get(at..at + length) != other.get(place..place + length) {
        return (at, at);
    }
    let before = one[..at].iter().rev().zip(other[..place].iter().rev());
    let before = before.take_while(|(a, b)| a == b).count();
    let after = one[at + length..].iter().zip(&other[place + length..]);
    let after = after.take_while(|(a, b)| a == b).count();
    (at - before, at + length + after)
}

/// Whether no letter or digit stands directly before or after.
fn stands_alone(text: &str, at: usize, length: usize) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + length..].chars().next();
    ![before, after]
        .into_iter()
        .flatten()
        .any(char::is_alphanumeric)
}

fn significant(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_significant(text, &mut out);
    out
}

fn push_significant(text: &str, out: &mut String) {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    out.extend(letters.flat_map(char::to_lowercase));
}

/// FNV-1a: pieces are short, and a collision only costs a comparison.
fn hash(piece: &[u8]) -> u64 {
    proofhouse_wire::fnv::hash_64(piece.iter().copied())
}
