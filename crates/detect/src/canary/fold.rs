//! What letters and digits look like: the same text in other alphabets, widths and styles is the same text.

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Letters of other alphabets that look like Latin ones, with what they look like. Compatibility forms, such as
/// full-width or mathematical letters, need no row.
const LOOKALIKES: &[(char, u8)] = &[
    // Cyrillic.
    ('А', b'A'),
    ('В', b'B'),
    ('С', b'C'),
    ('Е', b'E'),
    ('Ғ', b'F'),
    ('Ԍ', b'G'),
    ('Н', b'H'),
    ('І', b'I'),
    ('Ӏ', b'I'),
    ('Ј', b'J'),
    ('К', b'K'),
    ('М', b'M'),
    ('О', b'O'),
    ('Р', b'P'),
    ('Ԛ', b'Q'),
    ('Ѕ', b'S'),
    ('Т', b'T'),
    ('Ѵ', b'V'),
    ('Ԝ', b'W'),
    ('Х', b'X'),
    ('У', b'Y'),
    ('Ү', b'Y'),
    ('З', b'3'),
    ('а', b'a'),
    ('в', b'b'),
    ('с', b'c'),
    ('ԁ', b'd'),
    ('е', b'e'),
    ('ԍ', b'g'),
    ('һ', b'h'),
    ('н', b'h'),
    ('і', b'i'),
    ('ӏ', b'l'),
    ('ј', b'j'),
    ('к', b'k'),
    ('м', b'm'),
    ('п', b'n'),
    ('о', b'o'),
    ('р', b'p'),
    ('ԛ', b'q'),
    ('г', b'r'),
    ('ѕ', b's'),
    ('т', b't'),
    ('ѵ', b'v'),
    ('ԝ', b'w'),
    ('х', b'x'),
    ('у', b'y'),
    ('ү', b'y'),
    ('б', b'6'),
    ('з', b'3'),
    // Greek.
    ('Α', b'A'),
    ('Β', b'B'),
    ('Ϲ', b'C'),
    ('Ε', b'E'),
    ('Ϝ', b'F'),
    ('Η', b'H'),
    ('Ι', b'I'),
    ('Ϳ', b'J'),
    ('Κ', b'K'),
    ('Μ', b'M'),
    ('Ν', b'N'),
    ('Ο', b'O'),
    ('Ρ', b'P'),
    ('Τ', b'T'),
    ('Υ', b'Y'),
    ('Χ', b'X'),
    ('Ζ', b'Z'),
    ('α', b'a'),
    ('ε', b'e'),
    ('η', b'n'),
    ('ι', b'i'),
    ('ϳ', b'j'),
    ('κ', b'k'),
    ('ν', b'v'),
    ('ο', b'o'),
    ('ρ', b'p'),
    ('σ', b'o'),
    ('τ', b't'),
    ('υ', b'u'),
    ('χ', b'x'),
    ('γ', b'y'),
    ('ω', b'w'),
    // Armenian.
    ('Լ', b'L'),
    ('Օ', b'O'),
    ('Ս', b'U'),
    ('Տ', b'S'),
    ('ց', b'g'),
    ('հ', b'h'),
    ('ո', b'n'),
    ('օ', b'o'),
    ('զ', b'q'),
    ('ս', b'u'),
    // Latin letters of other kinds: without a dot, small capitals, letters of the phonetic alphabet.
    ('ı', b'i'),
    ('ɑ', b'a'),
    ('ɡ', b'g'),
    ('ɩ', b'i'),
    ('ᴀ', b'A'),
    ('ʙ', b'B'),
    ('ᴄ', b'C'),
    ('ᴅ', b'D'),
    ('ᴇ', b'E'),
    ('ꜰ', b'F'),
    ('ɢ', b'G'),
    ('ʜ', b'H'),
    ('ɪ', b'I'),
    ('ᴊ', b'J'),
    ('ᴋ', b'K'),
    ('ʟ', b'L'),
    ('ᴍ', b'M'),
    ('ɴ', b'N'),
    ('ᴏ', b'O'),
    ('ᴘ', b'P'),
    ('ʀ', b'R'),
    ('ꜱ', b'S'),
    ('ᴛ', b'T'),
    ('ᴜ', b'U'),
    ('ᴠ', b'V'),
    ('ᴡ', b'W'),
    ('ʏ', b'Y'),
    ('ᴢ', b'Z'),
];

