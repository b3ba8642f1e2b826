//! Streamable HTTP, both eras on one endpoint.

use std::net::SocketAddr;
use std::sync::Arc;

use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{
    McpEra, McpLogLevel, McpMethod, McpNotification, McpRevision, era_of, header, meta, tag_params,
};
use proofhouse_protocol::rpc::{self, RpcFailure, RpcMessage};
use proofhouse_wire::server::{
    BrokenConnection, ConnectionLoss, Handler, Reply, ReplyBody, Request, RequestLane,
    StreamWriter, stream,
};
use proofhouse_wire::{HeaderMap, Method, StatusCode, origin};
use serde_json::{Value, json};

use super::answer::{AcceptedRequest, RemainingWork};
use super::call::{CallReply, ChangeListener, ServerCall};
use super::envelope::{self, lookup};
use super::ids;
use super::incoming::Received;
use super::outlet::{MessageOutlet, write_body};
use super::peer::McpPeer;
use super::service::McpServerService;
use super::streams::{STANDALONE, parse_id};
use crate::UnseenKind;
use crate::delivery_note::DeliveryNote;

/// The path of the endpoint.
pub(super) const PATH: &str = "/mcp";

/// How much of a wrong path is told.
const SHOWN_PATH: usize = 80;

/// Answers HTTP requests.
#[derive(Debug)]
pub(super) struct McpServerHttp {
    pub(super) service: Arc<McpServerService>,
    pub(super) address: SocketAddr,
}

impl Handler for McpServerHttp {
    async fn handle(&self, request: Request) -> Reply {
        let context = &self.service.context;
        if request.path != PATH {
            if request.body.as_ref().is_ok_and(|body| !body.is_empty()) {
                let path: String = request.path.chars().take(SHOWN_PATH).collect();
                context.warn(&format!(
                    "a message went to {path}, where nothing is; this server is at {PATH}"
                ));
            }
            context.refused_request(&request);
            return Reply::empty(StatusCode::NOT_FOUND);
        }
        if context.checks_origin()
            && self.service.surface().check_origin
            && !origin::is_allowed(&request.headers, self.address)
        {
            context.warn("a request of a foreign origin was refused");
            context.refused_request(&request);
            let failure = RpcFailure::new(rpc::INVALID_REQUEST, "this origin is not allowed");
            return refusal(StatusCode::FORBIDDEN, &Value::Null, failure);
        }
        if request.method != Method::POST {
            context.refused_request(&request);
        }
        match request.method {
            Method::POST => self.post(request).await,
            Method::GET => self.get(&request),
            Method::DELETE => self.delete(&request),
            _ => not_allowed("POST, GET, DELETE"),
        }
    }

    fn lane(&self, headers: &HeaderMap, peer: SocketAddr) -> RequestLane {
        // What names no session of ours could be anybody's.
        let session = headers
            .get(header::SESSION_ID)
            .and_then(|id| id.to_str().ok());
        let session = session.filter(|id| self.service.has_session(id));
        RequestLane::new(session.map_or_else(|| peer.to_string(), str::to_owned))
    }

    fn broken(&self, peer: SocketAddr, broken: &BrokenConnection) {
        let context = &self.service.context;
        // Closing a stream is how clients say that they heard enough.
        if broken.loss != ConnectionLoss::Reply {
            let reason = &broken.reason;
            context.warn(&format!("a connection from {peer} broke: {reason}"));
        }
        context.connection_broke(broken);
    }
}

impl McpServerHttp {
    async fn post(&self, request: Request) -> Reply {
        let context = &self.service.context;
        let body = match &request.body {
            Ok(body) => body,
            Err(problem) => {
                context.warn(&format!("a request was refused: {problem}"));
                self.service.no_message(UnseenKind::of_body(problem), b"");
                let failure = RpcFailure::new(rpc::INVALID_REQUEST, problem.to_string());
                return refusal(problem.status(), &Value::Null, failure);
            }
        };
        let message = match self.service.read(body) {
            Ok(Received::Message(message)) => message,
            Ok(Received::Batch(messages)) => return self.post_batch(&request, messages).await,
            Err(invalid) => {
                let text = rpc::to_text(&invalid.to_response());
                return Reply::json(StatusCode::BAD_REQUEST, text);
            }
        };
        let (method, params) = message.call();
        match era_of(method, params, Some(&lookup(&request.headers))) {
            McpEra::Legacy => self.post_legacy(&request, message).await,
            McpEra::Modern => self.post_modern(&request, message).await,
        }
    }

