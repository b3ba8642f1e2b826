//! Why a description cannot be used: while it is read, where its references lead, and what an operation takes.

use super::description::{MAX_OPERATIONS, MAX_PATH, MAX_REF_STEPS};
use super::input::MAX_PARAMETERS;
use super::load::MAX_BYTES;
use super::tree::TooManyValues;

/// Why a text is not a description of an API.
#[derive(Debug, thiserror::Error)]
pub(super) enum DescriptionError {
    #[error("it has more than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("it is not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("it is not text")]
    NotText,
    #[error("it is not YAML")]
    NotYaml,
    #[error("line {line}: {message}")]
    Yaml { line: usize, message: String },
    #[error(transparent)]
    TooManyValues(#[from] TooManyValues),
    #[error("it is empty")]
    Empty,
    #[error("it says `openapi: {0}`; 3.0 and 3.1 can be used")]
    UnknownVersion(String),
    #[error("it is written in Swagger 2.0; OpenAPI 3.0 and 3.1 can be used")]
    Swagger2,
    #[error("it has no `openapi: 3.0.x` or `3.1.x`")]
    NoVersion,
    #[error("it has more than {MAX_OPERATIONS} operations")]
    TooManyOperations,
}

/// Why a `$ref` leads to nothing that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReferenceError {
    #[error("a `$ref` has more than {MAX_PATH} bytes")]
    TooLong,
    #[error("more than {MAX_REF_STEPS} references lead to one another")]
    TooManySteps,
    #[error(
        "`$ref: {0}` leads out of the description, which is not supported; \
         bundle the description into one document"
    )]
    LeadsOut(String),
    #[error("`$ref: {0}` leads nowhere")]
    LeadsNowhere(String),
}

/// Why the operations of a path are left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathError {
    #[error("a path has more than {MAX_PATH} bytes")]
    TooLong,
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

/// Why an operation cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum OperationError {
    #[error("`{operation}` has more than {MAX_PARAMETERS} parameters")]
    TooManyParameters { operation: String },
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}
