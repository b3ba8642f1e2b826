//! MCP over HTTP: the guard is a reverse proxy in front of one server, for both eras of the protocol.
//!
//! A request is judged before it is sent, an answer before it is passed on: JSON as a whole, a stream event by event, so
//! what passes is passed at once and in order. Only the server's own path and well-known documents are reachable.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proofhouse_protocol::a2a::card;
use proofhouse_protocol::mcp::error::HEADER_MISMATCH;
use proofhouse_protocol::mcp::{McpMethod, check_repeated_headers, header};
use proofhouse_protocol::rpc;
use proofhouse_wire::client::{Client, ClientError, StreamedResponse};
use proofhouse_wire::server::{Handler, Reply, ReplyBody, Request, StreamWriter, stream};
use proofhouse_wire::sse::SseEvent;
use proofhouse_wire::sync::lock;
use proofhouse_wire::{Bytes, HeaderMap, HeaderValue, Method, StatusCode, Url, origin};
use serde_json::Value;

use super::agent_card::{AgentPlaces, CardRefusal};
use super::asker::PersonAsker;
use super::events::{RawEvent, RawEvents};
use super::sign_in::{SignIn, whole};
use crate::engine::{
    BLOCKED, CardRewriteError, GuardAction, GuardProtocol, GuardSession, MessageFrom, Passage,
    TextPassage,
};
use crate::pins::{CardKind, LockFileError};
use crate::share::{SessionGroup, SessionShare};

/// The header of a redirect that says where to.
const LOCATION: &str = "location";

/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// Headers that belong to one connection, or that the guard sets itself.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    // What is compressed cannot be judged.
    "accept-encoding",
    // Another service of the server is past the guard.
    "alt-svc",
];

/// How many sessions are remembered; the oldest are forgotten, and begin anew when they come back.
const MAX_SESSIONS: usize = 1000;

/// Why nothing can be guarded.
#[derive(Debug, thiserror::Error)]
pub enum HttpGuardError {
    /// The address cannot be used.
    #[error("{0}: give the http or https address of an MCP server")]
    Url(String),
    /// The lock cannot be used.
    #[error(transparent)]
    Lock(#[from] LockFileError),
}

/// A redirect that leads past the guard.
#[derive(Debug, thiserror::Error)]
#[error("the server redirects to {0}; start the guard with that address")]
struct LeadsPast(String);

type SharedGuard = Arc<Mutex<GuardSession>>;
type MakeSession = dyn Fn() -> Result<GuardSession, LockFileError> + Send + Sync;

/// The proxy.
pub struct HttpGuard(Arc<HttpProxy>);

struct HttpProxy {
    upstream: Url,
    address: SocketAddr,
    client: Client,
    make: Box<MakeSession>,
    asker: Option<Arc<PersonAsker>>,
    max_message_bytes: usize,
    sessions: Mutex<GuardSessions>,
    exchanges: AtomicU64,
    sign_in: SignIn,
    /// Where messages go, if the server is an agent of A2A.
    agent: Option<Arc<AgentPlaces>>,
    /// The sessions that know what those of this guard learn.
    group: Option<SessionGroup>,
    /// The guards of other servers that do.
    share: Option<SessionShare>,
}

/// Sessions by their id, and when each was begun. Stateless clients share the one without an id.
#[derive(Default)]
struct GuardSessions {
    by_id: BTreeMap<String, (u64, SharedGuard)>,
    begun: u64,
}

impl GuardSessions {
    fn insert(&mut self, id: String, session: SharedGuard) {
        self.begun += 1;
        self.by_id.insert(id, (self.begun, session));
        if self.by_id.len() > MAX_SESSIONS {
            let oldest = self.by_id.iter().min_by_key(|(_, (begun, _))| *begun);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.by_id.remove(&oldest);
            }
        }
    }
}

/// A request under way.
struct HttpExchange {
    number: u64,
    session: SharedGuard,
    group: Option<SessionGroup>,
}

impl HttpExchange {
    fn with<T>(&self, work: impl FnOnce(&mut GuardSession) -> T) -> T {
        let done = work(&mut lock(&self.session));
        // Before the client or the server gets anything.
        if let Some(group) = &self.group {
            group.tell(&self.session);
        }
        done
    }

