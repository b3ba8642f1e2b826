//! What whoever asks brings along and takes over: functions of theirs, what was said elsewhere, and calls
//! from outside.

use serde_json::{Map, Value, json};

use super::call;
use super::handle::{CallOutput, DirectCall};
use super::runner::{MAX_CALLS_PER_TURN, NoAnswer, Runner};
use super::{CallStatus, EndReason, TaskEnd, TaskEvent, Turn};
use crate::model::{Arguments, ChatMessage, ToolCall, ToolSpec};

impl Runner {
    /// Functions of whoever asks. Those named like ours are not heard of: nobody stands in for a tool of
    /// the agent.
    pub(super) fn offer(&mut self, tools: Vec<ToolSpec>) {
        let capabilities = self.capabilities.as_ref();
        let is_ours = |name: &str| {
            capabilities.is_some_and(|capabilities| capabilities.names().any(|ours| ours == name))
        };
        let mut offered: Vec<ToolSpec> = Vec::new();
        for tool in tools {
            if !is_ours(&tool.name) && offered.iter().all(|other| other.name != tool.name) {
                offered.push(tool);
            }
        }
        self.offered = offered;
    }

    /// Leaves calls to whoever asked; those that cannot be made are answered instead.
    pub(super) fn leave_open(&mut self, calls: Vec<ToolCall>) -> Result<Vec<ToolCall>, NoAnswer> {
        let mut open = Vec::new();
        for call in calls {
            let arguments = match &call.arguments {
                Arguments::Object(arguments) if open.len() < MAX_CALLS_PER_TURN => arguments,
                Arguments::Object(_) => {
                    let message = format!("more than {MAX_CALLS_PER_TURN} calls in one turn");
                    self.messages.push(ChatMessage::tool(&call, message, true));
                    continue;
                }
                Arguments::Malformed { reason, .. } => {
                    let message = json!({"error": "bad_arguments", "message": reason}).to_string();
                    self.messages.push(ChatMessage::tool(&call, message, true));
                    continue;
                }
            };
            self.another_call()?;
            let _ = self.shared.events.send(TaskEvent::Call {
                id: call.id.clone(),
                function: call.name.clone(),
                arguments: arguments.clone(),
            });
            open.push(call);
        }
        Ok(open)
    }

    /// Counts a call, if there may be one more.
    fn another_call(&mut self) -> Result<(), NoAnswer> {
        if let Some(limit) = self.agent.limits.max_tool_calls
            && self.calls >= limit
        {
            let message = format!("max_tool_calls: {limit}");
            return Err(NoAnswer::End(TaskEnd::new(
                EndReason::LimitExceeded,
                message,
            )));
        }
        self.calls += 1;
        Ok(())
    }

    /// Takes in what was said elsewhere: first the results of calls that were left open.
    pub(super) async fn catch_up(&mut self, preceding: Vec<ChatMessage>) -> Result<(), NoAnswer> {
        let open = self.open_calls();
        let mut rest = Vec::new();
        for message in preceding {
            let answered = match &message {
                ChatMessage::Tool { call_id, .. } => open.iter().find(|call| call.id == *call_id),
                _ => None,
            };
            match (answered, &message) {
                (
                    Some(call),
                    ChatMessage::Tool {
                        content, is_error, ..
                    },
                ) if self.open_calls().contains(call) => {
                    let time = self.now();
                    self.turn(Turn::Capability {
                        time,
                        call: call.id.clone(),
                        function: call.name.clone(),
                        arguments: call.arguments.object().cloned().unwrap_or_default(),
                        result: Value::String(content.clone()),
                        output: None,
                        status: if *is_error {
                            CallStatus::Errored
                        } else {
                            CallStatus::Successful
                        },
                        task: None,
                    })
                    .await?;
                    let told = ChatMessage::tool(call, content.clone(), *is_error);
                    self.messages.push(told);
                }
                _ => rest.push(message),
            }
        }
        self.close_open_calls("no result was given");
        self.messages.extend(rest);
        Ok(())
    }

