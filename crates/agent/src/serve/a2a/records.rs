//! The tasks of A2A as clients can ask for them: one per message, bounded in number.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use proofhouse_protocol::a2a::{A2aShape, A2aTaskState, A2aVersion};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

use super::super::texts::now;
use super::shapes::{A2aMessage, Artifact};
use crate::task::Task;

/// Updates that are kept for a slow reader.
const MAX_UPDATES: usize = 256;
/// Messages of one task that are kept; later ones are not.
const MAX_HISTORY: usize = 64;

/// One task, as A2A means it: a message and what became of it.
#[derive(Debug)]
pub(super) struct A2aTaskRecord {
    pub(super) id: String,
    pub(super) context: String,
    /// The conversation that it belongs to.
    pub(super) task: Task,
    /// Ends the answer.
    pub(super) cancel: CancellationToken,
    inner: Mutex<RecordTable>,
    updates: broadcast::Sender<Update>,
    state: watch::Sender<A2aTaskState>,
}

#[derive(Debug)]
struct RecordTable {
    message: Option<A2aMessage>,
    time: String,
    history: Vec<A2aMessage>,
    artifact: Option<Artifact>,
}

/// Something that changed.
#[derive(Debug, Clone)]
pub(super) enum Update {
    Status {
        state: A2aTaskState,
        message: Option<A2aMessage>,
        time: String,
    },
    Artifact(Artifact),
}

impl A2aTaskRecord {
    pub(super) fn new(id: String, context: String, task: Task, said: A2aMessage) -> Self {
        Self {
            id,
            context,
            task,
            cancel: CancellationToken::new(),
            inner: Mutex::new(RecordTable {
                message: None,
                time: now(),
                history: vec![said],
                artifact: None,
            }),
            updates: broadcast::channel(MAX_UPDATES).0,
            state: watch::channel(A2aTaskState::Submitted).0,
        }
    }

    pub(super) fn state(&self) -> A2aTaskState {
        *self.state.borrow()
    }

    /// Watches how far it is.
    pub(super) fn states(&self) -> watch::Receiver<A2aTaskState> {
        self.state.subscribe()
    }

    /// The task as it is now, and what changes after that.
    pub(super) fn watch(&self, generation: A2aVersion) -> (Value, broadcast::Receiver<Update>) {
        let inner = lock(&self.inner);
        let task = self.written(&inner, generation, None, true);
        (task, self.updates.subscribe())
    }

    /// Keeps a message of the client.
    pub(super) fn said(&self, message: A2aMessage) {
        let mut inner = lock(&self.inner);
        if inner.history.len() < MAX_HISTORY {
            inner.history.push(message);
        }
    }

    /// Notes how far it is. What is over stays as it is.
    pub(super) fn reach(&self, state: A2aTaskState, message: Option<A2aMessage>) {
        let mut inner = lock(&self.inner);
        if self.state().is_terminal() {
            return;
        }
        inner.time = now();
        inner.message.clone_from(&message);
        if let Some(message) = &message
            && inner.history.len() < MAX_HISTORY
        {
            inner.history.push(message.clone());
        }
        let _ = self.updates.send(Update::Status {
            state,
            message,
            time: inner.time.clone(),
        });
        // Whoever waits for the state finds everything else in its place.
        self.state.send_replace(state);
    }

    /// Notes what it came to.
    pub(super) fn produce(&self, artifact: Artifact) {
        let mut inner = lock(&self.inner);
        inner.artifact = Some(artifact.clone());
        let _ = self.updates.send(Update::Artifact(artifact));
    }

    /// The task as a generation writes it.
    pub(super) fn to_json(
        &self,
        generation: A2aVersion,
        history: Option<usize>,
        artifacts: bool,
    ) -> Value {
        self.written(&lock(&self.inner), generation, history, artifacts)
    }