    fn judge(&self, from: MessageFrom, text: &[u8]) -> Passage {
        self.with(|session| session.judge_in(self.number, from, text))
    }

    /// Headers repeat what the body says, and some servers read them alone. Clients of older revisions send none.
    fn check_headers(&self, headers: &HeaderMap, body: &[u8]) -> Result<(), Box<Reply>> {
        let repeated = headers.iter().filter(|(name, _)| {
            let name = name.as_str();
            matches!(name, header::METHOD | header::NAME) || name.starts_with(header::PARAM_PREFIX)
        });
        let repeated: Vec<(&str, &[u8])> = repeated
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        if repeated.is_empty() {
            return Ok(());
        }
        // What cannot be read is told by who judges it.
        let Ok(message) = serde_json::from_slice::<Value>(body) else {
            return Ok(());
        };
        check_repeated_headers(repeated, &message).map_err(|mismatch| {
            let reason = mismatch.to_string();
            self.with(|session| session.refused(&reason));
            let id = message.get("id").cloned().unwrap_or_default();
            let error = rpc::error(&id, HEADER_MISMATCH, &reason, None);
            Box::new(Reply::json(StatusCode::BAD_REQUEST, rpc::to_text(&error)))
        })
    }

    /// Whether a request waits for an answer.
    fn waits(&self) -> bool {
        self.with(|session| session.waits_in(self.number))
    }
}

/// An ask that must not stay open when nobody waits for its answer any more.
struct OpenAsk<'e> {
    exchange: &'e HttpExchange,
    number: u64,
}

impl Drop for OpenAsk<'_> {
    fn drop(&mut self) {
        // One that was answered is none any more.
        self.exchange.with(|session| session.expire(self.number));
    }
}

impl HttpGuard {
    /// A guard in front of a server, which clients reach at `address`. `make` makes the state of a session; what one of a `group`
    /// learns, all know.
    ///
    /// # Errors
    ///
    /// Returns an error when the address of the server or the lock cannot be used.
    pub fn new(
        upstream: &str,
        address: SocketAddr,
        client: Client,
        asker: Option<Arc<PersonAsker>>,
        make: Box<MakeSession>,
        group: Option<SessionGroup>,
    ) -> Result<Self, HttpGuardError> {
        let url = Url::parse(upstream).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let upstream = url.ok_or_else(|| HttpGuardError::Url(upstream.to_owned()))?;
        let sign_in = SignIn::new(address, upstream.origin().ascii_serialization());
        // A lock that cannot be used is told now, not at the first request.
        let agent = match make()?.protocol() {
            GuardProtocol::Mcp => None,
            GuardProtocol::A2a => {
                let own = sign_in.own().to_owned();
                Some(Arc::new(AgentPlaces::new(upstream.clone(), own)))
            }
        };
        Ok(Self(Arc::new(HttpProxy {
            upstream,
            address,
            client,
            make,
            asker,
            max_message_bytes: super::ProxyLimits::default().max_message_bytes,
            sessions: Mutex::default(),
            exchanges: AtomicU64::new(1),
            sign_in,
            agent,
            group,
            share: None,
        })))
    }

    /// The same together with the guards of other servers, with which the group of this one shares a session.
    pub(crate) fn with_partners(self, share: Option<SessionShare>) -> Self {
        // Nobody else has it yet.
        Self(match Arc::try_unwrap(self.0) {
            Ok(proxy) => Arc::new(HttpProxy { share, ..proxy }),
            Err(shared) => shared,
        })
    }

    /// Where clients reach the server through the guard.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.0.sign_in.own(), self.0.upstream.path())
    }
}

impl Handler for HttpGuard {
    async fn handle(&self, request: Request) -> Reply {
        let reply = self.reply(request).await;
        self.0.tell_partners().await;
        reply
    }
}

