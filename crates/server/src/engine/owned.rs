//! A task while this process holds its lease: restored, given what is pending, and let go of when it is idle.

use std::sync::Arc;
use std::time::Duration;

use proofhouse_agent::task::{
    AllowList, Allowed, Decision, Input, InputEvent, Output, Restored, Task, TaskEvent,
    TaskOptions, Turn, User,
};
use proofhouse_store::model::{ClaimedTask, Delivery, Held, StateChange, TaskState, ToolRef};
use proofhouse_store::{Result, StoreError};
use proofhouse_tools::receive::message::compose;
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use super::Inner;
use super::commands::{Control, answer_came, wanted};
use super::deliver::Signal;
use super::journal::StoreJournal;
use super::manifests::Snapshot;

/// Turns that are read at once.
const PAGE: usize = 500;
/// Deliveries that are looked at for the next input.
const PENDING: usize = 64;
/// How long a task that cannot be restored is left alone, so that it is not tried without end.
const BACK_OFF: Duration = Duration::from_secs(5);

/// A task that this process works on.
struct Owned<'a> {
    inner: &'a Arc<Inner>,
    signal: &'a Signal,
    task: Task,
    id: String,
    held: Held,
    journal: Arc<StoreJournal>,
    agent: (String, String),
    /// Decisions of people that came before the question was asked again.
    decisions: Vec<(u64, Decision)>,
    /// Somebody stopped the task, and nobody wants it to go on yet.
    interrupted: bool,
    /// The delivery that wants what is under way stopped, and the end of that.
    interrupting: Option<(i64, JoinHandle<Output>)>,
    slot: Option<OwnedSemaphorePermit>,
}

/// What to do after something was obeyed or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    /// The task is over, lost or handed over.
    Stop,
}

/// Works on a task until there is nothing to do for it.
pub(super) async fn work(
    inner: &Arc<Inner>,
    claimed: ClaimedTask,
    signal: &Signal,
    slot: Option<OwnedSemaphorePermit>,
) {
    let held = claimed.lease.held();
    let id = claimed.task.id.clone();
    let mut slot = slot;
    if claimed.task.state == TaskState::Waiting {
        // Nobody is asked again before there is an answer, and whoever waits keeps nobody from working.
        slot = None;
        if !answer_came(inner, &id, signal).await {
            if let Err(error) = inner.store.release(held).await {
                inner.trouble("a lease cannot be released", &error);
            }
            return;
        }
    }
    match restore(inner, claimed, signal, slot).await {
        Ok(mut owned) => {
            owned.run().await;
            // Whatever is under way stops here without a trace, and the tools are torn down.
            owned.journal.close();
            owned.task.cancel();
            owned.task.end().await;
        }
        Err(Refused::Store(error)) => inner.trouble("a task cannot be read", &error),
        Err(Refused::Start(reason)) => {
            tracing::warn!(task = %id, %reason, "a task cannot go on");
            let ended = end_if_cancelled(inner, &id, &held, &reason).await;
            if let Err(error) = &ended {
                inner.trouble("a task cannot be ended", error);
            }
            if !matches!(ended, Ok(true)) {
                tokio::select! {
                    () = tokio::time::sleep(BACK_OFF) => {}
                    () = signal.news.notified() => {}
                    () = signal.let_go.cancelled() => {}
                    () = inner.stopping.cancelled() => {}
                }
            }
        }
    }
    if let Err(error) = inner.store.release(held).await {
        inner.trouble("a lease cannot be released", &error);
    }
}

/// Ends a task that cannot be restored, such as one whose agent is gone, when somebody wants it to end. Returns whether it
/// has.
async fn end_if_cancelled(inner: &Inner, id: &str, held: &Held, reason: &str) -> Result<bool> {
    let wanted = wanted(inner, id).await?;
    let is_cancelled = wanted
        .iter()
        .any(|(_, control)| *control == Control::Cancel);
    if is_cancelled {
        let change = StateChange {
            task: id.to_owned(),
            held: Some(held.clone()),
            from: Vec::new(),
            to: TaskState::Ended,
            detail: Some(json!({"failed": reason})),
        };
        inner.store.change_state(change).await?;
    }
    Ok(is_cancelled)
}

