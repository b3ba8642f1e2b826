//! Giving a task what is pending for it: a delivery becomes an input, or is discarded with a reason.

use proofhouse_agent::task::{InputEvent, TaskInput};
use proofhouse_store::Result;
use proofhouse_store::model::{DeliveryRecord, EventRecord};
use proofhouse_tools::receive::message::compose;
use proofhouse_wire::trace::TraceParent;
use serde_json::Value;

use super::{Flow, LeasedTask};
use crate::engine::manifests::ManifestSnapshot;
use crate::engine::{kept_trace, route};

/// Why a delivery is no input.
#[derive(Debug, thiserror::Error)]
enum NoInput {
    #[error("the delivery names no tool")]
    NoTool,
    #[error("the agent is gone")]
    AgentGone,
    #[error("the agent has no capability `{0}` any more")]
    CapabilityGone(String),
}

impl LeasedTask<'_> {
    /// Gives one delivery to the task.
    pub(super) async fn deliver_input(&mut self, delivery: DeliveryRecord) -> Flow {
        let (input, trace) = match self.input(&delivery).await {
            Ok(Ok(found)) => found,
            Ok(Err(reason)) => {
                return match self.discard_input(delivery.id, &reason.to_string()).await {
                    Ok(()) => Flow::Continue,
                    Err(error) => {
                        self.inner
                            .log_store_error("a delivery cannot be settled", &error);
                        Flow::Stop
                    }
                };
            }
            Err(error) => {
                self.inner
                    .log_store_error("an event cannot be read", &error);
                return Flow::Stop;
            }
        };
        self.interrupted = false;
        // An interrupted task listens again once it does something.
        self.listen();
        let task = self.task.clone();
        let scope = self.scope(trace);
        self.await_output(scope, async move { task.send(input).await })
            .await
    }

    /// The input that a delivery is and what it is for, or why it is none.
    async fn input(
        &self,
        delivery: &DeliveryRecord,
    ) -> Result<std::result::Result<(TaskInput, Option<TraceParent>), NoInput>> {
        let said = delivery.body.get("message").and_then(Value::as_str);
        let message = said.map(str::to_owned);
        let Some(event) = delivery.event else {
            let parameters = delivery.body.get("parameters").and_then(Value::as_object);
            let input = TaskInput {
                message,
                parameters: parameters.cloned().unwrap_or_default(),
                delivery: Some(delivery.id.to_string()),
                ..TaskInput::default()
            };
            return Ok(Ok((input, kept_trace::of(&delivery.body))));
        };
        let event = self.inner.store.event_record(event).await?;
        let snapshot = self.inner.manifests.current();
        let trace = kept_trace::of(&event.headers);
        let input = self.event_input(&snapshot, delivery, &event);
        Ok(input.map(|event| {
            let input = TaskInput {
                message,
                event: Some(event),
                delivery: Some(delivery.id.to_string()),
                ..TaskInput::default()
            };
            (input, trace)
        }))
    }

    fn event_input(
        &self,
        snapshot: &ManifestSnapshot,
        delivery: &DeliveryRecord,
        event: &EventRecord,
    ) -> std::result::Result<InputEvent, NoInput> {
        let tool = delivery.tool.as_ref().ok_or(NoInput::NoTool)?;
        let (namespace, name) = &self.agent;
        let agent = snapshot.agent(namespace, name).ok_or(NoInput::AgentGone)?;
        let Some((reference, _)) = snapshot.capability(&agent, tool) else {
            return Err(NoInput::CapabilityGone(tool.name.clone()));
        };
        let value = route::event_value(event);
        let declared = snapshot.tool(tool);
        let declared = declared.and_then(|tool| tool.event(&delivery.name));
        let value = match declared {
            Some(declared) => compose(declared, &value).event,
            // The manifest has changed since; the payload is there all the same.
            None => value,
        };
        Ok(InputEvent {
            capability: reference.to_owned(),
            name: delivery.name.clone(),
            value,
        })
    }
}
