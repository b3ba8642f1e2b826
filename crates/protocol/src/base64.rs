//! Base64, read strictly: headers of the modern era carry values in it.

/// The bytes, or nothing when a character or the padding is wrong.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let digits = &text.as_bytes()[..text.len() - padding];
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let mut bits = 0u32;
        for digit in group {
            bits = bits << 6 | value(*digit)?;
        }
        bits <<= 6 * (4 - group.len());
        let [_, first, second, third] = bits.to_be_bytes();
        bytes.extend_from_slice(&[first, second, third][..group.len() * 6 / 8]);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn anything_may_be_read(text in "\\PC{0,20}") {
            let _ = decode(&text);
        }
    }

    #[test]
    fn only_what_is_well_formed_is_read() {
        for (text, bytes) in [
            ("SGVsbG8=", Some("Hello")),
            ("SGVsbG8h", Some("Hello!")),
            ("SA==", Some("H")),
            ("", Some("")),
            ("SGVsbG8", None),
            ("SGVs!!!bG8=", None),
            ("S===", None),
            ("====", None),
        ] {
            assert_eq!(
                decode(text),
                bytes.map(|text| text.as_bytes().to_vec()),
                "{text}"
            );
        }
    }
}
