//! The agent over AG-UI: a POST is a run, its events come back as server-sent events.

mod input;
mod stream;
mod thread;

use std::net::SocketAddr;
use std::sync::Arc;

use proofhouse_wire::server::{BoundServer, Handler, ReaderGone, Reply, Request};
use proofhouse_wire::{CancellationToken, Method, StatusCode, origin};
use serde_json::{Value, json};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit};
use tokio::time::Instant;

use self::input::RunInput;
use self::stream::{AgUiEventStream, RunEnd};
use self::thread::Thread;
use super::AgentService;
use super::conversations::{Conversation, Conversations, NoConversation};
use super::run::{AnswerRun, AnswerStep};
use super::texts::fresh_id;
use crate::model::ToolCall;
use crate::task::{EndReason, Review, TaskEvent, TaskOutput};

/// Serves until `stop` is cancelled; then all threads are ended.
pub(super) async fn serve(service: Arc<AgentService>, bound: BoundServer, stop: CancellationToken) {
    let wire = service.limits.wire.clone();
    let threads = Arc::new(Conversations::new(&service.limits));
    let handler = AgUiHttp {
        address: bound.address(),
        threads: Arc::clone(&threads),
        service: Arc::clone(&service),
    };
    tokio::select! {
        () = bound.serve(Arc::new(handler), wire, stop) => {}
        () = service.sweeping(|| threads.sweep()) => {}
    }
    threads.close().await;
}

struct AgUiHttp {
    address: SocketAddr,
    threads: Arc<Conversations<Thread>>,
    service: Arc<AgentService>,
}

impl Handler for AgUiHttp {
    async fn handle(&self, request: Request) -> Reply {
        if !origin::is_allowed(&request.headers, self.address) {
            return refuse(StatusCode::FORBIDDEN, "this origin is not allowed");
        }
        if request.method != Method::POST {
            let refused = refuse(StatusCode::METHOD_NOT_ALLOWED, "a run is a POST");
            return refused.with_header("allow", "POST");
        }
        if !accepts_events(request.header("accept")) {
            let message = "answers are text/event-stream";
            return refuse(StatusCode::NOT_ACCEPTABLE, message);
        }
        let body = match &request.body {
            Ok(body) => body,
            Err(problem) => return refuse(problem.status(), &problem.to_string()),
        };
        match RunInput::read(body, &self.service.limits) {
            Ok(input) => self.run(input),
            Err(error) => refuse(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }
}

fn accepts_events(accept: Option<&str>) -> bool {
    accept.is_none_or(|accept| {
        let kinds = accept.split(',').map(|kind| {
            let kind = kind.split(';').next().unwrap_or_default();
            kind.trim().to_ascii_lowercase()
        });
        let known = ["text/event-stream", "text/*", "*/*"];
        kinds.into_iter().any(|kind| known.contains(&&*kind))
    })
}

fn refuse(status: StatusCode, message: &str) -> Reply {
    Reply::json(status, json!({"error": message}).to_string())
}

impl AgUiHttp {
    fn run(&self, input: RunInput) -> Reply {
        let Some(permit) = self.service.permit() else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many runs at a time");
        };
        let opened = self
            .threads
            .open(&input.thread, || self.service.begin(Vec::new()));
        let thread = match opened {
            Ok(thread) => thread,
            Err(NoConversation::Start(error)) => {
                return refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string());
            }
            Err(full) => return refuse(StatusCode::SERVICE_UNAVAILABLE, &full.to_string()),
        };
        let Ok(turn) = Arc::clone(&thread.turn).try_lock_owned() else {
            return refuse(StatusCode::CONFLICT, "a run of this thread is under way");
        };
        let (reply, writer) = Reply::events();
        let stream = AgUiEventStream::new(writer, &input.thread, &input.run);
        let running = AgUiRun {
            service: Arc::clone(&self.service),
            thread,
            _turn: turn,
            _permit: permit,
        };
        self.service
            .spawn(async move { running.run(&input, stream).await });
        reply
    }
}