enum Refused {
    Store(StoreError),
    Start(String),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

async fn restore<'a>(
    inner: &'a Arc<Inner>,
    claimed: ClaimedTask,
    signal: &'a Signal,
    slot: Option<OwnedSemaphorePermit>,
) -> std::result::Result<Owned<'a>, Refused> {
    let (row, lease) = (claimed.task, claimed.lease);
    let snapshot = inner.manifests.current();
    let Some(agent) = snapshot.agent(&row.agent_namespace, &row.agent_name) else {
        let (namespace, name) = (&row.agent_namespace, &row.agent_name);
        return Err(Refused::Start(format!(
            "there is no agent `{namespace}/{name}` any more"
        )));
    };
    let mut turns: Vec<Turn> = Vec::new();
    let mut from = 0;
    loop {
        let page = inner.store.turns(&row.id, from, PAGE).await?;
        let Some(last) = page.last() else {
            break;
        };
        from = last.seq + 1;
        for turn in page {
            let read = serde_json::from_value(turn.body);
            turns.push(read.map_err(|error| {
                StoreError::Corrupt(format!("turn {} of {}: {error}", turn.seq, row.id))
            })?);
        }
    }
    let tools: Vec<(String, ToolRef)> = agent
        .capabilities
        .iter()
        .filter_map(|(reference, _)| {
            Some((reference.clone(), snapshot.resolve(&agent, reference)?))
        })
        .collect();
    let entries = inner.store.allow_list(&row.id).await?;
    let allowed: AllowList = entries
        .into_iter()
        .flat_map(|entry| {
            let named = tools.iter().filter(move |(_, tool)| *tool == entry.tool);
            let entry_name = entry.name;
            named.map(move |(reference, _)| Allowed {
                tool: reference.clone(),
                name: entry_name.clone(),
                value: entry.value.clone(),
                sealed: entry.sealed,
            })
        })
        .collect();
    let held = lease.held();
    let journal = Arc::new(StoreJournal::new(
        Arc::clone(&inner.store),
        inner.hub.clone(),
        &row.id,
        held.clone(),
        from,
        tools,
    ));
    let started_at = jiff::Timestamp::from_millisecond(row.created_at).unwrap_or_default();
    let options = TaskOptions {
        id: row.id.clone(),
        user: User {
            id: row.user_id,
            email: row.user_email,
        },
        cancel: CancellationToken::new(),
        journal: Some(Arc::clone(&journal) as _),
        restored: Some(Restored {
            turns,
            started_at: format!("{started_at:.3}"),
        }),
        allowed,
        ..TaskOptions::default()
    };
    let reference = format!("{}/{}", agent.namespace, agent.name);
    let task = snapshot.host.start(&agent.namespace, &reference, options);
    let task = task.map_err(|error| Refused::Start(error.to_string()))?;
    Ok(Owned {
        inner,
        signal,
        id: row.id,
        task,
        held,
        journal,
        agent: (row.agent_namespace, row.agent_name),
        decisions: Vec::new(),
        interrupted: row.state == TaskState::Interrupted,
        interrupting: None,
        slot,
    })
}