    async fn post_legacy(&self, request: &Request, message: RpcMessage) -> Reply {
        let service = &self.service;
        if let RpcMessage::Request { id, method, params } = message {
            if method == McpMethod::Initialize.as_str() {
                let peer = Arc::new(McpPeer::new(ids::unguessable(), None));
                let session = peer.id.clone();
                service.admit(Arc::clone(&peer));
                let call = self.legacy_call(request, peer, id, method, params);
                let reply = self.answer(call).await;
                return reply.with_header(header::SESSION_ID, &session);
            }
            let peer = match self.session(request) {
                Ok(peer) => peer,
                Err((status, failure)) => {
                    return self.refuse(status, &id, &method, &params, failure);
                }
            };
            service.ready_now(&peer).await;
            let call = self.legacy_call(request, peer, id, method, params);
            return self.answer(call).await;
        }
        let peer = match self.session(request) {
            Ok(peer) => peer,
            Err((status, failure)) => {
                service.out_of_place(message, failure.clone());
                return refusal(status, &Value::Null, failure);
            }
        };
        match message {
            RpcMessage::Notification { method, params } => {
                service.notified(Some(&peer), &method, &params).await;
            }
            RpcMessage::Response { id, outcome } => service.responded(&peer, &id, outcome),
            RpcMessage::Request { .. } => {}
        }
        Reply::empty(StatusCode::ACCEPTED)
    }

    /// A list of messages. Only sessions of the revision that has batches may send one.
    async fn post_batch(&self, request: &Request, messages: Vec<Value>) -> Reply {
        let service = &self.service;
        let peer = match self.session(request) {
            Ok(peer) => peer,
            Err((status, failure)) => {
                service.refuse_batch(messages, &failure);
                return refusal(status, &Value::Null, failure);
            }
        };
        let call =
            |id, method, params| self.legacy_call(request, Arc::clone(&peer), id, method, params);
        let batch = match service.take_batch(&peer, messages, call).await {
            Ok(batch) => batch,
            Err(failure) => return refusal(StatusCode::BAD_REQUEST, &Value::Null, failure),
        };
        if batch.is_quiet() {
            return Reply::empty(StatusCode::ACCEPTED);
        }
        let is_ready = batch.is_ready();
        let (reply, writer) = Reply::events();
        let outlet = MessageOutlet::Events(writer);
        if is_ready {
            let (text, note, advances) = service.answer_batch(batch, &outlet).await;
            return Reply::json(StatusCode::OK, text)
                .with_guard(advances)
                .with_unread(note.handed_over());
        }
        let background = Arc::clone(service);
        let started = service.spawn(async move {
            let (text, note, advances) = background.answer_batch(batch, &outlet).await;
            // A client that is gone has no use for it.
            let _ = outlet.send_last(&text, &note, background.patience()).await;
            drop(advances);
        });
        if started { reply } else { busy() }
    }

    async fn post_modern(&self, request: &Request, message: RpcMessage) -> Reply {
        let (id, method, params) = match message {
            RpcMessage::Request { id, method, params } => (id, method, params),
            RpcMessage::Notification { method, params } => {
                self.service.notified(None, &method, &params).await;
                return Reply::empty(StatusCode::ACCEPTED);
            }
            RpcMessage::Response { id, outcome } => {
                let failure = RpcFailure::new(rpc::INVALID_REQUEST, "responses are not expected");
                let response = RpcMessage::Response {
                    id: id.clone(),
                    outcome,
                };
                self.service.out_of_place(response, failure.clone());
                return refusal(StatusCode::BAD_REQUEST, &id, failure);
            }
        };
        let surface = self.service.surface();
        if let Err(failure) = envelope::check(&method, &params, Some(&request.headers), &surface) {
            return self.refuse(StatusCode::BAD_REQUEST, &id, &method, &params, failure);
        }
        let call = ServerCall {
            era: McpEra::Modern,
            peer: None,
            capabilities: Arc::new(
                meta::get(&params, meta::CLIENT_CAPABILITIES)
                    .cloned()
                    .unwrap_or_default(),
            ),
            level: meta::get(&params, meta::LOG_LEVEL)
                .and_then(Value::as_str)
                .and_then(McpLogLevel::parse),
            origin: request.peer.ip().to_string(),
            _permit: request.permit.clone(),
            id,
            method,
            params,
        };
        self.answer(call).await
    }

