//! Texts from outside in HTML: nothing in them is hidden, and long ones are cut. That nothing in them is
//! markup is the work of `maud`.

use maud::{Markup, html};

use crate::text::{code_point, cut, is_hidden};

/// How much of a text is shown where it is not the content of a message.
const MOST_CHARACTERS: usize = 2_000;

/// How much of a name is shown: names stand in tables and headings.
const MOST_OF_NAME: usize = 160;

/// A text as content of an element; it is cut when it is long.
pub(super) fn text(text: &str) -> Markup {
    visible(&cut(text, MOST_CHARACTERS))
}

/// A name as content of an element.
pub(super) fn name(name: &str) -> Markup {
    visible(&cut(name, MOST_OF_NAME))
}

/// A name in a fixed font.
pub(super) fn code(text: &str) -> Markup {
    html! { code { (name(text)) } }
}

/// A text as content of an element, all of it. Characters that cannot be seen stand as their number.
pub(super) fn visible(text: &str) -> Markup {
    let is_shown_by_number = |c: char| is_hidden(c) && c != '\n' && c != '\t';
    html! {
        @for piece in text.split_inclusive(is_shown_by_number) {
            @match piece.char_indices().next_back() {
                Some((end, last)) if is_shown_by_number(last) => {
                    (piece[..end])
                    span.hidden-character { (code_point(last)) }
                }
                _ => { (piece) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_stand_as_their_number() {
        for (text, expected) in [
            ("", ""),
            ("a\n\tb", "a\n\tb"),
            ("<b>&\"", "&lt;b&gt;&amp;&quot;"),
            (
                "a\u{202e}\u{0}",
                "a<span class=\"hidden-character\">U+202E</span><span class=\"hidden-character\">U+0000</span>",
            ),
            (
                "\u{200b}ü",
                "<span class=\"hidden-character\">U+200B</span>ü",
            ),
        ] {
            assert_eq!(visible(text).into_string(), expected);
        }
    }
}
