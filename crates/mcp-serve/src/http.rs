//! Streamable HTTP, both eras on one endpoint.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_protocol::EVENT_STREAM;
use proofhouse_protocol::mcp::{McpEra, McpMethod, McpNotification, McpRevision, era_of, header};
use proofhouse_protocol::rpc::{self, RpcFailure, RpcMessage};
use proofhouse_wire::server::{BoundServer, Handler, Reply, Request as HttpRequest};
use proofhouse_wire::{Method, StatusCode, origin};
use serde_json::Value;

use super::PATH;
use super::core::{Core, RequestStart, RunningCall};
use super::envelope::{self, lookup};
use super::protocol::{McpRequest, RequestResult, response};
use super::session::McpSession;
use super::streams::{ChangeSubscription, ServerOutlet, write_call, write_changes};

/// How often sessions that nobody uses any more are looked for: ten times in the time they have, within
/// these bounds.
const SWEEP: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(30));

/// Serves until the server is to end.
pub(super) async fn serve(core: &Arc<Core>, bound: BoundServer) {
    let handler = McpHttp {
        core: Arc::clone(core),
        address: bound.address(),
    };
    let sweeping = async {
        loop {
            tokio::time::sleep((core.limits.idle / 10).clamp(SWEEP.0, SWEEP.1)).await;
            core.sweep();
        }
    };
    let serving = bound.serve(
        Arc::new(handler),
        core.limits.wire.clone(),
        core.stop.clone(),
    );
    tokio::select! {
        () = serving => {}
        () = sweeping => {}
    }
}

struct McpHttp {
    core: Arc<Core>,
    address: SocketAddr,
}

impl Handler for McpHttp {
    async fn handle(&self, request: HttpRequest) -> Reply {
        if request.path != PATH {
            return Reply::empty(StatusCode::NOT_FOUND);
        }
        if !origin::is_allowed(&request.headers, self.address) {
            let failure = RpcFailure::new(rpc::INVALID_REQUEST, "this origin is not allowed");
            return refuse(&failure.with_status(403));
        }
        match request.method {
            Method::POST => self.post(request).await,
            Method::GET => self.get(&request),
            Method::DELETE => self.delete(&request),
            _ => not_allowed("POST, GET, DELETE"),
        }
    }
}

