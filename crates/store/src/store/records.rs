//! Traces of tasks.

use serde_json::Value;

use super::{Store, transaction};
use crate::error::Result;
use crate::model::TraceEntry;
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
}
