//! Pieces of an input: what a worker takes, and what it makes of it.

use serde_json::Value;

use crate::scanner::{PartialFindings, Worker};
use crate::trace::lines::{Damage, InputLine};
use crate::trace::message::TraceLine;
use crate::trace::reader::{ReadLine, TraceOrder, check_version, read_line};
use crate::trace::{LineError, ReadSummary, TraceItem, TraceReadError};

/// How many lines or messages a piece holds, however short they are.
pub(super) const MAX_ENTRIES: usize = 2048;

/// What holding an entry costs besides its text.
const ENTRY_BYTES: usize = 128;

/// Something for a worker to judge.
pub(super) enum TracePiece {
    /// Lines of our own format, still to be parsed.
    Lines(RawLines),
    /// Items of another format, and what was read to find them.
    Items(PieceItems),
}

/// Lines as they were read.
#[derive(Default)]
pub(super) struct RawLines {
    text: String,
    lines: Vec<RawLine>,
    /// Bytes of the input before the first of them.
    bytes_before: u64,
}

struct RawLine {
    number: u64,
    /// Where it ends in the text, and what is wrong with it.
    end: usize,
    error: Option<LineError>,
    damage: Option<Damage>,
    terminated: bool,
    /// Bytes of the input up to its end.
    bytes: u64,
}

impl RawLines {
    pub(super) fn new(bytes_before: u64) -> Self {
        Self {
            bytes_before,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, line: InputLine<'_>) {
        let error = match line.text {
            Ok(text) => {
                self.text.push_str(text);
                None
            }
            Err(error) => Some(error),
        };
        self.lines.push(RawLine {
            number: line.number,
            end: self.text.len(),
            error,
            damage: line.damage,
            terminated: line.terminated,
            bytes: 0,
        });
    }

    /// Says how many bytes of the input the last line ended at.
    pub(super) fn ended_at(&mut self, bytes: u64) {
        if let Some(line) = self.lines.last_mut() {
            line.bytes = bytes;
        }
    }

    pub(super) fn weight(&self) -> usize {
        self.text.len() + self.lines.len() * ENTRY_BYTES
    }

    pub(super) fn is_full(&self, bytes: usize) -> bool {
        self.text.len() >= bytes || self.lines.len() >= MAX_ENTRIES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Items in the order they were found.
#[derive(Default)]
pub(super) struct PieceItems {
    items: Vec<TraceItem>,
    weight: usize,
    /// What was read for them, as a whole since the beginning.
    pub(super) so_far: ReadSummary,
}

impl PieceItems {
    pub(super) fn push(&mut self, item: TraceItem) {
        self.weight += ENTRY_BYTES;
        if let TraceItem::Message { message, .. } = &item {
            self.weight += weight(&message.content) + message.raw.as_ref().map_or(0, weight);
        }
        self.items.push(item);
    }

    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    pub(super) fn is_full(&self, bytes: usize) -> bool {
        self.weight >= bytes || self.items.len() >= MAX_ENTRIES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// Roughly the bytes a value takes.
fn weight(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| key.len() + weight(value))
                .sum(),
            _ => 0,
        }
}

/// What a worker made of a piece.
#[derive(Default)]
pub(super) struct JudgedPiece {
    pub(super) part: PartialFindings,
    pub(super) read: PieceRead,
    /// In the order of the lines.
    pub(super) problems: Vec<LineError>,
    /// Why reading ends with this piece.
    pub(super) error: Option<TraceReadError>,
    pub(super) order: Order,
}

/// What was read.
pub(super) enum PieceRead {
    /// In this piece.
    Here(ReadSummary),
    /// Since the beginning.
    SoFar(ReadSummary),
}

impl Default for PieceRead {
    fn default() -> Self {
        Self::Here(ReadSummary::default())
    }
}

/// The sequence numbers of a piece, as far as its neighbours need to know them.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The first number or header, which has to be compared with the last of the piece before.
    first: Option<FirstEntry>,
    /// What came last, if a number or a header was there at all.
    last: Option<TraceOrder>,
    /// Whether there was a message, numbered or not.
    began: bool,
    /// Whether a line was skipped before the first number or header.
    skipped: bool,
}

/// The entry of a piece that its neighbour has to be asked about.
#[derive(Debug, Clone, Copy)]
struct FirstEntry {
    line: u64,
    /// Its number; a header has none.
    sequence: Option<u64>,
    /// How many problems come before it.
    problems: usize,
}

impl FirstEntry {
    fn follow(self, order: &mut TraceOrder) -> Option<LineError> {
        match self.sequence {
            Some(sequence) => order.number(self.line, sequence),
            None => order.header(self.line),
        }
    }
}

impl Order {
    /// A message with this number, or a header.
    fn entry(&mut self, line: u64, sequence: Option<u64>, problems: usize) -> Option<LineError> {
        let entry = FirstEntry {
            line,
            sequence,
            problems,
        };
        if let Some(last) = &mut self.last {
            return entry.follow(last);
        }
        let mut order = TraceOrder::default();
        if self.began && sequence.is_none() {
            order.unnumbered();
        } else {
            self.first = Some(entry);
        }
        let warning = entry.follow(&mut order);
        self.last = Some(order);
        // What is compared with the piece before is told then.
        warning.filter(|_| self.first.is_none())
    }

    fn unnumbered(&mut self) {
        self.began = true;
    }

    fn skipped(&mut self) {
        match &mut self.last {
            Some(last) => last.skipped(),
            None => self.skipped = true,
        }
    }
}

impl JudgedPiece {
    /// Does what could not be done without the piece before, after which the trace stands at `previous`.
    pub(super) fn follow(&mut self, previous: &mut TraceOrder) {
        if self.order.skipped {
            previous.skipped();
        }
        if let Some(first) = self.order.first
            && let Some(warning) = first.follow(previous)
        {
            if let PieceRead::Here(summary) = &mut self.read {
                summary.problem(warning.clone());
            }
            let position = first.problems.min(self.problems.len());
            self.problems.insert(position, warning);
        }
        if let Some(last) = self.order.last {
            *previous = last;
        } else if self.order.began {
            previous.unnumbered();
        }
    }
}

impl TracePiece {
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.weight(),
            Self::Items(items) => items.weight(),
        }
    }

