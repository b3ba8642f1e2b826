//! Leases: who may work on what, until when, and the number that tells an old owner from the new one.

use serde::{Deserialize, Serialize};

use super::Millis;

text_enum! {
    /// What a lease is on.
    LeaseKind {
        /// A task, by its id.
        Task = "task",
        /// A poll, by its id as text.
        Poll = "poll",
        /// A channel, by its id.
        Channel = "channel",
        /// A schedule, by a name of the caller's.
        Schedule = "schedule",
        /// Something that one process does for all, such as sweeping.
        Duty = "duty",
    }
}

/// A lease as it was given.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// What it is on.
    pub kind: LeaseKind,
    /// Which of them.
    pub name: String,
    /// Who holds it.
    pub owner: String,
    /// Grows with every new owner.
    pub fence: i64,
    /// When it ends unless it is renewed, by the clock of the database.
    pub until: Millis,
}

impl Lease {
    /// The proof of holding it, for writes that depend on it.
    #[must_use]
    pub fn held(&self) -> HeldLease {
        HeldLease {
            kind: self.kind,
            name: self.name.clone(),
            fence: self.fence,
        }
    }
}

/// What came of renewing leases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseRenewal {
    /// Those that are still the owner's, with their new ends.
    pub kept: Vec<Lease>,
    /// How many leases of the owner nobody worked on; they are released.
    pub orphans: u64,
}

/// The proof of holding a lease. It is good until somebody else acquires the lease or it is released, whatever the
/// clocks say.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldLease {
    /// What it is on.
    pub kind: LeaseKind,
    /// Which of them.
    pub name: String,
    /// The number of the lease.
    pub fence: i64,
}
