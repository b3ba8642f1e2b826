//! The `mcp_client` mode: calls a server of either era, and answers what it asks back.

mod answers;
mod calls;
mod era;
mod link;
mod play;
mod serve;
mod session;
mod state;

use serde_json::Value;

use crate::actor::ActorContext;
use crate::driver::{ActorError, ActorErrorKind, BoxFuture, Driver, Endpoint, Prepared};
use crate::drivers::client::post::Poster;
use crate::exposure::CarrierKind;

use link::{HttpLink, Link, StdioLink, queue};
use session::Session;
use state::State;

/// Plays a client of a server.
pub(crate) struct McpClient;

impl Driver for McpClient {
    fn mode(&self) -> &str {
        "mcp_client"
    }

    fn default_endpoint(&self) -> Option<Endpoint> {
        None
    }

    fn prepare(
        &self,
        context: ActorContext,
        endpoint: Endpoint,
    ) -> BoxFuture<'static, Result<Prepared, ActorError>> {
        Box::pin(async move {
            let capabilities = plan(&context);
            let session = connect(&context, &endpoint, &capabilities).await?;
            Ok(Prepared {
                address: Some(endpoint.to_string()),
                play: Box::pin(play::play(session, endpoint)),
            })
        })
    }
}

/// Tells what could be delivered and what is wrong with the states; returns the capabilities.
fn plan(context: &ActorContext) -> Value {
    let phases = context.all_phases();
    let states: Vec<_> = phases.iter().map(|p| p.prepared(State::new)).collect();
    for (phase, state) in phases.iter().zip(&states) {
        if !phase.own_state {
            continue;
        }
        for problem in &state.problems {
            context.warn(&format!("phase `{}`: {problem}", phase.name));
        }
        for action in &state.actions {
            context.planned(CarrierKind::Message, &action.method);
        }
        answers::planned(context, state);
    }
    let first = states.first().and_then(|state| state.capabilities.clone());
    first.unwrap_or_else(|| state::default_capabilities(states.iter().map(|state| &**state)))
}

/// Connects to the server, or starts it.
async fn connect(
    context: &ActorContext,
    endpoint: &Endpoint,
    capabilities: &Value,
) -> Result<Session, ActorError> {
    let (sender, inbound) = queue();
    let limits = context.limits();
    let link = match endpoint {
        Endpoint::Url(url) => {
            let poster = Poster::connect(context, url).await?;
            Link::Http(HttpLink::new(poster, sender, limits.max_batch))
        }
        Endpoint::Command(spawn) => {
            let started = StdioLink::start(spawn, limits, sender);
            let error = |error: proofhouse_wire::ProcessError| {
                context.error(ActorErrorKind::Command, error.to_string())
            };
            Link::Stdio(started.map_err(error)?)
        }
        other => {
            let message = format!("`mcp_client` needs a URL or a command, not {other}");
            return Err(context.error(ActorErrorKind::Endpoint, message));
        }
    };
    let state = context.phase().prepared(State::new);
    let info = state.client_info.clone();
    let info = info.unwrap_or_else(state::default_client_info);
    let info = context.interpolate(&info, None, None);
    let capabilities = context.interpolate(capabilities, None, None);
    let context = context.clone();
    Ok(Session::new(context, link, inbound, capabilities, info))
}
