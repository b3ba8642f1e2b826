//! Triggers: when a phase ends.

use std::time::Duration;

use proofhouse_expr::re2::MatchBudget;

use super::evaluate_predicate_within;
use crate::error::EvaluationError;
use crate::model::{AdvanceReason, ProtocolEvent, Trigger, TriggerResult, TriggerState};

/// Whether the phase should end, given what just happened and how long it has lasted.
///
/// ```
/// use proofhouse_oatf::{Trigger, TriggerResult, TriggerState, evaluate_trigger};
/// use std::time::Duration;
/// let trigger = Trigger { after: Some(proofhouse_oatf::DurationText::new("30s")), ..Trigger::default() };
/// let mut state = TriggerState::default();
/// let result = evaluate_trigger(&trigger, None, Duration::from_secs(31), &mut state);
/// assert!(matches!(result, TriggerResult::Advanced { .. }));
/// ```
pub fn evaluate_trigger(
    trigger: &Trigger,
    event: Option<&ProtocolEvent>,
    elapsed: Duration,
    state: &mut TriggerState,
) -> TriggerResult {
    let budget = &mut MatchBudget::default();
    evaluate_trigger_within(trigger, event, elapsed, state, budget)
        .unwrap_or(TriggerResult::NotAdvanced)
}

/// As [`evaluate_trigger`], within a time that the caller gives; tells "did not match" from "could not be tried".
///
/// # Errors
///
/// Returns `regex_timeout` when the time is over, and an error when a regular expression does not compile or a path is
/// too deep. The event is not counted then.
pub fn evaluate_trigger_within(
    trigger: &Trigger,
    event: Option<&ProtocolEvent>,
    elapsed: Duration,
    state: &mut TriggerState,
    budget: &mut MatchBudget,
) -> Result<TriggerResult, EvaluationError> {
    let after = trigger.after.as_ref().and_then(|after| after.duration());
    if after.is_some_and(|after| elapsed >= after) {
        return Ok(TriggerResult::Advanced {
            reason: AdvanceReason::Timeout,
        });
    }
    let (Some(wanted), Some(event)) = (&trigger.event, event) else {
        return Ok(TriggerResult::NotAdvanced);
    };
    if event.event_type != *wanted {
        return Ok(TriggerResult::NotAdvanced);
    }
    if let Some(predicate) = &trigger.r#match
        && !evaluate_predicate_within(predicate, &event.content, budget)?
    {
        return Ok(TriggerResult::NotAdvanced);
    }
    state.event_count = state.event_count.saturating_add(1);
    if state.event_count >= trigger.count.unwrap_or(1) {
        Ok(TriggerResult::Advanced {
            reason: AdvanceReason::EventMatched,
        })
    } else {
        Ok(TriggerResult::NotAdvanced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fragment;
    use serde_json::{Value, json};

    fn run(
        trigger: &Value,
        event: Option<(&str, Value)>,
        elapsed: u64,
        count: i64,
    ) -> (String, i64) {
        let trigger = Trigger::from_value(trigger).unwrap();
        let event = event.map(|(event_type, content)| ProtocolEvent {
            event_type: event_type.to_owned(),
            content,
        });
        let mut state = TriggerState { event_count: count };
        let result = evaluate_trigger(
            &trigger,
            event.as_ref(),
            Duration::from_secs(elapsed),
            &mut state,
        );
        let result = match result {
            TriggerResult::Advanced { reason } => reason.to_string(),
            TriggerResult::NotAdvanced => "stay".to_owned(),
        };
        (result, state.event_count)
    }

    #[test]
    fn time_comes_before_events_and_only_full_matches_count() {
        let call = || Some(("tools/call", json!({"name": "calc"})));
        for (trigger, event, elapsed, count, expected) in [
            (json!({"after": "30s"}), None, 29, 0, ("stay", 0)),
            (json!({"after": "30s"}), None, 30, 0, ("timeout", 0)),
            (
                json!({"event": "tools/call"}),
                call(),
                0,
                0,
                ("event_matched", 1),
            ),
            (json!({"event": "tools/call"}), None, 0, 0, ("stay", 0)),
            (json!({"event": "tools/list"}), call(), 0, 0, ("stay", 0)),
            (
                json!({"event": "tools/call", "count": 3}),
                call(),
                0,
                1,
                ("stay", 2),
            ),
            (
                json!({"event": "tools/call", "count": 3}),
                call(),
                0,
                2,
                ("event_matched", 3),
            ),
            (
                json!({"event": "tools/call", "match": {"name": "x"}}),
                call(),
                0,
                0,
                ("stay", 0),
            ),
            (
                json!({"event": "tools/call", "match": {"name": "calc"}}),
                call(),
                0,
                0,
                ("event_matched", 1),
            ),
            (
                json!({"event": "tools/call", "after": "5s"}),
                call(),
                5,
                0,
                ("timeout", 0),
            ),
            (
                json!({"event": "tools/call", "after": "5s"}),
                call(),
                4,
                0,
                ("event_matched", 1),
            ),
            (json!({"after": "5s"}), call(), 4, 0, ("stay", 0)),
            (
                json!({"event": "tools/call"}),
                call(),
                0,
                i64::MAX,
                ("event_matched", i64::MAX),
            ),
        ] {
            let (result, state) = run(&trigger, event, elapsed, count);
            assert_eq!((result.as_str(), state), expected, "{trigger}");
        }
    }
}
