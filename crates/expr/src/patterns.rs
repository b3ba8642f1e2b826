//! Regular expressions for `matches`: bounded in size, priced, and compiled
//! once where the pattern is constant, or kept in a small cache where it is not.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};

use crate::Limits;
use crate::budget::Budget;
use crate::error::{EvaluateErrorKind, Fault, fault};

/// Deepest nesting of groups; the regex compiler recurses.
const MAX_NESTING: u32 = 50;

/// Patterns a program keeps that were not known when it was compiled.
const CACHED: usize = 16;

/// What one live state of the slowest engine costs per byte of text.
const PICOS_PER_STATE_AND_BYTE: u64 = 6_000;

/// A compiled pattern and what a byte of text can cost with it.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// States that can be alive at once. The engines are linear in the text,
    /// but times this when all the fast ones give up.
    states: u64,
}

impl Pattern {
    pub(crate) fn compile(source: &str, limits: &Limits) -> Result<Self, String> {
        let too_big = || {
            format!(
                "the pattern compiles to more than {} bytes",
                limits.max_regex_bytes
            )
        };
        // Parsed twice, because the count of states is not to be had from a
        // `Regex`; parsing is a small part of compiling.
        let hir = ParserBuilder::new()
            .nest_limit(MAX_NESTING)
            .build()
            .parse(source)
            .map_err(|error| format!("not a valid pattern: {}", one_line(&error.to_string())))?;
        let states = states(&hir);
        // A state takes more than a byte, so this only spares the attempt.
        if states > limits.max_regex_bytes as u64 {
            return Err(too_big());
        }
        let regex = RegexBuilder::new(source)
            .nest_limit(MAX_NESTING)
            .size_limit(limits.max_regex_bytes)
            .dfa_size_limit(limits.max_regex_bytes)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => too_big(),
                error => format!("not a valid pattern: {}", one_line(&error.to_string())),
            })?;
        Ok(Self { regex, states })
    }

    /// Whether the pattern is found in `text`. Refused when, at the slowest, it
    /// could take longer than the time left: the search cannot be interrupted.
    pub(crate) fn is_match(&self, text: &str, budget: &mut Budget<'_>) -> Result<bool, Fault> {
        budget.scan(text.len().saturating_mul(4))?;
        let picos = (text.len() as u64)
            .saturating_mul(self.states)
            .saturating_mul(PICOS_PER_STATE_AND_BYTE);
        let worst = Duration::from_nanos(picos / 1000);
        // Short work needs no clock.
        if worst > Duration::from_millis(1) {
            if worst > budget.time_left() {
                return Err(budget.exhaust_time());
            }
            let found = self.regex.is_match(text);
            budget.look()?;
            return Ok(found);
        }
        Ok(self.regex.is_match(text))
    }
}

fn one_line(message: &str) -> &str {
    let last = message.lines().next_back().unwrap_or_default();
    last.trim_start_matches("error: ")
}

/// The positions of a pattern with its counted repetitions written out.
fn states(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(class) => {
            // Beyond ASCII a class is a small automaton over bytes.
            if class.is_utf8() && class.maximum_len().is_some_and(|len| len > 1) {
                3
            } else {
                1
            }
        }
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            states(&repetition.sub).saturating_mul(u64::from(times.max(1)))
        }
        HirKind::Capture(capture) => states(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts
            .iter()
            .fold(1, |sum, part| states(part).saturating_add(sum)),
    }
}

/// The dynamic patterns of a program, most recently used last.
#[derive(Debug, Default)]
pub(crate) struct PatternCache(Mutex<Vec<(Box<str>, Arc<Pattern>)>>);

impl PatternCache {
    /// The compiled `source`, from the cache where it is there.
    pub(crate) fn get(
        &self,
        source: &str,
        limits: &Limits,
        budget: &mut Budget<'_>,
    ) -> Result<Arc<Pattern>, Fault> {
        if let Some(pattern) = self.cached(source) {
            return Ok(pattern);
        }
        // Compiling is outside the lock: it is slow, and others may be waiting.
        budget.steps(200)?;
        let compiled = Pattern::compile(source, limits);
        budget.look()?;
        let pattern = compiled
            .map(Arc::new)
            .map_err(|message| fault(EvaluateErrorKind::Regex, message))?;
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() == CACHED {
            cache.remove(0);
        }
        cache.push((source.into(), Arc::clone(&pattern)));
        Ok(pattern)
    }

    fn cached(&self, source: &str) -> Option<Arc<Pattern>> {
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

    fn states_of(source: &str) -> u64 {
        Pattern::compile(source, &Limits::default()).unwrap().states
    }

    #[test]
    fn patterns_are_priced() {
        assert_eq!(states_of("abc"), 3);
        assert!(states_of("[ab]{100}") >= 100);
        assert!(states_of("(?:x[ab]{10}){20}") >= 200);
        assert!(Pattern::compile("(a{1000}){1000}", &Limits::default()).is_err());
        assert!(Pattern::compile("(", &Limits::default()).is_err());
        let nested = format!("{}a{}", "(".repeat(200), ")".repeat(200));
        assert!(Pattern::compile(&nested, &Limits::default()).is_err());
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let (cache, limits) = (PatternCache::default(), Limits::default());
        let mut budget = Budget::new(&limits);
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