impl HttpGuard {
    async fn reply(&self, request: Request) -> Reply {
        let proxy = Arc::clone(&self.0);
        if !origin::is_allowed(&request.headers, proxy.address) {
            return refused(
                StatusCode::FORBIDDEN,
                "this host or origin may not use the guard",
            );
        }
        if let Some(asked) = SignIn::request(&request.path) {
            return proxy.sign_in.answer(&proxy.client, asked, request).await;
        }
        if let Some(reply) = proxy.sign_in.arrived(&request) {
            return reply;
        }
        if let Some(agent) = &proxy.agent {
            return match request.method {
                Method::GET if card::is_at(&request.path) => proxy.card(request, agent).await,
                Method::POST if agent.takes(&request.path) => {
                    Arc::clone(&proxy).exchange(request).await
                }
                _ => refused(StatusCode::NOT_FOUND, "the guarded agent is not here"),
            };
        }
        let is_server = request.path == proxy.upstream.path();
        match request.method {
            Method::GET if proxy.sign_in.is_document(&request.path) => {
                proxy.well_known(request).await
            }
            Method::POST | Method::GET | Method::DELETE if is_server => {
                proxy.exchange(request).await
            }
            _ if is_server => refused(StatusCode::METHOD_NOT_ALLOWED, "MCP has no such method"),
            _ => refused(
                StatusCode::NOT_FOUND,
                "the guarded server is not at this path",
            ),
        }
    }
}

impl HttpProxy {
    fn lock_sessions<T>(&self, work: impl FnOnce(&mut GuardSessions) -> T) -> T {
        work(&mut lock(&self.sessions))
    }

    /// The address of the same request at the server.
    fn target(&self, request: &Request) -> String {
        let mut url = self.upstream.clone();
        url.set_path(&request.path);
        match (&request.query, self.upstream.query()) {
            (Some(query), _) => url.set_query(Some(query)),
            (None, own) => url.set_query(own.filter(|_| request.path == self.upstream.path())),
        }
        url.to_string()
    }

    /// Partners know what was learned before anybody here acts on it.
    async fn tell_partners(&self) {
        if let Some(share) = &self.share {
            share.tell().await;
        }
    }

    async fn exchange(self: Arc<Self>, request: Request) -> Reply {
        let session = match self.session_of(&request) {
            Ok(session) => session,
            Err(error) => {
                return failed(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    &Value::Null,
                    &error.to_string(),
                );
            }
        };
        let exchange = HttpExchange {
            number: self.exchanges.fetch_add(1, Ordering::Relaxed),
            session,
            group: self.group.clone(),
        };
        let body = match &request.body {
            Ok(body) => body.clone(),
            Err(problem) => {
                exchange.with(|session| session.refused(&problem.to_string()));
                return failed(problem.status(), &Value::Null, &problem.to_string());
            }
        };
        let mut headers = passed_on(&request.headers);
        if self.agent.is_some() && exchange.with(|session| session.takes_card()) {
            self.compare_card(&exchange, &headers).await;
        }
        let body = if request.method == Method::POST {
            if self.agent.is_none()
                && let Err(reply) = exchange.check_headers(&request.headers, &body)
            {
                return *reply;
            }
            match self.judge_request(&exchange, body, &mut headers).await {
                Ok(body) => body,
                Err(reply) => return *reply,
            }
        } else {
            // A stream is asked for and a session is ended without words, and what nobody judges does not pass.
            Bytes::new()
        };
        let target = self.target(&request);
        self.tell_partners().await;
        let sent = self
            .client
            .send(request.method.clone(), &target, headers, body);
        match sent.await {
            Ok(response) => {
                self.note_session(&request, &response, &exchange);
                self.answer(exchange, &target, response).await
            }
            Err(error) => unanswered(&exchange, &error),
        }
    }

    /// A session that has seen nothing.
    fn begin(&self) -> Result<GuardSession, LockFileError> {
        let session = (self.make)()?;
        Ok(match &self.agent {
            Some(agent) => {
                let agent = Arc::clone(agent);
                session.with_card_rewriter(Box::new(move |card| {
                    agent
                        .rewrite(card)
                        .map_err(|problem| CardRewriteError(problem.to_string()))
                }))
            }
            None => session,
        })
    }

