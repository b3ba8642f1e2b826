//! Events and the deliveries that come of them.

use std::sync::Arc;

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{
    ClaimedEvent, ClaimedTask, DeliveryRecord, DirectDelivery, EventClaim, EventDetail,
    EventFilter, EventRecord, EventRouting, EventSummary, HeldLease, Millis, NewEvent,
    ReceiveOutcome, TaskQueues, WakeRules,
};
use crate::sql::deliveries::DeliveryQueue;
use crate::sql::{deliveries, events, tasks};

impl Store {
    /// Stores events, all or none. They are durable when this returns, in the order given. Repeating it is safe for events with a
    /// key.
    pub async fn receive(&self, events: Arc<[NewEvent]>) -> Result<Vec<ReceiveOutcome>> {
        transaction!(self, Write, [events = events], |tx| events::receive(
            tx, events
        ))
    }

    /// Claims events that are not routed, oldest first, for as long as this. They come with their payloads: ask for few.
    pub async fn claim_events(
        &self,
        owner: &str,
        lease_ms: Millis,
        limit: usize,
    ) -> Result<Vec<ClaimedEvent>> {
        transaction!(
            self,
            Write,
            [owner = owner.to_owned(), lease_ms = lease_ms, limit = limit],
            |tx| events::claim(tx, owner, *lease_ms, *limit)
        )
    }

    /// Gives a claim back, so that another process can have the event at once.
    pub async fn unclaim_event(&self, claim: EventClaim) -> Result<()> {
        transaction!(self, Write, [claim = claim], |tx| events::unclaim(
            tx, *claim
        ))
    }

    /// Records what was decided about an event, with its deliveries and new tasks. The ids of the deliveries are in
    /// the order given. `Fenced` if another process has claimed the event, `Conflict` if it is routed already.
    pub async fn route(&self, routing: EventRouting) -> Result<Vec<i64>> {
        transaction!(self, Write, [routing = routing], |tx| events::route(
            tx, routing
        ))
    }

    /// Records what was decided about many events, in this order, in one transaction. Claims that are lost are told
    /// one by one, as [`Store::route`] tells them, and hinder no other; with any other error nothing is recorded at
    /// all, and each can be tried alone.
    pub async fn route_all(&self, routings: Vec<EventRouting>) -> Result<Vec<Result<Vec<i64>>>> {
        transaction!(self, Write, [routings = routings], |tx| events::route_all(
            tx, routings
        ))
    }

    /// Events, newest first.
    pub async fn events(&self, filter: EventFilter) -> Result<Vec<EventSummary>> {
        transaction!(self, Read, [filter = filter], |tx| events::list(tx, filter))
    }

    /// An event with its payload and nothing else, for whoever works on one of its deliveries; `NotFound` if there is none.
    pub async fn event_record(&self, id: i64) -> Result<EventRecord> {
        transaction!(self, Read, [id = id], |tx| events::record(tx, *id))
    }

    /// An event with its payload, its newest deliveries (as many as a page has) and what routing decided; `NotFound` if there
    /// is none.
    pub async fn event(&self, id: i64) -> Result<EventDetail> {
        transaction!(self, Read, [id = id], |tx| events::get(tx, *id))
    }

    /// The same as those see it who may see these namespaces only: with deliveries to tasks in them. `NotFound` also if it
    /// concerns none of them.
    pub async fn event_for(&self, id: i64, namespaces: &[String]) -> Result<EventDetail> {
        transaction!(
            self,
            Read,
            [id = id, namespaces = namespaces.to_vec()],
            |tx| events::get_for(tx, *id, namespaces)
        )
    }

    /// Makes a routed event one that is to be routed, as a new attempt, whose number it returns. `Conflict` if the
    /// event is still to be routed.
    pub async fn replay(&self, id: i64) -> Result<i64> {
        transaction!(self, Write, [id = id], |tx| events::replay(tx, *id))
    }

