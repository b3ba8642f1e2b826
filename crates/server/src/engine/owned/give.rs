//! Giving a task what is pending for it: a delivery becomes an input, or is discarded with a reason.

use proofhouse_agent::task::{Input, InputEvent};
use proofhouse_store::Result;
use proofhouse_store::model::{Delivery, Event};
use proofhouse_tools::receive::message::compose;
use serde_json::Value;

use super::{Next, Owned};
use crate::engine::manifests::Snapshot;
use crate::engine::{channels, route};

impl Owned<'_> {
    /// Gives one delivery to the task.
    pub(super) async fn give(&mut self, delivery: Delivery) -> Next {
        let input = match self.input(&delivery).await {
            Ok(Ok(input)) => input,
            Ok(Err(reason)) => {
                return match self.discard_input(delivery.id, &reason).await {
                    Ok(()) => Next::GoOn,
                    Err(error) => {
                        self.inner.trouble("a delivery cannot be settled", &error);
                        Next::Stop
                    }
                };
            }
            Err(error) => {
                self.inner.trouble("an event cannot be read", &error);
                return Next::Stop;
            }
        };
        self.interrupted = false;
        // An interrupted task listens again once it does something.
        channels::ensure(self.inner, &self.id);
        let task = self.task.clone();
        self.answered(async move { task.send(input).await }).await
    }

    /// The input that a delivery is, or why it is none.
    async fn input(&self, delivery: &Delivery) -> Result<std::result::Result<Input, String>> {
        let said = delivery.body.get("message").and_then(Value::as_str);
        let message = said.map(str::to_owned);
        let Some(event) = delivery.event else {
            let parameters = delivery.body.get("parameters").and_then(Value::as_object);
            return Ok(Ok(Input {
                message,
                parameters: parameters.cloned().unwrap_or_default(),
                delivery: Some(delivery.id.to_string()),
                ..Input::default()
            }));
        };
        let detail = self.inner.store.event(event).await?;
        let snapshot = self.inner.manifests.current();
        Ok(self
            .event_input(&snapshot, delivery, &detail.event)
            .map(|event| Input {
                message,
                event: Some(event),
                delivery: Some(delivery.id.to_string()),
                ..Input::default()
            }))
    }

    fn event_input(
        &self,
        snapshot: &Snapshot,
        delivery: &Delivery,
        event: &Event,
    ) -> std::result::Result<InputEvent, String> {
        let tool = delivery.tool.as_ref().ok_or("the delivery names no tool")?;
        let (namespace, name) = &self.agent;
        let agent = snapshot.agent(namespace, name).ok_or("the agent is gone")?;
        let Some((reference, _)) = snapshot.capability(&agent, tool) else {
            return Err(format!(
                "the agent has no capability `{}` any more",
                tool.name
            ));
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
