//! Lists of scopes: read, joined and compared.

/// How many scopes are looked at, and how long all of them may be.
const MAX_SCOPES: usize = 200;
const MAX_BYTES: usize = 8 << 10;

/// The scopes of a text, each once (RFC 6749, section 3.3).
pub(crate) fn read(text: &str) -> Vec<String> {
    gather(text.split(' ').map(str::to_owned))
}

/// The usable ones among these, each once.
pub(crate) fn gather(scopes: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut bytes = 0;
    for scope in scopes {
        let is_scope = !scope.is_empty()
            && scope
                .bytes()
                .all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
        if !is_scope || found.contains(&scope) {
            continue;
        }
        bytes += scope.len() + 1;
        if found.len() >= MAX_SCOPES || bytes > MAX_BYTES {
            break;
        }
        found.push(scope);
    }
    found
}

/// All of both.
pub(crate) fn union(known: &[String], more: &[String]) -> Vec<String> {
    gather(known.iter().chain(more).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_words_and_each_counts_once() {
        assert_eq!(read("a b  a c\u{7} \"d\" e"), ["a", "b", "e"]);
        assert_eq!(union(&read("a b"), &read("b c")), ["a", "b", "c"]);
        let many: Vec<String> = (0..1000).map(|n| format!("s{n}")).collect();
        assert_eq!(gather(many.into_iter()).len(), MAX_SCOPES);
    }
}
