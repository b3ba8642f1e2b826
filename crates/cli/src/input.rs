//! The documents that flags name, and how large they may be.

use std::path::PathBuf;

use clap::Args;
use proofhouse_campaign::library;
use proofhouse_oatf::ReadLimits;
pub(crate) use proofhouse_wire::files::{
    CollectError, DOCUMENTS, FileInput, MissingInput, TRACES, Unreadable, collect, named_directory,
    named_files, parse_size,
};

use crate::output::{CommandError, printable_line};

/// The documents a command works on.
#[derive(Debug, Clone, Args)]
pub(crate) struct Inputs {
    /// Files, directories (searched for .yaml and .yml files), or `-` for stdin
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) size: SizeLimit,
}

/// The size limit of a document.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct SizeLimit {
    /// The largest document to accept, in bytes or with K, M or G
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = parse_size)]
    pub(crate) max_size: usize,
}

impl SizeLimit {
    pub(crate) fn limits(self) -> ReadLimits {
        ReadLimits {
            max_bytes: self.max_size,
            ..ReadLimits::default()
        }
    }
}

impl Inputs {
    /// The files behind the paths, in order, directories sorted by name.
    pub(crate) fn collect(&self) -> Result<Vec<FileInput>, CommandError> {
        Ok(collect(&self.paths, DOCUMENTS)?)
    }
}

/// How messages on stderr name an input.
pub(crate) trait ShownName {
    /// The name on one line.
    fn shown(&self) -> String;
}

impl ShownName for FileInput {
    fn shown(&self) -> String {
        printable_line(&self.name())
    }
}

impl From<MissingInput> for CommandError {
    fn from(error: MissingInput) -> Self {
        Self::of(&error, true)
    }
}

impl From<CollectError> for CommandError {
    fn from(error: CollectError) -> Self {
        let message = library::with_advice(error.to_string(), error.missing());
        Self::usage(printable_line(&message))
    }
}
