//! The one owner of a task: takes inputs one after the other, asks the model, carries out its calls.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use proofhouse_manifest::Agent;
use proofhouse_manifest::interpolate::Root;
use proofhouse_tools::runtime::{Environment, ToolTask};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::json;
use tokio::sync::mpsc;

use super::capabilities::{self, Capabilities};
use super::context::TaskContext;
use super::handle::{Task, TaskCommand, TaskStatus};
use super::journal::{JournalEntry, Keeper};
use super::restore::{self, RestoredTurns, UnfinishedInput};
use super::review::Reviews;
use super::watch::Watchers;
use super::{
    AllowedValue, DirectoryMount, EndReason, Host, TaskAllowList, TaskEnd, TaskEvent, TaskOptions,
    Turn, User,
};
use crate::model::{ChatMessage, Model, ToolSpec};

/// Calls of one turn that are carried out; the others are refused.
pub(super) const MAX_CALLS_PER_TURN: usize = 64;
/// Inputs that may wait.
const COMMANDS: usize = 16;

/// What a task begins with.
pub(super) struct TaskStart {
    pub(super) host: Host,
    pub(super) agent: Arc<Agent>,
    pub(super) model: Arc<dyn Model>,
    pub(super) options: TaskOptions,
    pub(super) depth: usize,
}

/// What the calls of a task share.
pub(super) struct TaskShared {
    pub(super) host: Host,
    pub(super) id: String,
    pub(super) user: User,
    pub(super) depth: usize,
    pub(super) environment: Environment,
    pub(super) reviews: Reviews,
    pub(super) delegating: Delegating,
    pub(super) events: Watchers,
    pub(super) keeper: Keeper,
    pub(super) allowed: Mutex<TaskAllowList>,
    /// The tools, once they are known.
    pub(super) tools: Arc<Mutex<Vec<ToolTask>>>,
    /// What stops the answer that is under way, and whether somebody wanted that.
    pub(super) interrupt: Arc<AnswerInterrupt>,
    invocations: AtomicU64,
}

/// How many other agents work for this one. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Delegating(Arc<AtomicUsize>);

impl Delegating {
    pub(super) fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Counts one for as long as this lives.
    pub(super) fn one_more(&self) -> impl Drop + use<> {
        struct RunningInput(Arc<AtomicUsize>);
        impl Drop for RunningInput {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        RunningInput(Arc::clone(&self.0))
    }
}

/// How an answer is stopped from outside.
#[derive(Debug, Default)]
pub(super) struct AnswerInterrupt {
    pub(super) current: Mutex<CancellationToken>,
    pub(super) wanted: AtomicBool,
}

impl AnswerInterrupt {
    /// What stops the next answer.
    pub(super) fn watch(&self, answer: &CancellationToken) {
        let mut current = lock(&self.current);
        *current = answer.clone();
    }

    /// Stops the answer that is under way, if one is.
    pub(super) fn stop(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        let current = lock(&self.current);
        current.cancel();
    }

    /// Whether somebody wanted it since the last time this was asked.
    pub(super) fn take(&self) -> bool {
        self.wanted.swap(false, Ordering::SeqCst)
    }
}

impl TaskShared {
    pub(super) fn allowed(&self) -> MutexGuard<'_, TaskAllowList> {
        lock(&self.allowed)
    }

    pub(super) fn next_invocation(&self) -> u64 {
        self.invocations.fetch_add(1, Ordering::Relaxed) + 1
    }
}

pub(super) struct Runner {
    pub(super) shared: TaskShared,
    pub(super) agent: Arc<Agent>,
    pub(super) model: Arc<dyn Model>,
    pub(super) context: TaskContext,
    pub(super) messages: Vec<ChatMessage>,
    pub(super) capabilities: Option<Capabilities>,
    known: Arc<Mutex<TaskStatus>>,
    pub(super) cancel: CancellationToken,
    pub(super) started: Instant,
    /// How old the task was when this part of it began.
    pub(super) age_before: Duration,
    pub(super) turns: u64,
    pub(super) calls: u64,
    /// The functions of whoever asks, for this input.
    pub(super) offered: Vec<ToolSpec>,
    /// What whoever asks says about this input.
    pub(super) circumstances: Option<String>,
    /// The delivery that is under way and not settled yet.
    pub(super) delivery: Option<String>,
    /// What is left to do for the last input.
    pub(super) open: UnfinishedInput,
    /// Calls of the last reply that may have been made before the task was restored.
    pub(super) begun: Vec<String>,
}

