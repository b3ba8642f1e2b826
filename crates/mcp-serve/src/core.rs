//! What both transports share: sessions, calls that run, and the answers to requests.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use proofhouse_protocol::base64::{decode_url_safe, encode_url_safe};
use proofhouse_protocol::mcp::{McpEra, McpLogLevel, McpMethod, McpNotification, meta};
use proofhouse_protocol::rpc::{self, RpcFailure};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use super::protocol::{McpRequest, OperatorNotes, RequestResult, ServerInfo};
use super::session::{CallRefusal, McpSession, McpSessions, Underway, unguessable};
use super::streams::{ChangeSubscription, ServerOutlet, write_changes};
use super::tools::{McpAnswer, McpBackend, McpCall, ProgressSink, ToolScope};
use super::{McpServer, ServeLimits};

/// A server that runs.
pub(super) struct Core {
    pub(super) info: ServerInfo,
    pub(super) limits: ServeLimits,
    pub(super) notes: OperatorNotes,
    /// Cancelled when the server is to end.
    pub(super) stop: CancellationToken,
    backend: Arc<dyn McpBackend>,
    sessions: Mutex<McpSessions>,
    /// The session of everyone who speaks the modern protocol over HTTP.
    shared: Mutex<Option<Arc<McpSession>>>,
    calls: Arc<Semaphore>,
    listeners: Arc<Semaphore>,
    tasks: Mutex<JoinSet<()>>,
    told_of_eviction: AtomicBool,
}

/// What becomes of a request.
pub(super) enum RequestStart {
    /// It is answered already.
    Ready(RequestResult),
    /// It takes its time.
    Running(RunningCall),
    /// The client waits for changes until it goes.
    Listening(Listening),
}

/// A call that is under way.
pub(super) struct RunningCall {
    /// What it says on the way.
    pub(super) notes: mpsc::Receiver<Value>,
    /// What it comes to; nothing if it was cancelled, in which case there is no answer.
    pub(super) done: oneshot::Receiver<RequestResult>,
    /// Ends it early.
    pub(super) cancel: CancellationToken,
}

/// A client of the modern era that waits for changes.
pub(super) struct Listening {
    underway: Underway,
    /// Whether it wants to hear of changes to the list of tools.
    tools: bool,
    permit: OwnedSemaphorePermit,
}

impl Listening {
    /// Tells the client of changes until it goes, or cancels the request of this id.
    pub(super) async fn serve(self, outlet: &ServerOutlet, id: &Value) {
        let changes = self.underway.session.tools.changes();
        let subscription = ChangeSubscription::Request(id, self.tools);
        write_changes(outlet, changes, subscription, &self.underway.cancel).await;
        drop((self.underway, self.permit));
    }
}

impl Core {
    pub(super) fn new(server: McpServer, stop: CancellationToken) -> Self {
        let limits = server.limits;
        Self {
            info: server.info,
            notes: server.notes,
            backend: server.backend,
            stop,
            sessions: Mutex::default(),
            shared: Mutex::default(),
            calls: Arc::new(Semaphore::new(limits.max_calls)),
            listeners: Arc::new(Semaphore::new(limits.max_listeners)),
            tasks: Mutex::default(),
            told_of_eviction: AtomicBool::new(false),
            limits,
        }
    }

    /// Runs something that ends when the server does.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// A session for one client that is not found by an id.
    pub(super) fn connection(&self) -> Arc<McpSession> {
        let tools = self.backend.open(ToolScope::Session);
        Arc::new(McpSession::new(String::new(), tools, &self.stop))
    }

    /// The session of everyone who speaks the modern protocol.
    pub(super) fn shared(&self) -> Arc<McpSession> {
        let mut shared = lock(&self.shared);
        let session = shared.get_or_insert_with(|| {
            let tools = self.backend.open(ToolScope::Shared);
            Arc::new(McpSession::new(String::new(), tools, &self.stop))
        });
        session.touch();
        Arc::clone(session)
    }

