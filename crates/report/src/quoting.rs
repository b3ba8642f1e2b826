//! Texts from outside between our own words: JSON and quotes in which everything is seen.

use crate::text::is_hidden;

/// JSON with characters that are not visible as escapes, which means the same. They can only stand in
/// texts, but for the line feeds between lines.
#[must_use]
pub fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_hidden(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// A text from outside in quotes, on one line and no wider than `width` characters: what cannot be
/// seen is written out.
#[must_use]
pub fn quoted(text: &str, width: usize) -> String {
    let mut shown = String::from("\"");
    let mut used = 2;
    for c in text.chars() {
        let c = if is_hidden(c) {
            c.escape_default().to_string()
        } else {
            c.to_string()
        };
        used += c.chars().count();
        if used > width {
            shown.push('…');
            break;
        }
        shown.push_str(&c);
    }
    shown.push('"');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_shows_everything_and_means_the_same() {
        let text = "a\u{9b}\u{7f}\u{202e}\u{200b}\u{feff}\u{e0041}\u{61c}é😀\n\t\u{1b}";
        let value = serde_json::json!({ "k\u{202e}": [text] });
        let escaped = escaped_json(&format!("{value:#}"));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&escaped).unwrap(),
            value
        );
        assert!(
            escaped.contains(r"a\u009b\u007f\u202e\u200b\ufeff\udb40\udc41\u061cé😀\n\t\u001b")
        );
        assert!(!escaped.chars().any(|c| c != '\n' && is_hidden(c)));
    }

    #[test]
    fn quotes_stay_on_their_line_and_within_their_width() {
        for (text, width, expected) in [
            ("plain é", 20, "\"plain é\""),
            ("a\nb\x1b[2J\u{202e}", 40, r#""a\nb\u{1b}[2J\u{202e}""#),
            ("abcdefgh", 6, "\"abcd…\""),
            ("a\u{fe0f}", 20, r#""a\u{fe0f}""#),
            ("abcd", 6, "\"abcd\""),
            ("", 6, "\"\""),
        ] {
            assert_eq!(quoted(text, width), expected);
        }
    }
}