    fn legacy_call(
        &self,
        request: &Request,
        peer: Arc<McpPeer>,
        id: Value,
        method: String,
        params: Value,
    ) -> ServerCall {
        ServerCall {
            id,
            method,
            params,
            era: McpEra::Legacy,
            capabilities: peer.capabilities(),
            level: Some(peer.level().unwrap_or(McpLogLevel::Debug)),
            peer: Some(peer),
            origin: request.peer.ip().to_string(),
            _permit: request.permit.clone(),
        }
    }

    /// The session that a request belongs to, or why there is none.
    fn session(&self, request: &Request) -> Result<Arc<McpPeer>, (StatusCode, RpcFailure)> {
        let failed = |status, message| (status, RpcFailure::new(rpc::INVALID_REQUEST, message));
        if let Some(version) = request.header(header::PROTOCOL_VERSION)
            && !McpRevision::parse(version).is_some_and(McpRevision::has_sessions)
            && self.service.surface().version.as_deref() != Some(version)
        {
            let message = format!("the version {version} is not supported");
            return Err(failed(StatusCode::BAD_REQUEST, message));
        }
        let Some(id) = request.header(header::SESSION_ID) else {
            let message = "the session id is missing; start with `initialize`".to_owned();
            return Err(failed(StatusCode::BAD_REQUEST, message));
        };
        self.service
            .session(id)
            .ok_or_else(|| failed(StatusCode::NOT_FOUND, "there is no such session".to_owned()))
    }

    fn get(&self, request: &Request) -> Reply {
        if is_modern(request) {
            return not_allowed("POST");
        }
        let peer = match self.session(request) {
            Ok(peer) => peer,
            Err((status, failure)) => return refusal(status, &Value::Null, failure),
        };
        let (reply, writer) = Reply::events();
        let prime = peer.knows_priming();
        let last = request.header(header::LAST_EVENT_ID).and_then(parse_id);
        let resumed = last.is_some_and(|(number, event)| {
            peer.streams()
                .attach(number, Some(event), writer.clone(), prime)
        });
        if !resumed {
            peer.streams().attach(STANDALONE, None, writer, prime);
        }
        reply
    }

    fn delete(&self, request: &Request) -> Reply {
        if is_modern(request) {
            return not_allowed("POST");
        }
        match self.session(request) {
            Ok(peer) => {
                self.service.dismiss(&peer.id);
                Reply::empty(StatusCode::NO_CONTENT)
            }
            Err((status, failure)) => refusal(status, &Value::Null, failure),
        }
    }

    /// Answers a call: with JSON when there is only the answer, with a stream when more must be
    /// said.
    async fn answer(&self, call: ServerCall) -> Reply {
        let begun = self.service.begin(&call);
        let delivery = &begun.phase.delivery;
        let needs_stream = delivery.duplicate_ids || delivery.notification_flood.is_some();
        match &begun.work {
            RemainingWork::Ready(_) if !needs_stream => self.answer_whole(call, begun).await,
            RemainingWork::Ready(_) | RemainingWork::Play(_) | RemainingWork::Listen(_) => {
                self.answer_in_stream(call, begun)
            }
        }
    }

    async fn answer_whole(&self, call: ServerCall, mut begun: AcceptedRequest) -> Reply {
        let service = &self.service;
        let RemainingWork::Ready(outcome) = &begun.work else {
            return Reply::empty(StatusCode::INTERNAL_SERVER_ERROR);
        };
        let delivery = &begun.phase.delivery;
        if let Some(delay) = delivery.delay {
            tokio::select! {
                () = service.context.over().cancelled() => {}
                () = tokio::time::sleep(delay) => {}
            }
        }
        let status = StatusCode::from_u16(outcome.status()).unwrap_or(StatusCode::OK);
        let (text, message) = service.written(&call, &begun, outcome);
        if delivery.slow_stream.is_none() && !delivery.abrupt_close {
            let note = service.note(&begun, &call).numbered(message);
            let unread = note.handed_over();
            let advances = std::mem::take(&mut begun.advances);
            return Reply::json(status, text)
                .with_guard(advances)
                .with_unread(unread);
        }
        let (writer, body) = stream();
        let reply = Reply::json(status, "").with_body(ReplyBody::Stream(body));
        let background = Arc::clone(service);
        let started = service.spawn(async move {
            let delivery = &begun.phase.delivery;
            let note = background.note(&begun, &call).numbered(message);
            // A client that is gone was told nothing.
            let _ = write_body(writer, &text, &note, delivery, background.patience()).await;
        });
        if started { reply } else { busy() }
    }

