//! `proofhouse lsp`: the language server for editors.

use std::io::{self, BufReader};

use clap::Args;
use proofhouse_lsp::{LspEnd, LspSettings, serve};

use crate::exit_code::Exit;
use crate::input::SizeLimit;
use crate::output::CommandError;

/// Serve editors: diagnostics, completion, hover, quick fixes, folding (Language Server Protocol over stdio)
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse lsp\n\n\
    Editors start it; docs/how-to/editor.md has the settings for VS Code, Neovim, Helix and Zed.\n\n\
    Exit codes: 0 the editor ended the session, 3 the editor went away or sent what cannot be read, 64 usage.")]
pub(crate) struct Lsp {
    #[command(flatten)]
    size: SizeLimit,
}

impl Lsp {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let settings = LspSettings {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            limits: self.size.limits(),
            ..LspSettings::default()
        };
        let input = BufReader::new(io::stdin());
        match serve(input, io::stdout().lock(), settings) {
            Ok(LspEnd::Orderly) => Ok(Exit::Success),
            Ok(LspEnd::Abandoned) => Err(CommandError::cannot_run(
                "the editor went away without ending the session",
            )),
            Err(error) => Err(CommandError::cannot_run(error.to_string())),
        }
    }
}
