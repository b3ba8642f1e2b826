//! Scanning a whole input with as many threads as one likes, in flat memory.
//!
//! One thread reads and cuts the input into pieces, workers judge the pieces, and the calling
//! thread puts what they found together in the order of the pieces. So the result is that of one
//! [`Session`] which is fed message by message, whatever the number of workers. Lines of our own
//! format do not depend on each other and are parsed by the workers, which is most of the work;
//! other formats are read by the one reader.

mod budget;
mod piece;
mod threads;

use std::io::Read;
use std::num::NonZero;

use crate::import::{Format, ImportOptions, open_lines, source};
use crate::scanner::{ScanSession, Scanner};
use crate::trace::{LineError, MessageSource, ReadSummary, TraceItem, TraceReadError};

/// How an input is scanned.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// The format; told by the content when it is absent.
    pub format: Option<Format>,
    /// How other formats are read, and how much of any.
    pub import: ImportOptions,
    /// How many threads judge messages, 256 at most. With one, nothing is started and the calling
    /// thread does all, as it does where the system has no threads to give.
    pub jobs: NonZero<usize>,
    /// How much of the input one of them takes at a time.
    pub piece_bytes: usize,
}

impl Default for ScanOptions {
    /// The format by content, usual limits, one thread, pieces of 256 KiB.
    fn default() -> Self {
        Self {
            format: None,
            import: ImportOptions::default(),
            jobs: NonZero::<usize>::MIN,
            piece_bytes: 256 << 10,
        }
    }
}

/// What happens during a scan. Problems come in the order of the lines.
#[derive(Debug)]
#[non_exhaustive]
pub enum ScanEvent<'a> {
    /// Something about a line.
    Problem(LineError),
    /// This much has been judged.
    Progress(&'a ReadSummary),
}

/// What a scan found.
pub struct Scanned<'s> {
    /// The format that was read.
    pub format: Format,
    /// What the indicators found.
    pub session: ScanSession<'s>,
    /// What was read.
    pub summary: ReadSummary,
    /// Why reading ended before the end; everything before it was judged.
    pub error: Option<TraceReadError>,
}

impl Scanner {
    /// Scans an input of any format, compressed or not, from its beginning to its end.
    ///
    /// The result does not depend on the number of threads. A bad line is told to `on_event`,
    /// counted and skipped.
    ///
    /// # Panics
    ///
    /// When an evaluator that was given to the scanner panics.
    ///
    /// ```
    /// use proofhouse_detect::{ScanOptions, Scanner};
    /// use std::num::NonZero;
    ///
    /// let document = proofhouse_oatf::load(r#"
    /// oatf: "0.1"
    /// attack:
    ///   execution: {mode: mcp_server, state: {tools: []}}
    ///   indicators: [{surface: tools/call, target: arguments, pattern: {contains: passwd}}]
    /// "#).unwrap().document;
    /// let scanner = Scanner::builder().add("passwd", document).build().unwrap();
    ///
    /// let trace = r#"{"protocol": "mcp", "operation": "tools/list", "content": {}}
    /// {"protocol": "mcp", "operation": "tools/call", "content": {"arguments": "/etc/passwd"}}
    /// "#;
    /// let options = ScanOptions { jobs: NonZero::new(2).unwrap(), ..ScanOptions::default() };
    /// let scanned = scanner.scan_input(trace.as_bytes(), &options, |_| {});
    /// assert_eq!(scanned.summary.messages, 2);
    /// let verdict = &scanned.session.verdicts()[0];
    /// assert_eq!(verdict.indicators[0].evidence[0].line, Some(2));
    /// ```
    pub fn scan_input<R: Read + Send>(
        &self,
        input: R,
        options: &ScanOptions,
        mut on_event: impl FnMut(ScanEvent<'_>),
    ) -> Scanned<'_> {
        let (format, lines) = open_lines(input, options.format, &options.import);
        let lines = match options.jobs.get() {
            1 => lines,
            _ => match threads::scan(self, format, lines, options, &mut on_event) {
                Ok(scanned) => return scanned,
                Err(lines) => *lines,
            },
        };
        let messages = source(lines, format, &options.import);
        self.scan_alone(format, messages, on_event)
    }

    fn scan_alone(
        &self,
        format: Format,
        mut messages: Box<dyn MessageSource + Send + '_>,
        mut on_event: impl FnMut(ScanEvent<'_>),
    ) -> Scanned<'_> {
        /// How many messages are judged between two looks at how far it is.
        const STRIDE: u64 = 1024;
        let mut session = self.session();
        let mut error = None;
        let mut in_parts = 0;
        while let Some(item) = messages.next() {
            match item {
                Ok(TraceItem::Message {
                    line,
                    message,
                    is_reading,
                }) => {
                    if is_reading {
                        session.feed_reading(line, &message);
                    } else {
                        session.feed_line(line, &message);
                    }
                    for problem in session.take_in_parts() {
                        in_parts += 1;
                        on_event(ScanEvent::Problem(problem));
                    }
                    if session.messages().is_multiple_of(STRIDE) {
                        on_event(ScanEvent::Progress(messages.summary()));
                    }
                }
                Ok(TraceItem::Problem(problem)) => on_event(ScanEvent::Problem(problem)),
                Err(end) => error = Some(end),
            }
        }
        let mut summary = messages.summary().clone();
        summary.count_in_parts(in_parts);
        on_event(ScanEvent::Progress(&summary));
        Scanned {
            format,
            session,
            summary,
            error,
        }
    }
}
