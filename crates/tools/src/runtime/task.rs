//! One tool in one task: initialized once at the first call, torn down once at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::{
    ActionError, ActionRuntime, Call, Environment, Failure, Limits, Outcome, Runtimes, State,
};
use crate::manifest::{Execute, Tool};

/// A tool for the length of one task. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ToolTask {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    tool: Arc<Tool>,
    environment: Environment,
    runtimes: Runtimes,
    limits: Limits,
    /// One state per backend the tool uses.
    slots: BTreeMap<&'static str, Mutex<Slot>>,
}

#[derive(Debug)]
enum Slot {
    Empty,
    Ready(Arc<State>),
    /// It could not be initialized, and never will.
    Failed(ActionError),
    Closed,
}

impl ToolTask {
    /// Begins; nothing is done before the first call.
    #[must_use]
    pub fn new(
        tool: Arc<Tool>,
        environment: Environment,
        runtimes: Runtimes,
        limits: Limits,
    ) -> Self {
        let slots = tool
            .actions
            .iter()
            .map(|action| (action.execute.key(), Mutex::new(Slot::Empty)))
            .collect();
        Self {
            inner: Arc::new(Inner {
                tool,
                environment,
                runtimes,
                limits,
                slots,
            }),
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
    ) -> Result<Outcome, ActionError> {
        let secrets = self.inner.environment.secrets(&self.inner.tool);
        let invoked = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(self.cancelled(action)),
            result = self.carry_out(action, arguments, context, cancel.clone()) => result,
        };
        match invoked {
            Ok(value) => Ok(Outcome::new(
                value,
                &secrets,
                self.inner.limits.max_result_bytes,
            )),
            Err(error) => Err(error.redacted(&secrets)),
        }
    }

    /// The error of a cancelled call. What had been sent by then is not known here.
    fn cancelled(&self, action: &str) -> ActionError {
        let mut error = ActionError::new(Failure::Cancelled, "the call was cancelled");
        let mut actions = self.inner.tool.actions.iter();
        error.outcome_unknown = actions
            .find(|known| known.name == action)
            .is_some_and(|known| !may_be_repeated(&known.execute));
        error
    }

    async fn carry_out(
        &self,
        action: &str,
        arguments: Map<String, Value>,
        context: Value,
        cancel: CancellationToken,
    ) -> Result<Value, ActionError> {
        let tool = &self.inner.tool;
        let found = tool
            .actions
            .iter()
            .enumerate()
            .find(|(_, known)| known.name == action);
        let Some((position, known)) = found else {
            let message = format!("`{}` has no action `{action}`", tool.name);
            return Err(ActionError::new(Failure::Arguments, message));
        };
        let parameters = known.parameters.complete(arguments);
        let parameters = parameters
            .map_err(|problems| ActionError::new(Failure::Arguments, problems.join("; ")))?;
        let (key, runtime) = self.inner.runtimes.find(&known.execute)?;
        let call = Call {
            tool: Arc::clone(tool),
            action: position,
            parameters,
            context,
            cancel,
        };
        let state = self.state(key, &runtime, &call).await?;
        runtime.invoke(&state, &call, &self.inner.environment).await
    }

    /// The state of a backend. Calls that come while it is being made wait for it.
    async fn state(
        &self,
        key: &'static str,
        runtime: &Arc<dyn ActionRuntime>,
        call: &Call,
    ) -> Result<Arc<State>, ActionError> {
        if let Some(slot) = self.inner.slots.get(key)
            && let Slot::Ready(state) = &*slot.lock().await
        {
            return Ok(Arc::clone(state));
        }
        // In a task of its own: a caller that is cancelled must not lose a session that was made.
        let (inner, runtime, call) = (Arc::clone(&self.inner), Arc::clone(runtime), call.clone());
        let making = tokio::spawn(async move {
            let Some(slot) = inner.slots.get(key) else {
                return Err(ActionError::new(
                    Failure::NoRuntime,
                    format!("`{key}` is not used"),
                ));
            };
            let mut slot = slot.lock().await;
            match &*slot {
                Slot::Ready(state) => Ok(Arc::clone(state)),
                Slot::Failed(error) => Err(error.clone()),
                Slot::Closed => Err(ActionError::new(Failure::Ended, "the task has ended")),
                Slot::Empty => match runtime.initialize(&call, &inner.environment).await {
                    Ok(state) => {
                        let state = Arc::new(state);
                        *slot = Slot::Ready(Arc::clone(&state));
                        Ok(state)
                    }
                    Err(error) => {
                        if !error.is_recoverable() {
                            *slot = Slot::Failed(error.clone());
                        }
                        Err(error)
                    }
                },
            }
        });
        let stopped = |_| ActionError::new(Failure::Ended, "the runtime stopped");
        making.await.map_err(stopped)?
    }

    /// Ends the task: tears down what was initialized, once, also after failures. Later calls are
    /// refused.
    ///
    /// Every backend is torn down, whatever becomes of the others; the errors are returned.
    pub async fn teardown(&self) -> Vec<ActionError> {
        let secrets = self.inner.environment.secrets(&self.inner.tool);
        let mut errors = Vec::new();
        for (key, slot) in &self.inner.slots {
            let old = std::mem::replace(&mut *slot.lock().await, Slot::Closed);
            let runtime = self
                .inner
                .runtimes
                .table
                .iter()
                .find(|(known, _)| known == key);
            if let (Slot::Ready(state), Some((_, runtime))) = (old, runtime) {
                let ended = runtime.teardown(&state, &self.inner.environment).await;
                errors.extend(ended.err().map(|error| error.redacted(&secrets)));
            }
        }
        errors
    }
}

/// Whether carrying out an action twice has the effect of doing it once.
fn may_be_repeated(execute: &Execute) -> bool {
    match execute {
        Execute::Cel(_) => true,
        Execute::StatelessHttp(call) => call
            .method
            .as_ref()
            .is_some_and(|method| matches!(method.source(), "GET" | "PUT" | "DELETE")),
        _ => false,
    }
}
