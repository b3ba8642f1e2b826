//! What all connections to one server actor share: clients, listeners, waiting calls, running tasks.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_oatf::{ActionKind, Direction};
use proofhouse_protocol::mcp::{McpMethod, McpNotification, tag_params};
use proofhouse_protocol::rpc;
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::call::ChangeListener;
use super::contacts::Contacts;
use super::outlet::MessageOutlet;
use super::peer::McpPeer;
use super::rounds::Rounds;
use super::streams::STANDALONE;
use super::surface::OfferedSurface;
use crate::branches::of_message;
use crate::delivery_note::DeliveryNote;
use crate::phases::{PhaseEntry, PhaseView};
use crate::{ActorContext, CarrierKind};

/// Sessions that are kept; those that were idle longest make room.
const MAX_SESSIONS: usize = 1_000;
/// How many go at a time, so that finding them is not the work of every newcomer.
const MAKE_ROOM_FOR: usize = 50;
/// Streams that listen for changes, in the modern era.
const MAX_LISTENERS: usize = 256;
/// Notifications that wait for the first client.
const MAX_WAITING: usize = 32;
/// Calls and listening streams that run in the background at a time, of all clients. Each holds its
/// request, which is bounded by the limit on messages.
const MAX_TASKS: usize = 1_000;

/// A server actor.
#[derive(Debug)]
pub(super) struct McpServerService {
    pub(super) context: ActorContext,
    pub(super) rounds: Rounds,
    pub(super) contacts: Contacts,
    sessions: Mutex<HashMap<String, Arc<McpPeer>>>,
    listeners: Mutex<Vec<ChangeListener>>,
    waiting: Mutex<VecDeque<PendingNotification>>,
    /// Whether anyone was ever there to be told something.
    had_audience: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
}

/// A notification that found nobody yet.
#[derive(Debug)]
struct PendingNotification {
    phase: Arc<PhaseView>,
    method: String,
    params: Value,
}

impl McpServerService {
    pub(super) fn new(context: ActorContext) -> Self {
        Self {
            context,
            rounds: Rounds::default(),
            contacts: Contacts::default(),
            sessions: Mutex::default(),
            listeners: Mutex::default(),
            waiting: Mutex::default(),
            had_audience: AtomicBool::new(false),
            tasks: Mutex::default(),
        }
    }

    /// How long a reader may take for a message.
    pub(super) fn patience(&self) -> Duration {
        self.context.limits().idle_timeout
    }

    pub(super) fn surface(&self) -> Arc<OfferedSurface> {
        self.context.phase().prepared(OfferedSurface::of)
    }

    /// A new client; for it, those that were idle longest may have to go.
    pub(super) fn admit(&self, peer: Arc<McpPeer>) {
        peer.is_there(self.context.session_began());
        let mut gone = Vec::new();
        {
            let mut sessions = lock(&self.sessions);
            if sessions.len() >= MAX_SESSIONS {
                let mut idle: Vec<_> = sessions.values().cloned().collect();
                idle.sort_by_cached_key(|peer| peer.used());
                idle.truncate(MAKE_ROOM_FOR);
                for peer in &idle {
                    sessions.remove(&peer.id);
                }
                gone = idle;
            }
            sessions.insert(peer.id.clone(), peer);
        }
        if !gone.is_empty() {
            self.context
                .warn("there are too many sessions; those that were idle longest were ended");
        }
        for peer in gone {
            peer.close();
        }
    }

    pub(super) fn session(&self, id: &str) -> Option<Arc<McpPeer>> {
        let peer = lock(&self.sessions).get(id).cloned()?;
        peer.touch();
        Some(peer)
    }

    pub(super) fn has_session(&self, id: &str) -> bool {
        lock(&self.sessions).contains_key(id)
    }

    /// Ends a session; `false` when there is none.
    pub(super) fn dismiss(&self, id: &str) -> bool {
        let peer = lock(&self.sessions).remove(id);
        peer.is_some_and(|peer| {
            peer.close();
            true
        })
    }

