//! The lines of a recording.

use std::time::Duration;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::super::{ModelError, ModelErrorKind, ModelEvent, ModelReply, ModelRequest};

/// The version of the format. A reader refuses others.
pub(super) const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordingHeader {
    pub(super) proofhouse_model_record: u32,
    /// The version of the program that wrote it.
    pub(super) written_by: String,
    pub(super) model: String,
    pub(super) simulation: bool,
    /// When the recorded task began, for a clock that tells the same times again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<String>,
}

/// Every other line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedExchange {
    pub(super) hash: String,
    pub(super) request: ModelRequest,
    pub(super) events: Vec<ModelEvent>,
    pub(super) outcome: RecordedEnd,
}

/// How an exchange ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedEnd {
    Reply(ModelReply),
    Error {
        kind: ModelErrorKind,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial: Option<Box<ModelReply>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
}

impl RecordedEnd {
    pub(super) fn from_result(result: &Result<ModelReply, ModelError>) -> Self {
        match result {
            Ok(reply) => Self::Reply(reply.clone()),
            Err(error) => Self::Error {
                kind: error.kind,
                message: error.message.clone(),
                partial: error.partial.clone(),
                retry_after_ms: error
                    .retry_after
                    .and_then(|wait| u64::try_from(wait.as_millis()).ok()),
            },
        }
    }

    pub(super) fn into_result(self) -> Result<ModelReply, ModelError> {
        match self {
            Self::Reply(reply) => Ok(reply),
            Self::Error {
                kind,
                message,
                partial,
                retry_after_ms,
            } => Err(ModelError {
                kind,
                message,
                partial,
                retry_after: retry_after_ms.map(Duration::from_millis),
            }),
        }
    }
}

/// What tells requests apart: SHA-256 over everything in them.
///
/// The order of keys counts in schemas and arguments, as it does for a model.
#[must_use]
pub fn request_hash(request: &ModelRequest) -> String {
    // Types of our own that hold strings, numbers and maps with string keys can always be written.
    let text = serde_json::to_vec(request).unwrap_or_default();
    let digest = ring::digest::digest(&ring::digest::SHA256, &text);
    format!("sha256:{}", HEXLOWER.encode(digest.as_ref()))
}
