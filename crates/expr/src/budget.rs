//! The budget of one evaluation: steps, bytes built and wall time.
//!
//! An exhausted budget is an error that nothing absorbs: the logical operators
//! and the loops, which may swallow other errors, pass it on at once, and the
//! evaluator asks [`Budget::verdict`] once more before it hands out a result.

use std::time::Instant;

use crate::ExprLimits;
use crate::error::{BoxedError, EvaluateErrorKind, fault};
use crate::re2::MatchBudget;

/// Deepest value that is compared or copied; JSON that was parsed is within 128.
const MAX_VALUE_DEPTH: usize = 256;

/// Steps between two looks at the clock; a look costs as much as a step or two.
const STEPS_PER_LOOK: u64 = 512;

pub(crate) struct StepBudget<'l> {
    limits: &'l ExprLimits,
    /// Steps that may be taken before the next checkpoint.
    until_look: u64,
    /// Steps left after that checkpoint.
    steps_left: u64,
    bytes_left: usize,
    /// Set by the first checkpoint, so that a short evaluation never reads the
    /// clock. What comes before it is a few hundred steps, which is microseconds.
    started: Option<Instant>,
    /// The time of searches, which is that of the evaluation.
    matching: Option<MatchBudget>,
    spent: Option<Spent>,
}

#[derive(Clone, Copy)]
enum Spent {
    Steps,
    Bytes,
    Time,
    Depth,
    Pattern,
}

impl<'l> StepBudget<'l> {
    pub(crate) fn new(limits: &'l ExprLimits) -> Self {
        let until_look = limits.max_steps.min(STEPS_PER_LOOK);
        Self {
            limits,
            until_look,
            steps_left: limits.max_steps - until_look,
            bytes_left: limits.max_bytes_built,
            started: None,
            matching: None,
            spent: None,
        }
    }

    /// Pays for `count` steps.
    #[inline]
    pub(crate) fn steps(&mut self, count: u64) -> Result<(), BoxedError> {
        match self.until_look.checked_sub(count) {
            Some(left) => {
                self.until_look = left;
                Ok(())
            }
            None => self.checkpoint(count - self.until_look),
        }
    }

    /// Pays for reading `bytes` of text once.
    #[inline]
    pub(crate) fn scan(&mut self, bytes: usize) -> Result<(), BoxedError> {
        // About what memory-bound work costs next to one step.
        match bytes / 64 {
            0 => Ok(()),
            steps => self.steps(steps as u64),
        }
    }

    /// Pays for building something of `bytes`, before it is built.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: usize) -> Result<(), BoxedError> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                self.scan(bytes)
            }
            None => Err(self.exhaust(Spent::Bytes)),
        }
    }

    #[cold]
    fn checkpoint(&mut self, owed: u64) -> Result<(), BoxedError> {
        let Some(left) = self.steps_left.checked_sub(owed) else {
            return Err(self.exhaust(Spent::Steps));
        };
        self.until_look = left.min(STEPS_PER_LOOK);
        self.steps_left = left - self.until_look;
        self.look()
    }

    /// Looks at the clock now: after work whose cost could not be foreseen.
    pub(crate) fn look(&mut self) -> Result<(), BoxedError> {
        let started = *self.started.get_or_insert_with(Instant::now);
        if started.elapsed() > self.limits.max_time {
            return Err(self.exhaust(Spent::Time));
        }
        Ok(())
    }

    /// The time that searches have: what is left of the evaluation's.
    pub(crate) fn matching(&mut self) -> &mut MatchBudget {
        let (limits, started) = (self.limits, &mut self.started);
        self.matching.get_or_insert_with(|| {
            MatchBudget::running(limits.max_time, *started.get_or_insert_with(Instant::now))
        })
    }

    /// Refuses to go deeper into a value than is safe on a small stack.
    pub(crate) fn depth(&mut self, depth: usize) -> Result<(), BoxedError> {
        if depth >= MAX_VALUE_DEPTH {
            return Err(self.exhaust(Spent::Depth));
        }
        Ok(())
    }

    /// Ends the evaluation: a search in it could take longer than is left.
    pub(crate) fn exhaust_by_pattern(&mut self) -> BoxedError {
        self.exhaust(Spent::Pattern)
    }

    fn exhaust(&mut self, spent: Spent) -> BoxedError {
        self.spent = Some(spent);
        // Nothing may go on after this, not even by mistake.
        (self.until_look, self.steps_left, self.bytes_left) = (0, 0, 0);
        self.report(spent)
    }

    fn report(&self, spent: Spent) -> BoxedError {
        let message = match spent {
            Spent::Steps => format!("more than {} steps", self.limits.max_steps),
            Spent::Bytes => format!("more than {} bytes built", self.limits.max_bytes_built),
            Spent::Time => format!("more than {} ms", self.limits.max_time.as_millis()),
            Spent::Depth => format!("a value nested deeper than {MAX_VALUE_DEPTH}"),
            Spent::Pattern => "a pattern too slow for a text this long".to_owned(),
        };
        fault(
            EvaluateErrorKind::Budget,
            format!("the expression is over its budget: {message}"),
        )
    }

    /// The error of a budget that was ever exhausted, whatever happened since.
    pub(crate) fn verdict(&self) -> Result<(), BoxedError> {
        self.spent.map_or(Ok(()), |spent| Err(self.report(spent)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn exhausted_once_exhausted_for_ever() {
        let limits = ExprLimits {
            max_steps: 1000,
            max_bytes_built: 10,
            ..ExprLimits::default()
        };
        let mut budget = StepBudget::new(&limits);
        assert!(budget.steps(999).is_ok());
        assert!(budget.steps(1).is_ok());
        assert!(budget.steps(1).is_err());
        assert!(budget.verdict().is_err());

        let mut budget = StepBudget::new(&limits);
        assert!(budget.bytes(10).is_ok());
        assert!(budget.verdict().is_ok());
        assert!(budget.bytes(1).is_err());
        assert!(budget.steps(1).is_err());
        assert!(budget.verdict().is_err());
    }

    #[test]
    fn the_clock_is_looked_at() {
        let limits = ExprLimits {
            max_time: Duration::ZERO,
            ..ExprLimits::default()
        };
        let mut budget = StepBudget::new(&limits);
        let error = (0..10_000).find_map(|_| budget.steps(1).err());
        assert!(error.is_some_and(|error| error.kind == EvaluateErrorKind::Budget));
    }
}
