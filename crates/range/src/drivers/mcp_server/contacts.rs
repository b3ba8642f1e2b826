//! Who has been in contact: in the modern era there is no handshake to tell.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use proofhouse_wire::sync::lock;

/// Clients that are remembered; one that is forgotten counts as new.
const MAX_CONTACTS: usize = 1_000;

/// The clients that were seen.
#[derive(Debug, Default)]
pub(super) struct Contacts(Mutex<ContactTimes>);

#[derive(Debug, Default)]
struct ContactTimes {
    /// Whether the client may still be about to start a handshake.
    by_name: HashMap<String, bool>,
    order: VecDeque<String>,
}

impl Contacts {
    /// A request of the modern era came; `true` when it is the first of its client.
    pub(super) fn is_new(&self, client: &str) -> bool {
        let mut seen = lock(&self.0);
        if seen.by_name.contains_key(client) {
            return false;
        }
        while seen.order.len() >= MAX_CONTACTS {
            if let Some(oldest) = seen.order.pop_front() {
                seen.by_name.remove(&oldest);
            }
        }
        seen.order.push_back(client.to_owned());
        seen.by_name.insert(client.to_owned(), true);
        true
    }

    /// A handshake of the legacy era came; `true` when it followed a probe that counted already.
    pub(super) fn was_probe(&self, client: &str) -> bool {
        let mut seen = lock(&self.0);
        match seen.by_name.get_mut(client) {
            Some(may_start) => std::mem::take(may_start),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_and_its_handshake_count_once() {
        let contacts = Contacts::default();
        assert!(!contacts.was_probe("a"));
        assert!(contacts.is_new("a") && !contacts.is_new("a"));
        assert!(contacts.was_probe("a") && !contacts.was_probe("a"));
        for client in 0..2 * MAX_CONTACTS {
            contacts.is_new(&client.to_string());
        }
        assert_eq!(contacts.0.lock().unwrap().by_name.len(), MAX_CONTACTS);
    }
}
