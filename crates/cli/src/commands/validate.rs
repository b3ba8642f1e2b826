//! `proofhouse validate`: checks documents and shows what is wrong where.

use clap::{Args, ValueEnum};
use proofhouse_oatf::{Diagnostic, DiagnosticSeverity};
use proofhouse_tools::manifest::Bundle;

use crate::exit_code::Exit;
use crate::input::{Input, Inputs, Unreadable};
use crate::output::{CommandError, Data, Progress};
use crate::report::{self, Checked};

/// Check threat documents and tool manifests, and show what is wrong where
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse validate attack.yaml\n  \
    proofhouse validate examples/tools/weather.yaml\n  \
    proofhouse validate scenarios/ --format sarif > results.sarif\n  \
    cat attack.yaml | proofhouse validate -\n\n\
    Exit codes: 0 all valid, 1 some invalid or unreadable, 64 usage.")]
pub(crate) struct Validate {
    #[command(flatten)]
    inputs: Inputs,

    /// How to print the findings
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// Do not show warnings
    #[arg(long)]
    no_warnings: bool,

    /// Treat warnings as errors
    #[arg(long, conflicts_with = "no_warnings")]
    deny_warnings: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people: the place in the source, underlined
    Human,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations for GitHub Actions
    Github,
}

impl Validate {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let inputs = self.inputs.collect()?;
        let mut data = Data::new();
        let mut progress = Progress::new(inputs.len());
        let mut checked = Vec::with_capacity(inputs.len());
        for (done, input) in inputs.iter().enumerate() {
            progress.step(done);
            checked.push(self.check(input));
        }
        progress.finish();
        let failed = checked.iter().any(|file| !file.is_valid());
        match self.format {
            Format::Human => report::human::write(&mut data, &checked)?,
            Format::Json => data.json(&report::json::document(&checked))?,
            Format::Sarif => data.json(&report::sarif::document(&checked))?,
            Format::Github => report::github::write(&mut data, &checked)?,
        }
        data.finish()?;
        Ok(if failed { Exit::Failure } else { Exit::Success })
    }

    fn check(&self, input: &Input) -> Checked {
        let name = input.name();
        let (text, mut findings) = match input.read(self.inputs.size.max_size) {
            Ok(text) => {
                let findings = check(&text, &self.inputs);
                (text, findings)
            }
            Err(error) => (String::new(), vec![unreadable(&error)]),
        };
        if self.no_warnings {
            findings.retain(|finding| finding.severity == DiagnosticSeverity::Error);
        }
        if self.deny_warnings {
            for finding in &mut findings {
                finding.severity = DiagnosticSeverity::Error;
            }
        }
        // The text is only needed to show the places of findings.
        let text = if findings.is_empty() {
            String::new()
        } else {
            text
        };
        Checked {
            name,
            text,
            findings,
        }
    }
}

/// The findings about a text, which is a file of tool manifests if it says so, and a threat document
/// otherwise.
fn check(text: &str, inputs: &Inputs) -> Vec<Diagnostic> {
    if Bundle::is_meant_by(text) {
        Bundle::read(text).1
    } else {
        proofhouse_oatf::check(text, &inputs.size.limits())
    }
}

fn unreadable(error: &Unreadable) -> Diagnostic {
    let code = match error {
        Unreadable::TooLarge { .. } => "PH-002",
        Unreadable::NotUtf8 { .. } | Unreadable::Io(_) => "PH-001",
    };
    Diagnostic {
        severity: DiagnosticSeverity::Error,
        code,
        path: None,
        span: None,
        message: error.to_string(),
        help: None,
    }
}