    /// A new session that is found by its id, in the place of an idle one if there are too many.
    pub(super) fn admit(self: &Arc<Self>) -> Result<Arc<McpSession>, RpcFailure> {
        let unavailable = |why: &str| RpcFailure::new(rpc::INTERNAL_ERROR, why).with_status(503);
        let id = unguessable().ok_or_else(|| unavailable("there is no randomness"))?;
        let tools = self.backend.open(ToolScope::Session);
        let session = Arc::new(McpSession::new(id, tools, &self.stop));
        let added = lock(&self.sessions).add(&session, self.limits.max_sessions);
        match added {
            Ok(None) => {}
            Ok(Some(evicted)) => {
                // Once is enough: whoever floods us with sessions shall not flood the operator.
                if !self.told_of_eviction.swap(true, Ordering::Relaxed) {
                    (self.notes)("there are too many sessions: idle ones are ended to make room");
                }
                self.end_soon(evicted);
            }
            Err(_) => return Err(unavailable("too many sessions, and all of them are busy")),
        }
        Ok(session)
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<McpSession>> {
        let session = lock(&self.sessions).find(id)?;
        session.touch();
        Some(session)
    }

    /// Ends the session of an id; `false` if there is none.
    pub(super) fn dismiss(self: &Arc<Self>, id: &str) -> bool {
        let session = lock(&self.sessions).remove(id);
        session.map(|session| self.end_soon(session)).is_some()
    }

    /// Ends sessions that nobody uses any more.
    pub(super) fn sweep(self: &Arc<Self>) {
        let idle = lock(&self.sessions).take_idle(self.limits.idle);
        let shared = lock(&self.shared).take_if(|session| session.is_idle(self.limits.idle));
        for session in idle.into_iter().chain(shared) {
            self.end_soon(session);
        }
    }

    fn end_soon(self: &Arc<Self>, session: Arc<McpSession>) {
        session.ended.cancel();
        let core = Arc::clone(self);
        self.spawn(async move { core.end(&session).await });
    }

    /// Ends a session: its calls are cancelled and its tools closed.
    pub(super) async fn end(&self, session: &McpSession) {
        session.ended.cancel();
        let closed = tokio::time::timeout(self.limits.close * 2, session.tools.close()).await;
        if closed.is_err() {
            (self.notes)("the tools of a session did not close in time");
        }
    }

    /// Ends everything, and returns when nothing runs any more.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let mut sessions = lock(&self.sessions).take_all();
        sessions.extend(lock(&self.shared).take());
        futures_util::future::join_all(sessions.iter().map(|session| self.end(session))).await;
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        let ended = async { while tasks.join_next().await.is_some() {} };
        // Those that end sessions have the time that a session has.
        let _ = tokio::time::timeout(self.limits.close * 2, ended).await;
        tasks.shutdown().await;
    }

    /// Answers the legacy handshake.
    pub(super) fn initialize(&self, session: &McpSession, params: &Value) -> RequestResult {
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let Some(asked) = asked else {
            let message = "`protocolVersion` is missing";
            return Err(RpcFailure::new(rpc::INVALID_PARAMS, message));
        };
        if !session.initialize() {
            let message = "the session is initialized already";
            return Err(RpcFailure::new(rpc::INVALID_REQUEST, message));
        }
        Ok(self.info.initialized(asked))
    }

    /// Begins to answer any other request; those of the modern era were checked before. `by_id` says
    /// whether the ids of the session's requests are those of one client.
    pub(super) fn begin(
        self: &Arc<Self>,
        session: &Arc<McpSession>,
        request: &McpRequest,
        by_id: bool,
    ) -> RequestStart {
        let method = McpMethod::parse(&request.method)
            .filter(|method| method.exists_in(request.era.latest()));
        let answered = match method {
            Some(McpMethod::ToolsList) => self.run(session, request, by_id, Self::list),
            Some(McpMethod::ToolsCall) => match called(request) {
                Ok((name, arguments)) => self.run(session, request, by_id, move |core, running| {
                    core.call(running, name, arguments)
                }),
                Err(failure) => Err(failure),
            },
            Some(McpMethod::SubscriptionsListen) => self.listen(session, request, by_id),
            Some(McpMethod::ServerDiscover) => Ok(RequestStart::Ready(Ok(self.info.discovered()))),
            Some(McpMethod::Ping) => Ok(RequestStart::Ready(Ok(json!({})))),
            Some(McpMethod::LoggingSetLevel) => set_level(session, &request.params),
            Some(McpMethod::Initialize) => {
                let message = "the session is initialized already";
                Err(RpcFailure::new(rpc::INVALID_REQUEST, message))
            }
            // There are tools here, and nothing else.
            _ => {
                let failure = RpcFailure::new(rpc::METHOD_NOT_FOUND, "there is no such method");
                Err(match request.era {
                    McpEra::Legacy => failure,
                    McpEra::Modern => failure.with_status(404),
                })
            }
        };
        answered.unwrap_or_else(|failure| RequestStart::Ready(Err(failure)))
    }

