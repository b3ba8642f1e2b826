//! `proofhouse learn`: drafts a guard policy from clean sessions.

use std::path::PathBuf;

use clap::Args;
use proofhouse_detect::{TraceItem, open};
use proofhouse_guard::learn::LearnedSessions;
use proofhouse_report::scan::failure;

use crate::exit_code::Exit;
use crate::interrupt::Interrupt;
use crate::output::{CommandError, StdoutData, printable_line, talk};
use crate::progress::ScanMeter;
use crate::report::plural;
use crate::traces::{self, TraceOptions};

/// Draft a guard policy from traces of sessions in which nothing bad happened
///
/// For each tool, the draft says which fields of its results are free text, whether the tool seems to change something,
/// and which arguments decide what it changes. It is a guess from names and values: read and edit it before you use it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse guard --record clean.jsonl -- python server.py\n  \
    proofhouse learn clean.jsonl > policy.yaml\n  \
    proofhouse guard check policy.yaml\n\n\
    Exit codes:\n  0   written\n  2   written, but lines of a trace were skipped\n  3   a trace cannot be read to its end, or has no tool call\n  \
    64  invalid arguments, or a path that does not exist\n  130 stopped by Ctrl-C")]
pub(crate) struct Learn {
    /// Traces: files, directories, or `-` for stdin
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,

    /// The name of the policy
    #[arg(long, value_name = "NAME", default_value = "learned")]
    name: String,

    #[command(flatten)]
    options: TraceOptions,
}

impl Learn {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let interrupt = Interrupt::watch();
        let mut learned = LearnedSessions::default();
        let mut skipped = 0;
        for input in traces::find(&self.traces, false)? {
            let name = input.name();
            let shown = printable_line(&name);
            let opened = traces::open(&input, &interrupt);
            let mut meter = ScanMeter::new(&name, &opened);
            let (format, mut messages) =
                open(opened.reader, self.options.format(), &self.options.import());
            let mut error = None;
            for item in messages.by_ref() {
                match item {
                    Ok(TraceItem::Message { message, .. }) => {
                        learned.add(&message);
                        meter.step(learned.calls());
                    }
                    Ok(TraceItem::Problem(problem)) if problem.kind.is_warning() => {}
                    Ok(TraceItem::Problem(problem)) => {
                        talk(&format!("{shown}:{}: {}", problem.line, problem.message));
                    }
                    Err(end) => error = Some(end.to_string()),
                }
            }
            meter.finish();
            let summary = messages.summary();
            skipped += summary.skipped();
            if let Some(hint) = self.options.hint(format, summary) {
                talk(&format!("{shown}: {hint}"));
            }
            if let Some(error) = failure(format, summary, error.as_deref()) {
                if interrupt.happened() {
                    return Ok(Exit::Interrupted);
                }
                return Err(CommandError::cannot_run(format!("{shown}: {error}")));
            }
        }
        if learned.calls() == 0 {
            return Err(CommandError::cannot_run(
                "no tool was called in these traces, so there is nothing to learn; record a session with `proofhouse guard --record`",
            ));
        }
        let mut data = StdoutData::new();
        data.write(&learned.policy(&self.name))?;
        data.finish()?;
        talk(&format!(
            "learned from {} and {}; read every entry before you use it",
            plural(
                usize::try_from(learned.calls()).unwrap_or(usize::MAX),
                "call"
            ),
            plural(learned.tools(), "tool"),
        ));
        Ok(if skipped > 0 && !self.options.allow_skipped {
            Exit::Inconclusive
        } else {
            Exit::Success
        })
    }
}
