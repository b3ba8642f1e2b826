//! Characters that nobody sees: the one list of them, and what can be read in them.

/// Whether a character shows nothing, changes the order in which others are shown, or is no character at all.
///
/// Control characters are not among them; [`char::is_control`] knows those.
///
/// ```
/// assert!(proofhouse_source::is_invisible('\u{202e}') && !proofhouse_source::is_invisible('é'));
/// ```
#[must_use]
pub fn is_invisible(c: char) -> bool {
    is_variation_selector(c)
        || matches!(
            c,
            // Soft hyphen, Arabic letter mark, Mongolian vowel separator.
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            // What joins and fills without a shape: of graphemes, Hangul and Khmer.
            | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
            // Zero width, and marks of direction.
            | '\u{200b}'..='\u{200f}'
            // Separators of lines and paragraphs, and what sets or overrides a direction.
            | '\u{2028}'..='\u{202e}'
            // Joiners, invisible operators, isolates.
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            // Annotations between lines, and what is no character: XML forbids some of them.
            | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            // Tags and further variation selectors, in which whole texts can be hidden; all of the block shows nothing.
            | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Whether a character only selects the form of the one before it, as in most emoji. It is invisible as well.
#[must_use]
pub fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}')
}

/// The ASCII letter, digit, sign or space that a tag character stands for: nobody sees it, and models read it.
#[must_use]
pub fn tag_letter(c: char) -> Option<char> {
    let code = u32::from(c).checked_sub(0xe0000)?;
    let letter = char::from(u8::try_from(code).ok()?);
    (letter.is_ascii_graphic() || letter == ' ').then_some(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_on_the_list() {
        for c in "\u{ad}\u{34f}\u{61c}\u{1160}\u{180b}\u{180e}\u{3164}\u{200b}\u{200d}\u{200e}\u{2028}\u{202a}\u{202e}\u{2060}\u{2066}\u{206f}\u{fe00}\u{fe0f}\
            \u{feff}\u{fff9}\u{fffb}\u{fffe}\u{ffff}\u{e0001}\u{e0041}\u{e007f}\u{e0100}\u{e01ef}\u{e0fff}"
            .chars()
        {
            assert!(is_invisible(c), "{c:?}");
            // Two places tell texts without any by this.
            assert!(!c.is_ascii() && !c.is_control(), "{c:?}");
        }
        for c in "a \n\u{1b}\u{a0}é工\u{e0ff}\u{fffd}\u{1f600}".chars() {
            assert!(!is_invisible(c), "{c:?}");
        }
    }

    #[test]
    fn tags_spell_ascii() {
        let spelled = |text: &str| text.chars().filter_map(tag_letter).collect::<String>();
        assert_eq!(spelled("a\u{e0053}\u{e0065}\u{e0020}\u{e007e}b"), "Se ~");
        // The tags of a language, of an end, and what only stands in the same block.
        assert_eq!(spelled("\u{e0001}\u{e007f}\u{e00e9}\u{e0141}"), "");
    }
}