    /// The session that a request belongs to. `initialize` begins a new one.
    fn session_of(&self, request: &Request) -> Result<SharedGuard, LockFileError> {
        let id = request.header(SESSION);
        if id.is_none() && is_initialize(request) {
            return self.new_session();
        }
        let id = id.unwrap_or_default().to_owned();
        self.lock_sessions(|sessions| {
            if let Some((_, session)) = sessions.by_id.get(&id) {
                return Ok(Arc::clone(session));
            }
            let session = self.new_session()?;
            sessions.insert(id, Arc::clone(&session));
            Ok(session)
        })
    }

    fn new_session(&self) -> Result<SharedGuard, LockFileError> {
        let session = Arc::new(Mutex::new(self.begin()?));
        if let Some(group) = &self.group {
            group.join(&session);
        }
        Ok(session)
    }

    /// Remembers a session that the server began, and forgets one that the client ended.
    fn note_session(
        &self,
        request: &Request,
        response: &StreamedResponse,
        exchange: &HttpExchange,
    ) {
        let asked = request.header(SESSION).unwrap_or_default();
        self.lock_sessions(|sessions| {
            if request.method == Method::DELETE && response.status.is_success() {
                sessions.by_id.remove(asked);
            } else if asked.is_empty() && is_initialize(request) {
                let id = response.header(SESSION).unwrap_or_default();
                if !id.is_empty() || !sessions.by_id.contains_key(id) {
                    sessions.insert(id.to_owned(), Arc::clone(&exchange.session));
                }
            }
        });
    }

    /// What is sent to the server, or what the client gets instead.
    async fn judge_request(
        &self,
        exchange: &HttpExchange,
        body: Bytes,
        headers: &mut HeaderMap,
    ) -> Result<Bytes, Box<Reply>> {
        let actions = match exchange.judge(MessageFrom::Client, &body) {
            Passage::Pass => return Ok(body),
            Passage::Instead(actions) => actions,
        };
        let (actions, is_asked) = self.asked(exchange, actions).await;
        let (mut to_server, mut to_client): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for action in actions {
            match action {
                GuardAction::ToServer(text) => to_server.push(text),
                GuardAction::ToClient(text) => to_client.push(text),
                GuardAction::Await(_) | GuardAction::Question { .. } => {}
            }
        }
        match (to_server.pop(), one_body(&to_client)) {
            (Some(text), None) => {
                if !is_asked {
                    // They repeat what was taken out.
                    let names: Vec<_> = headers.keys().cloned().collect();
                    let repeated = names
                        .iter()
                        .filter(|name| name.as_str().starts_with(header::PARAM_PREFIX));
                    for name in repeated {
                        headers.remove(name);
                    }
                }
                Ok(text.into())
            }
            // Half of a batch could be sent; the answers would have to be woven into those of the server.
            (Some(_), Some(_)) => {
                exchange.with(|session| {
                    session.exchange_failed(exchange.number, "the batch did not pass")
                });
                let reason = "a message of this batch did not pass, so none did";
                Err(Box::new(failed(
                    StatusCode::BAD_REQUEST,
                    &Value::Null,
                    reason,
                )))
            }
            (None, Some(text)) => Err(Box::new(Reply::json(StatusCode::OK, text))),
            (None, None) => Err(Box::new(Reply::empty(StatusCode::ACCEPTED))),
        }
    }

    /// Asks the person about what is held, if anything is: what follows from the answer takes its place.
    async fn asked(
        &self,
        exchange: &HttpExchange,
        actions: Vec<GuardAction>,
    ) -> (Vec<GuardAction>, bool) {
        let question = actions.iter().find_map(|action| match action {
            GuardAction::Question { number, text } => Some((*number, text.clone())),
            _ => None,
        });
        let Some((number, text)) = question else {
            return (actions, false);
        };
        let time = exchange.with(|session| session.ask_timeout());
        // A client that hangs up takes this request with it, wherever it waits.
        let _open = OpenAsk { exchange, number };
        let allowed = match &self.asker {
            Some(asker) => asker.ask(&text, time).await,
            None => Some(false),
        };
        let actions = exchange.with(|session| match allowed {
            Some(allowed) => session.answer(number, allowed),
            None => session.expire(number),
        });
        (actions, true)
    }

