//! The store on an engine: each method is one transaction of statements from the modules beside this one.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::session::{Engine, Mode, Work};
use super::{
    channels, deliveries, events, interests, leases, polls, records, starts, tasks, turns, upkeep,
};
use crate::error::Result;
use crate::model::{
    AllowEntry, ApiKey, Append, Appended, Channel, ChannelFilter, ChannelUpdate, Claim,
    ClaimedChannel, ClaimedEvent, ClaimedPoll, ClaimedTask, Delivery, DirectDelivery, EventDetail,
    EventFilter, EventSummary, Fire, Fired, Held, Interest, Interested, Lease, LeaseKind, Millis,
    NewApiKey, NewChannel, NewEvent, NewPoll, NewRun, NewTask, Poll, PollCommit, Received,
    Retention, Routing, Run, RunSummary, StartFailure, StartKey, StartStatus, StateChange, Stats,
    Swept, SweptChannel, Task, TaskFilter, ToolRef, TraceEntry, Turn, Wake,
};
use crate::store::Store;
use crate::timing::Timings;

/// A store whose statements an engine runs.
pub struct SqlStore<E> {
    pub(crate) engine: E,
    pub(crate) timings: Arc<Timings>,
}

impl<E> SqlStore<E> {
    pub(crate) fn on(engine: E) -> Self {
        Self {
            engine,
            timings: Arc::default(),
        }
    }
}

impl<E> std::fmt::Debug for SqlStore<E> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SqlStore").finish_non_exhaustive()
    }
}

/// Runs statements in one transaction. They may be run again, so what they need is shared with them.
macro_rules! run {
    ($self:ident, $mode:ident, [$($input:ident = $value:expr),*], |$tx:ident| $statements:expr) => {{
        let input = Arc::new(($($value,)*));
        let work: Work<_> = Box::new(move |$tx| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let ($($input,)*) = &*input;
                $statements.await
            })
        });
        let transaction = $self.engine.run(Mode::$mode, work);
        $self.timings.measured(Mode::$mode, transaction).await
    }};
}

#[async_trait]
impl<E: Engine> Store for SqlStore<E> {
    async fn create_task(&self, task: NewTask) -> Result<Task> {
        run!(self, Write, [task = task], |tx| tasks::create(tx, task))
    }

    async fn task(&self, id: &str) -> Result<Task> {
        run!(self, Read, [id = id.to_owned()], |tx| tasks::get(tx, id))
    }

    async fn tasks(&self, filter: TaskFilter) -> Result<Vec<Task>> {
        run!(self, Read, [filter = filter], |tx| tasks::list(tx, filter))
    }

    async fn snapshot(&self, task: &str) -> Result<Option<Value>> {
        run!(self, Read, [task = task.to_owned()], |tx| tasks::snapshot(
            tx, task
        ))
    }

    async fn change_state(&self, change: StateChange) -> Result<Task> {
        run!(self, Write, [change = change], |tx| tasks::change_state(
            tx, change
        ))
    }

    async fn delete_task(&self, id: &str) -> Result<()> {
        run!(self, Write, [id = id.to_owned()], |tx| tasks::delete(
            tx, id
        ))
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        run!(self, Write, [append = append], |tx| turns::append(
            tx, append
        ))
    }

    async fn turns(&self, task: &str, from: i64, limit: usize) -> Result<Vec<Turn>> {
        run!(
            self,
            Read,
            [task = task.to_owned(), from = from, limit = limit],
            |tx| turns::list(tx, task, *from, *limit)
        )
    }

    async fn allow_list(&self, task: &str) -> Result<Vec<AllowEntry>> {
        run!(self, Read, [task = task.to_owned()], |tx| {
            interests::allow_list(tx, task)
        })
    }

    async fn interests(&self, task: &str) -> Result<Vec<Interest>> {
        run!(self, Read, [task = task.to_owned()], |tx| {
            interests::of_task(tx, task)
        })
    }

    async fn interested(&self, tool: &ToolRef, task: Option<&str>) -> Result<Vec<Interested>> {
        run!(
            self,
            Read,
            [tool = tool.clone(), task = task.map(str::to_owned)],
            |tx| interests::in_tool(tx, tool, task.as_deref())
        )
    }

    async fn receive(&self, events: Arc<[NewEvent]>) -> Result<Vec<Received>> {
        run!(self, Write, [events = events], |tx| events::receive(
            tx, events
        ))
    }