    /// Runs something in the background, until it is done or the run is over; `false` when too much
    /// runs already.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        if tasks.len() >= MAX_TASKS {
            return false;
        }
        let over = self.context.over().clone();
        tasks.spawn(async move {
            tokio::select! {
                () = over.cancelled() => {}
                () = task => {}
            }
        });
        true
    }

    /// Ends everything that runs, and tells what never found anyone.
    pub(super) async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        tasks.shutdown().await;
        for peer in lock(&self.sessions).values() {
            peer.close();
        }
        lock(&self.listeners).clear();
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for PendingNotification { method, .. } in waiting {
            self.undelivered(&method);
        }
    }

    /// Someone listens for changes; `false` when too many do.
    pub(super) fn listen(&self, listener: ChangeListener) -> bool {
        let mut listeners = lock(&self.listeners);
        listeners.retain(|listener| !is_gone(&listener.outlet));
        if listeners.len() >= MAX_LISTENERS {
            return false;
        }
        listeners.push(listener);
        true
    }

    pub(super) fn stop_listening(&self, subscription: &Value, outlet: &MessageOutlet) {
        lock(&self.listeners).retain(|listener| {
            listener.subscription != *subscription || !same(&listener.outlet, outlet)
        });
    }

    /// A client is ready: what waited for the first one goes out.
    pub(super) async fn greet(&self) {
        self.had_audience.store(true, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for PendingNotification {
            phase,
            method,
            params,
        } in waiting
        {
            if !self.tell_everyone(&phase, &method, &params).await {
                self.undelivered(&method);
            }
        }
    }

    /// Does what is to be done on entry into a phase.
    pub(super) async fn enter(&self, entry: &PhaseEntry) {
        for action in self.context.enter(entry) {
            match action {
                ActionKind::Send { method, params } => {
                    let params = params.unwrap_or_default();
                    if method.starts_with(McpNotification::PREFIX) {
                        self.notify(&entry.phase, &method, &params).await;
                    } else {
                        self.request(&entry.phase, &method, &params).await;
                    }
                }
                ActionKind::Binding { name, .. } => {
                    let warning = format!("on_enter: a server has no action `{name}`");
                    self.context.warn(&warning);
                }
                ActionKind::Log { .. } => {}
            }
        }
    }

    /// A notification for everyone who listens. Before there is anyone, it waits.
    pub(super) async fn notify(&self, phase: &Arc<PhaseView>, method: &str, params: &Value) {
        if self.tell_everyone(phase, method, params).await {
            return;
        }
        let mut waiting = lock(&self.waiting);
        if self.had_audience.load(Ordering::Relaxed) || waiting.len() >= MAX_WAITING {
            drop(waiting);
            self.undelivered(method);
        } else {
            waiting.push_back(PendingNotification {
                phase: Arc::clone(phase),
                method: method.to_owned(),
                params: params.clone(),
            });
        }
    }

    async fn tell_everyone(&self, phase: &Arc<PhaseView>, method: &str, params: &Value) -> bool {
        let mut reached = false;
        let (kind, branch) = (CarrierKind::Notification, of_message(method, Some(params)));
        let note = DeliveryNote::of_branch(&self.context, phase, kind, method, branch);
        let bare = (!params.is_null()).then_some(params);
        let text = rpc::notification(method, bare).to_string();
        for peer in self.audience(method, params) {
            reached |= self.tell(&peer, &text, &note).await;
        }
        let listeners: Vec<ChangeListener> = lock(&self.listeners)
            .iter()
            .filter(|listener| listener.wants(method, params))
            .cloned()
            .collect();
        for listener in listeners {
            let params = tag_params(params, &listener.subscription);
            let text = rpc::notification(method, Some(&params)).to_string();
            let told = listener.outlet.tell(&text, &note, self.patience()).await;
            reached |= told.is_ok();
        }
        if reached {
            self.context
                .sent(phase, method, Direction::Response, params, None);
        }
        reached
    }

    /// A request of the server's own accord, to every client.
    async fn request(&self, phase: &Arc<PhaseView>, method: &str, params: &Value) {
        let mut reached = false;
        let (kind, branch) = (carrier(method), of_message(method, Some(params)));
        let note = DeliveryNote::of_branch(&self.context, phase, kind, method, branch);
        let bare = (!params.is_null()).then_some(params);
        for peer in self.ready() {
            let Some((id, _)) = peer.ask(method) else {
                self.context
                    .warn("a client leaves too many requests unanswered");
                continue;
            };
            let text = rpc::request(&json!(id), method, bare).to_string();
            reached |= self.tell(&peer, &text, &note).await;
        }
        let listeners = lock(&self.listeners).clone();
        for (position, listener) in listeners.iter().enumerate() {
            self.context.warn(&format!(
                "`{method}` goes to a client of the modern era, which is a deliberate violation"
            ));
            let id = json!(format!("violation-{}", position + 1));
            let text = rpc::request(&id, method, bare).to_string();
            let told = listener.outlet.tell(&text, &note, self.patience()).await;
            reached |= told.is_ok();
        }
        if reached {
            self.context
                .sent(phase, method, Direction::Request, params, None);
        } else {
            self.undelivered(method);
        }
    }

    /// Clients of the legacy era that finished the handshake.
    fn ready(&self) -> Vec<Arc<McpPeer>> {
        let sessions = lock(&self.sessions);
        let ready = sessions.values().filter(|peer| peer.is_initialized());
        ready.cloned().collect()
    }

    /// Who hears a notification: everyone, but of a resource those who subscribed to it, if any did.
    fn audience(&self, method: &str, params: &Value) -> Vec<Arc<McpPeer>> {
        let ready = self.ready();
        let uri = params.get("uri").and_then(Value::as_str);
        if method == McpNotification::ResourcesUpdated.as_str()
            && let Some(uri) = uri
            && ready.iter().any(|peer| peer.is_subscribed(uri))
        {
            let subscribers = ready.into_iter().filter(|peer| peer.is_subscribed(uri));
            return subscribers.collect();
        }
        ready
    }

    /// Says something to a client that belongs to no call of its.
    async fn tell(&self, peer: &Arc<McpPeer>, text: &str, note: &DeliveryNote) -> bool {
        let outlet = match &peer.lines {
            Some(lines) => MessageOutlet::Lines(Arc::clone(lines)),
            None => MessageOutlet::Stream {
                peer: Arc::clone(peer),
                number: STANDALONE,
            },
        };
        outlet.tell(text, note, self.patience()).await.is_ok()
    }

    fn undelivered(&self, method: &str) {
        self.context.warn(&format!(
            "`{method}` was not delivered: nobody listens for it"
        ));
    }
}

/// What a request of ours carries.
pub(crate) fn carrier(method: &str) -> CarrierKind {
    match McpMethod::parse(method) {
        Some(McpMethod::SamplingCreateMessage) => CarrierKind::Sampling,
        Some(McpMethod::ElicitationCreate) => CarrierKind::Elicitation,
        None if method.starts_with(McpNotification::PREFIX) => CarrierKind::Notification,
        _ => CarrierKind::Message,
    }
}

fn is_gone(outlet: &MessageOutlet) -> bool {
    match outlet {
        MessageOutlet::Events(writer) => writer.is_closed(),
        MessageOutlet::Lines(lines) => lines.closed.is_cancelled(),
        MessageOutlet::Stream { .. } => false,
    }
}

fn same(one: &MessageOutlet, other: &MessageOutlet) -> bool {
    match (one, other) {
        (MessageOutlet::Lines(one), MessageOutlet::Lines(other)) => Arc::ptr_eq(one, other),
        (MessageOutlet::Events(one), MessageOutlet::Events(_)) => one.is_closed(),
        _ => false,
    }
}
