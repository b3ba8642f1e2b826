//! Texts from outside in HTML: nothing in them is markup, and nothing in them is hidden.

use std::fmt::Write;

use crate::report::text::{cut, is_hidden, number_of};

/// How much of a text is shown where it is not the content of a message.
const MOST_CHARACTERS: usize = 2_000;

/// A text as content of an element; it is cut when it is long.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push(&cut(text, MOST_CHARACTERS), &mut out);
    out
}

/// How much of a name is shown: names stand in tables and headings.
const MOST_OF_NAME: usize = 160;

/// A name as content of an element.
pub(super) fn short(text: &str) -> String {
    escape(&cut(text, MOST_OF_NAME))
}

/// A name in a fixed font.
pub(super) fn code(text: &str) -> String {
    format!("<code>{}</code>", short(text))
}

/// Writes a text as content of an element, all of it. Characters that cannot be seen stand as their number.
pub(super) fn push(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if is_hidden(c) => {
                let number = number_of(c);
                let number = number.trim_matches(['<', '>']);
                let _ = write!(out, "<span class=\"hidden-character\">{number}</span>");
            }
            c => out.push(c),
        }
    }
}
