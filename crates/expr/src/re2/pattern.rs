//! A compiled pattern and its searches, each within a budget of time.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use regex_automata::meta::{self, Regex};
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::stepped::Stepped;
use super::translate::{SIZE_LIMIT, parse, too_large};
use super::{MatchBudget, Re2Error, RegexTimeout};

/// What a byte of text costs at worst, whatever the pattern: an automaton that
/// makes a state per byte.
const NANOS_PER_BYTE: u64 = 800;

/// What a byte costs at worst on top, per state: the slowest engine.
const NANOS_PER_BYTE_AND_STATE: u64 = 9;

/// How long a search may take at worst without a second thought.
const WITHOUT_A_THOUGHT: Duration = Duration::from_millis(20);

/// A compiled RE2 pattern.
///
/// ```
/// use proofhouse_expr::re2::{MatchBudget, Re2Pattern};
/// let pattern = Re2Pattern::compile(r"key=(\w+)").unwrap();
/// let budget = &mut MatchBudget::default();
/// assert_eq!(pattern.find("the key=abc", budget), Ok(Some(4..11)));
/// assert_eq!(pattern.first_group("the key=abc", budget), Ok(Some(8..11)));
/// assert!(Re2Pattern::compile("(?=look)").is_err());
/// ```
#[derive(Debug)]
pub struct Re2Pattern {
    regex: Regex,
    cost: PatternCost,
    hir: Hir,
    /// Whether a match may lie between the bytes of a character, which is none.
    splits: bool,
    /// How many bytes of a match stand before and after its first group, where that is always the same.
    group: Option<(usize, usize)>,
    /// Made when a text is long enough to need it.
    stepped: OnceLock<Option<Stepped>>,
}

/// A pattern's size, with its counted repetitions written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternCost {
    /// States that can be alive at once.
    states: u64,
    /// Roughly what it takes compiled, in bytes.
    pub(crate) bytes: u64,
}

/// A pattern that is valid, and what compiling it would cost.
pub(crate) struct ParsedPattern {
    hir: Hir,
    length: usize,
    pub(crate) cost: PatternCost,
}

impl ParsedPattern {
    /// Parses a pattern.
    pub(crate) fn new(source: &str) -> Result<Self, Re2Error> {
        let hir = parse(source)?;
        Ok(Self {
            cost: cost(&hir),
            hir,
            length: source.len(),
        })
    }

    pub(crate) fn compile(self, max_bytes: usize) -> Result<Re2Pattern, Re2Error> {
        // The size is an estimate; what is far over is not worth the attempt.
        if self.cost.bytes > (max_bytes as u64).saturating_mul(2) {
            return Err(too_large(self.length));
        }
        let config = meta::Config::new()
            .utf8_empty(true)
            .nfa_size_limit(Some(max_bytes))
            .onepass_size_limit(Some(max_bytes))
            .hybrid_cache_capacity(max_bytes);
        let regex = meta::Builder::new()
            .configure(config)
            .build_from_hir(&self.hir)
            .map_err(|_| too_large(self.length))?;
        Ok(Re2Pattern {
            regex,
            cost: self.cost,
            splits: self
                .hir
                .properties()
                .look_set()
                .contains(Look::WordAsciiNegate),
            group: around_first_group(&self.hir),
            hir: self.hir,
            stepped: OnceLock::new(),
        })
    }
}

