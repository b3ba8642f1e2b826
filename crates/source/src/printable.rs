//! Texts from outside as a terminal or a file may show them: nothing in them can hide or take control.

use crate::invisible::{is_invisible, is_variation_selector};

/// Text with control characters made visible, so that a document cannot drive the terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c => seen(c),
        })
        .collect()
}

/// Like [`printable`], for what must stay on one line, such as a file name.
#[must_use]
pub fn printable_line(text: &str) -> String {
    text.chars().map(seen).collect()
}

/// The character, or the mark of one that is not shown. The form of an emoji takes no control: it stays, so that the emoji
/// looks as its writer meant it.
fn seen(c: char) -> char {
    if c.is_control() || (is_invisible(c) && !is_variation_selector(c)) {
        '\u{fffd}'
    } else {
        c
    }
}

/// A text with stars for its characters, as many as they have bytes; blanks and line ends stay, so that places do.
///
/// ```
/// assert_eq!(proofhouse_source::starred("a bé\n"), "* ***\n");
/// ```
#[must_use]
pub fn starred(text: &str) -> String {
    let stars = text.chars().flat_map(|c| {
        let (c, count) = if c.is_whitespace() && c.len_utf8() == 1 {
            (c, 1)
        } else {
            ('*', c.len_utf8())
        };
        std::iter::repeat_n(c, count)
    });
    stars.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(
            printable("a\x1b[31mb\r\n\tc\u{9b}"),
            "a\u{fffd}[31mb\u{fffd}\n\tc\u{fffd}"
        );
        assert_eq!(printable_line("a\nb\u{202e}c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(printable_line("\u{2764}\u{fe0f}"), "\u{2764}\u{fe0f}");
    }
}
