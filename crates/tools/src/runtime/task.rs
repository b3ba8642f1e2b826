//! One tool in one task: initialized once at the first call, torn down once at the end.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use proofhouse_source::did_you_mean;
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, RwLock};
use tracing::Instrument;
use tracing::field::Empty;

use super::preview::{preview, preview_by};
use super::{
    ActionCall, ActionError, ActionFailure, ActionResult, ActionRuntime, ActionSession, CallEvent,
    Environment, Observer, Runtimes, ToolLimits,
};
use proofhouse_manifest::interpolate::Secrets;
use proofhouse_manifest::{ParameterSchema, Tool, ToolAction};

/// A tool for the length of one task. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ToolTask {
    inner: Arc<ToolTaskShared>,
}

struct ToolTaskShared {
    tool: Arc<Tool>,
    environment: Environment,
    runtimes: Runtimes,
    limits: ToolLimits,
    /// Those among the settings of the tool.
    secrets: Secrets,
    observer: Option<Arc<dyn Observer>>,
    /// Names the task in the names of its invocations.
    id: String,
    count: AtomicU64,
    backends: Vec<SharedBackend>,
    /// Held for reading by every call, for writing by who tears down.
    calls: RwLock<()>,
    ending: CancellationToken,
}

/// Something that is initialized once.
struct SharedBackend {
    /// What it is initialized for: the first action that uses it, or a shared block.
    block: Arc<ToolAction>,
    /// Whether it is a shared block that derives actions.
    derives: bool,
    slot: Mutex<BackendSlot>,
}

enum BackendSlot {
    Empty,
    Ready(Arc<dyn ActionSession>),
    /// It could not be initialized, and never will.
    Failed(ActionError),
    Closed,
}

/// A call as its caller puts it.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// Names it; the task finds a name if this is empty. A backend that finds what an earlier
    /// invocation of the same name has begun goes on with it.
    pub id: String,
    /// The action.
    pub action: String,
    /// What it is called with.
    pub arguments: Map<String, Value>,
    /// Arguments that go only to an action that has them: those that are bound, and not what a model says.
    pub bound: Vec<String>,
    /// The task's context at this moment.
    pub context: Value,
    /// Ends it early.
    pub cancel: CancellationToken,
}

/// An action that can be called, and what carries it out.
struct CallableAction {
    action: Arc<ToolAction>,
    runtime: Arc<dyn ActionRuntime>,
    backend: usize,
}

impl ToolTask {
    /// Begins; nothing is done before the first call.
    #[must_use]
    pub fn new(
        tool: Arc<Tool>,
        environment: Environment,
        runtimes: Runtimes,
        limits: ToolLimits,
    ) -> Self {
        let mut backends: Vec<SharedBackend> = Vec::new();
        for action in &tool.actions {
            if !backends
                .iter()
                .any(|backend| backend.block.execute.shares_state(&action.execute))
            {
                backends.push(SharedBackend::new(Arc::clone(action), false));
            }
        }
        for execute in tool.deriving() {
            let block = ToolAction {
                name: String::new(),
                description: String::new(),
                parameters: ParameterSchema::default(),
                execute,
            };
            backends.push(SharedBackend::new(Arc::new(block), true));
        }
        let secrets = environment.secrets(&tool);
        Self {
            inner: Arc::new(ToolTaskShared {
                tool,
                secrets,
                environment,
                runtimes,
                limits,
                observer: None,
                id: format!("{:016x}", RandomState::new().build_hasher().finish()),
                count: AtomicU64::new(0),
                backends,
                calls: RwLock::new(()),
                ending: CancellationToken::new(),
            }),
        }
    }

