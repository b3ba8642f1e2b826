//! One input of a task: taken in, answered, and what there is to say when it is not.

use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value};

use super::context;
use super::runner::{Runner, Stop};
use super::{End, EndReason, Input, Output, TaskEvent, Turn};
use crate::model::ChatMessage;

impl Runner {
    /// Answers one input.
    pub(super) async fn input(&mut self, input: Input) -> Output {
        let cancel = self.cancel.child_token();
        let said = input.cancel.clone();
        if said.is_cancelled() {
            // Whoever waited in line has gone meanwhile.
            return self.failed("the answer was cancelled".to_owned());
        }
        let answered = {
            let stop = cancel.clone();
            let watch = async move {
                said.cancelled().await;
                stop.cancel();
                // The answer ends by itself now.
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = watch => Err(Stop::Cancelled),
                answered = self.answer(input, &cancel) => answered,
            }
        };
        match answered {
            Ok(output) => {
                let _ = self.shared.events.send(TaskEvent::Idle {
                    message: output.message.clone(),
                });
                output
            }
            Err(Stop::End(end)) => Output {
                ended: Some(end),
                ..Output::default()
            },
            Err(Stop::Cancelled) if self.cancel.is_cancelled() => Output {
                ended: Some(End::new(EndReason::Cancelled, "the task was cancelled")),
                ..Output::default()
            },
            Err(Stop::Cancelled) => self.failed("the answer was cancelled".to_owned()),
            Err(Stop::Failed(message)) => self.failed(message),
        }
    }

    pub(super) fn failed(&mut self, message: String) -> Output {
        let time = self.now();
        self.turn(Turn::Failed {
            time,
            message: message.clone(),
        });
        self.close_open_calls("the call was cancelled");
        let _ = self.shared.events.send(TaskEvent::Failed(message.clone()));
        Output {
            failed: Some(message),
            ..Output::default()
        }
    }

    pub(super) async fn answer(
        &mut self,
        mut input: Input,
        cancel: &CancellationToken,
    ) -> Result<Output, Stop> {
        self.within_limits()?;
        let preceding = std::mem::take(&mut input.preceding);
        let tools = std::mem::take(&mut input.tools);
        self.circumstances = input.context.take();
        let goes_on = input.goes_on;
        let said = match goes_on && input.message.is_none() {
            true => None,
            false => Some(self.checked(input)?),
        };
        if self.capabilities.is_none() {
            self.prepare(cancel).await?;
        }
        self.offer(tools);
        let _ = self.shared.events.send(TaskEvent::Started);
        self.catch_up(preceding);
        if let Some((message, parameters)) = said {
            self.take_in(message, parameters, goes_on, cancel).await?;
        }
        let (text, pending) = self.converse(cancel).await?;
        if pending.is_empty() {
            return self.guard_output(text, cancel).await;
        }
        // What goes with calls is no answer, so the rules for answers do not see it.
        let is_guarded = !self.agent.guardrails.after.is_empty();
        Ok(Output {
            message: if is_guarded { String::new() } else { text },
            pending,
            ..Output::default()
        })
    }

    /// Takes a message in, if the rules let it.
    pub(super) async fn take_in(
        &mut self,
        message: String,
        parameters: Map<String, Value>,
        is_there: bool,
        cancel: &CancellationToken,
    ) -> Result<(), Stop> {
        self.context.input(&message, &parameters);
        let time = self.now();
        self.turn(Turn::Input {
            time,
            message: message.clone(),
            parameters,
        });
        self.guard_input(cancel).await?;
        if !is_there {
            self.messages.push(ChatMessage::user(message));
        }
        Ok(())
    }

    /// The parameters that no input can change.
    pub(super) fn fixed(&self) -> Map<String, Value> {
        match self.shared.depth {
            0 => self.shared.host.inner.parameters.clone(),
            _ => Map::new(),
        }
    }

    /// The message and the parameters, complete and fitting.
    fn checked(&self, input: Input) -> Result<(String, Map<String, Value>), Stop> {
        let mut given = input.parameters;
        given.extend(self.fixed());
        let declared = self.agent.parameters.properties();
        if let Some(message) = &input.message
            && declared.contains_key("message")
        {
            given.insert("message".to_owned(), message.clone().into());
        }
        let mut complete = self.agent.parameters.complete(given).map_err(|problems| {
            Stop::Failed(format!("the input does not fit: {}", problems.join("; ")))
        })?;
        let default = complete.shift_remove("message");
        let message = input
            .message
            .or_else(|| default.as_ref().and_then(context::text_of));
        match message {
            Some(message) => Ok((message, complete)),
            None => Err(Stop::Failed("the input needs a `message`".to_owned())),
        }
    }
}
