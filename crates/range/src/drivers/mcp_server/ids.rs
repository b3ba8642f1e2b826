//! Names that nobody can guess: session ids and the state of multi-round-trip calls.

use std::hash::{BuildHasher, Hasher, RandomState};

/// 128 bits in hex. Each half is SipHash under keys that the system seeded at random.
pub(super) fn unguessable() -> String {
    let half = || RandomState::new().build_hasher().finish();
    // `RandomState` counts its keys up within a thread; the hash makes that invisible.
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_are_alike() {
        let all: std::collections::HashSet<String> =
            (0..10_000).map(|_| super::unguessable()).collect();
        assert_eq!(all.len(), 10_000);
        assert!(all.iter().all(|id| id.len() == 32));
    }
}
