//! Properties of what is filled in: nothing that a peer or a document says makes it panic.

use proofhouse_protocol::a2a::{A2aShape, card};
use proptest::prelude::*;
use serde_json::Value;

use super::complete;
use super::hybrid::hybrid;

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 é{}\"_-]{0,12}"
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

proptest! {
    #[test]
    fn nothing_makes_it_panic(value in anything()) {
        if let Some((shape, mut value)) = A2aShape::recognise(&value) {
            complete::complete(shape, &mut value, &complete::Ids::of_request(&Value::Null));
        }
        let mut request = value.clone();
        complete::complete_request(&mut request);
        let _ = card::project(&hybrid(&value, "http://127.0.0.1:1"));
    }
}
