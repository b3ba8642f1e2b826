//! One call of a function: bindings, steps, the tool or agent behind it, and what the model is told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_manifest::Agent;
use proofhouse_source::did_you_mean;
use proofhouse_tools::functions::{Function, searched_call};
use proofhouse_tools::runtime::{ActionError, Invocation};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::capabilities::{self, BindingError, Callable, Capabilities, CapabilityTarget, Remote};
use super::context::{ExpressionScope, TaskContext};
use super::journal::{JournalEntry, Lost};
use super::restore;
use super::review::Reviews;
use super::runner::TaskShared;
use super::steps::{Passed, StepSite};
use super::watch::TaskEvents;
use super::{
    AllowedValue, CallStatus, EndReason, TaskEnd, TaskEvent, TaskInput, TaskOptions, Turn,
};
use crate::model::{Arguments, ChatMessage, ToolCall};

/// What became of a call.
#[derive(Debug)]
pub(super) struct CallOutcome {
    pub(super) function: String,
    pub(super) arguments: Map<String, Value>,
    /// What the tool gave, before steps changed it.
    pub(super) output: Value,
    /// What the model is told.
    pub(super) result: Value,
    pub(super) status: CallStatus,
    pub(super) took: Duration,
    /// The task of another agent.
    pub(super) child: Option<String>,
    /// The task ends with this.
    pub(super) end: Option<TaskEnd>,
}

impl CallOutcome {
    pub(super) fn new(
        function: &str,
        arguments: Map<String, Value>,
        result: Value,
        status: CallStatus,
    ) -> Self {
        Self {
            function: function.to_owned(),
            arguments,
            output: result.clone(),
            result,
            status,
            took: Duration::ZERO,
            child: None,
            end: None,
        }
    }

    fn refused(function: &str, arguments: Map<String, Value>, word: &str, message: &str) -> Self {
        let result = json!({"error": word, "message": message});
        let status = match word {
            "restricted" => CallStatus::Restricted,
            _ => CallStatus::Errored,
        };
        Self::new(function, arguments, result, status)
    }

    /// What the model is told.
    pub(super) fn message(&self, call: &ToolCall) -> ChatMessage {
        restore::told(call, &self.result, self.status)
    }

    fn ending(mut self, reason: EndReason, message: &str) -> Self {
        self.end = Some(TaskEnd::new(reason, message));
        self
    }
}

/// Carries out a call. The context is changed only by what steps invoke.
pub(super) async fn call(
    shared: &TaskShared,
    capabilities: &Capabilities,
    context: &mut TaskContext,
    call: &ToolCall,
    cancel: &CancellationToken,
) -> CallOutcome {
    let started = Instant::now();
    let mut called = attempt(shared, capabilities, context, call, cancel).await;
    called.took = started.elapsed();
    let _ = shared.events.send(TaskEvent::CallEnd {
        id: call.id.clone(),
        function: called.function.clone(),
        result: called.result.clone(),
        status: called.status,
        took: called.took,
    });
    called
}

async fn attempt(
    shared: &TaskShared,
    capabilities: &Capabilities,
    context: &mut TaskContext,
    call: &ToolCall,
    cancel: &CancellationToken,
) -> CallOutcome {
    let undone = if let Arguments::Object(said) = &call.arguments
        && let Some(callable) = capabilities.find(&call.name)
    {
        undone(callable, said)
    } else {
        None
    };
    let operation = undone.as_ref().map(|(function, _)| function.action.clone());
    let mut called = attempt_one(shared, capabilities, context, call, undone, cancel).await;
    called.arguments = as_said(operation.as_deref(), called.arguments);
    called
}

/// The arguments of an operation as its caller gave them: those of `call`, if it was called by that.
fn as_said(operation: Option<&str>, arguments: Map<String, Value>) -> Map<String, Value> {
    let Some(operation) = operation else {
        return arguments;
    };
    let mut said = Map::new();
    said.insert("operation".to_owned(), operation.into());
    said.insert("arguments".to_owned(), arguments.into());
    said
}

