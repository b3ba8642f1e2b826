//! Traces in a directory: compressed, and named by the digest of what is in them.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proofhouse_subjects::{EnvironmentLookup, without_credentials};

use crate::digest::{is_sha256, sha256};

/// Bytes of one trace. A longer one is lost, which its run says.
const MAX_TRACE: u64 = 256 << 20;

/// Why a trace cannot be kept or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TraceStoreError {
    /// The place makes no sense.
    #[error("--traces {place}: {reason}")]
    Place {
        /// The place.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
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
            Self::Place { .. } => true,
            Self::Write(_) | Self::Read { .. } | Self::TooLarge { .. } => false,
        }
    }
}

/// Where traces are.
#[derive(Debug, Clone)]
pub struct TraceStore {
    directory: Arc<PathBuf>,
}

impl TraceStore {
    /// Traces in this place.
    ///
    /// # Errors
    ///
    /// Returns an error when it makes no sense.
    pub fn open(place: &str, _environment: &EnvironmentLookup) -> Result<Self, TraceStoreError> {
        if place.contains("://") {
            return Err(TraceStoreError::Place {
                place: without_credentials(place),
                reason: "name a directory".to_owned(),
            });
        }
        let directory = PathBuf::from(place);
        Ok(Self {
            directory: Arc::new(directory),
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
        let failed = |error: std::io::Error| TraceStoreError::Write(error.to_string());
        let place = self.directory.join(key(&digest));
        if let Some(parent) = place.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(place, packed).map_err(failed)?;
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
        let file = std::fs::File::open(self.directory.join(key(digest)));
        let file = file.map_err(|error| failed(error.to_string()))?;
        unpack(digest, file)
    }

    /// Removes a trace. One that is not there is removed already.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be removed.
    pub async fn remove(&self, digest: &str) -> Result<(), TraceStoreError> {
        let removed = std::fs::remove_file(self.directory.join(key(digest)));
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(TraceStoreError::Write(error.to_string()))
            }
            _ => Ok(()),
        }
    }
}

/// Where a trace is below its place.
fn key(digest: &str) -> String {
    let start: String = digest.chars().take(2).collect();
    format!("{start}/{digest}.jsonl.gz")
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
