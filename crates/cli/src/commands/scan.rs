//! `proofhouse scan`: judges recorded traces by the indicators of threat documents.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_detect::{ScanEvent, ScanOptions, Scanner};
use proofhouse_report::scan::{self, MAX_PROBLEMS, ScanConclusion, ScannedTrace};

use crate::exit_code::Exit;
use crate::input::FileInput;
use crate::interrupt::Interrupt;
use crate::output::{CommandError, StdoutData, complain, printable_line, talk};
use crate::progress::ScanMeter;
use crate::report::plural;
use crate::rules::JudgingDocuments;
use crate::traces::{self, TraceOptions};

/// How many bad lines of a trace are told one by one.
const TOLD_PROBLEMS: usize = 10;

/// Search recorded traces for signs of attacks
///
/// Evaluates the indicators of threat documents on recorded traffic. Each trace is scored on its own. Lines that
/// cannot be read are reported, counted and skipped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse scan trace.jsonl --rules scenarios/\n  \
    proofhouse scan spans.json.gz --rules attack.yaml --format sarif > results.sarif\n  \
    tail -n 1000 mcp.log | proofhouse scan - --from json-rpc --rules attack.yaml\n\n\
    Exit codes:\n  \
    0   no indicator matched\n  \
    1   an indicator matched\n  \
    2   inconclusive: no match, but an indicator could not be evaluated, lines were\n      skipped, messages do not say what indicators ask for (the direction or the\n      actor), no document is for the trace's protocol, or a trace is empty or\n      incomplete, or holds several recordings\n  \
    3   a document cannot be used, or a trace cannot be read to its end\n  \
    64  invalid arguments, or a path that does not exist\n  \
    130 stopped by Ctrl-C")]
pub(crate) struct Scan {
    /// The traces: files, directories (searched for .jsonl, .ndjson, .json and .log files, also compressed as .gz
    /// or .zst), or `-` for stdin
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Also use documents with operations, states or targets unknown to their protocol
    #[arg(long)]
    allow_unknown: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t = ScanFormat::Human)]
    format: ScanFormat,

    /// Also list documents without a match (human format only)
    #[arg(long)]
    all: bool,

    /// The number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,

    #[command(flatten)]
    options: TraceOptions,

    #[command(flatten)]
    rules: JudgingDocuments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScanFormat {
    /// For people, with the evidence and a summary
    Human,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

impl Scan {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        WantedFiles::Traces.check(&self.traces)?;
        let inputs = traces::find(&self.traces, self.rules.read_stdin())?;
        let scanner = self.rules.scanner(self.allow_unknown)?;
        let interrupt = Interrupt::watch();
        let mut scans = Vec::new();
        for input in &inputs {
            if interrupt.happened() {
                let left = inputs.len() - scans.len();
                complain(&format!(
                    "interrupted; not scanned: {}",
                    plural(left, "trace")
                ));
                break;
            }
            let own = traces::planted(&scanner, input)?;
            scans.push(self.scan(own.as_ref().unwrap_or(&scanner), input, &interrupt));
        }
        let mut data = StdoutData::new();
        match self.format {
            ScanFormat::Human => data.write(&scan::text::text(&scanner, &scans, self.all))?,
            ScanFormat::Json => data.json(&scan::json::document(&scanner, &scans))?,
            ScanFormat::Sarif => data.json(&scan::sarif::document(&scanner, &scans))?,
        }
        data.finish()?;
        if interrupt.happened() {
            return Ok(Exit::Interrupted);
        }
        Ok(
            match ScanConclusion::of(&scans, self.options.allow_skipped) {
                ScanConclusion::Unreadable => Exit::CannotRun,
                ScanConclusion::Found => Exit::Failure,
                ScanConclusion::Inconclusive => Exit::Inconclusive,
                ScanConclusion::Clean => Exit::Success,
            },
        )
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
            "{name}: {} requests without a response were dropped to limit memory use",
            summary.forgotten_requests
        ));
    }
    if summary.unknown_fields > 0 {
        talk(&format!(
            "{name}: unknown fields were ignored ({})",
            summary.unknown_fields
        ));
    }
    match scanned_trace.failure() {
        Some(failure) => complain(&format!("{name}: {failure}")),
        None if summary.messages == 0 => talk(&format!("{name}: the trace has no messages")),
        None => {}
    }
}
