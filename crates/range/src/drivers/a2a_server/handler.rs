//! Takes requests apart and sees that each gets its answer: the card by GET, JSON-RPC by POST.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use proofhouse_detect::read_lenient;
use proofhouse_oatf::Direction;
use proofhouse_protocol::a2a::{
    A2aError, A2aMethod, A2aVersion, CARD_EVENT, EXTENSIONS_HEADER, VERSION_HEADER, card,
    translate_params,
};
use proofhouse_protocol::rpc::{self, RpcMessage};
use proofhouse_wire::server::{BrokenConnection, Handler, Reply, Request};
use proofhouse_wire::sync::lock;
use proofhouse_wire::{Method, StatusCode, origin};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::memory::Memory;
use super::replies::{self, Rest};
use super::state::{self, A2aServerState};
use crate::actor::{ActorContext, Advance};
use crate::delivery_note::{DeliveryNote, NotedCarrier};
use crate::drivers::a2a::push::PushTarget;
use crate::exposure::CarrierKind;
use crate::facts::UnseenKind;
use crate::phases::PhaseView;

/// How much of a method nobody knows becomes the name of an event.
const MAX_EVENT_CHARS: usize = 200;

/// The server, while it plays.
pub(super) struct A2aServer {
    pub(super) context: ActorContext,
    address: String,
    /// Where it listens. On every address, only callers know which one leads here.
    bound: SocketAddr,
    memory: Mutex<Memory>,
    /// Replies that are still being written.
    writers: Mutex<JoinSet<()>>,
    /// The last request was of 1.0.
    modern: AtomicBool,
    flood_told: AtomicBool,
}

/// A request that waits for its answer.
pub(super) struct PendingA2aRequest {
    pub(super) id: Value,
    pub(super) event: String,
    pub(super) generation: A2aVersion,
    /// As 0.3 has them.
    pub(super) params: Value,
    /// Where the caller finds us.
    address: String,
    /// The phase that answers.
    pub(super) phase: Arc<PhaseView>,
    /// The phase that begins when the answer has left.
    pub(super) advance: Advance,
}

impl Handler for A2aServer {
    async fn handle(&self, request: Request) -> Reply {
        if self.context.checks_origin() && !origin::is_allowed(&request.headers, self.bound) {
            self.context
                .warn("a request of a foreign origin is refused");
            self.context.refused_request(&request);
            return Reply::empty(StatusCode::FORBIDDEN);
        }
        if request.method != Method::POST {
            self.context.refused_request(&request);
        }
        if card::is_at(&request.path) && request.method == Method::GET {
            return self.card(&request).await;
        }
        if request.method != Method::POST {
            let warning = format!(
                "{} {} is nothing of A2A's",
                request.method,
                cut(&request.path)
            );
            self.context.warn(&warning);
            return match request.method {
                Method::GET => Reply::empty(StatusCode::NOT_FOUND),
                _ => Reply::empty(StatusCode::METHOD_NOT_ALLOWED).with_header("allow", "GET, POST"),
            };
        }
        self.context.spoken_to_without_session();
        match &request.body {
            Ok(body) => self.rpc(&request, body).await,
            Err(problem) => {
                self.context.warn(&problem.to_string());
                self.no_message(UnseenKind::of_body(problem), b"");
                Reply::empty(problem.status())
            }
        }
    }

    fn broken(&self, peer: SocketAddr, broken: &BrokenConnection) {
        // Cutting connections is our own doing when the delivery asks for it.
        if !self.context.phase().delivery.abrupt_close {
            let reason = &broken.reason;
            self.context
                .warn(&format!("the connection of {peer} broke: {reason}"));
        }
        self.context.connection_broke(broken);
    }
}

impl A2aServer {
    pub(super) fn new(context: ActorContext, address: String, bound: SocketAddr) -> Self {
        Self {
            context,
            address,
            bound,
            memory: Mutex::default(),
            writers: Mutex::new(JoinSet::new()),
            modern: AtomicBool::new(false),
            flood_told: AtomicBool::new(false),
        }
    }

    /// Where the subject wants to be notified, and the generation it spoke last.
    pub(super) fn webhooks(&self) -> (Vec<PushTarget>, A2aVersion) {
        let spoken = if self.modern.load(Ordering::Relaxed) {
            A2aVersion::V1_0
        } else {
            A2aVersion::V0_3
        };
        (self.memory().all_webhooks(), spoken)
    }