impl Re2Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// Returns why it is not RE2, or that it is over a limit.
    pub fn compile(source: &str) -> Result<Self, Re2Error> {
        ParsedPattern::new(source)?.compile(SIZE_LIMIT)
    }

    /// Whether the pattern is found anywhere in the text.
    ///
    /// # Errors
    ///
    /// Returns an error when the search is over its time.
    pub fn is_match(&self, text: &str, budget: &mut MatchBudget) -> Result<bool, RegexTimeout> {
        if self.is_quick(text.len(), budget)? {
            return Ok(self.regex.is_match(text));
        }
        self.stepped(budget)?.is_match(text, self.splits, budget)
    }

    /// Where the pattern is first found.
    ///
    /// # Errors
    ///
    /// Returns an error when the search is over its time.
    pub fn find(
        &self,
        text: &str,
        budget: &mut MatchBudget,
    ) -> Result<Option<Range<usize>>, RegexTimeout> {
        if self.is_quick(text.len(), budget)? {
            return Ok(self.regex.find(text).map(|found| found.range()));
        }
        self.stepped(budget)?.find(text, budget)
    }

    /// Where the first capture group of the first match is; `None` also where the match leaves the group out.
    ///
    /// # Errors
    ///
    /// Returns an error when the search is over its time.
    pub fn first_group(
        &self,
        text: &str,
        budget: &mut MatchBudget,
    ) -> Result<Option<Range<usize>>, RegexTimeout> {
        let input = if self.is_quick(text.len(), budget)? {
            Input::new(text)
        } else {
            let Some(found) = self.stepped(budget)?.find(text, budget)? else {
                return Ok(None);
            };
            if let Some((before, after)) = self.group {
                return Ok(Some(found.start + before..found.end - after));
            }
            // Groups are told by slower engines, which cannot be stopped.
            if self.worst(found.len()) > budget.left() {
                return Err(budget.timeout());
            }
            Input::new(text).span(found).anchored(Anchored::Yes)
        };
        let mut captures = self.regex.create_captures();
        self.regex.search_captures(&input, &mut captures);
        Ok(captures.get_group(1).map(|group| group.range()))
    }

    /// Whether a text is searched quickly at worst. What it may take is paid for.
    fn is_quick(&self, length: usize, budget: &mut MatchBudget) -> Result<bool, RegexTimeout> {
        let worst = self.worst(length);
        let quick = worst <= WITHOUT_A_THOUGHT;
        if quick {
            budget.pay(worst)?;
        }
        Ok(quick)
    }

    /// What a search in a text of this length takes at worst.
    fn worst(&self, length: usize) -> Duration {
        let nanos_per_byte = self
            .cost
            .states
            .saturating_mul(NANOS_PER_BYTE_AND_STATE)
            .saturating_add(NANOS_PER_BYTE);
        Duration::from_nanos(nanos_per_byte.saturating_mul(length as u64))
    }

    fn stepped(&self, budget: &MatchBudget) -> Result<&Stepped, RegexTimeout> {
        self.stepped
            .get_or_init(|| Stepped::new(&self.hir))
            .as_ref()
            .ok_or_else(|| budget.timeout())
    }
}

/// How many bytes of every match stand before and after the first group, if that is always the same number.
fn around_first_group(hir: &Hir) -> Option<(usize, usize)> {
    match hir.kind() {
        HirKind::Capture(_) => Some((0, 0)),
        HirKind::Concat(parts) => {
            let has_group = |part: &Hir| part.properties().explicit_captures_len() > 0;
            let position = parts.iter().position(has_group)?;
            let (before, after) = around_first_group(&parts[position])?;
            let length = |part: &Hir| {
                let length = part.properties().minimum_len()?;
                (part.properties().maximum_len() == Some(length)).then_some(length)
            };
            let sum = |parts: &[Hir]| parts.iter().map(length).sum::<Option<usize>>();
            Some((
                before + sum(&parts[..position])?,
                after + sum(&parts[position + 1..])?,
            ))
        }
        _ => None,
    }
}

