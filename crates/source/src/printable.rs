//! Texts from outside as a terminal or a file may show them: nothing in them can hide or take control.

/// Text with control characters made visible, so that a document cannot drive the terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if (c.is_control() && c != '\n' && c != '\t') || is_invisible(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// Like [`printable`], for what must stay on one line, such as a file name.
#[must_use]
pub fn printable_line(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            c if c.is_control() || is_invisible(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Whether a character shows nothing, or changes the order in which others are shown.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            // Tags and variation selectors, in which whole texts can be hidden.
            | '\u{e0000}'..='\u{e01ef}'
    )
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
    }
}
