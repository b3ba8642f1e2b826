//! The `ag_ui_client` mode: posts inputs to an agent, reads its events, answers its tool calls.

mod exchange;
mod history;
mod input;
mod names;
mod reader;

use proofhouse_oatf::{ActionKind, Mode};
use proofhouse_protocol::ag_ui::INPUT_EVENT;
use serde_json::Value;

use crate::actor::ActorContext;
use crate::driver::{
    ActorEndpoint, ActorError, ActorErrorKind, BoxFuture, Driver, EndpointFlag, EndpointForm,
    PreparedActor,
};
use crate::drivers::client::post::Poster;
use crate::drivers::client::script::ClientScript;
use crate::exposure::CarrierKind;

use exchange::AgUiAgent;
use input::AgUiClientState;

/// The operation of the input that is posted.
const INPUT: &str = INPUT_EVENT;

/// Plays a frontend of an agent.
pub(crate) struct AgUiClientDriver;

impl Driver for AgUiClientDriver {
    fn mode(&self) -> Mode {
        Mode::AgUiClient
    }

    fn endpoint_flags(&self) -> &'static [EndpointFlag] {
        &[EndpointFlag {
            name: "ag-ui-url",
            form: EndpointForm::Url,
            help: "Attack the AG-UI agent at this URL",
        }]
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
            let ActorEndpoint::Url(url) = &endpoint else {
                let message = format!("`ag_ui_client` needs a URL, not {endpoint}");
                return Err(context.error(ActorErrorKind::Endpoint, message));
            };
            let poster = Poster::connect(&context, url).await?;
            plan(&context);
            Ok(PreparedActor {
                address: Some(url.clone()),
                play: Box::pin(play(context, poster)),
            })
        })
    }
}

/// Tells what could be delivered, and what is wrong with the states.
fn plan(context: &ActorContext) {
    for phase in context.all_phases() {
        if !phase.own_state {
            continue;
        }
        let state = phase.prepared(AgUiClientState::new);
        for problem in &state.problems {
            context.warn(&format!("phase `{}`: {problem}", phase.name));
        }
        for (kind, name) in input::carriers(&state.input) {
            context.planned(kind, name);
        }
        if !state.tool_responses.is_empty() {
            for tool in state.tool_names() {
                context.planned(CarrierKind::FrontendToolResult, tool);
            }
        }
        if phase.delivery.notification_flood.is_some() {
            context.warn("`notification_flood` does nothing here: AG-UI has no notifications");
        }
    }
}

async fn play(context: ActorContext, poster: Poster) -> Result<(), ActorError> {
    let over = context.over().clone();
    tokio::select! {
        () = over.cancelled() => Ok(()),
        played = play_phases(&context, poster) => played,
    }
}

async fn play_phases(context: &ActorContext, poster: Poster) -> Result<(), ActorError> {
    let mut script = ClientScript::new(context);
    let mut agent = AgUiAgent::new(context.clone(), poster);
    loop {
        // Events come only while an input is being answered. After that, only time leads on.
        let scene = match script.ready() {
            Some(scene) => scene,
            None if script.is_at_end() => return Ok(()),
            None if script.ends_with_time() => match script.next().await {
                Some(scene) => scene,
                None => return Ok(()),
            },
            None => {
                script.warn_stuck();
                return Ok(());
            }
        };
        for action in scene.actions {
            match action {
                ActionKind::Send { method, params } if method == INPUT => {
                    let input = params.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
                    agent.exchange(&scene.phase, input).await?;
                }
                ActionKind::Send { method, .. } => context.warn(&format!(
                    "`send` of `{method}` is passed over: a frontend posts `{INPUT}` only"
                )),
                other => context.warn(&format!("there is no entry action `{}`", other.key())),
            }
        }
        if scene.phase.own_state {
            let input = input::of_phase(context, &scene.phase).await;
            agent.exchange(&scene.phase, input).await?;
        }
    }
}
