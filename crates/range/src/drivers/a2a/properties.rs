//! Properties of the translation: what both generations can say survives the way there and back,
//! and nothing that a peer sends makes it panic.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::content::{recognise, translate};
use super::methods::{Generation, Operation};
use super::{card, complete, params, results};

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 é{}\"_-]{0,12}"
}

fn metadata() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        text().prop_map(|text| json!({"role": text, "kind": "text", "state": "working"})),
    ]
}

fn part() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(|text| json!({"kind": "text", "text": text})),
        (text(), metadata())
            .prop_map(|(text, meta)| json!({"kind": "data", "data": {"kind": text}, "metadata": meta})),
        (text(), text()).prop_map(
            |(bytes, name)| json!({"kind": "file", "file": {"bytes": bytes, "mimeType": "a/b", "name": name}})
        ),
        text().prop_map(|uri| json!({"kind": "file", "file": {"uri": uri}})),
    ]
}

fn message() -> impl Strategy<Value = Value> {
    (
        prop_oneof![Just("user"), Just("agent")],
        prop::collection::vec(part(), 0..4),
        text(),
        metadata(),
    )
        .prop_map(|(role, parts, id, metadata)| {
            json!({"kind": "message", "messageId": id, "role": role, "parts": parts, "metadata": metadata})
        })
}

fn state() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "submitted",
        "working",
        "input-required",
        "completed",
        "canceled",
        "failed",
        "rejected",
        "auth-required",
        "unknown",
    ])
}

fn artifact() -> impl Strategy<Value = Value> {
    (text(), prop::collection::vec(part(), 0..3))
        .prop_map(|(id, parts)| json!({"artifactId": id, "parts": parts}))
}

fn item() -> impl Strategy<Value = Value> {
    prop_oneof![
        message(),
        (state(), message(), prop::collection::vec(artifact(), 0..3), prop::collection::vec(message(), 0..2))
            .prop_map(|(state, message, artifacts, history)| json!({"kind": "task", "id": "t", "contextId": "c",
                "status": {"state": state, "message": message, "timestamp": "2026-01-02T03:04:05Z"},
                "artifacts": artifacts, "history": history})),
        state().prop_map(|state| json!({"kind": "status-update", "taskId": "t", "contextId": "c",
            "status": {"state": state}, "final": super::values::is_terminal(state)})),
        (artifact(), any::<bool>()).prop_map(|(artifact, append)| json!({"kind": "artifact-update",
            "taskId": "t", "contextId": "c", "artifact": artifact, "append": append})),
    ]
}

/// Anything, with the words of the protocol in it.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop::sample::select(vec![
            "task",
            "ROLE_USER",
            "TASK_STATE_X",
            "text",
            "file",
            "completed"
        ])
        .prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let key = prop::sample::select(vec![
            "kind",
            "task",
            "message",
            "statusUpdate",
            "artifact",
            "status",
            "state",
            "role",
            "parts",
            "artifacts",
            "history",
            "text",
            "data",
            "file",
            "raw",
            "metadata",
            "configuration",
            "configs",
            "pushNotificationConfig",
            "authentication",
            "schemes",
            "scheme",
            "taskId",
            "id",
            "supportedInterfaces",
            "skills",
            "content",
            "timestamp",
            "other",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5).prop_map(|entries| {
                Value::Object(
                    entries
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

const OPERATIONS: [Operation; 11] = [
    Operation::Send,
    Operation::Stream,
    Operation::GetTask,
    Operation::CancelTask,
    Operation::ListTasks,
    Operation::Resubscribe,
    Operation::SetPush,
    Operation::GetPush,
    Operation::ListPush,
    Operation::DeletePush,
    Operation::ExtendedCard,
];

proptest! {
    #[test]
    fn there_and_back_keeps_what_both_can_say(item in item()) {
        let modern = translate(&item, Generation::Modern);
        prop_assert_ne!(&modern, &item);
        prop_assert_eq!(translate(&modern, Generation::Legacy), item);
        prop_assert_eq!(translate(&modern, Generation::Modern), modern);
    }

    #[test]
    fn nothing_makes_it_panic_and_twice_is_once(value in anything()) {
        for to in [Generation::Legacy, Generation::Modern] {
            for operation in OPERATIONS {
                let _ = params::translate(operation, &value, to);
                let _ = results::translate(operation, &value, to);
            }
        }
        let legacy = translate(&value, Generation::Legacy);
        prop_assert_eq!(translate(&legacy, Generation::Legacy), legacy);
        if let Some((shape, mut value)) = recognise(&value) {
            complete::complete(shape, &mut value, &complete::Ids::of_request(&Value::Null));
        }
        let mut request = value.clone();
        complete::complete_request(&mut request);
        let _ = card::project(&card::hybrid(&value, "http://127.0.0.1:1"));
    }
}
