//! Who may read the metrics: also while the store cannot say so, whoever could shortly before. What is counted is worth
//! knowing all the more then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use http::request::Parts;
use proofhouse_wire::sync::lock;

use super::caller::bearer;
use super::{Api, Caller};
use crate::keys::{self, KeyScope};
use crate::problem::Problem;

/// How long the store is waited for, for each of the two things it is asked; whoever scrapes waits ten seconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// How long a key is good for the metrics without the store. One that is revoked meanwhile is, too.
const MEMORY: Duration = Duration::from_secs(15 * 60);
/// Keys that are remembered.
const MAX_REMEMBERED: usize = 64;

/// Those who were let in, by the hashes of their keys.
#[derive(Debug, Default)]
pub(crate) struct Scrapers(Mutex<HashMap<String, Instant>>);

impl Scrapers {
    fn remember(&self, hash: &str, now: Instant) {
        let mut known = self.known();
        known.retain(|_, seen| now.saturating_duration_since(*seen) < MEMORY);
        if known.len() < MAX_REMEMBERED || known.contains_key(hash) {
            known.insert(hash.to_owned(), now);
        }
    }

    fn forget(&self, hash: &str) {
        self.known().remove(hash);
    }

    fn knows(&self, hash: &str, now: Instant) -> bool {
        let known = self.known();
        let seen = known.get(hash);
        seen.is_some_and(|seen| now.saturating_duration_since(*seen) < MEMORY)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        lock(&self.0)
    }
}

/// Somebody who may read the metrics.
#[derive(Debug)]
pub(super) struct Scraper;

impl FromRequestParts<Arc<Api>> for Scraper {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let hash = bearer(parts).and_then(keys::hash);
        let asked = Caller::from_request_parts(parts, api);
        let outcome = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(outcome) => outcome.and_then(|caller| {
                caller.needs(KeyScope::MetricsRead)?;
                caller.needs_all_namespaces()
            }),
            Err(_) => Err(Problem::unavailable("the store does not answer")),
        };
        let scrapers = &api.scrapers;
        match (outcome, hash) {
            (Ok(()), Some(hash)) => scrapers.remember(&hash, Instant::now()),
            (Ok(()), None) => {}
            (Err(problem), Some(hash)) if problem.status == 503 => {
                if !scrapers.knows(&hash, Instant::now()) {
                    return Err(problem);
                }
            }
            (Err(problem), hash) => {
                hash.iter().for_each(|hash| scrapers.forget(hash));
                return Err(problem);
            }
        }
        Ok(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_were_let_in_are_remembered_for_a_while() {
        let (scrapers, start) = (Scrapers::default(), Instant::now());
        scrapers.remember("a", start);
        assert!(scrapers.knows("a", start) && !scrapers.knows("b", start));
        assert!(!scrapers.knows("a", start + MEMORY));
        scrapers.forget("a");
        assert!(!scrapers.knows("a", start));
        for number in 0..2 * MAX_REMEMBERED {
            scrapers.remember(&number.to_string(), start);
        }
        assert_eq!(scrapers.known().len(), MAX_REMEMBERED);
    }
}
