//! Regular expressions for `matches`: bounded in size, bounded in time, and
//! compiled once where the pattern is constant, or kept in a small cache where
//! it is not.
//!
//! A search cannot be interrupted, and its speed depends on the pattern and the
//! text by a factor of a thousand: all engines are linear in the text, but the
//! last resort is slower by the number of states that can be alive at once. So
//! a search that could be slow, going by that number, is first tried with an
//! automaton that gives up when it would be.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::ExprLimits;
use crate::budget::StepBudget;
use crate::error::{BoxedError, EvaluateErrorKind, fault};

/// Deepest nesting of groups; the regex compiler recurses.
const MAX_NESTING: u32 = 50;

/// Patterns a program keeps that were not known when it was compiled.
const CACHED: usize = 16;

/// What a byte of text costs at worst, whatever the pattern: an automaton that
/// makes a state per byte.
const NANOS_PER_BYTE: u64 = 800;

/// What a byte costs at worst on top, per state: the slowest engine.
const NANOS_PER_BYTE_AND_STATE: u64 = 9;

/// How long a search may take at worst without a second thought.
const WITHOUT_A_THOUGHT: Duration = Duration::from_millis(20);

/// A compiled pattern and what it can cost.
#[derive(Debug)]
pub(crate) struct CompiledPattern {
    regex: Regex,
    cost: PatternCost,
    hir: Hir,
    /// Made when a text is long enough to need it.
    careful: OnceLock<Option<Careful>>,
}

/// A pattern's size, with its counted repetitions written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternCost {
    /// States that can be alive at once.
    states: u64,
    /// Roughly what it takes compiled, in bytes.
    pub(crate) bytes: u64,
}

/// Why a text is not taken as a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("the pattern compiles to more than {limit} bytes")]
    TooBig { limit: usize },
    #[error("not a valid pattern: {0}")]
    Invalid(String),
}

impl CompiledPattern {
    /// Parses a pattern and says what compiling it would cost.
    pub(crate) fn parse(source: &str) -> Result<(Hir, PatternCost), PatternError> {
        let hir = ParserBuilder::new()
            .nest_limit(MAX_NESTING)
            .build()
            .parse(source)
            .map_err(|error| invalid(&error.to_string()))?;
        let cost = cost(&hir);
        Ok((hir, cost))
    }

    pub(crate) fn compile(
        source: &str,
        (hir, cost): (Hir, PatternCost),
        limits: &ExprLimits,
    ) -> Result<Self, PatternError> {
        let too_big = || PatternError::TooBig {
            limit: limits.max_regex_bytes,
        };
        // The size is an estimate; what is far over is not worth the attempt.
        if cost.bytes > limits.max_regex_bytes as u64 * 2 {
            return Err(too_big());
        }
        let regex = RegexBuilder::new(source)
            .nest_limit(MAX_NESTING)
            .size_limit(limits.max_regex_bytes)
            .dfa_size_limit(limits.max_regex_bytes)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => too_big(),
                error => invalid(&error.to_string()),
            })?;
        Ok(Self {
            regex,
            cost,
            hir,
            careful: OnceLock::new(),
        })
    }

    /// Whether the pattern is found in `text`; refused where finding out could
    /// take longer than the time left.
    pub(crate) fn is_match(
        &self,
        text: &str,
        budget: &mut StepBudget<'_>,
    ) -> Result<bool, BoxedError> {
        budget.scan(text.len().saturating_mul(4))?;
        let nanos_per_byte = self
            .cost
            .states
            .saturating_mul(NANOS_PER_BYTE_AND_STATE)
            .saturating_add(NANOS_PER_BYTE);
        let worst = Duration::from_nanos(nanos_per_byte.saturating_mul(text.len() as u64));
        // Short work needs no clock.
        if worst < Duration::from_millis(1) {
            return Ok(self.regex.is_match(text));
        }
        let left = budget.time_left();
        if worst > WITHOUT_A_THOUGHT.min(left) {
            let careful = self.careful.get_or_init(|| Careful::new(&self.hir));
            if let Some(found) = careful.as_ref().and_then(|careful| careful.is_match(text)) {
                budget.look()?;
                return Ok(found);
            }
            if worst > left {
                return Err(budget.exhaust_by_pattern());
            }
        }
        let found = self.regex.is_match(text);
        budget.look()?;
        Ok(found)
    }
}

