//! `proofhouse explain-verdict`: why each indicator judged a trace as it did.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proofhouse_detect::{
    IndicatorExplanation, MessageAssembler, Scanner, TraceItem, WholeMessage, open,
};
use proofhouse_oatf::did_you_mean;
use proofhouse_report::explain_verdict::{self, Explained};
use proofhouse_report::scan::failure;

use crate::exit_code::Exit;
use crate::interrupt::Interrupt;
use crate::output::{CommandError, StdoutData, complain, printable_line, shown_path, talk};
use crate::progress::ScanMeter;
use crate::rules::JudgingDocuments;
use crate::traces::{self, TraceOptions};

/// Explain why indicators did or did not match a trace
///
/// Shows for each indicator which messages its filters dropped, what its path selected in the others, which
/// operator decided, and the result with its reason.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse explain-verdict trace.jsonl --rules attack.yaml\n  \
    proofhouse explain-verdict trace.jsonl --rules attack.yaml --indicator ACME-001-02 --limit 20\n\n\
    Exit codes:\n  \
    0   explained, whatever the verdict\n  \
    2   explained, but lines of the trace were skipped\n  \
    3   a document cannot be used, or the trace cannot be read to its end\n  \
    64  invalid arguments, or a path that does not exist\n  \
    130 stopped by Ctrl-C")]
pub(crate) struct ExplainVerdict {
    /// The trace: a file, or `-` for stdin
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Explain only this indicator
    #[arg(long, value_name = "ID")]
    indicator: Option<String>,

    /// How many messages of each kind to show per indicator; all of them are counted
    #[arg(long, value_name = "N", default_value_t = 3)]
    limit: usize,

    /// The output format
    #[arg(long, value_enum, default_value_t = ExplainVerdictFormat::Human)]
    format: ExplainVerdictFormat,

    #[command(flatten)]
    options: TraceOptions,

    #[command(flatten)]
    rules: JudgingDocuments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExplainVerdictFormat {
    Human,
    Json,
}

impl ExplainVerdict {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        if self.trace.is_dir() {
            return Err(CommandError::usage(format!(
                "{}: a directory; name one trace",
                shown_path(&self.trace)
            )));
        }
        let inputs = traces::find(std::slice::from_ref(&self.trace), self.rules.read_stdin())?;
        let Some(input) = inputs.first() else {
            return Err(CommandError::usage("name one trace"));
        };
        let scanner = self.rules.scanner(true)?;
        let mut explanations = self.chosen(&scanner)?;
        let mut session = scanner.session();
        // What came in pieces is explained whole, as it is judged.
        let mut assembler = MessageAssembler::default();
        let mut explain = |whole: WholeMessage<'_>| {
            for explanation in &mut explanations {
                explanation.feed_line(whole.line.unwrap_or_default(), whole.message);
            }
        };

        let name = input.name();
        let interrupt = Interrupt::watch();
        let opened = traces::open(input, &interrupt);
        let mut meter = ScanMeter::new(&name, &opened);
        let (format, mut messages) =
            open(opened.reader, self.options.format(), &self.options.import());
        let mut error = None;
        for item in messages.by_ref() {
            match item {
                Ok(TraceItem::Message {
                    line,
                    message,
                    is_reading: false,
                }) => {
                    session.feed_line(line, &message);
                    assembler.feed(Some(line), &message, &mut explain);
                    meter.step(session.messages());
                }
                Ok(TraceItem::Message {
                    line,
                    message,
                    is_reading: true,
                }) => {
                    session.feed_reading(line, &message);
                    explain(WholeMessage::alone(Some(line), &message));
                }
                // `scan` tells them; here they are only counted.
                Ok(TraceItem::Problem(_)) => {}
                Err(end) => error = Some(end.to_string()),
            }
        }
        assembler.finish(&mut explain);
        meter.finish();
        let summary = messages.summary();
        let error = failure(format, summary, error.as_deref());
        let skipped = summary.skipped();
        let shown = printable_line(&name);
        if skipped > 0 {
            talk(&format!(
                "{shown}: {} skipped; `proofhouse scan` shows more",
                match skipped {
                    1 => "1 bad line was".to_owned(),
                    several => format!("{several} bad lines were"),
                }
            ));
        }
        if let Some(error) = &error {
            complain(&format!("{shown}: {error}"));
        }
        if let Some(hint) = self.options.hint(format, summary) {
            talk(&format!("{shown}: {hint}"));
        }
        let explained = Explained {
            trace: name,
            verdicts: session.verdicts(),
            explanations,
            skipped,
            error,
        };
        let mut data = StdoutData::new();
        match self.format {
            ExplainVerdictFormat::Human => {
                data.write(&explain_verdict::text(&scanner, &explained))?;
            }
            ExplainVerdictFormat::Json => {
                data.json(&explain_verdict::json::document(&scanner, &explained))?;
            }
        }
        data.finish()?;
        Ok(match explained.error {
            Some(_) if interrupt.happened() => Exit::Interrupted,
            Some(_) => Exit::CannotRun,
            None if skipped > 0 && !self.options.allow_skipped => Exit::Inconclusive,
            None => Exit::Success,
        })
    }

    /// The indicators to follow.
    fn chosen<'s>(
        &self,
        scanner: &'s Scanner,
    ) -> Result<Vec<IndicatorExplanation<'s>>, CommandError> {
        let mut chosen = Vec::new();
        let mut ids = Vec::new();
        for (position, (_, document)) in scanner.documents().enumerate() {
            for (index, indicator) in document.attack.indicators().iter().enumerate() {
                let id = indicator.id.as_deref().unwrap_or_default();
                ids.push(id);
                if self.indicator.as_deref().is_none_or(|wanted| wanted == id) {
                    chosen.extend(IndicatorExplanation::new(
                        scanner, position, index, self.limit,
                    ));
                }
            }
        }
        match &self.indicator {
            Some(wanted) if chosen.is_empty() => {
                let near = did_you_mean(wanted, ids.iter().copied());
                let hint = near.map(|near| format!("; did you mean `{near}`?"));
                let few: Vec<_> = ids.iter().take(10).copied().collect();
                let more = if ids.len() > few.len() { ", …" } else { "" };
                Err(CommandError::usage(format!(
                    "there is no indicator `{wanted}`{} (there are {}{more})",
                    hint.unwrap_or_default(),
                    few.join(", "),
                )))
            }
            _ => Ok(chosen),
        }
    }
}
