//! What the binary prints: results on stdout, messages on stderr, colour only where a terminal shows it.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use proofhouse_report::quoting::{escaped_json, quoted};
use proofhouse_source::plain_error;
pub(crate) use proofhouse_source::{printable, printable_line};

use crate::exit_code::Exit;

/// An error that ends a command.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) message: String,
    pub(crate) exit: Exit,
}

impl CommandError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit: Exit::Usage,
        }
    }

    /// What a library says, on one line: that something else has to be asked for, or that it cannot be done.
    pub(crate) fn of(error: &dyn fmt::Display, is_usage: bool) -> Self {
        let message = printable_line(&error.to_string());
        if is_usage {
            Self::usage(message)
        } else {
            Self::cannot_run(message)
        }
    }

    pub(crate) fn cannot_run(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit: Exit::CannotRun,
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::cannot_run(error.to_string())
    }
}

/// Data for stdout, buffered. A closed pipe ends the output quietly, as `head` would have it.
pub(crate) struct StdoutData {
    out: Box<dyn Write>,
    buffer: String,
    closed: bool,
}

impl StdoutData {
    pub(crate) fn new() -> Self {
        Self::on(Box::new(anstream::stdout()))
    }

    /// Data for stderr, while stdout belongs to a protocol.
    pub(crate) fn on_stderr() -> Self {
        Self::on(Box::new(anstream::stderr()))
    }

    fn on(out: Box<dyn Write>) -> Self {
        Self {
            out,
            buffer: String::new(),
            closed: false,
        }
    }

    /// Writes text as it is.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), CommandError> {
        self.buffer.push_str(text);
        if self.buffer.len() > 64 << 10 {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), CommandError> {
        self.write(text)?;
        self.write("\n")
    }

    /// Writes a value as indented JSON. What cannot be seen, or could drive a terminal, is escaped.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), CommandError> {
        self.line(&escaped_json(&format!("{value:#}")))
    }

    /// Flushes; what cannot be written is an error unless the reader went away.
    pub(crate) fn finish(mut self) -> Result<(), CommandError> {
        self.flush()
    }

    fn flush(&mut self) -> Result<(), CommandError> {
        let text = std::mem::take(&mut self.buffer);
        if self.closed {
            return Ok(());
        }
        match self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush())
        {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(CommandError::cannot_run(format!("cannot write: {error}"))),
            Ok(()) => Ok(()),
        }
    }
}

/// A path as a message names it: on one line, whatever its name.
pub(crate) fn shown_path(path: &Path) -> String {
    printable_line(&path.display().to_string())
}

/// Whether only results and errors are printed. It belongs to the process, as stderr does.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// From now on, only results and errors are printed.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Whether only results and errors are printed.
pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Says what went wrong.
pub(crate) fn complain(message: &str) {
    let message = plain_error(message);
    let _ = writeln!(anstream::stderr(), "error: {}", printable(&message));
}

/// Says something to the person at the terminal, unless they want it quiet.
pub(crate) fn talk(message: &str) {
    if !is_quiet() {
        let message = plain_error(message);
        let _ = writeln!(anstream::stderr(), "{}", printable(&message));
    }
}

/// Says something that is styled, and whose parts from outside were made printable one by one.
pub(crate) fn talk_styled(message: &str) {
    if !is_quiet() {
        complain_styled(message);
    }
}

/// The same for errors, which are said in any case.
pub(crate) fn complain_styled(message: &str) {
    let _ = writeln!(anstream::stderr(), "{}", plain_error(message));
}

/// Whether stdout shows colours.
pub(crate) fn has_color() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

/// How many columns stdout has: those of the terminal, or as many as most pages show.
pub(crate) fn columns() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(DEFAULT_COLUMNS, |(width, _)| usize::from(width.0))
}

/// How many columns stderr has.
pub(crate) fn stderr_columns() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or(DEFAULT_COLUMNS, |(width, _)| usize::from(width.0))
}

/// The width of what is no terminal.
const DEFAULT_COLUMNS: usize = 80;

/// Shows how far long work has come, on a terminal only.
pub(crate) struct ProgressLine {
    total: usize,
    shown: bool,
    last: std::time::Instant,
}

impl ProgressLine {
    pub(crate) fn new(total: usize) -> Self {
        // Short work needs no progress.
        let shown = total >= 50 && io::stderr().is_terminal();
        Self {
            total,
            shown,
            last: std::time::Instant::now(),
        }
    }

    pub(crate) fn step(&mut self, done: usize) {
        if self.shown && self.last.elapsed().as_millis() >= 100 {
            self.last = std::time::Instant::now();
            let _ = write!(io::stderr(), "\r{done}/{} files", self.total);
        }
    }

    pub(crate) fn finish(self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
