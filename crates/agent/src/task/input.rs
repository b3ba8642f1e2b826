//! One input of a task: taken in, answered, and what there is to say when it is not.

use std::sync::Arc;

use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};

use super::call::CallOutcome;
use super::context;
use super::handle::InputEvent;
use super::restore::{self, UnfinishedInput};
use super::runner::{NoAnswer, Runner};
use super::steps::{Passed, StepSite};
use super::{CallStatus, EndReason, TaskEnd, TaskEvent, TaskInput, TaskOutput, Turn};
use crate::model::{ChatMessage, ToolCall};

/// What there is to answer.
enum InputKind {
    Input(Box<TaskInput>),
    /// The input that has no answer yet.
    Rest(UnfinishedInput),
}

/// What the steps around an event come to.
enum PassedEvent {
    /// The message as they leave it.
    Taken(String),
    /// Why the event stays out.
    Discarded(String),
}

impl Runner {
    /// Answers one input.
    pub(super) async fn input(&mut self, mut input: TaskInput) -> TaskOutput {
        let said = input.cancel.clone();
        self.delivery = input.delivery.take();
        if said.is_cancelled() {
            // Whoever waited in line has gone meanwhile.
            return self.failed("the answer was cancelled".to_owned()).await;
        }
        self.work(InputKind::Input(Box::new(input)), said).await
    }

    /// Goes on with the input that has no answer.
    pub(super) async fn resume(&mut self) -> TaskOutput {
        let rest = std::mem::take(&mut self.open);
        match rest {
            UnfinishedInput::Nothing => TaskOutput::default(),
            rest => {
                self.work(InputKind::Rest(rest), CancellationToken::new())
                    .await
            }
        }
    }

    async fn work(&mut self, what: InputKind, said: CancellationToken) -> TaskOutput {
        let cancel = self.cancel.child_token();
        self.shared.interrupt.watch(&cancel);
        let answered = {
            let stop = cancel.clone();
            let watch = async move {
                said.cancelled().await;
                stop.cancel();
                // The answer ends by itself now.
                std::future::pending::<()>().await;
            };
            let answer = async {
                match what {
                    InputKind::Input(input) => self.answer(*input, &cancel).await,
                    InputKind::Rest(rest) => self.go_on(rest, &cancel).await,
                }
            };
            // In this order, so that a simulation can be repeated exactly; so it is wherever tasks wait.
            tokio::select! {
                biased;
                () = watch => Err(NoAnswer::Cancelled),
                answered = answer => answered,
            }
        };
        if let Some(lost) = self.shared.keeper.lost() {
            return TaskOutput {
                lost: Some(lost),
                ..TaskOutput::default()
            };
        }
        match answered {
            Ok(output) => {
                let _ = self.shared.events.send(TaskEvent::Idle {
                    message: output.message.clone(),
                });
                output
            }
            Err(NoAnswer::End(end)) => TaskOutput {
                ended: Some(end),
                ..TaskOutput::default()
            },
            Err(NoAnswer::Cancelled) if self.cancel.is_cancelled() => TaskOutput {
                ended: Some(TaskEnd::new(EndReason::Cancelled, "the task was cancelled")),
                ..TaskOutput::default()
            },
            Err(NoAnswer::Cancelled) if self.shared.interrupt.take() => self.interrupted().await,
            Err(NoAnswer::Cancelled) => self.failed("the answer was cancelled".to_owned()).await,
            Err(NoAnswer::Failed(message)) => self.failed(message).await,
        }
    }

    pub(super) async fn failed(&mut self, message: String) -> TaskOutput {
        let time = self.now();
        let turn = Turn::Failed {
            time,
            message: message.clone(),
            turns: self.turns,
        };
        if self.turn(turn).await.is_err() {
            return TaskOutput {
                lost: self.shared.keeper.lost(),
                ..TaskOutput::default()
            };
        }
        self.open = UnfinishedInput::Nothing;
        self.close_open_calls("the call was cancelled");
        let _ = self.shared.events.send(TaskEvent::Failed(message.clone()));
        TaskOutput {
            failed: Some(message),
            ..TaskOutput::default()
        }
    }

    /// Somebody stopped what was under way. What is left of it can be gone on with.
    pub(super) async fn interrupted(&mut self) -> TaskOutput {
        let time = self.now();
        let kept = self.turn(Turn::Interrupted { time }).await;
        self.close_open_calls(restore::INTERRUPTED);
        self.begun.clear();
        let message = "the task was interrupted".to_owned();
        let _ = self.shared.events.send(TaskEvent::Failed(message));
        TaskOutput {
            interrupted: kept.is_ok(),
            lost: self.shared.keeper.lost(),
            ..TaskOutput::default()
        }
    }

