//! Opening channels: the store knows of one before the platform does.

use std::sync::Arc;
use std::time::Duration;

use proofhouse_manifest::Receive;
use proofhouse_store::Result;
use proofhouse_store::model::{
    ChannelFilter, ChannelRecord, ChannelState, ChannelUpdate, NewChannel, TaskRecord, TaskState,
    ToolRef,
};
use proofhouse_tools::receive::subscription::{self, ChannelRequest, DEFAULT_LIFETIME, Subscribed};

use super::lost_notice::{OPENING, send_lost_notice};
use super::{MAX_CHANNELS, is_over, subscription_of, update};
use crate::engine::{EngineShared, listener};
use crate::metrics::engine::ChannelStep;

/// How long an interrupted task is waited for that is about to go on: its tools may have to be started.
const LISTENS_TRIES: u32 = 300;
const LISTENS_PAUSE: Duration = Duration::from_millis(100);
/// After so many failures in a row a task is told that events will be missing.
const MAX_OPEN_FAILURES: i64 = 5;

/// Opens the channels that a task wants and does not have, which failed so often before. Whether one is still missing that
/// may be there later.
pub(super) async fn open_missing(
    inner: &Arc<EngineShared>,
    id: &str,
    failures: i64,
) -> Result<bool> {
    let snapshot = inner.manifests.current();
    let interests = inner.store.interests(id).await?;
    let is_push = |tool: &ToolRef, event: &str| {
        let event = snapshot.tool(tool).and_then(|tool| tool.event(event));
        event.is_some_and(|event| matches!(event.receive, Receive::Subscription(_)))
    };
    let mut wanted: Vec<_> = interests
        .into_iter()
        .filter(|interest| is_push(&interest.tool, &interest.event))
        .collect();
    if wanted.is_empty() {
        return Ok(false);
    }
    let filter = ChannelFilter {
        task: Some(id.to_owned()),
        limit: MAX_CHANNELS,
        ..ChannelFilter::default()
    };
    for channel in inner.store.channels(filter).await? {
        if matches!(
            channel.state,
            ChannelState::Subscribing | ChannelState::Active
        ) {
            wanted.retain(|one| one.tool != channel.tool || one.event != channel.event);
        }
    }
    let Some(task) = listening(inner, id).await? else {
        return Ok(false);
    };
    wanted.retain(|interest| !is_over(inner, Some(interest), &task));
    let mut is_missing = false;
    for interest in wanted {
        let (tool, event) = (&interest.tool, &interest.event);
        let opened = open(inner, &task, tool, event, None, failures).await?;
        is_missing |= matches!(opened, ChannelOpening::NotYet(_));
    }
    Ok(is_missing)
}

/// The task, once it listens: one that goes on after an interruption does so with its next turn, and a channel
/// that opens before that would be closed again.
async fn listening(inner: &Arc<EngineShared>, id: &str) -> Result<Option<TaskRecord>> {
    for _ in 0..LISTENS_TRIES {
        let task = inner.store.task(id).await?;
        match task.state {
            TaskState::Ended => return Ok(None),
            TaskState::Interrupted => tokio::time::sleep(LISTENS_PAUSE).await,
            TaskState::Idle | TaskState::Running | TaskState::Waiting => return Ok(Some(task)),
        }
        if inner.stopping.is_cancelled() {
            break;
        }
    }
    Ok(None)
}

/// How asking for a channel went.
pub(super) enum ChannelOpening {
    Yes,
    /// It makes sense to try again.
    NotYet(String),
    /// It makes no sense.
    Never(String),
}

/// Asks for a channel. It is known before the platform is asked, so that it can be closed whatever happens.
pub(super) async fn open(
    inner: &Arc<EngineShared>,
    task: &TaskRecord,
    tool: &ToolRef,
    event: &str,
    replaces: Option<&ChannelRecord>,
    failures: i64,
) -> Result<ChannelOpening> {
    let snapshot = inner.manifests.current();
    let Some(listener) = listener::of(inner, &snapshot, task, tool).await? else {
        return Ok(ChannelOpening::Never("the tool is gone".to_owned()));
    };
    let Some(declared) = subscription_of(&listener, event) else {
        return Ok(ChannelOpening::Never("the event is gone".to_owned()));
    };
    let now = inner.options.now();
    let opening = match ChannelRequest::new(now, DEFAULT_LIFETIME) {
        Ok(opening) => opening,
        Err(error) => return Ok(ChannelOpening::NotYet(error.to_string())),
    };
    let new = NewChannel {
        id: opening.id.clone(),
        callback: opening.callback.clone(),
        task: task.id.clone(),
        tool: tool.clone(),
        event: event.to_owned(),
        expires_at: Some(opening.expires_at.as_millisecond()),
        replaces: replaces.map(|channel| channel.id.clone()),
    };
    let lease = inner.options.lease_ms();
    let claimed = inner.store.open_channel(new, &inner.owner, lease).await?;
    // Whatever happens, the lease is not held for longer than this.
    let guard = inner.leases.hold(&claimed.lease);
    let client = &inner.options.call_client();
    let answer = subscription::subscribe(client, declared, &listener, &opening, now).await;
    let held = Some(guard.held().clone());
    let error = match answer {
        Subscribed::Active(active) => {
            let update = ChannelUpdate {
                to: Some(ChannelState::Active),
                from: vec![ChannelState::Subscribing],
                expires_at: Some(active.expires_at.as_millisecond()),
                renew_at: Some(active.renew_at.as_millisecond()),
                response: Some(active.response),
                held,
                ..update(&opening.id)
            };
            inner.store.update_channel(update).await?;
            let step = match replaces {
                Some(_) => ChannelStep::Renewed,
                None => ChannelStep::Opened,
            };
            inner.counts().channel_steps.one(step);
            return Ok(ChannelOpening::Yes);
        }
        // It may be open at the platform: it is closed like any other.
        Subscribed::Unknown { error } => {
            let update = ChannelUpdate {
                to: Some(ChannelState::Closing),
                last_error: Some(error.to_string()),
                held,
                ..update(&opening.id)
            };
            inner.store.update_channel(update).await?;
            error
        }
        Subscribed::Failed { error } => {
            let update = ChannelUpdate {
                to: Some(ChannelState::Lost),
                last_error: Some(error.to_string()),
                held,
                ..update(&opening.id)
            };
            inner.store.update_channel(update).await?;
            error
        }
    };
    inner.counts().channel_steps.one(match replaces {
        Some(_) => ChannelStep::RenewFailed,
        None => ChannelStep::OpenFailed,
    });
    let message = error.to_string();
    tracing::warn!(task = %task.id, %event, error = %message, "a channel cannot be opened");
    // The older channel still works, and whoever renews it tells when it does not any more.
    if replaces.is_some() {
        return Ok(ChannelOpening::NotYet(message));
    }
    if error.is_definite() || failures + 1 == MAX_OPEN_FAILURES {
        send_lost_notice(inner, task, tool, event, OPENING, &message).await?;
    }
    Ok(if error.is_definite() {
        ChannelOpening::Never(message)
    } else {
        ChannelOpening::NotYet(message)
    })
}
