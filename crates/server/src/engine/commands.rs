//! What people want of a task: kept in a queue of its own, so that whichever process owns the task obeys, whatever else
//! waits for the task.

use proofhouse_agent::task::Decision;
use proofhouse_store::model::{DeliveryRecord, DirectDelivery, ReceiveOutcome, TaskState};
use proofhouse_store::{Result, StoreError};
use proofhouse_wire::trace::TraceParent;
use serde_json::{Map, Value, json};

use super::{Engine, EngineError, EngineShared, PutBackFault, kept_trace};

/// Commands that are looked at, oldest first. Wanting the same twice is wanting it once, so there are hardly ever more.
pub(super) const MAX_COMMANDS: usize = 64;

/// Something that is not an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Control {
    Decide { review: u64, decision: Decision },
    Cancel,
    Interrupt,
    Resume,
}

impl Control {
    /// What a command wants, and its id, if it can be understood.
    pub(super) fn of(delivery: &DeliveryRecord) -> Option<(i64, Self)> {
        let control = match delivery.name.as_str() {
            "control.approve" | "control.deny" => Self::Decide {
                review: delivery.body.get("review").and_then(Value::as_u64)?,
                decision: match delivery.name.as_str() {
                    "control.approve" => Decision::Approve,
                    _ => Decision::Deny,
                },
            },
            "control.cancel" => Self::Cancel,
            "control.interrupt" => Self::Interrupt,
            "control.resume" => Self::Resume,
            _ => return None,
        };
        Some((delivery.id, control))
    }
}

/// What people want of a task, in the order it is obeyed.
pub(super) async fn pending_controls(
    inner: &EngineShared,
    id: &str,
) -> Result<Vec<(i64, Control)>> {
    if inner.options.put_back == Some(PutBackFault::CommandsWaitInLine)
        && inner.store.pending(id, MAX_COMMANDS).await?.len() >= MAX_COMMANDS
    {
        return Ok(Vec::new());
    }
    let pending = inner.store.commands(id, MAX_COMMANDS).await?;
    Ok(pending.iter().filter_map(Control::of).collect())
}

impl Engine {
    /// Says something to a task. It is kept when this returns; the answer comes as turns. With a key, saying it
    /// again is saying it once.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no such task, when it has ended, when something else was said with the key, or when
    /// it cannot be kept.
    pub async fn message(
        &self,
        task: &str,
        message: Option<String>,
        parameters: Map<String, Value>,
        key: Option<String>,
    ) -> Result<ReceiveOutcome, EngineError> {
        self.message_by(task, message, parameters, key, None).await
    }

    /// The same; who says it is kept with it.
    ///
    /// # Errors
    ///
    /// As [`Self::message`].
    pub async fn message_by(
        &self,
        task: &str,
        message: Option<String>,
        parameters: Map<String, Value>,
        key: Option<String>,
        by: Option<&str>,
    ) -> Result<ReceiveOutcome, EngineError> {
        let mut body = json!({"message": message, "parameters": parameters});
        if let Some(by) = by {
            body["by"] = by.into();
        }
        kept_trace::note(&mut body, TraceParent::current());
        // Other deliveries have keys of ours, which nobody may take.
        let input = DirectDelivery {
            key: key.map(|key| format!("said:{key}")),
            // Whoever repeats a request repeats it in another trace.
            same: ["message", "parameters", "by"].map(str::to_owned).into(),
            ..direct("message", body, None)
        };
        match self.inner.store.deliver(task, input).await {
            Err(StoreError::KeyTaken(_)) => Err(EngineError::Invalid(
                "this `Idempotency-Key` was used to say something else: repeat that request as it was, or use a new key"
                    .to_owned(),
            )),
            received => self.kept(task, received),
        }
    }