    /// Leads a redirect through the guard; a client would follow it straight to the server, past the guard. `is_served` says
    /// which paths of the server the guard answers at.
    fn lead_through(
        &self,
        from: &str,
        (status, headers): (StatusCode, &mut HeaderMap),
        is_served: impl Fn(&str) -> bool,
    ) -> Result<(), LeadsPast> {
        let Some(location) = headers.get(LOCATION).filter(|_| status.is_redirection()) else {
            return Ok(());
        };
        let target = location.to_str().ok().and_then(|text| {
            let from = Url::parse(from).ok()?;
            from.join(text).ok()
        });
        let Some(target) = target else {
            return Err(LeadsPast(
                String::from_utf8_lossy(location.as_bytes()).into_owned(),
            ));
        };
        if target.origin() != self.upstream.origin() || !is_served(target.path()) {
            return Err(LeadsPast(without_secrets(target)));
        }
        let query = target.query().map(|query| format!("?{query}"));
        let through = format!(
            "{}{}{}",
            self.sign_in.own(),
            target.path(),
            query.unwrap_or_default()
        );
        // What a URL is made of may stand in a header.
        match through.parse() {
            Ok(value) => {
                headers.insert(LOCATION, value);
                Ok(())
            }
            Err(_) => Err(LeadsPast(through)),
        }
    }

