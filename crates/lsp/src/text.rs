//! An open document: its text, where its lines begin, and edits in the places of the protocol, which count UTF-16 units.

use serde_json::{Value, json};

/// Bytes of a document that are kept; beyond, it is only said that it is too large.
pub const MAX_BUFFER: usize = 16 << 20;

/// A text that is edited.
#[derive(Debug, Default)]
pub struct TextBuffer {
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
    /// Whether it grew beyond the limit, so that its text is not known any more.
    is_lost: bool,
}

/// A place as the protocol has it: line and UTF-16 units in it, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LspPlace {
    /// The line.
    pub line: usize,
    /// The UTF-16 units before it in the line.
    pub character: usize,
}

impl LspPlace {
    /// Reads a place; `None` when it is none.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        let number = |key: &str| usize::try_from(value.get(key)?.as_u64()?).ok();
        Some(Self {
            line: number("line")?,
            character: number("character")?,
        })
    }

    /// The place as JSON.
    #[must_use]
    pub fn value(self) -> Value {
        json!({"line": self.line, "character": self.character})
    }
}

impl TextBuffer {
    /// A document with this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut buffer = Self::default();
        buffer.set(text);
        buffer
    }

    /// The text; empty when it is lost.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the document is too large to be kept.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Replaces everything.
    pub fn set(&mut self, text: &str) {
        self.is_lost = text.len() > MAX_BUFFER;
        self.text.clear();
        if !self.is_lost {
            self.text.push_str(text);
        }
        self.index();
    }

    /// Replaces what is between two places. Places beyond the end are the end.
    pub fn edit(&mut self, from: LspPlace, to: LspPlace, text: &str) {
        if self.is_lost {
            return;
        }
        let (from, to) = (self.offset(from), self.offset(to));
        let (from, to) = (from.min(to), from.max(to));
        if self.text.len() - (to - from) + text.len() > MAX_BUFFER {
            self.is_lost = true;
            self.text.clear();
            self.index();
            return;
        }
        self.text.replace_range(from..to, text);
        // Lines before the edit begin where they did.
        let known = self.starts.partition_point(|start| *start <= from);
        self.starts.truncate(known);
        let rest = self.starts.last().copied().unwrap_or(0);
        let breaks = self.text[rest..].match_indices('\n');
        self.starts.extend(breaks.map(|(at, _)| rest + at + 1));
    }

    fn index(&mut self) {
        self.starts.clear();
        self.starts.push(0);
        let breaks = self.text.match_indices('\n');
        self.starts.extend(breaks.map(|(at, _)| at + 1));
    }

    /// The number of lines.
    #[must_use]
    pub fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// A line without its end; empty beyond the last one.
    #[must_use]
    pub fn line(&self, number: usize) -> &str {
        let Some(start) = self.starts.get(number).copied() else {
            return "";
        };
        let end = self
            .starts
            .get(number + 1)
            .map_or(self.text.len(), |next| next - 1);
        self.text[start..end].trim_end_matches('\r')
    }

    /// Where a line begins.
    #[must_use]
    pub fn line_start(&self, number: usize) -> usize {
        self.starts.get(number).copied().unwrap_or(self.text.len())
    }

    /// The byte of a place, at a character's boundary.
    #[must_use]
    pub fn offset(&self, place: LspPlace) -> usize {
        let Some(start) = self.starts.get(place.line).copied() else {
            return self.text.len();
        };
        let line = self.line(place.line);
        let mut units = 0;
        for (at, c) in line.char_indices() {
            if units >= place.character {
                return start + at;
            }
            units += c.len_utf16();
        }
        start + line.len()
    }

    /// The place of a byte.
    #[must_use]
    pub fn place(&self, offset: usize) -> LspPlace {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self
            .starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1);
        let start = self.line_start(line);
        let character = self.text[start..offset].encode_utf16().count();
        LspPlace { line, character }
    }

    /// The range of bytes as JSON.
    #[must_use]
    pub fn range(&self, range: std::ops::Range<usize>) -> Value {
        json!({"start": self.place(range.start).value(), "end": self.place(range.end).value()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, character: usize) -> LspPlace {
        LspPlace { line, character }
    }

    #[test]
    fn places_count_utf16_units() {
        let buffer = TextBuffer::new("a🙂b\r\nä\n");
        assert_eq!(buffer.offset(at(0, 3)), 5);
        assert_eq!(buffer.place(5), at(0, 3));
        assert_eq!(buffer.line(0), "a🙂b");
        assert_eq!(
            buffer.offset(at(0, 99)),
            6,
            "the end of the line, not its break"
        );
        assert_eq!(buffer.offset(at(9, 0)), buffer.text().len());
        assert_eq!(buffer.line_count(), 3);
    }

    /// Any edits leave the same index as a new document with the same text.
    #[test]
    fn edits_keep_the_index_of_lines() {
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        let pieces = ["", "x", "\n", "ä🙂\nb", "key: value\n", "\r\n"];
        let mut buffer = TextBuffer::new("one\ntwo\nthree\n");
        for _ in 0..2000 {
            let (from, to) = (at(next(8), next(12)), at(next(8), next(12)));
            buffer.edit(from, to, pieces[next(pieces.len())]);
            if buffer.text().len() > 400 {
                buffer.set("a\nb");
            }
            let fresh = TextBuffer::new(buffer.text());
            assert_eq!(buffer.starts, fresh.starts, "{:?}", buffer.text());
        }
    }

    #[test]
    fn a_document_that_grows_too_large_is_given_up() {
        let mut buffer = TextBuffer::new("a");
        buffer.edit(at(0, 0), at(0, 0), &"x".repeat(MAX_BUFFER));
        assert!(buffer.is_lost() && buffer.text().is_empty());
        buffer.edit(at(0, 0), at(0, 0), "b");
        assert!(buffer.is_lost(), "what was before is not known");
        buffer.set("b");
        assert!(!buffer.is_lost());
    }
}
