//! Tasks of MCP: a call may be answered with a task, and what it came to is asked for later. That is judged as the result of the call.

use std::collections::{HashMap, VecDeque};

use proofhouse_protocol::mcp::{McpMethod, result_type};
use serde_json::Value;

use super::open_calls::PendingCall;

/// How many tasks are remembered; the oldest are forgotten first, and what they came to is judged under the name of the method.
const MAX_TASKS: usize = 1000;

/// No id of a task is longer that is remembered.
const MAX_ID: usize = 1024;

/// What a task was begun with.
#[derive(Debug)]
struct TaskOrigin {
    method: String,
    params: Value,
    arguments: Value,
}

/// Tasks by their ids.
#[derive(Debug, Default)]
pub(super) struct TaskOrigins {
    by_id: HashMap<String, TaskOrigin>,
    order: VecDeque<String>,
}

impl TaskOrigins {
    /// Remembers a task, if that is what a request was answered with.
    pub(super) fn note(&mut self, call: &PendingCall, result: &Value) {
        // The stateless revisions have no member around it.
        let is_task = result
            .get(result_type::KEY)
            .is_some_and(|kind| kind == result_type::TASK);
        let flat = result.get("taskId").filter(|_| is_task);
        let id = result.pointer("/task/taskId").or(flat);
        let id = id.and_then(Value::as_str);
        let Some(id) = id.filter(|id| id.len() <= MAX_ID) else {
            return;
        };
        let origin = TaskOrigin {
            method: call.method.clone(),
            params: call.params.clone(),
            arguments: call.arguments.clone(),
        };
        if self.by_id.insert(id.to_owned(), origin).is_none() {
            self.order.push_back(id.to_owned());
        }
        while self.order.len() > MAX_TASKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// The request that a task was begun with, as if this one were it; nothing where this asks for no known task.
    pub(super) fn begun_with(&self, call: &PendingCall) -> Option<PendingCall> {
        let method = McpMethod::parse(&call.method)?;
        if !matches!(method, McpMethod::TasksResult | McpMethod::TasksGet) {
            return None;
        }
        let id = call.params.get("taskId")?.as_str()?;
        let origin = self.by_id.get(id)?;
        Some(PendingCall {
            method: origin.method.clone(),
            params: origin.params.clone(),
            arguments: origin.arguments.clone(),
            ..call.clone()
        })
    }
}