/// The first and the last of the characters that look like nothing and stand for ASCII ones.
const TAGS: std::ops::RangeInclusive<u32> = 0xE0020..=0xE007E;
const FIRST_TAG: u32 = 0xE0000;

/// The letters and digits of a text: what patterns and texts have in common. Those that look like ASCII ones are ASCII,
/// others are in lower case, and accents are left out.
pub(super) fn push_significant(text: &str, out: &mut Vec<u8>) {
    for c in text.chars() {
        if c.is_ascii() {
            if c.is_ascii_alphanumeric() {
                out.push(c as u8);
            }
        } else {
            push_folded(c, out);
        }
    }
}

fn push_folded(c: char, out: &mut Vec<u8>) {
    let code = u32::from(c);
    if TAGS.contains(&code) {
        let tagged = u8::try_from(code - FIRST_TAG).unwrap_or_default();
        if tagged.is_ascii_alphanumeric() {
            out.push(tagged);
        }
        return;
    }
    let mut buffer = [0; 4];
    decompose_compatible(c, |part| {
        if part.is_ascii_alphanumeric() {
            out.push(part as u8);
        } else if let Some(like) = lookalike(part) {
            out.push(like);
        } else if part.is_alphanumeric() && !is_combining_mark(part) {
            for lower in part.to_lowercase() {
                out.extend_from_slice(lower.encode_utf8(&mut buffer).as_bytes());
            }
        }
    });
}

fn lookalike(c: char) -> Option<u8> {
    // All of them stand in a few blocks; most other letters are told by their numbers alone.
    let has_some = matches!(u32::from(c), 0x0131 | 0x0250..=0x02AF | 0x0370..=0x058F | 0x1D00..=0x1D2B | 0xA700..=0xA7FF);
    let mut rows = LOOKALIKES.iter().filter(|_| has_some);
    rows.find(|(letter, _)| *letter == c).map(|(_, like)| *like)
}

pub(super) fn significant(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    push_significant(text, &mut out);
    out
}

/// The first letters and digits of a text, about as many bytes as are wanted, and whether these are all.
pub(super) fn significant_head(text: &str, wanted: usize) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    for (at, c) in text.char_indices() {
        if out.len() >= wanted {
            let has_more = text[at..].chars().any(char::is_alphanumeric);
            return (out, !has_more);
        }
        push_significant(c.encode_utf8(&mut [0; 4]), &mut out);
    }
    (out, true)
}

/// The last letters and digits of a text, about as many bytes as are wanted.
pub(super) fn significant_tail(text: &str, wanted: usize) -> Vec<u8> {
    let (mut one, mut count, mut start) = (Vec::new(), 0, text.len());
    for (at, c) in text.char_indices().rev() {
        if count >= wanted {
            break;
        }
        one.clear();
        push_significant(c.encode_utf8(&mut [0; 4]), &mut one);
        count += one.len();
        start = at;
    }
    significant(&text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_the_same_is_the_same() {
        let same = |text: &str| String::from_utf8(significant(text)).unwrap();
        for text in [
            "KEY-93b4",
            "КЕҮ 93b4",
            "ＫＥＹ－９３ｂ４",
            "𝐊𝐄𝐘-𝟗𝟑𝐛𝟒",
            "Ke\u{301}y93b4",
            "\u{E004B}\u{E0065}\u{E0079}\u{E002D}93b4",
            "ᴋᴇʏ93b4",
            "ⓚⓔⓨ ⁹³ᵇ⁴",
        ] {
            assert_eq!(same(text).to_lowercase(), "key93b4", "{text}");
        }
        assert_eq!(same("ключ"), "kлюч");
        assert_eq!(same("鍵 é"), "鍵e");
        for (letter, _) in LOOKALIKES {
            assert!(lookalike(*letter).is_some(), "{letter}");
        }
    }

    #[test]
    fn heads_and_tails_are_parts_of_the_whole() {
        for text in ["", "ab", "a-b c.d", "é漢字 x", "ＡＢ-ＣＤ"] {
            let whole = significant(text);
            for wanted in 0..8 {
                let (head, is_whole) = significant_head(text, wanted);
                assert!(whole.starts_with(&head), "{text}");
                assert_eq!(is_whole, head == whole, "{text} {wanted}");
                assert!(whole.ends_with(&significant_tail(text, wanted)), "{text}");
            }
        }
    }
}
