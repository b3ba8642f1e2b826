//! Calls as a trace: each one as the MCP messages it would be, so that the indicators of threat documents
//! can judge it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proofhouse_detect::{TraceMessage, TraceWriter};
use proofhouse_oatf::Direction;
use proofhouse_tools::runtime::{ActionError, ActionResult, CallEvent, Observer};
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};

use crate::operator::now;

/// A trace that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot write: {error}", path.display())]
pub struct TraceError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

/// What an action is called in the trace: namespace, tool and action make the name of a function.
type Naming = dyn Fn(&str, &str, &str) -> Option<String> + Send + Sync;

/// Writes calls to a file as they happen. Cheap to clone.
#[derive(Clone)]
pub struct CallTrace {
    inner: Arc<Mutex<CallTraceWriter>>,
    path: PathBuf,
    naming: Arc<Naming>,
    clock: Arc<dyn Fn() -> String + Send + Sync>,
}

struct CallTraceWriter {
    writer: TraceWriter<Box<dyn Write + Send>>,
    sequence: u64,
    /// Why the file is not whole, if it is not.
    failure: Option<io::Error>,
}

impl CallTrace {
    /// Creates the file and writes its header. `naming` says what the model calls an action; others go
    /// by their own names.
    ///
    /// # Errors
    ///
    /// Returns an error when the file cannot be written.
    pub fn create(
        path: &Path,
        naming: impl Fn(&str, &str, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, TraceError> {
        Self::begin(path, "proofhouse tool", Arc::new(now), naming)
    }

    /// The same for another writer, with a clock of its own.
    ///
    /// # Errors
    ///
    /// Returns an error when the file cannot be written.
    pub fn begin(
        path: &Path,
        written_by: &str,
        clock: Arc<dyn Fn() -> String + Send + Sync>,
        naming: impl Fn(&str, &str, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, TraceError> {
        let file = File::create(path).map_err(|error| cannot_write(path, error))?;
        let mut writer = TraceWriter::new(Box::new(file) as Box<dyn Write + Send>);
        let metadata = json!({"tool": written_by});
        if let Some(metadata) = metadata.as_object() {
            let written = writer.write_header(metadata);
            written.map_err(|error| cannot_write(path, error))?;
        }
        let inner = CallTraceWriter {
            writer,
            sequence: 0,
            failure: None,
        };
        Ok(Self {
            inner: Arc::new(Mutex::new(inner)),
            path: path.to_owned(),
            naming: Arc::new(naming),
            clock,
        })
    }

    /// Says whether everything was written.
    ///
    /// # Errors
    ///
    /// Returns an error when it was not.
    pub fn finish(&self) -> Result<(), TraceError> {
        let mut inner = lock(&self.inner);
        let failure = inner.failure.take();
        match failure.map_or_else(|| inner.writer.flush(), Err) {
            Ok(()) => Ok(()),
            Err(error) => Err(cannot_write(&self.path, error)),
        }
    }

    fn write(&self, direction: Direction, content: Value) {
        let mut inner = lock(&self.inner);
        inner.sequence += 1;
        let mut message = TraceMessage::new("mcp", "tools/call", content);
        message.sequence = inner.sequence;
        message.time = Some((self.clock)());
        message.direction = Some(direction);
        if let Err(error) = inner.writer.write(&message) {
            inner.failure.get_or_insert(error);
        }
    }
}

impl Observer for CallTrace {
    fn observe(&self, event: CallEvent<'_>) {
        match event {
            CallEvent::Called {
                tool: (namespace, tool),
                action,
                arguments,
                ..
            } => {
                let name = (self.naming)(namespace, tool, action);
                let name = name.unwrap_or_else(|| action.to_owned());
                self.write(
                    Direction::Request,
                    json!({"name": name, "arguments": arguments}),
                );
            }
            CallEvent::Returned { result, .. } => {
                self.write(Direction::Response, call_result(result));
            }
        }
    }
}

/// A result as an MCP server would give it.
#[must_use]
pub fn call_result(result: Result<&ActionResult, &ActionError>) -> Value {
    let (value, is_error) = match result {
        Ok(outcome) => (outcome.value.clone(), false),
        Err(error) => (error.to_json(), true),
    };
    let text = match &value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut told = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    if value.is_object() {
        told["structuredContent"] = value;
    }
    told
}

fn cannot_write(path: &Path, error: io::Error) -> TraceError {
    TraceError {
        path: path.to_owned(),
        error,
    }
}