    fn underway(
        &self,
        session: &Arc<McpSession>,
        request: &McpRequest,
        by_id: bool,
    ) -> Result<Underway, RpcFailure> {
        let (key, most) = if by_id {
            (Some(&request.id), self.limits.max_session_calls)
        } else {
            (None, self.limits.max_calls + self.limits.max_listeners)
        };
        session.begin(key, most).map_err(|refused| match refused {
            CallRefusal::SameId => RpcFailure::new(
                rpc::INVALID_REQUEST,
                "a request of the same id is under way",
            ),
            CallRefusal::TooMany => busy(),
            CallRefusal::Ended => RpcFailure::new(rpc::INVALID_REQUEST, "the session has ended"),
        })
    }

    /// Starts work of its own for a request.
    fn run<F, W>(
        self: &Arc<Self>,
        session: &Arc<McpSession>,
        request: &McpRequest,
        by_id: bool,
        work: F,
    ) -> Result<RequestStart, RpcFailure>
    where
        F: FnOnce(Arc<Self>, CallJob) -> W,
        W: Future<Output = RequestResult> + Send + 'static,
    {
        let underway = self.underway(session, request, by_id)?;
        let permit = Arc::clone(&self.calls).try_acquire_owned();
        let permit = permit.map_err(|_| busy())?;
        let level = match request.era {
            McpEra::Legacy => Some(session.level()),
            McpEra::Modern => request
                .meta(meta::LOG_LEVEL)
                .and_then(Value::as_str)
                .and_then(McpLogLevel::parse),
        };
        let token = request.meta(meta::PROGRESS_TOKEN);
        let token = token.filter(|token| token.is_string() || token.is_number());
        let (sink, notes) = ProgressSink::new(token.cloned(), level);
        let (answer, done) = oneshot::channel();
        let cancel = underway.cancel.clone();
        let job = CallJob {
            era: request.era,
            session: Arc::clone(session),
            params: request.params.clone(),
            cancel: cancel.clone(),
            sink,
        };
        let work = work(Arc::clone(self), job);
        let cancelled = cancel.clone();
        self.spawn(async move {
            let outcome = work.await;
            let is_cancelled = cancelled.is_cancelled();
            // The id is free before the client can know of the answer.
            drop((underway, permit));
            if !is_cancelled {
                let _ = answer.send(outcome);
            }
        });
        Ok(RequestStart::Running(RunningCall {
            notes,
            done,
            cancel,
        }))
    }

    async fn list(self: Arc<Self>, job: CallJob) -> RequestResult {
        let tools = job.session.tools.list(job.cancel.clone()).await;
        let from = match job.params.get("cursor") {
            None | Some(Value::Null) => 0,
            Some(cursor) => {
                let wrong =
                    || RpcFailure::new(rpc::INVALID_PARAMS, "the cursor is not one of ours");
                let from = read_cursor(cursor).ok_or_else(wrong)?;
                if from >= tools.len() {
                    return Err(wrong());
                }
                from
            }
        };
        let to = from
            .saturating_add(self.limits.page.max(1))
            .min(tools.len());
        let page: Vec<Value> = tools[from..to].iter().map(|tool| tool.to_json()).collect();
        let mut result = json!({"tools": page});
        if to < tools.len() {
            result["nextCursor"] = cursor(to).into();
        }
        Ok(match job.era {
            McpEra::Legacy => result,
            McpEra::Modern => self.info.cached(result),
        })
    }