    /// Answers a question of a task; its number is in the detail of the task's state. What there is to say
    /// about the answer, such as who gave it, is kept with it.
    ///
    /// # Errors
    ///
    /// Returns an error when the task asks no such question, or when the answer cannot be kept.
    pub async fn decide(
        &self,
        task: &str,
        review: u64,
        decision: Decision,
        about: Value,
    ) -> Result<(), EngineError> {
        let row = self.inner.store.task(task).await?;
        let asked = row.detail.as_ref().map(|detail| &detail["review"]["id"]);
        let is_asked = asked.and_then(Value::as_u64) == Some(review);
        if row.state != TaskState::Waiting || !is_asked {
            let message = format!("task `{task}` asks no question {review}");
            return Err(EngineError::Conflict(message));
        }
        let name = match decision {
            Decision::Approve => "control.approve",
            Decision::Deny => "control.deny",
        };
        // A question has one answer, whoever repeats it.
        let key = format!("review-{review}-{}", row.next_seq);
        let body = json!({"review": review, "about": about});
        let answer = direct(name, body, Some(key));
        match self.inner.store.command(task, answer).await {
            Err(StoreError::KeyTaken(_)) => Err(EngineError::Conflict(format!(
                "question {review} of task `{task}` was answered otherwise"
            ))),
            received => self.kept(task, received).map(drop),
        }
    }

    /// Ends a task, whatever it is doing.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no such task, when it has ended, or when it cannot be kept.
    pub async fn cancel(&self, task: &str) -> Result<(), EngineError> {
        self.cancel_by(task, Value::Null).await
    }

    /// The same; what there is to say about it, such as who wants it and why, is kept with it.
    ///
    /// # Errors
    ///
    /// As [`Self::cancel`].
    pub async fn cancel_by(&self, task: &str, about: Value) -> Result<(), EngineError> {
        let body = json!({"about": about});
        self.tell(task, "control.cancel", body).await
    }

    /// Stops what a task is doing. It gets no events until it goes on.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no such task, when it has ended, or when it cannot be kept.
    pub async fn interrupt(&self, task: &str) -> Result<(), EngineError> {
        self.interrupt_by(task, Value::Null).await
    }

    /// The same; what there is to say about it, such as who wants it and why, is kept with it.
    ///
    /// # Errors
    ///
    /// As [`Self::interrupt`].
    pub async fn interrupt_by(&self, task: &str, about: Value) -> Result<(), EngineError> {
        let body = json!({"about": about});
        self.tell(task, "control.interrupt", body).await
    }

    /// Lets an interrupted task go on.
    ///
    /// # Errors
    ///
    /// Returns an error when the task is not interrupted, or when it cannot be kept.
    pub async fn resume(&self, task: &str) -> Result<(), EngineError> {
        let row = self.inner.store.task(task).await?;
        if row.state != TaskState::Interrupted {
            let message = format!("task `{task}` is not interrupted");
            return Err(EngineError::Conflict(message));
        }
        self.tell(task, "control.resume", json!({})).await
    }

    /// Keeps a command to a task.
    async fn tell(&self, task: &str, name: &str, body: Value) -> Result<(), EngineError> {
        let command = direct(name, body, None);
        let received = self.inner.store.command(task, command).await;
        self.kept(task, received).map(drop)
    }

    /// Tells whoever works on a task that something was kept for it.
    fn kept(
        &self,
        task: &str,
        received: Result<ReceiveOutcome>,
    ) -> Result<ReceiveOutcome, EngineError> {
        let received = received.map_err(|error| match error {
            StoreError::Conflict(_) => EngineError::Conflict(format!("task `{task}` has ended")),
            error => error.into(),
        })?;
        if !self.inner.working.notify(task) {
            self.inner.wake_deliverer.notify_one();
        }
        Ok(received)
    }
}

fn direct(name: &str, body: Value, key: Option<String>) -> DirectDelivery {
    DirectDelivery {
        key,
        name: name.to_owned(),
        body,
        same: Vec::new(),
    }
}
