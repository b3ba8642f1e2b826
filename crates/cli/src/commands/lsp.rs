//! `proofhouse lsp`: the language server for editors.

use std::io::{self, BufReader};

use clap::Args;
use proofhouse_lsp::{LspEnd, LspSettings, serve};

use crate::exit_code::Exit;
use crate::input::SizeLimit;
use crate::output::CommandError;

/// Start the language server for editors (LSP over stdio)
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    proofhouse lsp\n\n\
    Editors start it. For the settings of VS Code, Neovim, Helix and Zed, see {}.\n\n\
    Exit codes:\n  \
    0   the editor ended the session\n  \
    3   the connection to the editor broke, or it sent an invalid message\n  \
    64  invalid arguments", proofhouse_wire::repository::page("docs/how-to/editor.md")))]
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
                "the editor closed the connection without ending the session",
            )),
            Err(error) => Err(CommandError::cannot_run(error.to_string())),
        }
    }
}
