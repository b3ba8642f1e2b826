//! The parameters of requests, of either generation in the wanted one.

use serde_json::{Map, Value};

use super::values::{self, each, object};
use super::{A2aMethod, A2aVersion};

/// The parameters of a request of either generation, in the wanted one.
///
/// ```
/// use proofhouse_protocol::a2a::{A2aMethod, A2aVersion, translate_params};
/// use serde_json::json;
///
/// let old = json!({"id": "1", "pushNotificationConfigId": "c"});
/// let new = translate_params(A2aMethod::GetPushConfig, &old, A2aVersion::V1_0);
/// assert_eq!(new, json!({"taskId": "1", "id": "c"}));
/// ```
#[must_use]
pub fn translate_params(method: A2aMethod, params: &Value, to: A2aVersion) -> Value {
    object(params, |map| match method {
        A2aMethod::SendMessage | A2aMethod::StreamMessage => {
            each(map, "message", |value| values::message(value, to));
            each(map, "configuration", |value| {
                object(value, |map| configuration(map, to))
            });
        }
        A2aMethod::ListTasks => each(map, "status", |value| values::state(value, to)),
        A2aMethod::SetPushConfig => set_push(map, to),
        A2aMethod::GetPushConfig | A2aMethod::DeletePushConfig => rename(
            map,
            to,
            [("id", "taskId"), ("pushNotificationConfigId", "id")],
        ),
        A2aMethod::ListPushConfigs => rename(map, to, [("id", "taskId")]),
        A2aMethod::GetTask
        | A2aMethod::CancelTask
        | A2aMethod::ResubscribeTask
        | A2aMethod::GetExtendedCard => {}
    })
}

fn configuration(map: &mut Map<String, Value>, to: A2aVersion) {
    let (old, new) = match to {
        A2aVersion::V0_3 => ("taskPushNotificationConfig", "pushNotificationConfig"),
        A2aVersion::V1_0 => ("pushNotificationConfig", "taskPushNotificationConfig"),
    };
    if let Some(config) = map.shift_remove(old) {
        map.entry(new).or_insert(config);
    }
    each(map, new, |value| values::push_config(value, to));
    // One says whether to wait, the other whether not to.
    let (old, new) = match to {
        A2aVersion::V0_3 => ("returnImmediately", "blocking"),
        A2aVersion::V1_0 => ("blocking", "returnImmediately"),
    };
    if let Some(Value::Bool(flag)) = map.get(old).cloned() {
        map.shift_remove(old);
        map.entry(new).or_insert(Value::Bool(!flag));
    }
}

/// 0.3 nests the settings, 1.0 has them beside the task.
pub(super) fn set_push(map: &mut Map<String, Value>, to: A2aVersion) {
    match to {
        A2aVersion::V1_0 => {
            if let Some(Value::Object(config)) = map.get("pushNotificationConfig").cloned() {
                map.shift_remove("pushNotificationConfig");
                let config = values::push_config(&config.into(), to);
                for (key, value) in config.as_object().into_iter().flatten() {
                    map.entry(key).or_insert_with(|| value.clone());
                }
            }
        }
        A2aVersion::V0_3 if !map.contains_key("pushNotificationConfig") => {
            let mut config = Map::new();
            for key in ["id", "url", "token", "authentication"] {
                if let Some(value) = map.shift_remove(key) {
                    config.insert(key.to_owned(), value);
                }
            }
            let config = values::push_config(&config.into(), to);
            map.insert("pushNotificationConfig".to_owned(), config);
        }
        A2aVersion::V0_3 => {
            each(map, "pushNotificationConfig", |value| {
                values::push_config(value, to)
            });
        }
    }
}

/// Renames members; 1.0 is told by `taskId`, which 0.3 does not have here.
fn rename<const N: usize>(map: &mut Map<String, Value>, to: A2aVersion, names: [(&str, &str); N]) {
    let is_modern = map.contains_key("taskId");
    if is_modern == (to == A2aVersion::V1_0) {
        return;
    }
    // All are taken out first: the new name of one is the old name of another.
    let taken: Vec<(&str, Option<Value>)> = names
        .iter()
        .map(|(legacy, modern)| match to {
            A2aVersion::V0_3 => (*legacy, map.shift_remove(*modern)),
            A2aVersion::V1_0 => (*modern, map.shift_remove(*legacy)),
        })
        .collect();
    for (name, value) in taken {
        if let Some(value) = value {
            map.insert(name.to_owned(), value);
        }
    }
}

/// The settings of push notifications with their task, as a result.
pub(super) fn task_push_config(value: &Value, to: A2aVersion) -> Value {
    object(value, |map| set_push(map, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_generations_ask_the_same() {
        for (operation, legacy, modern) in [
            (
                A2aMethod::SendMessage,
                json!({"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]},
                    "configuration": {"blocking": true, "acceptedOutputModes": ["text"], "pushNotificationConfig":
                        {"url": "http://x", "authentication": {"schemes": ["Bearer"], "credentials": "c"}}}}),
                json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
                    "configuration": {"returnImmediately": false, "acceptedOutputModes": ["text"], "taskPushNotificationConfig":
                        {"url": "http://x", "authentication": {"scheme": "Bearer", "credentials": "c"}}}}),
            ),
            (
                A2aMethod::GetTask,
                json!({"id": "1", "historyLength": 3}),
                json!({"id": "1", "historyLength": 3}),
            ),
            (
                A2aMethod::ListTasks,
                json!({"status": "auth-required"}),
                json!({"status": "TASK_STATE_AUTH_REQUIRED"}),
            ),
            (
                A2aMethod::SetPushConfig,
                json!({"taskId": "1", "pushNotificationConfig": {"id": "c", "url": "http://x", "token": "t"}}),
                json!({"taskId": "1", "id": "c", "url": "http://x", "token": "t"}),
            ),
            (
                A2aMethod::GetPushConfig,
                json!({"id": "1", "pushNotificationConfigId": "c"}),
                json!({"taskId": "1", "id": "c"}),
            ),
            (
                A2aMethod::ListPushConfigs,
                json!({"id": "1"}),
                json!({"taskId": "1"}),
            ),
        ] {
            for from in [&legacy, &modern] {
                assert_eq!(translate_params(operation, from, A2aVersion::V0_3), legacy);
                assert_eq!(translate_params(operation, from, A2aVersion::V1_0), modern);
            }
            for odd in [
                json!([1]),
                json!("x"),
                json!({"message": 3, "configuration": []}),
            ] {
                let _ = translate_params(operation, &odd, A2aVersion::V0_3);
                let _ = translate_params(operation, &odd, A2aVersion::V1_0);
            }
        }
    }
}
