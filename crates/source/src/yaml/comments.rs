//! The comments of a YAML text, for tools that must not lose them.

use granit_parser::{Event, Parser};

/// What comments a text has: those above the document, and those inside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comments {
    header: String,
    inner: usize,
}

impl Comments {
    /// Finds the comments of a text that is known to be valid YAML.
    ///
    /// ```
    /// use proofhouse_source::Comments;
    /// let comments = Comments::read("# licence\n\na: 1 # one\n# two\n");
    /// assert_eq!(comments.header(), "# licence\n\n");
    /// assert_eq!(comments.inner(), 2);
    /// ```
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut comments = Self::default();
        let mut in_document = false;
        let mut header_end = 0;
        let options = granit_parser::options! {
            emit_comments: true,
            max_buffered_comment_events: 100_000,
        };
        for (event, span) in Parser::new_from_str_with_options(text, options).map_while(Result::ok)
        {
            match event {
                Event::Comment(..) if in_document => comments.inner += 1,
                Event::Comment(..) => {
                    header_end = span.end.byte_offset().unwrap_or(header_end);
                }
                event if event.is_node() => in_document = true,
                _ => {}
            }
        }
        // The header is kept as it stands, with the blank lines between and after it.
        let rest = &text[header_end..];
        let blank = rest.len() - rest.trim_start_matches(['\n', '\r', ' ']).len();
        if header_end > 0 && text[..header_end].lines().all(is_comment_or_blank) {
            comments.header = text[..header_end + blank].to_owned();
        }
        comments
    }

    /// The lines above the document, comments and the blank lines between them.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }

    /// How many comments stand inside the document.
    #[must_use]
    pub fn inner(&self) -> usize {
        self.inner
    }
}

fn is_comment_or_blank(line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}').trim();
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_header_from_the_rest() {
        for (text, header, inner) in [
            ("a: 1\n", "", 0),
            ("# x\na: 1\n", "# x\n", 0),
            ("# x\n# y\n\na: 1\n", "# x\n# y\n\n", 0),
            ("\n# x\na: 1\n", "\n# x\n", 0),
            ("a: 1 # x\n", "", 1),
            ("a:\n  # x\n  b: 1\n# y\n", "", 2),
            ("# x\na: \"# no\"\nb: |\n  # no\n", "# x\n", 0),
        ] {
            let comments = Comments::read(text);
            assert_eq!(
                (comments.header(), comments.inner()),
                (header, inner),
                "{text:?}"
            );
        }
    }
}
