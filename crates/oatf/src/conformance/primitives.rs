//! Suites about the execution primitives, one function each.

use std::collections::HashMap;

use crate::{
    Condition, Extractor, ExtractorSource, MatchPredicate, Phase, ProtocolEvent, ResponseEntry,
    Trigger, TriggerResult, TriggerState, compute_effective_state, evaluate_condition,
    evaluate_extractor, evaluate_predicate, evaluate_trigger, extract_protocol,
    interpolate_template, interpolate_value, parse_duration, resolve_simple_path,
    resolve_wildcard_path, select_response,
};
use serde_json::{Value, json};

use super::{CaseCheck, CaseFailure, ConformanceCase, expect, expect_value, part};

pub(super) fn effective_state(case: &ConformanceCase<'_>) -> CaseCheck {
    let phases = case.field("phases").as_array();
    let phases = phases.ok_or(CaseFailure::Malformed("no phases"))?;
    let phases = phases.iter().map(part).collect::<Result<Vec<Phase>, _>>()?;
    let index = case.field("phase_index").as_u64();
    let index = index.ok_or(CaseFailure::Malformed("no phase_index"))?;
    let index = usize::try_from(index).map_err(CaseFailure::unreadable)?;
    expect_value(
        compute_effective_state(&phases, index).unwrap_or(&Value::Null),
        case.expected,
    )
}

pub(super) fn condition(case: &ConformanceCase<'_>) -> CaseCheck {
    let condition: Condition = part(case.field("condition"))?;
    expect_value(
        &evaluate_condition(&condition, case.field("value")).into(),
        case.expected,
    )
}

pub(super) fn extractor(case: &ConformanceCase<'_>) -> CaseCheck {
    let extractor: Extractor = part(case.field("extractor"))?;
    let direction = case.field("direction").as_str().unwrap_or_default();
    let direction: ExtractorSource = direction.parse().map_err(CaseFailure::unreadable)?;
    let found = evaluate_extractor(&extractor, case.field("message"), direction);
    expect(found.as_deref(), case.expected.as_str())
}

pub(super) fn predicate(case: &ConformanceCase<'_>) -> CaseCheck {
    let predicate: MatchPredicate = part(case.field("predicate"))?;
    expect_value(
        &evaluate_predicate(&predicate, case.field("value")).into(),
        case.expected,
    )
}

pub(super) fn trigger(case: &ConformanceCase<'_>) -> CaseCheck {
    let trigger: Trigger = part(case.field("trigger"))?;
    let event = case.field("event");
    let event = event
        .get("event_type")
        .and_then(Value::as_str)
        .map(|event_type| ProtocolEvent {
            event_type: event_type.to_owned(),
            content: event.get("content").cloned().unwrap_or_default(),
        });
    let elapsed = parse_duration(case.field("elapsed").as_str().unwrap_or_default())
        .map_err(CaseFailure::unreadable)?;
    let count = case
        .field("state")
        .get("event_count")
        .and_then(Value::as_i64);
    let mut state = TriggerState {
        event_count: count.unwrap_or_default(),
    };
    let found = match evaluate_trigger(&trigger, event.as_ref(), elapsed, &mut state) {
        TriggerResult::Advanced { reason } => {
            json!({"result": "advanced", "reason": reason, "state": {"event_count": state.event_count}})
        }
        TriggerResult::NotAdvanced => {
            json!({"result": "not_advanced", "state": {"event_count": state.event_count}})
        }
    };
    expect_value(&found, case.expected)
}

pub(super) fn protocol(case: &ConformanceCase<'_>) -> CaseCheck {
    let mode = case.field("mode").as_str().unwrap_or_default();
    expect(Some(extract_protocol(mode)), case.expected.as_str())
}

fn extractors(case: &ConformanceCase<'_>) -> HashMap<String, String> {
    let map = case.field("extractors").as_object();
    map.into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn present(value: &Value) -> Option<&Value> {
    Some(value).filter(|value| !value.is_null())
}

pub(super) fn template(case: &ConformanceCase<'_>) -> CaseCheck {
    let template = case.field("template").as_str().unwrap_or_default();
    let (found, _) = interpolate_template(
        template,
        &extractors(case),
        present(case.field("request")),
        present(case.field("response")),
    );
    expect(Some(found.as_str()), case.expected.as_str())
}

pub(super) fn value(case: &ConformanceCase<'_>) -> CaseCheck {
    let (found, _) = interpolate_value(
        case.field("value"),
        &extractors(case),
        present(case.field("request")),
        present(case.field("response")),
    );
    expect_value(&found, case.expected)
}

pub(super) fn duration(case: &ConformanceCase<'_>) -> CaseCheck {
    let found = match parse_duration(case.input.as_str().unwrap_or_default()) {
        Ok(duration) => json!({"seconds": duration.as_secs()}),
        Err(_) => json!({"error": true}),
    };
    expect_value(&found, case.expected)
}

pub(super) fn simple_path(case: &ConformanceCase<'_>) -> CaseCheck {
    let path = case.field("path").as_str().unwrap_or_default();
    let found = resolve_simple_path(path, case.field("value"));
    // A path that resolves to null is told from one that does not by `found`.
    let found = match found {
        Some(Value::Null) => json!({"found": true, "value": null}),
        Some(value) => value.clone(),
        None => Value::Null,
    };
    expect_value(&found, case.expected)
}

pub(super) fn wildcard_path(case: &ConformanceCase<'_>) -> CaseCheck {
    let path = case.field("path").as_str().unwrap_or_default();
    let found = resolve_wildcard_path(path, case.field("value"));
    expect_value(&json!({"values": found}), case.expected)
}

pub(super) fn response(case: &ConformanceCase<'_>) -> CaseCheck {
    let entries = case.field("entries").as_array();
    let entries = entries.ok_or(CaseFailure::Malformed("no entries"))?;
    let entries = entries
        .iter()
        .map(part)
        .collect::<Result<Vec<ResponseEntry>, _>>()?;
    let found = select_response(&entries, case.field("request"));
    let found = found.map_or(Value::Null, |entry| json!({"content": entry.content}));
    expect_value(&found, case.expected)
}
