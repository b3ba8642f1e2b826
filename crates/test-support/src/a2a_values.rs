//! Values like those that peers of A2A send, right and wrong, for tests of properties.

use proptest::prelude::*;
use serde_json::Value;

/// A short text, with characters that JSON and templates care about.
pub fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 é{}\"_-]{0,12}"
}

/// Anything, with the words of the protocol in it.
pub fn anything() -> impl Strategy<Value = Value> {
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
