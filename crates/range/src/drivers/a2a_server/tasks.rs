//! What each operation is answered with.

use std::sync::Arc;

use proofhouse_protocol::a2a::values::state_of;
use proofhouse_protocol::a2a::{A2aError, A2aMethod, A2aShape, A2aTaskState, translate_result};
use proofhouse_wire::server::Reply;
use serde_json::{Value, json};

use super::answers::{A2aAnswer, ServedEntry};
use super::handler::{A2aServer, PendingA2aRequest};
use super::memory::has_id;
use super::state::A2aServerState;
use crate::delivery_note::DeliveryNote;
use crate::drivers::a2a::push::PushTarget;
use crate::exposure::CarrierKind;

impl A2aServer {
    /// Answers a call; `None` for a method that nobody knows.
    pub(super) async fn serve(
        &self,
        call: PendingA2aRequest,
        operation: Option<A2aMethod>,
    ) -> Reply {
        let Some(operation) = operation else {
            return self.reply(call, Err(A2aError::MethodNotFound)).await;
        };
        let result = match operation {
            A2aMethod::SendMessage | A2aMethod::StreamMessage => {
                return self.message(call, operation).await;
            }
            A2aMethod::ResubscribeTask => return self.resubscribe(call).await,
            A2aMethod::GetExtendedCard => self.extended_card(&call),
            A2aMethod::ListTasks => Ok(self.memory().list(&call.params)),
            A2aMethod::GetTask => self
                .task(&call.params)
                .map(|task| with_history(task, &call.params)),
            A2aMethod::CancelTask => self.cancel(&call.params),
            A2aMethod::SetPushConfig
            | A2aMethod::GetPushConfig
            | A2aMethod::ListPushConfigs
            | A2aMethod::DeletePushConfig => self.push(&call, operation),
        };
        let outcome = result.map(|content| {
            let wire = translate_result(operation, &content, call.generation);
            (content, wire)
        });
        let note = if operation == A2aMethod::GetExtendedCard && outcome.is_ok() {
            self.card_note(&call.phase)
        } else {
            DeliveryNote::default()
        };
        let reply = self.reply(call, outcome).await;
        reply.with_unread(note.handed_over())
    }

    async fn message(&self, call: PendingA2aRequest, operation: A2aMethod) -> Reply {
        if !call.params.get("message").is_some_and(Value::is_object) {
            return self.reply(call, Err(A2aError::InvalidParams)).await;
        }
        let (answer, served) = self.answer(&call.phase, &call.params).await;
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
        if operation == A2aMethod::StreamMessage {
            return self.stream(call, answer.items(), served).await;
        }
        let wire = answer.wire(call.generation);
        let phase = Arc::clone(&call.phase);
        let reply = self.reply(call, Ok((answer.content().clone(), wire))).await;
        // A run that is over delivers nothing more.
        if let Some(ServedEntry { name, branch }) = served
            && !self.context.over().is_cancelled()
        {
            let kind = CarrierKind::TaskResponse;
            let note = DeliveryNote::of_branch(&self.context, &phase, kind, &name, branch);
            return reply.with_unread(note.handed_over());
        }
        reply
    }

    /// Nothing happens to a task after it was answered, so all of it is told again.
    async fn resubscribe(&self, call: PendingA2aRequest) -> Reply {
        match self.task(&call.params) {
            Ok(task) => {
                let items = A2aAnswer::Known(A2aShape::Task, task).items();
                self.stream(call, items, None).await
            }
            Err(problem) => self.reply(call, Err(problem)).await,
        }
    }

    fn task(&self, params: &Value) -> Result<Value, A2aError> {
        let id = text(params, "id").ok_or(A2aError::InvalidParams)?;
        let memory = self.memory();
        memory.task(id).cloned().ok_or(A2aError::TaskNotFound)
    }

    fn cancel(&self, params: &Value) -> Result<Value, A2aError> {
        let task = self.task(params)?;
        let state = state_of(&task).and_then(A2aTaskState::parse);
        if state.is_some_and(A2aTaskState::is_terminal) {
            return Err(A2aError::TaskNotCancelable);
        }
        let id = text(params, "id").ok_or(A2aError::InvalidParams)?;
        self.memory().cancel(id).ok_or(A2aError::TaskNotFound)
    }

    fn push(&self, call: &PendingA2aRequest, operation: A2aMethod) -> Result<Value, A2aError> {
        if call.phase.prepared(A2aServerState::read).refuses_push() {
            return Err(A2aError::PushNotificationNotSupported);
        }
        let params = &call.params;
        let mut memory = self.memory();
        if operation == A2aMethod::SetPushConfig {
            let task = text(params, "taskId").ok_or(A2aError::InvalidParams)?;
            memory.task(task).ok_or(A2aError::TaskNotFound)?;
            let config = params.get("pushNotificationConfig").unwrap_or(&Value::Null);
            return memory
                .add_webhook(task, config, call.generation)
                .map(|config| json!({"taskId": task, "pushNotificationConfig": config}))
                .ok_or(A2aError::InvalidParams);
        }
        let task = text(params, "id").ok_or(A2aError::InvalidParams)?;
        let hooks = memory.webhooks(task).ok_or(A2aError::TaskNotFound)?;
        let shown =
            |hook: &PushTarget| json!({"taskId": task, "pushNotificationConfig": hook.config});
        let wanted = text(params, "pushNotificationConfigId");
        match operation {
            A2aMethod::ListPushConfigs => Ok(hooks.iter().map(shown).collect()),
            A2aMethod::GetPushConfig => hooks
                .iter()
                .find(|hook| wanted.is_none_or(|id| has_id(hook, id)))
                .map(shown)
                .ok_or(A2aError::TaskNotFound),
            _ => {
                let id = wanted.ok_or(A2aError::InvalidParams)?;
                memory
                    .remove_webhook(task, id)
                    .ok_or(A2aError::TaskNotFound)?;
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
