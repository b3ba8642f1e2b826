//! The results of requests, of either generation in the wanted one.

use serde_json::{Value, json};

use super::params::task_push_config;
use super::shape::translate_item;
use super::values::{self, each_item, object};
use super::{A2aMethod, A2aVersion};

/// The result of a request of either generation, in the wanted one; what is not recognised stays as it is.
///
/// ```
/// use proofhouse_protocol::a2a::{A2aMethod, A2aVersion, translate_result};
/// use serde_json::json;
///
/// let new = json!({"id": "1", "status": {"state": "TASK_STATE_WORKING"}});
/// let old = translate_result(A2aMethod::GetTask, &new, A2aVersion::V0_3);
/// assert_eq!(old, json!({"id": "1", "status": {"state": "working"}, "kind": "task"}));
/// ```
#[must_use]
pub fn translate_result(method: A2aMethod, result: &Value, to: A2aVersion) -> Value {
    match method {
        A2aMethod::SendMessage | A2aMethod::StreamMessage | A2aMethod::ResubscribeTask => {
            translate_item(result, to)
        }
        A2aMethod::GetTask | A2aMethod::CancelTask => values::task(result, to),
        A2aMethod::ListTasks => object(result, |map| {
            each_item(map, "tasks", |task| values::task(task, to));
        }),
        A2aMethod::SetPushConfig | A2aMethod::GetPushConfig => task_push_config(result, to),
        A2aMethod::ListPushConfigs => list(result, to),
        A2aMethod::DeletePushConfig => match to {
            A2aVersion::V0_3 if result.as_object().is_some_and(serde_json::Map::is_empty) => {
                Value::Null
            }
            A2aVersion::V1_0 if result.is_null() => json!({}),
            _ => result.clone(),
        },
        A2aMethod::GetExtendedCard => result.clone(),
    }
}

/// 0.3 answers with the list, 1.0 with pages of it.
fn list(result: &Value, to: A2aVersion) -> Value {
    let configs = match result {
        Value::Array(configs) => configs,
        _ => match result.get("configs") {
            Some(Value::Array(configs)) => configs,
            None if result.as_object().is_some_and(serde_json::Map::is_empty) => &Vec::new(),
            _ => return result.clone(),
        },
    };
    let configs: Value = configs
        .iter()
        .map(|config| task_push_config(config, to))
        .collect();
    match to {
        A2aVersion::V0_3 => configs,
        A2aVersion::V1_0 => json!({ "configs": configs }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_answer_the_same() {
        for (operation, legacy, modern) in [
            (
                A2aMethod::GetTask,
                json!({"id": "1", "status": {"state": "working"}, "kind": "task"}),
                json!({"id": "1", "status": {"state": "TASK_STATE_WORKING"}}),
            ),
            (
                A2aMethod::ListTasks,
                json!({"tasks": [{"id": "1", "status": {"state": "working"}, "kind": "task"}], "totalSize": 1}),
                json!({"tasks": [{"id": "1", "status": {"state": "TASK_STATE_WORKING"}}], "totalSize": 1}),
            ),
            (
                A2aMethod::ListPushConfigs,
                json!([{"taskId": "1", "pushNotificationConfig": {"id": "c", "url": "http://x"}}]),
                json!({"configs": [{"taskId": "1", "id": "c", "url": "http://x"}]}),
            ),
            (
                A2aMethod::ListPushConfigs,
                json!([]),
                json!({"configs": []}),
            ),
            (A2aMethod::DeletePushConfig, json!(null), json!({})),
        ] {
            for from in [&legacy, &modern] {
                assert_eq!(translate_result(operation, from, A2aVersion::V0_3), legacy);
                assert_eq!(translate_result(operation, from, A2aVersion::V1_0), modern);
            }
        }
        for odd in [json!(3), json!("x"), json!({"configs": 3})] {
            assert_eq!(
                translate_result(A2aMethod::ListPushConfigs, &odd, A2aVersion::V0_3),
                odd
            );
        }
    }
}