    async fn answer(
        &mut self,
        mut input: TaskInput,
        cancel: &CancellationToken,
    ) -> Result<TaskOutput, NoAnswer> {
        self.within_limits()?;
        let preceding = std::mem::take(&mut input.preceding);
        let tools = std::mem::take(&mut input.tools);
        self.circumstances = input.context.take();
        let goes_on = input.goes_on;
        let event = input.event.take();
        let said = match (goes_on && input.message.is_none(), &event) {
            (true, _) => None,
            (false, None) => Some(self.checked(input)?),
            (false, Some(_)) => Some((input.message.take().unwrap_or_default(), Map::new())),
        };
        if self.capabilities.is_none() {
            self.prepare(cancel).await?;
        }
        self.offer(tools);
        let _ = self.shared.events.send(TaskEvent::Started);
        self.catch_up(preceding).await?;
        if let Some((mut message, parameters)) = said {
            if let Some(event) = &event {
                message = match self.pass_event(event, message, cancel).await? {
                    PassedEvent::Taken(message) => message,
                    PassedEvent::Discarded(reason) => return self.discard(event, reason).await,
                };
            }
            self.take_in(message, parameters, event.as_ref(), goes_on, cancel)
                .await?;
        }
        self.go_on_asking(cancel).await
    }

    /// Goes on with what is left of an input.
    async fn go_on(
        &mut self,
        rest: UnfinishedInput,
        cancel: &CancellationToken,
    ) -> Result<TaskOutput, NoAnswer> {
        self.open = rest.clone();
        self.within_limits()?;
        if self.capabilities.is_none() {
            self.prepare(cancel).await?;
        }
        let _ = self.shared.events.send(TaskEvent::Started);
        match rest {
            UnfinishedInput::Nothing => return Ok(TaskOutput::default()),
            UnfinishedInput::Guard { begun: true, .. } => {
                let message = "a rule was making a call when the server stopped; nobody knows \
                               whether it was made, so the input is not taken in";
                return Err(NoAnswer::Failed(message.to_owned()));
            }
            UnfinishedInput::Guard { message, .. } => {
                self.guard_input(cancel).await?;
                self.messages.push(ChatMessage::user(message));
                self.open = UnfinishedInput::Model;
            }
            UnfinishedInput::Model => self.finish_calls(cancel).await?,
            UnfinishedInput::Answer(text) => return self.guard_output(text, cancel).await,
        }
        self.go_on_asking(cancel).await
    }

    async fn go_on_asking(&mut self, cancel: &CancellationToken) -> Result<TaskOutput, NoAnswer> {
        let (text, pending) = self.converse(cancel).await?;
        if pending.is_empty() {
            return self.guard_output(text, cancel).await;
        }
        // What goes with calls is no answer, so the rules for answers do not see it.
        let is_guarded = !self.agent.guardrails.after.is_empty();
        Ok(TaskOutput {
            message: if is_guarded { String::new() } else { text },
            pending,
            ..TaskOutput::default()
        })
    }

    /// Gives every call of the last reply a result. One that may have been made is not made again.
    async fn finish_calls(&mut self, cancel: &CancellationToken) -> Result<(), NoAnswer> {
        let mut begun = std::mem::take(&mut self.begun);
        let mut rest: Vec<ToolCall> = Vec::new();
        for call in self.open_calls() {
            let Some(at) = begun.iter().position(|id| *id == call.id) else {
                rest.push(call);
                continue;
            };
            begun.remove(at);
            let arguments = call.arguments.object().cloned().unwrap_or_default();
            let result = restore::outcome_unknown();
            let called = CallOutcome::new(&call.name, arguments, result, CallStatus::Errored);
            let message = called.message(&call);
            self.note(&call, called).await?;
            self.messages.push(message);
        }
        if rest.is_empty() {
            Ok(())
        } else {
            self.carry_out(&rest, cancel).await
        }
    }