    pub(super) fn judge(self, worker: &mut Worker<'_>) -> JudgedPiece {
        let mut judged = match self {
            Self::Lines(lines) => judge_lines(lines, worker),
            Self::Items(items) => judge_items(items, worker),
        };
        judged.part = worker.take();
        judged
    }
}

fn judge_items(items: PieceItems, worker: &mut Worker<'_>) -> JudgedPiece {
    let mut judged = JudgedPiece::default();
    for item in items.items {
        match item {
            TraceItem::Message {
                line,
                message,
                is_reading,
            } => {
                if is_reading {
                    worker.judge(line, &message);
                } else {
                    worker.feed_line(line, message);
                }
            }
            TraceItem::Problem(problem) => judged.problems.push(problem),
        }
    }
    judged.read = PieceRead::SoFar(items.so_far);
    judged
}

fn judge_lines(piece: RawLines, worker: &mut Worker<'_>) -> JudgedPiece {
    let mut judged = JudgedPiece::default();
    let mut summary = ReadSummary::default();
    let (mut start, mut bytes) = (0, piece.bytes_before);
    for line in piece.lines {
        summary.lines += 1;
        bytes = line.bytes;
        let number = line.number;
        let text = match line.error {
            Some(error) => Err(error),
            None => Ok(&piece.text[start..line.end]),
        };
        start = line.end;
        let found = read_line(&InputLine {
            number,
            text,
            damage: line.damage,
            terminated: line.terminated,
        });
        let ReadLine {
            entry,
            others,
            notes,
        } = match found {
            Ok(None) => continue,
            Ok(Some(found)) => found,
            Err(error) => {
                judged.order.skipped();
                summary.problem(error.clone());
                judged.problems.push(error);
                continue;
            }
        };
        for problem in notes.problems(number) {
            summary.problem(problem.clone());
            judged.problems.push(problem);
        }
        match entry {
            TraceLine::Header { version, .. } => {
                if let Err(error) = check_version(number, version) {
                    judged.error = Some(error);
                    break;
                }
                let problems = judged.problems.len();
                if let Some(warning) = judged.order.entry(number, None, problems) {
                    summary.problem(warning.clone());
                    judged.problems.push(warning);
                }
            }
            TraceLine::Message {
                mut message,
                numbered,
                unknown_fields,
                ..
            } => {
                summary.unknown_fields += unknown_fields;
                summary.messages += 1 + others.len() as u64;
                if numbered {
                    let problems = judged.problems.len();
                    let sequence = Some(message.sequence);
                    if let Some(warning) = judged.order.entry(number, sequence, problems) {
                        summary.problem(warning.clone());
                        judged.problems.push(warning);
                    }
                } else {
                    judged.order.unnumbered();
                    message.sequence = number;
                }
                for content in others {
                    let mut other = message.clone();
                    other.content = content;
                    worker.judge(number, &other);
                }
                worker.feed_line(number, message);
            }
        }
    }
    summary.bytes = bytes - piece.bytes_before;
    judged.read = PieceRead::Here(summary);
    judged
}
