//! Plays a client: begins the conversation, does the actions of each phase, and says goodbye.

use std::collections::VecDeque;
use std::time::Duration;

use proofhouse_oatf::ActionKind;

use crate::driver::{ActorEndpoint, ActorError};
use crate::drivers::client::script::{ClientScript, Scene};

use super::connect;
use super::era::HandshakeResult;
use super::session::McpClientSession;
use super::state::{McpClientAction, McpClientState};

/// After the last action, the server may still tell something.
const LINGER: Duration = Duration::from_millis(200);
/// Messages that are taken in then.
const MAX_LINGER: usize = 1_000;

pub(super) async fn play(
    mut session: McpClientSession,
    endpoint: ActorEndpoint,
) -> Result<(), ActorError> {
    let over = session.context.over().clone();
    let played = tokio::select! {
        () = over.cancelled() => Ok(()),
        played = play_phases(&mut session, &endpoint) => played,
    };
    session.link.close().await;
    played
}

async fn play_phases(
    session: &mut McpClientSession,
    endpoint: &ActorEndpoint,
) -> Result<(), ActorError> {
    begin(session, endpoint).await?;
    let mut script = ClientScript::new(&session.context);
    let mut phase = session.context.phase();
    let mut actions: VecDeque<McpClientAction> = VecDeque::new();
    loop {
        if let Some(scene) = script.ready() {
            phase = scene.phase.clone();
            enter(session, &mut actions, scene).await;
        } else if let Some(action) = actions.pop_front() {
            let params = action
                .params
                .map(|params| session.context.interpolate(&params, None, None));
            let method = session.context.interpolate_text(&action.method);
            session.perform(&phase, &method, params.as_ref()).await;
        } else if script.is_at_end() {
            linger(session).await;
            return Ok(());
        } else {
            // The phase waits: for the server, or for time.
            let is_stuck = session.dead && !script.ends_with_time();
            let settle = session.context.settle();
            tokio::select! {
                scene = script.next() => match scene {
                    Some(scene) => {
                        phase = scene.phase.clone();
                        enter(session, &mut actions, scene).await;
                    }
                    None => return Ok(()),
                },
                Some(inbound) = session.receive() => session.serve(inbound).await,
                () = tokio::time::sleep(settle), if is_stuck || !script.ends_with_time() => {
                    script.warn_stuck();
                    return Ok(());
                }
            }
        }
    }
}

/// Begins the conversation; a server that does not survive being asked for its era is started
/// again, and not asked.
async fn begin(session: &mut McpClientSession, endpoint: &ActorEndpoint) -> Result<(), ActorError> {
    let phase = session.context.phase();
    let state = phase.prepared(McpClientState::new);
    let version = state.protocol_version.as_deref();
    if let HandshakeResult::Again = session.begin(&phase, version, true).await? {
        let capabilities = session.capabilities.clone();
        let fresh = connect(&session.context.clone(), endpoint, &capabilities).await?;
        std::mem::replace(session, fresh).link.close().await;
        session.begin(&phase, version, false).await?;
    }
    Ok(())
}

/// Enters a phase: its entry actions at once; its own actions replace those that are left.
async fn enter(
    session: &mut McpClientSession,
    actions: &mut VecDeque<McpClientAction>,
    scene: Scene,
) {
    if scene.phase.own_state {
        let state = scene.phase.prepared(McpClientState::new);
        *actions = state.actions.iter().cloned().collect();
        session.become_client(state.client_info.as_ref(), state.capabilities.as_ref());
    }
    for action in scene.actions {
        match action {
            ActionKind::Send { method, params } => {
                session
                    .perform(&scene.phase, &method, params.as_ref())
                    .await;
            }
            other => {
                let warning = format!("there is no entry action `{}`", other.key());
                session.context.warn(&warning);
            }
        }
    }
}

/// Takes in what the server tells right after the last answer.
async fn linger(session: &mut McpClientSession) {
    for _ in 0..MAX_LINGER {
        if session.dead {
            return;
        }
        match tokio::time::timeout(LINGER, session.receive()).await {
            Ok(Some(inbound)) => session.serve(inbound).await,
            _ => return,
        }
    }
}
