//! State inheritance between phases, and the protocol a mode belongs to.

use serde_json::Value;

use crate::model::Phase;

/// The state that holds in phase `phase_index`: its own, or the nearest one before it.
///
/// `None` when there is no such phase or none up to it has a state, which V-009 excludes.
///
/// ```
/// use proofhouse_oatf::{Phase, compute_effective_state};
/// use serde_json::json;
/// let first = Phase { state: Some(json!({"tools": []})), ..Phase::default() };
/// let phases = [first, Phase::default()];
/// assert_eq!(compute_effective_state(&phases, 1), Some(&json!({"tools": []})));
/// ```
#[must_use]
pub fn compute_effective_state(phases: &[Phase], phase_index: usize) -> Option<&Value> {
    phases
        .get(..=phase_index)?
        .iter()
        .rev()
        .find_map(|phase| phase.state.as_ref())
}

/// The protocol of a mode: everything before `_server` or `_client`.
///
/// ```
/// use proofhouse_oatf::extract_protocol;
/// assert_eq!(extract_protocol("ag_ui_client"), "ag_ui");
/// assert_eq!(extract_protocol("odd"), "odd");
/// ```
#[must_use]
pub fn extract_protocol(mode: &str) -> &str {
    mode.strip_suffix("_server")
        .or_else(|| mode.strip_suffix("_client"))
        .unwrap_or(mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn state_is_inherited_and_replaced_whole() {
        let phase = |state: Option<Value>| Phase {
            state,
            ..Phase::default()
        };
        let phases = [
            phase(Some(json!({"a": 1, "b": 2}))),
            phase(None),
            phase(Some(json!({"a": 3}))),
            phase(None),
        ];
        assert_eq!(
            compute_effective_state(&phases, 0),
            Some(&json!({"a": 1, "b": 2}))
        );
        assert_eq!(
            compute_effective_state(&phases, 1),
            Some(&json!({"a": 1, "b": 2}))
        );
        assert_eq!(compute_effective_state(&phases, 2), Some(&json!({"a": 3})));
        assert_eq!(compute_effective_state(&phases, 3), Some(&json!({"a": 3})));
        assert_eq!(compute_effective_state(&phases, 4), None);
        assert_eq!(compute_effective_state(&phases[1..2], 0), None);
        assert_eq!(compute_effective_state(&[], 0), None);
    }

    #[test]
    fn protocols() {
        for (mode, protocol) in [
            ("mcp_server", "mcp"),
            ("a2a_client", "a2a"),
            ("my_proto_server", "my_proto"),
            ("server", "server"),
            ("x_server_client", "x_server"),
        ] {
            assert_eq!(extract_protocol(mode), protocol);
        }
    }
}
