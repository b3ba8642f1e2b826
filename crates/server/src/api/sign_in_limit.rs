//! How often somebody may fail to sign in: counted in the store, so that all processes behind a balancer count together. A right
//! key is never held up by what others behind the same proxy try.

use std::net::SocketAddr;
use std::time::Duration;

use proofhouse_store::model::AttemptQuota;

use super::{Api, store_problem};
use crate::problem::Problem;
use proofhouse_wire::peer;

/// What is counted.
const KIND: &str = "sign-in";
/// A person needs few.
const QUOTA: AttemptQuota = AttemptQuota {
    burst: 10,
    period_ms: 2_000,
};

fn too_many(wait: Duration) -> Problem {
    Problem::too_many(wait.as_secs().max(1))
}

/// Counts an attempt of a peer that failed. Whoever sends a flood is told by this process alone, before the store is asked.
///
/// # Errors
///
/// Returns 429 when there were too many, and 503 when that cannot be found out.
pub(crate) async fn count_failed_sign_in(api: &Api, peer: SocketAddr) -> Result<(), Problem> {
    let who = peer::of(peer.ip()).to_string();
    api.sign_in_rate.take(&who).map_err(too_many)?;
    let wait = api.store.take_attempt(KIND, &who, QUOTA).await;
    match wait.map_err(store_problem)? {
        None => Ok(()),
        Some(wait) => Err(too_many(Duration::from_millis(wait.unsigned_abs()))),
    }
}

/// Lets a peer go to the identity provider, unless it goes there more often than people do: each keeps something for a while.
///
/// # Errors
///
/// Returns 429 when it went there too often.
pub(crate) fn take_way_to_provider(api: &Api, peer: SocketAddr) -> Result<(), Problem> {
    let who = format!("to provider: {}", peer::of(peer.ip()));
    api.rate.take(&who).map_err(too_many)
}
