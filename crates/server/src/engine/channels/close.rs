//! Closing channels at their platforms, also for tasks that are gone.

use std::sync::Arc;

use jiff::Timestamp;
use proofhouse_store::model::{ChannelRecord, ChannelState, ChannelUpdate, TaskRecord, TaskState};
use proofhouse_store::{Result, StoreError};
use proofhouse_tools::receive::subscription::{self, ChannelRequest, Unsubscribed};
use serde_json::Value;

use super::{pause_ms, subscription_of, update};
use crate::engine::held_leases::LeaseGuard;
use crate::engine::{EngineShared, listener};
use crate::metrics::engine::ChannelStep;

/// How often closing is tried; after that the platform ends the channel by itself.
const MAX_CLOSE_FAILURES: i64 = 10;

/// Closes a channel at the platform.
pub(super) async fn close(inner: &Arc<EngineShared>, channel: ChannelRecord, guard: LeaseGuard) {
    let held = guard.held().clone();
    let change = match closing(inner, &channel).await {
        Ok(Unsubscribed::Gone) => ChannelUpdate {
            to: Some(ChannelState::Closed),
            ..update(&channel.id)
        },
        Ok(Unsubscribed::Impossible { error }) => ChannelUpdate {
            to: Some(ChannelState::Closed),
            last_error: Some(format!("it ends by itself: {error}")),
            ..update(&channel.id)
        },
        Ok(Unsubscribed::Failed { error }) => {
            let failures = channel.failures.saturating_add(1);
            let now = inner.options.now().as_millisecond();
            let gives_up = failures >= MAX_CLOSE_FAILURES;
            ChannelUpdate {
                to: Some(if gives_up {
                    ChannelState::Closed
                } else {
                    ChannelState::Closing
                }),
                renew_at: Some(now.saturating_add(pause_ms(failures))),
                failures: Some(failures),
                last_error: Some(error.to_string()),
                ..update(&channel.id)
            }
        }
        Err(error) => {
            inner.log_store_error("a channel cannot be closed", &error);
            return;
        }
    };
    inner.counts().channel_steps.one(match change.failures {
        Some(_) => ChannelStep::CloseFailed,
        None => ChannelStep::Closed,
    });
    let change = ChannelUpdate {
        held: Some(held),
        ..change
    };
    match inner.store.update_channel(change).await {
        Ok(_) => guard.ended(),
        Err(StoreError::Fenced(_) | StoreError::Conflict(_)) => {}
        Err(error) => inner.log_store_error("a channel cannot be changed", &error),
    }
}

async fn closing(inner: &Arc<EngineShared>, channel: &ChannelRecord) -> Result<Unsubscribed> {
    let snapshot = inner.manifests.current();
    let task = match inner.store.task(&channel.task).await {
        Ok(task) => task,
        // A task that was deleted has left its channels to be closed with what is known of the tool.
        Err(StoreError::NotFound(_)) => nobody(channel),
        Err(error) => return Err(error),
    };
    let Some(listener) = listener::of(inner, &snapshot, &task, &channel.tool).await? else {
        return Ok(Unsubscribed::Gone);
    };
    let Some(declared) = subscription_of(&listener, &channel.event) else {
        return Ok(Unsubscribed::Gone);
    };
    let opening = ChannelRequest {
        id: channel.id.clone(),
        callback: channel.callback.clone().unwrap_or_default(),
        expires_at: channel
            .expires_at
            .and_then(|end| Timestamp::from_millisecond(end).ok())
            .unwrap_or(Timestamp::MAX),
    };
    let response = channel.response.clone().unwrap_or(Value::Null);
    let client = &inner.options.call_client();
    Ok(subscription::unsubscribe(client, declared, &listener, &opening, &response).await)
}

/// What stands for a task that is not there any more.
fn nobody(channel: &ChannelRecord) -> TaskRecord {
    TaskRecord {
        id: channel.task.clone(),
        agent_namespace: channel.tool.namespace.clone(),
        agent_name: String::new(),
        model: None,
        user_id: String::new(),
        user_email: None,
        params: Value::Null,
        origin: Value::Null,
        state: TaskState::Ended,
        detail: None,
        next_seq: 0,
        created_at: 0,
        last_activity: 0,
    }
}
