//! The parameters of requests, of either generation in the wanted one.

use serde_json::{Map, Value, json};

use super::methods::{Generation, Operation};
use super::values::{self, each, object};

/// The parameters of an operation in a generation.
pub(in crate::drivers) fn translate(operation: Operation, params: &Value, to: Generation) -> Value {
    object(params, |map| match operation {
        Operation::Send | Operation::Stream => {
            each(map, "message", |value| values::message(value, to));
            each(map, "configuration", |value| {
                object(value, |map| configuration(map, to))
            });
        }
        Operation::ListTasks => each(map, "status", |value| values::state(value, to)),
        Operation::SetPush => set_push(map, to),
        Operation::GetPush | Operation::DeletePush => rename(
            map,
            to,
            [("id", "taskId"), ("pushNotificationConfigId", "id")],
        ),
        Operation::ListPush => rename(map, to, [("id", "taskId")]),
        Operation::GetTask
        | Operation::CancelTask
        | Operation::Resubscribe
        | Operation::ExtendedCard => {}
    })
}

fn configuration(map: &mut Map<String, Value>, to: Generation) {
    let (old, new) = match to {
        Generation::Legacy => ("taskPushNotificationConfig", "pushNotificationConfig"),
        Generation::Modern => ("pushNotificationConfig", "taskPushNotificationConfig"),
    };
    if let Some(config) = map.shift_remove(old) {
        map.entry(new).or_insert(config);
    }
    each(map, new, |value| values::push_config(value, to));
    // One says whether to wait, the other whether not to.
    let (old, new) = match to {
        Generation::Legacy => ("returnImmediately", "blocking"),
        Generation::Modern => ("blocking", "returnImmediately"),
    };
    if let Some(Value::Bool(flag)) = map.get(old).cloned() {
        map.shift_remove(old);
        map.entry(new).or_insert(Value::Bool(!flag));
    }
}

/// 0.3 nests the settings, 1.0 has them beside the task.
pub(super) fn set_push(map: &mut Map<String, Value>, to: Generation) {
    match to {
        Generation::Modern => {
            if let Some(Value::Object(config)) = map.get("pushNotificationConfig").cloned() {
                map.shift_remove("pushNotificationConfig");
                let config = values::push_config(&config.into(), to);
                for (key, value) in config.as_object().into_iter().flatten() {
                    map.entry(key).or_insert_with(|| value.clone());
                }
            }
        }
        Generation::Legacy if !map.contains_key("pushNotificationConfig") => {
            let mut config = Map::new();
            for key in ["id", "url", "token", "authentication"] {
                if let Some(value) = map.shift_remove(key) {
                    config.insert(key.to_owned(), value);
                }
            }
            let config = values::push_config(&config.into(), to);
            map.insert("pushNotificationConfig".to_owned(), config);
        }
        Generation::Legacy => {
            each(map, "pushNotificationConfig", |value| {
                values::push_config(value, to)
            });
        }
    }
}

/// Renames members; 1.0 is told by `taskId`, which 0.3 does not have here.
fn rename<const N: usize>(map: &mut Map<String, Value>, to: Generation, names: [(&str, &str); N]) {
    let is_modern = map.contains_key("taskId");
    if is_modern == (to == Generation::Modern) {
        return;
    }
    // All are taken out first: the new name of one is the old name of another.
    let taken: Vec<(&str, Option<Value>)> = names
        .iter()
        .map(|(legacy, modern)| match to {
            Generation::Legacy => (*legacy, map.shift_remove(*modern)),
            Generation::Modern => (*modern, map.shift_remove(*legacy)),
        })
        .collect();
    for (name, value) in taken {
        if let Some(value) = value {
            map.insert(name.to_owned(), value);
        }
    }
}

/// The settings of push notifications with their task, as a result.
pub(super) fn task_push_config(value: &Value, to: Generation) -> Value {
    object(value, |map| set_push(map, to))
}

/// The parameters, which documents may leave out.
pub(in crate::drivers) fn or_empty(params: Value) -> Value {
    if params.is_null() { json!({}) } else { params }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_ask_the_same() {
        for (operation, legacy, modern) in [
            (
                Operation::Send,
                json!({"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]},
                    "configuration": {"blocking": true, "acceptedOutputModes": ["text"], "pushNotificationConfig":
                        {"url": "http://x", "authentication": {"schemes": ["Bearer"], "credentials": "c"}}}}),
                json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
                    "configuration": {"returnImmediately": false, "acceptedOutputModes": ["text"], "taskPushNotificationConfig":
                        {"url": "http://x", "authentication": {"scheme": "Bearer", "credentials": "c"}}}}),
            ),
            (
                Operation::GetTask,
                json!({"id": "1", "historyLength": 3}),
                json!({"id": "1", "historyLength": 3}),
            ),
            (
                Operation::ListTasks,
                json!({"status": "auth-required"}),
                json!({"status": "TASK_STATE_AUTH_REQUIRED"}),
            ),
            (
                Operation::SetPush,
                json!({"taskId": "1", "pushNotificationConfig": {"id": "c", "url": "http://x", "token": "t"}}),
                json!({"taskId": "1", "id": "c", "url": "http://x", "token": "t"}),
            ),
            (
                Operation::GetPush,
                json!({"id": "1", "pushNotificationConfigId": "c"}),
                json!({"taskId": "1", "id": "c"}),
            ),
            (
                Operation::ListPush,
                json!({"id": "1"}),
                json!({"taskId": "1"}),
            ),
        ] {
            for from in [&legacy, &modern] {
                assert_eq!(translate(operation, from, Generation::Legacy), legacy);
                assert_eq!(translate(operation, from, Generation::Modern), modern);
            }
            for odd in [
                json!([1]),
                json!("x"),
                json!({"message": 3, "configuration": []}),
            ] {
                let _ = translate(operation, &odd, Generation::Legacy);
                let _ = translate(operation, &odd, Generation::Modern);
            }
        }
    }
}
