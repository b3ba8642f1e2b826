//! Where indicators come from: threat documents that are loaded, checked and compiled into a scanner.

use std::path::PathBuf;

use clap::Args;
use proofhouse_campaign::cases::is_cases_file;
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_campaign::load::{UnknownNames, load_document};
use proofhouse_detect::{CanaryMatcher, Scanner};
use proofhouse_oatf::Document;

use crate::input::{DOCUMENTS, FileInput, ShownName, SizeLimit, collect};
use crate::notices;
use crate::output::{CommandError, complain};
use crate::report::plural;
use crate::semantic_options::SemanticOptions;

/// The documents to judge with.
#[derive(Debug, Args)]
pub(crate) struct JudgingDocuments {
    /// The threat documents whose indicators to look for: files, or directories that are searched for .yaml and
    /// .yml files
    #[arg(long = "rules", display_order = 0, required_unless_present = "canaries", num_args = 1.., value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Look for this secret in all messages, even if it is encoded, split or reversed; can be repeated
    #[arg(long = "canary", id = "canaries", value_name = "VALUE")]
    canaries: Vec<String>,

    #[command(flatten)]
    size: SizeLimit,

    #[command(flatten)]
    semantic: SemanticOptions,
}

impl JudgingDocuments {
    /// Whether the documents come from stdin.
    pub(crate) fn read_stdin(&self) -> bool {
        self.paths.iter().any(|path| path.as_os_str() == "-")
    }

    /// Loads all documents and compiles them. What is wrong with them is shown on stderr, all of
    /// it: a scan that silently leaves out a document would say too little.
    pub(crate) fn scanner(&self, allow_unknown: bool) -> Result<Scanner, CommandError> {
        WantedFiles::ThreatDocuments.check(&self.paths)?;
        let mut inputs = collect(&self.paths, DOCUMENTS)?;
        // The same file may be named by itself and found in a directory.
        let mut seen = std::collections::HashSet::new();
        inputs.retain(|input| {
            let is_cases = matches!(input, FileInput::File(path) if is_cases_file(path));
            !is_cases && seen.insert(input.name())
        });
        CanaryMatcher::new(self.canaries.iter().cloned())
            .map_err(|error| CommandError::usage(format!("--canary: {error}")))?;
        let mut builder = Scanner::builder().canaries(&self.canaries);
        let mut unusable = 0;
        for input in &inputs {
            match self.load(input, allow_unknown) {
                Some(document) => builder = builder.add(input.name(), document),
                None => unusable += 1,
            }
        }
        if unusable > 0 {
            return Err(CommandError::cannot_run(format!(
                "{unusable} of {} cannot be used; nothing was scanned",
                plural(inputs.len(), "document"),
            )));
        }
        if let Some(evaluator) = self.semantic.evaluator()? {
            builder = builder.semantic(evaluator);
        }
        builder
            .build()
            .map_err(|error| CommandError::cannot_run(error.to_string()))
    }

    /// Loads one document with indicators; complains where it cannot be used.
    fn load(&self, input: &FileInput, allow_unknown: bool) -> Option<Document> {
        let document = load_or_complain(input, self.size, allow_unknown)?;
        if document.attack.indicators().is_empty() {
            let shown = input.shown();
            complain(&format!(
                "{shown}: the document has no indicators to look for; name only documents that have some"
            ));
            return None;
        }
        Some(document)
    }
}

/// Loads one document; shows on stderr all that is wrong with one that cannot be used.
pub(crate) fn load_or_complain(
    input: &FileInput,
    size: SizeLimit,
    allow_unknown: bool,
) -> Option<Document> {
    let unknown = unknown_names(allow_unknown);
    load_document(input, &size.limits(), unknown, &notices::show)
}

/// What `--allow-unknown` says.
pub(crate) fn unknown_names(allowed: bool) -> UnknownNames {
    if allowed {
        UnknownNames::Allowed
    } else {
        UnknownNames::Refused
    }
}
