//! A text that is not shown.

use serde::{Deserialize, Deserializer, Serializer};

/// A token, a key or a password: its debug form shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Holds a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// For what is sealed before it is written.
pub(crate) mod exposed {
    use super::{Deserialize, Deserializer, SecretText, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        secret: &Option<SecretText>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match secret {
            Some(secret) => serializer.serialize_some(secret.expose()),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SecretText>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.map(SecretText::new))
    }
}
