//! Asks for tasks that go on, as a client does that was told to wait: what comes of a message belongs to the run.
//!
//! The questions are ours and not the document's: no trigger hears of them, and a subject that tells the same again is as
//! silent as one that tells nothing.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proofhouse_oatf::Direction;
use proofhouse_protocol::a2a::{
    A2aMethod, A2aShape, A2aVersion, ARTIFACT_EVENT, STATUS_EVENT, translate_params,
    translate_result, values,
};
use proofhouse_protocol::rpc;
use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::{Bytes, Method};
use serde_json::{Value, json};

use super::peer::{self, A2aPeer};
use super::responses::A2aResponseReader;
use crate::actor::ActorContext;
use crate::poll_pace::PollPace;

/// Tasks that are asked for at a time.
const MAX_FOLLOWED: usize = 32;
/// How often it may fail to ask for a task before it is given up.
const MAX_FAILURES: u32 = 3;

/// What is known of the tasks that were asked for.
#[derive(Debug, Default)]
pub(super) struct A2aTaskPoller {
    hasher: RandomState,
    /// A hash of what was told last of each.
    told: HashMap<String, u64>,
    failures: HashMap<String, u32>,
    /// Tasks that their agent knows nothing of. They have not ended, so the run is not done.
    lost: HashSet<String>,
}

/// Who is asked.
pub(super) struct FollowedPeer {
    pub(super) context: ActorContext,
    pub(super) client: Client,
    pub(super) peer: A2aPeer,
    pub(super) last_id: Arc<AtomicU64>,
}

/// What came of a question.
enum PollAnswer {
    /// The task, as 0.3 has it, and the whole response where that differs.
    Task(Value, Option<Value>),
    /// The agent says that it has nothing to say of it.
    Refused(Value),
    /// There was no answer that can be read, which has been told.
    Failed,
}

/// The id of the next request.
pub(super) fn next_id(last: &AtomicU64) -> Value {
    (last.fetch_add(1, Ordering::Relaxed) + 1).into()
}

impl A2aTaskPoller {
    /// Whether there is a task to ask for.
    pub(super) fn has_work(&self, context: &ActorContext) -> bool {
        !self.work(context).is_empty()
    }

    /// Tasks that go on, each with the operation that told of it first.
    fn work(&self, context: &ActorContext) -> Vec<(String, String)> {
        let mut tasks = context.running_tasks(MAX_FOLLOWED + self.lost.len());
        // A task without a name cannot be asked for.
        tasks.retain(|(task, _)| !task.is_empty() && !self.lost.contains(task));
        tasks.truncate(MAX_FOLLOWED);
        tasks
    }

    /// Asks until every task has ended or is given up. The run ends no later for it.
    pub(super) async fn follow(mut self, peer: FollowedPeer) -> Self {
        let mut pace = PollPace::default();
        loop {
            let tasks = self.work(&peer.context);
            if tasks.is_empty() {
                return self;
            }
            tokio::time::sleep(pace.next_pause()).await;
            for (task, operation) in tasks {
                let params = json!({"id": task});
                match peer.ask(&params).await {
                    PollAnswer::Task(content, raw) => {
                        self.failures.remove(&task);
                        let hash = self.hasher.hash_one(content.to_string());
                        if self.told.insert(task, hash) != Some(hash) {
                            peer.hear(&operation, &params, &content, raw.as_ref());
                        }
                    }
                    PollAnswer::Refused(error) => {
                        peer.refused(&params, &error);
                        self.lost.insert(task);
                    }
                    PollAnswer::Failed => {
                        let failures = self.failures.entry(task.clone()).or_default();
                        *failures += 1;
                        if *failures >= MAX_FAILURES {
                            self.lost.insert(task);
                        }
                    }
                }
            }
        }
    }
}

impl FollowedPeer {
    const EVENT: &str = A2aMethod::GetTask.event();

    /// Asks for a task.
    async fn ask(&self, params: &Value) -> PollAnswer {
        let context = &self.context;
        let id = next_id(&self.last_id);
        let method = A2aMethod::GetTask.as_str(self.peer.generation);
        let wire = translate_params(A2aMethod::GetTask, params, self.peer.generation);
        let envelope = rpc::request(&id, method, Some(&wire)).to_string();
        let headers = peer::headers(context, Some(self.peer.generation));
        let reader = A2aResponseReader {
            context: context.clone(),
            operation: Some(A2aMethod::GetTask),
            event: Self::EVENT.to_owned(),
            id,
            phase: context.phase(),
            branch: Value::Null,
            uncounted: Arc::new(AtomicBool::new(false)),
        };
        let answered = async {
            let body = Bytes::from(envelope);
            let (post, url) = (Method::POST, &self.peer.url);
            let response = self.client.send(post, url, headers, body).await?;
            response.bytes().await
        };
        let answered: Result<Bytes, ClientError> = answered.await;
        let text = match answered {
            Ok(text) => text,
            Err(error) => {
                reader.unread(&error);
                context.warn(&format!(
                    "`{}` of a task that goes on: {error}",
                    Self::EVENT
                ));
                return PollAnswer::Failed;
            }
        };
        match reader.outcome(&text) {
            Some((id, Ok(result))) => {
                let task = translate_result(A2aMethod::GetTask, &result, A2aVersion::V0_3);
                let raw = (task != result).then(|| rpc::response(&id, result));
                PollAnswer::Task(task, raw)
            }
            Some((_, Err(error))) => PollAnswer::Refused(error),
            None => PollAnswer::Failed,
        }
    }

    /// Takes what is new: as the answer to our question, and as what the message has come to, which indicators wait for.
    fn hear(&self, operation: &str, params: &Value, task: &Value, raw: Option<&Value>) {
        let heard = |operation: &str, content: &Value| {
            let (direction, raw) = (Direction::Response, raw.cloned());
            self.context.overheard(operation, direction, content, raw);
        };
        self.asked(params);
        heard(Self::EVENT, task);
        if operation == Self::EVENT {
            return;
        }
        heard(operation, task);
        if operation == A2aMethod::StreamMessage.event() {
            // What a stream would have had, had it gone on.
            for artifact in task["artifacts"].as_array().into_iter().flatten() {
                let update = update(A2aShape::ArtifactUpdate, task, "artifact", artifact);
                heard(ARTIFACT_EVENT, &update);
            }
            let update = update(A2aShape::StatusUpdate, task, "status", &task["status"]);
            heard(
                STATUS_EVENT,
                &values::status_update(&update, A2aVersion::V0_3),
            );
        }
    }

    fn refused(&self, params: &Value, error: &Value) {
        self.asked(params);
        let (event, direction) = (Self::EVENT, Direction::Response);
        self.context.overheard(event, direction, error, None);
        self.context.warn(&format!(
            "the agent does not tell how a task goes on: `{event}` was answered by an error"
        ));
    }

    fn asked(&self, params: &Value) {
        let (phase, direction) = (self.context.phase(), Direction::Request);
        let event = Self::EVENT;
        self.context.sent(&phase, event, direction, params, None);
    }
}

/// A part of a task, as an item of a stream.
fn update(shape: A2aShape, task: &Value, key: &str, part: &Value) -> Value {
    let mut update = json!({
        "kind": shape.kind(), "taskId": task["id"], "contextId": task["contextId"],
    });
    update[key] = part.clone();
    update
}
