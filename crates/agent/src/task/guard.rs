//! The rules around a task's inputs and outputs, and what is bound from its start.

use std::sync::Arc;

use proofhouse_manifest::{Agent, Binding, Referent};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value};

use super::capabilities::{self, BindingError, Capabilities, CapabilityTarget};
use super::context::{self, ExpressionScope, TaskContext};
use super::restore::UnfinishedInput;
use super::runner::{self, NoAnswer, Runner};
use super::steps::{Passed, StepSite};
use super::{AllowedValue, EndReason, Host, TaskAllowList, TaskEnd, TaskOptions, TaskOutput, Turn};
use crate::model::ChatMessage;

impl Runner {
    /// Finds out what the agent may use, and seals what is bound.
    pub(super) async fn prepare(&mut self, cancel: &CancellationToken) -> Result<(), NoAnswer> {
        let environment = self.shared.environment.clone();
        let found = Capabilities::new(&self.shared.host, &self.agent, &environment, cancel).await;
        if cancel.is_cancelled() {
            return Err(NoAnswer::Cancelled);
        }
        let found = found.map_err(|error| {
            NoAnswer::End(TaskEnd::new(
                EndReason::UnrecoverableError,
                error.to_string(),
            ))
        })?;
        for name in found.names() {
            self.context.know(name);
        }
        *lock(&self.shared.tools) = found.tools();
        self.capabilities = Some(found);
        Ok(())
    }

    /// Takes in what calls of these functions found out about what there is.
    pub(super) async fn relist(
        &mut self,
        capabilities: &mut Capabilities,
        called: impl Iterator<Item = &str>,
        cancel: &CancellationToken,
    ) {
        if capabilities.relist(called, cancel).await {
            for name in capabilities.names() {
                self.context.know(name);
            }
        }
    }

    /// A bound parameter has its value from the start, and no other ever. Returns what is new.
    pub(super) fn seal(&mut self) -> Vec<AllowedValue> {
        let Some(capabilities) = &self.capabilities else {
            return Vec::new();
        };
        let now = self.now();
        let mut gained = Vec::new();
        let mut allowed = self.shared.allowed();
        for granted in capabilities.granted() {
            let CapabilityTarget::Tool(_) = &granted.target else {
                continue;
            };
            gained.extend(seal(
                &mut allowed,
                &granted.reference,
                &granted.rules.bindings,
                |binding| {
                    capabilities::bound(
                        binding,
                        &self.context,
                        ExpressionScope::default(),
                        &now,
                        &self.shared.environment,
                        &self.shared.host.inner.runtime,
                    )
                },
            ));
        }
        gained
    }

    pub(super) async fn guard_input(&mut self, cancel: &CancellationToken) -> Result<(), NoAnswer> {
        let agent = Arc::clone(&self.agent);
        let inputs = self.context.value()["input"].clone();
        self.guard(&agent.guardrails.before, inputs, None, cancel)
            .await?;
        Ok(())
    }

    /// Takes guardrails; what they made of the output is returned.
    pub(super) async fn guard(
        &mut self,
        steps: &[proofhouse_manifest::MiddlewareStep],
        input: Value,
        output: Option<Value>,
        cancel: &CancellationToken,
    ) -> Result<Option<Value>, NoAnswer> {
        let Some(capabilities) = &self.capabilities else {
            return Ok(output);
        };
        let mut site = StepSite {
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
            event: None,
            call: "",
            keeper: &self.shared.keeper,
        };
        match site.take(steps).await {
            Passed::Yes => Ok(site.output),
            Passed::Cancelled => Err(NoAnswer::Cancelled),
            Passed::Blocked(message) | Passed::Locked(message) => {
                Err(NoAnswer::End(TaskEnd::new(EndReason::Locked, message)))
            }
        }
    }

    pub(super) async fn guard_output(
        &mut self,
        mut text: String,
        cancel: &CancellationToken,
    ) -> Result<TaskOutput, NoAnswer> {
        let agent = Arc::clone(&self.agent);
        let mut exposed = Map::new();
        let now = self.now();
        for (name, program) in &agent.exposes {
            let inputs = &self.context.value()["input"];
            let said = context::task_io(&text, &Map::new());
            let scope = ExpressionScope {
                input: Some(inputs),
                output: Some(&said),
                event: None,
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
        if self.shared.keeper.is_there() {
            let time = self.now();
            let (message, exposes) = (text.clone(), exposed.clone());
            self.turn(Turn::Output {
                time,
                message,
                exposes,
            })
            .await?;
        }
        self.open = UnfinishedInput::Nothing;
        Ok(TaskOutput {
            message: text,
            exposes: exposed,
            ..TaskOutput::default()
        })
    }
}

type BoundValues = Result<Map<String, Value>, BindingError>;

/// Seals what is bound and not sealed yet. A binding that cannot be evaluated yet is sealed later.
fn seal(
    allowed: &mut TaskAllowList,
    tool: &str,
    bindings: &[(String, Binding)],
    value: impl Fn(&[(String, Binding)]) -> BoundValues,
) -> Vec<AllowedValue> {
    let mut gained = Vec::new();
    for binding in bindings {
        let name = &binding.0;
        let bound = value(std::slice::from_ref(binding)).ok();
        let Some(value) = bound.and_then(|mut bound| bound.shift_remove(name)) else {
            continue;
        };
        if allowed.values(tool, name).is_empty() {
            allowed.seal(tool, name, value.clone());
            gained.push(AllowedValue {
                tool: tool.to_owned(),
                name: name.clone(),
                value,
                sealed: true,
            });
        }
    }
    gained
}

/// What bindings seal before the task does anything, so that events reach it from its start.
pub(super) fn sealed_at_start(
    host: &Host,
    agent: &Agent,
    options: &TaskOptions,
    first: &Map<String, Value>,
) -> TaskAllowList {
    let environment = runner::environment(host, agent, &options.id);
    let now = environment.now();
    let mut context = TaskContext::new(&agent.name, &agent.namespace, &now, &options.user, "");
    let mut parameters = first.clone();
    parameters.extend(host.inner.parameters.clone());
    let message = parameters.shift_remove("message");
    let message = message.as_ref().and_then(context::text_of);
    context.input(message.as_deref().unwrap_or_default(), &parameters);
    let mut allowed = TaskAllowList::default();
    for (reference, grant) in &agent.capabilities {
        let found = host.inner.catalog.find(&agent.namespace, reference);
        let (Some(Referent::Tool(_)), Some(rules)) = (found, &grant.capability) else {
            continue;
        };
        seal(&mut allowed, reference, &rules.bindings, |binding| {
            let scope = ExpressionScope::default();
            let runtime = &host.inner.runtime;
            capabilities::bound(binding, &context, scope, &now, &environment, runtime)
        });
    }
    allowed
}