/// A run, with what it holds on to.
struct AgUiRun {
    service: Arc<AgentService>,
    thread: Arc<Conversation<Thread>>,
    _turn: OwnedMutexGuard<()>,
    _permit: OwnedSemaphorePermit,
}

impl AgUiRun {
    /// Whoever reads the events may go at any time: then what is under way is cancelled. Who has read the last event
    /// may send the next input at once, so everything is let go before it is written.
    async fn run(self, input: &RunInput, mut stream: AgUiEventStream) {
        let end = self.until_end(input, &mut stream).await;
        drop(self);
        if let Ok(end) = end {
            // A reader that is gone has no use for it.
            let _ = stream.end(end).await;
        }
    }

    async fn until_end(
        &self,
        input: &RunInput,
        stream: &mut AgUiEventStream,
    ) -> Result<RunEnd, ReaderGone> {
        stream.started().await?;
        self.learn_functions().await;
        match self.begin(input) {
            Ok(Some(run)) => self.pump(run, stream).await,
            Ok(None) => Ok(RunEnd::finished(json!({"type": "success"}))),
            Err((message, code)) => Ok(RunEnd::error(message, code)),
        }
    }

    /// Finds out what the model sees of functions whose parameters are bound. A task that cannot say has
    /// ended, and the run says why.
    async fn learn_functions(&self) {
        if self.service.bound_names().is_empty() || self.thread.state().functions.is_some() {
            return;
        }
        if let Ok(functions) = self.thread.task.functions().await {
            let named = functions.into_iter().map(|spec| (spec.name.clone(), spec));
            self.thread.state().functions = Some(named.collect());
        }
    }

    /// The run that is to be followed: one that waited, or a new one if there is something new.
    fn begin(&self, input: &RunInput) -> Result<Option<AnswerRun>, (String, &'static str)> {
        let task = &self.thread.task;
        let mut thread = self.thread.state();
        if thread.paused.is_some() {
            let waiting = task.reviews();
            let decisions: Vec<_> = waiting
                .iter()
                .filter_map(|review| {
                    let id = interrupt_id(review);
                    let found = input.resume.iter().find(|entry| entry.0 == id);
                    found.map(|entry| (review.id, entry.1))
                })
                .collect();
            if decisions.len() < waiting.len() {
                let message = "the thread waits for answers to its interrupts";
                return Err((message.to_owned(), "interrupted"));
            }
            for (review, decision) in decisions {
                task.decide(review, decision);
            }
            return Ok(thread.paused.take());
        }
        if !input.resume.is_empty() {
            let message = "no interrupt of this thread is open";
            return Err((message.to_owned(), "not_interrupted"));
        }
        if thread.is_full(self.service.limits.max_conversation_bytes) {
            return Err(("the thread is too long".to_owned(), "too_long"));
        }
        let parameters = self.service.agent.parameters.properties();
        let parameters: Vec<&str> = parameters.keys().map(String::as_str).collect();
        let said = thread.input(input, &parameters);
        Ok(said.map(|said| AnswerRun::start(task, said)))
    }

