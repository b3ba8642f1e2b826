//! The results of requests, of either generation in the wanted one.

use serde_json::{Value, json};

use super::content;
use super::methods::{Generation, Operation};
use super::params::task_push_config;
use super::values::{self, each_item, object};

/// The result of an operation in a generation; what is not recognised stays as it is.
pub(in crate::drivers) fn translate(operation: Operation, result: &Value, to: Generation) -> Value {
    match operation {
        Operation::Send | Operation::Stream | Operation::Resubscribe => {
            content::translate(result, to)
        }
        Operation::GetTask | Operation::CancelTask => values::task(result, to),
        Operation::ListTasks => object(result, |map| {
            each_item(map, "tasks", |task| values::task(task, to));
        }),
        Operation::SetPush | Operation::GetPush => task_push_config(result, to),
        Operation::ListPush => list(result, to),
        Operation::DeletePush => match to {
            Generation::Legacy if result.as_object().is_some_and(serde_json::Map::is_empty) => {
                Value::Null
            }
            Generation::Modern if result.is_null() => json!({}),
            _ => result.clone(),
        },
        Operation::ExtendedCard => result.clone(),
    }
}

/// 0.3 answers with the list, 1.0 with pages of it.
fn list(result: &Value, to: Generation) -> Value {
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
        Generation::Legacy => configs,
        Generation::Modern => json!({ "configs": configs }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_answer_the_same() {
        for (operation, legacy, modern) in [
            (
                Operation::GetTask,
                json!({"id": "1", "status": {"state": "working"}, "kind": "task"}),
                json!({"id": "1", "status": {"state": "TASK_STATE_WORKING"}}),
            ),
            (
                Operation::ListTasks,
                json!({"tasks": [{"id": "1", "status": {"state": "working"}, "kind": "task"}], "totalSize": 1}),
                json!({"tasks": [{"id": "1", "status": {"state": "TASK_STATE_WORKING"}}], "totalSize": 1}),
            ),
            (
                Operation::ListPush,
                json!([{"taskId": "1", "pushNotificationConfig": {"id": "c", "url": "http://x"}}]),
                json!({"configs": [{"taskId": "1", "id": "c", "url": "http://x"}]}),
            ),
            (Operation::ListPush, json!([]), json!({"configs": []})),
            (Operation::DeletePush, json!(null), json!({})),
        ] {
            for from in [&legacy, &modern] {
                assert_eq!(translate(operation, from, Generation::Legacy), legacy);
                assert_eq!(translate(operation, from, Generation::Modern), modern);
            }
        }
        for odd in [json!(3), json!("x"), json!({"configs": 3})] {
            assert_eq!(
                translate(Operation::ListPush, &odd, Generation::Legacy),
                odd
            );
        }
    }
}
