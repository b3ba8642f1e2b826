//! The documents of a campaign: files that are named, or the library that the binary carries.

use std::path::{Path, PathBuf};

use proofhouse_oatf::{DiagnosticSeverity, Document, ReadLimits, check, load_with};
use proofhouse_subjects::Notice;
use proofhouse_wire::files::{CollectError, DOCUMENTS, FileInput, collect};

use crate::cases::is_cases_file;
use crate::config;
use crate::document::{
    CampaignDocument, DocumentError, TwinError, UnreadableDocument, is_twin_file,
};
use crate::library::{self, Scenario};
use crate::matchable;

/// Why the documents of a campaign cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The files cannot be found.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// Documents cannot be used; what is wrong with them was told before.
    #[error("{unusable} of {documents} document{} cannot be used; nothing was run", if *.documents == 1 { "" } else { "s" })]
    Unusable {
        /// How many.
        unusable: usize,
        /// Of how many.
        documents: usize,
    },
}

impl LoadError {
    /// Whether other files have to be named, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Collect(_) => true,
            Self::Unusable { .. } => false,
        }
    }
}

/// The documents behind paths, or all of the library; twins come with the documents they belong to. A path where nothing
/// is may also be the id or the file name of an attack of the library.
/// All that is wrong is told, and one document that cannot be used is an error: a campaign that silently leaves
/// one out would say too much.
///
/// # Errors
///
/// Returns an error when files are not there or documents cannot be used.
pub fn load(
    paths: &[PathBuf],
    limits: &ReadLimits,
    prompt: Option<&str>,
    unknown: UnknownNames,
    notify: &dyn Fn(Notice),
) -> Result<Vec<CampaignDocument>, LoadError> {
    let loaded: Vec<Option<CampaignDocument>> = if paths.is_empty() {
        let files = library::all().iter();
        files
            .filter(|(path, _)| !is_twin_file(Path::new(path)))
            .map(|(path, text)| shipped(path, text, limits, prompt, notify))
            .collect()
    } else {
        let mut named: Vec<Scenario> = Vec::new();
        let mut files = Vec::new();
        for path in paths {
            let name = path.to_str().filter(|_| !path.exists());
            match name.and_then(library::named) {
                Some(scenario) if named.iter().all(|other| other.path != scenario.path) => {
                    named.push(scenario);
                }
                Some(_) => {}
                None => files.push(path.clone()),
            }
        }
        let mut inputs = collect(&files, DOCUMENTS)?;
        let mut seen = std::collections::HashSet::new();
        inputs.retain(|input| {
            let is_other =
                matches!(input, FileInput::File(path) if is_twin_file(path) || is_cases_file(path) || is_config(path));
            !is_other && seen.insert(input.name())
        });
        let inputs = inputs.iter();
        let inputs = inputs.map(|input| load_one(input, limits, prompt, unknown, notify));
        let named = named.iter();
        named
            .map(|it| shipped(it.path, it.text, limits, prompt, notify))
            .chain(inputs)
            .collect()
    };
    let total = loaded.len();
    let documents: Vec<CampaignDocument> = loaded.into_iter().flatten().collect();
    match total - documents.len() {
        0 => Ok(documents),
        unusable => Err(LoadError::Unusable {
            unusable,
            documents: total,
        }),
    }
}

/// The configuration of a project may stand among its documents.
fn is_config(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == config::FILE)
}

/// What to do with names that the bound protocols do not have, so that an indicator can never match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownNames {
    /// Documents with them are refused.
    Refused,
    /// They are of those who extend a protocol.
    Allowed,
}

/// One document, as it is written; tells all that is wrong with one that cannot be used.
#[must_use]
pub fn load_document(
    input: &FileInput,
    limits: &ReadLimits,
    unknown: UnknownNames,
    notify: &dyn Fn(Notice),
) -> Option<Document> {
    let name = input.name();
    let text = match input.read(limits.max_bytes) {
        Ok(text) => text,
        Err(error) => {
            notify(Notice::Unreadable { name, error });
            return None;
        }
    };
    let findings = match load_with(&text, limits) {
        Ok(loaded) => {
            let refusals = match unknown {
                UnknownNames::Allowed => Vec::new(),
                UnknownNames::Refused => matchable::refusals(&loaded.document),
            };
            if refusals.is_empty() {
                return Some(loaded.document);
            }
            refusals
        }
        Err(_) => {
            let mut findings = check(&text, limits);
            findings.retain(|finding| finding.severity == DiagnosticSeverity::Error);
            findings
        }
    };
    notify(Notice::Findings {
        name,
        text,
        findings,
    });
    None
}

