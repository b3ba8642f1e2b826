//! Tokens: OAuth 2.0 client credentials, for one client that everybody knows.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{CLIENT, MAX_KEPT, fresh_name};

/// How long a token is good.
pub(super) const LIFETIME: Duration = Duration::from_secs(300);

/// The tokens that were given, oldest first.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    given: VecDeque<(String, Instant)>,
}

impl Tokens {
    /// A token for a client that says who it is; nothing for others.
    pub(super) fn give(&mut self, client: &str, secret: &str) -> Option<String> {
        if (client, secret) != CLIENT {
            return None;
        }
        if self.given.len() >= MAX_KEPT {
            self.given.pop_front();
        }
        let token = format!("demo-{}", fresh_name());
        self.given.push_back((token.clone(), Instant::now()));
        Some(token)
    }

    pub(super) fn is_good(&self, token: &str) -> bool {
        let mut given = self.given.iter();
        given.any(|(known, since)| known == token && since.elapsed() < LIFETIME)
    }
}