    async fn call(
        self: Arc<Self>,
        job: CallJob,
        name: String,
        arguments: Map<String, Value>,
    ) -> RequestResult {
        let tools = Arc::clone(&job.session.tools);
        let stop = job.cancel.child_token();
        let mut calling = tools.call(McpCall {
            name,
            arguments,
            cancel: stop.clone(),
            sink: job.sink,
        });
        let answer = tokio::select! {
            answer = &mut calling => answer,
            () = patience(&job.cancel, &self.limits) => {
                if job.cancel.is_cancelled() {
                    return Ok(Value::Null);
                }
                stop.cancel();
                // Tools that clean up after themselves have some time for it.
                let _ = tokio::time::timeout(self.limits.close, &mut calling).await;
                Ok(too_long(self.limits.call))
            }
        };
        match answer {
            Ok(answer) => Ok(match job.era {
                McpEra::Legacy => answer.into_json(),
                McpEra::Modern => self.info.complete(answer.into_json()),
            }),
            Err(unknown) => {
                let failure = RpcFailure::new(rpc::INVALID_PARAMS, unknown.to_string());
                Err(match job.era {
                    McpEra::Legacy => failure,
                    McpEra::Modern => failure.with_status(400),
                })
            }
        }
    }

    fn listen(
        &self,
        session: &Arc<McpSession>,
        request: &McpRequest,
        by_id: bool,
    ) -> Result<RequestStart, RpcFailure> {
        let Some(Value::Object(filter)) = request.params.get("notifications") else {
            let message = "`notifications` must be an object";
            return Err(RpcFailure::bad_request(rpc::INVALID_PARAMS, message));
        };
        let key = McpNotification::ToolsListChanged.subscription();
        let tools = key.and_then(|key| filter.get(key)) == Some(&Value::Bool(true));
        let permit = Arc::clone(&self.listeners).try_acquire_owned();
        Ok(RequestStart::Listening(Listening {
            underway: self.underway(session, request, by_id)?,
            tools,
            permit: permit.map_err(|_| busy())?,
        }))
    }
}

/// What a call needs to know.
struct CallJob {
    era: McpEra,
    session: Arc<McpSession>,
    params: Value,
    cancel: CancellationToken,
    sink: ProgressSink,
}

/// Ends when a call has had its time: all of it, or what is left of it after it was cancelled.
async fn patience(cancel: &CancellationToken, limits: &ServeLimits) {
    let cancelled = tokio::time::timeout(limits.call, cancel.cancelled()).await;
    if cancelled.is_ok() {
        tokio::time::sleep(limits.close).await;
    }
}

/// The answer to a call that took all the time it may.
fn too_long(limit: std::time::Duration) -> McpAnswer {
    let error = json!({
        "error": "timeout",
        "message": format!("the call took longer than {} s", limit.as_secs()),
        "outcome_unknown": true,
    });
    McpAnswer::error(error.to_string())
}

/// The tool and the arguments of a call.
fn called(request: &McpRequest) -> Result<(String, Map<String, Value>), RpcFailure> {
    let wrong = |message: &str| match request.era {
        McpEra::Legacy => RpcFailure::new(rpc::INVALID_PARAMS, message),
        McpEra::Modern => RpcFailure::bad_request(rpc::INVALID_PARAMS, message),
    };
    let name = request.params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| wrong("`name` must be a text"))?;
    let arguments = match request.params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(wrong("`arguments` must be an object")),
    };
    Ok((name.to_owned(), arguments))
}

fn set_level(session: &McpSession, params: &Value) -> Result<RequestStart, RpcFailure> {
    let level = params.get("level").and_then(Value::as_str);
    let level = level
        .and_then(McpLogLevel::parse)
        .ok_or_else(|| RpcFailure::new(rpc::INVALID_PARAMS, "`level` is not one of the levels"))?;
    session.set_level(level);
    Ok(RequestStart::Ready(Ok(json!({}))))
}

fn cursor(position: usize) -> String {
    encode_url_safe(format!("tools:{position}").as_bytes())
}

fn read_cursor(cursor: &Value) -> Option<usize> {
    let bytes = decode_url_safe(cursor.as_str()?)?;
    let text = String::from_utf8(bytes).ok()?;
    text.strip_prefix("tools:")?.parse().ok()
}

fn busy() -> RpcFailure {
    let message = "too many calls at a time; wait for one to end";
    RpcFailure::new(rpc::INTERNAL_ERROR, message)
}
