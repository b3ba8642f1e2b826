//! `a2a_client`: an agent that delegates to the subject, in the generation the subject's card offers.

mod actions;
mod following;
mod peer;
mod responses;
mod sending;
mod session;

use proofhouse_oatf::{ActionKind, Mode};
use proofhouse_protocol::a2a::A2aMethod;
use proofhouse_wire::client::Client;

use self::actions::A2aClientAction;
use self::session::A2aClientSession;
use super::a2a::{push, url};
use crate::actor::ActorContext;
use crate::driver::{
    ActorEndpoint, ActorError, ActorErrorKind, BoxFuture, Driver, EndpointFlag, EndpointForm,
    PreparedActor,
};
use crate::exposure::CarrierKind;

/// Plays an agent that sends tasks to the subject.
#[derive(Debug)]
pub(super) struct A2aClientDriver;

impl Driver for A2aClientDriver {
    fn mode(&self) -> Mode {
        Mode::A2aClient
    }

    fn endpoint_flags(&self) -> &'static [EndpointFlag] {
        &[EndpointFlag {
            name: "a2a-client-url",
            form: EndpointForm::Url,
            help: "Attack the A2A agent at this URL",
        }]
    }

    fn default_endpoint(&self) -> Option<ActorEndpoint> {
        None
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
    let wrong = |endpoint: &ActorEndpoint| {
        let message = format!(
            "an A2A client needs the agent's URL or that of its card; `{endpoint}` is none"
        );
        context.error(ActorErrorKind::Endpoint, message)
    };
    let ActorEndpoint::Url(address) = &endpoint else {
        return Err(wrong(&endpoint));
    };
    if url::parse(address).is_none() {
        return Err(wrong(&endpoint));
    }
    let client = Client::new(context.limits().clone())
        .map_err(|error| context.error(ActorErrorKind::Endpoint, error.to_string()))?;
    // Nobody listening is better told before the run than in the middle of it. Nothing is asked
    // yet: the other end may be an actor of the same run, which answers when the run begins.
    client
        .reach(address)
        .await
        .map_err(|error| context.error(ActorErrorKind::Unreachable, error.to_string()))?;
    plan(&context);
    let address = address.clone();
    let session = A2aClientSession::new(context.clone(), client, address.clone());
    Ok(PreparedActor {
        address: Some(address),
        play: Box::pin(async move {
            tokio::select! {
                () = context.over().cancelled() => Ok(()),
                played = session.play() => played,
            }
        }),
    })
}

/// Tells what may be delivered, and what is odd about the states.
fn plan(context: &ActorContext) {
    for phase in context.all_phases().iter().filter(|phase| phase.own_state) {
        let (actions, problems) = actions::read(&phase.state);
        for problem in problems {
            context.warn(&format!("phase `{}`: {problem}", phase.name));
        }
        for action in actions.iter().filter(|action| !action.is_card()) {
            context.planned(CarrierKind::Message, action.event());
        }
    }
    for kind in context.entry_actions() {
        match kind {
            ActionKind::Send { method, .. } => {
                let action = A2aClientAction::sending(method.clone(), None);
                context.planned(CarrierKind::Message, action.event());
            }
            ActionKind::Binding { name, .. } if name == push::ACTION => {
                context.planned(CarrierKind::Notification, push::ACTION);
            }
            _ => {}
        }
    }
}
