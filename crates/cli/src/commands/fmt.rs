//! `proofhouse fmt`: documents in canonical form.

use clap::Args;
use proofhouse_campaign::cases::is_cases_file;
use proofhouse_campaign::config;
use proofhouse_manifest::Bundle;
use proofhouse_oatf::{Diagnostic, OatfError, load_with, serialize};
use proofhouse_report::findings::{Checked, human};
use proofhouse_wire::write_files::replace;

use crate::exit_code::Exit;
use crate::input::{FileInput, Inputs, ShownName};
use crate::output::{CommandError, StdoutData, complain, printable_line, talk};

/// Format threat documents
///
/// Rewrites documents in the canonical form of the specification: a list of actors, all defaults written out, and
/// fields in a fixed order. Files are replaced atomically; stdin is formatted to stdout. Comments above the
/// document are kept. Comments inside it cannot be kept, so such a file is not changed unless you add
/// --drop-comments.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse fmt attack.yaml\n  \
    proofhouse fmt --check scenarios/\n\n\
    Exit codes:\n  \
    0   formatted, or nothing to do\n  \
    1   not in canonical form (--check), or could not be formatted\n  \
    64  invalid arguments, or a path that does not exist")]
pub(crate) struct Fmt {
    #[command(flatten)]
    inputs: Inputs,

    /// Only list the files that are not in canonical form
    #[arg(long)]
    check: bool,

    /// Format files even if comments are lost
    #[arg(long)]
    drop_comments: bool,
}

impl Fmt {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let inputs = self.inputs.collect()?;
        let mut data = StdoutData::new();
        let mut exit = Exit::Success;
        for input in &inputs {
            if !self.format(input, &mut data)? {
                exit = Exit::Failure;
            }
        }
        data.finish()?;
        Ok(exit)
    }

    /// Formats one document; `false` when it is not, or cannot be brought, in canonical form.
    fn format(&self, input: &FileInput, data: &mut StdoutData) -> Result<bool, CommandError> {
        let (name, shown) = (input.name(), input.shown());
        // A pipe or a device can be read, but not replaced.
        if let FileInput::File(path) = input
            && !path.is_file()
        {
            complain(&format!(
                "{shown}: not a regular file; use `-` and redirect"
            ));
            return Ok(false);
        }
        let text = match input.read(self.inputs.size.max_size) {
            Ok(text) => text,
            Err(error) => {
                complain(&format!("{shown}: {error}"));
                return Ok(false);
            }
        };
        let other = if config::is_meant_by(&input.name(), &text) {
            Some("the configuration of a project")
        } else if matches!(input, FileInput::File(path) if is_cases_file(path)) {
            Some("a file of labelled cases")
        } else {
            Bundle::is_meant_by(&text).then_some("a tool manifest")
        };
        if let Some(other) = other {
            // They have no canonical form, and may stand beside threat documents in a directory.
            if let (FileInput::Stdin, false) = (input, self.check) {
                data.write(&text)?;
            }
            talk(&format!("{shown}: not changed, because it is {other}"));
            return Ok(true);
        }
        let loaded = match load_with(&text, &self.inputs.size.limits()) {
            Ok(loaded) => loaded,
            Err(errors) => {
                let findings = errors
                    .into_iter()
                    .map(OatfError::into)
                    .collect::<Vec<Diagnostic>>();
                data.write(&human::text(&[Checked {
                    name,
                    text,
                    findings,
                }]))?;
                return Ok(false);
            }
        };
        let comments = proofhouse_source::Comments::read(&text);
        let canonical = format!("{}{}", comments.header(), serialize(&loaded.document));
        if let FileInput::Stdin = input {
            if !self.check {
                data.write(&canonical)?;
            }
            return Ok(!self.check || canonical == text);
        }
        if canonical == text {
            return Ok(true);
        }
        if self.check {
            data.line(&printable_line(&name))?;
            return Ok(false);
        }
        if comments.inner() > 0 && !self.drop_comments {
            complain(&format!(
                "{shown}: left alone, because {} comment{} inside the document would be lost; \
                 use --drop-comments to rewrite it anyway",
                comments.inner(),
                if comments.inner() == 1 { "" } else { "s" },
            ));
            return Ok(false);
        }
        let FileInput::File(path) = input else {
            return Ok(true);
        };
        replace(path, &canonical)
            .map_err(|error| CommandError::cannot_run(format!("{shown}: cannot write: {error}")))?;
        talk(&format!("formatted {shown}"));
        Ok(true)
    }
}