/// Begins a task; it runs until it is ended, cancelled, or nobody holds its handle.
pub(super) fn start(start: TaskStart) -> Task {
    let TaskStart {
        host,
        agent,
        model,
        options,
        depth,
    } = start;
    let (commands, inbox) = mpsc::channel(COMMANDS);
    let events = Watchers::default();
    let environment = environment(&host, &agent, &options.id);
    let restored = options.restored.unwrap_or_default();
    let now = environment.now();
    let started_at = if restored.started_at.is_empty() {
        now.clone()
    } else {
        restored.started_at
    };
    let mut context = TaskContext::new(
        &agent.name,
        &agent.namespace,
        &started_at,
        &options.user,
        model.name(),
    );
    for function in capabilities::functions_read(&agent) {
        context.know(&function);
    }
    let reading = RestoredTurns::new(&restored.turns, &mut context);
    let cancel = options.cancel.child_token();
    let reviews = Reviews::after(reading.asked());
    let delegating = Delegating::default();
    let mut history = restored.turns;
    history.retain(Turn::is_shown);
    let known = Arc::new(Mutex::new(TaskStatus {
        context: context.shared(),
        history,
        allowed: options.allowed.clone(),
        ended: reading.ended.clone(),
    }));
    let lost = Arc::default();
    let interrupt: Arc<AnswerInterrupt> = Arc::default();
    let tools: Arc<Mutex<Vec<ToolTask>>> = Arc::default();
    let is_open = reading.open != UnfinishedInput::Nothing && reading.ended.is_none();
    let task = Task {
        id: options.id.clone(),
        agent: agent.name.clone(),
        model: model.name().to_owned(),
        simulation: model.is_simulation(),
        commands,
        events: events.clone(),
        reviews: reviews.clone(),
        delegating: delegating.clone(),
        known: Arc::clone(&known),
        cancel: cancel.clone(),
        interrupt: Arc::clone(&interrupt),
        lost: Arc::clone(&lost),
        tools: Arc::clone(&tools),
        unfinished: is_open && !reading.interrupted,
    };
    let runner = Runner {
        shared: TaskShared {
            host,
            id: options.id,
            user: options.user,
            depth,
            environment,
            reviews,
            delegating,
            events,
            keeper: Keeper::new(options.journal, lost, cancel.clone()),
            allowed: Mutex::new(options.allowed),
            tools,
            interrupt,
            invocations: AtomicU64::new(reading.invocations),
        },
        agent,
        model,
        context,
        messages: options
            .history
            .into_iter()
            .chain(reading.messages)
            .collect(),
        capabilities: None,
        known,
        cancel,
        started: Instant::now(),
        age_before: restore::age(&started_at, &now),
        turns: reading.turns,
        calls: reading.calls,
        offered: Vec::new(),
        circumstances: None,
        delivery: None,
        open: reading.open,
        begun: reading.begun,
    };
    tokio::spawn(runner.run(inbox, reading.ended));
    task
}

