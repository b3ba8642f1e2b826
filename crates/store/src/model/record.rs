//! What is kept to be read later: traces and the keys of the API.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Millis;

/// An entry of a task's trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceEntry {
    /// Its number in the trace, from 0.
    pub seq: i64,
    /// The entry.
    pub entry: Value,
    /// When it was written.
    pub created_at: Millis,
}

/// A key of the API to store. The key itself is never stored, only its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewApiKey {
    /// Names the key; it is no secret.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The hash of the key, as the caller makes it.
    pub hash: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// The namespaces it may do that in; all if there is no list.
    pub namespaces: Option<Vec<String>>,
    /// Who holds it, as reviews name people.
    pub holder: Option<String>,
    /// When it stops working.
    pub expires_at: Option<Millis>,
}

/// A key of the API. The caller judges whether it has expired or was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Names the key; it is no secret.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// The namespaces it may do that in; all if there is no list.
    pub namespaces: Option<Vec<String>>,
    /// Who holds it, as reviews name people.
    pub holder: Option<String>,
    /// The hash of the first key that this one stands for, if it replaced one: requests that are repeated with either are the
    /// same.
    #[serde(skip)]
    pub family: Option<String>,
    /// When it was made.
    pub created_at: Millis,
    /// When it stops working.
    pub expires_at: Option<Millis>,
    /// When it was revoked.
    pub revoked_at: Option<Millis>,
}
