//! JSON that was written before the store got it, so that what is only kept is never built as a tree.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A text that is JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Value", into = "Value")]
pub struct JsonText(String);

impl JsonText {
    /// Writes a value.
    ///
    /// # Errors
    ///
    /// When it has something that JSON does not have, such as a key that is no text.
    ///
    /// # Examples
    ///
    /// ```
    /// use proofhouse_store::model::JsonText;
    ///
    /// let text = JsonText::of(&[("a", 1)])?;
    /// assert_eq!(text.as_str(), r#"[["a",1]]"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn of(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_string(value).map(Self)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        Self(value.to_string())
    }
}

impl From<JsonText> for Value {
    fn from(text: JsonText) -> Self {
        // It is JSON, whoever made it.
        serde_json::from_str(&text.0).unwrap_or_default()
    }
}