async fn attempt_one(
    shared: &TaskShared,
    capabilities: &Capabilities,
    context: &mut TaskContext,
    call: &ToolCall,
    undone: Option<(Function, Map<String, Value>)>,
    cancel: &CancellationToken,
) -> CallOutcome {
    let operation = undone
        .as_ref()
        .map(|(function, _)| function.action.as_str());
    let tell = |arguments: &Map<String, Value>| {
        let _ = shared.events.send(TaskEvent::Call {
            id: call.id.clone(),
            function: call.name.clone(),
            arguments: as_said(operation, arguments.clone()),
        });
    };
    let said = match &call.arguments {
        Arguments::Object(said) => said.clone(),
        Arguments::Malformed { reason, .. } => {
            tell(&Map::new());
            return CallOutcome::refused(&call.name, Map::new(), "bad_arguments", reason);
        }
    };
    let Some(callable) = capabilities.find(&call.name) else {
        tell(&said);
        let near = did_you_mean(&call.name, capabilities.names());
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let message = format!("there is no function `{}`{near}", call.name);
        return CallOutcome::refused(&call.name, said, "unknown_function", &message);
    };
    let (callable, said) = match &undone {
        Some((function, arguments)) => (
            Callable {
                function,
                ..callable
            },
            arguments.clone(),
        ),
        None => (callable, said),
    };
    if let Some(connected) = callable.connect(cancel).await {
        tell(&said);
        return told(&call.name, said, connected);
    }
    let arguments = match resolve(shared, callable, context, said.clone()) {
        Ok(arguments) => arguments,
        Err(error) => {
            tell(&said);
            return CallOutcome::refused(&call.name, said, "binding_failed", &error.to_string());
        }
    };
    tell(&arguments);
    let mut site = StepSite {
        context,
        capabilities,
        environment: &shared.environment,
        runtime: &shared.host.inner.runtime,
        reviews: &shared.reviews,
        events: &shared.events,
        cancel,
        function: &callable.function.name,
        action: &callable.function.action,
        input: Value::Object(arguments.clone()),
        output: None,
        event: None,
        call: &call.id,
        keeper: &shared.keeper,
    };
    let rules = &callable.granted.rules;
    if let Some(refused) = before(&mut site, callable, &arguments).await {
        return refused;
    }
    if begin(shared, callable, call, &arguments, operation)
        .await
        .is_err()
    {
        return stop(&callable.function.name, arguments, Passed::Cancelled);
    }
    let mut called = dispatch(shared, callable, site.context, arguments.clone(), cancel).await;
    if called.end.is_some() || rules.after.is_empty() {
        return called;
    }
    site.output = Some(called.result.clone());
    match site.take(&rules.after).await {
        Passed::Yes => called.result = site.output.take().unwrap_or(Value::Null),
        stopped => {
            let refused = stop(&callable.function.name, arguments, stopped);
            called.result = refused.result;
            called.status = refused.status;
            called.end = refused.end;
        }
    }
    called
}

/// The call of an operation that a `call` of a searched API stands for: bindings and rules are about operations.
fn undone(
    callable: Callable<'_>,
    said: &Map<String, Value>,
) -> Option<(Function, Map<String, Value>)> {
    let CapabilityTarget::Tool(task) = &callable.granted.target else {
        return None;
    };
    let (action, arguments) = searched_call(task.tool(), &callable.function.action, said)?;
    let function = Function {
        action,
        ..callable.function.clone()
    };
    Some((function, arguments))
}

