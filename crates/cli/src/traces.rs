//! Where traces come from: files, directories and stdin, in any format, read as far as they go.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use proofhouse_campaign::canaries;
use proofhouse_detect::{FORMATS, Format, ImportOptions, ReadSummary, Scanner};
use proofhouse_oatf::Protocol;

use crate::input::{FileInput, TRACES, collect, parse_size};
use crate::interrupt::Interrupt;
use crate::output::CommandError;

/// How traces are read.
#[derive(Debug, Args)]
pub(crate) struct TraceOptions {
    /// The format of the traces [default: detected from their content]
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    from: Option<Format>,

    /// The actor to assign to all messages, for traces that do not name one (`otlp`, `json-rpc`)
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,

    /// The protocol of all messages in a `json-rpc` trace [default: detected from the messages]
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,

    /// The longest line to accept, in bytes or with K, M or G; longer lines are skipped
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = parse_size)]
    max_line: usize,

    /// Do not let skipped lines affect the exit code. By default, a trace with skipped lines is inconclusive
    #[arg(long)]
    pub(crate) allow_skipped: bool,
}

fn formats() -> impl clap::builder::TypedValueParser<Value = Format> {
    PossibleValuesParser::new(
        FORMATS
            .iter()
            .map(|row| clap::builder::PossibleValue::new(row.name).help(row.summary)),
    )
    .try_map(|name| name.parse::<Format>())
}

impl TraceOptions {
    pub(crate) fn format(&self) -> Option<Format> {
        self.from
    }

    pub(crate) fn import(&self) -> ImportOptions {
        let mut options = ImportOptions {
            actor: self.actor.clone(),
            protocol: self.protocol.as_deref().map(Protocol::from),
            ..ImportOptions::default()
        };
        options.limits.max_line_bytes = self.max_line;
        options
    }

    /// What to say when a format that was told by the first lines fits few of them all.
    pub(crate) fn hint(&self, format: Format, summary: &ReadSummary) -> Option<String> {
        let few = summary.messages > 0 && summary.skipped() > summary.messages;
        (few && self.from.is_none()).then(|| {
            format!(
                "most of it does not fit the format `{format}`, which was told by its first lines; \
                 --from names another"
            )
        })
    }
}

/// The traces behind paths, in order, directories sorted by name.
pub(crate) fn find(
    paths: &[PathBuf],
    rules_read_stdin: bool,
) -> Result<Vec<FileInput>, CommandError> {
    let inputs = collect(paths, TRACES)?;
    if rules_read_stdin && inputs.contains(&FileInput::Stdin) {
        return Err(CommandError::usage(
            "stdin can be a trace or a document, not both",
        ));
    }
    Ok(inputs)
}

/// The scanner for a trace that says which canaries its run had, if it does.
pub(crate) fn planted(
    scanner: &Scanner,
    input: &FileInput,
) -> Result<Option<Scanner>, CommandError> {
    let file = match input {
        FileInput::File(path) => File::open(path).ok(),
        FileInput::Stdin => None,
    };
    let values = file.map(canaries::recorded).unwrap_or_default();
    let planted = (!values.is_empty()).then(|| canaries::scanner_with(scanner, &values));
    planted
        .transpose()
        .map_err(|error| CommandError::cannot_run(format!("{}: {error}", input.name())))
}

/// A trace that is being read, and how much of it was.
pub(crate) struct OpenTrace {
    pub(crate) reader: Counted,
    /// The size, where it is known.
    pub(crate) size: Option<u64>,
    pub(crate) read: Arc<AtomicU64>,
}

/// Opens a trace. One that cannot be opened fails at its first byte, like one that cannot be read.
pub(crate) fn open(input: &FileInput, interrupt: &Interrupt) -> OpenTrace {
    let read = Arc::new(AtomicU64::new(0));
    let mut size = None;
    let inner: Box<dyn Read + Send> = match input {
        FileInput::Stdin => Box::new(io::stdin()),
        FileInput::File(path) => match File::open(path) {
            Ok(file) => {
                let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file);
                size = metadata.map(|metadata| metadata.len());
                Box::new(file)
            }
            Err(error) => Box::new(Failed(Some(error))),
        },
    };
    OpenTrace {
        reader: Counted {
            inner,
            read: Arc::clone(&read),
            interrupt: interrupt.clone(),
        },
        size,
        read,
    }
}

/// Counts the bytes that are read, compressed ones as they are, until Ctrl-C is pressed.
pub(crate) struct Counted {
    inner: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
    interrupt: Interrupt,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if self.interrupt.happened() {
            // Not the kind that means to try again.
            return Err(io::Error::other("interrupted"));
        }
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// What could not be opened.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