impl McpHttp {
    async fn post(&self, request: HttpRequest) -> Reply {
        let body = match &request.body {
            Ok(body) => body,
            Err(problem) => {
                let failure = RpcFailure::new(rpc::INVALID_REQUEST, problem.to_string());
                return refuse(&failure.with_status(problem.status().as_u16()));
            }
        };
        let message = match rpc::parse(body) {
            Ok(message) => message,
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

    async fn post_legacy(&self, http: &HttpRequest, message: RpcMessage) -> Reply {
        let core = &self.core;
        if let RpcMessage::Request { id, method, params } = &message
            && method == McpMethod::Initialize.as_str()
        {
            return self.initialize(id, params);
        }
        let session = match self.session(http) {
            Ok(session) => session,
            Err(failure) => {
                let id = match &message {
                    RpcMessage::Request { id, .. } => id,
                    _ => &Value::Null,
                };
                return refuse_id(id, &failure);
            }
        };
        match message {
            RpcMessage::Request { id, method, params } => {
                let request = McpRequest {
                    era: McpEra::Legacy,
                    id,
                    method,
                    params,
                };
                let begun = core.begin(&session, &request, true);
                self.answer(http, request, begun).await
            }
            RpcMessage::Notification { method, params } => {
                if method == McpNotification::Cancelled.as_str()
                    && let Some(id) = params.get("requestId")
                {
                    session.cancel(id);
                }
                Reply::empty(StatusCode::ACCEPTED)
            }
            // Nobody was asked anything.
            RpcMessage::Response { .. } => Reply::empty(StatusCode::ACCEPTED),
        }
    }

    fn initialize(&self, id: &Value, params: &Value) -> Reply {
        if params.get("protocolVersion").is_none_or(|v| !v.is_string()) {
            let failure = RpcFailure::new(rpc::INVALID_PARAMS, "`protocolVersion` is missing");
            return refuse_id(id, &failure);
        }
        let session = match self.core.admit() {
            Ok(session) => session,
            Err(failure) => return refuse_id(id, &failure),
        };
        let outcome = self.core.initialize(&session, params);
        whole(id, outcome).with_header(header::SESSION_ID, &session.id)
    }

    async fn post_modern(&self, http: &HttpRequest, message: RpcMessage) -> Reply {
        let request = match message {
            RpcMessage::Request { id, method, params } => McpRequest {
                era: McpEra::Modern,
                id,
                method,
                params,
            },
            // A call is cancelled by closing its stream.
            RpcMessage::Notification { .. } => return Reply::empty(StatusCode::ACCEPTED),
            RpcMessage::Response { id, .. } => {
                let failure = RpcFailure::new(rpc::INVALID_REQUEST, "responses are not expected");
                return refuse_id(&id, &failure.with_status(400));
            }
        };
        if let Err(failure) = envelope::check(&request, Some(&http.headers)) {
            return refuse_id(&request.id, &failure);
        }
        let session = self.core.shared();
        if let Err(failure) = check_arguments(http, &session, &request) {
            return refuse_id(&request.id, &failure);
        }
        let begun = self.core.begin(&session, &request, false);
        self.answer(http, request, begun).await
    }

    /// The session that a request belongs to, or why there is none.
    fn session(&self, http: &HttpRequest) -> Result<Arc<McpSession>, RpcFailure> {
        if let Some(version) = lookup(&http.headers)(header::PROTOCOL_VERSION)
            && !McpRevision::parse(&version).is_some_and(McpRevision::has_sessions)
        {
            let message = "this version of the protocol is not supported";
            return Err(RpcFailure::bad_request(rpc::INVALID_REQUEST, message));
        }
        let Some(id) = http.header(header::SESSION_ID) else {
            let message = "the session id is missing; start with `initialize`";
            return Err(RpcFailure::bad_request(rpc::INVALID_REQUEST, message));
        };
        self.core.find(id).ok_or_else(|| {
            RpcFailure::new(rpc::INVALID_REQUEST, "there is no such session").with_status(404)
        })
    }

    fn get(&self, http: &HttpRequest) -> Reply {
        if is_modern(http) {
            return not_allowed("POST");
        }
        let session = match self.session(http) {
            Ok(session) => session,
            Err(failure) => return refuse(&failure),
        };
        if !accepts_events(http) {
            return Reply::empty(StatusCode::NOT_ACCEPTABLE);
        }
        let (reply, writer) = Reply::events();
        let outlet = ServerOutlet::Events(writer, self.core.limits.keep_alive);
        let over = session.listen();
        self.core.spawn(async move {
            let changes = session.tools.changes();
            write_changes(&outlet, changes, ChangeSubscription::Session, &over).await;
            session.stopped_listening(&over);
        });
        reply
    }

    fn delete(&self, http: &HttpRequest) -> Reply {
        if is_modern(http) {
            return not_allowed("POST");
        }
        match self.session(http) {
            Ok(session) => {
                self.core.dismiss(&session.id);
                Reply::empty(StatusCode::NO_CONTENT)
            }
            Err(failure) => refuse(&failure),
        }
    }

    /// Answers: with JSON if the answer is there soon and nothing is said before it, else with a stream.
    async fn answer(&self, http: &HttpRequest, request: McpRequest, begun: RequestStart) -> Reply {
        match begun {
            RequestStart::Ready(outcome) => whole(&request.id, outcome),
            RequestStart::Running(running) => self.answer_running(http, request, running).await,
            RequestStart::Listening(listening) => {
                let (reply, writer) = Reply::events();
                let outlet = ServerOutlet::Events(writer, self.core.limits.keep_alive);
                self.core
                    .spawn(async move { listening.serve(&outlet, &request.id).await });
                reply
            }
        }
    }

    async fn answer_running(
        &self,
        http: &HttpRequest,
        request: McpRequest,
        mut running: RunningCall,
    ) -> Reply {
        // A modern client that goes before the answer began cancels its call, too: this future is
        // dropped with its connection.
        let cancel = (request.era == McpEra::Modern).then(|| running.cancel.clone().drop_guard());
        let streams = accepts_events(http);
        let first = tokio::select! {
            biased;
            done = &mut running.done => Err(done),
            Some(note) = running.notes.recv(), if streams => Ok(Some(note)),
            () = tokio::time::sleep(self.core.limits.stream_after), if streams => Ok(None),
        };
        if let Some(guard) = cancel {
            guard.disarm();
        }
        let (reply, writer) = match first {
            Err(Ok(outcome)) if !streams || running.notes.is_empty() => {
                return whole(&request.id, outcome);
            }
            Err(Err(_)) => {
                // The call was cancelled, so there is no answer: a stream that ends.
                return Reply::events().0;
            }
            _ => Reply::events(),
        };
        let outlet = ServerOutlet::Events(writer, self.core.limits.keep_alive);
        self.core.spawn(async move {
            match first {
                Ok(Some(note)) if outlet.send(&note).await.is_err() => {
                    if request.era == McpEra::Modern {
                        running.cancel.cancel();
                    }
                }
                Err(Ok(outcome)) => {
                    while let Ok(note) = running.notes.try_recv() {
                        if outlet.send(&note).await.is_err() {
                            return;
                        }
                    }
                    let _ = outlet.send(&response(&request.id, outcome)).await;
                }
                _ => write_call(&outlet, request.era, &request.id, running).await,
            }
        });
        reply
    }
}

/// Checks arguments that travel in headers, too. Who has not seen the list cannot know of them.
fn check_arguments(
    http: &HttpRequest,
    session: &McpSession,
    request: &McpRequest,
) -> Result<(), RpcFailure> {
    let name = request.params.get("name").and_then(Value::as_str);
    let name = name.filter(|_| request.method == McpMethod::ToolsCall.as_str());
    let arguments = request.params.get("arguments").unwrap_or(&Value::Null);
    match name.and_then(|name| session.tools.listed(name)) {
        Some(tool) => envelope::check_arguments(&http.headers, &tool.input_schema, arguments),
        None => Ok(()),
    }
}

fn is_modern(http: &HttpRequest) -> bool {
    let version = http.header(header::PROTOCOL_VERSION);
    version.and_then(McpEra::of_version) == Some(McpEra::Modern)
}

/// Whether the client reads event streams. One that does not say takes anything.
fn accepts_events(http: &HttpRequest) -> bool {
    let mut accepted = http.headers.get_all("accept").iter().peekable();
    accepted.peek().is_none()
        || accepted.any(|value| {
            let value = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
            [EVENT_STREAM, "text/*", "*/*"]
                .iter()
                .any(|kind| value.contains(kind))
        })
}

fn whole(id: &Value, outcome: RequestResult) -> Reply {
    let status = match &outcome {
        Ok(_) => StatusCode::OK,
        Err(failure) => status_of(failure),
    };
    Reply::json(status, rpc::to_text(&response(id, outcome)))
}

fn status_of(failure: &RpcFailure) -> StatusCode {
    StatusCode::from_u16(failure.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn refuse(failure: &RpcFailure) -> Reply {
    refuse_id(&Value::Null, failure)
}

fn refuse_id(id: &Value, failure: &RpcFailure) -> Reply {
    Reply::json(status_of(failure), rpc::to_text(&failure.to_response(id)))
}

fn not_allowed(allow: &str) -> Reply {
    Reply::empty(StatusCode::METHOD_NOT_ALLOWED).with_header("allow", allow)
}
