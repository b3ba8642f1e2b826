//! The documents of a campaign: files that are named, or the library that the binary carries.

use std::path::{Path, PathBuf};

use proofhouse_campaign::document::{CampaignDocument, is_twin_file};
use proofhouse_oatf::{Document, load_with};

use crate::config;
use crate::input::{DOCUMENTS, Input, SizeLimit, collect};
use crate::library;
use crate::output::{CommandError, complain, printable_line};
use crate::report::plural;
use crate::rules::load_or_complain;

/// The documents behind paths, or all of the library; twins come with the documents they belong to.
/// All that is wrong is shown, and one document that cannot be used ends the command: a campaign that
/// silently leaves one out would say too much.
pub(crate) fn load(
    paths: &[PathBuf],
    size: SizeLimit,
    prompt: Option<&str>,
) -> Result<Vec<CampaignDocument>, CommandError> {
    let loaded: Vec<Option<CampaignDocument>> = if paths.is_empty() {
        let files = library::all().iter();
        files
            .filter(|(path, _)| !is_twin_file(Path::new(path)))
            .map(|(path, text)| shipped(path, text, size, prompt))
            .collect()
    } else {
        let mut inputs = collect(paths, DOCUMENTS)?;
        let mut seen = std::collections::HashSet::new();
        inputs.retain(|input| {
            let is_other =
                matches!(input, Input::File(path) if is_twin_file(path) || is_config(path));
            !is_other && seen.insert(input.name())
        });
        let inputs = inputs.iter();
        inputs.map(|input| named(input, size, prompt)).collect()
    };
    let total = loaded.len();
    let documents: Vec<CampaignDocument> = loaded.into_iter().flatten().collect();
    match total - documents.len() {
        0 => Ok(documents),
        unusable => Err(CommandError::cannot_run(format!(
            "{unusable} of {} cannot be used, so nothing was run",
            plural(total, "document")
        ))),
    }
}

/// The configuration of a project may stand among its documents.
fn is_config(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == config::FILE)
}

/// The document in one file, with its twin; complains where it cannot be used.
pub(crate) fn named(
    input: &Input,
    size: SizeLimit,
    prompt: Option<&str>,
) -> Option<CampaignDocument> {
    let document = load_or_complain(input, size)?;
    let twin = |file: &str| {
        let Input::File(path) = input else {
            return Err("a document from stdin has no file beside it".to_owned());
        };
        let path = path.with_file_name(file);
        if !path.is_file() {
            return Err("there is no such file".to_owned());
        }
        load_or_complain(&Input::File(path), size).ok_or_else(|| "it cannot be used".to_owned())
    };
    ready(&input.name(), document, prompt, twin)
}

fn shipped(
    path: &str,
    text: &str,
    size: SizeLimit,
    prompt: Option<&str>,
) -> Option<CampaignDocument> {
    let read = |text: &str| {
        let loaded = load_with(text, &size.limits());
        loaded.map(|loaded| loaded.document).map_err(|errors| {
            let first = errors.first().map(ToString::to_string);
            first.unwrap_or_else(|| "it cannot be used".to_owned())
        })
    };
    let document = match read(text) {
        Ok(document) => document,
        Err(error) => {
            complain(&format!("{path}: {}", printable_line(&error)));
            return None;
        }
    };
    let twin = |file: &str| {
        let path = Path::new(path).with_file_name(file);
        let path = path.to_string_lossy().replace('\\', "/");
        let mut files = library::all().iter();
        let found = files.find(|(other, _)| *other == path);
        let (_, text) = found.ok_or_else(|| "it is not in the library".to_owned())?;
        read(text)
    };
    ready(&format!("scenarios/{path}"), document, prompt, twin)
}

fn ready(
    name: &str,
    document: Document,
    prompt: Option<&str>,
    twin: impl FnOnce(&str) -> Result<Document, String>,
) -> Option<CampaignDocument> {
    match CampaignDocument::new(name, document, prompt, twin) {
        Ok(document) => Some(document),
        Err(error) => {
            complain(&printable_line(&format!("{name}: {error}")));
            None
        }
    }
}
