//! Base64 as the protocols use it: standard in headers and content, URL-safe in opaque cursors.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// Bytes in standard base64, padded.
///
/// ```
/// assert_eq!(proofhouse_protocol::base64::encode(b"Hello"), "SGVsbG8=");
/// ```
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes of standard base64; `None` when a character or the padding is wrong.
///
/// ```
/// use proofhouse_protocol::base64::decode;
///
/// assert_eq!(decode("SGVsbG8=").as_deref(), Some(&b"Hello"[..]));
/// assert_eq!(decode("SGVsbG8"), None);
/// ```
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Bytes in URL-safe base64 without padding.
///
/// ```
/// use proofhouse_protocol::base64::{decode_url_safe, encode_url_safe};
///
/// assert_eq!(encode_url_safe(b"tools:50"), "dG9vbHM6NTA");
/// assert_eq!(decode_url_safe("dG9vbHM6NTA").as_deref(), Some(&b"tools:50"[..]));
/// ```
#[must_use]
pub fn encode_url_safe(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of URL-safe base64 without padding; `None` when a character is wrong.
#[must_use]
pub fn decode_url_safe(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
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
