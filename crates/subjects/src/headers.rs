//! Headers that a user gives: taken apart, checked, and never repeated in a message.

use proofhouse_detect::REDACTED;
use proofhouse_manifest::interpolate::Sealed;

use crate::EnvironmentLookup;

/// Headers that say where a request goes and where it ends.
const FRAMING: [&str; 3] = ["content-length", "host", "transfer-encoding"];

/// Marks a value that is a variable of the environment.
const FROM_ENVIRONMENT: &str = "env:";

/// The fewest characters of a text that can be kept out of what is written: shorter ones are everywhere.
pub const SHORTEST_SECRET: usize = 4;

/// A header that requests carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    /// Its name.
    pub name: String,
    /// Its value, or where that is.
    pub value: HeaderSource,
}

/// Where the value of a header comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderSource {
    /// It was given as it is.
    Given(Sealed<String>),
    /// It is in this variable of the environment, with what stands before it, such as `Bearer `.
    Variable {
        /// What stands before the value.
        before: String,
        /// The variable.
        name: String,
    },
}

/// What is wrong with a header. No message repeats a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// There is no name.
    #[error("write `Name: value`, with a colon")]
    NoColon,
    /// The name has characters that no name has.
    #[error("`{0}` is not a name of a header")]
    Name(String),
    /// The header says where a request goes or where it ends.
    #[error("`{0}` follows from the request and cannot be set")]
    Framing(String),
    /// There is `env:` and no variable.
    #[error("`{0}`: write the variable after `env:`")]
    NoVariable(String),
    /// The variable is not set.
    #[error("`{header}`: the variable `{variable}` is not set")]
    NotSet {
        /// The header.
        header: String,
        /// The variable.
        variable: String,
    },
    /// The value cannot be sent.
    #[error("the value of `{0}` has characters other than visible ASCII")]
    Value(String),
}

impl RequestHeader {
    /// Reads `Name: value`, or `Name: env:VARIABLE`, also with a scheme such as `Name: Bearer env:VARIABLE`.
    ///
    /// # Errors
    ///
    /// Returns an error when it is no header that a user may give.
    pub fn read(text: &str) -> Result<Self, HeaderError> {
        let (name, value) = text.split_once(':').ok_or(HeaderError::NoColon)?;
        Self::new(name.trim(), value.trim())
    }

    /// A header of this name; the value may be that of a variable, as in [`RequestHeader::read`].
    ///
    /// # Errors
    ///
    /// Returns an error when it is no header that a user may give.
    pub fn new(name: &str, value: &str) -> Result<Self, HeaderError> {
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
            Some(_) => return Err(HeaderError::NoVariable(name.to_owned())),
            None => HeaderSource::Given(Sealed::new(value.to_owned())),
        };
        Ok(Self {
            name: name.to_owned(),
            value,
        })
    }

    /// A header of this name with the value of a variable.
    ///
    /// # Errors
    ///
    /// Returns an error when the name is not one that a user may give.
    pub fn of_variable(name: &str, variable: &str) -> Result<Self, HeaderError> {
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
    #[must_use]
    pub fn described(&self) -> String {
        match &self.value {
            HeaderSource::Given(_) => self.name.clone(),
            HeaderSource::Variable { before, name } => {
                format!("{}: {before}{FROM_ENVIRONMENT}{name}", self.name)
            }
        }
    }

    /// The name and the value, for sending.
    ///
    /// # Errors
    ///
    /// Returns an error when the variable is not set or its value cannot be sent.
    pub fn resolve(
        &self,
        environment: &EnvironmentLookup,
    ) -> Result<(String, String), HeaderError> {
        let value = match &self.value {
            HeaderSource::Given(value) => value.expose().clone(),
            HeaderSource::Variable { before, name } => {
                let value = environment(name).ok_or_else(|| HeaderError::NotSet {
                    header: self.name.clone(),
                    variable: name.clone(),
                })?;
                format!("{before}{}", value.trim())
            }
        };
        check_value(&self.name, &value)?;
        Ok((self.name.clone(), value))
    }
}

/// The names and values of all, for sending.
///
/// # Errors
///
/// Returns an error when a variable is not set or a value cannot be sent.
pub fn resolve(
    headers: &[RequestHeader],
    environment: &EnvironmentLookup,
) -> Result<Vec<(String, String)>, HeaderError> {
    let resolved = headers.iter().map(|header| header.resolve(environment));
    resolved.collect()
}

/// Whether a name may be that of a header which users give.
///
/// # Errors
///
/// Returns an error when it is not.
pub fn check_name(name: &str) -> Result<(), HeaderError> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(HeaderError::Name(name.to_owned()));
    }
    if FRAMING.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(HeaderError::Framing(name.to_owned()));
    }
    Ok(())
}

/// Whether a value may be sent. It may be a secret, so it is not repeated.
///
/// # Errors
///
/// Returns an error when it may not.
pub fn check_value(name: &str, value: &str) -> Result<(), HeaderError> {
    let visible = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    if value.bytes().all(visible) {
        Ok(())
    } else {
        Err(HeaderError::Value(name.to_owned()))
    }
}

/// Values of headers are credentials more often than not, so they must not be in anything that leaves.
#[must_use]
pub fn secrets(headers: &[(String, String)]) -> Vec<String> {
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

    fn none() -> EnvironmentLookup {
        std::sync::Arc::new(|_| None)
    }

    #[test]
    fn headers_are_taken_apart_and_not_shown() {
        let header = RequestHeader::read("Authorization: Bearer abc").unwrap();
        assert_eq!(
            header.resolve(&none()).unwrap(),
            ("Authorization".to_owned(), "Bearer abc".to_owned())
        );
        assert!(!format!("{header:?}").contains("abc"));
        assert_eq!(header.described(), "Authorization");
        let header = RequestHeader::read("X-Key:Bearer env:PROOFHOUSE_NOT_SET").unwrap();
        assert_eq!(header.described(), "X-Key: Bearer env:PROOFHOUSE_NOT_SET");
        assert!(matches!(
            header.resolve(&none()),
            Err(HeaderError::NotSet { .. })
        ));
        for wrong in ["plain", ": x", "a b: x", "Host: x", "X: env:"] {
            assert!(RequestHeader::read(wrong).is_err(), "{wrong}");
        }
        assert!(
            RequestHeader::read("X: a\u{7f}b")
                .unwrap()
                .resolve(&none())
                .is_err()
        );
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
