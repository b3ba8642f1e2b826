//! The conversation with the model: its turns, the calls it makes, and the limits on both.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use proofhouse_manifest::interpolate::{Root, TemplateScope};
use proofhouse_wire::CancellationToken;
use serde_json::json;

use super::call::{self, CallOutcome};
use super::capabilities::Capabilities;
use super::model_span;
use super::restore::UnfinishedInput;
use super::runner::{MAX_CALLS_PER_TURN, NoAnswer, Runner};
use super::{EndReason, TaskEnd, TaskEvent, Turn};
use crate::model::{ChatMessage, ModelEvent, ModelOptions, ModelReply, ModelRequest, ToolCall};

/// Turns of the model for one input, where the manifest has no limit: a model that calls the same
/// function for ever must come to an end.
const MAX_TURNS_PER_INPUT: u64 = 100;

impl Runner {
    /// Asks the model and does what it wants done, until it only answers or wants something of whoever
    /// asked.
    pub(super) async fn converse(
        &mut self,
        cancel: &CancellationToken,
    ) -> Result<(String, Vec<ToolCall>), NoAnswer> {
        for _ in 0..MAX_TURNS_PER_INPUT {
            self.within_limits()?;
            let reply = self.ask(cancel).await?;
            if reply.calls.is_empty() {
                return Ok((reply.text, Vec::new()));
            }
            let offered = |call: &ToolCall| self.offered.iter().any(|tool| tool.name == call.name);
            let (theirs, ours): (Vec<_>, Vec<_>) = reply.calls.into_iter().partition(offered);
            if !ours.is_empty() {
                self.carry_out(&ours, cancel).await?;
            }
            let pending = self.leave_open(theirs)?;
            if !pending.is_empty() {
                return Ok((reply.text, pending));
            }
        }
        Err(NoAnswer::End(TaskEnd::new(
            EndReason::LimitExceeded,
            format!("the model called functions for {MAX_TURNS_PER_INPUT} turns without an answer"),
        )))
    }

    /// One turn of the model.
    pub(super) async fn ask(&mut self, cancel: &CancellationToken) -> Result<ModelReply, NoAnswer> {
        let request = ModelRequest {
            system: Some(self.prompt()),
            messages: self.messages.clone(),
            tools: self
                .capabilities
                .as_ref()
                .map(Capabilities::specs)
                .unwrap_or_default()
                .into_iter()
                .chain(self.offered.iter().cloned())
                .collect(),
            options: ModelOptions {
                built_in: self.agent.model_capabilities.clone(),
                ..self.shared.host.inner.options.clone()
            },
        };
        let events = self.shared.events.clone();
        let mut sink = move |event: ModelEvent| {
            if let ModelEvent::Text(text) = event {
                let _ = events.send(TaskEvent::Text(text));
            }
        };
        let asked = {
            let model = Arc::clone(&self.model);
            let asking = model.complete(&request, &mut sink, cancel);
            let asking = model_span::measured(&*model, &self.agent.name, &self.shared.id, asking);
            let rest = self
                .agent
                .limits
                .max_age
                .map(|age| age.saturating_sub(self.age()));
            match rest {
                None => asking.await,
                Some(rest) => match tokio::time::timeout(rest, asking).await {
                    Ok(asked) => asked,
                    Err(_) => return Err(too_old()),
                },
            }
        };
        let _ = self.shared.events.send(TaskEvent::TextEnd);
        self.turns += 1;
        match asked {
            Ok(reply) => {
                self.said(&reply).await?;
                Ok(reply)
            }
            Err(error) => {
                // What had come is kept as what was said, without the calls, which were not made.
                if let Some(partial) = &error.partial {
                    let partial = ModelReply {
                        calls: Vec::new(),
                        ..ModelReply::clone(partial)
                    };
                    self.said(&partial).await?;
                }
                Err(if cancel.is_cancelled() {
                    NoAnswer::Cancelled
                } else if error.is_recoverable() {
                    NoAnswer::Failed(format!("the model failed: {error}"))
                } else {
                    NoAnswer::End(TaskEnd::new(EndReason::ModelError, error.to_string()))
                })
            }
        }
    }

    pub(super) async fn said(&mut self, reply: &ModelReply) -> Result<(), NoAnswer> {
        let time = self.now();
        self.turn(Turn::Llm {
            time,
            model: reply.model.clone(),
            simulation: self.model.is_simulation(),
            text: reply.text.clone(),
            calls: reply.calls.clone(),
            usage: reply.usage,
        })
        .await?;
        self.context
            .used(reply.usage.prompt, reply.usage.completion);
        self.messages.push(ChatMessage::Assistant {
            text: reply.text.clone(),
            calls: reply.calls.clone(),
        });
        self.open = if reply.calls.is_empty() {
            UnfinishedInput::Answer(reply.text.clone())
        } else {
            UnfinishedInput::Model
        };
        Ok(())
    }

    fn age(&self) -> Duration {
        self.age_before.saturating_add(self.started.elapsed())
    }