    async fn answer(
        self: Arc<Self>,
        exchange: HttpExchange,
        target: &str,
        response: StreamedResponse,
    ) -> Reply {
        let (status, mut headers) = (response.status, passed_on(&response.headers));
        let path = self.upstream.path();
        self.sign_in.rewrite_challenges(&mut headers, path);
        let is_served = |to: &str| match &self.agent {
            Some(agent) => agent.takes(to),
            None => to == path,
        };
        if let Err(past) = self.lead_through(target, (status, &mut headers), is_served) {
            exchange.with(|session| session.redirected(&past.to_string()));
            return unanswerable(&exchange, &past.to_string());
        }
        let mut encodings = response.headers.get_all("content-encoding").iter();
        if !encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return unanswerable(
                &exchange,
                "the answer is compressed, so it cannot be judged",
            );
        }
        if !response.headers.get_all("content-type").iter().all(is_utf8) {
            return unanswerable(
                &exchange,
                "the answer is not in UTF-8, so it cannot be judged",
            );
        }
        if response.is_event_stream() {
            let (writer, body) = stream();
            tokio::spawn(async move { self.pass_events(exchange, response, writer).await });
            return with_headers(Reply::empty(status), headers).with_body(ReplyBody::Stream(body));
        }
        let is_json = response
            .header("content-type")
            .is_some_and(|kind| kind.contains("json"));
        let body = match response.bytes().await {
            Ok(body) => body,
            Err(error) => return unanswered(&exchange, &error),
        };
        let reply = with_headers(Reply::empty(status), headers);
        let is_blank = body.iter().all(u8::is_ascii_whitespace);
        if is_blank {
            exchange.with(|session| session.exchange_ended(exchange.number));
            return reply.with_body(ReplyBody::Whole(body));
        }
        let waits = exchange.waits();
        if (!status.is_success() && !is_message(&body)) || !(waits || is_json && is_message(&body))
        {
            let judged = exchange.with(|session| {
                session.judge_text(exchange.number, &String::from_utf8_lossy(&body))
            });
            let body = match judged {
                TextPassage::Pass => body,
                TextPassage::Redacted(text) => text.into(),
                TextPassage::Withheld(why) if waits => return unanswerable(&exchange, &why),
                // The status says what there is to say.
                TextPassage::Withheld(_) => Bytes::new(),
            };
            exchange.with(|session| session.exchange_ended(exchange.number));
            return reply.with_body(ReplyBody::Whole(body));
        }
        if !is_json {
            return unanswerable(
                &exchange,
                "the answer is neither JSON nor a stream of events",
            );
        }
        let judged = match exchange.judge(MessageFrom::Server, &body) {
            Passage::Pass => body,
            Passage::Instead(actions) => {
                let (actions, _) = self.asked(&exchange, actions).await;
                match one_body(&to_client(actions)) {
                    Some(text) => text.into(),
                    None => return unanswerable(&exchange, "the answer did not pass"),
                }
            }
        };
        exchange.with(|session| session.exchange_ended(exchange.number));
        reply.with_body(ReplyBody::Whole(judged))
    }

    /// Passes a stream on, event by event.
    async fn pass_events(
        &self,
        exchange: HttpExchange,
        mut response: StreamedResponse,
        writer: StreamWriter,
    ) {
        let mut events = RawEvents::new(self.max_message_bytes);
        let mut has_ids = false;
        loop {
            let piece = tokio::select! {
                piece = response.piece() => piece,
                () = writer.closed() => break,
            };
            match piece {
                Ok(Some(piece)) => events.push(&piece),
                Ok(None) => {
                    // A client that waits for its answer would wait for ever.
                    if exchange.with(|session| session.lacks_answer_in(exchange.number)) {
                        let why = "the server ended its stream without an answer";
                        self.tell_broken_off(&exchange, why, has_ids, &writer).await;
                        return;
                    }
                    break;
                }
                Err(error) => {
                    let why = format!("the server broke off: {error}");
                    let told = self.tell_broken_off(&exchange, &why, has_ids, &writer);
                    if !told.await {
                        writer.cut().await;
                    }
                    return;
                }
            }
            loop {
                let sent = match events.next() {
                    Ok(Some(raw)) => {
                        has_ids |= raw.event.as_ref().is_some_and(|event| event.id.is_some());
                        let judged = tokio::select! {
                            judged = self.judged_event(&exchange, raw) => judged,
                            // It takes a question that nobody answered yet with it.
                            () = writer.closed() => break,
                        };
                        self.tell_partners().await;
                        match judged {
                            Some(bytes) => writer.write(bytes).await,
                            None => continue,
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        // What comes after it cannot be told from it.
                        let why = error.to_string();
                        let number = exchange.number;
                        let actions =
                            exchange.with(|session| session.exchange_failed(number, &why));
                        for text in to_client(actions) {
                            let event = SseEvent::data(text);
                            let _ = writer.write(event.encode()).await;
                        }
                        return;
                    }
                };
                if sent.is_err() {
                    break;
                }
            }
        }
        exchange.with(|session| session.exchange_ended(exchange.number));
    }

    /// The bytes that are sent for an event, if any are.
    async fn judged_event(&self, exchange: &HttpExchange, raw: RawEvent) -> Option<Bytes> {
        let RawEvent { bytes, event } = raw.unequivocal()?;
        let Some(event) = event.filter(|event| !event.data.is_empty()) else {
            return Some(bytes.into());
        };
        if event.event.as_deref().is_some_and(|name| name != "message") {
            exchange
                .with(|session| session.refused("an event that is no message of MCP did not pass"));
            return None;
        }
        match exchange.judge(MessageFrom::Server, event.data.as_bytes()) {
            Passage::Pass => Some(bytes.into()),
            Passage::Instead(actions) => {
                let (actions, _) = self.asked(exchange, actions).await;
                let texts = to_client(actions).into_iter();
                let events = texts.map(|data| {
                    SseEvent {
                        data,
                        ..event.clone()
                    }
                    .encode()
                });
                Some(events.collect::<String>())
                    .filter(|text| !text.is_empty())
                    .map(Bytes::from)
            }
        }
    }

    /// Tells the client that a stream has no more answers. Returns whether it was told.
    async fn tell_broken_off(
        &self,
        exchange: &HttpExchange,
        why: &str,
        has_ids: bool,
        writer: &StreamWriter,
    ) -> bool {
        // A stream with ids can be taken up again.
        if has_ids || !exchange.waits() {
            exchange.with(|session| session.exchange_ended(exchange.number));
            return false;
        }
        let actions = exchange.with(|session| session.exchange_failed(exchange.number, why));
        for text in to_client(actions) {
            let _ = writer.write(SseEvent::data(text).encode()).await;
        }
        true
    }

    /// Looks at the card of an agent before the first message of a session: a client may know one from before, or want none. What
    /// is found counts for the messages.
    async fn compare_card(&self, exchange: &HttpExchange, headers: &HeaderMap) {
        let mut headers = headers.clone();
        headers.remove("content-type");
        let mut at = self.upstream.clone();
        at.set_query(None);
        let below = format!("{}/", at.path().trim_end_matches('/'));
        for path in [&*below, "/"] {
            for name in [card::PATH, card::OLD_PATH] {
                at.set_path(&format!("{path}{name}"));
                let sent = self
                    .client
                    .send(Method::GET, at.as_str(), headers.clone(), Bytes::new())
                    .await;
                let Ok(response) = sent else { continue };
                if !response.status.is_success() {
                    continue;
                }
                let body = response.bytes().await.unwrap_or_default();
                if let Ok(card) = serde_json::from_slice(&body) {
                    self.ask_about_card(exchange, &card).await;
                    exchange.with(|session| session.first_card(&card));
                    return;
                }
            }
        }
        exchange.with(GuardSession::no_card);
    }

    /// Asks about a card that nobody approved, if the policy says so.
    async fn ask_about_card(&self, exchange: &HttpExchange, card: &Value) {
        let asked = exchange.with(|session| session.ask_about_public_card(card));
        self.asked(exchange, asked).await;
    }

    /// What the server has at an address, whole, or what the client is told instead.
    async fn read_whole(
        &self,
        target: &str,
        request: &Request,
    ) -> Result<(Reply, Bytes), Box<Reply>> {
        let headers = passed_on(&request.headers);
        let sent = self
            .client
            .send(Method::GET, target, headers, Bytes::new())
            .await;
        match sent {
            Ok(response) => whole(response).await,
            Err(error) => Err(Box::new(refused(
                StatusCode::BAD_GATEWAY,
                &error.to_string(),
            ))),
        }
    }

    /// The card of an agent: compared with the lock, and passed on with addresses of the guard.
    async fn card(&self, request: Request, agent: &AgentPlaces) -> Reply {
        let target = self.target(&request);
        let (mut reply, body) = match self.read_whole(&target, &request).await {
            Ok(answer) => answer,
            Err(reply) => return *reply,
        };
        if let Err(past) =
            self.lead_through(&target, (reply.status, &mut reply.headers), card::is_at)
        {
            self.note_redirect(&request, &past);
            return refused(StatusCode::BAD_GATEWAY, &past.to_string());
        }
        if !reply.status.is_success() {
            return reply.with_body(ReplyBody::Whole(body));
        }
        // It is another text than the one that these are about.
        for name in ["etag", "content-digest", "digest", "repr-digest"] {
            reply.headers.remove(name);
        }
        match self.judged_card(&request, agent, &body).await {
            Ok(card) => reply.with_body(ReplyBody::Whole(card.to_string().into())),
            Err(refusal) => refused(StatusCode::BAD_GATEWAY, &refusal.to_string()),
        }
    }

    async fn judged_card(
        &self,
        request: &Request,
        agent: &AgentPlaces,
        body: &[u8],
    ) -> Result<Value, CardRefusal> {
        let card: Value = serde_json::from_slice(body)?;
        let exchange = HttpExchange {
            number: 0,
            session: self.session_of(request)?,
            group: self.group.clone(),
        };
        self.ask_about_card(&exchange, &card).await;
        let judged = exchange.with(|session| session.judge_card(CardKind::Public, &card));
        if let Some(reason) = judged? {
            return Err(CardRefusal::Withheld(reason));
        }
        agent.rewrite(card).map_err(|problem| {
            exchange.with(|session| session.refused(&problem.to_string()));
            problem.into()
        })
    }

    /// Tells of a redirect outside of the protocol.
    fn note_redirect(&self, request: &Request, past: &LeadsPast) {
        // A lock that cannot be used is told at the next message.
        if let Ok(session) = self.session_of(request) {
            let mut session = lock(&session);
            session.redirected(&past.to_string());
        }
    }

    /// A document about the server. Clients check that its `resource` is the address that they use.
    async fn well_known(&self, request: Request) -> Reply {
        let target = self.target(&request);
        let (mut reply, body) = match self.read_whole(&target, &request).await {
            Ok(answer) => answer,
            Err(reply) => return *reply,
        };
        let is_document = |path: &str| self.sign_in.is_document(path);
        if let Err(past) =
            self.lead_through(&target, (reply.status, &mut reply.headers), is_document)
        {
            self.note_redirect(&request, &past);
            // Clients look for such documents in several places.
            return refused(StatusCode::NOT_FOUND, &past.to_string());
        }
        let document = self.sign_in.document(&self.client, &body).await;
        reply.with_body(ReplyBody::Whole(document.map_or(body, Bytes::from)))
    }
}