fn invalid(message: &str) -> PatternError {
    let last = message.lines().next_back().unwrap_or_default();
    PatternError::Invalid(last.trim_start_matches("error: ").to_owned())
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

/// A lazy automaton that gives up where it does not pay.
#[derive(Debug)]
struct Careful {
    dfa: DFA,
    /// One is enough: long texts are rare, and another thread's search that
    /// finds it taken makes its own.
    cache: Mutex<Option<Cache>>,
}

impl Careful {
    fn new(hir: &Hir) -> Option<Self> {
        let nfa = NFA::compiler()
            .configure(thompson::Config::new().which_captures(WhichCaptures::None))
            .build_from_hir(hir)
            .ok()?;
        let config = DFA::config()
            .cache_capacity(512 * 1024)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(1))
            .minimum_bytes_per_state(Some(32))
            // Gives up at the first letter beyond ASCII, if it must know.
            .unicode_word_boundary(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).ok()?;
        let cache = Mutex::new(None);
        Some(Self { dfa, cache })
    }

    /// `None` where it gave up.
    fn is_match(&self, text: &str) -> Option<bool> {
        let kept = self.cache.lock().map(|mut cache| cache.take());
        let kept = kept.ok().flatten();
        let mut cache = kept.unwrap_or_else(|| self.dfa.create_cache());
        let input = Input::new(text).earliest(true);
        let found = self.dfa.try_search_fwd(&mut cache, &input);
        if let Ok(mut kept) = self.cache.lock() {
            *kept = Some(cache);
        }
        found.ok().map(|found| found.is_some())
    }
}

/// The dynamic patterns of a program, most recently used last.
#[derive(Debug, Default)]
pub(crate) struct PatternCache(Mutex<Vec<(Box<str>, Arc<CompiledPattern>)>>);

impl PatternCache {
    /// The compiled `source`, from the cache where it is there.
    pub(crate) fn get(
        &self,
        source: &str,
        limits: &ExprLimits,
        budget: &mut StepBudget<'_>,
    ) -> Result<Arc<CompiledPattern>, BoxedError> {
        if let Some(pattern) = self.cached(source) {
            return Ok(pattern);
        }
        // Compiling is outside the lock: it is slow, and others may be waiting.
        budget.look()?;
        let compiled = match CompiledPattern::parse(source) {
            Ok((hir, cost)) => {
                let bytes = cost.bytes.min(limits.max_regex_bytes as u64 * 2);
                let paid = budget.steps(200 + bytes / 4);
                budget.verdict()?;
                paid?;
                CompiledPattern::compile(source, (hir, cost), limits)
            }
            Err(error) => Err(error),
        };
        budget.verdict()?;
        budget.look()?;
        let pattern = compiled
            .map(Arc::new)
            .map_err(|error| fault(EvaluateErrorKind::Regex, error.to_string()))?;
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() == CACHED {
            cache.remove(0);
        }
        cache.push((source.into(), Arc::clone(&pattern)));
        Ok(pattern)
    }

    fn cached(&self, source: &str) -> Option<Arc<CompiledPattern>> {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cache.iter().position(|(known, _)| **known == *source)?;
        let entry = cache.remove(found);
        let pattern = Arc::clone(&entry.1);
        cache.push(entry);
        Some(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(source: &str) -> Result<CompiledPattern, PatternError> {
        CompiledPattern::compile(
            source,
            CompiledPattern::parse(source)?,
            &ExprLimits::default(),
        )
    }

    #[test]
    fn patterns_are_priced() {
        let states = |source: &str| compile(source).unwrap().cost.states;
        assert_eq!(states("abc"), 3);
        assert!(states("[ab]{100}") >= 100);
        assert!(states("(?:x[ab]{10}){20}") >= 200);
        assert!(compile("(a{1000}){1000}").is_err());
        assert!(compile("(").is_err());
        assert!(compile(&format!("{}a{}", "(".repeat(200), ")".repeat(200))).is_err());
        let message = compile("a(").unwrap_err();
        assert_eq!(message.to_string(), "not a valid pattern: unclosed group");
    }

    #[test]
    fn the_careful_way_finds_the_same() {
        let long = "x".repeat(50_000);
        for (pattern, text, found) in [
            ("abc", "abc", true),
            ("^abc$", "xabc", false),
            ("x{3}y", "xxy", false),
            (r"(?i)\bABC\b", "abc.", true),
            (r"é+$", "é", true),
            ("(a|b)*c", "c", true),
        ] {
            let pattern = compile(pattern).unwrap();
            let careful = Careful::new(&pattern.hir).unwrap();
            let limits = ExprLimits::default();
            for text in [text.to_owned(), format!("{long} {text}")] {
                let expected = pattern.regex.is_match(&text);
                assert!(
                    careful
                        .is_match(&text)
                        .is_none_or(|found| found == expected)
                );
                let budget = &mut StepBudget::new(&limits);
                assert_eq!(pattern.is_match(&text, budget).unwrap(), expected);
            }
            assert_eq!(pattern.regex.is_match(text), found);
        }
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let (cache, limits) = (PatternCache::default(), ExprLimits::default());
        let mut budget = StepBudget::new(&limits);
        cache.get("keep", &limits, &mut budget).unwrap();
        for n in 0..100 {
            cache.get(&format!("p{n}"), &limits, &mut budget).unwrap();
            cache.get("keep", &limits, &mut budget).unwrap();
        }
        assert_eq!(cache.0.lock().unwrap().len(), CACHED);
        assert!(cache.cached("keep").is_some());
        assert!(cache.cached("p0").is_none());
    }
}