    /// The calls of the model's last reply that have no result.
    pub(super) fn open_calls(&self) -> Vec<ToolCall> {
        let is_reply = |message: &ChatMessage| matches!(message, ChatMessage::Assistant { .. });
        let Some(at) = self.messages.iter().rposition(is_reply) else {
            return Vec::new();
        };
        let ChatMessage::Assistant { calls, .. } = &self.messages[at] else {
            return Vec::new();
        };
        let answered = |id: &str| {
            self.messages[at..].iter().any(
                |message| matches!(message, ChatMessage::Tool { call_id, .. } if call_id == id),
            )
        };
        let open = calls.iter().filter(|call| !answered(&call.id));
        open.cloned().collect()
    }

    /// A conversation in which a call has no result is refused by providers, so every call gets one.
    pub(super) fn close_open_calls(&mut self, why: &str) {
        for call in self.open_calls() {
            self.messages.push(ChatMessage::tool(&call, why, true));
        }
    }

    /// The functions of the agent.
    pub(super) async fn functions(&mut self) -> Result<Vec<ToolSpec>, TaskEnd> {
        let cancel = self.cancel.child_token();
        if self.capabilities.is_none() {
            self.prepare(&cancel).await.map_err(ended)?;
        }
        let capabilities = self.capabilities.as_ref();
        Ok(capabilities.map_or_else(Vec::new, |capabilities| capabilities.specs()))
    }

    /// Carries out a call from outside.
    pub(super) async fn direct(&mut self, call: DirectCall) -> CallOutput {
        // Bindings read parameters from the first input; a caller of functions says none.
        let nothing_said = self.context.value()["input"]
            .as_array()
            .is_none_or(Vec::is_empty);
        let fixed = self.fixed();
        if nothing_said && !fixed.is_empty() {
            self.context.input("", &fixed);
        }
        let cancel = self.cancel.child_token();
        let (said, stop) = (call.cancel.clone(), cancel.clone());
        if said.is_cancelled() {
            cancel.cancel();
        }
        let watch = async move {
            said.cancelled().await;
            stop.cancel();
            // The call ends by itself now.
            std::future::pending::<()>().await;
        };
        let done = tokio::select! {
            biased;
            () = watch => Err(NoAnswer::Cancelled),
            done = self.carry_out_directly(call.function, call.arguments, &cancel) => done,
        };
        done.unwrap_or_else(|stop| {
            let (word, message, end) = match stop {
                NoAnswer::End(end) => ("ended", end.message.clone(), Some(end)),
                NoAnswer::Failed(message) => ("failed", message, None),
                NoAnswer::Cancelled => ("cancelled", "the call was cancelled".to_owned(), None),
            };
            CallOutput {
                result: json!({"error": word, "message": message}),
                status: CallStatus::Errored,
                ended: end,
            }
        })
    }

    async fn carry_out_directly(
        &mut self,
        function: String,
        arguments: Map<String, Value>,
        cancel: &proofhouse_wire::CancellationToken,
    ) -> Result<CallOutput, NoAnswer> {
        self.within_limits()?;
        if self.capabilities.is_none() {
            self.prepare(cancel).await?;
        }
        // Whoever waited in line may have gone meanwhile.
        if cancel.is_cancelled() {
            return Err(NoAnswer::Cancelled);
        }
        let _ = self.seal();
        self.another_call()?;
        // It is counted when it is noted.
        self.calls -= 1;
        let Some(mut capabilities) = self.capabilities.take() else {
            return Err(NoAnswer::Failed("there is nothing to call".to_owned()));
        };
        let id = format!("{}-call-{}", self.shared.id, self.calls + 1);
        let call = ToolCall::new(id, function, arguments);
        let called = call::call(
            &self.shared,
            &capabilities,
            &mut self.context,
            &call,
            cancel,
        )
        .await;
        let names = std::iter::once(call.name.as_str());
        self.relist(&mut capabilities, names, cancel).await;
        self.capabilities = Some(capabilities);
        let (result, status) = (called.result.clone(), called.status);
        let ended = self.note(&call, called).await?;
        Ok(CallOutput {
            result,
            status,
            ended,
        })
    }
}

fn ended(stop: NoAnswer) -> TaskEnd {
    match stop {
        NoAnswer::End(end) => end,
        NoAnswer::Failed(message) => TaskEnd::new(EndReason::UnrecoverableError, message),
        NoAnswer::Cancelled => TaskEnd::new(EndReason::Cancelled, "the task was cancelled"),
    }
}
