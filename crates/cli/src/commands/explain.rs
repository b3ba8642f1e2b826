//! `proofhouse explain`: what a code, an outcome or the reason of an inconclusive run means.

use clap::{Args, ValueEnum};
use proofhouse_campaign::library;
use proofhouse_campaign::outcome::{InconclusiveReason, RunOutcome};
use serde_json::json;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData};
use proofhouse_lsp::formats::explanations;

/// Explain a diagnostic code, an outcome or the reason of an inconclusive run, or list all of them
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  proofhouse explain V-031\n  proofhouse explain resisted\n  proofhouse explain --format json"
)]
pub(crate) struct Explain {
    /// The code, such as V-031, PH-009, TM-007 or PC-003; an outcome, such as resisted; or a reason, such as
    /// not_delivered [default: list all]
    code: Option<String>,

    /// The output format
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
                let Some(meaning) = all().find(|one| one.code.eq_ignore_ascii_case(code.trim()))
                else {
                    return Err(CommandError::usage(unknown(code)));
                };
                match format {
                    ExplainFormat::Human => {
                        let ExplainedWord {
                            code, kind, text, ..
                        } = meaning;
                        data.line(&format!("{code} ({kind})\n\n{text}"))?;
                    }
                    ExplainFormat::Json => data.json(&meaning.json())?,
                }
            }
            (None, ExplainFormat::Human) => {
                for ExplainedWord {
                    code, kind, title, ..
                } in all()
                {
                    data.line(&format!("{code:<7} {kind:<13} {title}"))?;
                }
            }
            (None, ExplainFormat::Json) => {
                data.json(&all().map(|one| one.json()).collect())?;
            }
        }
        data.finish()?;
        Ok(Exit::Success)
    }
}

/// A word that people may ask about.
struct ExplainedWord {
    code: &'static str,
    kind: String,
    title: String,
    text: String,
}

/// Everything that is explained: the codes of diagnostics, the outcomes of runs, and why runs are inconclusive.
fn all() -> impl Iterator<Item = ExplainedWord> {
    let codes = explanations().map(|explanation| ExplainedWord {
        code: explanation.code,
        kind: explanation.kind.to_string(),
        title: explanation.title,
        text: explanation.text,
    });
    let outcomes = RunOutcome::ALL.into_iter().map(|outcome| ExplainedWord {
        code: outcome.word(),
        kind: "outcome".to_owned(),
        title: outcome.meaning().to_owned(),
        text: outcome.meaning().to_owned(),
    });
    let reasons = InconclusiveReason::ALL.iter().map(|reason| ExplainedWord {
        code: reason.code(),
        kind: "inconclusive".to_owned(),
        title: reason.sentence().to_owned(),
        text: format!("{}\n\nNext: {}", reason.sentence(), reason.advice()),
    });
    codes.chain(outcomes).chain(reasons)
}

impl ExplainedWord {
    fn json(&self) -> serde_json::Value {
        json!({"code": self.code, "kind": self.kind, "title": self.title, "text": self.text})
    }
}

fn unknown(code: &str) -> String {
    if let Some(advice) = library::advice(code) {
        return format!("there is no code `{code}`; {advice}");
    }
    let near = proofhouse_oatf::did_you_mean(code, all().map(|one| one.code));
    let hint = near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
    format!("there is no code `{code}`{hint}; `proofhouse explain` lists them all")
}
