//! Exact tests of whether a rate has risen: of one document, of many at once, and of all together.
//!
//! All of them hold the margins of each document fixed, so that no rate has to be known, and none needs
//! many runs to be valid. What few runs cost is power.

use super::hypergeometric::Hypergeometric;

/// Probabilities below this are dropped while those of many documents are put together.
const NEGLIGIBLE: f64 = 1e-24;

/// A document, now and before: how often it gave way, of how many runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CountPair {
    /// How often it gave way now, of how many runs.
    pub now: (u64, u64),
    /// The same of the earlier campaign.
    pub before: (u64, u64),
}

impl CountPair {
    /// The pair; no sample has more successes than runs.
    #[must_use]
    pub fn new(now: (u64, u64), before: (u64, u64)) -> Self {
        Self {
            now: (now.0.min(now.1), now.1),
            before: (before.0.min(before.1), before.1),
        }
    }

    /// The same with now and before exchanged, so that what has fallen has risen.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            now: self.before,
            before: self.now,
        }
    }

    /// The greatest rise that so many runs can show: always now, never before.
    #[must_use]
    pub fn greatest_rise(self) -> Self {
        Self {
            now: (self.now.1, self.now.1),
            before: (0, self.before.1),
        }
    }

    /// Whether both have runs.
    #[must_use]
    pub fn has_both(self) -> bool {
        self.now.1 > 0 && self.before.1 > 0
    }

    fn distribution(self) -> Hypergeometric {
        let successes = self.now.0.saturating_add(self.before.0);
        Hypergeometric::new(self.now.1, self.before.1, successes)
    }
}

/// The two-sided p-value of Fisher's exact test: how likely a difference at least as great is, if both
/// rates are the same in truth.
///
/// ```
/// use proofhouse_campaign::statistics::fisher;
///
/// // Fisher's tea: three of four cups right.
/// assert!((fisher((3, 4), (1, 4)) - 0.4857).abs() < 0.0001);
/// assert!((fisher((0, 10), (10, 10)) - 1.0825e-5).abs() < 1e-8);
/// assert_eq!(fisher((0, 0), (1, 1)), 1.0);
/// ```
#[must_use]
pub fn fisher(one: (u64, u64), other: (u64, u64)) -> f64 {
    let pair = CountPair::new(one, other);
    let distribution = pair.distribution();
    let seen = distribution.of(pair.now.0);
    // Those as unlikely as what was seen count too, however they are rounded.
    let unlikely = distribution.probabilities.iter();
    let sum: f64 = unlikely.filter(|p| **p <= seen * (1.0 + 1e-7)).sum();
    sum.min(1.0)
}

/// The one-sided p-value of Fisher's exact test: how likely so many successes now are, or more, if the rate has not
/// risen.
///
/// ```
/// use proofhouse_campaign::statistics::{CountPair, rise};
///
/// assert!((rise(CountPair::new((5, 5), (0, 5))) - 1.0 / 252.0).abs() < 1e-12);
/// assert_eq!(rise(CountPair::new((1, 1), (0, 1))), 0.5);
/// ```
#[must_use]
pub fn rise(pair: CountPair) -> f64 {
    pair.distribution().at_least(pair.now.0)
}

/// The one-sided p-value of the exact stratified test (Cochran, Mantel and Haenszel): how likely so many successes in
/// all are, or more, if the rate of no document has risen. Documents may differ in their rates.
///
/// ```
/// use proofhouse_campaign::statistics::{CountPair, rise_of_all};
///
/// // Five documents with one run each, of which every one gives way now and none did before.
/// let pairs = [CountPair::new((1, 1), (0, 1)); 5];
/// assert!((rise_of_all(&pairs) - 1.0 / 32.0).abs() < 1e-12);
/// ```
#[must_use]
pub fn rise_of_all(pairs: &[CountPair]) -> f64 {
    let mut sum = Hypergeometric {
        first: 0,
        probabilities: vec![1.0],
    };
    let mut seen = 0;
    for pair in pairs.iter().filter(|pair| pair.has_both()) {
        seen += pair.now.0;
        sum = added(&sum, &pair.distribution());
    }
    sum.at_least(seen)
}

/// The distribution of the sum of two numbers.
fn added(one: &Hypergeometric, other: &Hypergeometric) -> Hypergeometric {
    // Most documents always or never give way, and then there is nothing to add up.
    if let [_] = other.probabilities.as_slice() {
        return Hypergeometric {
            first: one.first + other.first,
            probabilities: one.probabilities.clone(),
        };
    }
    let mut sums = vec![0.0; one.probabilities.len() + other.probabilities.len() - 1];
    for (place, p) in one.probabilities.iter().enumerate() {
        for (sum, q) in sums[place..].iter_mut().zip(&other.probabilities) {
            *sum += p * q;
        }
    }
    let matters = |p: &f64| *p >= NEGLIGIBLE;
    let start = sums.iter().position(matters).unwrap_or(0);
    let end = sums
        .iter()
        .rposition(matters)
        .map_or(sums.len(), |at| at + 1);
    Hypergeometric {
        first: one.first + other.first + start as u64,
        probabilities: sums.drain(start..end).collect(),
    }
}

/// The p-values of [`rise`] for each document, adjusted so that one at or below a level is a false alarm, anywhere among
/// the documents, no more often than the level says. Holm's procedure, with the distribution that each test
/// really has: a document whose counts could never give so small a p-value costs the others nothing.
///
/// ```
/// use proofhouse_campaign::statistics::{CountPair, adjusted_rises};
///
/// let clear = CountPair::new((5, 5), (0, 5));
/// let quiet = CountPair::new((0, 5), (0, 5));
/// // Documents that never give way cost nothing; others cost what they could show.
/// assert!((adjusted_rises(&[clear, quiet, quiet])[0] - 1.0 / 252.0).abs() < 1e-12);
/// let other = CountPair::new((2, 5), (3, 5));
/// assert!((adjusted_rises(&[clear, other])[0] - 2.0 / 252.0).abs() < 1e-12);
/// ```
#[must_use]
pub fn adjusted_rises(pairs: &[CountPair]) -> Vec<f64> {
    let distributions: Vec<Hypergeometric> = pairs.iter().map(|pair| pair.distribution()).collect();
    let mut order: Vec<(f64, usize)> = pairs
        .iter()
        .zip(&distributions)
        .enumerate()
        .map(|(place, (pair, distribution))| (distribution.at_least(pair.now.0), place))
        .collect();
    order.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut adjusted = vec![1.0; pairs.len()];
    let mut greatest = 0.0_f64;
    for (step, (p, place)) in order.iter().enumerate() {
        // Once one is 1, so are all that follow.
        if greatest >= 1.0 {
            break;
        }
        let rest = order.iter().skip(step);
        let chance: f64 = rest
            .map(|(_, other)| distributions[*other].attainable(*p))
            .sum();
        greatest = greatest.max(chance).min(1.0);
        adjusted[*place] = greatest;
    }
    adjusted
}
