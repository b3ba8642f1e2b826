//! The one owner of a task: takes inputs one after the other, asks the model, carries out its calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::future::join_all;
use proofhouse_tools::interpolate::{Root, Scope as TemplateScope};
use proofhouse_tools::manifest::Agent;
use proofhouse_tools::runtime::Environment;
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::call::{self, Called};
use super::capabilities::{self, Capabilities, Target};
use super::context::{self, Scope, TaskContext};
use super::handle::{Command, Known, Task};
use super::review::Reviews;
use super::steps::{Passed, Site};
use super::watch::Watchers;
use super::{
    AllowList, DirectoryMount, End, EndReason, Host, Input, Output, TaskEvent, TaskOptions, Turn,
    User,
};
use crate::model::{
    ChatMessage, Model, ModelEvent, ModelOptions, ModelReply, ModelRequest, ToolCall, ToolSpec,
};

/// Turns of the model for one input, where the manifest has no limit: a model that calls the same
/// function for ever must come to an end.
const MAX_TURNS_PER_INPUT: u64 = 100;
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
    model: Arc<dyn Model>,
    pub(super) context: TaskContext,
    pub(super) messages: Vec<ChatMessage>,
    pub(super) capabilities: Option<Capabilities>,
    known: Arc<Mutex<Known>>,
    allowed: AllowList,
    pub(super) cancel: CancellationToken,
    started: Instant,
    turns: u64,
    pub(super) calls: u64,
    /// The functions of whoever asks, for this input.
    pub(super) offered: Vec<ToolSpec>,
    /// What whoever asks says about this input.
    circumstances: Option<String>,
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

    /// Answers one input.
    async fn input(&mut self, input: Input) -> Output {
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

    fn failed(&mut self, message: String) -> Output {
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

    async fn answer(
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
    async fn take_in(
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

    async fn guard_input(&mut self, cancel: &CancellationToken) -> Result<(), Stop> {
        self.seal();
        let agent = Arc::clone(&self.agent);
        let inputs = self.context.value()["input"].clone();
        self.guard(&agent.guardrails.before, inputs, None, cancel)
            .await?;
        Ok(())
    }

    /// Takes guardrails; what they made of the output is returned.
    async fn guard(
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

    async fn guard_output(
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

    /// Asks the model and does what it wants done, until it only answers or wants something of whoever
    /// asked.
    async fn converse(
        &mut self,
        cancel: &CancellationToken,
    ) -> Result<(String, Vec<ToolCall>), Stop> {
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
        Err(Stop::End(End::new(
            EndReason::LimitExceeded,
            format!("the model called functions for {MAX_TURNS_PER_INPUT} turns without an answer"),
        )))
    }

    /// One turn of the model.
    async fn ask(&mut self, cancel: &CancellationToken) -> Result<ModelReply, Stop> {
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
            let rest = self
                .agent
                .limits
                .max_age
                .map(|age| age.saturating_sub(self.started.elapsed()));
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
                self.said(&reply);
                Ok(reply)
            }
            Err(error) => {
                // What had come is kept as what was said, without the calls, which were not made.
                if let Some(partial) = &error.partial {
                    let partial = ModelReply {
                        calls: Vec::new(),
                        ..ModelReply::clone(partial)
                    };
                    self.said(&partial);
                }
                Err(match cancel.is_cancelled() {
                    true => Stop::Cancelled,
                    false if error.is_recoverable() => {
                        Stop::Failed(format!("the model failed: {error}"))
                    }
                    false => Stop::End(End::new(EndReason::ModelError, error.to_string())),
                })
            }
        }
    }

    fn said(&mut self, reply: &ModelReply) {
        self.context
            .used(reply.usage.prompt, reply.usage.completion);
        let time = self.now();
        self.turn(Turn::Llm {
            time,
            model: reply.model.clone(),
            simulation: self.model.is_simulation(),
            text: reply.text.clone(),
            calls: reply.calls.clone(),
            usage: reply.usage,
        });
        self.messages.push(ChatMessage::Assistant {
            text: reply.text.clone(),
            calls: reply.calls.clone(),
        });
    }

    fn prompt(&self) -> String {
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
    async fn carry_out(
        &mut self,
        calls: &[ToolCall],
        cancel: &CancellationToken,
    ) -> Result<(), Stop> {
        let limit = self.agent.limits.max_tool_calls;
        let left = limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.calls));
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let allowed = calls.len().min(MAX_CALLS_PER_TURN).min(left);
        let mut done: Vec<Option<Called>> = Vec::new();
        done.resize_with(allowed, || None);
        let Some(capabilities) = self.capabilities.take() else {
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
            self.messages.push(called.message(call));
            if let Some(end) = self.note(call, called) {
                stop.get_or_insert(end);
                break;
            }
            if cancel.is_cancelled() {
                break;
            }
        }
        self.capabilities = Some(capabilities);
        if let Some(end) = stop {
            return Err(Stop::End(end));
        }
        if cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        if allowed < calls.len().min(MAX_CALLS_PER_TURN) {
            return Err(Stop::End(End::new(
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
    pub(super) fn note(&mut self, call: &ToolCall, called: Called) -> Option<End> {
        self.calls += 1;
        let time = self.now();
        self.context.called(
            &called.function,
            &time,
            &called.arguments,
            &called.output,
            called.status,
            called.child.as_deref(),
        );
        if let Some(tool) = &called.dispatched {
            for (name, value) in &called.arguments {
                self.allowed.add(tool, name, value);
            }
        }
        self.turn(Turn::Capability {
            time,
            call: call.id.clone(),
            function: called.function,
            arguments: called.arguments,
            result: called.result,
            status: called.status,
            task: called.child,
        });
        called.end
    }

    /// Whether the task may go on.
    pub(super) fn within_limits(&self) -> Result<(), Stop> {
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
        if limits
            .max_age
            .is_some_and(|age| self.started.elapsed() >= age)
        {
            return Err(too_old());
        }
        match exceeded.iter().find(|(_, over)| *over) {
            Some((name, _)) => Err(Stop::End(End::new(
                EndReason::LimitExceeded,
                format!("{name} of the agent is used up"),
            ))),
            None => Ok(()),
        }
    }
}

fn too_old() -> Stop {
    Stop::End(End::new(
        EndReason::LimitExceeded,
        "max_age of the agent is used up",
    ))
}

/// Why an input got no answer.
pub(super) enum Stop {
    /// The task is over.
    End(End),
    /// Only this input; the task goes on.
    Failed(String),
    Cancelled,
}
