//! Sessions of the dashboard: who signed in with a key in a browser, until when.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use proofhouse_wire::sync::lock;

use crate::keys::{NoRandomness, random_text};

/// How long someone stays signed in.
pub(crate) const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// Sessions at a time. Beyond that the oldest ends.
const MAX_SESSIONS: usize = 1_000;

/// The sessions of this process, with the hashes of their keys, which may be revoked meanwhile; whoever is signed in
/// signs in again after a restart.
#[derive(Debug, Default)]
pub(crate) struct SignInSessions {
    open: Mutex<HashMap<String, (String, Instant)>>,
}

impl SignInSessions {
    /// Begins one, and returns what the browser is to send.
    pub(crate) fn begin(&self, key_hash: String) -> Result<String, NoRandomness> {
        let id = random_text()?;
        let mut open = lock(&self.open);
        open.retain(|_, (_, began)| began.elapsed() < LIFETIME);
        if open.len() >= MAX_SESSIONS {
            let oldest = open.iter().min_by_key(|(_, (_, began))| *began);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                open.remove(&oldest);
            }
        }
        open.insert(id.clone(), (key_hash, Instant::now()));
        Ok(id)
    }

    /// The hash of the key that this session began with.
    pub(crate) fn find(&self, id: &str) -> Option<String> {
        let open = lock(&self.open);
        let (key_hash, began) = open.get(id)?;
        (began.elapsed() < LIFETIME).then(|| key_hash.clone())
    }

    /// Ends one.
    pub(crate) fn end(&self, id: &str) {
        let mut open = lock(&self.open);
        open.remove(id);
    }
}
