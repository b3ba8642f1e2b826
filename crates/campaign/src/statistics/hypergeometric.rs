//! How many of the successes of two samples fall into the first, if both come from one rate.

/// Weights below this part of the greatest are left out. What they add up to cannot change any decision.
const NEGLIGIBLE: f64 = 1e-24;

/// The hypergeometric distribution of a table with fixed margins, without its negligible ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hypergeometric {
    /// The number that the first probability belongs to.
    pub(super) first: u64,
    /// The probability of each number from `first` on.
    pub(super) probabilities: Vec<f64>,
}

impl Hypergeometric {
    /// For `successes` in samples of `one` and `other`: how many of them are in the first.
    pub(super) fn new(one: u64, other: u64, successes: u64) -> Self {
        let successes = successes.min(one.saturating_add(other));
        let lowest = successes.saturating_sub(other);
        let highest = successes.min(one);
        let mode = mode(one, other, successes).clamp(lowest, highest);
        // From the mode outwards by ratios of neighbours: nothing overflows and nothing cancels.
        let up = |x: u64| {
            let (x, n, m, s) = (x as f64, one as f64, other as f64, successes as f64);
            (n - x) * (s - x) / ((x + 1.0) * (m - s + x + 1.0))
        };
        let mut below = Vec::new();
        let mut weight = 1.0;
        let mut first = mode;
        while first > lowest {
            weight /= up(first - 1);
            if weight < NEGLIGIBLE {
                break;
            }
            first -= 1;
            below.push(weight);
        }
        below.reverse();
        let mut weights = below;
        weights.push(1.0);
        weight = 1.0;
        for x in mode..highest {
            weight *= up(x);
            if weight < NEGLIGIBLE {
                break;
            }
            weights.push(weight);
        }
        let all: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= all;
        }
        Self {
            first,
            probabilities: weights,
        }
    }

    /// How likely a number is.
    pub(super) fn of(&self, x: u64) -> f64 {
        let place = x
            .checked_sub(self.first)
            .and_then(|place| usize::try_from(place).ok());
        place
            .and_then(|place| self.probabilities.get(place))
            .copied()
            .unwrap_or(0.0)
    }

    /// How likely a number at least this great is.
    pub(super) fn at_least(&self, x: u64) -> f64 {
        let skipped = usize::try_from(x.saturating_sub(self.first)).unwrap_or(usize::MAX);
        // The small ones first, so that they count.
        let tail = self.probabilities.iter().skip(skipped).rev();
        tail.fold(0.0, |sum, p| sum + p).min(1.0)
    }

    /// The greatest p-value of the one-sided test that is at most `level`: how likely a p-value up to `level` is.
    pub(super) fn attainable(&self, level: f64) -> f64 {
        // Equal p-values must be equal however they are rounded.
        let level = level * (1.0 + 1e-9);
        let mut tail = 0.0;
        for probability in self.probabilities.iter().rev() {
            if tail + probability > level {
                break;
            }
            tail += probability;
        }
        tail.min(1.0)
    }
}

/// The most likely number.
fn mode(one: u64, other: u64, successes: u64) -> u64 {
    let (n, m, s) = (u128::from(one), u128::from(other), u128::from(successes));
    let mode = (n + 1) * (s + 1) / (n + m + 2);
    u64::try_from(mode).unwrap_or(u64::MAX)
}
