//! How a run ended that was not told to have failed: `RUN_FINISHED` does not say that the agent is done.

use serde_json::{Value, json};

/// What `RUN_FINISHED` says.
///
/// ```
/// use proofhouse_protocol::ag_ui::AgUiRunEnd;
/// use serde_json::json;
///
/// let event = json!({"type": "RUN_FINISHED", "outcome": {"type": "interrupt", "interrupts": [{"id": "i"}]}});
/// assert_eq!(AgUiRunEnd::of(&event), AgUiRunEnd::Interrupted(vec![json!({"id": "i"})]));
/// assert_eq!(AgUiRunEnd::of(&json!({"type": "RUN_FINISHED"})), AgUiRunEnd::Finished);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgUiRunEnd {
    /// The agent is done.
    Finished,
    /// It waits until somebody has decided about these.
    Interrupted(Vec<Value>),
    /// It was cancelled.
    Cancelled,
}

impl AgUiRunEnd {
    /// Reads the outcome of an event, in any form that agents write it in.
    #[must_use]
    pub fn of(event: &Value) -> Self {
        let outcome = event.get("outcome").unwrap_or(&Value::Null);
        let kind = outcome.as_str().or_else(|| outcome.get("type")?.as_str());
        match kind {
            Some("cancelled") => Self::Cancelled,
            Some("interrupt") => Self::Interrupted(interrupts(event, outcome)),
            _ => Self::Finished,
        }
    }
}

/// What the agent waits for: a list, or one as in the draft. Who names nothing waits all the same.
fn interrupts(event: &Value, outcome: &Value) -> Vec<Value> {
    let all = outcome
        .get("interrupts")
        .or_else(|| event.get("interrupts"));
    match all.and_then(Value::as_array) {
        Some(all) if !all.is_empty() => all.clone(),
        _ => vec![event.get("interrupt").cloned().unwrap_or(json!({}))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_not_done() {
        let one = || vec![json!({"id": "i"})];
        for (event, expected) in [
            (json!({}), AgUiRunEnd::Finished),
            (
                json!({"outcome": {"type": "success"}}),
                AgUiRunEnd::Finished,
            ),
            (json!({"outcome": 7}), AgUiRunEnd::Finished),
            (json!({"outcome": "cancelled"}), AgUiRunEnd::Cancelled),
            (
                json!({"outcome": {"type": "cancelled"}}),
                AgUiRunEnd::Cancelled,
            ),
            (
                json!({"outcome": "interrupt", "interrupt": {"id": "i"}}),
                AgUiRunEnd::Interrupted(one()),
            ),
            (
                json!({"outcome": "interrupt", "interrupts": [{"id": "i"}]}),
                AgUiRunEnd::Interrupted(one()),
            ),
            (
                json!({"outcome": {"type": "interrupt", "interrupts": []}}),
                AgUiRunEnd::Interrupted(vec![json!({})]),
            ),
        ] {
            assert_eq!(AgUiRunEnd::of(&event), expected, "{event}");
        }
    }
}
