//! `a2a_server`: an agent that others delegate to, over JSON-RPC, in 0.3 and 1.0 at once.

mod answers;
mod handler;
mod memory;
mod replies;
mod state;
mod stream;
mod tasks;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use proofhouse_oatf::{ActionKind, Mode};
use proofhouse_protocol::a2a::A2aMethod;
use proofhouse_wire::server::BoundServer;
use serde_json::Value;

use self::handler::A2aServer;
use self::state::A2aServerState;
pub use self::state::{OfferedCard, offered_cards};
use super::a2a::{push, url};
use crate::actor::ActorContext;
use crate::driver::{
    ActorEndpoint, ActorError, ActorErrorKind, BoxFuture, Driver, EndpointFlag, EndpointForm,
    PreparedActor,
};
use crate::exposure::CarrierKind;
use crate::phases::PhaseEntry;

/// Plays an A2A agent.
#[derive(Debug)]
pub(super) struct A2aServerDriver;

impl Driver for A2aServerDriver {
    fn mode(&self) -> Mode {
        Mode::A2aServer
    }

    fn endpoint_flags(&self) -> &'static [EndpointFlag] {
        &[EndpointFlag {
            name: "a2a-server",
            form: EndpointForm::Address,
            help: "The address where the attack serves A2A, such as 127.0.0.1:8081",
        }]
    }

    fn default_endpoint(&self) -> Option<ActorEndpoint> {
        Some(ActorEndpoint::Listen(SocketAddr::from((
            Ipv4Addr::LOCALHOST,
            0,
        ))))
    }

    fn operation<'n>(&self, name: &'n str) -> &'n str {
        A2aMethod::event_of(name)
    }

    fn prepare(
        &self,
        context: ActorContext,
        endpoint: ActorEndpoint,
    ) -> BoxFuture<'static, Result<PreparedActor, ActorError>> {
        Box::pin(prepare(context, endpoint))
    }
}

async fn prepare(
    context: ActorContext,
    endpoint: ActorEndpoint,
) -> Result<PreparedActor, ActorError> {
    let ActorEndpoint::Listen(wanted) = endpoint else {
        return Err(context.error(
            ActorErrorKind::Endpoint,
            format!("an A2A server listens on an address; `{endpoint}` is none"),
        ));
    };
    let bound = BoundServer::new(wanted).await.map_err(|error| {
        context.error(
            ActorErrorKind::Bind,
            format!("cannot listen on {wanted}: {error}"),
        )
    })?;
    let mut address = bound.address();
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let address = format!("http://{address}");
    plan(&context, &address);
    Ok(PreparedActor {
        address: Some(address.clone()),
        play: Box::pin(play(context, bound, address)),
    })
}

/// Tells what may be delivered, and what is odd about the states.
fn plan(context: &ActorContext, address: &str) {
    for phase in context.all_phases() {
        if !phase.own_state {
            continue;
        }
        let state = phase.prepared(A2aServerState::read);
        for problem in &state.problems {
            context.warn(&format!("phase `{}`: {problem}", phase.name));
        }
        if let Some(card) = &state.card {
            context.planned(CarrierKind::Card, state::card_name(card));
            if let Some(elsewhere) = card.get("url").and_then(Value::as_str)
                && !leads_here(elsewhere, address)
            {
                context.warn(&format!(
                    "phase `{}`: the card's `url` is {elsewhere}; a client of 0.3 will go there and not to {address}",
                    phase.name
                ));
            }
        }
        for index in 0..state.responses.len() {
            context.planned(
                CarrierKind::TaskResponse,
                &state::response_name(&phase.name, index),
            );
        }
    }
    for kind in context.entry_actions() {
        if matches!(kind, ActionKind::Binding { name, .. } if name == push::ACTION) {
            context.planned(CarrierKind::Notification, push::ACTION);
        }
    }
}

fn leads_here(elsewhere: &str, address: &str) -> bool {
    match (url::parse(elsewhere), url::parse(address)) {
        (Some(one), Some(other)) => one.same_place(&other),
        _ => false,
    }
}

async fn play(
    context: ActorContext,
    bound: BoundServer,
    address: String,
) -> Result<(), ActorError> {
    let server = A2aServer::new(context.clone(), address, bound.address());
    let server = Arc::new(server);
    let serving = bound.serve_within(
        Arc::clone(&server),
        context.limits().clone(),
        context.traffic(),
        context.over().clone(),
    );
    let entering = async {
        let mut entries = context.entries();
        while let Some(entry) = entries.recv().await {
            enter(&context, &server, &entry).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = serving => {}
        () = entering => {}
    }
    server.stop().await;
    Ok(())
}

/// Does what is to be done when a phase begins.
async fn enter(context: &ActorContext, server: &A2aServer, entry: &PhaseEntry) {
    for action in context.enter(entry) {
        match action {
            ActionKind::Binding { name, value } if name == push::ACTION => {
                let (webhooks, spoken) = server.webhooks();
                push::send(context, &entry.phase, &value, &webhooks, spoken).await;
            }
            ActionKind::Binding { name, .. } => {
                context.warn(&format!("there is no entry action `{name}` in A2A"));
            }
            ActionKind::Send { method, .. } => context.warn(&format!(
                "an A2A server cannot send `{method}`: only clients ask"
            )),
            ActionKind::Log { .. } => {}
        }
    }
}
