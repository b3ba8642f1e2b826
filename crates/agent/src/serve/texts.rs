//! Small things that all protocols need: ids that nobody guesses, times, and texts cut to a size.

use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom, SystemRandom};

/// An id that nobody can guess, written as a UUID.
pub(crate) fn fresh_id() -> String {
    let mut bytes = [0u8; 16];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        // Without randomness an id that was never given before must do.
        use std::sync::atomic::{AtomicU64, Ordering};
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        bytes[..8].copy_from_slice(&number.to_be_bytes());
    }
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = HEXLOWER.encode(&bytes);
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Now, as the protocols write it.
pub(super) fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// At most so many bytes of a text, with a mark where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

/// Whether an answer to a question approves, denies, or says neither.
pub(super) fn decision(text: &str) -> Option<crate::task::Decision> {
    use crate::task::Decision::{Approve, Deny};
    let word = text
        .trim()
        .trim_end_matches(['.', '!'])
        .to_ascii_lowercase();
    match word.as_str() {
        "approve" | "approved" | "yes" | "allow" | "true" => Some(Approve),
        "deny" | "denied" | "no" | "reject" | "rejected" | "refuse" | "false" => Some(Deny),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Decision;

    #[test]
    fn ids_differ_and_texts_are_cut_at_characters() {
        assert_ne!(fresh_id(), fresh_id());
        assert_eq!(fresh_id().len(), 36);
        assert!(now().ends_with('Z') && now().contains('.'));
        assert_eq!(cut("aäö", 2), "a…");
        assert_eq!(cut("aäö", 5), "aäö");
        assert_eq!(decision(" Approve! "), Some(Decision::Approve));
        assert_eq!(decision("no."), Some(Decision::Deny));
        assert_eq!(decision("yes, but ask again"), None);
    }
}
