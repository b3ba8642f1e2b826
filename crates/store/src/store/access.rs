//! Who may: the keys of the API, and sessions.

use serde_json::Value;

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{ApiKey, AttemptQuota, Millis, NewApiKey, SessionKind};
use crate::sql::{attempts, keys, sessions};

impl Store {
    /// Stores a key of the API. `Conflict` if the id or the hash is known.
    pub async fn add_api_key(&self, key: NewApiKey) -> Result<ApiKey> {
        transaction!(self, Write, [key = key], |tx| keys::add(tx, key))
    }

    /// The key with this hash, be it good or not any more.
    pub async fn api_key(&self, hash: &str) -> Result<Option<ApiKey>> {
        transaction!(self, Read, [hash = hash.to_owned()], |tx| keys::get(
            tx, hash
        ))
    }

    /// All keys, oldest first.
    pub async fn api_keys(&self) -> Result<Vec<ApiKey>> {
        transaction!(self, Read, [], |tx| keys::list(tx))
    }

    /// Revokes a key; `NotFound` if there is none.
    pub async fn revoke_api_key(&self, id: &str) -> Result<()> {
        transaction!(self, Write, [id = id.to_owned()], |tx| keys::revoke(tx, id))
    }

    /// Stores a successor of a key under a new id and hash, which may do the same. The old one ends after `overlap_ms`.
    /// `NotFound` if there is no such key, `Conflict` if it is not valid any more.
    pub async fn rotate_api_key(
        &self,
        id: &str,
        (new_id, hash): (&str, &str),
        expires_at: Option<Millis>,
        overlap_ms: Millis,
    ) -> Result<ApiKey> {
        transaction!(
            self,
            Write,
            [
                id = id.to_owned(),
                new_id = new_id.to_owned(),
                hash = hash.to_owned(),
                expires_at = expires_at,
                overlap_ms = overlap_ms
            ],
            |tx| keys::rotate(tx, id, (new_id, hash), *expires_at, *overlap_ms)
        )
    }

    /// Takes one of the attempts that somebody has, in whichever process; how many milliseconds to wait if none is left.
    pub async fn take_attempt(
        &self,
        kind: &str,
        who: &str,
        quota: AttemptQuota,
    ) -> Result<Option<Millis>> {
        transaction!(
            self,
            Write,
            [kind = kind.to_owned(), who = who.to_owned(), quota = quota],
            |tx| attempts::take(tx, kind, who, *quota)
        )
    }

    /// Begins a session: whoever shows what has this hash is known for as long as this. `Conflict` if the hash is known.
    pub async fn begin_session(
        &self,
        kind: SessionKind,
        hash: &str,
        body: Value,
        lifetime_ms: Millis,
    ) -> Result<()> {
        transaction!(
            self,
            Write,
            [
                kind = kind,
                hash = hash.to_owned(),
                body = body,
                lifetime_ms = lifetime_ms
            ],
            |tx| sessions::begin(tx, *kind, hash, body, *lifetime_ms)
        )
    }

    /// What a session that has not ended is about.
    pub async fn session(&self, kind: SessionKind, hash: &str) -> Result<Option<Value>> {
        transaction!(self, Read, [kind = kind, hash = hash.to_owned()], |tx| {
            sessions::get(tx, *kind, hash)
        })
    }

    /// Ends a session, and says what it was about if it had not ended before.
    pub async fn end_session(&self, kind: SessionKind, hash: &str) -> Result<Option<Value>> {
        transaction!(self, Write, [kind = kind, hash = hash.to_owned()], |tx| {
            sessions::take(tx, *kind, hash)
        })
    }
}
