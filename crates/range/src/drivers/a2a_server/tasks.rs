//! What each operation is answered with.

use std::sync::Arc;

use proofhouse_wire::server::Reply;
use serde_json::{Value, json};

use super::answers::Answer;
use super::handler::{Call, Server};
use super::memory::has_id;
use super::state::State;
use crate::drivers::a2a::content::Shape;
use crate::drivers::a2a::methods::Operation;
use crate::drivers::a2a::problems::Problem;
use crate::drivers::a2a::push::Webhook;
use crate::drivers::a2a::results;
use crate::drivers::a2a::values::{is_terminal, state_of};
use crate::exposure::CarrierKind;

impl Server {
    /// Answers a call; `None` for a method that nobody knows.
    pub(super) async fn serve(&self, call: Call, operation: Option<Operation>) -> Reply {
        let Some(operation) = operation else {
            return self.reply(call, Err(Problem::MethodNotFound)).await;
        };
        let result = match operation {
            Operation::Send | Operation::Stream => return self.message(call, operation).await,
            Operation::Resubscribe => return self.resubscribe(call).await,
            Operation::ExtendedCard => self.extended_card(&call),
            Operation::ListTasks => Ok(self.memory().list(&call.params)),
            Operation::GetTask => self
                .task(&call.params)
                .map(|task| with_history(task, &call.params)),
            Operation::CancelTask => self.cancel(&call.params),
            Operation::SetPush
            | Operation::GetPush
            | Operation::ListPush
            | Operation::DeletePush => self.push(&call, operation),
        };
        let outcome = result.map(|content| {
            let wire = results::translate(operation, &content, call.generation);
            (content, wire)
        });
        self.reply(call, outcome).await
    }

    async fn message(&self, call: Call, operation: Operation) -> Reply {
        if !call.params.get("message").is_some_and(Value::is_object) {
            return self.reply(call, Err(Problem::InvalidParams)).await;
        }
        let (answer, name) = self.answer(&call.phase, &call.params).await;
        if let Some(task) = answer.task() {
            let mut memory = self.memory();
            memory.remember(task);
            let config = call
                .params
                .get("configuration")
                .and_then(|configuration| configuration.get("pushNotificationConfig"));
            if let (Some(config), Some(id)) = (config, task.get("id").and_then(Value::as_str)) {
                memory.add_webhook(id, config, call.generation);
            }
        }
        if operation == Operation::Stream {
            return self.stream(call, answer.items(), name).await;
        }
        let wire = answer.wire(call.generation);
        let phase = Arc::clone(&call.phase);
        let reply = self.reply(call, Ok((answer.content().clone(), wire))).await;
        // A run that is over delivers nothing more.
        if let Some(name) = name
            && !self.context.over().is_cancelled()
        {
            let kind = CarrierKind::TaskResponse;
            self.context.delivered_in(&phase, kind, &name);
        }
        reply
    }

    /// Nothing happens to a task after it was answered, so all of it is told again.
    async fn resubscribe(&self, call: Call) -> Reply {
        match self.task(&call.params) {
            Ok(task) => {
                let items = Answer::Known(Shape::Task, task).items();
                self.stream(call, items, None).await
            }
            Err(problem) => self.reply(call, Err(problem)).await,
        }
    }

    fn task(&self, params: &Value) -> Result<Value, Problem> {
        let id = text(params, "id").ok_or(Problem::InvalidParams)?;
        let memory = self.memory();
        memory.task(id).cloned().ok_or(Problem::TaskNotFound)
    }

    fn cancel(&self, params: &Value) -> Result<Value, Problem> {
        let task = self.task(params)?;
        if state_of(&task).is_some_and(is_terminal) {
            return Err(Problem::NotCancelable);
        }
        let id = text(params, "id").ok_or(Problem::InvalidParams)?;
        self.memory().cancel(id).ok_or(Problem::TaskNotFound)
    }

    fn push(&self, call: &Call, operation: Operation) -> Result<Value, Problem> {
        if call.phase.prepared(State::read).refuses_push() {
            return Err(Problem::NoPush);
        }
        let params = &call.params;
        let mut memory = self.memory();
        if operation == Operation::SetPush {
            let task = text(params, "taskId").ok_or(Problem::InvalidParams)?;
            memory.task(task).ok_or(Problem::TaskNotFound)?;
            let config = params.get("pushNotificationConfig").unwrap_or(&Value::Null);
            return memory
                .add_webhook(task, config, call.generation)
                .map(|config| json!({"taskId": task, "pushNotificationConfig": config}))
                .ok_or(Problem::InvalidParams);
        }
        let task = text(params, "id").ok_or(Problem::InvalidParams)?;
        let hooks = memory.webhooks(task).ok_or(Problem::TaskNotFound)?;
        let shown = |hook: &Webhook| json!({"taskId": task, "pushNotificationConfig": hook.config});
        let wanted = text(params, "pushNotificationConfigId");
        match operation {
            Operation::ListPush => Ok(hooks.iter().map(shown).collect()),
            Operation::GetPush => hooks
                .iter()
                .find(|hook| wanted.is_none_or(|id| has_id(hook, id)))
                .map(shown)
                .ok_or(Problem::TaskNotFound),
            _ => {
                let id = wanted.ok_or(Problem::InvalidParams)?;
                memory
                    .remove_webhook(task, id)
                    .ok_or(Problem::TaskNotFound)?;
                Ok(Value::Null)
            }
        }
    }
}

fn text<'v>(params: &'v Value, key: &str) -> Option<&'v str> {
    params.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// As much of the history as was asked for: the last messages of it.
fn with_history(mut task: Value, params: &Value) -> Value {
    let length = params.get("historyLength").and_then(Value::as_u64);
    let length = length.and_then(|length| usize::try_from(length).ok());
    if let (Some(length), Some(Value::Array(history))) = (length, task.get_mut("history")) {
        let extra = history.len().saturating_sub(length);
        history.drain(..extra);
    }
    task
}
