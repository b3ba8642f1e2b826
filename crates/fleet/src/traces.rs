//! Traces in a directory or an object store: compressed, and named by the digest of what is in them.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use object_store::ObjectStoreExt as _;
use proofhouse_source::plain_error;

use crate::digest::{is_sha256, sha256};
use crate::trace_place::{OpenedPlace, TraceAccess, TracePlace, TracePlaceError, redacted};

/// Bytes of one trace. A longer one is lost, which its run says.
pub(crate) const MAX_TRACE: u64 = 256 << 20;

/// Letters of what a place says that are told.
const MAX_REASON: usize = 300;

/// Why a trace cannot be kept or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TraceStoreError {
    /// The place makes no sense.
    #[error("--traces {0}")]
    Place(#[from] TracePlaceError),
    /// A trace cannot be written.
    #[error("the trace cannot be kept: {0}")]
    Write(String),
    /// A trace cannot be read.
    #[error("trace {digest} cannot be read: {reason}")]
    Read {
        /// Its digest.
        digest: String,
        /// Why not.
        reason: String,
    },
    /// A trace is too long.
    #[error("the trace has {size} bytes, more than the {MAX_TRACE} that are kept")]
    TooLarge {
        /// How long it is.
        size: u64,
    },
}

impl TraceStoreError {
    /// Whether another place has to be named.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Place(_) => true,
            Self::Write(_) | Self::Read { .. } | Self::TooLarge { .. } => false,
        }
    }
}

/// Where traces are.
#[derive(Clone)]
pub struct TraceStore {
    opened: Arc<OpenedPlace>,
}

impl std::fmt::Debug for TraceStore {
    /// Without what the store itself would show, which may be credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let prefix = self.opened.prefix.as_ref();
        f.debug_tuple("TraceStore").field(&prefix).finish()
    }
}

impl TraceStore {
    /// Traces in this place: a directory, or a URL of an object store. Nothing is asked of it yet.
    ///
    /// # Errors
    ///
    /// Returns an error when it makes no sense, or the environment lacks what it needs.
    pub fn open(place: &str, access: &TraceAccess) -> Result<Self, TraceStoreError> {
        let place: TracePlace = place.parse()?;
        Ok(Self {
            opened: Arc::new(place.open(access)?),
        })
    }

    /// Keeps the trace in a file, and gives its digest.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be read or kept.
    pub async fn put_file(&self, path: &Path) -> Result<String, TraceStoreError> {
        let path = path.to_owned();
        let (digest, packed) = tokio::task::spawn_blocking(move || pack(&path))
            .await
            .map_err(|error| TraceStoreError::Write(error.to_string()))??;
        let key = self.key(&digest);
        let put = self.opened.store.put(&key, packed.into()).await;
        put.map_err(|error| TraceStoreError::Write(self.told(&error)))?;
        Ok(digest)
    }

    /// A trace, as it was recorded.
    ///
    /// # Errors
    ///
    /// Returns an error when it is not there, or is another than its digest says.
    pub async fn get(&self, digest: &str) -> Result<Vec<u8>, TraceStoreError> {
        let failed = |reason: String| TraceStoreError::Read {
            digest: digest.to_owned(),
            reason,
        };
        if !is_sha256(digest) {
            return Err(failed("this is no digest".to_owned()));
        }
        let found = self.opened.store.get(&self.key(digest)).await;
        let found = found.map_err(|error| failed(self.told(&error)))?;
        let size = found.meta.size;
        if size > MAX_TRACE {
            return Err(TraceStoreError::TooLarge { size });
        }
        let packed = found.bytes().await;
        let packed = packed.map_err(|error| failed(self.told(&error)))?;
        let digest = digest.to_owned();
        tokio::task::spawn_blocking(move || unpack(&digest, packed.as_ref()))
            .await
            .map_err(|error| failed(error.to_string()))?
    }

    /// Removes a trace. One that is not there is removed already.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be removed.
    pub async fn remove(&self, digest: &str) -> Result<(), TraceStoreError> {
        match self.opened.store.delete(&self.key(digest)).await {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(TraceStoreError::Write(self.told(&error))),
        }
    }

    /// Where a trace is.
    fn key(&self, digest: &str) -> object_store::path::Path {
        let start: String = digest.chars().take(2).collect();
        let below = [start, format!("{digest}.jsonl.gz")];
        let prefix = self.opened.prefix.parts();
        prefix
            .chain(below.iter().map(|part| part.as_str().into()))
            .collect()
    }

    /// What the place says, in a line without credentials.
    fn told(&self, error: &object_store::Error) -> String {
        let text = error.to_string();
        let reason = match (element(&text, "Code"), element(&text, "Message")) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            _ if matches!(error, object_store::Error::NotFound { .. }) => {
                "it is not there".to_owned()
            }
            _ => root_cause(error),
        };
        let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let line: String = line.chars().take(MAX_REASON).collect();
        redacted(&plain_error(&line), &self.opened.secrets)
    }
}

/// What an element of an answer in XML says.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0)
}

/// The innermost reason, which is the one that tells something.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The digest of a file, and its text, compressed.
fn pack(path: &Path) -> Result<(String, Vec<u8>), TraceStoreError> {
    let failed = |error: std::io::Error| TraceStoreError::Write(error.to_string());
    let file = std::fs::File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size > MAX_TRACE {
        return Err(TraceStoreError::TooLarge { size });
    }
    let mut text = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "capped by take")]
    file.take(MAX_TRACE)
        .read_to_end(&mut text)
        .map_err(failed)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&text).map_err(failed)?;
    Ok((sha256(&text), encoder.finish().map_err(failed)?))
}

/// The text of a compressed trace, which is the one of this digest.
fn unpack(digest: &str, packed: impl Read) -> Result<Vec<u8>, TraceStoreError> {
    let failed = |reason: String| TraceStoreError::Read {
        digest: digest.to_owned(),
        reason,
    };
    let mut text = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "capped by take")]
    let read = GzDecoder::new(packed)
        .take(MAX_TRACE + 1)
        .read_to_end(&mut text);
    read.map_err(|error| failed(error.to_string()))?;
    let size = text.len() as u64;
    if size > MAX_TRACE {
        return Err(TraceStoreError::TooLarge { size });
    }
    let is = sha256(&text);
    if is == digest {
        Ok(text)
    } else {
        Err(failed(format!("its digest is {is}")))
    }
}
