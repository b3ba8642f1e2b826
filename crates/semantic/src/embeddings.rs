//! Embeddings: texts as vectors, and how near two of them are.

use serde::Deserialize;
use serde_json::json;

use crate::client::ModelClient;
use crate::failure::SemanticFailure;

/// How many texts go into one request.
const BATCH: usize = 32;

/// A direction: a vector of length one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Embedding(Vec<f32>);

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Vec<f64>,
}

/// The embeddings of texts, in their order.
pub(crate) fn embed(
    client: &ModelClient,
    texts: &[&str],
) -> Result<Vec<Embedding>, SemanticFailure> {
    let mut embeddings = Vec::with_capacity(texts.len());
    for batch in texts.chunks(BATCH) {
        let question = json!({
            "model": client.config().model,
            "input": batch,
            "encoding_format": "float",
        });
        let answer: EmbeddingsResponse = client.ask("/embeddings", &question)?;
        embeddings.extend(in_order(answer, batch.len())?);
    }
    Ok(embeddings)
}

fn in_order(
    answer: EmbeddingsResponse,
    expected: usize,
) -> Result<Vec<Embedding>, SemanticFailure> {
    let count = answer.data.len();
    if count != expected {
        return Err(SemanticFailure::bad_answer(format!(
            "{count} embeddings for {expected} texts"
        )));
    }
    let mut places: Vec<Option<Embedding>> = vec![None; expected];
    for (position, item) in answer.data.into_iter().enumerate() {
        let index = item.index.unwrap_or(position);
        match places.get_mut(index) {
            Some(place @ None) => *place = Some(Embedding::new(&item.embedding)?),
            _ => {
                return Err(SemanticFailure::bad_answer(format!(
                    "embedding {index} is there twice, or was not asked for"
                )));
            }
        }
    }
    // As many as asked for, none twice: every place is taken.
    Ok(places.into_iter().flatten().collect())
}

impl Embedding {
    fn new(numbers: &[f64]) -> Result<Self, SemanticFailure> {
        let length = numbers.iter().map(|n| n * n).sum::<f64>().sqrt();
        if !length.is_finite() || length == 0.0 {
            return Err(SemanticFailure::bad_answer(
                "an embedding without a direction",
            ));
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "endpoints compute in single precision or less"
        )]
        let unit = numbers.iter().map(|n| (n / length) as f32);
        Ok(Self(unit.collect()))
    }

    /// The cosine of the angle between two embeddings. Opposite meanings count as unrelated, so that
    /// it is from 0 to 1.
    pub(crate) fn nearness(&self, other: &Self) -> Result<f64, SemanticFailure> {
        if self.0.len() != other.0.len() {
            return Err(SemanticFailure::bad_answer(format!(
                "embeddings of {} and of {} numbers",
                self.0.len(),
                other.0.len()
            )));
        }
        let pairs = self.0.iter().zip(&other.0);
        let cosine: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        Ok(cosine.clamp(0.0, 1.0))
    }

    /// How near it is to the nearest of several.
    pub(crate) fn nearest<'e>(
        &self,
        others: impl IntoIterator<Item = &'e Self>,
    ) -> Result<f64, SemanticFailure> {
        others.into_iter().try_fold(0.0, |nearest: f64, other| {
            Ok(nearest.max(self.nearness(other)?))
        })
    }
}

#[cfg(test)]
impl Embedding {
    pub(crate) fn at(degrees: f64) -> Self {
        let (sin, cos) = degrees.to_radians().sin_cos();
        Self::new(&[cos, sin]).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearness_is_the_cosine_without_its_negative_half() {
        for (degrees, expected) in [(0.0, 1.0), (60.0, 0.5), (90.0, 0.0), (180.0, 0.0)] {
            let nearness = Embedding::at(0.0).nearness(&Embedding::at(degrees));
            assert!((nearness.unwrap() - expected).abs() < 1e-6, "{degrees}");
        }
        let far = [
            Embedding::at(80.0),
            Embedding::at(30.0),
            Embedding::at(60.0),
        ];
        let nearest = Embedding::at(0.0).nearest(&far).unwrap();
        assert!((nearest - 30f64.to_radians().cos()).abs() < 1e-6);
    }

    #[test]
    fn vectors_without_a_direction_are_errors() {
        for numbers in [&[][..], &[0.0, 0.0], &[f64::NAN, 1.0], &[1e300, 1e300]] {
            assert!(Embedding::new(numbers).is_err(), "{numbers:?}");
        }
        let three = Embedding::new(&[1.0, 0.0, 0.0]).unwrap();
        assert!(three.nearness(&Embedding::at(0.0)).is_err());
    }

    #[test]
    fn answers_are_put_in_order() {
        let item = |index, n: f64| EmbeddingItem {
            index,
            embedding: vec![n, 1.0],
        };
        let ordered = |data| in_order(EmbeddingsResponse { data }, 2);
        let expected = ordered(vec![item(Some(0), 1.0), item(Some(1), 2.0)]).unwrap();
        let shuffled = ordered(vec![item(Some(1), 2.0), item(Some(0), 1.0)]).unwrap();
        let unnumbered = ordered(vec![item(None, 1.0), item(None, 2.0)]).unwrap();
        assert_eq!((&shuffled, &unnumbered), (&expected, &expected));
        for data in [
            vec![],
            vec![item(Some(0), 1.0)],
            vec![item(Some(0), 1.0), item(Some(0), 1.0)],
            vec![item(Some(0), 1.0), item(Some(2), 1.0)],
        ] {
            assert!(ordered(data).is_err());
        }
    }
}
