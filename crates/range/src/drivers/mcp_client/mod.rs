//! The `mcp_client` mode: calls a server of either era, and answers what it asks back.

mod answers;
mod calls;
mod era;
mod link;
mod play;
mod serve;
mod session;
mod state;

use proofhouse_oatf::Mode;
use serde_json::Value;

use crate::actor::ActorContext;
use crate::driver::{
    ActorEndpoint, ActorError, ActorErrorKind, BoxFuture, Driver, EndpointFlag, EndpointForm,
    PreparedActor,
};
use crate::drivers::client::post::Poster;
use crate::exposure::CarrierKind;

use link::{HttpLink, Link, StdioLink, queue};
use session::McpClientSession;
use state::McpClientState;

/// Plays a client of a server.
pub(crate) struct McpClientDriver;

impl Driver for McpClientDriver {
    fn mode(&self) -> Mode {
        Mode::McpClient
    }

    fn endpoint_flags(&self) -> &'static [EndpointFlag] {
        &[
            EndpointFlag {
                name: "mcp-client-command",
                form: EndpointForm::Command,
                help: "Start this MCP server and attack it over its standard input and output",
            },
            EndpointFlag {
                name: "mcp-client-url",
                form: EndpointForm::Url,
                help: "Attack the MCP server at this URL",
            },
        ]
    }

    fn default_endpoint(&self) -> Option<ActorEndpoint> {
        None
    }

    fn prepare(
        &self,
        context: ActorContext,
        endpoint: ActorEndpoint,
    ) -> BoxFuture<'static, Result<PreparedActor, ActorError>> {
        Box::pin(async move {
            let capabilities = plan(&context);
            let session = connect(&context, &endpoint, &capabilities).await?;
            Ok(PreparedActor {
                address: Some(endpoint.to_string()),
                play: Box::pin(play::play(session, endpoint)),
            })
        })
    }
}

/// Tells what could be delivered and what is wrong with the states; returns the capabilities.
fn plan(context: &ActorContext) -> Value {
    let phases = context.all_phases();
    let states: Vec<_> = phases
        .iter()
        .map(|p| p.prepared(McpClientState::new))
        .collect();
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
    endpoint: &ActorEndpoint,
    capabilities: &Value,
) -> Result<McpClientSession, ActorError> {
    let (sender, inbound) = queue();
    let limits = context.limits();
    let link = match endpoint {
        ActorEndpoint::Url(url) => {
            let poster = Poster::connect(context, url).await?.authorized();
            Link::Http(HttpLink::new(poster, sender, limits.max_batch))
        }
        ActorEndpoint::Command(spawn) => {
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
    let state = context.phase().prepared(McpClientState::new);
    let info = state.client_info.clone();
    let info = info.unwrap_or_else(state::default_client_info);
    let info = context.interpolate(&info, None, None);
    let capabilities = context.interpolate(capabilities, None, None);
    let context = context.clone();
    Ok(McpClientSession::new(
        context,
        link,
        inbound,
        capabilities,
        info,
    ))
}
