//! `proofhouse explain`: what a code means.

use clap::{Args, ValueEnum};
use proofhouse_oatf::CodeExplanation;
use serde_json::json;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData};
use proofhouse_lsp::formats::{explain, explanations};

/// Explain a diagnostic code, or list all of them
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proofhouse explain V-031\n  proofhouse explain --format json")]
pub(crate) struct Explain {
    /// The code, for example V-031, W-004, N-005, PH-009, TM-007 or PC-003; without it, all are listed
    code: Option<String>,

    /// How to print it
    #[arg(long, value_enum, default_value_t = ExplainFormat::Human)]
    format: ExplainFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExplainFormat {
    Human,
    Json,
}

impl Explain {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let mut data = StdoutData::new();
        match (&self.code, self.format) {
            (Some(code), format) => {
                let Some(explanation) = explain(code) else {
                    return Err(CommandError::usage(unknown(code)));
                };
                match format {
                    ExplainFormat::Human => {
                        let CodeExplanation {
                            code, kind, text, ..
                        } = explanation;
                        data.line(&format!("{code} ({kind})\n\n{text}"))?;
                    }
                    ExplainFormat::Json => data.json(&as_json(&explanation))?,
                }
            }
            (None, ExplainFormat::Human) => {
                for CodeExplanation {
                    code, kind, title, ..
                } in explanations()
                {
                    data.line(&format!("{code:<7} {kind:<13} {title}"))?;
                }
            }
            (None, ExplainFormat::Json) => {
                data.json(
                    &explanations()
                        .map(|explanation| as_json(&explanation))
                        .collect(),
                )?;
            }
        }
        data.finish()?;
        Ok(Exit::Success)
    }
}

fn as_json(explanation: &CodeExplanation) -> serde_json::Value {
    json!({
        "code": explanation.code,
        "kind": explanation.kind.to_string(),
        "title": explanation.title,
        "text": explanation.text,
    })
}

fn unknown(code: &str) -> String {
    let near = proofhouse_oatf::did_you_mean(code, explanations().map(|e| e.code));
    let hint = near
        .map(|near| format!(", did you mean {near}?"))
        .unwrap_or_default();
    format!("there is no code `{code}`{hint}; `proofhouse explain` lists them all")
}
