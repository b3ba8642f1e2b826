//! The agent over A2A, both generations at one address: the name of the method decides how a request is
//! read and answered.

mod card;
mod follow;
mod params;
mod records;
mod refusal;
mod shapes;
mod work;

use std::net::SocketAddr;
use std::sync::Arc;

use proofhouse_protocol::a2a::{A2aMethod, A2aShape, A2aTaskState, A2aVersion, card as agent_card};
use proofhouse_protocol::rpc::{self, RpcMessage};
use proofhouse_wire::server::{BoundServer, Handler, Reply, Request};
use proofhouse_wire::{CancellationToken, Method, StatusCode, origin};
use serde_json::{Map, Value, json};

use self::follow::TaskStreamWriter;
use self::params::{accepts_text, count, decide, text_id};
use self::records::{A2aTaskRecord, Records};
use self::refusal::A2aRefusal;
use self::shapes::A2aMessage;
use super::AgentService;
use super::conversations::{Conversations, NoConversation};
use super::texts::fresh_id;
use crate::task::{Decision, TaskInput};

/// Tasks on one page of a list.
const MAX_PAGE: usize = 100;

/// What is known of a conversation beside its task and its records.
#[derive(Debug, Default)]
struct ConversationState {
    /// What the client has said so far, in bytes.
    bytes: usize,
}

/// Serves until `stop` is cancelled; then all conversations are ended.
pub(super) async fn serve(service: Arc<AgentService>, bound: BoundServer, stop: CancellationToken) {
    let wire = service.limits.wire.clone();
    let inner = Arc::new(A2aShared {
        address: bound.address(),
        contexts: Conversations::new(&service.limits),
        records: Records::default(),
        service: Arc::clone(&service),
    });
    let handler = A2aHttp(Arc::clone(&inner));
    tokio::select! {
        () = bound.serve(Arc::new(handler), wire, stop) => {}
        () = service.sweeping(|| inner.contexts.sweep()) => {}
    }
    inner.contexts.close().await;
}

struct A2aHttp(Arc<A2aShared>);

struct A2aShared {
    address: SocketAddr,
    contexts: Conversations<ConversationState>,
    records: Records,
    service: Arc<AgentService>,
}

impl Handler for A2aHttp {
    async fn handle(&self, request: Request) -> Reply {
        let inner = &self.0;
        if !origin::is_allowed(&request.headers, inner.address) {
            return Reply::empty(StatusCode::FORBIDDEN);
        }
        let path = request.path.strip_prefix('/').unwrap_or_default();
        let is_card = [agent_card::PATH, agent_card::OLD_PATH].contains(&path);
        match (&request.method, is_card) {
            (&Method::GET, true) => {
                let service = &inner.service;
                let url = inner.url(request.header("host"));
                let card = card::card(&service.host, &service.agent, &url);
                Reply::json(StatusCode::OK, card.to_string())
            }
            (&Method::POST, false) => inner.post(&request).await,
            (_, true) => Reply::empty(StatusCode::METHOD_NOT_ALLOWED).with_header("allow", "GET"),
            (&Method::GET, false) => Reply::empty(StatusCode::NOT_FOUND),
            (_, false) => Reply::empty(StatusCode::METHOD_NOT_ALLOWED).with_header("allow", "POST"),
        }
    }
}

fn answer(response: &Value) -> Reply {
    Reply::json(StatusCode::OK, rpc::to_text(response))
}

impl A2aShared {
    /// Where clients reach us: as they did, where our address is none that they could use.
    fn url(&self, host: Option<&str>) -> String {
        let is_name = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        match host {
            Some(host) if self.address.ip().is_unspecified() && host.chars().all(is_name) => {
                format!("http://{host}/")
            }
            _ => format!("http://{}/", self.address),
        }
    }

