//! The leases that this process works under: each is renewed for as long as its worker holds the guard, and released when
//! that ends, however it ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proofhouse_store::model::{HeldLease, Lease};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Names a lease: its kind, what it is on, and its fence.
type LeaseKey = (&'static str, String, i64);

/// The leases of one process. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct HeldLeases(Arc<LeaseBook>);

#[derive(Default)]
struct LeaseBook {
    table: Mutex<LeaseTable>,
    /// Something is to be released.
    to_release: Notify,
}

#[derive(Default)]
struct LeaseTable {
    worked_on: BTreeMap<LeaseKey, WorkedOn>,
    /// Nobody works on these any more, and it is not known yet whether they are released; since when.
    releasing: Vec<(HeldLease, Instant)>,
    /// As [`Self::releasing`], but with nobody to see to it: a fault of old, in simulations.
    forgotten: Vec<HeldLease>,
}

struct WorkedOn {
    held: HeldLease,
    /// A heartbeat from before this knows nothing of it.
    since: Instant,
    lost: CancellationToken,
}

/// A lease that a worker holds.
pub(super) struct LeaseGuard {
    leases: HeldLeases,
    held: HeldLease,
    lost: CancellationToken,
    is_released: bool,
}

fn key(held: &HeldLease) -> LeaseKey {
    (held.kind.as_str(), held.name.clone(), held.fence)
}

impl HeldLeases {
    /// Notes that somebody works under a lease from now on.
    pub(super) fn hold(&self, lease: &Lease) -> LeaseGuard {
        let (held, lost) = (lease.held(), CancellationToken::new());
        let worked_on = WorkedOn {
            held: held.clone(),
            since: Instant::now(),
            lost: lost.clone(),
        };
        self.lock().worked_on.insert(key(&held), worked_on);
        LeaseGuard {
            leases: self.clone(),
            held,
            lost,
            is_released: false,
        }
    }

    /// Those that somebody works under.
    pub(super) fn worked_on(&self) -> Vec<HeldLease> {
        let table = self.lock();
        table
            .worked_on
            .values()
            .map(|one| &one.held)
            .chain(&table.forgotten)
            .cloned()
            .collect()
    }

    /// Tells the workers whose lease is not among these that it is lost, unless they began after this time. Returns how
    /// many there were.
    pub(super) fn lose_others(&self, begun: Instant, kept: &[Lease]) -> u64 {
        let kept: std::collections::BTreeSet<LeaseKey> =
            kept.iter().map(|lease| key(&lease.held())).collect();
        let mut count = 0;
        for (key, one) in &self.lock().worked_on {
            if one.since < begun && !kept.contains(key) && !one.lost.is_cancelled() {
                one.lost.cancel();
                count += 1;
            }
        }
        count
    }

    /// What is to be released, all that there is; waits until there is something.
    pub(super) async fn next_to_release(&self) -> Vec<HeldLease> {
        loop {
            let told = self.0.to_release.notified();
            let waiting: Vec<HeldLease> = {
                let table = self.lock();
                let waiting = table.releasing.iter();
                waiting.map(|(held, _)| held.clone()).collect()
            };
            if !waiting.is_empty() {
                return waiting;
            }
            told.await;
        }
    }

    /// These are known to be released.
    pub(super) fn released(&self, done: &[HeldLease]) {
        let mut table = self.lock();
        table.releasing.retain(|(held, _)| !done.contains(held));
    }

    /// Renews these for ever, and never releases them: what a simulation must find.
    pub(super) fn forget(&self, waiting: &[HeldLease]) {
        self.released(waiting);
        self.lock().forgotten.extend_from_slice(waiting);
    }

    /// How many leases somebody works under.
    pub(super) fn worker_count(&self) -> usize {
        self.lock().worked_on.len()
    }

    /// How long the oldest lease that nobody works under has waited for its release.
    pub(super) fn oldest_release(&self) -> Option<Duration> {
        let table = self.lock();
        table.releasing.first().map(|(_, since)| since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, LeaseTable> {
        lock(&self.0.table)
    }
}

impl LeaseGuard {
    /// The proof of holding it.
    pub(super) fn held(&self) -> &HeldLease {
        &self.held
    }

    /// Is cancelled when the lease is lost.
    pub(super) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// The lease has ended in the store already.
    pub(super) fn ended(mut self) {
        self.is_released = true;
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut table = self.leases.lock();
        table.worked_on.remove(&key(&self.held));
        if !self.is_released {
            table.releasing.push((self.held.clone(), Instant::now()));
            drop(table);
            self.leases.0.to_release.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_store::model::LeaseKind;

    fn lease(name: &str, fence: i64) -> Lease {
        Lease {
            kind: LeaseKind::Task,
            name: name.to_owned(),
            owner: "me".to_owned(),
            fence,
            until: 0,
        }
    }

    #[tokio::test]
    async fn a_lease_is_released_however_its_worker_ends() {
        let leases = HeldLeases::default();
        let guard = leases.hold(&lease("a", 1));
        let other = leases.hold(&lease("b", 1));
        assert_eq!(leases.worked_on().len(), 2);
        let panics = tokio::spawn(async move {
            let _guard = guard;
            panic!("as a worker may");
        });
        assert!(panics.await.is_err());
        let waiting = leases.next_to_release().await;
        assert_eq!(waiting, [lease("a", 1).held()]);
        // It is asked for again until it is known.
        assert_eq!(leases.next_to_release().await, waiting);
        assert!(leases.oldest_release().is_some());
        leases.released(&waiting);
        assert!(leases.oldest_release().is_none());
        other.ended();
        assert_eq!(leases.worker_count(), 0);
        assert!(leases.oldest_release().is_none());
    }

    #[tokio::test]
    async fn only_the_worker_of_a_lost_lease_is_told() {
        let leases = HeldLeases::default();
        let old = leases.hold(&lease("a", 1));
        let new = leases.hold(&lease("a", 2));
        let begun = Instant::now() + Duration::from_secs(1);
        assert_eq!(leases.lose_others(begun, &[lease("a", 2)]), 1);
        assert!(old.lost().is_cancelled() && !new.lost().is_cancelled());
        assert_eq!(leases.lose_others(begun, &[lease("a", 2)]), 0);
    }
}
