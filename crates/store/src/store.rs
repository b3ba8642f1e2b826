//! The trait that everything durable goes through. Both engines keep the same contract (`tests/it/contract/`).

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::error::Result;
use crate::model::{
    AllowEntry, ApiKey, Append, Appended, Channel, ChannelFilter, ChannelUpdate, Claim,
    ClaimedChannel, ClaimedEvent, ClaimedPoll, ClaimedTask, Delivery, DirectDelivery, EventDetail,
    EventFilter, EventSummary, Fire, Fired, Held, Interest, Interested, Lease, LeaseKind, Millis,
    NewApiKey, NewChannel, NewEvent, NewPoll, NewRun, NewTask, Poll, PollCommit, Received,
    Retention, Routing, Run, RunSummary, StartFailure, StartKey, StartStatus, StateChange, Stats,
    Swept, SweptChannel, Task, TaskFilter, ToolRef, TraceEntry, Turn, Wake,
};
use crate::timing::Timings;

/// Durable state.
///
/// Each method is one transaction: all of it is durable when it returns, or none of it happened. After
/// [`StoreError::Unavailable`](crate::StoreError::Unavailable) a write may have happened; each says how repeating it
/// is safe: by a key, by an expected number, or by a fence. Lease times are counted by the clock of the database,
/// never by that of the process.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    // Tasks and their turns.

    /// Creates a task with its interests, sealed allow-list entries, polls and first input. `Conflict` if there is one
    /// with this id.
    async fn create_task(&self, task: NewTask) -> Result<Task>;

    /// The task; `NotFound` if there is none.
    async fn task(&self, id: &str) -> Result<Task>;

    /// Tasks, newest first.
    async fn tasks(&self, filter: TaskFilter) -> Result<Vec<Task>>;

    /// What the last `Append` with a snapshot left.
    async fn snapshot(&self, task: &str) -> Result<Option<Value>>;

    /// Changes what a task is doing, and with it whether its interests are active.
    async fn change_state(&self, change: StateChange) -> Result<Task>;

    /// Removes a task with its turns, allow list, interests, polls, deliveries and trace. Channels stay, to be swept.
    /// `Conflict` while somebody holds its lease.
    async fn delete_task(&self, id: &str) -> Result<()>;

    /// Appends turns: the heart of exactly-once. The turns, the allow list, the state, the snapshot and the delivery
    /// that became a turn are one transaction, which happens once: `Fenced` if the lease has moved, `Conflict` if the
    /// number is not the next one or the delivery is settled.
    async fn append(&self, append: Append) -> Result<Appended>;

    /// The turns from this number on, oldest first.
    async fn turns(&self, task: &str, from: i64, limit: usize) -> Result<Vec<Turn>>;

    /// The allow list of a task, for all tools, in the order of its growth.
    async fn allow_list(&self, task: &str) -> Result<Vec<AllowEntry>>;

    // Interests.

    /// All interests of a task.
    async fn interests(&self, task: &str) -> Result<Vec<Interest>>;

    /// The active interests in events of a tool, each with the task's allow list for that tool. An empty namespace
    /// stands for every namespace. With a task, only that task's.
    async fn interested(&self, tool: &ToolRef, task: Option<&str>) -> Result<Vec<Interested>>;

    // Events.

    /// Stores events, all or none. They are durable when this returns, in the order given. Repeating it is safe for events with a
    /// key.
    async fn receive(&self, events: Arc<[NewEvent]>) -> Result<Vec<Received>>;

    /// Claims events that are not routed, oldest first, for as long as this. They come with their payloads: ask for few.
    async fn claim_events(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<ClaimedEvent>>;

    /// Gives a claim back, so that another process can have the event at once.
    async fn unclaim_event(&self, claim: Claim) -> Result<()>;

    /// Records what was decided about an event, with its deliveries and new tasks. The ids of the deliveries are in
    /// the order given. `Fenced` if another process has claimed the event, `Conflict` if it is routed already.
    async fn route(&self, routing: Routing) -> Result<Vec<i64>>;

    /// Records what was decided about many events, in this order, in one transaction. Claims that are lost are told
    /// one by one, as [`Store::route`] tells them, and hinder no other; with any other error nothing is recorded at
    /// all, and each can be tried alone.
    async fn route_all(&self, routings: Vec<Routing>) -> Result<Vec<Result<Vec<i64>>>>;

    /// Events, newest first.
    async fn events(&self, filter: EventFilter) -> Result<Vec<EventSummary>>;

    /// An event with its payload, its deliveries and its fate; `NotFound` if there is none.
    async fn event(&self, id: i64) -> Result<EventDetail>;

    /// Makes a routed event one that is to be routed, as a new attempt, whose number it returns. `Conflict` if the
    /// event is still to be routed.
    async fn replay(&self, id: i64) -> Result<i64>;

    // Deliveries.

    /// Gives a task an input that comes from no event, and the id of the delivery, which is the old one if the key is
    /// known. `Conflict` if the task has ended.
    async fn deliver(&self, task: &str, delivery: DirectDelivery) -> Result<Received>;

    /// The pending deliveries of a task, oldest first.
    async fn pending(&self, task: &str, limit: usize) -> Result<Vec<Delivery>>;

    /// The deliveries of a task, newest first, before this id.
    async fn deliveries(
        &self,
        task: &str,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Delivery>>;

    /// Settles a pending delivery without giving it to the task.
    async fn discard(&self, held: Held, delivery: i64, reason: &str) -> Result<()>;

    /// Leases tasks that have something to do and that nobody holds: those with pending deliveries, and those that are
    /// `running` without a live lease. Longest waiting first.
    async fn claim_tasks(
        &self,
        owner: &str,
        lease_ms: Millis,
        wake: Wake,
        limit: usize,
    ) -> Result<Vec<ClaimedTask>>;

    // Leases.

    /// Acquires a lease, with a new fence. `None` while somebody holds it, be it the same owner.
    async fn acquire(
        &self,
        kind: LeaseKind,
        name: &str,
        owner: &str,
        lease_ms: Millis,
    ) -> Result<Option<Lease>>;

    /// Acquires leases of a kind that were held once and have run out or were released.
    async fn acquire_expired(
        &self,
        kind: LeaseKind,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<Lease>>;

    /// Makes a lease last this long from now; `Fenced` if it has moved or was released.
    async fn renew(&self, held: Held, lease_ms: Millis) -> Result<Lease>;

    /// Makes every lease of an owner last this long from now. Returns those that are still the owner's.
    async fn renew_all(&self, owner: &str, lease_ms: Millis) -> Result<Vec<Lease>>;

    /// Ends a lease. Nothing happens if it has moved.
    async fn release(&self, held: Held) -> Result<()>;

    /// Ends every lease and every claim of events of an owner, for shutting down. Returns how many.
    async fn release_all(&self, owner: &str) -> Result<u64>;

    /// Takes a lease away from whoever holds it, so that their next write is `Fenced`.
    async fn break_lease(&self, kind: LeaseKind, name: &str) -> Result<()>;

    /// The leases of a kind that somebody holds (or held until they ran out), by name.
    async fn leases(&self, kind: LeaseKind) -> Result<Vec<Lease>>;

    // Polls.

    /// Adds polls to a task. Those that are there stay as they are.
    async fn add_polls(&self, task: &str, polls: Vec<NewPoll>) -> Result<()>;

    /// The polls of a task.
    async fn polls(&self, task: &str) -> Result<Vec<Poll>>;

    /// Removes a poll of a task, if it is there.
    async fn remove_poll(&self, task: &str, tool: &ToolRef, event: &str) -> Result<()>;

    /// Leases polls that are due and that nobody holds, of tasks that are neither interrupted nor ended.
    async fn claim_polls(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<ClaimedPoll>>;

    /// Records a poll with what it found, and releases its lease.
    async fn commit_poll(&self, commit: PollCommit) -> Result<Vec<Received>>;

    // Channels.

    /// Records that a channel is about to be asked for, and leases it. `Conflict` if there is one with this id.
    async fn open_channel(
        &self,
        channel: NewChannel,
        owner: &str,
        lease_ms: Millis,
    ) -> Result<ClaimedChannel>;

    /// The channel; `NotFound` if there is none.
    async fn channel(&self, id: &str) -> Result<Channel>;

    /// Channels, oldest first.
    async fn channels(&self, filter: ChannelFilter) -> Result<Vec<Channel>>;

    /// Changes a channel.
    async fn update_channel(&self, update: ChannelUpdate) -> Result<Channel>;

    /// Leases active channels that are to be renewed, of tasks that are neither interrupted nor ended.
    async fn claim_renewals(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<ClaimedChannel>>;

    /// Leases channels that are to be closed and that nobody holds. Those that have a `renew_at` in the future after a
    /// failure wait for it.
    async fn claim_sweeps(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<SweptChannel>>;

    // Schedules and triggers.

    /// What is known about all of them.
    async fn starts(&self) -> Result<Vec<StartStatus>>;

    /// What is known about one, if it ever did anything.
    async fn start(&self, key: &StartKey) -> Result<Option<StartStatus>>;

    /// Notes when a schedule is due next.
    async fn set_next(&self, key: &StartKey, next_at: Option<Millis>) -> Result<()>;

    /// Fires a tick of a schedule, once.
    async fn fire(&self, fire: Fire) -> Result<Fired>;

    /// Counts a failure.
    async fn start_failed(&self, failure: StartFailure) -> Result<()>;

    // Records.

    /// Appends to the trace of a task.
    async fn append_trace(&self, task: &str, entries: Vec<Value>) -> Result<()>;

    /// The trace of a task from this number on, oldest first.
    async fn trace(&self, task: &str, from: i64, limit: usize) -> Result<Vec<TraceEntry>>;

    /// Stores a run; one with the same id is replaced.
    async fn save_run(&self, run: NewRun) -> Result<()>;

    /// The run; `NotFound` if there is none.
    async fn run(&self, id: &str) -> Result<Run>;

    /// Runs, newest first; after this one in the list.
    async fn runs(&self, after: Option<&str>, limit: usize) -> Result<Vec<RunSummary>>;

    /// Stores a key of the API. `Conflict` if the id or the hash is known.
    async fn add_api_key(&self, key: NewApiKey) -> Result<ApiKey>;

    /// The key with this hash, be it good or not any more.
    async fn api_key(&self, hash: &str) -> Result<Option<ApiKey>>;

    /// All keys, oldest first.
    async fn api_keys(&self) -> Result<Vec<ApiKey>>;

    /// Revokes a key; `NotFound` if there is none.
    async fn revoke_api_key(&self, id: &str) -> Result<()>;

    // The store itself.

    /// Removes what is old enough.
    async fn sweep(&self, retention: Retention) -> Result<Swept>;

    /// How much there is.
    async fn stats(&self) -> Result<Stats>;

    /// Writes something, to see whether that is possible.
    async fn health(&self) -> Result<()>;

    /// The version of the schema.
    async fn schema_version(&self) -> Result<i64>;

    /// The time, by the clock that leases are counted by.
    async fn now(&self) -> Result<Millis>;

    /// How long transactions took and how many failed, as far as this process made them.
    fn timings(&self) -> Arc<Timings>;

    /// Finishes what is under way and closes the database. Later calls are `Unavailable`.
    async fn close(&self);
}