    async fn claim_events(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<ClaimedEvent>> {
        run!(
            self,
            Write,
            [owner = owner.to_owned(), lease_ms = lease_ms, limit = limit],
            |tx| events::claim(tx, owner, *lease_ms, *limit)
        )
    }

    async fn unclaim_event(&self, claim: Claim) -> Result<()> {
        run!(self, Write, [claim = claim], |tx| events::unclaim(
            tx, *claim
        ))
    }

    async fn route(&self, routing: Routing) -> Result<Vec<i64>> {
        run!(self, Write, [routing = routing], |tx| events::route(
            tx, routing
        ))
    }

    async fn route_all(&self, routings: Vec<Routing>) -> Result<Vec<Result<Vec<i64>>>> {
        run!(self, Write, [routings = routings], |tx| events::route_all(
            tx, routings
        ))
    }

    async fn events(&self, filter: EventFilter) -> Result<Vec<EventSummary>> {
        run!(self, Read, [filter = filter], |tx| events::list(tx, filter))
    }

    async fn event(&self, id: i64) -> Result<EventDetail> {
        run!(self, Read, [id = id], |tx| events::get(tx, *id))
    }

    async fn replay(&self, id: i64) -> Result<i64> {
        run!(self, Write, [id = id], |tx| events::replay(tx, *id))
    }

    async fn deliver(&self, task: &str, delivery: DirectDelivery) -> Result<Received> {
        run!(
            self,
            Write,
            [task = task.to_owned(), delivery = delivery],
            |tx| deliveries::deliver(tx, task, delivery)
        )
    }

    async fn pending(&self, task: &str, limit: usize) -> Result<Vec<Delivery>> {
        run!(self, Read, [task = task.to_owned(), limit = limit], |tx| {
            deliveries::pending(tx, task, *limit)
        })
    }

    async fn deliveries(
        &self,
        task: &str,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Delivery>> {
        run!(
            self,
            Read,
            [task = task.to_owned(), before = before, limit = limit],
            |tx| deliveries::of_task(tx, task, *before, *limit)
        )
    }

    async fn discard(&self, held: Held, delivery: i64, reason: &str) -> Result<()> {
        run!(
            self,
            Write,
            [held = held, delivery = delivery, reason = reason.to_owned()],
            |tx| deliveries::discard(tx, held, *delivery, reason)
        )
    }

    async fn claim_tasks(
        &self,
        owner: &str,
        lease_ms: Millis,
        wake: Wake,
        limit: usize,
    ) -> Result<Vec<ClaimedTask>> {
        run!(
            self,
            Write,
            [
                owner = owner.to_owned(),
                lease_ms = lease_ms,
                wake = wake,
                limit = limit
            ],
            |tx| deliveries::claim_tasks(tx, owner, *lease_ms, *wake, *limit)
        )
    }

    async fn acquire(
        &self,
        kind: LeaseKind,
        name: &str,
        owner: &str,
        lease_ms: Millis,
    ) -> Result<Option<Lease>> {
        run!(
            self,
            Write,
            [
                kind = kind,
                name = name.to_owned(),
                owner = owner.to_owned(),
                lease_ms = lease_ms
            ],
            |tx| leases::acquire(tx, *kind, name, owner, *lease_ms)
        )
    }

    async fn acquire_expired(
        &self,
        kind: LeaseKind,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<Lease>> {
        run!(
            self,
            Write,
            [
                kind = kind,
                owner = owner.to_owned(),
                lease_ms = lease_ms,
                limit = limit
            ],
            |tx| leases::acquire_expired(tx, *kind, owner, *lease_ms, *limit)
        )
    }

    async fn renew(&self, held: Held, lease_ms: Millis) -> Result<Lease> {
        run!(self, Write, [held = held, lease_ms = lease_ms], |tx| {
            leases::renew(tx, held, *lease_ms)
        })
    }

    async fn renew_all(&self, owner: &str, lease_ms: Millis) -> Result<Vec<Lease>> {
        run!(
            self,
            Write,
            [owner = owner.to_owned(), lease_ms = lease_ms],
            |tx| leases::renew_all(tx, owner, *lease_ms)
        )
    }

    async fn release(&self, held: Held) -> Result<()> {
        run!(self, Write, [held = held], |tx| leases::release(tx, held))
    }

    async fn release_all(&self, owner: &str) -> Result<u64> {
        run!(self, Write, [owner = owner.to_owned()], |tx| {
            leases::release_all(tx, owner)
        })
    }

    async fn break_lease(&self, kind: LeaseKind, name: &str) -> Result<()> {
        run!(self, Write, [kind = kind, name = name.to_owned()], |tx| {
            leases::break_lease(tx, *kind, name)
        })
    }

    async fn leases(&self, kind: LeaseKind) -> Result<Vec<Lease>> {
        run!(self, Read, [kind = kind], |tx| leases::list(tx, *kind))
    }

    async fn add_polls(&self, task: &str, polls: Vec<NewPoll>) -> Result<()> {
        run!(self, Write, [task = task.to_owned(), polls = polls], |tx| {
            polls::add_to(tx, task, polls)
        })
    }

    async fn polls(&self, task: &str) -> Result<Vec<Poll>> {
        run!(self, Read, [task = task.to_owned()], |tx| polls::of_task(
            tx, task
        ))
    }

    async fn remove_poll(&self, task: &str, tool: &ToolRef, event: &str) -> Result<()> {
        run!(
            self,
            Write,
            [
                task = task.to_owned(),
                tool = tool.clone(),
                event = event.to_owned()
            ],
            |tx| polls::remove(tx, task, tool, event)
        )
    }

    async fn claim_polls(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<ClaimedPoll>> {
        run!(
            self,
            Write,
            [owner = owner.to_owned(), lease_ms = lease_ms, limit = limit],
            |tx| polls::claim(tx, owner, *lease_ms, *limit)
        )
    }

    async fn commit_poll(&self, commit: PollCommit) -> Result<Vec<Received>> {
        run!(self, Write, [commit = commit], |tx| polls::commit(
            tx, commit
        ))
    }

    async fn open_channel(
        &self,
        channel: NewChannel,
        owner: &str,
        lease_ms: Millis,
    ) -> Result<ClaimedChannel> {
        run!(
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

    async fn channel(&self, id: &str) -> Result<Channel> {
        run!(self, Read, [id = id.to_owned()], |tx| channels::get(tx, id))
    }

    async fn channels(&self, filter: ChannelFilter) -> Result<Vec<Channel>> {
        run!(self, Read, [filter = filter], |tx| channels::list(
            tx, filter
        ))
    }

    async fn update_channel(&self, update: ChannelUpdate) -> Result<Channel> {
        run!(self, Write, [update = update], |tx| channels::update(
            tx, update
        ))
    }

    async fn claim_renewals(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<ClaimedChannel>> {
        run!(
            self,
            Write,
            [owner = owner.to_owned(), lease_ms = lease_ms, limit = limit],
            |tx| channels::claim_renewals(tx, owner, *lease_ms, *limit)
        )
    }

    async fn claim_sweeps(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<SweptChannel>> {
        run!(
            self,
            Write,
            [owner = owner.to_owned(), lease_ms = lease_ms, limit = limit],
            |tx| channels::claim_sweeps(tx, owner, *lease_ms, *limit)
        )
    }

    async fn starts(&self) -> Result<Vec<StartStatus>> {
        run!(self, Read, [], |tx| starts::list(tx))
    }

    async fn start(&self, key: &StartKey) -> Result<Option<StartStatus>> {
        run!(self, Read, [key = key.clone()], |tx| starts::get(tx, key))
    }

    async fn set_next(&self, key: &StartKey, next_at: Option<Millis>) -> Result<()> {
        run!(self, Write, [key = key.clone(), next_at = next_at], |tx| {
            starts::set_next(tx, key, *next_at)
        })
    }

    async fn fire(&self, fire: Fire) -> Result<Fired> {
        run!(self, Write, [fire = fire], |tx| starts::fire(tx, fire))
    }

    async fn start_failed(&self, failure: StartFailure) -> Result<()> {
        run!(self, Write, [failure = failure], |tx| starts::failed(
            tx, failure
        ))
    }

    async fn append_trace(&self, task: &str, entries: Vec<Value>) -> Result<()> {
        run!(
            self,
            Write,
            [task = task.to_owned(), entries = entries],
            |tx| records::append_trace(tx, task, entries)
        )
    }

    async fn trace(&self, task: &str, from: i64, limit: usize) -> Result<Vec<TraceEntry>> {
        run!(
            self,
            Read,
            [task = task.to_owned(), from = from, limit = limit],
            |tx| records::trace(tx, task, *from, *limit)
        )
    }

    async fn save_run(&self, run: NewRun) -> Result<()> {
        run!(self, Write, [run = run], |tx| records::save_run(tx, run))
    }

    async fn run(&self, id: &str) -> Result<Run> {
        run!(self, Read, [id = id.to_owned()], |tx| records::run(tx, id))
    }

    async fn runs(&self, after: Option<&str>, limit: usize) -> Result<Vec<RunSummary>> {
        run!(
            self,
            Read,
            [after = after.map(str::to_owned), limit = limit],
            |tx| records::runs(tx, after.as_deref(), *limit)
        )
    }

    async fn add_api_key(&self, key: NewApiKey) -> Result<ApiKey> {
        run!(self, Write, [key = key], |tx| records::add_key(tx, key))
    }

    async fn api_key(&self, hash: &str) -> Result<Option<ApiKey>> {
        run!(self, Read, [hash = hash.to_owned()], |tx| records::key(
            tx, hash
        ))
    }

    async fn api_keys(&self) -> Result<Vec<ApiKey>> {
        run!(self, Read, [], |tx| records::keys(tx))
    }

    async fn revoke_api_key(&self, id: &str) -> Result<()> {
        run!(self, Write, [id = id.to_owned()], |tx| records::revoke_key(
            tx, id
        ))
    }

    async fn sweep(&self, retention: Retention) -> Result<Swept> {
        run!(self, Write, [retention = retention], |tx| upkeep::sweep(
            tx, retention
        ))
    }

    async fn stats(&self) -> Result<Stats> {
        run!(self, Read, [], |tx| upkeep::stats(tx))
    }

    async fn health(&self) -> Result<()> {
        run!(self, Write, [], |tx| upkeep::health(tx))
    }

    async fn schema_version(&self) -> Result<i64> {
        run!(self, Read, [], |tx| upkeep::schema_version(tx))
    }

    async fn now(&self) -> Result<Millis> {
        run!(self, Read, [], |tx| upkeep::now(tx))
    }

    fn timings(&self) -> Arc<Timings> {
        Arc::clone(&self.timings)
    }

    async fn close(&self) {
        self.engine.close().await;
    }
}