    /// The same, with someone who is told of every call. To be said before the first one.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.observer = Some(observer);
        }
        self
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        &self.inner.tool
    }

    /// The actions that can be called, with the schemas of their parameters: those of the manifest, and
    /// those that its shared blocks derive. Backends that are asked for it are initialized.
    ///
    /// # Errors
    ///
    /// Returns why a backend cannot tell.
    pub async fn actions(
        &self,
        cancel: CancellationToken,
    ) -> Result<Vec<Arc<ToolAction>>, ActionError> {
        let _in_flight = self.inner.calls.read().await;
        let secrets = self.inner.secrets.clone();
        let ending = self.inner.ending.clone();
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ActionError::new(ActionFailure::Cancelled, "cancelled")),
            () = ending.cancelled() => Err(ended()),
            actions = self.all_actions(&cancel) => actions.map_err(|error| error.redacted(&secrets)),
        }
    }

    async fn all_actions(
        &self,
        cancel: &CancellationToken,
    ) -> Result<Vec<Arc<ToolAction>>, ActionError> {
        let mut actions = Vec::new();
        for declared in &self.inner.tool.actions {
            let found = self.declared(declared, &Value::Null, cancel).await?;
            actions.push(found.action);
        }
        for (position, backend) in self.inner.backends.iter().enumerate() {
            if !backend.derives {
                continue;
            }
            let runtime = self.inner.runtimes.find(&backend.block.execute)?;
            let session = self
                .session(position, &runtime, &Value::Null, cancel)
                .await?;
            for name in session.derived() {
                actions.extend(session.action(&name, None)?);
            }
        }
        Ok(actions)
    }

    /// The actions of these names, also those that are only searched for. Names of nothing are left out.
    ///
    /// # Errors
    ///
    /// Returns why a backend cannot tell.
    pub async fn actions_named(
        &self,
        names: &[String],
        cancel: CancellationToken,
    ) -> Result<Vec<Arc<ToolAction>>, ActionError> {
        let _in_flight = self.inner.calls.read().await;
        let secrets = self.inner.secrets.clone();
        let mut found = Vec::new();
        for name in names {
            let action = self.find(name, &Value::Null, &cancel).await;
            match action {
                Ok(action) => found.push(action.action),
                Err(error) if error.failure == ActionFailure::Arguments => {}
                Err(error) => return Err(error.redacted(&secrets)),
            }
        }
        Ok(found)
    }

    /// Why backends that describe their actions themselves have none, if so.
    ///
    /// # Errors
    ///
    /// Returns why a backend cannot tell.
    pub async fn why_none(&self, cancel: CancellationToken) -> Result<Vec<String>, ActionError> {
        let _in_flight = self.inner.calls.read().await;
        let mut reasons = Vec::new();
        for (position, backend) in self.inner.backends.iter().enumerate() {
            if !backend.derives {
                continue;
            }
            let runtime = self.inner.runtimes.find(&backend.block.execute)?;
            let session = self
                .session(position, &runtime, &Value::Null, &cancel)
                .await?;
            if session.derived().is_empty() {
                let reason = session.why_none();
                reasons.extend(reason.map(|reason| self.inner.secrets.redact(&reason)));
            }
        }
        Ok(reasons)
    }

    /// What an invocation would send, with secrets masked. Unlike [`preview`](Self::preview) it asks the backends that
    /// describe their actions and can be asked without effect: an OpenAPI description is fetched, no operation is called.
    ///
    /// # Errors
    ///
    /// Returns why it would come to nothing before anything is sent.
    pub async fn preview_request(&self, invocation: Invocation) -> Result<Value, ActionError> {
        let inner = &self.inner;
        let mut declared = inner.tool.actions.iter();
        let declared = declared.find(|known| known.name == invocation.action);
        let execute = match declared {
            Some(declared) => Some(&declared.execute),
            None => {
                let mut derived = inner.backends.iter().filter(|backend| backend.derives);
                derived.next().map(|backend| &backend.block.execute)
            }
        };
        let is_described = match execute {
            Some(execute) => inner.runtimes.find(execute)?.previews_by_session(),
            None => false,
        };
        if !is_described {
            return self.preview(invocation);
        }
        let _in_flight = inner.calls.read().await;
        let secrets = inner.secrets.clone();
        let shown = async {
            let cancel = invocation.cancel.clone();
            let found = self
                .find(&invocation.action, &invocation.context, &cancel)
                .await?;
            let parameters = complete(&found.action, invocation.arguments)?;
            let call = ActionCall {
                invocation: invocation.id,
                tool: Arc::clone(&inner.tool),
                action: found.action,
                parameters,
                context: invocation.context,
                secrets: inner.secrets.clone(),
                cancel,
            };
            let session = self
                .session_for(found.backend, &found.runtime, &call)
                .await?;
            preview_by(
                |preview| session.preview(preview),
                &call,
                &inner.environment,
            )
        };
        match shown.await {
            Ok(shown) => Ok(secrets.redact_value(shown)),
            Err(error) => Err(error.redacted(&secrets)),
        }
    }

    /// Invokes an action.
    ///
    /// Neither the result nor the error holds a secret of the task.
    ///
    /// # Errors
    ///
    /// Returns why it came to nothing, and what becomes of the task.
    pub async fn invoke(
        &self,
        action: &str,
        arguments: Map<String, Value>,
        context: Value,
        cancel: CancellationToken,
    ) -> Result<ActionResult, ActionError> {
        let invocation = Invocation {
            id: String::new(),
            action: action.to_owned(),
            arguments,
            bound: Vec::new(),
            context,
            cancel,
        };
        self.carry_out(invocation).await
    }

    /// What an invocation would do, with secrets masked. Nothing is initialized or sent; so the arguments
    /// of actions that only a description or a server knows in full are not checked.
    ///
    /// # Errors
    ///
    /// Returns why it would come to nothing before anything is sent.
    pub fn preview(&self, invocation: Invocation) -> Result<Value, ActionError> {
        let inner = &self.inner;
        let secrets = inner.secrets.clone();
        let name = &invocation.action;
        let mut declared = inner.tool.actions.iter();
        let action = match declared.find(|known| known.name == *name) {
            Some(declared) => Arc::clone(declared),
            None => {
                let mut blocks = inner.backends.iter();
                let block = blocks.find(|backend| backend.derives).ok_or_else(|| {
                    let known: Vec<String> = inner.tool.actions.iter().map(named).collect();
                    no_action(&inner.tool.name, name, &known)
                })?;
                Arc::new(ToolAction {
                    name: name.clone(),
                    ..ToolAction::clone(&block.block)
                })
            }
        };
        let runtime = inner.runtimes.find(&action.execute)?;
        let parameters = if runtime.completes_actions() {
            invocation.arguments
        } else {
            complete(&action, invocation.arguments).map_err(|error| error.redacted(&secrets))?
        };
        let call = ActionCall {
            invocation: invocation.id,
            tool: Arc::clone(&inner.tool),
            action,
            parameters,
            context: invocation.context,
            secrets: self.inner.secrets.clone(),
            cancel: invocation.cancel,
        };
        let shown = preview(&*runtime, &call, &inner.environment);
        match shown {
            Ok(shown) => Ok(secrets.redact_value(shown)),
            Err(error) => Err(error.redacted(&secrets)),
        }
    }

    /// Carries out an invocation, as [`ToolTask::invoke`] does.
    ///
    /// # Errors
    ///
    /// Returns why it came to nothing, and what becomes of the task.
    pub async fn carry_out(&self, mut invocation: Invocation) -> Result<ActionResult, ActionError> {
        let inner = &self.inner;
        if invocation.id.is_empty() {
            let number = inner.count.fetch_add(1, Ordering::Relaxed);
            invocation.id = format!("{}-{number}", inner.id);
        }
        let secrets = inner.secrets.clone();
        let (id, action) = (invocation.id.clone(), invocation.action.clone());
        self.tell_called(&invocation, &secrets);
        let started = Instant::now();
        // As the conventions of OpenTelemetry for generative AI name it.
        let span = tracing::info_span!(
            "tool.call", otel.name = %format_args!("execute_tool {action}"), tool = %inner.tool.name, action = %action,
            invocation = %id, gen_ai.operation.name = "execute_tool", gen_ai.tool.name = %action,
            gen_ai.tool.type = "function", gen_ai.tool.call.id = %id, "error.type" = Empty, otel.status_code = Empty
        );
        let invoked = self
            .invoke_unless_stopped(invocation)
            .instrument(span.clone())
            .await;
        if let Err(error) = &invoked {
            span.record("error.type", error.failure.word());
            span.record("otel.status_code", "ERROR");
        }
        let result = match invoked {
            Ok(value) => Ok(ActionResult::new(
                value,
                &secrets,
                inner.limits.max_result_bytes,
            )),
            Err(error) => Err(error.redacted(&secrets)),
        };
        if let Some(observer) = &inner.observer {
            observer.observe(CallEvent::Returned {
                invocation: &id,
                action: &action,
                result: result.as_ref(),
                took: started.elapsed(),
            });
        }
        result
    }

    fn tell_called(&self, invocation: &Invocation, secrets: &Secrets) {
        let Some(observer) = &self.inner.observer else {
            return;
        };
        // A model that was told a secret by someone else may hand it on.
        let arguments = secrets.redact_value(Value::Object(invocation.arguments.clone()));
        observer.observe(CallEvent::Called {
            invocation: &invocation.id,
            tool: (&self.inner.tool.namespace, &self.inner.tool.name),
            action: &invocation.action,
            arguments: arguments.as_object().unwrap_or(&Map::new()),
        });
    }

    /// Invokes; ends early when the call is cancelled or the task ends.
    async fn invoke_unless_stopped(&self, invocation: Invocation) -> Result<Value, ActionError> {
        let inner = &self.inner;
        let _in_flight = inner.calls.read().await;
        if inner.ending.is_cancelled() {
            return Err(ended());
        }
        let stop = invocation.cancel.child_token();
        let name = invocation.action.clone();
        let stopped = async {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = inner.ending.cancelled() => stop.cancel(),
            }
            if self.cancels_itself(&name) {
                tokio::time::sleep(inner.limits.cancel).await;
            }
        };
        tokio::select! {
            biased;
            () = stopped => Err(self.cancelled(&name)),
            result = self.invoke_found(invocation, stop.clone()) => result,
        }
    }

    fn cancels_itself(&self, action: &str) -> bool {
        let inner = &self.inner;
        let mut declared = inner.tool.actions.iter();
        match declared.find(|known| known.name == action) {
            Some(action) => inner.runtimes.find(&action.execute),
            None => match inner.backends.iter().find(|backend| backend.derives) {
                Some(backend) => inner.runtimes.find(&backend.block.execute),
                None => return false,
            },
        }
        .is_ok_and(|runtime| runtime.cancels_itself())
    }

    /// The error of a cancelled call. What had been sent by then is not known here.
    fn cancelled(&self, action: &str) -> ActionError {
        let mut error = ActionError::new(ActionFailure::Cancelled, "the call was cancelled");
        let mut actions = self.inner.tool.actions.iter();
        error.outcome_unknown = actions
            .find(|known| known.name == action)
            .is_none_or(|known| !known.execute.may_be_repeated());
        error
    }

    async fn invoke_found(
        &self,
        invocation: Invocation,
        cancel: CancellationToken,
    ) -> Result<Value, ActionError> {
        let inner = &self.inner;
        let found = self
            .find(&invocation.action, &invocation.context, &cancel)
            .await?;
        let parameters = complete(
            &found.action,
            without_foreign(&found.action, invocation.arguments, &invocation.bound),
        )?;
        let call = ActionCall {
            invocation: invocation.id,
            tool: Arc::clone(&inner.tool),
            action: found.action,
            parameters,
            context: invocation.context,
            secrets: self.inner.secrets.clone(),
            cancel,
        };
        let session = self
            .session_for(found.backend, &found.runtime, &call)
            .await?;
        let span = tracing::info_span!("tool.invoke", runtime = call.action.execute.key());
        let invoked = session.invoke(&call, &inner.environment);
        invoked.instrument(span).await
    }

    /// Finds an action of the manifest, or one that a shared block derives.
    async fn find(
        &self,
        name: &str,
        context: &Value,
        cancel: &CancellationToken,
    ) -> Result<CallableAction, ActionError> {
        let inner = &self.inner;
        let mut known: Vec<String> = Vec::new();
        for declared in &inner.tool.actions {
            if declared.name == name {
                return self.declared(declared, context, cancel).await;
            }
            known.push(declared.name.clone());
        }
        for (backend, of) in inner.backends.iter().enumerate() {
            if !of.derives {
                continue;
            }
            let runtime = inner.runtimes.find(&of.block.execute)?;
            let session = self.session(backend, &runtime, context, cancel).await?;
            if let Some(action) = session.action(name, None)? {
                return Ok(CallableAction {
                    action,
                    runtime,
                    backend,
                });
            }
            known.extend(session.derived());
        }
        Err(no_action(&inner.tool.name, name, &known))
    }

    async fn declared(
        &self,
        declared: &Arc<ToolAction>,
        context: &Value,
        cancel: &CancellationToken,
    ) -> Result<CallableAction, ActionError> {
        let inner = &self.inner;
        let runtime = inner.runtimes.find(&declared.execute)?;
        let position = inner
            .backends
            .iter()
            .position(|backend| backend.block.execute.shares_state(&declared.execute));
        let backend = position.ok_or_else(|| {
            ActionError::new(
                ActionFailure::NoRuntime,
                "the action has no backend in this task",
            )
        })?;
        let mut action = Arc::clone(declared);
        if runtime.completes_actions() {
            let session = self.session(backend, &runtime, context, cancel).await?;
            if let Some(complete) = session.action(&declared.name, Some(declared))? {
                action = complete;
            }
        }
        Ok(CallableAction {
            action,
            runtime,
            backend,
        })
    }

    /// The session of a backend, initialized without parameters if it was not yet.
    async fn session(
        &self,
        backend: usize,
        runtime: &Arc<dyn ActionRuntime>,
        context: &Value,
        cancel: &CancellationToken,
    ) -> Result<Arc<dyn ActionSession>, ActionError> {
        let call = ActionCall {
            invocation: format!("{}-initialize", self.inner.id),
            tool: Arc::clone(&self.inner.tool),
            action: Arc::clone(&self.inner.backends[backend].block),
            parameters: Map::new(),
            context: context.clone(),
            secrets: self.inner.secrets.clone(),
            cancel: cancel.clone(),
        };
        self.session_for(backend, runtime, &call).await
    }

    /// The session of a backend. Calls that come while it is being made wait for it.
    async fn session_for(
        &self,
        backend: usize,
        runtime: &Arc<dyn ActionRuntime>,
        call: &ActionCall,
    ) -> Result<Arc<dyn ActionSession>, ActionError> {
        if let BackendSlot::Ready(session) = &*self.inner.backends[backend].slot.lock().await {
            return Ok(Arc::clone(session));
        }
        // In a task of its own: a caller that is cancelled must not lose a session that was made.
        let (inner, runtime, call) = (Arc::clone(&self.inner), Arc::clone(runtime), call.clone());
        let span = tracing::info_span!("tool.initialize", runtime = call.action.execute.key());
        let making = async move {
            let mut slot = inner.backends[backend].slot.lock().await;
            match &*slot {
                BackendSlot::Ready(session) => Ok(Arc::clone(session)),
                BackendSlot::Failed(error) => Err(error.clone()),
                BackendSlot::Closed => Err(ended()),
                BackendSlot::Empty => match runtime.initialize(&call, &inner.environment).await {
                    Ok(session) => {
                        *slot = BackendSlot::Ready(Arc::clone(&session));
                        Ok(session)
                    }
                    Err(error) => {
                        if error.is_final() {
                            *slot = BackendSlot::Failed(error.clone());
                        }
                        Err(error)
                    }
                },
            }
        };
        let stopped = |_| ActionError::new(ActionFailure::Ended, "the runtime stopped");
        tokio::spawn(making.instrument(span))
            .await
            .map_err(stopped)?
    }

    /// Ends the task: calls under way are cancelled, then what was initialized is torn down, once, also
    /// after failures. Later calls are refused.
    ///
    /// Every backend is torn down, whatever becomes of the others; the errors are returned.
    pub async fn teardown(&self) -> Vec<ActionError> {
        self.inner.ending.cancel();
        let _alone = self.inner.calls.write().await;
        self.leave(|| BackendSlot::Closed).await
    }

    /// Whether it has something open that a teardown would end, such as a session or a server.
    #[must_use]
    pub fn holds_state(&self) -> bool {
        self.inner
            .backends
            .iter()
            .any(|backend| match backend.slot.try_lock() {
                Ok(slot) => matches!(&*slot, BackendSlot::Ready(session) if session.holds_state()),
                // It is being made.
                Err(_) => true,
            })
    }

    /// Whether all backends that say what there is are initialized, so that [`actions`](Self::actions) waits for nobody.
    #[must_use]
    pub fn can_list(&self) -> bool {
        let asked = |backend: &&SharedBackend| {
            let runtime = self.inner.runtimes.find(&backend.block.execute);
            backend.derives || runtime.is_ok_and(|runtime| runtime.completes_actions())
        };
        let mut backends = self.inner.backends.iter().filter(asked);
        backends.all(|backend| {
            let slot = backend.slot.try_lock();
            slot.is_ok_and(|slot| matches!(&*slot, BackendSlot::Ready(_)))
        })
    }

    /// Tears down what was initialized while the task is idle; the next call initializes again.
    /// `None` when a call is under way, in which case nothing is done.
    pub async fn evict(&self) -> Option<Vec<ActionError>> {
        let _alone = self.inner.calls.try_write().ok()?;
        if self.inner.ending.is_cancelled() {
            return Some(Vec::new());
        }
        Some(self.leave(|| BackendSlot::Empty).await)
    }

    async fn leave(&self, afterwards: impl Fn() -> BackendSlot) -> Vec<ActionError> {
        let inner = &self.inner;
        let secrets = inner.secrets.clone();
        let mut errors = Vec::new();
        for backend in &inner.backends {
            let old = std::mem::replace(&mut *backend.slot.lock().await, afterwards());
            if let BackendSlot::Ready(session) = old {
                let span =
                    tracing::info_span!("tool.teardown", runtime = backend.block.execute.key());
                let ended = session.teardown(&inner.environment);
                let ended = ended.instrument(span).await;
                errors.extend(ended.err().map(|error| error.redacted(&secrets)));
            }
        }
        errors
    }
}

