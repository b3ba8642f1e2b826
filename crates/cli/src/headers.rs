//! Headers that a user gives: taken apart, checked, and never repeated in a message.

use proofhouse_detect::REDACTED;
use proofhouse_manifest::interpolate::Sealed;

use crate::output::{CommandError, printable_line};

/// Headers that say where a request goes and where it ends.
const FRAMING: [&str; 3] = ["content-length", "host", "transfer-encoding"];

/// Marks a value that is a variable of the environment.
const FROM_ENVIRONMENT: &str = "env:";

/// The fewest characters of a text that can be kept out of what is written: shorter ones are everywhere.
pub(crate) const SHORTEST_SECRET: usize = 4;

/// A header that requests carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: HeaderSource,
}

/// Where the value of a header comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeaderSource {
    /// It was given as it is.
    Given(Sealed<String>),
    /// It is in this variable of the environment, with what stands before it, such as `Bearer `.
    Variable { before: String, name: String },
}

impl Header {
    /// Reads `Name: value`, or `Name: env:VARIABLE`, also with a scheme such as `Name: Bearer env:VARIABLE`.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once(':')
            .ok_or("write `Name: value`, with a colon")?;
        Self::new(name.trim(), value.trim())
    }

    /// A header of this name; the value may be that of a variable, as in [`Header::read`].
    pub(crate) fn new(name: &str, value: &str) -> Result<Self, String> {
        check_name(name)?;
        let (before, last) = match value.rsplit_once(' ') {
            Some((before, last)) => (format!("{before} "), last),
            None => (String::new(), value),
        };
        let value = match last.strip_prefix(FROM_ENVIRONMENT) {
            Some(variable) if !variable.is_empty() => HeaderSource::Variable {
                before,
                name: variable.to_owned(),
            },
            Some(_) => return Err(format!("`{name}`: write the variable after `env:`")),
            None => HeaderSource::Given(Sealed::new(value.to_owned())),
        };
        Ok(Self {
            name: name.to_owned(),
            value,
        })
    }

    /// A header of this name with the value of a variable.
    pub(crate) fn of_variable(name: &str, variable: &str) -> Result<Self, String> {
        check_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            value: HeaderSource::Variable {
                before: String::new(),
                name: variable.to_owned(),
            },
        })
    }

    /// What tells it from others and holds no secret.
    pub(crate) fn described(&self) -> String {
        match &self.value {
            HeaderSource::Given(_) => self.name.clone(),
            HeaderSource::Variable { before, name } => {
                format!("{}: {before}{FROM_ENVIRONMENT}{name}", self.name)
            }
        }
    }

    /// The name and the value, for sending.
    pub(crate) fn resolve(&self) -> Result<(String, String), String> {
        let value = match &self.value {
            HeaderSource::Given(value) => value.expose().clone(),
            HeaderSource::Variable { before, name } => {
                #[expect(clippy::disallowed_methods, reason = "the user names the variable")]
                let value = std::env::var(name)
                    .map_err(|_| format!("`{}`: the variable `{name}` is not set", self.name))?;
                format!("{before}{}", value.trim())
            }
        };
        check_value(&self.name, &value)?;
        Ok((self.name.clone(), value))
    }
}

/// The names and values of all, for sending.
pub(crate) fn resolve(headers: &[Header]) -> Result<Vec<(String, String)>, CommandError> {
    let resolved = headers.iter().map(Header::resolve);
    let resolved: Result<_, String> = resolved.collect();
    resolved.map_err(|error| CommandError::usage(printable_line(&format!("header {error}"))))
}

/// Whether a name may be that of a header which users give.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("`{name}` is not a name of a header"));
    }
    if FRAMING.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(format!(
            "`{name}` follows from the request and cannot be set"
        ));
    }
    Ok(())
}

/// Whether a value may be sent. It may be a secret, so it is not repeated.
pub(crate) fn check_value(name: &str, value: &str) -> Result<(), String> {
    let visible = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    match value.bytes().all(visible) {
        true => Ok(()),
        false => Err(format!(
            "the value of `{name}` has characters other than visible ASCII"
        )),
    }
}

/// Values of headers are credentials more often than not, so they must not be in anything that leaves.
pub(crate) fn secrets(headers: &[(String, String)]) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in headers {
        secrets.push(value.clone());
        // `Bearer TOKEN`: the token travels without its scheme, too.
        if name.to_ascii_lowercase().ends_with("authorization")
            && let Some((_, credentials)) = value.split_once(' ')
        {
            secrets.push(credentials.trim().to_owned());
        }
    }
    secrets.retain(|secret| {
        // What stands for what was taken out cannot be taken out.
        secret.chars().count() >= SHORTEST_SECRET && !REDACTED.contains(secret.as_str())
    });
    secrets
}

/// Whether a byte may stand in the name of a header.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_taken_apart_and_not_shown() {
        let header = Header::read("Authorization: Bearer abc").unwrap();
        assert_eq!(
            header.resolve().unwrap(),
            ("Authorization".to_owned(), "Bearer abc".to_owned())
        );
        assert!(!format!("{header:?}").contains("abc"));
        assert_eq!(header.described(), "Authorization");
        let header = Header::read("X-Key:Bearer env:PROOFHOUSE_NOT_SET").unwrap();
        assert_eq!(header.described(), "X-Key: Bearer env:PROOFHOUSE_NOT_SET");
        assert!(header.resolve().unwrap_err().contains("is not set"));
        for wrong in ["plain", ": x", "a b: x", "Host: x", "X: env:"] {
            assert!(Header::read(wrong).is_err(), "{wrong}");
        }
        assert!(Header::read("X: a\u{7f}b").unwrap().resolve().is_err());
    }

    #[test]
    fn a_token_is_a_secret_without_its_scheme_too() {
        let headers = [
            ("Authorization".to_owned(), "Bearer token".to_owned()),
            ("X".to_owned(), "1".to_owned()),
        ];
        assert_eq!(secrets(&headers), ["Bearer token", "token"]);
    }
}
