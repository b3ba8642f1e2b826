//! The evaluator: a method, a client, and what was learnt before.

use std::sync::Arc;

use proofhouse_oatf::{
    DEFAULT_SEMANTIC_THRESHOLD, EvaluationError, SemanticEvaluator, SemanticExamples,
    SemanticIntentClass,
};

use crate::cache::ScoreCache;
use crate::calibration::{self, MAX_EXAMPLES, References};
use crate::client::ModelClient;
use crate::config::{Config, ConfigError, Method};
use crate::embeddings::{Embedding, embed};
use crate::failure::SemanticFailure;
use crate::judge::{Fence, judge};

/// How many indicators stay calibrated; the least recently used are calibrated again.
const MAX_INDICATORS: usize = 1024;

/// Scores texts by meaning over an OpenAI-compatible endpoint.
///
/// One evaluator is for one scan: its limit of requests counts from when it was made. Threads may
/// share it.
#[derive(Debug)]
pub struct OpenAiSemantic {
    client: ModelClient,
    engine: EvaluatorKind,
}

#[derive(Debug)]
enum EvaluatorKind {
    Embeddings {
        texts: ScoreCache<Arc<Embedding>>,
        indicators: ScoreCache<Calibrated<Arc<References>>>,
    },
    Judge {
        fence: Fence,
        texts: ScoreCache<f64>,
        indicators: ScoreCache<Calibrated<()>>,
    },
}

/// That an indicator does not fit the model is remembered as well as that it does.
type Calibrated<T> = Result<T, SemanticFailure>;

/// What an evaluator did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvaluatorUsage {
    /// Requests made, retries included.
    pub requests: u64,
    /// Texts whose answer was remembered.
    pub cache_hits: u64,
}

/// What an indicator asks for.
#[derive(Clone, Copy)]
struct ScoreRequest<'i> {
    intent: &'i str,
    class: Option<SemanticIntentClass>,
    threshold: f64,
    positive: &'i [String],
    negative: &'i [String],
}

