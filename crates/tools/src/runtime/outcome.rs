//! Outcomes: what a model sees of a result, without secrets and not too long.

use serde_json::Value;

use crate::interpolate::Secrets;

/// The result of an action as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The result; the start of its JSON text, if it was too long.
    pub value: Value,
    /// Whether it was cut.
    pub truncated: bool,
}

impl Outcome {
    /// Takes the secrets out and then cuts, so that no half of a secret is left.
    pub(super) fn new(value: Value, secrets: &Secrets, max_bytes: usize) -> Self {
        let value = secrets.redact_value(value);
        let (text, fits) = match &value {
            Value::String(text) => (text.clone(), text.len() <= max_bytes),
            other => {
                let text = other.to_string();
                let fits = text.len() <= max_bytes;
                (text, fits)
            }
        };
        if fits {
            return Self {
                value,
                truncated: false,
            };
        }
        let cut = (0..=max_bytes)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        Self {
            value: Value::String(text[..cut].to_owned()),
            truncated: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_results_are_cut_after_secrets_are_gone() {
        let mut secrets = Secrets::default();
        secrets.add("hunter22");
        let outcome = Outcome::new(json!({"a": "hunter22é".repeat(10)}), &secrets, 17);
        assert!(outcome.truncated);
        // The cut falls into the two bytes of the last letter, which goes.
        assert_eq!(outcome.value, json!("{\"a\":\"[redacted]"));
        let whole = Outcome::new(json!([1, 2]), &secrets, 5);
        assert_eq!((whole.value, whole.truncated), (json!([1, 2]), false));
    }
}