/// Whether a type of content names no other encoding than what is judged: a client would read other letters.
fn is_utf8(content_type: &HeaderValue) -> bool {
    let text = String::from_utf8_lossy(content_type.as_bytes()).to_ascii_lowercase();
    let mut named = text.split("charset").skip(1);
    named.all(|after| {
        let name = after.trim_start_matches([' ', '\t', '=', '"', '\'']);
        let end = name.find(['"', '\'', ';', ',', ' ', '\t']);
        let name = &name[..end.unwrap_or(name.len())];
        matches!(name, "utf-8" | "utf8" | "us-ascii" | "ascii")
    })
}

/// Messages as one body; several of them are a batch.
fn one_body(texts: &[String]) -> Option<String> {
    match texts {
        [] => None,
        [only] => Some(only.clone()),
        all => Some(format!("[{}]", all.join(","))),
    }
}

fn to_client(actions: Vec<GuardAction>) -> Vec<String> {
    let texts = actions.into_iter().filter_map(|action| match action {
        GuardAction::ToClient(text) => Some(text),
        GuardAction::ToServer(_) | GuardAction::Await(_) | GuardAction::Question { .. } => None,
    });
    texts.collect()
}

/// Headers without those of the connection.
pub(super) fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    for name in OWN_HEADERS {
        passed.remove(*name);
    }
    passed
}

