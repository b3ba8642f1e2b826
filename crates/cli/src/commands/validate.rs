//! `proofhouse validate`: checks documents and shows what is wrong where.

use clap::Args;
use proofhouse_campaign::config;
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_lsp::formats::{self, FileKind};
use proofhouse_manifest::Bundle;
use proofhouse_oatf::{Diagnostic, DiagnosticSeverity};
use proofhouse_report::findings::Checked;
use proofhouse_subjects::bundles::{across, sort};
use proofhouse_tools::operator;

use crate::exit_code::Exit;
use crate::input::{FileInput, Inputs, Unreadable};
use crate::output::{CommandError, ProgressLine, StdoutData};
use crate::report::FindingFormat;

/// Check files for errors: threat documents, manifests, labelled cases, guard policies, proofhouse.yaml and the
/// operator's settings
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse validate attack.yaml\n  \
    proofhouse validate examples/tools/weather.yaml\n  \
    proofhouse validate agent.yaml tools/\n  \
    proofhouse validate proofhouse.yaml\n  \
    proofhouse validate scenarios/ --format sarif > results.sarif\n  \
    cat attack.yaml | proofhouse validate -\n\n\
    Exit codes:\n  \
    0   all files are valid\n  \
    1   a file is invalid or cannot be read\n  \
    64  invalid arguments, or a path that does not exist")]
pub(crate) struct Validate {
    #[command(flatten)]
    inputs: Inputs,

    /// The output format
    #[arg(long, value_enum, default_value_t = FindingFormat::Human)]
    format: FindingFormat,

    /// Hide warnings
    #[arg(long)]
    no_warnings: bool,

    /// Treat warnings as errors
    #[arg(long, conflicts_with = "no_warnings")]
    deny_warnings: bool,
}

impl Validate {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let inputs = self.inputs.collect()?;
        WantedFiles::Validated.check(&self.inputs.paths)?;
        let mut data = StdoutData::new();
        let mut progress = ProgressLine::new(inputs.len());
        let mut checked = Vec::with_capacity(inputs.len());
        // Manifests may name each other, whatever file they are in.
        let mut bundles: Vec<(usize, Bundle)> = Vec::new();
        for (done, input) in inputs.iter().enumerate() {
            progress.step(done);
            let (file, bundle) = self.read(input);
            bundles.extend(bundle.map(|bundle| (checked.len(), bundle)));
            checked.push(file);
        }
        let between = across(&bundles.iter().map(|(_, bundle)| bundle).collect::<Vec<_>>());
        for ((at, _), findings) in bundles.iter().zip(between) {
            if let Some(file) = checked.get_mut(*at) {
                file.findings.extend(findings);
                sort(&mut file.findings);
            }
        }
        for file in &mut checked {
            self.judge(file);
        }
        progress.finish();
        let failed = checked.iter().any(|file| !file.is_valid());
        self.format.write(&mut data, &checked)?;
        data.finish()?;
        Ok(if failed { Exit::Failure } else { Exit::Success })
    }

    /// Reads a file and checks it by itself. Manifests of agents are to be checked with the others.
    fn read(&self, input: &FileInput) -> (Checked, Option<Bundle>) {
        let (text, findings, bundle) = match input.read(self.inputs.size.max_size) {
            Ok(text) => {
                let path = match input {
                    FileInput::File(path) => Some(path.as_path()),
                    FileInput::Stdin => None,
                };
                let found = formats::check(path, &text, &self.inputs.size.limits());
                let text = match found.kind {
                    FileKind::Config => config::shown(&text),
                    FileKind::Operator => operator::shown(&text),
                    FileKind::Cases
                    | FileKind::Policy
                    | FileKind::Manifests
                    | FileKind::Document => text,
                };
                (text, found.findings, found.bundle)
            }
            Err(error) => (String::new(), vec![unreadable(&error)], None),
        };
        // The text is only needed to show the places of findings, which manifests may still get.
        let is_kept = !findings.is_empty() || bundle.is_some();
        let checked = Checked {
            name: input.name(),
            text: if is_kept { text } else { String::new() },
            findings,
        };
        (checked, bundle)
    }

    /// Weighs warnings as the command line says.
    fn judge(&self, checked: &mut Checked) {
        if self.no_warnings {
            checked
                .findings
                .retain(|finding| finding.severity == DiagnosticSeverity::Error);
        }
        if self.deny_warnings {
            for finding in &mut checked.findings {
                finding.severity = DiagnosticSeverity::Error;
            }
        }
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
