//! Texts that are remembered within a budget, and found again by a whole value or by a part.
//!
//! Whole values are found by the index of words, parts by that of short pieces ([`TextIndex`]); what an index finds is
//! compared with the text itself.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashMap;
use memchr::memmem;

use super::index::TextIndex;
use super::{CALL, TaintForm, TaintHit};

/// How many parts of one value are compared with what is trusted; one that has more is not excused.
const MAX_EXCUSES: usize = 16;

/// How many characters of matched words are told.
const SHOWN: usize = 80;

/// How many of the latest texts are not remembered a second time.
const RECENT: usize = 8;

/// What is held beside the letters of a text, about: a million small numbers take more than their digits.
const BESIDE: usize = 160;

#[derive(Debug)]
struct HeldText {
    origin: String,
    /// How it was decoded from the result.
    form: TaintForm,
    /// Whether the client said it, not a result.
    is_own: bool,
    /// As it came.
    text: String,
    /// The same in lower case.
    lower: String,
    /// Its letters and digits in lower case.
    significant: String,
}

impl HeldText {
    fn bytes(&self) -> usize {
        BESIDE + self.text.len() + self.lower.len() + self.significant.len()
    }
}

/// Texts of one label.
#[derive(Debug)]
pub(super) struct HeldTexts {
    texts: VecDeque<HeldText>,
    bytes: usize,
    budget: usize,
    /// The number of the next text; the texts that are held have those before it.
    next: u64,
    min_part: usize,
    index: TextIndex,
    /// How many texts are held, by their hash.
    known: HashMap<u64, u32>,
    /// Nobody who writes texts knows it, so none can pass for another.
    seed: RandomState,
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
        Self {
            texts: VecDeque::new(),
            bytes: 0,
            // Every text is held in three forms.
            budget: budget.saturating_mul(3),
            next: 0,
            min_part,
            index: TextIndex::new(min_part),
            known: HashMap::new(),
            seed: RandomState::new(),
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

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn places(&self) -> usize {
        self.index.places()
    }

    /// Whether a text is one of the latest.
    pub(super) fn is_recent(&self, text: &str) -> bool {
        let latest = self.texts.iter().rev().take(RECENT);
        latest.into_iter().any(|held| held.text == text)
    }

    /// Whether a text is held.
    pub(super) fn holds(&self, text: &str) -> bool {
        self.known.contains_key(&self.seed.hash_one(text))
    }

    /// Every text with its origin and how it was decoded, from the oldest.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, TaintForm, &str)> {
        let texts = self.texts.iter();
        texts.map(|held| (held.origin.as_str(), held.form, held.text.as_str()))
    }

    /// Remembers a text. Returns whether all of it fits.
    pub(super) fn add(&mut self, origin: &str, form: TaintForm, text: &str) -> bool {
        if text.trim().is_empty() || self.is_recent(text) {
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
            origin: origin.to_owned(),
            form,
            is_own: origin == CALL,
            text: text.to_owned(),
            lower: text.to_lowercase(),
            significant: significant(text),
        };
        let number = short(self.next);
        self.next += 1;
        self.bytes += held.bytes();
        self.index.add(number, &held.lower, &held.significant);
        *self.known.entry(self.seed.hash_one(text)).or_default() += 1;
        self.texts.push_back(held);
        while self.bytes > self.budget && self.texts.len() > 1 {
            self.forget_oldest();
        }
        whole
    }

    fn forget_oldest(&mut self) {
        let number = self.oldest();
        let Some(oldest) = self.texts.pop_front() else {
            return;
        };
        self.bytes -= oldest.bytes();
        self.has_forgotten = true;
        self.index
            .remove(number, &oldest.lower, &oldest.significant);
        let hash = self.seed.hash_one(oldest.text.as_str());
        if let Some(count) = self.known.get_mut(&hash) {
            *count -= 1;
            if *count == 0 {
                self.known.remove(&hash);
            }
        }
    }

    /// The number of the oldest text.
    fn oldest(&self) -> u32 {
        short(self.next - self.texts.len() as u64)
    }

    fn held(&self, number: u32) -> Option<&HeldText> {
        let at = number.wrapping_sub(self.oldest());
        self.texts.get(usize::try_from(at).ok()?)
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
        if self.texts.is_empty()
            || value.chars().filter(|c| c.is_alphanumeric()).count() < min_value
        {
            return None;
        }
        let lower = value.to_lowercase();
        // A text with the value has each of its words.
        let numbers = self.index.with_all(&lower)?;
        let finder = memmem::Finder::new(lower.as_bytes());
        let texts = numbers.rev().filter_map(|number| self.held(number));
        texts.filter(|held| counts(held)).find_map(|held| {
            let mut places = finder.find_iter(held.lower.as_bytes());
            places.find(|at| stands_alone(&held.lower, *at, lower.len()))?;
            let form = match held.form {
                TaintForm::Verbatim if held.text.contains(value) => TaintForm::Verbatim,
                TaintForm::Verbatim => TaintForm::CaseFolded,
                other => other,
            };
            Some(hit(held, form, value))
        })
    }

    /// Whether a result has a whole value; what the client said does not count.
    pub(super) fn whole_of_result(&self, value: &str) -> bool {
        self.whole_where(value, 1, &|held| !held.is_own).is_some()
    }

    /// A part of a value that stands in a text, other than those that are excused.
    pub(super) fn part(&self, value: &str, is_excused: &dyn Fn(&str) -> bool) -> Option<TaintHit> {
        self.part_over(&[value], is_excused).map(|(_, hit)| hit)
    }

    /// A part of values that follow each other, and the value in which it begins.
    pub(super) fn part_over(
        &self,
        values: &[&str],
        is_excused: &dyn Fn(&str) -> bool,
    ) -> Option<(usize, TaintHit)> {
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
        // How far the text is excused. Longer ones are not compared again and again with what is trusted.
        let (mut excused, mut asked) = (0..0, 0);
        let length = self.index.piece();
        for at in 0..=bytes.len().checked_sub(length)? {
            for (number, place) in self.index.places_of(&bytes[at..at + length]) {
                let (Some(held), Ok(place)) = (self.held(number), usize::try_from(place)) else {
                    continue;
                };
                let other = held.significant.as_bytes();
                let (from, to) = extend(bytes, at, other, place, length);
                let is_known = excused.start <= from && to <= excused.end;
                if to - from >= self.min_part && !is_known {
                    let words = String::from_utf8_lossy(&bytes[from..to]);
                    asked += 1;
                    if asked <= MAX_EXCUSES && is_excused(&words) {
                        excused = from..to;
                        continue;
                    }
                    let first = starts.partition_point(|start| *start <= from) - 1;
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
        is_key: false,
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
    for c in text.chars() {
        if c.is_ascii() {
            if c.is_ascii_alphanumeric() {
                out.push(c.to_ascii_lowercase());
            }
        } else if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        }
    }
}

/// The number of a text in the index. It begins again after four thousand million texts, of which far fewer are held.
fn short(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}
