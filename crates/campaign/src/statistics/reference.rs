//! Holds the tests to values that others compute: `tests/data/statistics.py` has them from SciPy.

use serde::Deserialize;

use super::power::{normal, quantile};
use super::{ComparisonDesign, CountPair, adjusted_rises, fisher, rise, rise_of_all};

#[derive(Deserialize)]
struct Reference {
    fisher: Vec<FisherCase>,
    together: Vec<StratifiedCase>,
    adjusted: Vec<AdjustedCase>,
    power: Vec<PowerCase>,
    normal: Vec<NormalCase>,
}

/// Successes and runs, now and before.
type Counts = [(u64, u64); 2];

#[derive(Deserialize)]
struct FisherCase {
    pair: Counts,
    two_sided: f64,
    rise: f64,
}

#[derive(Deserialize)]
struct StratifiedCase {
    pairs: Vec<Counts>,
    rise: f64,
}

#[derive(Deserialize)]
struct AdjustedCase {
    pairs: Vec<Counts>,
    rises: Vec<f64>,
}

#[derive(Deserialize)]
struct PowerCase {
    now: u64,
    before: u64,
    level: f64,
    from: f64,
    to: f64,
    power: f64,
}

#[derive(Deserialize)]
struct NormalCase {
    z: f64,
    below: f64,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../../tests/data/statistics.json")).unwrap()
}

fn pairs(counts: &[Counts]) -> Vec<CountPair> {
    let pairs = counts
        .iter()
        .map(|[now, before]| CountPair::new(*now, *before));
    pairs.collect()
}

/// Small p-values decide, so they must be right in proportion.
fn assert_close(ours: f64, theirs: f64, what: &str) {
    let close = (ours - theirs).abs() <= 1e-9 * theirs.max(1e-12);
    assert!(close, "{what}: {ours:e}, not {theirs:e}");
}

#[test]
fn fishers_test() {
    let cases = reference().fisher;
    assert!(cases.len() > 30);
    for case in cases {
        let [now, before] = case.pair;
        let what = format!("{now:?} {before:?}");
        assert_close(fisher(now, before), case.two_sided, &what);
        assert_close(rise(CountPair::new(now, before)), case.rise, &what);
    }
}

#[test]
fn the_stratified_test() {
    for case in reference().together {
        assert_close(rise_of_all(&pairs(&case.pairs)), case.rise, "together");
    }
}

#[test]
fn the_adjusted_values() {
    for case in reference().adjusted {
        let ours = adjusted_rises(&pairs(&case.pairs));
        assert_eq!(ours.len(), case.rises.len());
        for (ours, theirs) in ours.into_iter().zip(case.rises) {
            assert_close(ours, theirs, "adjusted");
        }
    }
}

#[test]
fn the_power_of_one_document() {
    for case in reference().power {
        let design = ComparisonDesign {
            documents: 1,
            now: case.now,
            before: case.before,
            level: case.level,
        };
        assert_close(design.power(case.from, case.to), case.power, "power");
    }
}

#[test]
fn the_normal_distribution() {
    for case in reference().normal {
        assert!((normal(case.z) - case.below).abs() < 1e-13, "{}", case.z);
        if case.z.abs() < 5.0 {
            assert!((quantile(case.below) - case.z).abs() < 1e-9, "{}", case.z);
        }
    }
}
