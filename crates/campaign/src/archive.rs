//! The documents of a campaign, kept beside its result as they were run, so that its runs can be judged again
//! when the files they came from have changed or are gone.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use proofhouse_oatf::{load, serialize};
use serde::{Deserialize, Serialize};

use crate::document::{CampaignDocument, DocumentError, TwinError, twin_name};
use crate::run::file_name;
use crate::store::sweep;

/// The directory of the kept documents in that of a campaign.
const DIRECTORY: &str = "documents";

/// How the names of documents begin that are not written to their end.
const UNFINISHED: &str = ".document";

/// Why a document could not be kept.
#[derive(Debug)]
pub(crate) struct NotKept {
    path: PathBuf,
    source: std::io::Error,
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot keep: {}", self.path.display(), self.source)
    }
}

/// Writes a document and its twin, in a directory of their own. Returns the document's path, relative to the
/// campaign's directory.
pub(crate) fn keep(directory: &Path, document: &CampaignDocument) -> Result<String, NotKept> {
    let folder = format!("{DIRECTORY}/{}", file_name(&document.info.id, ""));
    let place = directory.join(&folder);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| NotKept { path, source }
    };
    std::fs::create_dir_all(&place).map_err(failed(&place))?;
    sweep(&place, UNFINISHED);
    let kept = KeptDocument::of(document);
    let own = match kept.twin.as_ref().map(|(name, _)| name.as_str()) {
        Some("document.yaml") => "attack.yaml",
        _ => "document.yaml",
    };
    let twin = kept.twin.as_ref();
    let twin = twin.map(|(name, text)| (name.as_str(), text.as_str()));
    let files = std::iter::once((own, kept.attack.as_str())).chain(twin);
    for (name, text) in files {
        let path = place.join(name);
        write(&place, &path, text).map_err(failed(&path))?;
    }
    Ok(format!("{folder}/{own}"))
}

/// A document as it was run, as texts from which it can be made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptDocument {
    /// The file that it came from.
    pub path: String,
    /// Whether it is one of the library that the program carries.
    pub shipped: bool,
    /// What the user says, where the document does not define it.
    pub prompt: Option<String>,
    /// The attack.
    pub attack: String,
    /// Its twin, with the name by which the attack knows it.
    pub twin: Option<(String, String)>,
}

/// Why a kept document cannot be made again.
#[derive(Debug, thiserror::Error)]
pub enum KeptDocumentError {
    /// A text is no document.
    #[error("{path}: the kept text is no document: {reason}")]
    Text {
        /// The file that it came from.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It cannot be part of a campaign.
    #[error("{path}: {error}")]
    Document {
        /// The file that it came from.
        path: String,
        /// Why not.
        error: DocumentError,
    },
}

impl KeptDocument {
    /// The texts of a document.
    #[must_use]
    pub fn of(document: &CampaignDocument) -> Self {
        let name = twin_name(&document.attack.document);
        let twin = name.zip(document.twin.as_ref()).map(|(name, twin)| {
            // It is judged by the indicators of the attack, which would not be valid under its own id.
            let mut twin = twin.document.clone();
            twin.attack.indicators = None;
            twin.attack.correlation = None;
            (name, serialize(&twin))
        });
        Self {
            path: document.info.path.clone(),
            shipped: document.info.shipped,
            prompt: document.info.prompt.clone(),
            attack: serialize(&document.attack.document),
            twin,
        }
    }

    /// The document that was run.
    ///
    /// # Errors
    ///
    /// Returns an error when this program cannot read the texts.
    pub fn open(&self) -> Result<CampaignDocument, KeptDocumentError> {
        let read = |text: &str| match load(text) {
            Ok(loaded) => Ok(loaded.document),
            Err(errors) => Err(KeptDocumentError::Text {
                path: self.path.clone(),
                reason: errors.first().map(ToString::to_string).unwrap_or_default(),
            }),
        };
        let attack = read(&self.attack)?;
        let twin = self.twin.as_ref().map(|(_, text)| read(text)).transpose()?;
        let prompt = self.prompt.as_deref();
        let made = CampaignDocument::new(&self.path, attack, prompt, |_| {
            twin.ok_or(TwinError::NoFile)
        });
        let mut made = made.map_err(|error| KeptDocumentError::Document {
            path: self.path.clone(),
            error,
        })?;
        made.info.shipped = self.shipped;
        Ok(made)
    }
}

/// Writes a file in one step.
fn write(directory: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(id: &str, ours: &str) -> String {
        format!(
            r#"
oatf: "0.1"
attack:
  id: {id}
  x-proofhouse: {ours}
  execution: {{mode: mcp_server, state: {{tools: [{{name: a, description: "d", inputSchema: {{type: object}}}}]}}}}
  indicators: [{{surface: tools/call, target: arguments, pattern: {{contains: x}}}}]
"#
        )
    }

    #[test]
    fn what_is_kept_is_what_was_run() {
        for twin_file in ["a.twin.yaml", "document.yaml"] {
            let attack = load(&text("K-001", &format!("{{twin: {twin_file}}}"))).unwrap();
            let twin = load(&text("K-002", "{success: {tool: a}}"))
                .unwrap()
                .document;
            let made =
                CampaignDocument::new("k.yaml", attack.document, Some("Hello?"), |_| Ok(twin));
            let made = made.unwrap();
            let directory = tempfile::tempdir().unwrap();
            let kept = directory
                .path()
                .join(keep(directory.path(), &made).unwrap());
            #[expect(clippy::disallowed_methods, reason = "a file of this test")]
            let read = |path: &Path| {
                load(&std::fs::read_to_string(path).unwrap())
                    .unwrap()
                    .document
            };
            let prompt = made.info.prompt.as_deref();
            let again = CampaignDocument::new("elsewhere.yaml", read(&kept), prompt, |name| {
                Ok(read(&kept.with_file_name(name)))
            });
            let again = again.unwrap();
            assert_eq!(again.info.digest, made.info.digest);
            assert_eq!(again.attack.prompts, made.attack.prompts);
            assert!(again.twin.is_some());
            let again = KeptDocument::of(&made).open().unwrap();
            // Places are those of the text that is kept.
            let without_lines = |document: &CampaignDocument| {
                let mut info = document.info.clone();
                for indicator in &mut info.indicators {
                    indicator.line = None;
                }
                info
            };
            assert_eq!(without_lines(&again), without_lines(&made));
            assert_eq!(again.attack.prompts, made.attack.prompts);
            assert_eq!(again.control_problem, made.control_problem);
        }
    }
}
