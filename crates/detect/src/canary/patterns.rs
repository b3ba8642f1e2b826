//! What is looked for: letters and digits that only a canary, or a canary in an encoding, has.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

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
}

/// The letters and digits of a text, those beyond ASCII in lower case: what patterns and texts have in common.
pub(super) fn push_significant(text: &str, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    for c in text.chars() {
        if c.is_ascii() {
            if c.is_ascii_alphanumeric() {
                out.push(c as u8);
            }
        } else if c.is_alphanumeric() {
            for lower in c.to_lowercase() {
                out.extend_from_slice(lower.encode_utf8(&mut buffer).as_bytes());
            }
        }
    }
}

fn significant(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    push_significant(text, &mut out);
    out
}

/// Adds every pattern of a canary.
pub(super) fn add(canary: usize, text: &str, patterns: &mut Vec<CanaryPattern>) {
    use CanaryEncoding::{Base64, Hex, Reversed};
    use CanaryShape::{AsWritten, CaseFolded, Split};
    let first = patterns.len();
    let mut push = |text: Vec<u8>, exact, encodings, shape| {
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
            });
        }
    };
    let reversed: String = text.chars().rev().collect();
    push(significant(text), false, &[], None);
    push(significant(&reversed), false, &[Reversed], None);
    let bare: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    let (lower, upper) = (text.to_lowercase(), text.to_uppercase());
    let encoded: [(&str, [&'static [CanaryEncoding]; 2], CanaryShape); 5] = [
        (text, [&[Base64], &[Hex]], AsWritten),
        (&lower, [&[Base64], &[Hex]], CaseFolded),
        (&upper, [&[Base64], &[Hex]], CaseFolded),
        (&bare, [&[Base64], &[Hex]], Split),
        (
            &reversed,
            [&[Base64, Reversed], &[Hex, Reversed]],
            AsWritten,
        ),
    ];
    for (form, [in_base64, in_hex], shape) in encoded {
        for alignment in 0..3 {
            push(base64(form, alignment), true, in_base64, Some(shape));
        }
        push(hex(form), false, in_hex, Some(shape));
    }
    for alignment in 0..3 {
        let mut turned = base64(text, alignment);
        turned.reverse();
        push(turned, true, &[Reversed, Base64], Some(AsWritten));
    }
    let mut turned = hex(text);
    turned.reverse();
    push(turned, false, &[Reversed, Hex], Some(AsWritten));
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