    fn written(
        &self,
        inner: &RecordTable,
        generation: A2aVersion,
        history: Option<usize>,
        artifacts: bool,
    ) -> Value {
        let status = self.status(
            generation,
            self.state(),
            inner.message.as_ref(),
            &inner.time,
        );
        let most = history.unwrap_or(usize::MAX);
        let from = inner.history.len().saturating_sub(most);
        let said: Vec<Value> = inner.history[from..]
            .iter()
            .map(|message| message.to_json(&self.id, &self.context, generation))
            .collect();
        let mut task = json!({
            "id": self.id, "contextId": self.context, "status": status, "history": said,
        });
        if artifacts {
            let artifact = inner.artifact.iter();
            let artifacts: Vec<Value> = artifact.map(|one| one.to_json(generation)).collect();
            task["artifacts"] = artifacts.into();
        }
        if generation == A2aVersion::V0_3 {
            task["kind"] = A2aShape::Task.kind().into();
        }
        task
    }

    fn status(
        &self,
        generation: A2aVersion,
        state: A2aTaskState,
        message: Option<&A2aMessage>,
        time: &str,
    ) -> Value {
        let mut status = json!({"state": state.as_str(generation), "timestamp": time});
        if let Some(message) = message {
            status["message"] = message.to_json(&self.id, &self.context, generation);
        }
        status
    }

    /// An update as an item of a stream.
    pub(super) fn item(&self, update: &Update, generation: A2aVersion) -> Value {
        let mut item = json!({"taskId": self.id, "contextId": self.context});
        match update {
            Update::Status {
                state,
                message,
                time,
            } => {
                item["status"] = self.status(generation, *state, message.as_ref(), time);
                if generation == A2aVersion::V0_3 {
                    item["kind"] = A2aShape::StatusUpdate.kind().into();
                    item["final"] = ends_stream(update).into();
                }
                A2aShape::StatusUpdate.wrap(item, generation)
            }
            Update::Artifact(artifact) => {
                item["artifact"] = artifact.to_json(generation);
                item["append"] = false.into();
                item["lastChunk"] = true.into();
                if generation == A2aVersion::V0_3 {
                    item["kind"] = A2aShape::ArtifactUpdate.kind().into();
                }
                A2aShape::ArtifactUpdate.wrap(item, generation)
            }
        }
    }
}

/// Whether a stream ends after an update: the task is over, or waits for the client.
pub(super) fn ends_stream(update: &Update) -> bool {
    match update {
        Update::Status { state, .. } => {
            state.is_terminal() || *state == A2aTaskState::InputRequired
        }
        Update::Artifact(_) => false,
    }
}

/// All tasks that can be asked for.
#[derive(Debug, Default)]
pub(super) struct Records {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<String, Arc<A2aTaskRecord>>,
    /// From the oldest to the newest.
    order: VecDeque<String>,
}

impl Records {
    /// Keeps a task, in the place of the oldest that is over; `false` if none is.
    pub(super) fn add(&self, record: &Arc<A2aTaskRecord>, most: usize) -> bool {
        let mut table = lock(&self.table);
        if table.by_id.len() >= most {
            let is_over = |id: &String| {
                let record = table.by_id.get(id);
                record.is_none_or(|record| record.state().is_terminal())
            };
            let Some(at) = table.order.iter().position(is_over) else {
                return false;
            };
            if let Some(id) = table.order.remove(at) {
                table.by_id.remove(&id);
            }
        }
        table.order.push_back(record.id.clone());
        table.by_id.insert(record.id.clone(), Arc::clone(record));
        true
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<A2aTaskRecord>> {
        lock(&self.table).by_id.get(id).cloned()
    }

    /// The tasks of a conversation, from the newest to the oldest.
    pub(super) fn of_context(&self, context: &str) -> Vec<Arc<A2aTaskRecord>> {
        let table = lock(&self.table);
        let all = table.order.iter().rev();
        all.filter_map(|id| table.by_id.get(id))
            .filter(|record| record.context == context)
            .cloned()
            .collect()
    }
}
