//! `proofhouse new`: a document to start from.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proofhouse_lsp::formats::FormatKind;
use proofhouse_source::to_inline_scalar;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, printable_line, shown_path, talk};
use crate::written_files::create_with_schema;

/// Create a threat document from a template
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse new --mode mcp_server > attack.yaml\n  \
    proofhouse new --mode a2a_server --id ACME-007 --name 'Card poisoning' --out attack.yaml\n\n\
    Exit codes:\n  \
    0   written\n  \
    3   the file exists or cannot be written\n  \
    64  invalid arguments")]
pub(crate) struct New {
    /// The role that the attacker plays
    #[arg(long, value_enum, default_value_t = TemplateMode::McpServer)]
    mode: TemplateMode,

    /// Id of the attack: upper-case words and a three-digit number
    #[arg(long, default_value = "EXAMPLE-001")]
    id: String,

    /// Name of the attack
    #[arg(long, default_value = "My attack")]
    name: String,

    /// Write to this new file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Declares the templates: a mode, and the name of its file in `templates/`.
macro_rules! templates {
    ($( $(#[$doc:meta])+ $mode:ident => $file:ident, )+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
        #[value(rename_all = "snake_case")]
        enum TemplateMode {
            $( $(#[$doc])+ $mode, )+
        }

        impl TemplateMode {
            fn template(self) -> &'static str {
                match self {
                    $( Self::$mode => {
                        include_str!(concat!("../templates/", stringify!($file), ".yaml"))
                    } )+
                }
            }
        }
    };
}

templates! {
    /// A hostile MCP server that the agent connects to
    McpServer => mcp_server,
    /// A hostile MCP client that connects to the agent
    McpClient => mcp_client,
    /// A hostile A2A agent that the agent calls
    A2aServer => a2a_server,
    /// A hostile A2A agent that calls the agent
    A2aClient => a2a_client,
    /// A hostile AG-UI frontend that drives the agent
    AgUiClient => ag_ui_client,
}

/// Whether a text has the form of an id: `ACME-007`.
fn is_id(text: &str) -> bool {
    let Some((words, number)) = text.rsplit_once('-') else {
        return false;
    };
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word
                .bytes()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    };
    number.len() >= 3 && number.bytes().all(|c| c.is_ascii_digit()) && words.split('-').all(is_word)
}

impl New {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        if !is_id(&self.id) {
            return Err(CommandError::usage(printable_line(&format!(
                "--id {}: write upper-case words and a three-digit number, such as ACME-007",
                self.id
            ))));
        }
        if self.name.trim().is_empty() || self.name.chars().any(char::is_control) {
            return Err(CommandError::usage(
                "--name: write a name of at least one character, on one line and without control characters",
            ));
        }
        let text = self
            .mode
            .template()
            .replace("EXAMPLE-001", &self.id)
            .replace("NAME", &to_inline_scalar(&self.name));
        // The words of the command line went into the document; they may not fit.
        if let Some(finding) = proofhouse_oatf::check(&text, &Default::default()).first() {
            let place = finding.path.as_deref().unwrap_or("document");
            return Err(CommandError::usage(format!("{place}: {}", finding.message)));
        }
        let Some(path) = self.out else {
            let mut data = StdoutData::new();
            data.write(&text)?;
            data.finish()?;
            return Ok(Exit::Success);
        };
        create_with_schema(&path, &text, FormatKind::Oatf, false)?;
        talk(&format!(
            "wrote {}; check it with: proofhouse validate {0}",
            shown_path(&path)
        ));
        Ok(Exit::Success)
    }
}