/// A document that was loaded, with its control, the file beside it that it names.
///
/// # Errors
///
/// Returns an error when it cannot be run, or its control cannot be used.
pub fn with_control(
    input: &FileInput,
    document: Document,
    limits: &ReadLimits,
    notify: &dyn Fn(Notice),
) -> Result<CampaignDocument, DocumentError> {
    CampaignDocument::new(&input.name(), document, None, |file| {
        beside(input, file, limits, notify)
    })
}

/// The file of this name beside a document.
fn beside(
    input: &FileInput,
    file: &str,
    limits: &ReadLimits,
    notify: &dyn Fn(Notice),
) -> Result<Document, TwinError> {
    let FileInput::File(path) = input else {
        return Err(TwinError::FromStdin);
    };
    let path = path.with_file_name(file);
    if !path.is_file() {
        return Err(TwinError::NoFile);
    }
    // Its indicators are those of the attack.
    let loaded = load_document(
        &FileInput::File(path),
        limits,
        UnknownNames::Allowed,
        notify,
    );
    Ok(loaded.ok_or(UnreadableDocument::Told)?)
}

/// The document in one file, with its twin; tells why one cannot be used.
pub(crate) fn load_one(
    input: &FileInput,
    limits: &ReadLimits,
    prompt: Option<&str>,
    unknown: UnknownNames,
    notify: &dyn Fn(Notice),
) -> Option<CampaignDocument> {
    let document = load_document(input, limits, unknown, notify)?;
    let twin = |file: &str| beside(input, file, limits, notify);
    ready(&input.name(), document, prompt, twin, notify)
}

fn shipped(
    path: &str,
    text: &str,
    limits: &ReadLimits,
    prompt: Option<&str>,
    notify: &dyn Fn(Notice),
) -> Option<CampaignDocument> {
    let read = |text: &str| {
        let loaded = load_with(text, limits);
        loaded.map(|loaded| loaded.document).map_err(|errors| {
            let first = errors.into_iter().next();
            first.map_or(UnreadableDocument::Told, |error| {
                UnreadableDocument::Invalid(Box::new(error))
            })
        })
    };
    let document = match read(text) {
        Ok(document) => document,
        Err(error) => {
            let (name, reason) = (path.to_owned(), error.to_string());
            notify(Notice::Unusable { name, reason });
            return None;
        }
    };
    let twin = |file: &str| {
        let path = Path::new(path).with_file_name(file);
        let path = path.to_string_lossy().replace('\\', "/");
        let mut files = library::all().iter();
        let found = files.find(|(other, _)| *other == path);
        let (_, text) = found.ok_or(TwinError::NotInLibrary)?;
        Ok(read(text)?)
    };
    let mut ready = ready(&format!("scenarios/{path}"), document, prompt, twin, notify)?;
    ready.info.shipped = true;
    Some(ready)
}

fn ready(
    name: &str,
    document: Document,
    prompt: Option<&str>,
    twin: impl FnOnce(&str) -> Result<Document, TwinError>,
    notify: &dyn Fn(Notice),
) -> Option<CampaignDocument> {
    match CampaignDocument::new(name, document, prompt, twin) {
        Ok(document) => {
            if let Some(why) = &document.control_problem {
                notify(Notice::UncleanControl {
                    name: name.to_owned(),
                    why: why.clone(),
                });
            }
            Some(document)
        }
        Err(error) => {
            notify(Notice::Unusable {
                name: name.to_owned(),
                reason: error.to_string(),
            });
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_there_can_be_loaded() {
        let limits = ReadLimits::default();
        let notify = |notice: Notice| panic!("{notice:?}");
        let loaded = load(&[], &limits, None, UnknownNames::Refused, &notify).unwrap();
        assert_eq!(loaded.is_empty(), library::all().is_empty());
        let nowhere = [PathBuf::from("/nowhere")];
        assert!(load(&nowhere, &limits, None, UnknownNames::Refused, &notify).is_err());
        // An attack of the library, by both of its names.
        let named = ["weather-key-theft", "PROOF-001"].map(PathBuf::from);
        let loaded = load(&named, &limits, None, UnknownNames::Refused, &notify).unwrap();
        let ids: Vec<&str> = loaded.iter().map(|it| it.info.id.as_str()).collect();
        assert_eq!(ids, ["PROOF-001"]);
        assert!(loaded[0].twin.is_some() && loaded[0].info.shipped);
    }
}
