//! Leases: who works on what.

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{HeldLease, Lease, LeaseKind, LeaseRenewal, Millis};
use crate::sql::leases;

impl Store {
    /// Acquires a lease, with a new fence. `None` while somebody holds it, be it the same owner.
    pub async fn acquire(
        &self,
        kind: LeaseKind,
        name: &str,
        owner: &str,
        lease_ms: Millis,
    ) -> Result<Option<Lease>> {
        transaction!(
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

    /// Makes the leases that an owner works on last this long from now. What else it holds is released, unless it was
    /// acquired within the last third of that time: nobody works on it.
    pub async fn renew(
        &self,
        owner: &str,
        lease_ms: Millis,
        worked_on: Vec<HeldLease>,
    ) -> Result<LeaseRenewal> {
        transaction!(
            self,
            Write,
            [
                owner = owner.to_owned(),
                lease_ms = lease_ms,
                worked_on = worked_on
            ],
            |tx| leases::renew(tx, owner, *lease_ms, worked_on)
        )
    }

    /// Ends leases. Those that have moved stay as they are.
    pub async fn release_each(&self, held: Vec<HeldLease>) -> Result<()> {
        transaction!(self, Write, [held = held], |tx| leases::release_each(
            tx, held
        ))
    }

    /// Ends a lease. Nothing happens if it has moved.
    pub async fn release(&self, held: HeldLease) -> Result<()> {
        transaction!(self, Write, [held = held], |tx| leases::release(tx, held))
    }

    /// Ends every lease and every claim of events of an owner, for shutting down. Returns how many.
    pub async fn release_all(&self, owner: &str) -> Result<u64> {
        transaction!(self, Write, [owner = owner.to_owned()], |tx| {
            leases::release_all(tx, owner)
        })
    }
}