impl SharedBackend {
    fn new(block: Arc<ToolAction>, derives: bool) -> Self {
        Self {
            block,
            derives,
            slot: Mutex::new(BackendSlot::Empty),
        }
    }
}

fn named(action: &Arc<ToolAction>) -> String {
    action.name.clone()
}

/// The arguments without those among the bound ones that the action does not have.
fn without_foreign(
    action: &ToolAction,
    mut arguments: Map<String, Value>,
    bound: &[String],
) -> Map<String, Value> {
    let own = action.parameters.properties();
    arguments.retain(|name, _| own.contains_key(name) || !bound.contains(name));
    arguments
}

/// The parameters of a call, complete and checked.
fn complete(
    action: &ToolAction,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, ActionError> {
    let parameters = action.parameters.complete(arguments);
    parameters.map_err(|problems| ActionError::new(ActionFailure::Arguments, problems.join("; ")))
}

fn no_action(tool: &str, name: &str, known: &[String]) -> ActionError {
    let mut message = format!("`{tool}` has no action `{name}`");
    if let Some(near) = did_you_mean(name, known.iter().map(String::as_str)) {
        message.push_str(&format!("; did you mean `{near}`?"));
    }
    ActionError::new(ActionFailure::Arguments, message)
}

fn ended() -> ActionError {
    ActionError::new(ActionFailure::Ended, "the task has ended")
}

impl std::fmt::Debug for ToolTaskShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolTask")
            .field("tool", &self.tool.name)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