/// What the model said, with what is bound in its place.
fn resolve(
    shared: &TaskShared,
    callable: Callable<'_>,
    context: &TaskContext,
    said: Map<String, Value>,
) -> Result<Map<String, Value>, BindingError> {
    let granted = callable.granted;
    let bindings = &granted.rules.bindings;
    let (now, mut bound) = (shared.environment.now(), Map::new());
    for binding in bindings {
        let value = capabilities::bound(
            std::slice::from_ref(binding),
            context,
            ExpressionScope::default(),
            &now,
            &shared.environment,
            &shared.host.inner.runtime,
        );
        match value {
            Ok(value) => bound.extend(value),
            // What this action does not have cannot keep it from being called.
            Err(_) if !has_parameter(callable, &binding.0) => {}
            Err(error) => return Err(error),
        }
    }
    let mut arguments = said;
    // Whatever the model says of a bound parameter is not heard, also where this action has none of
    // that name.
    for (name, _) in bindings {
        arguments.shift_remove(name);
    }
    if let CapabilityTarget::Tool(task) = &granted.target {
        let declared = |name: &String| {
            let mut actions = task.tool().actions.iter();
            let derives = !task.tool().deriving().is_empty();
            derives || actions.any(|action| action.parameters.properties().contains_key(name))
        };
        arguments.extend(bound.into_iter().filter(|(name, _)| declared(name)));
    } else {
        arguments.extend(bound);
    }
    Ok(arguments)
}

async fn before(
    site: &mut StepSite<'_>,
    callable: Callable<'_>,
    arguments: &Map<String, Value>,
) -> Option<CallOutcome> {
    let rules = &callable.granted.rules;
    let function = &callable.function.name;
    let used = &site.context.value()["capabilities"][function.as_str()]["timestamps"];
    let is_first = used.as_array().is_none_or(Vec::is_empty);
    if is_first {
        match site.take(&rules.before_first).await {
            Passed::Yes => {}
            stopped => return Some(stop(function, arguments.clone(), stopped)),
        }
    }
    match site.take(&rules.before).await {
        Passed::Yes => None,
        stopped => Some(stop(function, arguments.clone(), stopped)),
    }
}

fn stop(function: &str, arguments: Map<String, Value>, stopped: Passed) -> CallOutcome {
    match stopped {
        Passed::Locked(message) => {
            CallOutcome::refused(function, arguments, "restricted", &message)
                .ending(EndReason::Locked, &message)
        }
        Passed::Cancelled => {
            CallOutcome::refused(function, arguments, "cancelled", "the task was cancelled")
        }
        Passed::Blocked(message) => {
            CallOutcome::refused(function, arguments, "restricted", &message)
        }
        Passed::Yes => CallOutcome::refused(function, arguments, "restricted", "nothing was done"),
    }
}

/// Keeps that a call is about to be made, with what the allow list gains by it: an event about it may come
/// before its result.
async fn begin(
    shared: &TaskShared,
    callable: Callable<'_>,
    call: &ToolCall,
    arguments: &Map<String, Value>,
    operation: Option<&str>,
) -> Result<(), Lost> {
    let mut gained = Vec::new();
    if let CapabilityTarget::Tool(task) = &callable.granted.target {
        let tool = &callable.granted.reference;
        let given = for_action(callable, arguments.clone());
        let mut actions = task.tool().actions.iter();
        let action = actions.find(|action| action.name == callable.function.action);
        // What does not fit is refused, so nothing is learnt from it.
        let resolved = match action {
            Some(action) if !action.execute.kind().is_described_by_backend() => {
                action.parameters.complete(given).unwrap_or_default()
            }
            _ => given,
        };
        let mut allowed = shared.allowed();
        for (name, value) in &resolved {
            if allowed.add(tool, name, value) {
                gained.push(AllowedValue {
                    tool: tool.clone(),
                    name: name.clone(),
                    value: value.clone(),
                    sealed: false,
                });
            }
        }
    }
    if !shared.keeper.is_there() {
        return Ok(());
    }
    let turn = Turn::Calling {
        time: shared.environment.now(),
        call: call.id.clone(),
        function: callable.function.name.clone(),
        arguments: as_said(operation, arguments.clone()),
        step: false,
    };
    let state = turn.state();
    let kept = shared.keeper.keep(JournalEntry {
        turn,
        delivery: None,
        allowed: gained,
        state,
    });
    kept.await
}

