//! What a comparison could find: how likely a true rise is noticed, which rise is noticed at all, and how many repeats that
//! takes.

use super::exact::{CountPair, rise};

/// How likely a true difference should be found, unless told otherwise.
pub const USUAL_POWER: f64 = 0.8;

/// Up to this many runs on each side, the power of one document is computed exactly; beyond, both ways agree.
const EXACT_RUNS: u64 = 60;

/// A comparison that is planned: the documents that change, their runs, and the error that is allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonDesign {
    /// How many documents change in the same way and are tested together.
    pub documents: u64,
    /// Runs of each document now.
    pub now: u64,
    /// Runs of each document before.
    pub before: u64,
    /// How likely a false alarm of this test may be.
    pub level: f64,
}

impl ComparisonDesign {
    /// How likely a rise from one rate to another is found.
    ///
    /// ```
    /// use proofhouse_campaign::statistics::ComparisonDesign;
    ///
    /// let design = ComparisonDesign { documents: 1, now: 5, before: 5, level: 0.025 };
    /// assert_eq!(design.power(0.0, 1.0), 1.0);
    /// // All five give way, or four of five.
    /// let expected = 0.9_f64.powi(5) + 5.0 * 0.9_f64.powi(4) * 0.1;
    /// assert!((design.power(0.0, 0.9) - expected).abs() < 1e-12);
    /// ```
    #[must_use]
    pub fn power(&self, from: f64, to: f64) -> f64 {
        let (from, to) = (from.clamp(0.0, 1.0), to.clamp(0.0, 1.0));
        if self.documents == 0 || self.now == 0 || self.before == 0 {
            return 0.0;
        }
        if self.documents == 1 && self.now <= EXACT_RUNS && self.before <= EXACT_RUNS {
            return self.exact_power(from, to);
        }
        self.power_of_many(from, to)
    }

    /// The least rate to which a rise from this one is found with such a power, if any is.
    ///
    /// ```
    /// use proofhouse_campaign::statistics::ComparisonDesign;
    ///
    /// let design = ComparisonDesign { documents: 1, now: 3, before: 3, level: 0.025 };
    /// assert_eq!(design.least_found(0.0, 0.8), None);
    /// let design = ComparisonDesign { now: 10, before: 10, ..design };
    /// let least = design.least_found(0.0, 0.8).unwrap();
    /// assert!(design.power(0.0, least) >= 0.8 && design.power(0.0, least - 0.02) < 0.8);
    /// ```
    #[must_use]
    pub fn least_found(&self, from: f64, power: f64) -> Option<f64> {
        if self.power(from, 1.0) < power {
            return None;
        }
        let (mut low, mut high) = (from.clamp(0.0, 1.0), 1.0);
        for _ in 0..30 {
            let middle = f64::midpoint(low, high);
            if self.power(from, middle) >= power {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    /// The fewest repeats, on both sides and up to `most`, that find a rise with such a power.
    ///
    /// ```
    /// use proofhouse_campaign::statistics::ComparisonDesign;
    ///
    /// let design = ComparisonDesign { documents: 1, now: 1, before: 1, level: 0.025 };
    /// assert_eq!(design.repeats_to_find(0.0, 1.0, 0.8, 10_000), Some(4));
    /// assert_eq!(design.repeats_to_find(0.5, 0.5001, 0.8, 10_000), None);
    /// ```
    #[must_use]
    pub fn repeats_to_find(&self, from: f64, to: f64, power: f64, most: u64) -> Option<u64> {
        let finds = |repeats: u64| {
            let design = Self {
                now: repeats,
                before: repeats,
                ..*self
            };
            design.power(from, to) >= power
        };
        // With few runs, one more may even lose power, so each number is tried.
        let few = most.min(EXACT_RUNS);
        if let Some(repeats) = (1..=few).find(|repeats| finds(*repeats)) {
            return Some(repeats);
        }
        if most <= few || !finds(most) {
            return None;
        }
        let (mut low, mut high) = (few, most);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if finds(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    /// The power of Fisher's test: the chance of every outcome that it calls a rise.
    fn exact_power(&self, from: f64, to: f64) -> f64 {
        let (now, before) = (binomial(self.now, to), binomial(self.before, from));
        let mut power = 0.0;
        // The more successes there were before, the more there have to be now.
        let mut least = 0;
        for (hits_before, chance) in (0..).zip(&before) {
            let is_found = |hits: u64| {
                rise(CountPair::new((hits, self.now), (hits_before, self.before))) <= self.level
            };
            while least <= self.now && !is_found(least) {
                least += 1;
            }
            let skipped = usize::try_from(least).unwrap_or(usize::MAX);
            power += chance * now.iter().skip(skipped).sum::<f64>();
        }
        power.min(1.0)
    }

    /// The power of the stratified test, by the normal distribution, with a correction for whole numbers.
    fn power_of_many(&self, from: f64, to: f64) -> f64 {
        let (documents, n, m) = (self.documents as f64, self.now as f64, self.before as f64);
        let all = n + m;
        let mean = documents * n * m * (to - from) / all;
        let (now, before) = (n * to * (1.0 - to), m * from * (1.0 - from));
        let spread = (documents * (m * m * now + n * n * before)).sqrt() / all;
        // The variance that the test expects, from how many successes there will be.
        let successes = n * to + m * from;
        let squared = now + before + successes * successes;
        let expected = n * m * (all * successes - squared) / (all * all * (all - 1.0));
        let needed = quantile(1.0 - self.level) * (documents * expected).max(0.0).sqrt() + 0.5;
        // Even the greatest rise may be too little.
        let greatest = documents * n * m / all;
        if needed > greatest {
            return 0.0;
        }
        if spread <= 0.0 {
            return if mean >= needed { 1.0 } else { 0.0 };
        }
        normal((mean - needed) / spread)
    }
}

/// The probabilities of 0 to `runs` successes.
fn binomial(runs: u64, rate: f64) -> Vec<f64> {
    let mut chances = vec![1.0];
    for _ in 0..runs {
        let mut next = vec![0.0; chances.len() + 1];
        for (hits, chance) in chances.iter().enumerate() {
            next[hits] += chance * (1.0 - rate);
            next[hits + 1] += chance * rate;
        }
        chances = next;
    }
    chances
}

/// The normal distribution (West 2005, after Hart 1968): the chance of a value up to `z`.
pub(super) fn normal(z: f64) -> f64 {
    let x = z.abs();
    let upper = if x > 37.0 {
        0.0
    } else if x < 7.071_067_811_865_475 {
        let over = polynomial(
            x,
            &[
                3.526_249_659_989_11e-2,
                0.700_383_064_443_688,
                6.373_962_203_531_65,
                33.912_866_078_383,
                112.079_291_497_871,
                221.213_596_169_931,
                220.206_867_912_376,
            ],
        );
        let under = polynomial(
            x,
            &[
                8.838_834_764_831_84e-2,
                1.755_667_163_182_64,
                16.064_177_579_207,
                86.780_732_202_946_1,
                296.564_248_779_674,
                637.333_633_378_831,
                793.826_512_519_948,
                440.413_735_824_752,
            ],
        );
        (-x * x / 2.0).exp() * over / under
    } else {
        let fraction = x + 1.0 / (x + 2.0 / (x + 3.0 / (x + 4.0 / (x + 0.65))));
        (-x * x / 2.0).exp() / (fraction * 2.506_628_274_631)
    };
    if z > 0.0 { 1.0 - upper } else { upper }
}

/// The value of a polynomial, from its highest coefficient.
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients
        .iter()
        .fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// The value that the normal distribution is below with this probability.
pub(super) fn quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if normal(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}
