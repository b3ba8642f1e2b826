//! The key of the endpoint, kept out of everything that is printed.

use std::fmt;

/// What stands where the key would be.
const MASK: &str = "[key]";

/// A text that is sent and never shown.
///
/// ```
/// use proofhouse_semantic::Secret;
/// let key = Secret::new("sk-very-secret");
/// assert_eq!(format!("{key:?}"), "Secret([key])");
/// assert_eq!(key.mask("no such key: sk-very-secret"), "no such key: [key]");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text without the secret in it.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        if self.0.is_empty() {
            text.to_owned()
        } else {
            text.replace(&self.0, MASK)
        }
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({MASK})")
    }
}