impl Owned<'_> {
    async fn run(&mut self) {
        // Whoever is about to be ended does not begin anything.
        let cancelled = wanted(self.inner, &self.id).await.is_ok_and(|wanted| {
            let mut controls = wanted.iter();
            controls.any(|(_, control)| *control == Control::Cancel)
        });
        if cancelled {
            self.obey(0, &Control::Cancel).await;
            return;
        }
        if !self.interrupted {
            super::channels::ensure(self.inner, &self.id);
        }
        if self.task.is_unfinished() && !self.interrupted {
            let task = self.task.clone();
            if self.answered(async move { task.resume().await }).await == Next::Stop {
                return;
            }
        }
        // What is pending when the process is about to stop is left to the next one.
        while !self.inner.stopping.is_cancelled() && !self.signal.let_go.is_cancelled() {
            let looked = match wanted(self.inner, &self.id).await {
                Ok(wanted) => self.next_input().await.map(|input| (wanted, input)),
                Err(error) => Err(error),
            };
            let (wanted, input) = match looked {
                Ok(looked) => looked,
                Err(error) => return self.inner.trouble("deliveries cannot be read", &error),
            };
            if let Some((id, control)) = wanted.into_iter().next() {
                match self.obey(id, &control).await {
                    Next::GoOn => continue,
                    Next::Stop => return,
                }
            }
            let Some(delivery) = input else {
                match self.linger().await {
                    true => continue,
                    false => return,
                }
            };
            if self.interrupted && delivery.event.is_some() {
                let reason = "the task is interrupted";
                if let Err(error) = self.discard(delivery.id, reason).await {
                    return self.inner.trouble("a delivery cannot be settled", &error);
                }
                continue;
            }
            if self.give(delivery).await == Next::Stop {
                return;
            }
        }
    }

    /// The oldest delivery that is an input.
    async fn next_input(&self) -> Result<Option<Delivery>> {
        let pending = self.inner.store.pending(&self.id, PENDING).await?;
        let mut inputs = pending.into_iter();
        Ok(inputs.find(|delivery| Control::of(delivery).is_none()))
    }

    async fn discard(&self, delivery: i64, reason: &str) -> Result<()> {
        let held = self.held.clone();
        self.inner.store.discard(held, delivery, reason).await
    }

    /// Waits a while for more; whether to look again.
    async fn linger(&self) -> bool {
        if self.interrupted || self.inner.stopping.is_cancelled() {
            return false;
        }
        let more = tokio::time::timeout(self.inner.options.linger, self.signal.news.notified());
        tokio::select! {
            biased;
            () = self.signal.let_go.cancelled() => false,
            () = self.inner.stopping.cancelled() => false,
            more = more => more.is_ok(),
        }
    }

    /// Gives one delivery to the task.
    async fn give(&mut self, delivery: Delivery) -> Next {
        let input = match self.input(&delivery).await {
            Ok(Ok(input)) => input,
            Ok(Err(reason)) => {
                return match self.discard(delivery.id, &reason).await {
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
        super::channels::ensure(self.inner, &self.id);
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
        event: &proofhouse_store::model::Event,
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
        let value = super::route::event_value(event);
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

    /// Waits for an answer, and meanwhile obeys what people want of the task.
    async fn answered(&mut self, answer: impl Future<Output = Output> + Send + 'static) -> Next {
        let mut events = self.task.events();
        let (hub, id) = (self.inner.hub.clone(), self.id.clone());
        let forward = async move {
            loop {
                use tokio::sync::broadcast::error::RecvError;
                match events.recv().await {
                    Ok(event @ TaskEvent::Review(_)) => {
                        hub.live(&id, event);
                    }
                    Ok(event) => hub.live(&id, event),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        tokio::pin!(forward);
        let mut answer = tokio::spawn(answer);
        let mut waiting_since: Option<tokio::time::Instant> = None;
        let output = loop {
            let waits = !self.task.reviews().is_empty();
            match (waits, waiting_since) {
                (true, None) => {
                    waiting_since = Some(tokio::time::Instant::now());
                    // Who waits for a person does not keep others from working.
                    self.slot = None;
                }
                (false, _) => waiting_since = None,
                _ => {}
            }
            self.decide();
            let parked =
                waiting_since.is_some_and(|since| since.elapsed() >= self.inner.options.park);
            if parked || self.signal.let_go.is_cancelled() || self.inner.out_of_time() {
                // Handed over: the next owner goes on from what is kept.
                self.journal.close();
                self.task.cancel();
                let _ = answer.await;
                return Next::Stop;
            }
            tokio::select! {
                biased;
                output = &mut answer => break output,
                () = self.signal.let_go.cancelled() => continue,
                () = self.inner.deadline.cancelled() => continue,
                () = &mut forward => {}
                () = self.signal.news.notified() => {}
                () = tokio::time::sleep(self.inner.options.look) => {}
            }
            if self.controls().await == Next::Stop {
                let _ = answer.await;
                return Next::Stop;
            }
        };
        let Ok(output) = output else {
            return Next::Stop;
        };
        self.interrupted = output.interrupted;
        if let Some((id, end)) = self.interrupting.take() {
            // The answer may have come first; the task is interrupted all the same.
            self.interrupted |= end.await.is_ok_and(|output| output.lost.is_none());
            let _ = self.discard(id, "done: interrupted").await;
        }
        match (&output.lost, &output.ended) {
            (Some(lost), _) => {
                tracing::info!(task = %self.id, %lost, "a task is let go of");
                Next::Stop
            }
            (None, Some(_)) => Next::Stop,
            (None, None) => Next::GoOn,
        }
    }

    /// Gives the decisions that are there to the questions that are open.
    fn decide(&mut self) {
        for review in self.task.reviews() {
            let known = self.decisions.iter().position(|(id, _)| *id == review.id);
            if let Some(at) = known {
                let (_, decision) = self.decisions.remove(at);
                self.task.decide(review.id, decision);
            }
        }
    }

    /// Obeys what people want while the task works.
    async fn controls(&mut self) -> Next {
        let Ok(wanted) = wanted(self.inner, &self.id).await else {
            // The heartbeat notices if this lasts.
            return Next::GoOn;
        };
        for (id, control) in wanted {
            match control {
                Control::Decide { review, decision } => {
                    self.decisions.push((review, decision));
                    if self.discard(id, "done: a person decided").await.is_err() {
                        return Next::GoOn;
                    }
                }
                Control::Cancel => {
                    self.task.cancel();
                    // The end of the task settles it.
                    return Next::GoOn;
                }
                Control::Interrupt => {
                    if self.interrupting.is_none() {
                        let task = self.task.clone();
                        let end = tokio::spawn(async move { task.interrupt().await });
                        self.interrupting = Some((id, end));
                    }
                }
                Control::Resume => {
                    let _ = self.discard(id, "the task is working").await;
                }
            }
        }
        self.decide();
        Next::GoOn
    }

    /// Obeys what people want while the task is idle.
    async fn obey(&mut self, id: i64, control: &Control) -> Next {
        let settled = |settled: Result<()>| match settled {
            Ok(()) => Next::GoOn,
            Err(_) => Next::Stop,
        };
        match control {
            Control::Decide { review, decision } => {
                self.decisions.push((*review, *decision));
                settled(self.discard(id, "done: a person decided").await)
            }
            Control::Cancel => {
                self.task.cancel();
                let output = self.task.resume().await;
                // The end is kept before the runner stops; ending it waits for that.
                self.task.end().await;
                drop(output);
                Next::Stop
            }
            Control::Interrupt => {
                let output = self.task.interrupt().await;
                self.interrupted = true;
                match output.lost {
                    Some(_) => Next::Stop,
                    None => settled(self.discard(id, "done: interrupted").await),
                }
            }
            Control::Resume => {
                let done = self.discard(id, "done: resumed").await;
                self.interrupted = false;
                super::channels::ensure(self.inner, &self.id);
                let task = self.task.clone();
                match done {
                    Ok(()) => self.answered(async move { task.resume().await }).await,
                    Err(_) => Next::Stop,
                }
            }
        }
    }
}
