//! What is looked for: letters and digits that only a canary, or a canary in an encoding, has.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::fold::significant;
use super::form::{CanaryEncoding, CanaryShape};

/// Letters and digits to look for.
#[derive(Debug)]
pub(super) struct CanaryPattern {
    /// Which canary they tell of.
    pub(super) canary: usize,
    pub(super) text: Vec<u8>,
    /// Whether upper and lower case differ, as they do in base64.
    pub(super) exact: bool,
    pub(super) encodings: &'static [CanaryEncoding],
    /// How the canary stands there; of the canary itself, the text tells.
    pub(super) shape: Option<CanaryShape>,
    /// Whether it is also looked for in pieces that several messages have.
    pub(super) in_pieces: bool,
}

/// Adds every pattern of a canary.
pub(super) fn add(canary: usize, text: &str, patterns: &mut Vec<CanaryPattern>) {
    use CanaryEncoding::{Base32, Base64, CharacterCodes, Hex, Reversed, Rot13};
    use CanaryShape::{AsWritten, CaseFolded, Split};
    let first = patterns.len();
    let mut push = |text: Vec<u8>, exact, encodings: &'static [CanaryEncoding], shape| {
        let is_new = patterns[first..]
            .iter()
            .all(|known: &CanaryPattern| known.text != text || known.exact != exact);
        if is_new {
            patterns.push(CanaryPattern {
                canary,
                text,
                exact,
                encodings,
                shape,
                in_pieces: !matches!(encodings, [CharacterCodes] | [_, _, ..])
                    && matches!(shape, None | Some(AsWritten)),
            });
        }
    };
    let reversed: String = text.chars().rev().collect();
    push(significant(text), false, &[], None);
    push(significant(&reversed), false, &[Reversed], None);
    push(significant(&rot13(text)), false, &[Rot13], Some(AsWritten));
    let bare: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    let (lower, upper) = (text.to_lowercase(), text.to_uppercase());
    let encoded: [(&str, [&'static [CanaryEncoding]; 3], CanaryShape); 5] = [
        (text, [&[Base64], &[Hex], &[Base32]], AsWritten),
        (&lower, [&[Base64], &[Hex], &[Base32]], CaseFolded),
        (&upper, [&[Base64], &[Hex], &[Base32]], CaseFolded),
        (&bare, [&[Base64], &[Hex], &[Base32]], Split),
        (
            &reversed,
            [&[Base64, Reversed], &[Hex, Reversed], &[Base32, Reversed]],
            AsWritten,
        ),
    ];
    for (form, [in_base64, in_hex, in_base32], shape) in encoded {
        for alignment in 0..3 {
            push(base64(form, alignment), true, in_base64, Some(shape));
        }
        push(hex(form), false, in_hex, Some(shape));
        for alignment in 0..5 {
            push(base32(form, alignment), false, in_base32, Some(shape));
        }
    }
    for alignment in 0..3 {
        let mut turned = base64(text, alignment);
        turned.reverse();
        push(turned, true, &[Reversed, Base64], Some(AsWritten));
    }
    let mut turned = hex(text);
    turned.reverse();
    push(turned, false, &[Reversed, Hex], Some(AsWritten));
    let codes: [fn(u8) -> String; 4] = [
        |byte| byte.to_string(),
        |byte| format!("{byte:03}"),
        |byte| format!("{byte:03o}"),
        |byte| format!("{byte:08b}"),
    ];
    for code in codes {
        let digits: String = text.bytes().map(code).collect();
        push(
            digits.into_bytes(),
            false,
            &[CharacterCodes],
            Some(AsWritten),
        );
    }
}

/// Every letter of the Latin alphabet by the one thirteen places on.
fn rot13(text: &str) -> String {
    let turned = |c: char| match c {
        'a'..='m' | 'A'..='M' => char::from(c as u8 + 13),
        'n'..='z' | 'N'..='Z' => char::from(c as u8 - 13),
        other => other,
    };
    text.chars().map(turned).collect()
}

/// The part of the base32 of a text that its neighbours do not change, `before` bytes after a boundary.
fn base32(text: &str, before: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits = |byte: u8| (0..8).rev().map(move |bit| byte >> bit & 1);
    // What stands before may be anything; its bits are only counted.
    let skipped = (before * 8).div_ceil(5) * 5 - before * 8;
    let bits: Vec<u8> = text.bytes().flat_map(bits).skip(skipped).collect();
    let digits = bits.chunks_exact(5);
    digits
        .map(|five| five.iter().fold(0, |digit, bit| digit << 1 | bit))
        .map(|digit| ALPHABET[usize::from(digit & 31)])
        .collect()
}

/// The part of the base64 of a text that its neighbours do not change, `before` bytes after a boundary. `+` and `/`
/// are left out, as they are in what is looked through, so that both alphabets are one.
fn base64(text: &str, before: usize) -> Vec<u8> {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(text.as_bytes());
    let encoded = STANDARD_NO_PAD.encode(&bytes);
    let (start, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    significant(encoded.get(start..end).unwrap_or_default())
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble & 15)];
    let bytes = text.bytes();
    bytes
        .flat_map(|byte| [digit(byte >> 4), digit(byte)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_is_that_of_the_standard() {
        // RFC 4648: "foobar" is MZXW6YTBOI, and its last digit has bits to spare.
        assert_eq!(base32("foobar", 0), b"MZXW6YTBO");
        assert_eq!(base32("obar", 2), b"6YTBO");
    }
}
