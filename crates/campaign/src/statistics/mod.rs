//! How sure a rate is, whether it has risen, and what a comparison could find: Wilson's interval, exact tests of one
//! document and of many, and their power.

mod exact;
mod hypergeometric;
mod power;
#[cfg(test)]
mod reference;

pub use exact::{CountPair, adjusted_rises, fisher, rise, rise_of_all};
pub use power::{ComparisonDesign, USUAL_POWER};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rate of some of all, with the interval in which the true one lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// How often it happened.
    pub some: u64,
    /// How often it could have.
    pub all: u64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The number of standard deviations that 95 % lie within.
const Z: f64 = 1.959_963_984_540_054;

impl Rate {
    /// The rate and its Wilson interval. Of nothing, nothing is known: the interval is everything.
    ///
    /// ```
    /// use proofhouse_campaign::statistics::Rate;
    ///
    /// let rate = Rate::new(0, 10);
    /// assert_eq!(rate.value(), Some(0.0));
    /// assert!((rate.high - 0.2775).abs() < 0.0001);
    /// assert_eq!(Rate::new(0, 0).value(), None);
    /// ```
    #[must_use]
    pub fn new(some: u64, all: u64) -> Self {
        let some = some.min(all);
        if all == 0 {
            return Self {
                some,
                all,
                low: 0.0,
                high: 1.0,
            };
        }
        let n = all as f64;
        let p = some as f64 / n;
        let denominator = 1.0 + Z * Z / n;
        let centre = (p + Z * Z / (2.0 * n)) / denominator;
        let margin = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / denominator;
        // Rounding must not leave a hair outside at the ends.
        let low = if some == 0 {
            0.0
        } else {
            (centre - margin).max(0.0)
        };
        let high = if some == all {
            1.0
        } else {
            (centre + margin).min(1.0)
        };
        Self {
            some,
            all,
            low,
            high,
        }
    }

    /// The rate itself, if there is one.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        (self.all > 0).then(|| self.some as f64 / self.all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_intervals() {
        for (some, all, low, high) in [
            (10, 10, 0.7225, 1.0),
            (5, 10, 0.2366, 0.7634),
            (1, 1, 0.2065, 1.0),
            (81, 263, 0.2553, 0.3662),
        ] {
            let rate = Rate::new(some, all);
            assert!((rate.low - low).abs() < 0.0001, "{rate:?}");
            assert!((rate.high - high).abs() < 0.0001, "{rate:?}");
        }
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_rate(all in 1_u64..500, part in 0.0_f64..=1.0) {
            let some = (all as f64 * part) as u64;
            let rate = Rate::new(some, all);
            let value = rate.value().unwrap();
            prop_assert!(0.0 <= rate.low && rate.low <= value && value <= rate.high && rate.high <= 1.0);
        }

        #[test]
        fn fisher_is_a_probability_and_knows_no_order(
            a in 0_u64..40, n1 in 0_u64..40, c in 0_u64..40, n2 in 0_u64..40,
        ) {
            let (one, other) = ((a.min(n1), n1), (c.min(n2), n2));
            let p = fisher(one, other);
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert!((p - fisher(other, one)).abs() < 1e-9);
        }
    }
}
