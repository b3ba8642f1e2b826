//! What the server remembers: the tasks it answered with, and where the subject wants to hear of
//! them. The subject decides how much that is, so all of it is bounded.

use std::collections::VecDeque;

use proofhouse_protocol::a2a::A2aVersion;
use proofhouse_protocol::a2a::values::state_of;
use serde_json::{Value, json};

use crate::drivers::a2a::complete::fresh_id;
use crate::drivers::a2a::push::PushTarget;

/// Tasks that are kept; every message can make one. The oldest goes first.
const MAX_TASKS: usize = 1_000;
/// Bytes of tasks that are kept: answers may repeat what the subject said, up to a whole message.
const MAX_TASK_BYTES: usize = 32 << 20;
/// Webhooks of one task.
const MAX_WEBHOOKS: usize = 20;
/// Bytes of the settings of one webhook.
const MAX_WEBHOOK_BYTES: usize = 16 << 10;
/// Tasks on a page, at most and when nobody says.
const MAX_PAGE: usize = 100;
const DEFAULT_PAGE: usize = 50;

/// The tasks and webhooks of one run.
#[derive(Debug, Default)]
pub(super) struct Memory {
    tasks: VecDeque<RememberedTask>,
    bytes: usize,
}

#[derive(Debug)]
struct RememberedTask {
    id: String,
    /// As 0.3 has it.
    task: Value,
    bytes: usize,
    webhooks: Vec<PushTarget>,
}

impl Memory {
    /// Keeps a task; one of the same id is replaced and keeps its webhooks.
    pub(super) fn remember(&mut self, task: &Value) {
        let Some(id) = task.get("id").and_then(Value::as_str) else {
            return;
        };
        let bytes = task.to_string().len();
        if bytes > MAX_TASK_BYTES {
            return;
        }
        let mut webhooks = Vec::new();
        if let Some(at) = self.tasks.iter().position(|known| known.id == id)
            && let Some(known) = self.tasks.remove(at)
        {
            self.bytes -= known.bytes;
            webhooks = known.webhooks;
        }
        self.bytes += bytes;
        self.tasks.push_back(RememberedTask {
            id: id.to_owned(),
            task: task.clone(),
            bytes,
            webhooks,
        });
        while self.tasks.len() > MAX_TASKS || self.bytes > MAX_TASK_BYTES {
            let Some(oldest) = self.tasks.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes;
        }
    }

    /// A task.
    pub(super) fn task(&self, id: &str) -> Option<&Value> {
        self.find(id).map(|known| &known.task)
    }

    /// Ends a task; the task as it is then.
    pub(super) fn cancel(&mut self, id: &str) -> Option<Value> {
        let known = self.tasks.iter_mut().find(|known| known.id == id)?;
        if let Some(Value::Object(status)) = known.task.get_mut("status") {
            status.insert("state".to_owned(), "canceled".into());
        }
        Some(known.task.clone())
    }

    /// A page of the tasks, the newest first.
    pub(super) fn list(&self, params: &Value) -> Value {
        let text = |key: &str| params.get(key).and_then(Value::as_str);
        let context = text("contextId").filter(|context| !context.is_empty());
        let state = text("status").filter(|state| !matches!(*state, "" | "unknown"));
        let number = |value: Option<u64>| value.and_then(|number| usize::try_from(number).ok());
        let size = number(params.get("pageSize").and_then(Value::as_u64)).filter(|size| *size > 0);
        let size = size.unwrap_or(DEFAULT_PAGE).min(MAX_PAGE);
        let start = text("pageToken")
            .and_then(|token| token.parse().ok())
            .unwrap_or(0);
        let with_artifacts = params.get("includeArtifacts") == Some(&Value::Bool(true));
        let wanted: Vec<&Value> = self
            .tasks
            .iter()
            .rev()
            .map(|known| &known.task)
            .filter(|task| context.is_none_or(|id| task.get("contextId").is_some_and(|c| c == id)))
            .filter(|task| state.is_none_or(|state| state_of(task) == Some(state)))
            .collect();
        let page: Vec<Value> = wanted
            .iter()
            .skip(start)
            .take(size)
            .map(|task| {
                let mut task = (*task).clone();
                if !with_artifacts && let Some(map) = task.as_object_mut() {
                    map.shift_remove("artifacts");
                }
                task
            })
            .collect();
        let next = start.saturating_add(page.len());
        let token = if next < wanted.len() && !page.is_empty() {
            next.to_string()
        } else {
            String::new()
        };
        json!({"tasks": page, "nextPageToken": token, "pageSize": size, "totalSize": wanted.len()})
    }

