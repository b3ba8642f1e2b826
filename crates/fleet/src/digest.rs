//! Names of texts by what is in them.

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};

/// The SHA-256 of bytes, as 64 letters and digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}

/// Whether a text can be such a name.
#[must_use]
pub fn is_sha256(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 64 && text.bytes().all(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_known_one() {
        let empty = sha256(b"");
        assert_eq!(
            empty,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert!(is_sha256(&empty) && !is_sha256("../x") && !is_sha256(&empty.to_uppercase()));
    }
}
