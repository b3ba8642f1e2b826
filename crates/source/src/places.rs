//! Lines and columns of byte offsets, found without reading the text from its start every time.

use std::sync::OnceLock;

use crate::diagnostic::Span;

/// How many bytes lie between two known places.
const STRIDE: usize = 256;

/// Known places of one text, every few lines. They are worked out when somebody first asks,
/// so that a document with a hundred thousand findings takes no longer than it should.
#[derive(Debug, Default)]
pub(crate) struct PlaceIndex(OnceLock<Vec<KnownPlace>>);

#[derive(Debug, Clone, Copy)]
struct KnownPlace {
    offset: usize,
    line: usize,
    column: usize,
}

impl KnownPlace {
    const START: Self = Self {
        offset: 0,
        line: 1,
        column: 1,
    };

    fn step(&mut self, c: char) {
        self.offset += c.len_utf8();
        match c {
            '\n' => {
                self.line += 1;
                self.column = 1;
            }
            // A byte order mark is no character of the line.
            '\u{feff}' if self.column == 1 => {}
            _ => self.column += 1,
        }
    }
}

impl PlaceIndex {
    /// Turns a byte range of `text` into a span that ends on the line it starts on.
    pub(crate) fn span(&self, text: &str, start: usize, end: usize) -> Span {
        let start = floor_char_boundary(text, start);
        let end = floor_char_boundary(text, end.max(start));
        let slice = &text[start..end];
        let first_line = slice.split(['\n', '\r']).next().unwrap_or(slice);
        let place = self.place(text, start);
        Span {
            offset: start,
            length: first_line.trim_end().len(),
            line: place.line,
            column: place.column,
        }
    }

    fn place(&self, text: &str, offset: usize) -> KnownPlace {
        let known = self.0.get_or_init(|| known_places(text));
        let after = known.partition_point(|place| place.offset <= offset);
        let mut place = known[..after].last().copied().unwrap_or(KnownPlace::START);
        for c in text[place.offset..offset].chars() {
            place.step(c);
        }
        place
    }
}

fn known_places(text: &str) -> Vec<KnownPlace> {
    let mut places = Vec::with_capacity(text.len() / STRIDE);
    let mut place = KnownPlace::START;
    let mut next = STRIDE;
    for c in text.chars() {
        if place.offset >= next {
            places.push(place);
            next = place.offset + STRIDE;
        }
        place.step(c);
    }
    places
}

fn floor_char_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(text: &str, start: usize, end: usize) -> Span {
        PlaceIndex::default().span(text, start, end)
    }

    #[test]
    fn counts_columns_in_characters_and_tolerates_odd_offsets() {
        let found = span("äö: x\n", 5, 6);
        assert_eq!((found.line, found.column), (1, 4));
        assert_eq!(span("ä", 1, 99).offset, 0);
        assert_eq!(span("\u{feff}a", 3, 4).column, 1);
        assert_eq!(span("a\n\u{feff}b", 5, 6).column, 1);
        assert_eq!(span("a\u{feff}b", 4, 5).column, 3);
        assert_eq!(span("a  \r\nb", 0, 6).length, 1);
    }

    proptest! {
        #[test]
        fn known_places_change_nothing(line in "[a-zäö\u{feff}🙂\n]{1,40}", times in 1usize..200, at in 0usize..8000) {
            let text = line.repeat(times);
            let found = span(&text, at, at);
            let before = &text[..found.offset];
            let line = before.rsplit('\n').next().unwrap();
            prop_assert_eq!(found.line, before.matches('\n').count() + 1);
            prop_assert_eq!(found.column, line.trim_start_matches('\u{feff}').chars().count() + 1);
        }
    }
}
