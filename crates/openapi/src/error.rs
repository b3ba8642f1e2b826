//! Why a description cannot be used: while it is read, where its references lead, and what an operation takes.

use crate::bundle::MAX_DOCUMENTS;
use crate::description::{MAX_OPERATIONS, MAX_PATH, MAX_REF_STEPS};
use crate::input::MAX_PARAMETERS;
use crate::read::MAX_BYTES;
use crate::tree::TooManyValues;
use proofhouse_manifest::interpolate::ResolveError;

/// Why a text is not a description of an API.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// Its text is too large.
    #[error("it has more than {MAX_BYTES} bytes")]
    TooLarge,
    /// It begins as JSON does and is none.
    #[error("it is not JSON: {0}")]
    NotJson(serde_json::Error),
    /// It is not UTF-8.
    #[error("it is not text")]
    NotText,
    /// It is not YAML.
    #[error("it is not YAML")]
    NotYaml,
    /// It is not the YAML that can be read.
    #[error("line {line}: {message}")]
    Yaml {
        /// Where.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// It has too many values.
    #[error(transparent)]
    TooManyValues(#[from] TooManyValues),
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It is of another version.
    #[error("it says `openapi: {0}`; 3.0, 3.1 and 3.2 can be used")]
    UnknownVersion(String),
    /// It is of the version before OpenAPI.
    #[error("it is written in Swagger 2.0; OpenAPI 3.0, 3.1 and 3.2 can be used")]
    Swagger2,
    /// It does not say what it is.
    #[error("it has no `openapi: 3.0.x`, `3.1.x` or `3.2.x`")]
    NoVersion,
    /// It is in too many documents.
    #[error("it has more than {MAX_DOCUMENTS} documents")]
    TooManyDocuments,
    /// It has too many operations.
    #[error("it has more than {MAX_OPERATIONS} operations")]
    TooManyOperations,
}

/// Why a `$ref` leads to nothing that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It is longer than any that is meant.
    #[error("a `$ref` has more than {MAX_PATH} bytes")]
    TooLong,
    /// References lead to references for too long.
    #[error("more than {MAX_REF_STEPS} references lead to one another")]
    TooManySteps,
    /// It names another document, and there is none.
    #[error("`$ref: {0}` leads out of the description to something that cannot be fetched")]
    LeadsOut(String),
    /// What it names is not there.
    #[error("`$ref: {0}` leads nowhere")]
    LeadsNowhere(String),
}

/// Why the operations of a path are left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It needs what OpenAPI 3.2 adds.
    #[error("one needs what OpenAPI 3.2 adds, such as other methods")]
    New,
    /// It is longer than any that is meant.
    #[error("a path has more than {MAX_PATH} bytes")]
    TooLong,
    /// A reference of it cannot be followed.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

/// Why an operation cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// It has too many parameters.
    #[error("`{operation}` has more than {MAX_PARAMETERS} parameters")]
    TooManyParameters {
        /// Its name.
        operation: String,
    },
    /// A reference of it cannot be followed.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

/// Why a call of an operation makes no request.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The operator has to configure something.
    #[error("{0}")]
    Setting(String),
    /// The model gave a value that may not stand where it has to.
    #[error("{0}")]
    Arguments(String),
    /// The request would be too large.
    #[error("{0}")]
    TooLarge(String),
    /// The description cannot be used for it.
    #[error("{0}")]
    Manifest(String),
    /// A reference of the manifest has no value.
    #[error(transparent)]
    Template(#[from] ResolveError),
}