pub(super) fn with_headers(mut reply: Reply, headers: HeaderMap) -> Reply {
    reply.headers = headers;
    reply
}

fn is_initialize(request: &Request) -> bool {
    let Ok(body) = &request.body else {
        return false;
    };
    // Most requests are told by a look at the text.
    let name = McpMethod::Initialize.as_str();
    memchr::memmem::find(body, name.as_bytes()).is_some()
        && serde_json::from_slice::<Value>(body)
            .is_ok_and(|message| message.get("method").and_then(Value::as_str) == Some(name))
}

/// Whether a body is meant to be JSON-RPC.
fn is_message(body: &[u8]) -> bool {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    value.is_some_and(|value| value.is_array() || value.get("jsonrpc").is_some())
}

/// A refusal outside of the protocol.
pub(super) fn refused(status: StatusCode, reason: &str) -> Reply {
    Reply::empty(status)
        .with_header("content-type", "text/plain; charset=utf-8")
        .with_body(ReplyBody::Whole(format!("{reason}\n").into()))
}

/// An address for people, without what may be secret in it.
fn without_secrets(mut url: Url) -> String {
    url.set_query(None);
    url.set_fragment(None);
    // An address without a host has neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// An error of the protocol.
fn failed(status: StatusCode, id: &Value, reason: &str) -> Reply {
    let error = rpc::error(id, BLOCKED, reason, None);
    Reply::json(status, rpc::to_text(&error))
}

/// The server did not answer: the client gets an error for its request.
fn unanswered(exchange: &HttpExchange, error: &ClientError) -> Reply {
    unanswerable(exchange, &format!("the server did not answer: {error}"))
}

/// The answer cannot be passed on: the client gets an error for its request.
fn unanswerable(exchange: &HttpExchange, why: &str) -> Reply {
    let actions = exchange.with(|session| session.exchange_failed(exchange.number, why));
    match one_body(&to_client(actions)) {
        Some(text) => Reply::json(StatusCode::BAD_GATEWAY, text),
        None => failed(StatusCode::BAD_GATEWAY, &Value::Null, why),
    }
}