fn cost(hir: &Hir) -> PatternCost {
    let of = |states, bytes| PatternCost { states, bytes };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => of(1, 16),
        HirKind::Literal(literal) => {
            let len = literal.0.len() as u64;
            of(len, len * 16)
        }
        HirKind::Class(Class::Bytes(class)) => of(1, 16 + 8 * class.ranges().len() as u64),
        HirKind::Class(Class::Unicode(class)) if class.is_ascii() => {
            of(1, 16 + 8 * class.ranges().len() as u64)
        }
        // Beyond ASCII a class is a small automaton over bytes.
        HirKind::Class(Class::Unicode(class)) => of(3, 800 + 48 * class.ranges().len() as u64),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            let (once, times) = (cost(&repetition.sub), u64::from(times.max(1)));
            of(
                once.states.saturating_mul(times),
                once.bytes.saturating_mul(times),
            )
        }
        HirKind::Capture(capture) => cost(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(cost).fold(of(1, 16), |sum, part| {
                of(
                    sum.states.saturating_add(part.states),
                    sum.bytes.saturating_add(part.bytes),
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(source: &str) -> Result<Re2Pattern, Re2Error> {
        Re2Pattern::compile(source)
    }

    #[test]
    fn patterns_are_priced() {
        let states = |source: &str| compile(source).unwrap().cost.states;
        assert_eq!(states("abc"), 3);
        assert!(states("[ab]{100}") >= 100);
        assert!(states("(?:x[ab]{10}){20}") >= 200);
        assert!(compile("(").is_err());
        assert!(compile(&format!("{}a{}", "(".repeat(200), ")".repeat(200))).is_err());
    }

    #[test]
    fn every_way_finds_the_same() {
        let budget = &mut MatchBudget::new(Duration::from_secs(3600));
        let long = "xé ".repeat(20_000);
        for (pattern, text) in [
            ("abc", "abc"),
            ("^abc$", "xabc"),
            ("x{3}y", "xxy"),
            (r"(?i)\bABC\b", "abc."),
            (r"é+$", "é"),
            ("(a|b)*c", "c"),
            (r"\B", "aéa"),
            (r"a\B", "ab"),
            (r"\Bb(c?)", "abé"),
            ("(x*)$", "é"),
            ("k(.*)v", "kéyv"),
            ("(?:(a)|b)", "b"),
            ("xa(b*)(c)", "xabbc"),
            ("k=((a+)b)!", "k=aab!"),
            (r"\bk(?:=(\w+);)z$", "k=ab;z"),
            ("k([éa]+)v", "kéav"),
            ("[ké](a+)", "kaa"),
            ("ka?(a+)", "kaa"),
            ("(?:k(a))+", "kaka"),
            ("", ""),
        ] {
            let pattern = compile(pattern).unwrap();
            let stepped = Stepped::new(&pattern.hir).unwrap();
            for text in [
                text.to_owned(),
                format!("{long}{text}"),
                format!("{text}{long}"),
            ] {
                let expected = pattern.regex.find(&text).map(|found| found.range());
                assert_eq!(
                    stepped.is_match(&text, pattern.splits, budget),
                    Ok(expected.is_some()),
                    "{pattern:?}"
                );
                assert_eq!(
                    stepped.find(&text, budget),
                    Ok(expected.clone()),
                    "{pattern:?}"
                );
                assert_eq!(pattern.is_match(&text, budget), Ok(expected.is_some()));
                assert_eq!(pattern.find(&text, budget), Ok(expected));
                let mut captures = pattern.regex.create_captures();
                pattern.regex.captures(&text, &mut captures);
                let group = captures.get_group(1).map(|group| group.range());
                assert_eq!(pattern.first_group(&text, budget), Ok(group), "{pattern:?}");
            }
        }
    }

    /// What is before and after a group is as long as ever, so the match says where the group is.
    #[test]
    fn a_group_between_fixed_texts_takes_no_longer_than_its_match() {
        let blob = "data:image/png;base64,".to_owned() + &"iVBORw0KGgo+/".repeat(16_000);
        for (pattern, end) in [
            ("base64,([A-Za-z0-9+/=]+)", 0),
            (";base64,((?:[A-Za-z0-9]|[+/])+)/", 1),
        ] {
            let pattern = compile(pattern).unwrap();
            // The search itself is timed by what it does; the time is not what this is about.
            let budget = &mut MatchBudget::new(Duration::from_secs(60));
            let worst = pattern.worst(blob.len());
            let found = pattern.first_group(&blob, budget);
            assert_eq!(found, Ok(Some(22..blob.len() - end)), "{pattern:?}");
            assert!(worst > Duration::from_millis(100), "{pattern:?}: {worst:?}");
        }
        let fixed = |pattern: &str| compile(pattern).unwrap().group;
        assert_eq!(fixed("base64,([A-Za-z0-9+/=]+)"), Some((7, 0)));
        assert_eq!(fixed("é((a+)b)c$"), Some((2, 1)));
        assert_eq!(fixed("(a*)"), Some((0, 0)));
        for pattern in [
            "a",
            "a*(b)",
            "(?:(a)|b)",
            "(?:(a))+",
            "[aé](b)",
            "(a)?",
            "(a)b*",
        ] {
            assert_eq!(fixed(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn what_takes_long_is_stopped() {
        let mut bits = 1_u64;
        let text: String = (0..200_000)
            .map(|_| {
                bits ^= bits << 13;
                bits ^= bits >> 7;
                bits ^= bits << 17;
                if bits & 1 == 0 { '0' } else { '1' }
            })
            .collect();
        let pattern = compile("1[01]{900}2").unwrap();
        let budget = || MatchBudget::new(Duration::from_millis(5));
        assert!(pattern.is_match(&text, &mut budget()).is_err());
        assert!(pattern.find(&text, &mut budget()).is_err());
        assert!(pattern.first_group(&text, &mut budget()).is_err());
        let none = &mut MatchBudget::new(Duration::ZERO);
        assert!(pattern.is_match("1", none).is_err());
    }
}
