//! Plays the phases: on entry, the actions of a phase's own state, in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use proofhouse_oatf::{ActionKind, Direction};
use proofhouse_protocol::a2a::{A2aVersion, card};
use proofhouse_protocol::rpc;
use proofhouse_wire::client::{Client, ClientError, SseEvents, StreamedResponse};
use proofhouse_wire::{Bytes, Method};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use super::actions::{self, A2aClientAction, CARD};
use super::following::{A2aTaskPoller, FollowedPeer, next_id};
use super::peer::{self, A2aPeer, CardResult};
use super::responses::A2aResponseReader;
use super::sending;
use crate::actor::ActorContext;
use crate::branches::of_message;
use crate::delivery::DeliveryModifiers;
use crate::driver::{ActorError, ActorErrorKind};
use crate::drivers::a2a::push;
use crate::phases::PhaseEntry;

/// The client, while it plays.
pub(super) struct A2aClientSession {
    context: ActorContext,
    client: Client,
    endpoint: String,
    peer: A2aPeer,
    entries: UnboundedReceiver<PhaseEntry>,
    /// Entries that came while a stream was read.
    waiting: VecDeque<PhaseEntry>,
    /// Streams that outlived their phase; at most one per entry.
    background: JoinSet<()>,
    /// Asks for tasks that go on, while nothing else is left to do.
    following: JoinSet<A2aTaskPoller>,
    /// The same, while no task goes on that can be asked for.
    follower: Option<A2aTaskPoller>,
    last_id: Arc<AtomicU64>,
}

impl A2aClientSession {
    pub(super) fn new(context: ActorContext, client: Client, endpoint: String) -> Self {
        let entries = context.entries();
        Self {
            peer: peer::fallback(&endpoint),
            context,
            client,
            endpoint,
            entries,
            waiting: VecDeque::new(),
            background: JoinSet::new(),
            following: JoinSet::new(),
            follower: Some(A2aTaskPoller::default()),
            last_id: Arc::default(),
        }
    }

    /// Plays until the last phase's actions are done, and the tasks that came of them.
    pub(super) async fn play(mut self) -> Result<(), ActorError> {
        self.discover().await?;
        while let Some(entry) = self.next_entry().await {
            for action in self.context.enter(&entry) {
                self.on_enter(&entry, action).await;
            }
            if !entry.phase.own_state {
                continue;
            }
            let (actions, _) = actions::read(&entry.phase.state);
            for action in actions {
                self.perform(&entry, &action).await;
            }
        }
        Ok(())
    }

    /// Fetches the card, to know what to speak. Documents did not ask for it, so it ends no phase.
    async fn discover(&mut self) -> Result<(), ActorError> {
        match peer::fetch_card(&self.context, &self.client, &self.endpoint).await {
            Ok(CardResult::Card(card)) => {
                self.peer = peer::choose(&self.context, &self.endpoint, &card);
                let seen = card::project(&card);
                let raw = (seen != card).then_some(card);
                self.context
                    .overheard(CARD, Direction::Response, &seen, raw);
            }
            Ok(CardResult::NoCard(answer)) => {
                self.context.spoke_otherwise(&answer);
                self.context
                    .warn(&format!("{answer}; 0.3 is tried at {}", self.peer.url));
            }
            Err(error @ (ClientError::Connect { .. } | ClientError::Url { .. })) => {
                return Err(self
                    .context
                    .error(ActorErrorKind::Unreachable, error.to_string()));
            }
            Err(error @ ClientError::TooSlow) => {
                let message = format!("{}: {error}", self.endpoint);
                return Err(self.context.error(ActorErrorKind::Unreachable, message));
            }
            Err(error) => self.context.warn(&format!("the card: {error}")),
        }
        Ok(())
    }

    /// The next phase; `None` when none can come any more.
    async fn next_entry(&mut self) -> Option<PhaseEntry> {
        loop {
            if let Some(entry) = self.waiting.pop_front() {
                return Some(entry);
            }
            if let Ok(entry) = self.entries.try_recv() {
                return Some(entry);
            }
            if self.background.is_empty() {
                self.follow();
            }
            let is_waiting = !self.background.is_empty() || !self.following.is_empty();
            if !is_waiting && !self.can_advance() {
                return None;
            }
            tokio::select! {
                entry = self.entries.recv() => return entry,
                Some(_) = self.background.join_next(), if !self.background.is_empty() => {}
                Some(done) = self.following.join_next(), if !self.following.is_empty() => {
                    self.follower = done.ok();
                }
            }
        }
    }

    /// Asks for tasks that go on: what comes of them belongs to the run. A stream that is open tells it by itself.
    fn follow(&mut self) {
        let follows = |follower: &mut A2aTaskPoller| follower.has_work(&self.context);
        if let Some(follower) = self.follower.take_if(follows) {
            let peer = FollowedPeer {
                context: self.context.clone(),
                client: self.client.clone(),
                peer: self.peer.clone(),
                last_id: Arc::clone(&self.last_id),
            };
            self.following.spawn(follower.follow(peer));
        }
    }

    /// Whether the phase can end though nothing is on its way: only time can do that.
    fn can_advance(&self) -> bool {
        let phase = self.context.phase();
        if phase.ends_with_time() {
            return true;
        }
        if !phase.is_terminal() {
            self.context.warn(&format!(
                "phase `{}` waits for what the subject did not send, and nothing more is asked; the actor is done",
                phase.name
            ));
        }
        false
    }

