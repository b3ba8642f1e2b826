//! Tasks whose request may be repeated: it starts one task, however often it comes.

use proofhouse_store::StoreError;

use super::{Engine, EngineError, TaskRequest};

/// Which task a request that may be repeated is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The id of the task.
    pub task: String,
    /// Stands for all that the request says; another request for the same task is a mistake.
    pub fingerprint: String,
}

impl Engine {
    /// Starts a task, unless the same request did before, and returns its id.
    ///
    /// # Errors
    ///
    /// As [`Self::start_task`]; `Invalid` when another request started the task.
    pub async fn start_task_once(
        &self,
        mut request: TaskRequest,
        once: &Idempotency,
    ) -> Result<String, EngineError> {
        // Asked before everything else: the agent may be gone by now.
        if let Some(task) = self.started_before(once).await? {
            return Ok(task);
        }
        request.origin["request"] = once.fingerprint.clone().into();
        match self.start_task_as(once.task.clone(), request).await {
            // The same request came at the same moment.
            Err(EngineError::Conflict(why)) => {
                let started = self.started_before(once).await?;
                started.ok_or(EngineError::Conflict(why))
            }
            started => Ok(started?.id),
        }
    }

    /// The task that a request started before, if it did.
    async fn started_before(&self, once: &Idempotency) -> Result<Option<String>, EngineError> {
        match self.inner.store.task(&once.task).await {
            Ok(task) if task.origin["request"] == once.fingerprint.as_str() => Ok(Some(task.id)),
            Ok(_) => Err(EngineError::Invalid(
                "this `Idempotency-Key` began another task: repeat that request as it was, or use a new key"
                    .to_owned(),
            )),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
