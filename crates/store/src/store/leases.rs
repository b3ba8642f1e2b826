//! Leases: who works on what.

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{HeldLease, Lease, LeaseKind, Millis};
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

    /// Makes every lease of an owner last this long from now. Returns those that are still the owner's.
    pub async fn renew_all(&self, owner: &str, lease_ms: Millis) -> Result<Vec<Lease>> {
        transaction!(
            self,
            Write,
            [owner = owner.to_owned(), lease_ms = lease_ms],
            |tx| leases::renew_all(tx, owner, *lease_ms)
        )
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