async fn dispatch(
    shared: &TaskShared,
    callable: Callable<'_>,
    context: &TaskContext,
    arguments: Map<String, Value>,
    cancel: &CancellationToken,
) -> CallOutcome {
    let function = &callable.function.name;
    match &callable.granted.target {
        CapabilityTarget::Tool(task) => {
            let invocation = Invocation {
                id: format!("{}-{}", shared.id, shared.next_invocation()),
                action: callable.function.action.clone(),
                arguments: for_action(callable, arguments.clone()),
                bound: bound_names(callable),
                context: context.value().clone(),
                cancel: cancel.clone(),
            };
            let result = task.carry_out(invocation).await;
            told(function, arguments, result)
        }
        CapabilityTarget::Agent(agent) => {
            delegate(shared, function, agent, arguments, cancel).await
        }
        CapabilityTarget::Remote(remote) => {
            ask_elsewhere(function, remote, arguments, cancel).await
        }
    }
}

/// Bound parameters go only to the actions that have them.
fn for_action(callable: Callable<'_>, mut arguments: Map<String, Value>) -> Map<String, Value> {
    for (name, _) in &callable.granted.rules.bindings {
        if !has_parameter(callable, name) {
            arguments.shift_remove(name);
        }
    }
    arguments
}

/// The names of what is bound.
fn bound_names(callable: Callable<'_>) -> Vec<String> {
    let bindings = callable.granted.rules.bindings.iter();
    bindings.map(|(name, _)| name.clone()).collect()
}

/// Whether the action has a parameter, as far as the manifest can tell.
fn has_parameter(callable: Callable<'_>, name: &str) -> bool {
    let CapabilityTarget::Tool(task) = &callable.granted.target else {
        return true;
    };
    let mut actions = task.tool().actions.iter();
    let action = actions.find(|action| action.name == callable.function.action);
    action.is_none_or(|action| {
        action.execute.kind().is_described_by_backend()
            || action.parameters.properties().contains_key(name)
    })
}

fn told(
    function: &str,
    arguments: Map<String, Value>,
    result: Result<proofhouse_tools::runtime::ActionResult, ActionError>,
) -> CallOutcome {
    match result {
        Ok(outcome) if outcome.truncated => {
            let result = json!({"truncated": true, "start": outcome.value});
            CallOutcome::new(function, arguments, result, CallStatus::Successful)
        }
        Ok(outcome) => CallOutcome::new(function, arguments, outcome.value, CallStatus::Successful),
        Err(error) => {
            let called =
                CallOutcome::new(function, arguments, error.to_json(), CallStatus::Errored);
            if error.is_recoverable() {
                called
            } else {
                called.ending(
                    EndReason::UnrecoverableError,
                    &format!("`{function}` cannot be used: {error}"),
                )
            }
        }
    }
}