    /// Ends every reply that is still being written.
    pub(super) async fn stop(&self) {
        let mut writers = std::mem::take(&mut *self.writers());
        writers.shutdown().await;
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    fn writers(&self) -> MutexGuard<'_, JoinSet<()>> {
        lock(&self.writers)
    }

    /// Lets the rest of a reply be written while its reader reads.
    pub(super) fn go_on(&self, rest: Rest) {
        let over = self.context.over().clone();
        let mut writers = self.writers();
        while writers.try_join_next().is_some() {}
        writers.spawn(async move {
            tokio::select! {
                () = over.cancelled() => {}
                () = rest => {}
            }
        });
    }

    async fn card(&self, request: &Request) -> Reply {
        let turn = self
            .context
            .received(CARD_EVENT, Direction::Request, &json!({}), None);
        let phase = turn.phase;
        let state = phase.prepared(A2aServerState::read);
        let served = self.served_card(&state, &self.address_for(request));
        if !replies::delay(&phase.delivery, self.context.over()).await {
            return Reply::cut();
        }
        self.context
            .sent(&phase, CARD_EVENT, Direction::Response, &served, None);
        let unread = self.card_note(&phase).handed_over();
        self.tell_flood(&phase);
        // Cards change between phases; nobody is to keep one.
        self.leave(&phase, served.to_string(), turn.advance)
            .with_header("cache-control", "no-store")
            .with_unread(unread)
    }

    /// What showing the card of a phase carries.
    pub(super) fn card_note(&self, phase: &Arc<PhaseView>) -> DeliveryNote {
        let state = phase.prepared(A2aServerState::read);
        let carriers = state.card.iter().map(|card| NotedCarrier {
            phase: Arc::clone(phase),
            kind: CarrierKind::Card,
            name: state::card_name(card).to_owned(),
            branch: None,
        });
        DeliveryNote::new(&self.context, carriers.collect())
    }

    /// The card of a state, or one that is just enough to find the way here.
    fn served_card(&self, state: &A2aServerState, address: &str) -> Value {
        let filled = |card: &Value| self.context.interpolate(card, None, None);
        state.served_card(self.context.name(), filled).at(address)
    }

    /// The card for those who are known to us; there is only the one.
    pub(super) fn extended_card(&self, call: &PendingA2aRequest) -> Result<Value, A2aError> {
        let state = call.phase.prepared(A2aServerState::read);
        if state.card.is_none() {
            return Err(A2aError::ExtendedCardNotConfigured);
        }
        Ok(self.served_card(&state, &call.address))
    }

