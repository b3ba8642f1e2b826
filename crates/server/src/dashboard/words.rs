//! What turns and deliveries are called in the dashboard: the words of people who run agents, not those of the store.

use maud::{Markup, html};
use proofhouse_store::model::{DeliveryRecord, DeliveryState, Millis};
use serde_json::Value;

use super::page::badge;
use crate::api::moment;

/// What a kind of turn is called: one row each. Others have plain names already.
const TURNS: [(&str, &str); 5] = [
    ("llm", "model"),
    ("capability", "tool"),
    ("calling", "call"),
    ("output", "answer"),
    ("asked", "question"),
];

/// What commands to a task begin with.
const COMMAND: &str = "control.";
/// What the reason of a command begins with that was obeyed.
const OBEYED: &str = "done: ";

/// The word for a kind of turn, in its badge.
pub(super) fn turn_badge(kind: &str) -> Markup {
    let row = TURNS.iter().find(|(known, _)| *known == kind);
    badge(row.map_or(kind, |(_, word)| word))
}

/// What a turn is about that says nothing itself.
pub(super) fn turn_subject(body: &Value) -> Option<String> {
    let function = body.get("function").or_else(|| {
        let review = body.get("review")?;
        review.get("function")
    });
    if let Some(function) = function.and_then(Value::as_str) {
        let status = body.get("status").and_then(Value::as_str);
        return Some(match status {
            Some(status) => format!("{function}: {status}"),
            None => function.to_owned(),
        });
    }
    let calls = body.get("calls").and_then(Value::as_array)?;
    let names = calls.iter().filter_map(|call| call["name"].as_str());
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| format!("calls {}", names.join(", ")))
}

/// What a delivery is called.
pub(super) fn delivery_name(delivery: &DeliveryRecord) -> &str {
    let name = delivery.name.as_str();
    name.strip_prefix(COMMAND).unwrap_or(name)
}

/// What became of a delivery. A command is never given to the agent: the task obeys it.
pub(super) fn delivery_badge(delivery: &DeliveryRecord) -> Markup {
    let is_command = delivery.name.starts_with(COMMAND);
    let reason = delivery.reason.as_deref().unwrap_or_default();
    // A task that ends settles everything that waits, and its cancel with it.
    let is_obeyed = reason.starts_with(OBEYED) || delivery.name == "control.cancel";
    if is_command && delivery.state == DeliveryState::Discarded && is_obeyed {
        badge("obeyed")
    } else {
        badge(delivery.state.as_str())
    }
}

/// A time to read, with the exact one for programs.
pub(super) fn time(at: Millis) -> Markup {
    time_text(&moment(at))
}

/// The same of a time that is a text already.
pub(super) fn time_text(exact: &str) -> Markup {
    let (date, time) = exact.split_once('T').unwrap_or((exact, ""));
    let time = time.split('.').next().unwrap_or_default();
    html! { time datetime=(exact) title=(exact) { (date) " " (time) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn turns_say_what_they_are_about() {
        let subject = |body: Value| turn_subject(&body);
        assert_eq!(
            subject(json!({"function": "till.pay", "status": "errored"})).as_deref(),
            Some("till.pay: errored")
        );
        assert_eq!(
            subject(json!({"review": {"function": "till.pay"}})).as_deref(),
            Some("till.pay")
        );
        assert_eq!(
            subject(json!({"calls": [{"name": "a"}, {"name": "b"}]})).as_deref(),
            Some("calls a, b")
        );
        assert_eq!(subject(json!({"calls": []})), None);
        assert!(turn_badge("llm").into_string().contains(">model<"));
        assert!(turn_badge("input").into_string().contains(">input<"));
    }

    #[test]
    fn times_are_for_people_and_for_programs() {
        let text = time(60_000).into_string();
        assert!(text.contains(">1970-01-01 00:01:00<"), "{text}");
        assert!(text.contains("datetime=\"1970-01-01T00:01:00.000Z\""));
    }

    #[test]
    fn an_obeyed_command_is_not_discarded() {
        let delivery = |name: &str, reason: &str| DeliveryRecord {
            id: 1,
            task: "t".to_owned(),
            event: None,
            attempt: 0,
            tool: None,
            name: name.to_owned(),
            key: None,
            body: json!({}),
            state: DeliveryState::Discarded,
            reason: Some(reason.to_owned()),
            turn_seq: None,
            created_at: 0,
            settled_at: None,
        };
        let word = |name: &str, reason: &str| delivery_badge(&delivery(name, reason)).into_string();
        assert!(word("control.approve", "done: a person decided").contains("obeyed"));
        assert!(word("control.cancel", "the task has ended").contains("obeyed"));
        assert!(word("control.approve", "the task has ended").contains("discarded"));
        assert!(word("comment", "done: whatever").contains("discarded"));
        assert_eq!(delivery_name(&delivery("control.approve", "")), "approve");
    }
}
