//! What the server answers to a message: the document's answer, as the protocol wants it.

use std::sync::Arc;

use proofhouse_oatf::ResponseEntry;
use proofhouse_protocol::a2a::{A2aMethod, A2aShape, A2aVersion, translate_item};
use serde_json::{Value, json};

use super::handler::A2aServer;
use super::state::{self, A2aServerState};
use crate::branches;
use crate::drivers::a2a::complete::{self, Ids};
use crate::phases::PhaseView;

/// The entry that an answer comes from, as the exposure has it.
#[derive(Debug, Clone)]
pub(super) struct ServedEntry {
    pub(super) name: String,
    pub(super) branch: Value,
}

/// An answer, as 0.3 has it.
#[derive(Debug, Clone)]
pub(super) enum A2aAnswer {
    /// What both generations know; it is translated.
    Known(A2aShape, Value),
    /// What neither knows, or what is to go out as it is written.
    Raw {
        /// As it is written.
        wire: Value,
        /// As 0.3 has it, where it is known at all.
        seen: Value,
    },
}

impl A2aAnswer {
    fn raw(wire: Value) -> Self {
        let seen = translate_item(&wire, A2aVersion::V0_3);
        Self::Raw { wire, seen }
    }

    /// As triggers and indicators see it.
    pub(super) fn content(&self) -> &Value {
        match self {
            Self::Known(_, value) | Self::Raw { seen: value, .. } => value,
        }
    }

    /// As it goes to a caller.
    pub(super) fn wire(&self, generation: A2aVersion) -> Value {
        match self {
            Self::Known(shape, value) => shape.to_item(value, generation),
            Self::Raw { wire, .. } => wire.clone(),
        }
    }

    /// The task, if it is one.
    pub(super) fn task(&self) -> Option<&Value> {
        match self {
            Self::Known(A2aShape::Task, task) => Some(task),
            _ => None,
        }
    }

    /// The items of a stream that tell it: a task, then its artifacts, then its status, which ends
    /// the stream; anything else is one item.
    pub(super) fn items(&self) -> Vec<A2aAnswer> {
        let Some(task) = self.task() else {
            return vec![self.clone()];
        };
        let (id, context) = (&task["id"], &task["contextId"]);
        let mut items = vec![self.clone()];
        for artifact in task
            .get("artifacts")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let update = json!({"kind": "artifact-update", "taskId": id, "contextId": context,
                "artifact": artifact, "append": false, "lastChunk": true});
            items.push(Self::Known(A2aShape::ArtifactUpdate, update));
        }
        let update = json!({"kind": "status-update", "taskId": id, "contextId": context,
            "status": task["status"], "final": true});
        items.push(Self::Known(A2aShape::StatusUpdate, update));
        items
    }
}

impl A2aServer {
    /// The answer of a phase to a message, and the entry it comes from.
    pub(super) async fn answer(
        &self,
        phase: &Arc<PhaseView>,
        params: &Value,
    ) -> (A2aAnswer, Option<ServedEntry>) {
        let state = phase.prepared(A2aServerState::read);
        let ids = Ids::of_request(params);
        let operation = A2aMethod::SendMessage.event();
        let Some(entry) = self.context.select(operation, &state.responses, params) else {
            return (
                A2aAnswer::Known(A2aShape::Task, complete::empty_task(&ids)),
                None,
            );
        };
        let index = state
            .responses
            .iter()
            .position(|one| std::ptr::eq(one, entry));
        let served = index.map(|index| ServedEntry {
            name: state::response_name(&self.owner(phase), index),
            branch: branches::of_entry(entry),
        });
        let value = match self.generated(entry, params).await {
            Some(generated) => generated,
            None => {
                let written = entry.content.as_ref().unwrap_or(&Value::Null);
                self.context.interpolate(written, Some(params), None)
            }
        };
        if state.is_verbatim(entry) {
            return (A2aAnswer::raw(value), served);
        }
        if value.is_null() {
            return (
                A2aAnswer::Known(A2aShape::Task, complete::empty_task(&ids)),
                served,
            );
        }
        let answer = match A2aShape::recognise(&value) {
            Some((shape, mut known)) => {
                complete::complete(shape, &mut known, &ids);
                A2aAnswer::Known(shape, known)
            }
            None => A2aAnswer::raw(value),
        };
        (answer, served)
    }

    /// Generated content, if it is asked for and is something a server can answer with.
    async fn generated(&self, entry: &ResponseEntry, params: &Value) -> Option<Value> {
        let prompt = entry.synthesize.as_ref()?.prompt.as_deref()?;
        let wanted = json!({"operation": A2aMethod::SendMessage.event(), "request": params});
        let generated = self.context.generate(prompt, wanted).await?;
        if A2aShape::recognise(&generated).is_none() {
            self.context
                .warn("`synthesize` gave neither a task nor a message; the static content is used");
            return None;
        }
        Some(generated)
    }

    /// The phase whose state a phase has.
    fn owner(&self, phase: &Arc<PhaseView>) -> String {
        let phases = self.context.all_phases();
        let owner = phases[..=phase.index.min(phases.len() - 1)]
            .iter()
            .rev()
            .find(|phase| phase.own_state);
        owner.map_or_else(|| phase.name.clone(), |owner| owner.name.clone())
    }
}
