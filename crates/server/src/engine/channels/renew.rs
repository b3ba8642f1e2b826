//! Renewing channels: a successor is opened before the old one ends.

use std::sync::Arc;

use proofhouse_store::model::{ChannelRecord, ChannelState, ChannelUpdate};
use proofhouse_store::{Result, StoreError};

use super::lost_notice::send_lost_notice;
use super::open::{ChannelOpening, open};
use super::{ensure, is_over, pause_ms, update};
use crate::engine::EngineShared;
use crate::engine::held_leases::LeaseGuard;

/// Opens the successor of a channel; the old one stays open until that is done.
pub(super) async fn renew(inner: &Arc<EngineShared>, channel: ChannelRecord, guard: LeaseGuard) {
    match successor(inner, &channel).await {
        Ok(mut update) => {
            update.held = Some(guard.held().clone());
            match inner.store.update_channel(update).await {
                // Another one is opened as soon as there can be one.
                Ok(channel) if channel.state == ChannelState::Lost => ensure(inner, &channel.task),
                Ok(_) | Err(StoreError::Fenced(_) | StoreError::Conflict(_)) => {}
                Err(error) => inner.log_store_error("a channel cannot be changed", &error),
            }
        }
        Err(error) => inner.log_store_error("a channel cannot be renewed", &error),
    }
}

/// What becomes of the old channel.
async fn successor(inner: &Arc<EngineShared>, channel: &ChannelRecord) -> Result<ChannelUpdate> {
    let task = inner.store.task(&channel.task).await?;
    let now = inner.options.now().as_millisecond();
    let interests = inner.store.interests(&channel.task).await?;
    let interest = interests
        .iter()
        .find(|one| one.tool == channel.tool && one.event == channel.event);
    if is_over(inner, interest, &task) {
        // The task listens no longer, so there is nothing to renew.
        return Ok(ChannelUpdate {
            to: Some(ChannelState::Closing),
            ..update(&channel.id)
        });
    }
    let (tool, event) = (&channel.tool, &channel.event);
    let opened = open(inner, &task, tool, event, Some(channel), 0).await?;
    Ok(match opened {
        // The successor has made it `replaced`; nothing is left to change.
        ChannelOpening::Yes => ChannelUpdate {
            failures: Some(0),
            ..update(&channel.id)
        },
        ChannelOpening::Never(error) => ChannelUpdate {
            to: Some(ChannelState::Closing),
            last_error: Some(error),
            ..update(&channel.id)
        },
        ChannelOpening::NotYet(error) => {
            let failures = channel.failures.saturating_add(1);
            let expired = channel.expires_at.is_some_and(|end| end <= now);
            if expired {
                send_lost_notice(inner, &task, tool, event, &channel.id, &error).await?;
            }
            ChannelUpdate {
                to: expired.then_some(ChannelState::Lost),
                renew_at: Some(now.saturating_add(pause_ms(failures))),
                failures: Some(failures),
                last_error: Some(error),
                ..update(&channel.id)
            }
        }
    })
}