    async fn pump(
        &self,
        mut run: AnswerRun,
        stream: &mut AgUiEventStream,
    ) -> Result<RunEnd, ReaderGone> {
        let deadline = Instant::now() + self.service.limits.run;
        let guarded = self.service.is_guarded();
        let bound = self.service.bound_names();
        loop {
            let step = tokio::select! {
                step = run.next() => step,
                () = stream.closed() => {
                    self.abandon(run).await;
                    return Err(ReaderGone);
                }
                () = tokio::time::sleep_until(deadline) => {
                    self.abandon(run).await;
                    return Ok(RunEnd::error("the run took too long", "timeout"));
                }
                () = tokio::time::sleep(self.service.limits.keep_alive) => {
                    stream.keep_alive();
                    continue;
                }
            };
            let event = match step {
                AnswerStep::Event(event) => event,
                AnswerStep::Missed => {
                    self.abandon(run).await;
                    return Ok(RunEnd::error("the events were read too slowly", "too_slow"));
                }
                AnswerStep::Done(output) => return self.finish(output, stream).await,
            };
            let told = match event {
                TaskEvent::Text(text) if !guarded => {
                    stream.begin_reply();
                    self.thread.state().gave(stream.reply());
                    stream.text(&text).await
                }
                TaskEvent::TextEnd => stream.said().await,
                TaskEvent::Call {
                    id,
                    function,
                    arguments,
                } => {
                    let (known_as, shown) = {
                        let mut thread = self.thread.state();
                        let shown = thread.shown(&function, arguments, &bound);
                        let call = ToolCall::new(id, &function, shown.clone());
                        thread.gave(stream.reply());
                        (thread.called(&call), shown)
                    };
                    stream.call(&known_as, &function, &shown).await
                }
                TaskEvent::CallEnd { id, result, .. } => {
                    let message = fresh_id();
                    let known_as = {
                        let mut thread = self.thread.state();
                        thread.gave(&message);
                        thread.known_as(&id)
                    };
                    let content = match result {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    stream.result(&message, &known_as, &content).await
                }
                TaskEvent::Review(_) => {
                    let reviews = self.thread.task.reviews();
                    if reviews.is_empty() {
                        // It was taken back already.
                        continue;
                    }
                    let interrupts: Vec<Value> = reviews.iter().map(interrupt).collect();
                    self.thread.state().paused = Some(run);
                    let outcome = json!({"type": "interrupt", "interrupts": interrupts});
                    return Ok(RunEnd::finished(outcome));
                }
                TaskEvent::Text(_)
                | TaskEvent::Started
                | TaskEvent::Failed(_)
                | TaskEvent::Idle { .. }
                | TaskEvent::Lost(_)
                | TaskEvent::Ended(_) => Ok(()),
            };
            if told.is_err() {
                self.abandon(run).await;
                return Err(ReaderGone);
            }
        }
    }

    /// Cancels a run and waits until the task is ready for another.
    async fn abandon(&self, mut run: AnswerRun) {
        run.cancel.cancel();
        self.thread.state().answered(false);
        let over = async { while !matches!(run.next().await, AnswerStep::Done(_)) {} };
        let _ = tokio::time::timeout(self.service.limits.close, over).await;
    }

    async fn finish(
        &self,
        output: TaskOutput,
        stream: &mut AgUiEventStream,
    ) -> Result<RunEnd, ReaderGone> {
        self.thread.state().answered(output.failed.is_none());
        if let Some(end) = output.ended {
            if end.reason == EndReason::Cancelled {
                return Ok(RunEnd::finished(json!({"type": "cancelled"})));
            }
            let code = serde_json::to_value(end.reason).unwrap_or_default();
            let code = code.as_str().unwrap_or("ended");
            return Ok(RunEnd::error(end.message, code));
        }
        if let Some(message) = output.failed {
            return Ok(RunEnd::error(message, "failed"));
        }
        if self.service.is_guarded() {
            stream.begin_reply();
            self.thread.state().gave(stream.reply());
            stream.text(&output.message).await?;
        }
        let mut outcome = json!({"type": "success"});
        if !output.pending.is_empty() {
            let pending = self.thread.state().waits_for(&output.pending);
            outcome["pendingToolCallIds"] = json!(pending);
        }
        let result = (!output.exposes.is_empty()).then_some(Value::Object(output.exposes));
        Ok(RunEnd::Finished { outcome, result })
    }
}

fn interrupt_id(review: &Review) -> String {
    format!("review-{}", review.id)
}

/// A question to a person as the client is asked it.
fn interrupt(review: &Review) -> Value {
    let what = match review.function.as_str() {
        "" => "the conversation".to_owned(),
        function => format!("`{function}`"),
    };
    json!({
        "id": interrupt_id(review),
        "reason": "approval",
        "message": format!("{} is asked to approve {what}.", review.reviewer),
        "responseSchema": {
            "type": "object",
            "properties": {"approved": {"type": "boolean"}},
            "required": ["approved"],
        },
        "metadata": {"review": review},
    })
}