    async fn post(self: &Arc<Self>, request: &Request) -> Reply {
        let body = match &request.body {
            Ok(body) => body,
            Err(problem) => {
                let text = problem.to_string();
                let error = rpc::error(&Value::Null, rpc::INVALID_REQUEST, &text, None);
                return Reply::json(problem.status(), error.to_string());
            }
        };
        let (id, method, params) = match rpc::parse(body) {
            Ok(RpcMessage::Request { id, method, params }) => (id, method, params),
            Ok(_) => {
                let message = "A2A has requests only";
                return answer(&rpc::error(
                    &Value::Null,
                    rpc::INVALID_REQUEST,
                    message,
                    None,
                ));
            }
            Err(invalid) => return answer(&invalid.to_response()),
        };
        // 0.3 lists no tasks over JSON-RPC.
        let known = A2aMethod::parse(&method)
            .filter(|known| *known != (A2aMethod::ListTasks, A2aVersion::V0_3));
        let Some((method, generation)) = known else {
            return answer(&A2aRefusal::Method.response(&id, A2aVersion::V0_3));
        };
        let call = A2aRequest {
            id,
            generation,
            params,
        };
        let answered = match method {
            A2aMethod::SendMessage => self.send(&call).await.map(A2aReply::Whole),
            A2aMethod::StreamMessage => self.stream(&call).map(A2aReply::Stream),
            A2aMethod::GetTask => self.get(&call).map(A2aReply::Whole),
            A2aMethod::CancelTask => self.cancel(&call).await.map(A2aReply::Whole),
            A2aMethod::ListTasks => self.list(&call).map(A2aReply::Whole),
            A2aMethod::ResubscribeTask => self.subscribe(&call).map(A2aReply::Stream),
            A2aMethod::SetPushConfig
            | A2aMethod::GetPushConfig
            | A2aMethod::ListPushConfigs
            | A2aMethod::DeletePushConfig => Err(A2aRefusal::NoPush),
            A2aMethod::GetExtendedCard => Err(A2aRefusal::NoExtendedCard),
        };
        match answered {
            Ok(A2aReply::Whole(result)) => answer(&rpc::response(&call.id, result)),
            Ok(A2aReply::Stream(reply)) => reply,
            Err(problem) => answer(&problem.response(&call.id, generation)),
        }
    }

    /// Takes a message: a new task, or the answer to a question of one that waits.
    fn take(self: &Arc<Self>, call: &A2aRequest) -> Result<Taken, A2aRefusal> {
        let message = call.params.get("message").unwrap_or(&Value::Null);
        let (text, said) =
            A2aMessage::read(message).map_err(|error| A2aRefusal::Params(error.to_string()))?;
        let settings = call.params.get("configuration");
        let push = ["pushNotificationConfig", "taskPushNotificationConfig"];
        let wants_push =
            |key: &&str| settings.is_some_and(|all| all.get(key).is_some_and(Value::is_object));
        if push.iter().any(wants_push) {
            return Err(A2aRefusal::NoPush);
        }
        accepts_text(settings)?;
        let context = text_id(message, "contextId")?;
        if let Some(task) = text_id(message, "taskId")? {
            let record = self.records.find(&task).ok_or(A2aRefusal::NotFound)?;
            if context.is_some_and(|context| context != record.context) {
                let message = "the task belongs to another `contextId`";
                return Err(A2aRefusal::Params(message.to_owned()));
            }
            let decision = decide(&record, &text, message, call.generation)?;
            return Ok(Taken {
                record,
                begin: Begin::Decide(decision, said),
            });
        }
        let service = &self.service;
        let permit = service.permit();
        let permit =
            permit.ok_or_else(|| A2aRefusal::Busy("too many tasks at a time".to_owned()))?;
        let context = context.unwrap_or_else(fresh_id);
        let opened = self.contexts.open(&context, || service.begin(Vec::new()));
        let conversation = opened.map_err(|error| match error {
            NoConversation::TooMany => A2aRefusal::Busy(error.to_string()),
            NoConversation::Start(error) => A2aRefusal::Busy(error.to_string()),
        })?;
        let bytes = conversation.state().bytes + text.len();
        if bytes > service.limits.max_conversation_bytes {
            return Err(A2aRefusal::Busy(
                "the context is too long; begin another".to_owned(),
            ));
        }
        conversation.state().bytes = bytes;
        let mut others = self.records.of_context(&context);
        others.retain(|record| !record.state().is_terminal());
        if others.len() > service.limits.max_waiting {
            return Err(A2aRefusal::Busy(
                "too many messages wait in this context".to_owned(),
            ));
        }
        let task = conversation.task.clone();
        let record = Arc::new(A2aTaskRecord::new(fresh_id(), context, task, said));
        if !self.records.add(&record, service.limits.max_records) {
            return Err(A2aRefusal::Busy(
                "too many tasks, and none is over".to_owned(),
            ));
        }
        let input = TaskInput {
            message: Some(text),
            parameters: self.parameters(message),
            ..TaskInput::default()
        };
        let work = work::answer(
            Arc::clone(service),
            conversation,
            Arc::clone(&record),
            input,
        );
        let work = Box::pin(async move {
            work.await;
            drop(permit);
        });
        Ok(Taken {
            record,
            begin: Begin::Work(work),
        })
    }

