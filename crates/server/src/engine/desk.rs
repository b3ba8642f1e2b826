//! The engine behind the HTTP API.

use async_trait::async_trait;
use proofhouse_agent::task::{Decision, User};
use proofhouse_store::StoreError;
use proofhouse_store::model::{StartKey, StartKind};
use proofhouse_tools::receive::webhook::Handshake as Greeting;
use serde_json::json;
use tokio::sync::broadcast;

use super::{Accepted, Begin, Engine, EngineError};
use crate::api::desk::{
    Answer, Desk, DeskError, Handshake, ManifestFile, ManifestProblem, Message, Once, Order,
    Reception, Webhook,
};

impl From<EngineError> for DeskError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NotFound(_) => Self::NotFound(error.to_string()),
            EngineError::Invalid(message) => Self::Invalid(message),
            EngineError::Conflict(message) => Self::Conflict(message),
            EngineError::Unavailable(message) => Self::Store(StoreError::Unavailable(message)),
        }
    }
}

impl Engine {
    fn is_open(&self) -> Result<(), DeskError> {
        match self.is_stopping() {
            true => Err(DeskError::Closing),
            false => Ok(()),
        }
    }

    /// The task that an order began before, if it did.
    async fn begun(&self, once: &Once) -> Result<Option<String>, DeskError> {
        match self.inner.store.task(&once.id).await {
            Ok(task) if task.origin["request"] == once.request.as_str() => Ok(Some(task.id)),
            Ok(_) => Err(DeskError::Invalid(
                "this `Idempotency-Key` began another task: repeat that request as it was, or use a new key"
                    .to_owned(),
            )),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl Desk for Engine {
    async fn create(&self, order: Order) -> Result<String, DeskError> {
        self.is_open()?;
        // Asked before everything else: the agent may be gone by now.
        if let Some(once) = &order.once
            && let Some(task) = self.begun(once).await?
        {
            return Ok(task);
        }
        let snapshot = self.manifests();
        let namespace = match order.namespace.is_empty() {
            false => order.namespace,
            // The name alone says enough where one namespace has it.
            true => {
                let mut named = snapshot
                    .catalog()
                    .agents()
                    .filter(|agent| agent.name == order.agent);
                match (named.next(), named.next()) {
                    (Some(agent), None) => agent.namespace.clone(),
                    (Some(_), Some(_)) => {
                        let message = format!(
                            "several namespaces have an agent `{}`: say which",
                            order.agent
                        );
                        return Err(DeskError::Invalid(message));
                    }
                    (None, _) => {
                        let message = format!("there is no agent `{}`", order.agent);
                        return Err(DeskError::NotFound(message));
                    }
                }
            }
        };
        let mut origin = json!({"by": "api", "user": order.user});
        if let Some(once) = &order.once {
            origin["request"] = once.request.clone().into();
        }
        let begin = Begin {
            namespace,
            agent: order.agent,
            user: User {
                id: order.user,
                email: order.email,
            },
            message: order.message,
            parameters: order.parameters,
            origin,
            unasked: false,
        };
        let Some(once) = order.once else {
            return Ok(self.begin(begin).await?.id);
        };
        match self.begin_as(once.id.clone(), begin).await {
            // The same order came at the same moment.
            Err(EngineError::Conflict(why)) => {
                let begun = self.begun(&once).await?;
                begun.ok_or(DeskError::Conflict(why))
            }
            begun => Ok(begun?.id),
        }
    }

    async fn say(&self, task: &str, message: Message) -> Result<i64, DeskError> {
        self.is_open()?;
        let said = self.message(task, message.text, message.parameters, message.key);
        Ok(said.await?.id())
    }

    async fn decide(&self, task: &str, review: u64, answer: Answer) -> Result<(), DeskError> {
        self.is_open()?;
        let decision = match answer.approve {
            true => Decision::Approve,
            false => Decision::Deny,
        };
        let about = json!({"by": answer.by, "reason": answer.reason});
        Ok(Self::decide(self, task, review, decision, about).await?)
    }

    async fn interrupt(&self, task: &str) -> Result<(), DeskError> {
        self.is_open()?;
        Ok(Self::interrupt(self, task).await?)
    }

    async fn cancel(&self, task: &str) -> Result<(), DeskError> {
        self.is_open()?;
        Ok(Self::cancel(self, task).await?)
    }

    async fn receive(&self, webhook: Webhook) -> Reception {
        let query = webhook.query.as_deref();
        let (headers, body) = (&webhook.headers, &webhook.body);
        let accepted = match webhook.is_question {
            true => match self.greet(&webhook.tool, headers, query, body) {
                Some(greeting) => Accepted::Handshake(greeting),
                None => return Reception::NoAnswer,
            },
            false => self.accept(&webhook.tool, headers, query, body).await,
        };
        match accepted {
            Accepted::Stored(ids) => Reception::Stored(ids.first().copied().unwrap_or(0)),
            Accepted::Duplicate(ids) => Reception::Duplicate(ids.first().copied().unwrap_or(0)),
            Accepted::Handshake(Greeting::Echo { body, .. }) => {
                Reception::Handshake(Handshake::Text(body))
            }
            Accepted::Handshake(Greeting::Empty) => Reception::Handshake(Handshake::Empty),
            Accepted::Refused { status, reason } => match status {
                401 => Reception::Refused(reason),
                404 | 410 => Reception::Unknown,
                413 => Reception::TooLarge(reason),
                415 => Reception::Unsupported(reason),
                _ => Reception::Malformed(reason),
            },
            Accepted::Unavailable => {
                Reception::Unavailable("the event cannot be kept now".to_owned())
            }
        }
    }

    async fn replay(&self, event: i64) -> Result<i64, DeskError> {
        self.is_open()?;
        Ok(Self::replay(self, event).await?)
    }

    fn listen(&self, task: &str) -> Option<broadcast::Receiver<String>> {
        Some(self.inner.hub.texts(task))
    }

    fn is_closing(&self) -> bool {
        self.is_stopping()
    }

    fn has_start(&self, key: &StartKey) -> bool {
        let snapshot = Self::manifests(self);
        let catalog = snapshot.catalog();
        let is_it = |namespace: &str, name: &str| (namespace, name) == (&key.namespace, &key.name);
        match key.kind {
            StartKind::Schedule => catalog
                .schedules()
                .any(|schedule| is_it(&schedule.namespace, &schedule.name)),
            StartKind::Trigger => catalog
                .triggers()
                .any(|trigger| is_it(&trigger.namespace, &trigger.name)),
        }
    }

    fn manifests(&self) -> Vec<ManifestFile> {
        let snapshot = Self::manifests(self);
        let files = snapshot.files.iter().map(|file| ManifestFile {
            path: file.path.clone(),
            stale: file.stale,
            holds: file.holds.clone(),
            problems: file
                .problems
                .iter()
                .map(|problem| ManifestProblem {
                    code: problem.code.clone(),
                    warning: problem.severity == "warning",
                    message: match &problem.help {
                        Some(help) => format!("{}; {help}", problem.message),
                        None => problem.message.clone(),
                    },
                    line: problem.line,
                    column: problem.column,
                })
                .collect(),
        });
        files.collect()
    }
}
