//! How often somebody may try to sign in: counted in the store, so that all processes behind a balancer count together.

use std::net::SocketAddr;
use std::time::Duration;

use proofhouse_store::model::AttemptQuota;

use super::{Api, store_problem};
use crate::peer;
use crate::problem::Problem;

/// What is counted.
const KIND: &str = "sign-in";
/// A person needs few.
const QUOTA: AttemptQuota = AttemptQuota {
    burst: 10,
    period_ms: 2_000,
};

/// Takes one attempt of a peer. Whoever sends a flood is stopped by this process alone, before the store is asked.
///
/// # Errors
///
/// Returns 429 when there is none left, and 503 when that cannot be found out.
pub(crate) async fn take_sign_in(api: &Api, peer: SocketAddr) -> Result<(), Problem> {
    let who = peer::of(peer.ip()).to_string();
    let too_many = |wait: Duration| Problem::too_many(wait.as_secs().max(1));
    api.sign_in_rate.take(&who).map_err(too_many)?;
    let wait = api.store.take_attempt(KIND, &who, QUOTA).await;
    match wait.map_err(store_problem)? {
        None => Ok(()),
        Some(wait) => Err(too_many(Duration::from_millis(wait.unsigned_abs()))),
    }
}
