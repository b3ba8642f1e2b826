//! OpenTelemetry GenAI spans in OTLP JSON, seen as a trace.

use std::collections::VecDeque;
use std::io::Read;

use super::detect::{ObjectKey, has};
use super::gen_ai::Converter;
use super::otlp_walk::SpanSink;
use super::{Format, ImportOptions, TraceFormat};
use crate::trace::lines::{Damage, LineSplitter, json_error};
use crate::trace::repair::{Repairs, repair};
use crate::trace::stream::LineFormat;
use crate::trace::{LineError, LineErrorKind, ReadSummary, TraceItem, TraceReadError};

/// The lines of OTLP JSON: one document, or JSON Lines of documents. How spans become messages is described in
/// `docs/reference/traces.md`.
pub(crate) struct OtlpLines {
    queue: VecDeque<TraceItem>,
    converter: Converter,
    /// A document over several lines whose end has not come yet.
    open: Option<OpenDocument>,
    /// Whether the last document was broken, so that what follows may be the rest of it.
    lost: bool,
    max_document: usize,
}

/// The beginning of a document that goes on after its first line.
struct OpenDocument {
    line: u64,
    text: String,
    balance: Balance,
    damage: Option<Damage>,
    /// Whether its second line is indented, so that one that is not and opens begins another.
    indented: Option<bool>,
}

/// How deep the brackets of a text are open.
#[derive(Debug, Clone, Copy, Default)]
struct Balance {
    open: i64,
}

impl Balance {
    /// Goes on with a line. A text does not go on after its line, whatever the quotes say.
    fn line(&mut self, line: &str) {
        let (mut quoted, mut escaped) = (false, false);
        for byte in line.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'{' | b'[' if !quoted => self.open += 1,
                b'}' | b']' if !quoted => self.open -= 1,
                _ => {}
            }
        }
    }

    fn is_closed(self) -> bool {
        self.open <= 0
    }
}

impl TraceFormat for OtlpLines {
    const NAME: &'static str = "otlp";
    const SUMMARY: &'static str = "OpenTelemetry GenAI spans, OTLP JSON";

    fn recognises(keys: &[ObjectKey<'_>]) -> bool {
        [
            "resourceSpans",
            "resource_spans",
            "resourceLogs",
            "resource_logs",
        ]
        .iter()
        .any(|key| has(keys, key))
    }

    fn new(options: &ImportOptions) -> Self {
        Self {
            queue: VecDeque::new(),
            converter: Converter::new(options),
            open: None,
            lost: false,
            max_document: options.limits.max_document_bytes,
        }
    }
}

impl LineFormat for OtlpLines {
    fn step<R: Read>(
        &mut self,
        lines: &mut LineSplitter<R>,
        summary: &mut ReadSummary,
    ) -> Result<Option<TraceItem>, TraceReadError> {
        // A document may be a line, and longer than lines usually are.
        lines.set_max_line(self.max_document);
        loop {
            if let Some(item) = self.queue.pop_front() {
                return Ok(Some(item));
            }
            let Some(line) = lines.next_line()? else {
                if self.open.is_none() {
                    return Ok(None);
                }
                self.close(false, summary);
                continue;
            };
            let (number, terminated, damage) = (line.number, line.terminated, line.damage);
            let text = match line.text {
                Ok(text) if text.trim_ascii().is_empty() => continue,
                Ok(text) => text,
                Err(error) => {
                    self.close(true, summary);
                    self.queue.push_back(summary.problem(error));
                    continue;
                }
            };
            if self
                .open
                .as_ref()
                .is_some_and(|open| open.ends_before(text))
            {
                self.close(true, summary);
            }
            match &mut self.open {
                Some(open) if open.text.len() + text.len() < self.max_document => {
                    open.push(text, damage);
                    if open.balance.is_closed() {
                        self.close(true, summary);
                    }
                }
                Some(open) => {
                    let error = LineError {
                        line: open.line,
                        kind: LineErrorKind::TooLong,
                        message: format!("a document of more than {} bytes", self.max_document),
                    };
                    self.give_up(error, summary);
                }
                None if self.lost && !text.starts_with(['{', '[']) => {}
                None => {
                    let mut balance = Balance::default();
                    balance.line(text);
                    if balance.is_closed() {
                        let text = text.to_owned();
                        self.document(&text, (number, terminated), damage, summary);
                    } else {
                        self.open = Some(OpenDocument {
                            line: number,
                            text: text.to_owned(),
                            balance,
                            damage,
                            indented: None,
                        });
                    }
                }
            }
        }
    }
}

impl OpenDocument {
    fn push(&mut self, line: &str, damage: Option<Damage>) {
        self.indented.get_or_insert(line.starts_with([' ', '\t']));
        self.balance.line(line);
        self.text.push('\n');
        self.text.push_str(line);
        self.damage = self.damage.or(damage);
    }