    async fn on_enter(&mut self, entry: &PhaseEntry, action: ActionKind) {
        match action {
            ActionKind::Send { method, params } => {
                self.perform(entry, &A2aClientAction::sending(method, params))
                    .await;
            }
            ActionKind::Binding { name, value } if name == push::ACTION => {
                push::send(
                    &self.context,
                    &entry.phase,
                    &value,
                    &[],
                    self.peer.generation,
                )
                .await;
            }
            ActionKind::Binding { name, .. } => {
                self.context
                    .warn(&format!("there is no entry action `{name}` in A2A"));
            }
            ActionKind::Log { .. } => {}
        }
    }

    /// Does one action. Whatever goes wrong is told, and the next one follows.
    async fn perform(&mut self, entry: &PhaseEntry, action: &A2aClientAction) {
        let delivery = &entry.phase.delivery;
        if let Some(delay) = delivery.delay {
            tokio::time::sleep(delay).await;
        }
        if action.is_card() {
            return self.get_card(entry).await;
        }
        let params = action
            .params
            .as_ref()
            .map(|params| self.context.interpolate(params, None, None));
        let request = action.prepare(params.clone(), self.peer.generation);
        let reader = A2aResponseReader {
            context: self.context.clone(),
            operation: request.operation,
            event: request.event,
            id: next_id(&self.last_id),
            phase: Arc::clone(&entry.phase),
            branch: of_message(action.method(), params.as_ref()),
            uncounted: Arc::default(),
        };
        let envelope = rpc::request(&reader.id, &request.method, request.params.as_ref());
        let text = delivery.shape(envelope.to_string());
        let differs =
            request.method != reader.event || request.params.as_ref() != Some(&request.content);
        let raw = differs.then_some(envelope);
        self.context.sent(
            &entry.phase,
            &reader.event,
            Direction::Request,
            &request.content,
            raw,
        );
        if let Some(count) = delivery.notification_flood {
            self.flood(count, request.generation).await;
        }
        for _ in 0..if delivery.duplicate_ids { 2 } else { 1 } {
            match self.post(request.generation, text.clone(), delivery).await {
                Ok(response) => {
                    // Who refuses at the door has not seen what was sent.
                    let reader = reader.of_copy(response.status.is_success());
                    self.read(reader, response).await;
                }
                // The subject cannot answer what it got half of.
                Err(ClientError::Broken(_)) if delivery.abrupt_close => {}
                Err(error) => self.context.warn(&format!("`{}`: {error}", reader.event)),
            }
        }
    }

    async fn post(
        &self,
        generation: A2aVersion,
        text: String,
        delivery: &DeliveryModifiers,
    ) -> Result<StreamedResponse, ClientError> {
        let headers = peer::headers(&self.context, Some(generation));
        let url = &self.peer.url;
        if delivery.slow_stream.is_some() || delivery.abrupt_close {
            let pieces = sending::pieces(text, delivery);
            return self
                .client
                .send_pieces(Method::POST, url, headers, pieces)
                .await;
        }
        self.client
            .send(Method::POST, url, headers, Bytes::from(text))
            .await
    }

    async fn flood(&self, count: usize, generation: A2aVersion) {
        let text = rpc::notification("notifications/flood", None).to_string();
        for _ in 0..count {
            if let Err(error) = self
                .post(generation, text.clone(), &DeliveryModifiers::default())
                .await
            {
                self.context
                    .warn(&format!("x-delivery: the flood broke off: {error}"));
                return;
            }
        }
    }

    async fn read(&mut self, reader: A2aResponseReader, response: StreamedResponse) {
        if response.is_event_stream() {
            reader.count();
            return self.read_stream(reader, response.events()).await;
        }
        let status = response.status;
        match response.bytes().await {
            Ok(body) if body.is_empty() => {
                let warning = format!("`{}` was answered {status} without a body", reader.event);
                self.context.spoke_otherwise(&warning);
                self.context.warn(&warning);
            }
            Ok(body) => reader.take(&body),
            Err(error) => {
                reader.unread(&error);
                self.context.warn(&format!("`{}`: {error}", reader.event));
            }
        }
    }

    /// Reads a stream. When it ends the phase and goes on, it is read beside the next phase.
    async fn read_stream(&mut self, reader: A2aResponseReader, mut events: SseEvents) {
        loop {
            tokio::select! {
                biased;
                Some(entry) = self.entries.recv() => {
                    self.waiting.push_back(entry);
                    self.background.spawn(async move {
                        while reader.take_next(&mut events).await {}
                    });
                    return;
                }
                more = reader.take_next(&mut events) => if !more { return },
            }
        }
    }

    async fn get_card(&mut self, entry: &PhaseEntry) {
        self.context
            .sent(&entry.phase, CARD, Direction::Request, &json!({}), None);
        match peer::fetch_card(&self.context, &self.client, &self.endpoint).await {
            Ok(CardResult::Card(card)) => {
                let seen = card::project(&card);
                let raw: Option<Value> = (seen != card).then_some(card);
                drop(self.context.received(CARD, Direction::Response, &seen, raw));
            }
            Ok(CardResult::NoCard(answer)) => {
                self.context.spoke_otherwise(&answer);
                self.context.warn(&answer);
            }
            Err(error) => self.context.warn(&format!("`{CARD}`: {error}")),
        }
    }
}
