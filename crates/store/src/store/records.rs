//! Traces of tasks and the keys of the API.

use serde_json::Value;

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{ApiKey, NewApiKey, TraceEntry};
use crate::sql::records;

impl Store {
    /// Appends to the trace of a task.
    pub async fn append_trace(&self, task: &str, entries: Vec<Value>) -> Result<()> {
        transaction!(
            self,
            Write,
            [task = task.to_owned(), entries = entries],
            |tx| records::append_trace(tx, task, entries)
        )
    }

    /// The newest entries of a task's trace, oldest first.
    pub async fn newest_trace(&self, task: &str, limit: usize) -> Result<Vec<TraceEntry>> {
        transaction!(self, Read, [task = task.to_owned(), limit = limit], |tx| {
            records::newest_trace(tx, task, *limit)
        })
    }

    /// Stores a key of the API. `Conflict` if the id or the hash is known.
    pub async fn add_api_key(&self, key: NewApiKey) -> Result<ApiKey> {
        transaction!(self, Write, [key = key], |tx| records::add_key(tx, key))
    }

    /// The key with this hash, be it good or not any more.
    pub async fn api_key(&self, hash: &str) -> Result<Option<ApiKey>> {
        transaction!(self, Read, [hash = hash.to_owned()], |tx| records::key(
            tx, hash
        ))
    }

    /// All keys, oldest first.
    pub async fn api_keys(&self) -> Result<Vec<ApiKey>> {
        transaction!(self, Read, [], |tx| records::keys(tx))
    }

    /// Revokes a key; `NotFound` if there is none.
    pub async fn revoke_api_key(&self, id: &str) -> Result<()> {
        transaction!(self, Write, [id = id.to_owned()], |tx| records::revoke_key(
            tx, id
        ))
    }
}
