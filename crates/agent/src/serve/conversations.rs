//! The conversations that clients have with the agent: one task each, bounded in number, ended when they
//! are idle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use proofhouse_wire::sync::lock;
use tokio::task::JoinSet;

use crate::task::Task;

/// One conversation. It is in use as long as somebody beside the table holds it.
#[derive(Debug)]
pub(super) struct Conversation<S> {
    pub(super) id: String,
    pub(super) task: Task,
    pub(super) state: Mutex<S>,
    /// Held while an input is answered: a task answers one at a time.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    touched: Mutex<Instant>,
}

impl<S> Conversation<S> {
    pub(super) fn state(&self) -> MutexGuard<'_, S> {
        lock(&self.state)
    }
}

/// All conversations of one protocol.
#[derive(Debug)]
pub(super) struct Conversations<S> {
    table: Mutex<HashMap<String, Arc<Conversation<S>>>>,
    ending: Mutex<JoinSet<()>>,
    most: usize,
    idle: Duration,
    close: Duration,
}

/// Why a conversation cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoConversation {
    #[error("too many conversations, and all of them are in use")]
    TooMany,
    #[error("{0}")]
    Start(#[from] crate::task::StartError),
}

impl<S: Default + Send + 'static> Conversations<S> {
    pub(super) fn new(limits: &super::AgentLimits) -> Self {
        Self {
            table: Mutex::default(),
            ending: Mutex::default(),
            most: limits.max_conversations.max(1),
            idle: limits.idle,
            close: limits.close,
        }
    }

    /// The conversation of an id, if there is one.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Conversation<S>>> {
        let found = lock(&self.table).get(id).cloned()?;
        *lock(&found.touched) = Instant::now();
        Some(found)
    }

    /// The conversation of an id; a new one if there is none, in the place of an idle one if there are
    /// too many.
    pub(super) fn open(
        &self,
        id: &str,
        begin: impl FnOnce() -> Result<Task, crate::task::StartError>,
    ) -> Result<Arc<Conversation<S>>, NoConversation> {
        if let Some(found) = self.find(id) {
            return Ok(found);
        }
        let mut table = lock(&self.table);
        if table.len() >= self.most {
            let idle = table
                .values()
                .filter(|one| Arc::strong_count(one) == 1)
                .min_by_key(|one| *lock(&one.touched))
                .map(|one| one.id.clone());
            let evicted = idle.and_then(|id| table.remove(&id));
            self.end_soon(evicted.ok_or(NoConversation::TooMany)?);
        }
        let new = Arc::new(Conversation {
            id: id.to_owned(),
            task: begin()?,
            state: Mutex::default(),
            turn: Arc::default(),
            touched: Mutex::new(Instant::now()),
        });
        table.insert(id.to_owned(), Arc::clone(&new));
        Ok(new)
    }

    /// Ends conversations that nobody uses any more.
    pub(super) fn sweep(&self) {
        let mut table = lock(&self.table);
        let is_idle = |one: &Arc<Conversation<S>>| {
            Arc::strong_count(one) == 1 && lock(&one.touched).elapsed() >= self.idle
        };
        let idle: Vec<String> = table
            .values()
            .filter(|one| is_idle(one))
            .map(|one| one.id.clone())
            .collect();
        for id in idle {
            if let Some(one) = table.remove(&id) {
                self.end_soon(one);
            }
        }
    }

    fn end_soon(&self, conversation: Arc<Conversation<S>>) {
        let close = self.close;
        let mut ending = lock(&self.ending);
        while ending.try_join_next().is_some() {}
        ending.spawn(async move { end(&conversation.task, close).await });
    }

    /// Ends all, and returns when nothing runs any more.
    pub(super) async fn close(&self) {
        let all: Vec<_> = lock(&self.table).drain().map(|(_, one)| one).collect();
        join_all(all.iter().map(|one| end(&one.task, self.close))).await;
        let mut ending = std::mem::take(&mut *lock(&self.ending));
        // Each of them has a time limit of its own.
        while ending.join_next().await.is_some() {}
    }
}

/// Ends a task, whatever it is doing.
pub(super) async fn end(task: &Task, patience: Duration) {
    task.cancel();
    if tokio::time::timeout(patience, task.end()).await.is_err() {
        tracing::warn!(task = task.id(), "the task did not end in time");
    }
}
