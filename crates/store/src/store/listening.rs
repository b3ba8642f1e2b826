//! Polls and push channels: how a task listens to platforms.

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{
    ChannelFilter, ChannelRecord, ChannelToClose, ChannelUpdate, ClaimedChannel, ClaimedPoll,
    Millis, NewChannel, PollCommit, PollRecord, ReceiveOutcome,
};
use crate::sql::{channels, polls};

impl Store {
    /// The polls of a task.
    pub async fn polls(&self, task: &str) -> Result<Vec<PollRecord>> {
        transaction!(self, Read, [task = task.to_owned()], |tx| polls::of_task(
            tx, task
        ))
    }

    /// Leases polls that are due and that nobody holds, of tasks that are neither interrupted nor ended. The tools take
    /// turns, and of each tool no more than `per_tool` are held at once, by whomever.
    pub async fn claim_polls(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
        per_tool: usize,
    ) -> Result<Vec<ClaimedPoll>> {
        transaction!(
            self,
            Write,
            [
                owner = owner.to_owned(),
                lease_ms = lease_ms,
                limit = limit,
                per_tool = per_tool
            ],
            |tx| polls::claim(tx, owner, *lease_ms, *limit, *per_tool)
        )
    }

    /// Records a poll with what it found, and releases its lease.
    pub async fn commit_poll(&self, commit: PollCommit) -> Result<Vec<ReceiveOutcome>> {
        transaction!(self, Write, [commit = commit], |tx| polls::commit(
            tx, commit
        ))
    }

    /// Records that a channel is about to be asked for, and leases it. `Conflict` if there is one with this id.
    pub async fn open_channel(
        &self,
        channel: NewChannel,
        owner: &str,
        lease_ms: Millis,
    ) -> Result<ClaimedChannel> {
        transaction!(
            self,
            Write,
            [
                channel = channel,
                owner = owner.to_owned(),
                lease_ms = lease_ms
            ],
            |tx| channels::open(tx, channel, owner, *lease_ms)
        )
    }

    /// The channel; `NotFound` if there is none.
    pub async fn channel(&self, id: &str) -> Result<ChannelRecord> {
        transaction!(self, Read, [id = id.to_owned()], |tx| channels::get(tx, id))
    }

    /// The channel of a callback address; `NotFound` if there is none.
    pub async fn channel_at(&self, callback: &str) -> Result<ChannelRecord> {
        transaction!(self, Read, [callback = callback.to_owned()], |tx| {
            channels::at(tx, callback)
        })
    }

    /// Channels, oldest first.
    pub async fn channels(&self, filter: ChannelFilter) -> Result<Vec<ChannelRecord>> {
        transaction!(self, Read, [filter = filter], |tx| channels::list(
            tx, filter
        ))
    }

    /// Changes a channel.
    pub async fn update_channel(&self, update: ChannelUpdate) -> Result<ChannelRecord> {
        transaction!(self, Write, [update = update], |tx| channels::update(
            tx, update
        ))
    }

    /// Leases active channels that are to be renewed, of tasks that are neither interrupted nor ended.
    pub async fn claim_renewals(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<ClaimedChannel>> {
        transaction!(
            self,
            Write,
            [owner = owner.to_owned(), lease_ms = lease_ms, limit = limit],
            |tx| channels::claim_renewals(tx, owner, *lease_ms, *limit)
        )
    }

    /// Leases channels that are to be closed and that nobody holds. Those that have a `renew_at` in the future after a
    /// failure wait for it.
    pub async fn claim_sweeps(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<ChannelToClose>> {
        transaction!(
            self,
            Write,
            [owner = owner.to_owned(), lease_ms = lease_ms, limit = limit],
            |tx| channels::claim_sweeps(tx, owner, *lease_ms, *limit)
        )
    }
}
