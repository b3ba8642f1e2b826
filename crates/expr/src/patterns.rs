//! Regular expressions for `matches`: compiled once where the pattern is constant, or kept in a small cache where it is
//! not. The engine is [`crate::re2`]; here it is paid from the budget of the evaluation.

use std::sync::{Arc, Mutex, PoisonError};

use crate::ExprLimits;
use crate::budget::StepBudget;
use crate::error::{BoxedError, EvaluateErrorKind, fault};
use crate::re2::{ParsedPattern, Re2Error, Re2Pattern};

/// Patterns a program keeps that were not known when it was compiled.
const CACHED: usize = 16;

/// Whether the pattern is found in `text`.
pub(crate) fn is_match(
    pattern: &Re2Pattern,
    text: &str,
    budget: &mut StepBudget<'_>,
) -> Result<bool, BoxedError> {
    budget.scan(text.len().saturating_mul(4))?;
    let found = pattern.is_match(text, budget.matching());
    found.map_err(|_| budget.exhaust_by_pattern())
}

/// The error of a pattern that cannot be used.
pub(crate) fn unusable(error: &Re2Error) -> BoxedError {
    fault(
        EvaluateErrorKind::Regex,
        format!("not a valid pattern: {error}"),
    )
}

/// The dynamic patterns of a program, most recently used last.
#[derive(Debug, Default)]
pub(crate) struct PatternCache(Mutex<Vec<(Box<str>, Arc<Re2Pattern>)>>);

impl PatternCache {
    /// The compiled `source`, from the cache where it is there.
    pub(crate) fn get(
        &self,
        source: &str,
        limits: &ExprLimits,
        budget: &mut StepBudget<'_>,
    ) -> Result<Arc<Re2Pattern>, BoxedError> {
        if let Some(pattern) = self.cached(source) {
            return Ok(pattern);
        }
        // Compiling is outside the lock: it is slow, and others may be waiting.
        budget.look()?;
        let compiled = match ParsedPattern::new(source) {
            Ok(parsed) => {
                let bytes = parsed.cost.bytes.min(limits.max_regex_bytes as u64 * 2);
                let paid = budget.steps(200 + bytes / 4);
                budget.verdict()?;
                paid?;
                parsed.compile(limits.max_regex_bytes)
            }
            Err(error) => Err(error),
        };
        budget.verdict()?;
        budget.look()?;
        let pattern = compiled.map(Arc::new).map_err(|error| unusable(&error))?;
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() == CACHED {
            cache.remove(0);
        }
        cache.push((source.into(), Arc::clone(&pattern)));
        Ok(pattern)
    }

    fn cached(&self, source: &str) -> Option<Arc<Re2Pattern>> {
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
        let message = cache.get("a(", &limits, &mut budget).unwrap_err().message;
        assert_eq!(message, "not a valid pattern: unclosed group");
    }
}
