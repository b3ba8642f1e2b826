//! `proofhouse scan`: judges recorded traces by the indicators of threat documents.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proofhouse_detect::{ScanEvent, ScanOptions, Scanner};
use proofhouse_report::scan::{self, MAX_PROBLEMS, ScannedTrace};

use crate::exit_code::Exit;
use crate::input::FileInput;
use crate::interrupt::Interrupt;
use crate::output::{CommandError, StdoutData, complain, printable_line, talk};
use crate::progress::ScanMeter;
use crate::report::{self, plural};
use crate::rules::JudgingDocuments;
use crate::traces::{self, TraceOptions};

/// How many bad lines of a trace are told one by one.
const TOLD_PROBLEMS: usize = 10;

/// Scan recorded traces for the indicators of threat documents
///
/// Each trace is judged as a run of its own. Bad lines are told, counted and skipped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse scan trace.jsonl --rules scenarios/\n  \
    proofhouse scan spans.json.gz --rules attack.yaml --format sarif > results.sarif\n  \
    tail -n 1000 mcp.log | proofhouse scan - --from json-rpc --rules attack.yaml\n\n\
    Exit codes: 0 nothing found, 1 an indicator matched, 2 nothing found, but an indicator could not be\n\
    evaluated, lines were skipped, or a trace is empty, only a part of what happened or several recordings, 3 a document cannot be used or a trace cannot be read to its end,\n\
    64 usage, 130 ended by Ctrl-C.")]
pub(crate) struct Scan {
    /// Traces: files, directories (searched for .jsonl, .ndjson, .json and .log, also .gz and .zst),
    /// or `-` for stdin
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    #[command(flatten)]
    rules: JudgingDocuments,

    /// Use documents with operations, states or targets that the protocols do not have
    #[arg(long)]
    allow_unknown: bool,

    /// How to print what was found
    #[arg(long, value_enum, default_value_t = ScanFormat::Human)]
    format: ScanFormat,

    /// List documents that found nothing, too (human only; the other formats have what they need)
    #[arg(long)]
    all: bool,

    /// How many threads judge messages; all cores without it
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,

    #[command(flatten)]
    options: TraceOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScanFormat {
    /// For people: the evidence and a summary
    Human,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

impl Scan {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let inputs = traces::find(&self.traces, self.rules.read_stdin())?;
        let scanner = self.rules.scanner(self.allow_unknown)?;
        let interrupt = Interrupt::watch();
        let mut scans = Vec::new();
        for input in &inputs {
            if interrupt.happened() {
                let left = inputs.len() - scans.len();
                complain(&format!(
                    "interrupted; not looked at: {}",
                    plural(left, "trace")
                ));
                break;
            }
            scans.push(self.scan(&scanner, input, &interrupt));
        }
        let mut data = StdoutData::new();
        match self.format {
            ScanFormat::Human => report::scan::write(&mut data, &scanner, &scans, self.all)?,
            ScanFormat::Json => data.json(&scan::json::document(&scanner, &scans))?,
            ScanFormat::Sarif => data.json(&scan::sarif::document(&scanner, &scans))?,
        }
        data.finish()?;
        if interrupt.happened() {
            return Ok(Exit::Interrupted);
        }
        Ok(report::scan::exit(&scans, self.options.allow_skipped))
    }

    fn scan(&self, scanner: &Scanner, input: &FileInput, interrupt: &Interrupt) -> ScannedTrace {
        let name = input.name();
        let opened = traces::open(input, interrupt);
        let mut meter = ScanMeter::new(&name, &opened);
        let cores = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let options = ScanOptions {
            format: self.options.format(),
            import: self.options.import(),
            jobs: self.jobs.unwrap_or_else(cores),
            ..ScanOptions::default()
        };
        let mut problems = Vec::new();
        let scanned = scanner.scan_input(opened.reader, &options, |event| match event {
            ScanEvent::Problem(problem) if problems.len() < MAX_PROBLEMS => problems.push(problem),
            ScanEvent::Progress(summary) => meter.step(summary.messages),
            _ => {}
        });
        meter.finish();
        let scanned_trace = ScannedTrace {
            name,
            format: scanned.format,
            verdicts: scanned.session.verdicts(),
            error: scanned.error.map(|error| error.to_string()),
            summary: scanned.summary,
            problems,
        };
        tell(&scanned_trace);
        if let Some(hint) = self
            .options
            .hint(scanned_trace.format, &scanned_trace.summary)
        {
            talk(&format!("{}: {hint}", printable_line(&scanned_trace.name)));
        }
        scanned_trace
    }
}

/// Says what could not be read.
fn tell(scanned_trace: &ScannedTrace) {
    let ScannedTrace {
        name,
        summary,
        problems,
        ..
    } = scanned_trace;
    let name = printable_line(name);
    for problem in problems.iter().take(TOLD_PROBLEMS) {
        let (line, message) = (problem.line, &problem.message);
        let then = if problem.kind.is_warning() {
            "kept"
        } else {
            "skipped"
        };
        talk(&format!("{name}:{line}: {message} ({then})"));
    }
    let all = summary.skipped() + summary.warnings();
    let untold = all.saturating_sub(TOLD_PROBLEMS as u64);
    if untold > 0 {
        talk(&format!("{name}: {untold} more like these"));
    }
    if summary.forgotten_requests > 0 {
        talk(&format!(
            "{name}: {} requests were forgotten before their response came, to keep memory flat",
            summary.forgotten_requests
        ));
    }
    if summary.unknown_fields > 0 {
        talk(&format!(
            "{name}: fields that the format does not have were ignored ({})",
            summary.unknown_fields
        ));
    }
    match scanned_trace.failure() {
        Some(failure) => complain(&format!("{name}: {failure}")),
        None if summary.messages == 0 => talk(&format!("{name}: there are no messages in it")),
        None => {}
    }
}
