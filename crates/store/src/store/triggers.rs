//! Schedules and triggers: what begins tasks by itself.

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{Fire, Fired, Millis, StartFailure, StartKey, StartStatus};
use crate::sql::starts;

impl Store {
    /// What is known about all of them.
    pub async fn starts(&self) -> Result<Vec<StartStatus>> {
        transaction!(self, Read, [], |tx| starts::list(tx))
    }

    /// What is known about one, if it ever did anything.
    pub async fn start(&self, key: &StartKey) -> Result<Option<StartStatus>> {
        transaction!(self, Read, [key = key.clone()], |tx| starts::get(tx, key))
    }

    /// Notes when a schedule is due next.
    pub async fn set_next(&self, key: &StartKey, next_at: Option<Millis>) -> Result<()> {
        transaction!(self, Write, [key = key.clone(), next_at = next_at], |tx| {
            starts::set_next(tx, key, *next_at)
        })
    }

    /// Fires a tick of a schedule, once.
    pub async fn fire(&self, fire: Fire) -> Result<Fired> {
        transaction!(self, Write, [fire = fire], |tx| starts::fire(tx, fire))
    }

    /// Counts a failure.
    pub async fn start_failed(&self, failure: StartFailure) -> Result<()> {
        transaction!(self, Write, [failure = failure], |tx| starts::failed(
            tx, failure
        ))
    }
}
