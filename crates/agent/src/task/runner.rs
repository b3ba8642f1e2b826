//! The one owner of a task: takes inputs one after the other, asks the model, carries out its calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use proofhouse_tools::interpolate::Root;
use proofhouse_tools::manifest::Agent;
use proofhouse_tools::runtime::Environment;
use proofhouse_wire::CancellationToken;
use serde_json::json;
use tokio::sync::mpsc;

use super::capabilities::{self, Capabilities};
use super::context::TaskContext;
use super::handle::{Command, Known, Task};
use super::review::Reviews;
use super::watch::Watchers;
use super::{AllowList, DirectoryMount, End, EndReason, Host, TaskEvent, TaskOptions, Turn, User};
use crate::model::{ChatMessage, Model, ToolSpec};

/// Calls of one turn that are carried out; the others are refused.
pub(super) const MAX_CALLS_PER_TURN: usize = 64;
/// Inputs that may wait.
const COMMANDS: usize = 16;

/// What a task begins with.
pub(super) struct Start {
    pub(super) host: Host,
    pub(super) agent: Arc<Agent>,
    pub(super) model: Arc<dyn Model>,
    pub(super) options: TaskOptions,
    pub(super) depth: usize,
}

/// What the calls of a task share.
pub(super) struct Shared {
    pub(super) host: Host,
    pub(super) id: String,
    pub(super) user: User,
    pub(super) depth: usize,
    pub(super) environment: Environment,
    pub(super) reviews: Reviews,
    pub(super) events: Watchers,
    invocations: AtomicU64,
}

impl Shared {
    pub(super) fn next_invocation(&self) -> u64 {
        self.invocations.fetch_add(1, Ordering::Relaxed) + 1
    }
}

pub(super) struct Runner {
    pub(super) shared: Shared,
    pub(super) agent: Arc<Agent>,
    pub(super) model: Arc<dyn Model>,
    pub(super) context: TaskContext,
    pub(super) messages: Vec<ChatMessage>,
    pub(super) capabilities: Option<Capabilities>,
    known: Arc<Mutex<Known>>,
    pub(super) allowed: AllowList,
    pub(super) cancel: CancellationToken,
    pub(super) started: Instant,
    pub(super) turns: u64,
    pub(super) calls: u64,
    /// The functions of whoever asks, for this input.
    pub(super) offered: Vec<ToolSpec>,
    /// What whoever asks says about this input.
    pub(super) circumstances: Option<String>,
}

/// Begins a task; it runs until it is ended, cancelled, or nobody holds its handle.
pub(super) fn start(start: Start) -> Task {
    let Start {
        host,
        agent,
        model,
        options,
        depth,
    } = start;
    let (commands, inbox) = mpsc::channel(COMMANDS);
    let events = Watchers::default();
    let environment = environment(&host, &agent, &options.id);
    let mut context = TaskContext::new(
        &agent.name,
        &agent.namespace,
        &environment.now(),
        &options.user,
        model.name(),
    );
    for function in capabilities::functions_read(&agent) {
        context.know(&function);
    }
    let cancel = options.cancel.child_token();
    let reviews = Reviews::default();
    let known = Arc::new(Mutex::new(Known {
        context: context.shared(),
        ..Known::default()
    }));
    let task = Task {
        id: options.id.clone(),
        agent: agent.name.clone(),
        model: model.name().to_owned(),
        simulation: model.is_simulation(),
        commands,
        events: events.clone(),
        reviews: reviews.clone(),
        known: Arc::clone(&known),
        cancel: cancel.clone(),
    };
    let runner = Runner {
        shared: Shared {
            host,
            id: options.id,
            user: options.user,
            depth,
            environment,
            reviews,
            events,
            invocations: AtomicU64::new(0),
        },
        agent,
        model,
        context,
        messages: options.history,
        capabilities: None,
        known,
        allowed: AllowList::default(),
        cancel,
        started: Instant::now(),
        turns: 0,
        calls: 0,
        offered: Vec::new(),
        circumstances: None,
    };
    tokio::spawn(runner.run(inbox));
    task
}

/// What the tools of a task know: the agent, and its files.
fn environment(host: &Host, agent: &Agent, task: &str) -> Environment {
    let identity = json!({"name": agent.name, "namespace": agent.namespace});
    let environment = host.inner.environment.clone().with(Root::Agent, identity);
    let mount = host.inner.files.as_deref().and_then(|files| {
        DirectoryMount::scoped(files, agent.mount, &agent.namespace, &agent.name, task)
    });
    match mount {
        None => environment,
        Some(mount) => {
            let prefix = mount.root().display().to_string();
            let coordinates = json!({"bucket": "local", "prefix": prefix, "backend": "directory"});
            environment
                .with(Root::Mount, coordinates)
                .with_files(Arc::new(mount))
        }
    }
}

impl Runner {
    async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        let mut asked_to_end = None;
        let end = loop {
            let command = tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    break End::new(EndReason::Cancelled, "the task was cancelled");
                }
                command = inbox.recv() => command,
            };
            match command {
                None => break End::new(EndReason::Closed, "nobody holds the task any more"),
                Some(Command::End(reply)) => {
                    asked_to_end = Some(reply);
                    break End::new(EndReason::Closed, "the task was ended");
                }
                Some(Command::Input(input, reply)) => {
                    // On the heap: a task that waits holds no room for an answer.
                    let output = Box::pin(self.input(*input)).await;
                    let end = output.ended.clone();
                    self.publish();
                    if let Some(end) = &end {
                        self.note_end(end);
                    }
                    let _ = reply.send(output);
                    if let Some(end) = end {
                        break end;
                    }
                }
                Some(Command::Call(call, reply)) => {
                    let output = Box::pin(self.direct(*call)).await;
                    let end = output.ended.clone();
                    self.publish();
                    if let Some(end) = &end {
                        self.note_end(end);
                    }
                    let _ = reply.send(output);
                    if let Some(end) = end {
                        break end;
                    }
                }
                Some(Command::Functions(reply)) => {
                    let functions = self.functions().await;
                    let end = functions.as_ref().err().cloned();
                    if let Some(end) = &end {
                        self.note_end(end);
                    }
                    let _ = reply.send(functions);
                    if let Some(end) = end {
                        break end;
                    }
                }
            }
        };
        if let Some(capabilities) = &self.capabilities {
            for error in capabilities.teardown().await {
                tracing::warn!(task = %self.shared.id, %error, "a tool could not be torn down");
            }
        }
        self.note_end(&end);
        let _ = self.shared.events.send(TaskEvent::Ended(end));
        if let Some(reply) = asked_to_end {
            let _ = reply.send(());
        }
    }

    fn note_end(&self, end: &End) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.ended.get_or_insert_with(|| end.clone());
    }

    /// Lets those outside see how things stand.
    fn publish(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.context = self.context.shared();
        known.allowed = self.allowed.clone();
    }

    pub(super) fn turn(&mut self, turn: Turn) {
        if let Some(word) = turn.word() {
            self.context.turn(word);
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.history.push(turn);
    }

    pub(super) fn now(&self) -> String {
        self.shared.environment.now()
    }
}

/// Why an input got no answer.
pub(super) enum Stop {
    /// The task is over.
    End(End),
    /// Only this input; the task goes on.
    Failed(String),
    Cancelled,
}
