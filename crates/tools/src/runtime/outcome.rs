//! Outcomes: what a model sees of a result, without secrets and not too long.

use std::io;

use serde_json::Value;

use proofhouse_manifest::interpolate::Secrets;

/// The result of an action as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionResult {
    /// The result; the start of its JSON text, if it was too long.
    pub value: Value,
    /// Whether it was cut.
    pub truncated: bool,
}

impl ActionResult {
    /// Takes the secrets out and then cuts, so that no half of a secret is left.
    pub(super) fn new(value: Value, secrets: &Secrets, max_bytes: usize) -> Self {
        let value = secrets.redact_value(value);
        let fits = match &value {
            Value::String(text) => text.len() <= max_bytes,
            other => serde_json::to_writer(SizeProbe(max_bytes), other).is_ok(),
        };
        if fits {
            return Self {
                value,
                truncated: false,
            };
        }
        let text = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
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

/// Takes so many bytes and keeps none, to tell whether a text fits without writing it.
struct SizeProbe(usize);

impl io::Write for SizeProbe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.0.checked_sub(bytes.len());
        self.0 = left.ok_or(io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
        let outcome = ActionResult::new(json!({"a": "hunter22é".repeat(10)}), &secrets, 17);
        assert!(outcome.truncated);
        // The cut falls into the two bytes of the last letter, which goes.
        assert_eq!(outcome.value, json!("{\"a\":\"[redacted]"));
        let whole = ActionResult::new(json!([1, 2]), &secrets, 5);
        assert_eq!((whole.value, whole.truncated), (json!([1, 2]), false));
        let cut = ActionResult::new(json!([1, 2]), &secrets, 4);
        assert_eq!((cut.value, cut.truncated), (json!("[1,2"), true));
    }
}
