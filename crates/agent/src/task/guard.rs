//! The rules around a task's inputs and outputs, and what is bound from its start.

use std::sync::Arc;

use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value};

use super::capabilities::{self, Capabilities, Target};
use super::context::{self, Scope};
use super::runner::{Runner, Stop};
use super::steps::{Passed, Site};
use super::{End, EndReason, Output};
use crate::model::ChatMessage;

impl Runner {
    /// Finds out what the agent may use, and seals what is bound.
    pub(super) async fn prepare(&mut self, cancel: &CancellationToken) -> Result<(), Stop> {
        let environment = self.shared.environment.clone();
        let found = Capabilities::new(&self.shared.host, &self.agent, &environment, cancel).await;
        let found = found.map_err(|error| match cancel.is_cancelled() {
            true => Stop::Cancelled,
            false => Stop::End(End::new(EndReason::UnrecoverableError, error.to_string())),
        })?;
        for name in found.names().map(str::to_owned).collect::<Vec<_>>() {
            self.context.know(&name);
        }
        self.capabilities = Some(found);
        Ok(())
    }

    /// A bound parameter has its value from the start, and no other ever.
    pub(super) fn seal(&mut self) {
        let Some(capabilities) = &self.capabilities else {
            return;
        };
        let now = self.now();
        for granted in capabilities.granted() {
            let Target::Tool(_) = &granted.target else {
                continue;
            };
            for binding in &granted.rules.bindings {
                let value = capabilities::bound(
                    std::slice::from_ref(binding),
                    &self.context,
                    Scope::default(),
                    &now,
                    &self.shared.environment,
                    &self.shared.host.inner.runtime,
                );
                if let Some(value) = value
                    .ok()
                    .and_then(|mut value| value.shift_remove(&binding.0))
                    && self
                        .allowed
                        .values(&granted.reference, &binding.0)
                        .is_empty()
                {
                    self.allowed.seal(&granted.reference, &binding.0, value);
                }
            }
        }
    }

    pub(super) async fn guard_input(&mut self, cancel: &CancellationToken) -> Result<(), Stop> {
        self.seal();
        let agent = Arc::clone(&self.agent);
        let inputs = self.context.value()["input"].clone();
        self.guard(&agent.guardrails.before, inputs, None, cancel)
            .await?;
        Ok(())
    }

    /// Takes guardrails; what they made of the output is returned.
    pub(super) async fn guard(
        &mut self,
        steps: &[proofhouse_tools::manifest::Step],
        input: Value,
        output: Option<Value>,
        cancel: &CancellationToken,
    ) -> Result<Option<Value>, Stop> {
        let Some(capabilities) = &self.capabilities else {
            return Ok(output);
        };
        let mut site = Site {
            context: &mut self.context,
            capabilities,
            environment: &self.shared.environment,
            runtime: &self.shared.host.inner.runtime,
            reviews: &self.shared.reviews,
            events: &self.shared.events,
            cancel,
            function: "",
            action: "",
            input,
            output,
        };
        match site.take(steps).await {
            Passed::Yes => Ok(site.output),
            Passed::Cancelled => Err(Stop::Cancelled),
            Passed::Blocked(message) | Passed::Locked(message) => {
                Err(Stop::End(End::new(EndReason::Locked, message)))
            }
        }
    }

    pub(super) async fn guard_output(
        &mut self,
        mut text: String,
        cancel: &CancellationToken,
    ) -> Result<Output, Stop> {
        let agent = Arc::clone(&self.agent);
        let mut exposed = Map::new();
        let now = self.now();
        for (name, program) in &agent.exposes {
            let inputs = &self.context.value()["input"];
            let said = context::task_io(&text, &Map::new());
            let scope = Scope {
                input: Some(inputs),
                output: Some(&said),
            };
            let runtime = &self.shared.host.inner.runtime;
            let variables =
                context::variables(program.source(), &self.context, scope, &now, runtime);
            match program.evaluate(&variables) {
                Ok(value) => {
                    exposed.insert(name.clone(), value);
                }
                Err(error) => {
                    tracing::warn!(task = %self.shared.id, %name, %error, "nothing to expose");
                }
            }
        }
        self.context.output(&text, &exposed);
        if !agent.guardrails.after.is_empty() {
            let inputs = self.context.value()["input"].clone();
            let outputs = self.context.value()["output"].clone();
            let guarded = self
                .guard(
                    &agent.guardrails.after,
                    inputs,
                    Some(outputs.clone()),
                    cancel,
                )
                .await?
                .filter(|guarded| *guarded != outputs);
            if let Some(changed) = guarded {
                text = context::text_of(&changed).unwrap_or_else(|| changed.to_string());
                self.context
                    .replace_last_output(context::task_io(&text, &exposed));
                // What was redacted must not be in the conversation either.
                if let Some(ChatMessage::Assistant { text: said, .. }) = self.messages.last_mut() {
                    said.clone_from(&text);
                }
            }
        }
        Ok(Output {
            message: text,
            exposes: exposed,
            ..Output::default()
        })
    }
}
