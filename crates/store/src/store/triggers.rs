//! Schedules and triggers: what begins tasks by itself.

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{Millis, ScheduleTick, TickOutcome, TriggerFailure, TriggerKey, TriggerStatus};
use crate::sql::triggers;

impl Store {
    /// What is known about all of them.
    pub async fn triggers(&self) -> Result<Vec<TriggerStatus>> {
        transaction!(self, Read, [], |tx| triggers::list(tx))
    }

    /// What is known about one, if it ever did anything.
    pub async fn trigger(&self, key: &TriggerKey) -> Result<Option<TriggerStatus>> {
        transaction!(self, Read, [key = key.clone()], |tx| triggers::get(tx, key))
    }

    /// Notes when a schedule is due next.
    pub async fn set_next_due(&self, key: &TriggerKey, next_at: Option<Millis>) -> Result<()> {
        transaction!(self, Write, [key = key.clone(), next_at = next_at], |tx| {
            triggers::set_next(tx, key, *next_at)
        })
    }

    /// Fires a tick of a schedule, once.
    pub async fn fire_schedule(&self, fire: ScheduleTick) -> Result<TickOutcome> {
        transaction!(self, Write, [fire = fire], |tx| triggers::fire(tx, fire))
    }

    /// Counts a failure.
    pub async fn trigger_failed(&self, failure: TriggerFailure) -> Result<()> {
        transaction!(self, Write, [failure = failure], |tx| triggers::failed(
            tx, failure
        ))
    }
}