    /// Whether a line shows that the document before it was just broken: because it begins one
    /// itself.
    fn ends_before(&self, line: &str) -> bool {
        if !line.starts_with(['{', '[']) {
            return false;
        }
        self.indented == Some(true) || is_document(line)
    }
}

impl OtlpLines {
    /// Takes the messages out of the document that is open.
    fn close(&mut self, terminated: bool, summary: &mut ReadSummary) {
        if let Some(open) = self.open.take() {
            let broken = self.document(&open.text, (open.line, terminated), open.damage, summary);
            self.lost |= broken;
        }
    }

    /// Reports an open document that cannot be read to its end, after what can be saved of it.
    fn give_up(&mut self, error: LineError, summary: &mut ReadSummary) {
        if let Some(open) = self.open.take() {
            let mut sink = SpanSink::new(open.line, summary, &mut self.queue, &mut self.converter);
            let _ = sink.read(&open.text);
            self.queue.push_back(summary.problem(error));
            self.lost = true;
        }
    }

    /// Takes the messages out of a document, or several one after the other. Says whether one broke
    /// off.
    fn document(
        &mut self,
        text: &str,
        (line, terminated): (u64, bool),
        damage: Option<Damage>,
        summary: &mut ReadSummary,
    ) -> bool {
        let place = self.queue.len();
        let mut sink = SpanSink::new(line, summary, &mut self.queue, &mut self.converter);
        let mut repairs = Repairs::default();
        let mut result = sink.read(text);
        if result.is_err()
            && let Some(mended) = repair(text, &mut repairs)
        {
            // What stood before the bad spot was taken already.
            sink.taken = std::mem::take(&mut sink.records);
            let again = sink.read(&mended);
            match again {
                Ok(()) => result = Ok(()),
                // The bad spot was another one, but what could be mended before it was.
                Err(_) if sink.records > sink.taken => {}
                Err(_) => repairs = Repairs::default(),
            }
        }
        let known = sink.known;
        let mut notes = std::mem::take(&mut sink.notes);
        notes.repairs = repairs;
        notes.repairs.not_utf8 = damage.map(|damage| damage.byte);
        if self.lost && !known {
            // Most likely the rest of a document that is reported already.
            return false;
        }
        self.lost = false;
        let broken = result.is_err();
        let error = match (result, damage) {
            (Ok(()), _) if known => None,
            (Ok(()), _) => Some(LineError {
                line,
                kind: LineErrorKind::NotAMessage,
                message: "not a message: neither `resourceSpans` nor `resourceLogs` is there"
                    .into(),
            }),
            (Err(_), Some(damage)) if !known => Some(damage.error(line)),
            (Err(error), _) => Some(json_error(line, terminated, &error)),
        };
        self.queue.extend(error.map(|error| summary.problem(error)));
        if known {
            for (position, problem) in notes.problems(line).enumerate() {
                let item = summary.problem(problem);
                self.queue.insert(place + position, item);
            }
        }
        broken
    }
}

/// Whether a line is a document by itself, though perhaps one that has to be mended.
fn is_document(line: &str) -> bool {
    let mut balance = Balance::default();
    balance.line(line);
    balance.is_closed() && Format::detect(line.as_bytes()) == Some(Format::Otlp)
}