/// What the tools of a task know: the agent, and its files.
pub(super) fn environment(host: &Host, agent: &Agent, task: &str) -> Environment {
    let identity = json!({"name": agent.name, "namespace": agent.namespace});
    let environment = host.inner.environment.clone().with(Root::Agent, identity);
    let mount = host.inner.files.as_deref().and_then(|files| {
        DirectoryMount::scoped(files, &agent.mount, &agent.namespace, &agent.name, task)
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
    async fn run(mut self, mut inbox: mpsc::Receiver<TaskCommand>, ended: Option<TaskEnd>) {
        let mut asked_to_end = None;
        let end = match ended {
            // It was over before it was restored.
            Some(_) => return,
            None => loop {
                let command = tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => {
                        break TaskEnd::new(EndReason::Cancelled, "the task was cancelled");
                    }
                    command = inbox.recv() => command,
                };
                let end = match command {
                    None => Some(TaskEnd::new(
                        EndReason::Closed,
                        "nobody holds the task any more",
                    )),
                    Some(TaskCommand::End(reply)) => {
                        asked_to_end = Some(reply);
                        Some(TaskEnd::new(EndReason::Closed, "the task was ended"))
                    }
                    Some(command) => self.obey(command).await,
                };
                if self.shared.keeper.lost().is_some() {
                    break TaskEnd::new(EndReason::Closed, "the task goes on elsewhere");
                }
                if let Some(end) = end {
                    break end;
                }
            },
        };
        if let Some(capabilities) = &self.capabilities {
            for error in capabilities.teardown().await {
                tracing::warn!(task = %self.shared.id, %error, "a tool could not be torn down");
            }
        }
        self.finish(end, asked_to_end).await;
    }

    /// Does what somebody outside wants; how the task ended, if it did.
    async fn obey(&mut self, command: TaskCommand) -> Option<TaskEnd> {
        match command {
            TaskCommand::Input(input, scope, reply) => {
                // On the heap: a task that waits holds no room for an answer.
                let output = Box::pin(scope.run(self.input(*input))).await;
                self.reply(output, reply).await
            }
            TaskCommand::Resume(scope, reply) => {
                let output = Box::pin(scope.run(self.resume())).await;
                self.reply(output, reply).await
            }
            TaskCommand::Interrupt(reply) => {
                let output = if self.shared.interrupt.take() {
                    self.interrupted().await
                } else {
                    // The answer that was under way has noted it.
                    super::TaskOutput::default()
                };
                self.reply(output, reply).await
            }
            TaskCommand::Call(call, reply) => {
                let output = Box::pin(self.direct(*call)).await;
                let end = output.ended.clone();
                self.close(end.as_ref()).await;
                let _ = reply.send(output);
                end
            }
            TaskCommand::Functions(reply) => {
                let functions = self.functions().await;
                let end = functions.as_ref().err().cloned();
                self.close(end.as_ref()).await;
                let _ = reply.send(functions);
                end
            }
            // The loop takes it.
            TaskCommand::End(_) => None,
        }
    }

    async fn reply(
        &mut self,
        output: super::TaskOutput,
        reply: tokio::sync::oneshot::Sender<super::TaskOutput>,
    ) -> Option<TaskEnd> {
        let end = output.ended.clone();
        self.close(end.as_ref()).await;
        let _ = reply.send(output);
        end
    }

    /// After each command: those outside see how things stand, and an end is kept before anybody hears of it.
    async fn close(&mut self, end: Option<&TaskEnd>) {
        self.publish();
        if let Some(end) = end {
            self.keep_end(end).await;
            if self.shared.keeper.lost().is_none() {
                self.note_end(end);
            }
        }
    }

    /// Keeps that the task is over. Whoever only lets go of it has not ended it.
    async fn keep_end(&mut self, end: &TaskEnd) {
        if end.reason == EndReason::Closed {
            return;
        }
        let is_kept = {
            let known = lock(&self.known);
            known.ended.is_some()
        };
        if !is_kept {
            let time = self.now();
            let end = end.clone();
            let _ = self.turn(Turn::Ended { time, end }).await;
        }
    }

    async fn finish(
        &mut self,
        end: TaskEnd,
        asked_to_end: Option<tokio::sync::oneshot::Sender<()>>,
    ) {
        if self.shared.keeper.lost().is_none() {
            self.keep_end(&end).await;
        }
        match self.shared.keeper.lost() {
            Some(lost) => {
                let _ = self.shared.events.send(TaskEvent::Lost(lost));
            }
            None => {
                self.note_end(&end);
                let _ = self.shared.events.send(TaskEvent::Ended(end));
            }
        }
        if let Some(reply) = asked_to_end {
            let _ = reply.send(());
        }
    }

    fn note_end(&self, end: &TaskEnd) {
        let mut known = lock(&self.known);
        known.ended.get_or_insert_with(|| end.clone());
    }

    /// Lets those outside see how things stand.
    fn publish(&self) {
        let mut known = lock(&self.known);
        known.context = self.context.shared();
        known.allowed = self.shared.allowed().clone();
    }

    /// Keeps a turn, and only then counts it as something that happened.
    pub(super) async fn turn(&mut self, turn: Turn) -> Result<(), NoAnswer> {
        self.turn_with(turn, Vec::new()).await
    }

    /// The same with what the allow list gains.
    pub(super) async fn turn_with(
        &mut self,
        turn: Turn,
        allowed: Vec<AllowedValue>,
    ) -> Result<(), NoAnswer> {
        if self.shared.keeper.is_there() {
            let delivery = if turn.settles() {
                self.delivery.take()
            } else {
                None
            };
            let entry = JournalEntry {
                state: turn.state(),
                turn: turn.clone(),
                delivery,
                allowed,
            };
            let kept = self.shared.keeper.keep(entry).await;
            kept.map_err(|_| NoAnswer::Cancelled)?;
        }
        if let Some(word) = turn.word() {
            self.context.turn(word);
        }
        if turn.is_shown() {
            let mut known = lock(&self.known);
            known.history.push(turn);
        }
        Ok(())
    }

    pub(super) fn now(&self) -> String {
        self.shared.environment.now()
    }
}

/// Why an input got no answer.
pub(super) enum NoAnswer {
    /// The task is over.
    End(TaskEnd),
    /// Only this input; the task goes on.
    Failed(String),
    Cancelled,
}
