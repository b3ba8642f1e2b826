//! What a server asks for in `WWW-Authenticate` (RFC 6750, RFC 9728).

use proofhouse_wire::HeaderMap;

use crate::scopes;

/// How much of the header is read.
const MAX_BYTES: usize = 16 << 10;
/// How many parameters of it.
const MAX_PARAMETERS: usize = 50;

/// The `Bearer` challenge of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BearerChallenge {
    /// Where the server describes itself.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub scopes: Vec<String>,
    /// Why a token was not good enough, such as `insufficient_scope`.
    pub error: Option<String>,
}

impl BearerChallenge {
    /// Reads the challenge of a response; an empty one if there is none.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut challenge = Self::default();
        for value in headers.get_all("www-authenticate") {
            let text = String::from_utf8_lossy(value.as_bytes());
            let end = (0..=text.len().min(MAX_BYTES))
                .rev()
                .find(|at| text.is_char_boundary(*at));
            challenge.read(&text[..end.unwrap_or(0)]);
        }
        challenge
    }

    fn read(&mut self, text: &str) {
        let mut in_bearer = false;
        let mut rest = text;
        for _ in 0..MAX_PARAMETERS {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                return;
            }
            let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let spaced = after.trim_start_matches([' ', '\t']);
            let value = spaced.strip_prefix('=').filter(|_| !word.is_empty());
            let Some(value) = value else {
                in_bearer = word.eq_ignore_ascii_case("bearer");
                // Something that is neither a word nor a parameter would be looked at for ever.
                rest = after.strip_prefix('=').unwrap_or(after);
                continue;
            };
            let (value, after) = read_value(value.trim_start_matches([' ', '\t']));
            if in_bearer {
                self.take(word, value);
            }
            rest = after;
        }
    }

    fn take(&mut self, name: &str, value: String) {
        match name.to_ascii_lowercase().as_str() {
            "scope" => self.scopes = scopes::union(&self.scopes, &scopes::read(&value)),
            "resource_metadata" => {
                self.resource_metadata.get_or_insert(value);
            }
            "error" => {
                self.error.get_or_insert(value);
            }
            _ => {}
        }
    }
}

/// A token, or a text in quotes with its escapes undone; and what follows.
fn read_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            _ if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return (value, &quoted[at + 1..]),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_wire::HeaderValue;
    use proptest::prelude::*;

    fn read(values: &[&str]) -> BearerChallenge {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("www-authenticate", HeaderValue::from_str(value).unwrap());
        }
        BearerChallenge::of(&headers)
    }

    #[test]
    fn the_parameters_of_bearer_are_read() {
        let found = read(&[
            r#"Basic realm="scope=x", Bearer error="insufficient_scope", scope="a b", resource_metadata="https://h.test/\"x\"""#,
        ]);
        assert_eq!(found.error.as_deref(), Some("insufficient_scope"));
        assert_eq!(found.scopes, ["a", "b"]);
        assert_eq!(
            found.resource_metadata.as_deref(),
            Some("https://h.test/\"x\"")
        );
        let two = read(&["Digest scope=x", "bearer scope=y,error=invalid_token"]);
        assert_eq!(two.scopes, ["y"]);
        assert_eq!(two.error.as_deref(), Some("invalid_token"));
        assert_eq!(read(&["Bearer"]), BearerChallenge::default());
        assert_eq!(read(&[]), BearerChallenge::default());
        assert_eq!(read(&["Basic scope=x"]), BearerChallenge::default());
    }

    proptest! {
        #[test]
        fn any_header_is_read(text in "[ -~]{0,80}") {
            let _ = read(&[&text]);
            let _ = read(&[&format!("Bearer {text}")]);
        }
    }
}