    /// Gives a task an input that comes from no event, and the id of the delivery, which is the old one if the key is
    /// known. `Conflict` if the task has ended.
    pub async fn deliver(&self, task: &str, delivery: DirectDelivery) -> Result<ReceiveOutcome> {
        transaction!(
            self,
            Write,
            [task = task.to_owned(), delivery = delivery],
            |tx| deliveries::deliver(tx, task, delivery, DeliveryQueue::Inputs)
        )
    }

    /// Tells a task what a person wants of it. Commands have a queue of their own: they are read before everything else
    /// that is pending. The same as the newest that is pending is a duplicate. `Conflict` if the task has ended.
    pub async fn command(&self, task: &str, command: DirectDelivery) -> Result<ReceiveOutcome> {
        transaction!(
            self,
            Write,
            [task = task.to_owned(), command = command],
            |tx| deliveries::deliver(tx, task, command, DeliveryQueue::Commands)
        )
    }

    /// The commands of a task that are pending: one that ends it first, then in the order they came.
    pub async fn commands(&self, task: &str, limit: usize) -> Result<Vec<DeliveryRecord>> {
        transaction!(self, Read, [task = task.to_owned(), limit = limit], |tx| {
            deliveries::commands(tx, task, *limit)
        })
    }

    /// What a task is to be given next: its commands, as many as this, and its oldest input.
    pub async fn queues(&self, task: &str, limit: usize) -> Result<TaskQueues> {
        transaction!(self, Read, [task = task.to_owned(), limit = limit], |tx| {
            deliveries::next_of(tx, task, *limit)
        })
    }

    /// The pending inputs of a task, oldest first.
    pub async fn pending(&self, task: &str, limit: usize) -> Result<Vec<DeliveryRecord>> {
        transaction!(self, Read, [task = task.to_owned(), limit = limit], |tx| {
            deliveries::pending(tx, task, *limit)
        })
    }

    /// The tasks with something pending whose lease this owner holds. What another process kept for them is found here.
    pub async fn pending_of(&self, owner: &str, limit: usize) -> Result<Vec<String>> {
        transaction!(
            self,
            Read,
            [owner = owner.to_owned(), limit = limit],
            |tx| { deliveries::pending_of(tx, owner, *limit) }
        )
    }

    /// The deliveries of a task, newest first, before this id.
    pub async fn deliveries(
        &self,
        task: &str,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<DeliveryRecord>> {
        transaction!(
            self,
            Read,
            [task = task.to_owned(), before = before, limit = limit],
            |tx| deliveries::of_task(tx, task, *before, *limit)
        )
    }

    /// The newest deliveries of a task, newest first, without what its inputs say: commands have their bodies.
    pub async fn delivery_list(&self, task: &str, limit: usize) -> Result<Vec<DeliveryRecord>> {
        transaction!(self, Read, [task = task.to_owned(), limit = limit], |tx| {
            deliveries::list_of_task(tx, task, *limit)
        })
    }

    /// Settles a pending delivery without giving it to the task.
    pub async fn discard(&self, held: HeldLease, delivery: i64, reason: &str) -> Result<()> {
        transaction!(
            self,
            Write,
            [held = held, delivery = delivery, reason = reason.to_owned()],
            |tx| deliveries::discard(tx, held, *delivery, reason)
        )
    }

    /// Leaves a task that cannot go on alone for so long, unless something comes for it, and ends the lease on it.
    pub async fn postpone(&self, held: HeldLease, pause_ms: Millis) -> Result<()> {
        transaction!(self, Write, [held = held, pause_ms = pause_ms], |tx| {
            tasks::postpone(tx, held, *pause_ms)
        })
    }

    /// Leases tasks that have something to do and that nobody holds: those with pending deliveries, and those that are
    /// `running` without a live lease. Longest waiting first. One that waits for a person is leased for commands only.
    pub async fn claim_tasks(
        &self,
        owner: &str,
        lease_ms: Millis,
        wake: WakeRules,
        limit: usize,
    ) -> Result<Vec<ClaimedTask>> {
        transaction!(
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
}