impl OpenAiSemantic {
    /// An evaluator; nothing is asked yet.
    ///
    /// ```
    /// use proofhouse_semantic::{Config, ConfigError, Method, OpenAiSemantic, Secret};
    /// let mut config = Config::new("http://models.example/v1", "a-model", Method::Embeddings);
    /// assert!(OpenAiSemantic::new(config.clone()).is_ok());
    /// config.api_key = Some(Secret::new("sk-1"));
    /// let error = OpenAiSemantic::new(config).unwrap_err();
    /// assert!(matches!(error, ConfigError::PlainKey { .. }));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the configuration.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let entries = config.cache_entries;
        let engine = match config.method {
            Method::Embeddings => EvaluatorKind::Embeddings {
                texts: ScoreCache::new(entries),
                indicators: ScoreCache::new(MAX_INDICATORS),
            },
            Method::Judge => EvaluatorKind::Judge {
                fence: Fence::new(),
                texts: ScoreCache::new(entries),
                indicators: ScoreCache::new(MAX_INDICATORS),
            },
        };
        Ok(Self {
            client: ModelClient::new(config)?,
            engine,
        })
    }

    /// What was done so far.
    #[must_use]
    pub fn usage(&self) -> EvaluatorUsage {
        EvaluatorUsage {
            requests: self.client.requests(),
            cache_hits: match &self.engine {
                EvaluatorKind::Embeddings { texts, .. } => texts.hits(),
                EvaluatorKind::Judge { texts, .. } => texts.hits(),
            },
        }
    }

    fn score(&self, text: &str, wanted: ScoreRequest<'_>) -> Result<f64, SemanticFailure> {
        match &self.engine {
            EvaluatorKind::Embeddings { texts, indicators } => {
                let references = indicators.get_or_ask(&wanted.key(), || {
                    remember(self.references(wanted).map(Arc::new))
                })??;
                if text.trim().is_empty() {
                    return Ok(0.0);
                }
                self.check_size(text)?;
                let embedding = texts.get_or_ask(&text, || {
                    let mut embeddings = embed(&self.client, &[text])?;
                    let embedding = embeddings.pop().map(Arc::new);
                    embedding.ok_or_else(|| SemanticFailure::bad_answer("no embedding"))
                })?;
                references.score(&embedding)
            }
            EvaluatorKind::Judge {
                fence,
                texts,
                indicators,
            } => {
                let ask = |text: &str| {
                    if text.trim().is_empty() {
                        return Ok(0.0);
                    }
                    self.check_size(text)?;
                    texts.get_or_ask(&(wanted.intent, wanted.class, text), || {
                        judge(&self.client, fence, text, wanted.intent, wanted.class)
                    })
                };
                indicators.get_or_ask(&wanted.key(), || {
                    let scores = |examples: &[String]| -> Result<Vec<f64>, SemanticFailure> {
                        examples.iter().map(|example| ask(example)).collect()
                    };
                    remember((|| {
                        let positive = scores(wanted.positive)?;
                        let negative = scores(wanted.negative)?;
                        calibration::check(&positive, &negative, wanted.threshold)
                    })())
                })??;
                ask(text)
            }
        }
    }

    fn references(&self, wanted: ScoreRequest<'_>) -> Result<References, SemanticFailure> {
        let mut texts = vec![wanted.intent];
        let examples = wanted.positive.iter().chain(wanted.negative);
        texts.extend(examples.map(String::as_str));
        for text in &texts {
            self.check_size(text)?;
            if text.trim().is_empty() {
                return Err(SemanticFailure::Calibration {
                    reason: "its intent or one of its examples is empty".to_owned(),
                });
            }
        }
        let mut embeddings = embed(&self.client, &texts)?;
        let negative = embeddings.split_off(1 + wanted.positive.len());
        let positive = embeddings.split_off(1);
        let intent = embeddings
            .pop()
            .ok_or_else(|| SemanticFailure::bad_answer("no embedding"))?;
        References::calibrate(intent, positive, &negative, wanted.threshold)
    }

    fn check_size(&self, text: &str) -> Result<(), SemanticFailure> {
        let limit = self.client.config().max_text_bytes;
        if text.len() > limit {
            return Err(SemanticFailure::TextTooLong {
                bytes: text.len(),
                limit,
            });
        }
        Ok(())
    }
}

/// As many examples as are looked at.
fn first(examples: Option<&[String]>) -> &[String] {
    let examples = examples.unwrap_or_default();
    &examples[..examples.len().min(MAX_EXAMPLES)]
}

/// A failed calibration is an answer, to be remembered. Any other failure is not.
fn remember<T>(calibrated: Result<T, SemanticFailure>) -> Result<Calibrated<T>, SemanticFailure> {
    match calibrated {
        Ok(fits) => Ok(Ok(fits)),
        Err(failure @ SemanticFailure::Calibration { .. }) => Ok(Err(failure)),
        Err(failure) => Err(failure),
    }
}

impl ScoreRequest<'_> {
    /// What makes two indicators the same to an evaluator.
    fn key(&self) -> (&str, Option<SemanticIntentClass>, u64, &[String], &[String]) {
        (
            self.intent,
            self.class,
            self.threshold.to_bits(),
            self.positive,
            self.negative,
        )
    }
}

impl SemanticEvaluator for OpenAiSemantic {
    fn evaluate(
        &self,
        text: &str,
        intent: &str,
        intent_class: Option<SemanticIntentClass>,
        threshold: Option<f64>,
        examples: Option<&SemanticExamples>,
    ) -> Result<f64, EvaluationError> {
        let wanted = ScoreRequest {
            intent,
            class: intent_class,
            threshold: threshold.unwrap_or(DEFAULT_SEMANTIC_THRESHOLD),
            positive: first(examples.and_then(|examples| examples.positive.as_deref())),
            negative: first(examples.and_then(|examples| examples.negative.as_deref())),
        };
        Ok(self.score(text, wanted)?)
    }
}