    pub(super) fn prompt(&self) -> String {
        let mut scope = TemplateScope::default();
        scope.set(Root::Parameters, json!({"now": self.now()}));
        scope.set(Root::Context, self.context.value().clone());
        scope.set(Root::Runtime, self.shared.host.inner.runtime.clone());
        let identity = json!({"name": self.agent.name, "namespace": self.agent.namespace});
        scope.set(Root::Agent, identity);
        let prompt = match scope.text(&self.agent.prompt) {
            Ok(text) => text.into_exposed(),
            // A value that is not there yet leaves the prompt as it is written.
            Err(_) => self.agent.prompt.source().to_owned(),
        };
        match &self.circumstances {
            Some(circumstances) => format!("{prompt}\n\n{circumstances}"),
            None => prompt,
        }
    }

    /// Carries out the calls of one turn. Those with rules go one after the other, so that each sees
    /// what the ones before it did; the others go side by side.
    pub(super) async fn carry_out(
        &mut self,
        calls: &[ToolCall],
        cancel: &CancellationToken,
    ) -> Result<(), NoAnswer> {
        let limit = self.agent.limits.max_tool_calls;
        let left = limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.calls));
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let allowed = calls.len().min(MAX_CALLS_PER_TURN).min(left);
        let mut done: Vec<Option<CallOutcome>> = Vec::new();
        done.resize_with(allowed, || None);
        let Some(mut capabilities) = self.capabilities.take() else {
            return Ok(());
        };
        let ruled = |call: &ToolCall| {
            let found = capabilities.find(&call.name);
            found.is_some_and(|callable| callable.granted.has_rules())
        };
        let free: Vec<usize> = (0..allowed).filter(|at| !ruled(&calls[*at])).collect();
        for some in free.chunks(self.shared.host.inner.parallel) {
            let shared = &self.shared;
            let (context, capabilities) = (&self.context, &capabilities);
            let running = some.iter().map(|at| async move {
                // Without rules nothing changes the context before the end.
                let mut context = context.clone();
                call::call(shared, capabilities, &mut context, &calls[*at], cancel).await
            });
            for (at, called) in some.iter().zip(join_all(running).await) {
                done[*at] = Some(called);
            }
        }
        let mut stop = None;
        for (at, call) in calls.iter().enumerate().take(allowed) {
            let called = match done[at].take() {
                Some(called) => called,
                None => {
                    call::call(&self.shared, &capabilities, &mut self.context, call, cancel).await
                }
            };
            let message = called.message(call);
            match self.note(call, called).await {
                Ok(end) => {
                    self.messages.push(message);
                    if let Some(end) = end {
                        stop.get_or_insert(end);
                        break;
                    }
                }
                Err(_) => break,
            }
            if cancel.is_cancelled() {
                break;
            }
        }
        let called = calls.iter().take(allowed).map(|call| call.name.as_str());
        self.relist(&mut capabilities, called, cancel).await;
        self.capabilities = Some(capabilities);
        if let Some(end) = stop {
            return Err(NoAnswer::End(end));
        }
        if cancel.is_cancelled() {
            return Err(NoAnswer::Cancelled);
        }
        if allowed < calls.len().min(MAX_CALLS_PER_TURN) {
            return Err(NoAnswer::End(TaskEnd::new(
                EndReason::LimitExceeded,
                format!("max_tool_calls: {}", limit.unwrap_or(0)),
            )));
        }
        for call in &calls[allowed..] {
            let message =
                format!("more than {MAX_CALLS_PER_TURN} calls in one turn; this one was not made");
            self.messages.push(ChatMessage::tool(call, message, true));
        }
        Ok(())
    }

    /// Keeps what became of a call.
    pub(super) async fn note(
        &mut self,
        call: &ToolCall,
        called: CallOutcome,
    ) -> Result<Option<TaskEnd>, NoAnswer> {
        let time = self.now();
        let output = Some(&called.output).filter(|output| **output != called.result);
        self.turn(Turn::Capability {
            time: time.clone(),
            output: output.cloned(),
            call: call.id.clone(),
            function: called.function.clone(),
            arguments: called.arguments.clone(),
            result: called.result,
            status: called.status,
            task: called.child.clone(),
        })
        .await?;
        self.calls += 1;
        self.context.called(
            &called.function,
            &time,
            &called.arguments,
            &called.output,
            called.status,
            called.child.as_deref(),
        );
        Ok(called.end)
    }

    /// Whether the task may go on.
    pub(super) fn within_limits(&self) -> Result<(), NoAnswer> {
        let limits = &self.agent.limits;
        let (prompt, completion) = self.context.tokens();
        let over = |used: u64, limit: Option<u64>| limit.is_some_and(|limit| used >= limit);
        let exceeded = [
            ("max_turns", over(self.turns, limits.max_turns)),
            ("max_prompt_tokens", over(prompt, limits.max_prompt_tokens)),
            (
                "max_completion_tokens",
                over(completion, limits.max_completion_tokens),
            ),
        ];
        if limits.max_age.is_some_and(|age| self.age() >= age) {
            return Err(too_old());
        }
        match exceeded.iter().find(|(_, over)| *over) {
            Some((name, _)) => Err(NoAnswer::End(TaskEnd::new(
                EndReason::LimitExceeded,
                format!("{name} of the agent is used up"),
            ))),
            None => Ok(()),
        }
    }
}

fn too_old() -> NoAnswer {
    NoAnswer::End(TaskEnd::new(
        EndReason::LimitExceeded,
        "max_age of the agent is used up",
    ))
}