    /// Keeps a webhook of a task, with an id of its own; `None` when there is no such task or the
    /// webhook is no good.
    pub(super) fn add_webhook(
        &mut self,
        task: &str,
        config: &Value,
        generation: A2aVersion,
    ) -> Option<Value> {
        let known = self.tasks.iter_mut().find(|known| known.id == task)?;
        let mut config = config.as_object()?.clone();
        config.get("url")?.as_str()?;
        let id = config.get("id").and_then(Value::as_str).unwrap_or_default();
        let id = if id.is_empty() {
            fresh_id()
        } else {
            id.to_owned()
        };
        config.insert("id".to_owned(), id.as_str().into());
        let config = Value::Object(config);
        if config.to_string().len() > MAX_WEBHOOK_BYTES {
            return None;
        }
        known.webhooks.retain(|hook| !has_id(hook, &id));
        if known.webhooks.len() >= MAX_WEBHOOKS {
            known.webhooks.remove(0);
        }
        known.webhooks.push(PushTarget {
            config: config.clone(),
            generation,
        });
        Some(config)
    }

    /// The webhooks of a task.
    pub(super) fn webhooks(&self, task: &str) -> Option<&[PushTarget]> {
        self.find(task).map(|known| &*known.webhooks)
    }

    /// Forgets a webhook.
    pub(super) fn remove_webhook(&mut self, task: &str, id: &str) -> Option<()> {
        let known = self.tasks.iter_mut().find(|known| known.id == task)?;
        known.webhooks.retain(|hook| !has_id(hook, id));
        Some(())
    }

    /// All webhooks.
    pub(super) fn all_webhooks(&self) -> Vec<PushTarget> {
        self.tasks
            .iter()
            .flat_map(|known| known.webhooks.iter().cloned())
            .collect()
    }

    fn find(&self, id: &str) -> Option<&RememberedTask> {
        self.tasks.iter().find(|known| known.id == id)
    }
}

/// Whether a webhook has this id.
pub(super) fn has_id(hook: &PushTarget, id: &str) -> bool {
    hook.config.get("id").and_then(Value::as_str) == Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_subject_can_grow_is_bounded() {
        let mut memory = Memory::default();
        for n in 0..MAX_TASKS + 10 {
            memory.remember(&json!({"id": n.to_string(), "status": {"state": "working"}}));
        }
        assert_eq!(memory.tasks.len(), MAX_TASKS);
        assert!(memory.task("0").is_none() && memory.task("1009").is_some());
        let large = "x".repeat(MAX_TASK_BYTES / 2);
        for n in 0..4 {
            memory.remember(&json!({"id": format!("large-{n}"), "text": large}));
        }
        assert!(memory.bytes <= MAX_TASK_BYTES);
        assert!(memory.task("large-3").is_some());
        memory.remember(&json!({"id": "larger", "text": "x".repeat(MAX_TASK_BYTES)}));
        assert!(memory.task("larger").is_none());
        memory.remember(&json!({"id": 7}));

        for n in 0..50 {
            let config = json!({"url": format!("http://127.0.0.1/{n}")});
            assert!(
                memory
                    .add_webhook("large-3", &config, A2aVersion::V0_3)
                    .is_some()
            );
        }
        assert_eq!(memory.webhooks("large-3").unwrap().len(), MAX_WEBHOOKS);
        let config = json!({"url": "x".repeat(MAX_WEBHOOK_BYTES)});
        assert!(
            memory
                .add_webhook("large-3", &config, A2aVersion::V0_3)
                .is_none()
        );
        assert!(
            memory
                .add_webhook("nobody", &json!({"url": "x"}), A2aVersion::V0_3)
                .is_none()
        );
    }

    #[test]
    fn tasks_come_in_pages() {
        let mut memory = Memory::default();
        for n in 0..7 {
            let state = if n % 2 == 0 { "working" } else { "completed" };
            memory.remember(&json!({"id": n.to_string(), "contextId": "c", "status": {"state": state}, "artifacts": []}));
        }
        let ids = |page: &Value| -> Vec<String> {
            let tasks = page["tasks"].as_array().unwrap();
            tasks
                .iter()
                .map(|task| task["id"].as_str().unwrap().to_owned())
                .collect()
        };
        let first = memory.list(&json!({"pageSize": 3, "status": "working", "contextId": "c"}));
        assert_eq!(ids(&first), ["6", "4", "2"]);
        assert_eq!(
            (&first["totalSize"], &first["nextPageToken"]),
            (&json!(4), &json!("3"))
        );
        let second = memory.list(&json!({"pageSize": 3, "status": "working", "pageToken": "3"}));
        assert_eq!(
            (ids(&second), &second["nextPageToken"]),
            (vec!["0".to_owned()], &json!(""))
        );
        assert_eq!(memory.list(&json!({"contextId": "other"}))["totalSize"], 0);
        for odd in [
            json!({"pageSize": -1, "pageToken": "99999999999999999999"}),
            json!([]),
            json!({"pageToken": "900"}),
        ] {
            memory.list(&odd);
        }
        assert_eq!(memory.cancel("0").unwrap()["status"]["state"], "canceled");
    }
}