    fn answer_in_stream(&self, call: ServerCall, begun: AcceptedRequest) -> Reply {
        let (reply, writer) = Reply::events();
        let service = Arc::clone(&self.service);
        let outlet = match (&call.era, &call.peer) {
            (McpEra::Legacy, Some(peer)) => MessageOutlet::Stream {
                number: peer.streams().open(writer.clone(), peer.knows_priming()),
                peer: Arc::clone(peer),
            },
            _ => MessageOutlet::Events(writer.clone()),
        };
        let started = self.service.spawn(async move {
            in_stream(&service, call, begun, &outlet, writer).await;
        });
        if started { reply } else { busy() }
    }

    /// Refuses a request that is a message all the same, and is recorded as one.
    fn refuse(
        &self,
        status: StatusCode,
        id: &Value,
        method: &str,
        params: &Value,
        failure: RpcFailure,
    ) -> Reply {
        let outcome = self.service.refused(method, params, failure);
        Reply::json(status, outcome.to_text(id))
    }
}

/// Whether a request without a body says that it is of the modern era.
fn is_modern(request: &Request) -> bool {
    let version = request.header(header::PROTOCOL_VERSION);
    version.and_then(McpEra::of_version) == Some(McpEra::Modern)
}

/// Plays a call on its stream. `writer` keeps nothing open: a stream that can be resumed lets go of
/// its connection on its own.
async fn in_stream(
    service: &Arc<McpServerService>,
    call: ServerCall,
    mut begun: AcceptedRequest,
    outlet: &MessageOutlet,
    writer: StreamWriter,
) {
    drop(writer);
    match std::mem::replace(&mut begun.work, RemainingWork::Listen(Value::Null)) {
        RemainingWork::Ready(outcome) => {
            let _ = service.reply(&call, &mut begun, outcome, outlet).await;
            outlet.end();
        }
        RemainingWork::Play(script) => service.play(&call, &mut begun, &script, outlet).await,
        RemainingWork::Listen(filter) => {
            begun.advances.clear();
            listen(service, &call, filter, outlet).await;
        }
    }
}

/// Tells a client of changes for as long as it listens.
pub(super) async fn listen(
    service: &Arc<McpServerService>,
    call: &ServerCall,
    filter: Value,
    outlet: &MessageOutlet,
) {
    // Cancelled as soon as the client can know of it.
    let token = call.peer.as_ref().and_then(|peer| peer.start(&call.id));
    let params = tag_params(&json!({"notifications": filter}), &call.id);
    let method = McpNotification::SubscriptionsAcknowledged.as_str();
    let phase = service.context.phase();
    service
        .context
        .sent(&phase, method, Direction::Response, &params, None);
    let text = rpc::notification(method, Some(&params)).to_string();
    let nothing = DeliveryNote::default();
    let told = outlet.send(&text, &nothing, service.patience()).await;
    if told.is_err() {
        return;
    }
    let listener = ChangeListener {
        subscription: call.id.clone(),
        filter,
        outlet: outlet.clone(),
    };
    if !service.listen(listener) {
        service.context.warn("too many clients listen for changes");
        return;
    }
    service.greet().await;
    let cancelled = async {
        match &token {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = cancelled => {}
        () = outlet.abandoned() => {}
    }
    service.stop_listening(&call.id, outlet);
}

fn refusal(status: StatusCode, id: &Value, failure: RpcFailure) -> Reply {
    Reply::json(status, CallReply::Error(failure).to_text(id))
}

fn busy() -> Reply {
    let failure = RpcFailure::new(rpc::INTERNAL_ERROR, "too many calls at a time");
    refusal(StatusCode::SERVICE_UNAVAILABLE, &Value::Null, failure)
}

fn not_allowed(allow: &str) -> Reply {
    Reply::empty(StatusCode::METHOD_NOT_ALLOWED).with_header("allow", allow)
}