/// Asks another agent in a task of its own.
async fn delegate(
    shared: &TaskShared,
    function: &str,
    agent: &Arc<Agent>,
    mut arguments: Map<String, Value>,
    cancel: &CancellationToken,
) -> CallOutcome {
    let whole = arguments.clone();
    let message = match arguments.shift_remove("message") {
        Some(Value::String(message)) => Some(message),
        None if agent.parameters.properties().contains_key("message") => None,
        _ => {
            let message = "`message` must be a text";
            return CallOutcome::refused(function, whole, "bad_arguments", message);
        }
    };
    let options = TaskOptions {
        id: format!("{}-{}", shared.id, shared.next_invocation()),
        user: shared.user.clone(),
        cancel: cancel.child_token(),
        ..TaskOptions::default()
    };
    let id = options.id.clone();
    let started = shared
        .host
        .start_agent(Arc::clone(agent), options, shared.depth + 1);
    let child = match started {
        Ok(child) => child,
        Err(error) => {
            return CallOutcome::refused(function, whole, "delegation_failed", &error.to_string());
        }
    };
    let input = TaskInput {
        message,
        parameters: arguments,
        cancel: cancel.child_token(),
        ..TaskInput::default()
    };
    let _delegating = shared.delegating.one_more();
    let output = {
        let (answer, asking) = (
            child.send(input),
            forward_reviews(shared, &child, child.events()),
        );
        tokio::pin!(answer, asking);
        tokio::select! {
            biased;
            output = &mut answer => output,
            () = asking => answer.await,
        }
    };
    child.end().await;
    let failed = output
        .failed
        .or_else(|| output.ended.map(|end| end.message));
    let mut called = match failed {
        Some(message) => CallOutcome::refused(function, whole, "delegation_failed", &message),
        None => {
            let result = if output.exposes.is_empty() {
                Value::String(output.message)
            } else {
                let mut result = output.exposes;
                result.insert("message".to_owned(), output.message.into());
                Value::Object(result)
            };
            CallOutcome::new(function, whole, result, CallStatus::Successful)
        }
    };
    called.child = Some(id);
    called
}

/// Asks an agent that is elsewhere. Whatever it says is the result.
async fn ask_elsewhere(
    function: &str,
    remote: &Remote,
    arguments: Map<String, Value>,
    cancel: &CancellationToken,
) -> CallOutcome {
    let Some(Value::String(message)) = arguments.get("message") else {
        let message = "`message` must be a text";
        return CallOutcome::refused(function, arguments, "bad_arguments", message);
    };
    let asked = async {
        let card = remote.card.get_or_try_init(|| remote.agent.card(cancel));
        let card = card.await?;
        let mut talk = remote.talk.lock().await;
        let asked = remote.agent.ask(card, &mut talk, message, cancel);
        asked.await
    };
    match asked.await {
        Ok(answer) => CallOutcome::new(function, arguments, answer, CallStatus::Successful),
        Err(error) => {
            CallOutcome::refused(function, arguments, "delegation_failed", &error.to_string())
        }
    }
}

/// Questions of a child are asked by its parent, whom somebody watches. They are kept, so that they can be answered wherever
/// the answer is given.
async fn forward_reviews(shared: &TaskShared, child: &super::Task, mut asked: TaskEvents) {
    let time = || shared.environment.now();
    loop {
        match asked.recv().await {
            // Who falls behind misses events, but questions stay open until they are answered.
            Ok(TaskEvent::Review(_)) | Err(RecvError::Lagged(_)) => {}
            Ok(_) => continue,
            Err(RecvError::Closed) => return,
        }
        for review in child.reviews() {
            let (mine, decision) = shared.reviews.ask(
                review.reviewer,
                &review.function,
                &review.arguments,
                review.result.as_ref(),
            );
            // Nobody is asked any more once the child is gone.
            let _open = OpenReview(&shared.reviews, mine.id);
            let number = mine.id;
            let question = |review| {
                let time = time();
                move || Turn::Asked { time, review }
            };
            if shared.keeper.turn(question(mine.clone())).await.is_err() {
                return;
            }
            let _ = shared.events.send(TaskEvent::Review(mine));
            let Ok(decision) = decision.await else {
                continue;
            };
            let answered = || Turn::Decided {
                time: time(),
                review: number,
            };
            if shared.keeper.turn(answered).await.is_err() {
                return;
            }
            // Another agent that was asked at the same time may still wait; only the last question is known as open.
            if let Some(open) = shared.reviews.waiting().into_iter().next()
                && shared.keeper.turn(question(open)).await.is_err()
            {
                return;
            }
            child.decide(review.id, decision);
        }
    }
}

/// A question that is taken back when this is dropped before the answer.
struct OpenReview<'a>(&'a Reviews, u64);

impl Drop for OpenReview<'_> {
    fn drop(&mut self) {
        self.0.forget(self.1);
    }
}