    /// The parameters of the agent, from the metadata of a message.
    fn parameters(&self, message: &Value) -> Map<String, Value> {
        let declared = self.service.agent.parameters.properties();
        let given = message.get("metadata").and_then(Value::as_object);
        let given = given.into_iter().flatten();
        given
            .filter(|(name, _)| declared.contains_key(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    fn begin(&self, record: &A2aTaskRecord, begin: Begin) {
        match begin {
            Begin::Work(work) => self.service.spawn(work),
            Begin::Decide(decision, said) => {
                record.said(said);
                record.reach(A2aTaskState::Working, None);
                if let Some(review) = record.task.reviews().first() {
                    record.task.decide(review.id, decision);
                }
            }
        }
    }

    async fn send(self: &Arc<Self>, call: &A2aRequest) -> Result<Value, A2aRefusal> {
        let history = count(call.params.get("configuration"), "historyLength")?;
        let Taken { record, begin } = self.take(call)?;
        let settings = call.params.get("configuration").unwrap_or(&Value::Null);
        let at_once = match call.generation {
            A2aVersion::V0_3 => settings.get("blocking") == Some(&Value::Bool(false)),
            A2aVersion::V1_0 => settings.get("returnImmediately") == Some(&Value::Bool(true)),
        };
        self.begin(&record, begin);
        if !at_once {
            let mut states = record.states();
            let rests =
                |state: &A2aTaskState| state.is_terminal() || *state == A2aTaskState::InputRequired;
            let waiting = states.wait_for(rests);
            let _ = tokio::time::timeout(self.service.limits.run, waiting).await;
        }
        let task = record.to_json(call.generation, history, true);
        Ok(A2aShape::Task.wrap(task, call.generation))
    }

    fn stream(self: &Arc<Self>, call: &A2aRequest) -> Result<Reply, A2aRefusal> {
        let Taken { record, begin } = self.take(call)?;
        let reply = self.follow(call, &record);
        self.begin(&record, begin);
        Ok(reply)
    }

    fn subscribe(self: &Arc<Self>, call: &A2aRequest) -> Result<Reply, A2aRefusal> {
        let record = self.find(call)?;
        if record.state().is_terminal() {
            return Err(A2aRefusal::Unsupported("the task is over"));
        }
        Ok(self.follow(call, &record))
    }

    /// A stream of what happens to a task from now on. A reader that goes does not end it.
    fn follow(&self, call: &A2aRequest, record: &Arc<A2aTaskRecord>) -> Reply {
        let (reply, writer) = Reply::events();
        let (task, updates) = record.watch(call.generation);
        let first = A2aShape::Task.wrap(task, call.generation);
        let follower = TaskStreamWriter {
            id: call.id.clone(),
            generation: call.generation,
            record: Arc::clone(record),
            writer,
            keep_alive: self.service.limits.keep_alive,
        };
        self.service.spawn(follower.follow(first, updates));
        reply
    }

    fn find(&self, call: &A2aRequest) -> Result<Arc<A2aTaskRecord>, A2aRefusal> {
        let id = call.params.get("id").and_then(Value::as_str);
        let id = id.ok_or_else(|| A2aRefusal::Params("`id` must be a text".to_owned()))?;
        // Clients of 1.0 may write the name of a resource.
        let id = id.strip_prefix("tasks/").unwrap_or(id);
        self.records.find(id).ok_or(A2aRefusal::NotFound)
    }

    fn get(&self, call: &A2aRequest) -> Result<Value, A2aRefusal> {
        let history = count(Some(&call.params), "historyLength")?;
        let record = self.find(call)?;
        Ok(record.to_json(call.generation, history, true))
    }

    async fn cancel(&self, call: &A2aRequest) -> Result<Value, A2aRefusal> {
        let record = self.find(call)?;
        if record.state().is_terminal() {
            return Err(A2aRefusal::NotCancelable);
        }
        record.cancel.cancel();
        let mut states = record.states();
        let over = states.wait_for(|state| state.is_terminal());
        let _ = tokio::time::timeout(self.service.limits.close, over).await;
        if record.state() != A2aTaskState::Canceled {
            // It came to its end before it could be stopped, or does not stop.
            return Err(A2aRefusal::NotCancelable);
        }
        Ok(record.to_json(call.generation, None, true))
    }

    /// The tasks of one context. There is no telling who asks, and a context that a client knows is the
    /// only thing that makes a task its own: without one there is nothing to show.
    fn list(&self, call: &A2aRequest) -> Result<Value, A2aRefusal> {
        let params = &call.params;
        let context = text_id(params, "contextId")?;
        let all = context.map_or_else(Vec::new, |context| self.records.of_context(&context));
        let wanted = params.get("status").and_then(Value::as_str);
        let wanted =
            wanted.filter(|state| *state != A2aTaskState::Unknown.as_str(A2aVersion::V1_0));
        let all: Vec<_> = all
            .into_iter()
            .filter(|record| {
                wanted.is_none_or(|state| record.state().as_str(call.generation) == state)
            })
            .collect();
        let size = count(Some(params), "pageSize")?;
        let size = size.filter(|size| *size > 0).unwrap_or(50).min(MAX_PAGE);
        let token = params.get("pageToken").and_then(Value::as_str);
        let from = match token.filter(|token| !token.is_empty()) {
            None => 0,
            Some(token) => token
                .parse()
                .ok()
                .filter(|from| *from <= all.len())
                .ok_or_else(|| A2aRefusal::Params("`pageToken` is not one of ours".to_owned()))?,
        };
        let to = (from + size).min(all.len());
        let history = count(Some(params), "historyLength")?.or(Some(0));
        let artifacts = params.get("includeArtifacts") == Some(&Value::Bool(true));
        let tasks: Vec<Value> = all[from..to]
            .iter()
            .map(|record| record.to_json(call.generation, history, artifacts))
            .collect();
        let next = if to < all.len() {
            to.to_string()
        } else {
            String::new()
        };
        Ok(json!({
            "tasks": tasks, "nextPageToken": next, "pageSize": size, "totalSize": all.len(),
        }))
    }
}

/// A request.
struct A2aRequest {
    id: Value,
    generation: A2aVersion,
    params: Value,
}

enum A2aReply {
    Whole(Value),
    Stream(Reply),
}

/// A message that was taken, and what is to be done now.
struct Taken {
    record: Arc<A2aTaskRecord>,
    begin: Begin,
}

enum Begin {
    Work(futures_util::future::BoxFuture<'static, ()>),
    Decide(Decision, A2aMessage),
}
