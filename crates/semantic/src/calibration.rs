//! Holds the model to the indicator's own examples before the indicator is used.
//!
//! A threshold means nothing by itself: models differ in how near they put what belongs together. The
//! format gives documents examples as the ground truth to calibrate with. Where an indicator has two
//! or more of both kinds, embeddings are scaled so that the threshold lies midway between the worst
//! positive and the best negative example. Then, with or without scaling, every positive example has
//! to reach the threshold and every negative one has to stay below it.

use crate::embeddings::Embedding;
use crate::failure::SemanticFailure;

/// How many examples of a kind are looked at; the rest is left aside.
pub(crate) const MAX_EXAMPLES: usize = 16;
/// How many of each kind scaling needs: from one of each, any line could be drawn.
const ENOUGH_TO_SCALE: usize = 2;
/// How many examples that came out wrong are named.
const MAX_NAMED: usize = 3;

/// How near a text has to be, and to what.
#[derive(Debug, Clone)]
pub(crate) struct References {
    /// The intent and the positive examples.
    near: Vec<Embedding>,
    scale: Option<Scale>,
}

/// Moves `middle` to `threshold` and leaves 0 and 1 where they are, in two straight lines.
#[derive(Debug, Clone, Copy)]
struct Scale {
    middle: f64,
    threshold: f64,
}

impl References {
    /// Calibrates with the embeddings of the intent and of the examples.
    pub(crate) fn calibrate(
        intent: Embedding,
        positive: Vec<Embedding>,
        negative: &[Embedding],
        threshold: f64,
    ) -> Result<Self, SemanticFailure> {
        let mut near = vec![intent];
        near.extend(positive);
        // An example is as near to itself as can be, which would say nothing: it is compared with the
        // intent and with the other examples only.
        let raw_positive = (1..near.len()).map(|left_out| {
            let others = near.iter().enumerate().filter(|(n, _)| *n != left_out);
            near[left_out].nearest(others.map(|(_, other)| other))
        });
        let raw_positive = raw_positive.collect::<Result<Vec<f64>, _>>()?;
        let raw_negative = negative.iter().map(|text| text.nearest(&near));
        let raw_negative = raw_negative.collect::<Result<Vec<f64>, _>>()?;
        let scale = Scale::between(&raw_positive, &raw_negative, threshold);
        let scaled = |raw: &[f64]| -> Vec<f64> {
            raw.iter()
                .map(|raw| scale.map_or(*raw, |scale| scale.apply(*raw)))
                .collect()
        };
        check(&scaled(&raw_positive), &scaled(&raw_negative), threshold)?;
        Ok(Self { near, scale })
    }

    pub(crate) fn score(&self, text: &Embedding) -> Result<f64, SemanticFailure> {
        let raw = text.nearest(&self.near)?;
        Ok(self.scale.map_or(raw, |scale| scale.apply(raw)))
    }
}

impl Scale {
    /// None when there are too few examples, or when no line separates them.
    fn between(positive: &[f64], negative: &[f64], threshold: f64) -> Option<Self> {
        if positive.len() < ENOUGH_TO_SCALE || negative.len() < ENOUGH_TO_SCALE {
            return None;
        }
        let worst = positive.iter().copied().fold(1.0, f64::min);
        let best = negative.iter().copied().fold(0.0, f64::max);
        (best < worst).then(|| Self {
            middle: best.midpoint(worst),
            threshold,
        })
    }

    fn apply(self, raw: f64) -> f64 {
        // `middle` lies between two different numbers from 0 to 1, so neither divisor is 0.
        let Self { middle, threshold } = self;
        let scaled = if raw < middle {
            threshold * raw / middle
        } else {
            threshold + (1.0 - threshold) * (raw - middle) / (1.0 - middle)
        };
        scaled.clamp(0.0, 1.0)
    }
}

/// Checks the scores of examples against the threshold.
pub(crate) fn check(
    positive: &[f64],
    negative: &[f64],
    threshold: f64,
) -> Result<(), SemanticFailure> {
    let number = |(index, score): (usize, &f64)| (index + 1, *score);
    let low = positive
        .iter()
        .enumerate()
        .map(number)
        .filter(|(_, score)| *score < threshold)
        .map(|(n, score)| format!("positive example {n} scores {score:.2}"));
    let high = negative
        .iter()
        .enumerate()
        .map(number)
        .filter(|(_, score)| *score >= threshold)
        .map(|(n, score)| format!("negative example {n} scores {score:.2}"));
    let wrong: Vec<String> = low.chain(high).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let mut reason = wrong[..wrong.len().min(MAX_NAMED)].join(", ");
    if let Some(more @ 1..) = wrong.len().checked_sub(MAX_NAMED) {
        reason.push_str(&format!(", and {more} more"));
    }
    Err(SemanticFailure::Calibration {
        reason: format!("{reason}, with a threshold of {threshold}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(degrees: &[f64]) -> Vec<Embedding> {
        degrees.iter().copied().map(Embedding::at).collect()
    }

    fn calibrate(positive: &[f64], negative: &[f64]) -> Result<References, SemanticFailure> {
        References::calibrate(Embedding::at(0.0), at(positive), &at(negative), 0.7)
    }

    #[test]
    fn few_examples_are_checked_against_the_plain_cosine() {
        assert!(calibrate(&[], &[]).is_ok());
        assert!(calibrate(&[40.0], &[100.0]).is_ok());
        // An example does not vouch for itself.
        assert!(calibrate(&[60.0], &[]).is_err());
        assert!(calibrate(&[], &[40.0]).is_err());
    }

    #[test]
    fn enough_examples_move_the_threshold_between_them() {
        let references = calibrate(&[50.0, 52.0], &[110.0, 120.0]).unwrap();
        let score = |degrees| references.score(&Embedding::at(degrees)).unwrap();
        // Close to the positive ones, close to the negative ones, and at the ends.
        assert!(score(45.0) >= 0.7 && score(105.0) < 0.7);
        assert!(score(0.0) > 0.999 && score(51.0) > 0.99 && score(180.0) < 0.001);
        // Nearer is never less.
        let scores: Vec<f64> = (52..180).map(|d| score(f64::from(d))).collect();
        assert!(scores.is_sorted_by(|near, far| near >= far));
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        let error = calibrate(&[80.0, 30.0], &[10.0, 20.0]).unwrap_err();
        let words = error.to_string();
        assert!(words.contains("positive example 1 scores 0.64"), "{words}");
        assert!(words.contains("negative example 1 scores 0.98"), "{words}");
        // The same text as a positive and a negative example.
        assert!(calibrate(&[10.0, 20.0], &[20.0, 90.0]).is_err());
    }

    #[test]
    fn extreme_thresholds_do_not_divide_by_zero() {
        for threshold in [0.0, 1.0] {
            let scale = Scale::between(&[1.0, 1.0], &[0.0, 0.0], threshold).unwrap();
            for raw in [0.0, 0.25, 0.5, 1.0] {
                assert!((0.0..=1.0).contains(&scale.apply(raw)), "{raw}");
            }
        }
        // Everything reaches zero, so no negative example can stay below it.
        assert!(check(&[], &[0.0], 0.0).is_err());
        assert!(check(&[1.0], &[0.99], 1.0).is_ok());
    }

    #[test]
    fn many_wrong_examples_are_counted() {
        let words = check(&[0.1; 9], &[], 0.7).unwrap_err().to_string();
        assert!(words.contains("and 6 more"), "{words}");
        let words = check(&[0.1; 3], &[], 0.7).unwrap_err().to_string();
        assert!(!words.contains("more"), "{words}");
    }
}
