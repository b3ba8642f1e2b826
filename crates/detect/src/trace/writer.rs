//! Writes a trace, line by line, without the secrets.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::message::{HEADER_KEY, RedactedMessage, TRACE_VERSION, TraceMessage};
use super::redact::{RedactedValue, Redactor};

/// Writes messages as JSON Lines.
///
/// Each entry is handed to the writer in one call of [`Write::write_all`] and includes its line end,
/// so that a process that dies leaves whole lines, and at most the last one cut off. Nothing is held
/// back here: wrap the writer in a [`std::io::BufWriter`] for speed, and call
/// [`flush`](Self::flush) when someone waits for the entries. [`finish`](Self::finish) flushes.
///
/// ```
/// use proofhouse_detect::{TraceMessage, Redactor, TraceWriter};
/// use serde_json::json;
///
/// let mut writer = TraceWriter::new(Vec::new())
///     .with_redactor(Redactor::new(["hunter2"]).unwrap());
/// writer.write(&TraceMessage::new("mcp", "tools/call", json!({"token": "hunter2"}))).unwrap();
/// assert_eq!(
///     writer.finish().unwrap(),
///     b"{\"seq\":1,\"protocol\":\"mcp\",\"operation\":\"tools/call\",\"content\":{\"token\":\"[redacted]\"}}\n",
/// );
/// ```
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    inner: W,
    redactor: Option<Redactor>,
    line: Vec<u8>,
}

/// The capacity the line buffer keeps after a long entry.
const KEPT: usize = 1 << 20;

impl<W: Write> TraceWriter<W> {
    /// A writer that redacts nothing.
    pub fn new(inner: W) -> Self {
        Self {
            inner,
            redactor: None,
            line: Vec::new(),
        }
    }

    /// Redacts every text of every entry from now on, before anything is shortened.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Writes the header line: the version of the format, then the metadata. To be called first.
    ///
    /// # Errors
    ///
    /// When the writer fails.
    ///
    /// ```
    /// use proofhouse_detect::TraceWriter;
    ///
    /// let mut writer = TraceWriter::new(Vec::new());
    /// let metadata = serde_json::json!({"tool": "example"});
    /// writer.write_header(metadata.as_object().unwrap()).unwrap();
    /// assert_eq!(writer.finish().unwrap(), b"{\"proofhouse_trace\":1,\"tool\":\"example\"}\n");
    /// ```
    pub fn write_header(&mut self, metadata: &Map<String, Value>) -> io::Result<()> {
        let mut header = Map::new();
        header.insert(HEADER_KEY.to_owned(), TRACE_VERSION.into());
        header.extend(
            metadata
                .iter()
                .filter(|(key, _)| *key != HEADER_KEY)
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        let header = Value::Object(header);
        self.line.clear();
        match &self.redactor {
            Some(redactor) => {
                serde_json::to_writer(&mut self.line, &RedactedValue(&header, redactor))?;
            }
            None => serde_json::to_writer(&mut self.line, &header)?,
        }
        self.write_line()
    }

    /// Writes one message.
    ///
    /// # Errors
    ///
    /// When the writer fails.
    pub fn write(&mut self, message: &TraceMessage) -> io::Result<()> {
        self.line.clear();
        match &self.redactor {
            Some(redactor) => {
                serde_json::to_writer(&mut self.line, &RedactedMessage(message, redactor))?;
            }
            None => serde_json::to_writer(&mut self.line, message)?,
        }
        self.write_line()
    }

    fn write_line(&mut self) -> io::Result<()> {
        self.line.push(b'\n');
        let written = self.inner.write_all(&self.line);
        self.line.clear();
        self.line.shrink_to(KEPT);
        written
    }

    /// Flushes the writer.
    ///
    /// # Errors
    ///
    /// When the writer fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    /// Flushes, and gives the writer back.
    ///
    /// # Errors
    ///
    /// When the writer fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.inner.flush()?;
        Ok(self.inner)
    }
}
