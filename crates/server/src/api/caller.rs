//! Callers: who asks, and what they may.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use http::{header, request::Parts};
use proofhouse_store::Store;

use super::Api;
use crate::keys::{self, KeyScope};
use crate::peer;
use crate::problem::Problem;

/// The cookie of the dashboard.
pub(crate) const COOKIE: &str = "proofhouse_session";

/// Someone who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The id of the key, or `open` where none is needed.
    pub key: String,
    scopes: Vec<KeyScope>,
    proof: CallerCredential,
}

/// How it is known who asks.
#[derive(Debug, Clone)]
enum CallerCredential {
    /// Nobody is asked for a key.
    None,
    /// A key, of which this is the hash.
    Key(String),
    /// A session of the dashboard.
    Session(String),
}

impl Caller {
    /// Whoever asks may do all, because the server was started that way.
    fn anyone() -> Self {
        Self {
            key: "open".to_owned(),
            scopes: vec![KeyScope::Admin],
            proof: CallerCredential::None,
        }
    }

    /// What is kept of the caller's key; empty where there is none.
    pub(crate) fn hash(&self) -> &str {
        match &self.proof {
            CallerCredential::Key(hash) => hash,
            CallerCredential::None | CallerCredential::Session(_) => "",
        }
    }

    /// Insists that what let the caller in still does: keys are revoked and expire, and people sign out.
    ///
    /// # Errors
    ///
    /// Returns 401 when it does not, and another problem when that cannot be found out.
    pub(crate) async fn is_still_let_in(&self, api: &Api) -> Result<(), Problem> {
        let hash = match &self.proof {
            CallerCredential::None => return Ok(()),
            CallerCredential::Key(hash) => hash.clone(),
            CallerCredential::Session(id) => api.sessions.find(id).ok_or_else(unknown)?,
        };
        holder(api.store.as_ref(), hash).await.map(drop)
    }

    /// Insists on a scope.
    ///
    /// # Errors
    ///
    /// Returns a problem that names the scope which is missing.
    pub(crate) fn needs(&self, scope: KeyScope) -> Result<(), Problem> {
        if scope.is_in(&self.scopes) {
            Ok(())
        } else {
            Err(Problem::forbidden(format!(
                "the key lacks the scope `{scope}`"
            )))
        }
    }

    pub(crate) fn may(&self, scope: KeyScope) -> bool {
        scope.is_in(&self.scopes)
    }
}

/// Who holds this key.
pub(crate) async fn recognise(store: &Store, key: &str) -> Result<Caller, Problem> {
    let hash = keys::hash(key).ok_or_else(unknown)?;
    holder(store, hash).await
}

fn unknown() -> Problem {
    Problem::unauthorized("the key is not known, or not valid any more")
}

/// Who holds the key with this hash.
async fn holder(store: &Store, hash: String) -> Result<Caller, Problem> {
    let found = store.api_key(&hash).await.map_err(super::store_problem)?;
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
        proof: CallerCredential::Key(hash),
    })
}

impl FromRequestParts<Arc<Api>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let caller = match bearer(parts) {
            Some(key) => match recognise(api.store.as_ref(), key).await {
                Ok(caller) => caller,
                Err(problem) => return Err(counted(problem, parts, api)),
            },
            None if api.config.open => Self::anyone(),
            None => {
                let (id, hash) = session(parts, api).ok_or_else(|| {
                    Problem::unauthorized(
                        "send `Authorization: Bearer KEY`; `proofhouse keys create` makes one",
                    )
                })?;
                Self {
                    proof: CallerCredential::Session(id),
                    ..holder(api.store.as_ref(), hash).await?
                }
            }
        };
        let rate = api.rate.take(&caller.key);
        rate.map_err(|wait| Problem::too_many(wait.as_secs().max(1)))?;
        Ok(caller)
    }
}

/// What whoever sent a wrong key is told. A right key is never held up by the wrong ones that others behind the same
/// proxy send, so that they are counted after they are looked up.
fn counted(problem: Problem, parts: &Parts, api: &Api) -> Problem {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let Some(ConnectInfo(peer)) = peer.filter(|_| problem.status == 401) else {
        return problem;
    };
    let peer = peer::of(peer.ip()).to_string();
    match api.wrong_keys.take(&peer) {
        Ok(()) => problem,
        Err(wait) => Problem {
            detail: "too many wrong keys; try again later".to_owned(),
            ..Problem::too_many(wait.as_secs().max(1))
        },
    }
}

pub(super) fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Whoever signed in at the dashboard. The cookie is only good for looking: a page elsewhere that makes a browser
/// send something must not get anywhere.
fn session(parts: &Parts, api: &Api) -> Option<(String, String)> {
    if parts.method != http::Method::GET && parts.method != http::Method::HEAD {
        return None;
    }
    let value = cookie(parts)?;
    Some((value.to_owned(), api.sessions.find(value)?))
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
