//! Sessions of the dashboard: who signed in, until when, in the store, so that every process knows them. What a browser holds
//! is kept as a hash only.

use std::time::Duration;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use proofhouse_store::model::SessionKind;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Api, AuditNote, store_problem};
use crate::keys::{self, random_text};
use crate::problem::Problem;

/// How long someone stays signed in.
pub(crate) const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

/// Who signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionOwner {
    /// The holder of a key, which may be revoked meanwhile.
    Key {
        /// Its hash.
        hash: String,
    },
    /// Somebody whom an identity provider knows.
    Person(SignedInPerson),
}

/// Somebody whom an identity provider knows, and what their groups allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignedInPerson {
    /// `oidc:` and what the provider calls them.
    pub principal: String,
    /// What people call them.
    pub name: String,
    /// Their address, if the provider vouches for it.
    pub email: Option<String>,
    /// Their groups.
    pub groups: Vec<String>,
    /// What they may do.
    pub scopes: Vec<String>,
    /// The namespaces they may do that in; all if there is no list.
    pub namespaces: Option<Vec<String>>,
}

impl SessionOwner {
    /// Reads what the store kept.
    pub(crate) fn read(body: Value) -> Option<Self> {
        serde_json::from_value(body).ok()
    }
}

/// Begins a session, and returns what the browser is to send.
pub(crate) async fn begin(
    api: &Api,
    note: &AuditNote,
    owner: &SessionOwner,
) -> Result<String, Problem> {
    let cookie = random_text().map_err(|error| Problem::unavailable(error.to_string()))?;
    let body = serde_json::to_value(owner).unwrap_or_default();
    let lifetime = i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
    let kind = SessionKind::Dashboard;
    let hash = keys::digest(&cookie);
    let begun = api.store.begin_session(kind, &hash, body, lifetime);
    note.done_by(begun).await.map_err(store_problem)?;
    Ok(cookie)
}

/// What shows that a form comes from a page that was made for whoever holds this cookie. Pages elsewhere cannot read it.
pub(crate) fn form_token(cookie: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, cookie.as_bytes());
    HEXLOWER.encode(hmac::sign(&key, b"form").as_ref())
}

/// Whether a form came with the token of this cookie, in a time that says nothing about it.
pub(crate) fn is_form_token(cookie: &str, token: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, cookie.as_bytes());
    let tag = HEXLOWER_PERMISSIVE.decode(token.as_bytes());
    tag.is_ok_and(|tag| hmac::verify(&key, b"form", &tag).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_belongs_to_one_cookie() {
        let token = form_token("one");
        assert!(is_form_token("one", &token));
        assert!(!is_form_token("other", &token));
        for wrong in ["", "zz", &token[1..], &"é".repeat(32), &"g".repeat(64)] {
            assert!(!is_form_token("one", wrong), "{wrong}");
        }
    }
}
