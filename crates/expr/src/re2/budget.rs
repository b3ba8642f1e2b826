//! How long the searches of one evaluation may take together.

use std::time::{Duration, Instant};

/// The time limit of one evaluation unless its caller has another: what the specification recommends for expressions.
const DEFAULT_LIMIT: Duration = Duration::from_millis(100);

/// Work whose worst case is below this goes by without a look at the clock.
const UNSEEN: Duration = Duration::from_millis(1);

/// What counts as work from one look to the next, which are few bytes.
const WORK_BETWEEN_LOOKS: Duration = Duration::from_micros(20);

/// The time that the searches of one evaluation have together. The clock starts with the first search that is worth it.
///
/// ```
/// use proofhouse_expr::re2::{MatchBudget, Re2Pattern};
/// let pattern = Re2Pattern::compile("id_rsa|passwd").unwrap();
/// let mut budget = MatchBudget::default();
/// assert_eq!(pattern.is_match("cat /etc/passwd", &mut budget), Ok(true));
/// ```
#[derive(Debug, Clone)]
pub struct MatchBudget {
    limit: Duration,
    started: Option<Instant>,
    /// The worst case of what was done since the last look; of all that was done, where work counts.
    unseen: Duration,
    /// Whether work counts by its worst case, whatever the clock says.
    counts_work: bool,
}

/// A search would have taken, or took, longer than its evaluation may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the regular expression takes longer than {} ms", limit.as_millis())]
pub struct RegexTimeout {
    /// The limit.
    pub limit: Duration,
}

impl Default for MatchBudget {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl MatchBudget {
    /// A budget of this much time.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            started: None,
            unseen: Duration::ZERO,
            counts_work: false,
        }
    }

    /// A budget of work, told as the time that it takes at worst: what it allows does not depend on how busy the machine is.
    ///
    /// ```
    /// use std::time::Duration;
    /// use proofhouse_expr::re2::{MatchBudget, Re2Pattern};
    ///
    /// let pattern = Re2Pattern::compile("a[^x]*b").unwrap();
    /// let text = "a".repeat(1 << 20);
    /// let found = |limit| pattern.is_match(&text, &mut MatchBudget::of_work(limit)).is_ok();
    /// assert!(found(Duration::from_secs(60)) && !found(Duration::from_nanos(1)));
    /// ```
    #[must_use]
    pub fn of_work(limit: Duration) -> Self {
        Self {
            counts_work: true,
            ..Self::new(limit)
        }
    }

    /// A budget whose clock is running already.
    #[cfg(feature = "cel")]
    pub(crate) fn running(limit: Duration, started: Instant) -> Self {
        Self {
            started: Some(started),
            ..Self::new(limit)
        }
    }

    /// Pays for a search that takes at most `worst`.
    pub(super) fn pay(&mut self, worst: Duration) -> Result<(), RegexTimeout> {
        self.unseen = self.unseen.saturating_add(worst);
        if self.counts_work {
            return self.check_work();
        }
        if self.unseen < UNSEEN && !self.limit.is_zero() {
            return Ok(());
        }
        self.look()
    }

    fn check_work(&self) -> Result<(), RegexTimeout> {
        if self.unseen > self.limit {
            return Err(self.timeout());
        }
        Ok(())
    }

    /// Looks at the clock.
    pub(super) fn look(&mut self) -> Result<(), RegexTimeout> {
        if self.counts_work {
            self.unseen = self.unseen.saturating_add(WORK_BETWEEN_LOOKS);
            return self.check_work();
        }
        self.unseen = Duration::ZERO;
        if self.left().is_zero() {
            return Err(self.timeout());
        }
        Ok(())
    }

    /// The time that is left.
    pub(super) fn left(&mut self) -> Duration {
        if self.counts_work {
            return self.limit.saturating_sub(self.unseen);
        }
        let started = *self.started.get_or_insert_with(Instant::now);
        self.limit.saturating_sub(started.elapsed())
    }

    pub(super) fn timeout(&self) -> RegexTimeout {
        RegexTimeout { limit: self.limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_things_add_up() {
        let mut budget = MatchBudget::new(Duration::from_nanos(1));
        let paid = (0..10_000).find_map(|_| budget.pay(Duration::from_micros(10)).err());
        assert!(paid.is_some());
        let mut none = MatchBudget::new(Duration::ZERO);
        assert!(none.pay(Duration::ZERO).is_err());
        let mut plenty = MatchBudget::new(Duration::from_secs(3600));
        assert!((0..10_000).all(|_| plenty.pay(Duration::from_micros(10)).is_ok()));
    }
}
