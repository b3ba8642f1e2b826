//! Callers: who asks, and what they may.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use http::{header, request::Parts};
use proofhouse_store::Store;

use super::Api;
use crate::keys::{self, Scope};
use crate::problem::Problem;

/// The cookie of the dashboard.
pub(crate) const COOKIE: &str = "proofhouse_session";

/// Someone who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The id of the key, or `open` where none is needed.
    pub key: String,
    scopes: Vec<Scope>,
}

impl Caller {
    /// Whoever asks may do all, because the server was started that way.
    fn anyone() -> Self {
        Self {
            key: "open".to_owned(),
            scopes: vec![Scope::Admin],
        }
    }

    /// Insists on a scope.
    ///
    /// # Errors
    ///
    /// Returns a problem that names the scope which is missing.
    pub(crate) fn needs(&self, scope: Scope) -> Result<(), Problem> {
        match scope.is_in(&self.scopes) {
            true => Ok(()),
            false => Err(Problem::forbidden(format!(
                "the key lacks the scope `{scope}`"
            ))),
        }
    }

    pub(crate) fn may(&self, scope: Scope) -> bool {
        scope.is_in(&self.scopes)
    }
}

/// Who holds this key.
pub(crate) async fn recognise(store: &dyn Store, key: &str) -> Result<Caller, Problem> {
    let hash = keys::hash(key).ok_or_else(unknown)?;
    holder(store, &hash).await
}

fn unknown() -> Problem {
    Problem::unauthorized("the key is not known, or not valid any more")
}

/// Who holds the key with this hash.
async fn holder(store: &dyn Store, hash: &str) -> Result<Caller, Problem> {
    let found = store.api_key(hash).await.map_err(super::store_problem)?;
    let found = found.ok_or_else(unknown)?;
    let now = store.now().await.map_err(super::store_problem)?;
    let over = found.revoked_at.is_some() || found.expires_at.is_some_and(|end| end <= now);
    if over {
        return Err(unknown());
    }
    let scopes = found.scopes.iter().filter_map(|name| name.parse().ok());
    Ok(Caller {
        key: found.id.clone(),
        scopes: scopes.collect(),
    })
}

impl FromRequestParts<Arc<Api>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let caller = match bearer(parts) {
            Some(key) => recognise(api.store.as_ref(), key).await?,
            None if api.config.open => Self::anyone(),
            None => {
                let hash = session(parts, api).ok_or_else(|| {
                    Problem::unauthorized(
                        "send `Authorization: Bearer KEY`; `proofhouse keys create` makes one",
                    )
                })?;
                holder(api.store.as_ref(), &hash).await?
            }
        };
        let rate = api.rate.take(&caller.key, Instant::now());
        rate.map_err(|wait| Problem::too_many(wait.as_secs().max(1)))?;
        Ok(caller)
    }
}

fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Whoever signed in at the dashboard. The cookie is only good for looking: a page elsewhere that makes a browser
/// send something must not get anywhere.
fn session(parts: &Parts, api: &Api) -> Option<String> {
    if parts.method != http::Method::GET && parts.method != http::Method::HEAD {
        return None;
    }
    let value = cookie(parts)?;
    api.sessions.find(value)
}

pub(crate) fn cookie(parts: &Parts) -> Option<&str> {
    let all = parts.headers.get_all(header::COOKIE);
    let pairs = all.iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';'));
    pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE).then_some(value)
    })
}