    /// Takes a message in, if the rules let it.
    async fn take_in(
        &mut self,
        message: String,
        parameters: Map<String, Value>,
        event: Option<&InputEvent>,
        is_there: bool,
        cancel: &CancellationToken,
    ) -> Result<(), NoAnswer> {
        self.context.input(&message, &parameters);
        // Bindings may read the first input, and what they seal is kept with it.
        let sealed = self.seal();
        let time = self.now();
        let turn = Turn::Input {
            time,
            message: message.clone(),
            parameters,
            source: event.map(|event| event.capability.clone()),
            event: event.map(|event| event.name.clone()),
            delivery: self.delivery.clone(),
        };
        self.turn_with(turn, sealed).await?;
        self.open = UnfinishedInput::Guard {
            message: message.clone(),
            begun: false,
        };
        self.guard_input(cancel).await?;
        if !is_there {
            self.messages.push(ChatMessage::user(message));
        }
        self.open = UnfinishedInput::Model;
        Ok(())
    }

    /// Takes the steps around an event: the message as they leave it, or why it stays out.
    async fn pass_event(
        &mut self,
        event: &InputEvent,
        message: String,
        cancel: &CancellationToken,
    ) -> Result<PassedEvent, NoAnswer> {
        let agent = Arc::clone(&self.agent);
        let mut grants = agent.capabilities.iter();
        let Some((_, grant)) = grants.find(|(reference, _)| *reference == event.capability) else {
            let reason = format!(
                "the agent has no capability `{}` any more",
                event.capability
            );
            return Ok(PassedEvent::Discarded(reason));
        };
        let (Some(rules), Some(capabilities)) = (&grant.capability, &self.capabilities) else {
            return Ok(PassedEvent::Taken(message));
        };
        let mut site = StepSite {
            context: &mut self.context,
            capabilities,
            environment: &self.shared.environment,
            runtime: &self.shared.host.inner.runtime,
            reviews: &self.shared.reviews,
            events: &self.shared.events,
            cancel,
            function: &event.capability,
            action: &event.name,
            input: json!({"message": message}),
            output: None,
            event: Some(event.value.clone()),
            call: "",
            keeper: &self.shared.keeper,
        };
        let mut passed = site.take(&rules.before).await;
        if passed == Passed::Yes {
            passed = site.take(&rules.after).await;
        }
        match passed {
            Passed::Yes => {
                let said = context::text_of(&site.input);
                let said = said.unwrap_or_else(|| site.input.to_string());
                Ok(PassedEvent::Taken(said))
            }
            Passed::Blocked(reason) => Ok(PassedEvent::Discarded(reason)),
            Passed::Locked(reason) => Err(NoAnswer::End(TaskEnd::new(EndReason::Locked, reason))),
            Passed::Cancelled => Err(NoAnswer::Cancelled),
        }
    }

    /// Notes that an event stays out.
    async fn discard(
        &mut self,
        event: &InputEvent,
        reason: String,
    ) -> Result<TaskOutput, NoAnswer> {
        let time = self.now();
        self.turn(Turn::Discarded {
            time,
            source: event.capability.clone(),
            event: event.name.clone(),
            delivery: self.delivery.clone(),
            reason: reason.clone(),
        })
        .await?;
        Ok(TaskOutput {
            discarded: Some(reason),
            ..TaskOutput::default()
        })
    }

    /// The parameters that no input can change.
    pub(super) fn fixed(&self) -> Map<String, Value> {
        match self.shared.depth {
            0 => self.shared.host.inner.parameters.clone(),
            _ => Map::new(),
        }
    }

    /// The message and the parameters, complete and fitting.
    fn checked(&self, input: TaskInput) -> Result<(String, Map<String, Value>), NoAnswer> {
        let mut given = input.parameters;
        given.extend(self.fixed());
        let declared = self.agent.parameters.properties();
        // What the task was told once holds on: whoever writes again, or a notice, need not repeat it.
        for name in declared.keys().filter(|name| *name != "message") {
            if let (false, Some(known)) = (given.contains_key(name), self.context.parameter(name)) {
                given.insert(name.clone(), known.clone());
            }
        }
        if let Some(message) = &input.message
            && declared.contains_key("message")
        {
            given.insert("message".to_owned(), message.clone().into());
        }
        let mut complete = self.agent.parameters.complete(given).map_err(|problems| {
            NoAnswer::Failed(format!("the input does not fit: {}", problems.join("; ")))
        })?;
        let default = complete.shift_remove("message");
        let message = input
            .message
            .or_else(|| default.as_ref().and_then(context::text_of));
        match message {
            Some(message) => Ok((message, complete)),
            None => Err(NoAnswer::Failed("the input needs a `message`".to_owned())),
        }
    }
}