    /// Our address, as the caller reached it.
    fn address_for(&self, request: &Request) -> String {
        let plain = |host: &&str| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".:-[]_".contains(&byte);
            !host.is_empty() && host.len() < 300 && host.bytes().all(fits)
        };
        match request.header("host").filter(plain) {
            Some(host) if self.bound.ip().is_unspecified() => format!("http://{host}"),
            _ => self.address.clone(),
        }
    }

    async fn rpc(&self, request: &Request, body: &[u8]) -> Reply {
        let message = match self.read(body) {
            Ok(message) => message,
            Err((kind, invalid)) => {
                self.no_message(kind, body);
                return self.refuse(&invalid).await;
            }
        };
        match message {
            RpcMessage::Request { id, method, params } => {
                let envelope = rpc::request(&id, &method, Some(&params));
                let call = self.receive(request, id, &method, params, &envelope);
                self.serve(
                    call,
                    A2aMethod::parse(&method).map(|(operation, _)| operation),
                )
                .await
            }
            RpcMessage::Notification { method, params } => {
                let envelope = rpc::notification(&method, Some(&params));
                // It asks for nothing, so there is nothing to answer.
                drop(self.receive(request, Value::Null, &method, params, &envelope));
                Reply::empty(StatusCode::NO_CONTENT)
            }
            RpcMessage::Response { .. } => {
                self.no_message(UnseenKind::NotAMessage, body);
                let invalid = rpc::InvalidMessage::NotRpc {
                    reason: "a response to nothing that was asked",
                    id: Value::Null,
                };
                self.refuse(&invalid).await
            }
        }
    }

    /// Reads a message, mended where it has to be.
    fn read(&self, body: &[u8]) -> Result<RpcMessage, (UnseenKind, rpc::InvalidMessage)> {
        let (value, mended) = read_lenient(body).map_err(|error| {
            let invalid = rpc::InvalidMessage::NotJson(error.to_string());
            (UnseenKind::of_text(body), invalid)
        })?;
        if let Some(mended) = mended {
            self.context
                .warn(&format!("a message of a client was {mended}"));
        }
        rpc::of_text(value, body).map_err(|invalid| (UnseenKind::NotAMessage, invalid))
    }

    /// Something came that is no message; it is kept as text.
    fn no_message(&self, kind: UnseenKind, bytes: &[u8]) {
        let (direction, length) = (Direction::Request, bytes.len() as u64);
        self.context.unparsed(kind, direction, bytes, length);
    }

    /// Records a message and lets it end the phase. The method tells the generation; the version
    /// header is recorded and decides nothing.
    fn receive(
        &self,
        request: &Request,
        id: Value,
        method: &str,
        params: Value,
        envelope: &Value,
    ) -> PendingA2aRequest {
        let known = A2aMethod::parse(method);
        let generation = match known {
            Some((_, generation)) => generation,
            // Nothing but the header can tell in which form the caller reads errors.
            None => A2aVersion::of_header(request.header(VERSION_HEADER)),
        };
        let mut raw = (generation == A2aVersion::V1_0).then(|| envelope.clone());
        for name in [VERSION_HEADER, EXTENSIONS_HEADER] {
            if let Some(value) = request.header(name) {
                raw.get_or_insert_with(|| envelope.clone())["headers"][name] = value.into();
            }
        }
        // Documents may leave the parameters out.
        let params = if params.is_null() { json!({}) } else { params };
        let (event, params) = match known {
            Some((operation, _)) => (
                operation.event().to_owned(),
                translate_params(operation, &params, A2aVersion::V0_3),
            ),
            None => (cut(method), params),
        };
        let modern = generation == A2aVersion::V1_0;
        self.modern.store(modern, Ordering::Relaxed);
        let turn = self
            .context
            .received(&event, Direction::Request, &params, raw);
        PendingA2aRequest {
            id,
            event,
            generation,
            params,
            address: self.address_for(request),
            phase: turn.phase,
            advance: turn.advance,
        }
    }

    /// Answers what is no message at all.
    async fn refuse(&self, invalid: &rpc::InvalidMessage) -> Reply {
        self.context.warn(&invalid.to_string());
        let phase = self.context.phase();
        if !replies::delay(&phase.delivery, self.context.over()).await {
            return Reply::cut();
        }
        self.leave(
            &phase,
            rpc::to_text(&invalid.to_response()),
            Advance::default(),
        )
    }

    /// Answers a call with a result, as triggers see it and as the caller does, or an error.
    pub(super) async fn reply(
        &self,
        call: PendingA2aRequest,
        outcome: Result<(Value, Value), A2aError>,
    ) -> Reply {
        if !replies::delay(&call.phase.delivery, self.context.over()).await {
            return Reply::cut();
        }
        let (content, envelope, differs) = match outcome {
            Ok((content, wire)) => {
                let differs = content != wire;
                (content, rpc::response(&call.id, wire), differs)
            }
            Err(problem) => {
                let error = problem.to_object(call.generation, None);
                let envelope = json!({"jsonrpc": "2.0", "id": call.id, "error": error});
                (error, envelope, false)
            }
        };
        let text = rpc::to_text(&envelope);
        let raw = differs.then_some(envelope);
        self.context
            .sent(&call.phase, &call.event, Direction::Response, &content, raw);
        self.tell_flood(&call.phase);
        self.leave(&call.phase, text, call.advance)
    }

    fn leave(&self, phase: &Arc<PhaseView>, text: String, advance: Advance) -> Reply {
        let (reply, rest) = replies::json(&phase.delivery, text, advance, self.context.over());
        if let Some(rest) = rest {
            self.go_on(rest);
        }
        reply
    }

    /// A reply that is one JSON value has no place for notifications before it.
    fn tell_flood(&self, phase: &Arc<PhaseView>) {
        if phase.delivery.notification_flood.is_some()
            && !self.flood_told.swap(true, Ordering::Relaxed)
        {
            self.context.warn(
                "x-delivery: `notification_flood` only goes before streams; A2A has no notifications elsewhere",
            );
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_EVENT_CHARS).collect()
}
