//! Tells the patterns that are plainly valid and small, so that loading a document parses few.
//!
//! Most patterns in documents are a few words, alternatives and classes. Those are recognised here
//! in one pass. Anything unusual is not judged but left to the parser; a property test of
//! `translate` checks that nothing passes here that does not compile.

/// The longest pattern that is recognised.
const MAX_BYTES: usize = 512;
/// The deepest nesting of groups that is recognised.
const MAX_DEPTH: usize = 20;
/// The largest product of counted repetitions, so that size stays out of question.
const MAX_REPEATS: u32 = 4;

/// Whether a pattern is certainly an RE2 expression of moderate size.
pub(super) fn is_everyday(pattern: &str) -> bool {
    if pattern.len() > MAX_BYTES || !pattern.is_ascii() {
        return false;
    }
    let bytes = pattern.strip_prefix("(?i)").unwrap_or(pattern).as_bytes();
    let mut at = 0;
    let mut depth = 0usize;
    let mut repeats = 1u32;
    // Whether what stands before can be repeated.
    let mut atom = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => match bytes.get(at + 1) {
                Some(b'b') => {
                    atom = false;
                    at += 2;
                }
                Some(next) if is_simple_escape(*next) => {
                    atom = true;
                    at += 2;
                }
                _ => return false,
            },
            b'[' => match class_length(&bytes[at..]) {
                Some(length) => {
                    atom = true;
                    at += length;
                }
                None => return false,
            },
            b'(' => {
                depth += 1;
                atom = false;
                at += if bytes[at..].starts_with(b"(?:") {
                    3
                } else {
                    1
                };
                if depth > MAX_DEPTH || bytes.get(at) == Some(&b'?') {
                    return false;
                }
            }
            b')' => {
                let Some(outer) = depth.checked_sub(1) else {
                    return false;
                };
                depth = outer;
                atom = true;
                at += 1;
            }
            b'*' | b'+' | b'?' | b'{' => {
                let (length, count) = match byte {
                    b'{' => match count(&bytes[at..]) {
                        Some(found) => found,
                        None => return false,
                    },
                    _ => (1, 1),
                };
                repeats = repeats.saturating_mul(count.max(1));
                if !atom || repeats > MAX_REPEATS {
                    return false;
                }
                at += length;
                if bytes.get(at) == Some(&b'?') {
                    at += 1;
                }
                atom = false;
            }
            b'|' | b'^' | b'$' => {
                atom = false;
                at += 1;
            }
            b'}' | b']' => return false,
            b' '..=b'~' => {
                atom = true;
                at += 1;
            }
            _ => return false,
        }
    }
    depth == 0
}

/// Escapes that mean the same everywhere, outside and inside classes.
fn is_simple_escape(byte: u8) -> bool {
    matches!(byte, b'd' | b'w' | b's' | b'n' | b't' | b'r') || byte.is_ascii_punctuation()
}

/// The length of a class such as `[^a-z0-9_.\\d]`, if it is a simple one.
fn class_length(bytes: &[u8]) -> Option<usize> {
    let mut at = if bytes.get(1) == Some(&b'^') { 2 } else { 1 };
    let first = at;
    loop {
        match bytes.get(at)? {
            b']' => return (at > first).then_some(at + 1),
            b'\\' => {
                // A range that begins with an escape is left to the parser.
                let next = *bytes.get(at + 1)?;
                if !is_simple_escape(next) || bytes.get(at + 2) == Some(&b'-') {
                    return None;
                }
                at += 2;
            }
            low if low.is_ascii_alphanumeric() && bytes.get(at + 1) == Some(&b'-') => {
                let high = bytes.get(at + 2)?;
                if !high.is_ascii_alphanumeric() || high < low {
                    return None;
                }
                at += 3;
            }
            b'-' if at == first || bytes.get(at + 1) == Some(&b']') => at += 1,
            b'-' | b'[' => return None,
            b' '..=b'~' if bytes.get(at + 1) == Some(&b'-') && bytes.get(at + 2) != Some(&b']') => {
                return None;
            }
            b' '..=b'~' => at += 1,
            _ => return None,
        }
    }
}

/// The length and the count of `{n}` or `{n,m}`.
fn count(bytes: &[u8]) -> Option<(usize, u32)> {
    let end = bytes.iter().position(|b| *b == b'}')?;
    let inner = std::str::from_utf8(&bytes[1..end]).ok()?;
    let (low, high) = inner.split_once(',').unwrap_or((inner, inner));
    let number = |text: &str| -> Option<u32> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    let (low, high) = (number(low)?, number(high)?);
    (low <= high).then_some((end + 1, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_what_documents_use() {
        for (pattern, expected) in [
            ("(429|rate limit|delegate.*analytics)", true),
            (r"(\$\d+\.?\d*M|margin.*\d|EBITDA|net income)", true),
            ("(?i)id_rsa|passwd", true),
            (r"[A-Za-z0-9+/=_.-]+", true),
            (r"[^\s\]]{2,4}", true),
            (r"\bkey\b", true),
            ("a{1000}", false),
            ("(a{2}){2}", true),
            ("(a{2}){3}", false),
            ("(?=a)", false),
            ("a++", false),
            ("*a", false),
            ("(*a)", false),
            ("a|*", false),
            ("(a", false),
            ("a)", false),
            ("[b-a]", false),
            ("[a", false),
            ("[]", false),
            (r"\pL", false),
            (r"\1", false),
            (r"\b*", false),
            ("é", false),
            ("a{2", false),
            ("}", false),
        ] {
            assert_eq!(is_everyday(pattern), expected, "{pattern}");
        }
    }
}
