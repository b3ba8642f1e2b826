//! Asks a model over an OpenAI-compatible endpoint: for scores of texts by meaning, for semantic
//! indicators, and for content of messages, for `synthesize` blocks.
//!
//! The format leaves semantic evaluation to a model that the user brings. [`OpenAiSemantic`] is a
//! [`SemanticEvaluator`](proofhouse_oatf::SemanticEvaluator) for those whose model is behind an
//! endpoint that speaks the API of OpenAI, as most servers of models do. Two methods are there: by
//! [embeddings](Method::Embeddings), or by asking a [judge](Method::Judge). Nothing is asked unless
//! a program builds one: texts leave the machine, and somebody has to want that.
//!
//! Everything is bounded: sizes, times, retries, remembered answers and the number of requests. An
//! answer that cannot be understood is an error, never a score. Before an indicator is used, its own
//! examples are scored; when they do not come out as the document says, the indicator gives an error
//! instead of a verdict nobody should trust.
//!
//! ```
//! use std::sync::Arc;
//! use proofhouse_detect::Scanner;
//! use proofhouse_semantic::{Config, Method, OpenAiSemantic};
//!
//! let config = Config::new("http://127.0.0.1:8080/v1", "a-model", Method::Judge);
//! let evaluator = OpenAiSemantic::new(config)?;
//! let builder = Scanner::builder().semantic(Arc::new(evaluator));
//! # drop(builder);
//! # Ok::<(), proofhouse_semantic::ConfigError>(())
//! ```

mod cache;
mod calibration;
mod chat;
mod client;
mod config;
mod embeddings;
mod evaluator;
mod failure;
mod generation;
mod judge;
mod secret;

pub use config::{Config, ConfigError, Method};
pub use evaluator::{EvaluatorUsage, OpenAiSemantic};
pub use failure::SemanticFailure;
pub use generation::OpenAiGeneration;
pub use secret::Secret;
