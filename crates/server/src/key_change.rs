//! API keys that an operator makes, replaces and revokes, each change with its entry of the audit log.

use proofhouse_store::model::{ApiKey, NewApiKey};
use proofhouse_store::{Store, StoreError, with_audit_entry};
use serde_json::json;

use crate::audit;
use crate::keys::{KeyScope, KeySecret};

/// What a key is to be.
#[derive(Debug, Default)]
pub struct KeyOrder<'a> {
    /// What people call it.
    pub name: &'a str,
    /// What it may do.
    pub scopes: &'a [KeyScope],
    /// The namespaces it is for; all of them when absent.
    pub namespaces: Option<Vec<String>>,
    /// Who has it.
    pub holder: Option<String>,
    /// When it ends, by the clock of the store.
    pub expires_at: Option<i64>,
}

/// Keeps the hash of a key.
///
/// # Errors
///
/// Returns what the store says.
pub async fn keep(
    store: &Store,
    secret: &KeySecret,
    order: KeyOrder<'_>,
) -> Result<ApiKey, StoreError> {
    let key = NewApiKey {
        id: secret.id(),
        name: order.name.to_owned(),
        hash: secret.hash(),
        scopes: order.scopes.iter().map(ToString::to_string).collect(),
        namespaces: order.namespaces,
        holder: order.holder,
        expires_at: order.expires_at,
    };
    let id = key.id.clone();
    noted("key.create", &id, store.add_api_key(key)).await
}

/// Puts a new secret in the place of a key, which stays valid for so many milliseconds.
///
/// # Errors
///
/// Returns what the store says.
pub async fn rotate(
    store: &Store,
    id: &str,
    secret: &KeySecret,
    expires_at: Option<i64>,
    overlap: i64,
) -> Result<ApiKey, StoreError> {
    let new = (secret.id(), secret.hash());
    let key = store.rotate_api_key(id, (&new.0, &new.1), expires_at, overlap);
    noted("key.rotate", id, key).await
}

/// Ends a key.
///
/// # Errors
///
/// Returns what the store says.
pub async fn revoke(store: &Store, id: &str) -> Result<(), StoreError> {
    noted("key.revoke", id, store.revoke_api_key(id)).await
}

/// Changes a key, with the entry of the audit log in the same transaction.
async fn noted<T>(
    action: &str,
    id: &str,
    change: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let entry = audit::by_command_line(action, &json!({"kind": "key", "id": id}));
    with_audit_entry(entry, change).await.0
}
