//! Writes down every exchange with a model.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde::Serialize;

use super::super::{Model, ModelError, ModelEvent, ModelReply, ModelRequest, ModelSink};
use super::line::{RecordedEnd, RecordedExchange, RecordingHeader, VERSION, request_hash};
use super::{RecordError, redact};

/// Takes secrets out of a text before it is written down.
pub type RedactText = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A model whose exchanges are written down. Keys are no part of a request, so they never are.
pub struct Recorder {
    model: Arc<dyn Model>,
    writer: Mutex<RecordingWriter>,
    redactor: Option<RedactText>,
}

struct RecordingWriter {
    file: Box<dyn Write + Send>,
    /// The first failure; after it nothing more is written, so that no line is missing in between.
    failed: Option<String>,
}

impl Recorder {
    /// Records to a new file.
    ///
    /// # Errors
    ///
    /// Returns an error when the file exists already or cannot be written.
    pub fn create(
        model: Arc<dyn Model>,
        path: &Path,
        redactor: Option<RedactText>,
    ) -> Result<Self, RecordError> {
        let wrong = |error: std::io::Error| RecordError::File {
            file: path.display().to_string(),
            reason: error.to_string(),
        };
        let file = File::create_new(path).map_err(wrong)?;
        Self::new(model, Box::new(file), redactor).map_err(wrong)
    }

    /// The same for a task whose times come from a [`SteppedClock`](crate::SteppedClock) that started
    /// then: the recording says so, and a replay can tell the same times.
    ///
    /// # Errors
    ///
    /// Returns an error when the file exists already or cannot be written.
    pub fn create_at(
        model: Arc<dyn Model>,
        path: &Path,
        redactor: Option<RedactText>,
        started_at: &str,
    ) -> Result<Self, RecordError> {
        let wrong = |error: std::io::Error| RecordError::File {
            file: path.display().to_string(),
            reason: error.to_string(),
        };
        let file = File::create_new(path).map_err(wrong)?;
        let started_at = Some(started_at.to_owned());
        Self::begin(model, Box::new(file), redactor, started_at).map_err(wrong)
    }

    /// Records to anything that can be written to.
    ///
    /// # Errors
    ///
    /// Returns an error when the first line cannot be written.
    pub fn new(
        model: Arc<dyn Model>,
        file: Box<dyn Write + Send>,
        redactor: Option<RedactText>,
    ) -> std::io::Result<Self> {
        Self::begin(model, file, redactor, None)
    }

    fn begin(
        model: Arc<dyn Model>,
        file: Box<dyn Write + Send>,
        redactor: Option<RedactText>,
        started_at: Option<String>,
    ) -> std::io::Result<Self> {
        let mut writer = RecordingWriter { file, failed: None };
        writer.line(&RecordingHeader {
            proofhouse_model_record: VERSION,
            written_by: env!("CARGO_PKG_VERSION").to_owned(),
            model: model.name().to_owned(),
            simulation: model.is_simulation(),
            started_at,
        })?;
        Ok(Self {
            model,
            writer: Mutex::new(writer),
            redactor,
        })
    }

    /// Why the recording is not complete, if it is not. A full disk does not stop the task.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let writer = lock(&self.writer);
        writer.failed.clone()
    }

    fn note(
        &self,
        request: &ModelRequest,
        events: Vec<ModelEvent>,
        result: &Result<ModelReply, ModelError>,
    ) {
        let exchange = match &self.redactor {
            None => RecordedExchange {
                hash: request_hash(request),
                request: request.clone(),
                events,
                outcome: RecordedEnd::from_result(result),
            },
            Some(redactor) => {
                let request = redact::request(request, redactor);
                RecordedExchange {
                    hash: request_hash(&request),
                    request,
                    events: redact::events(events, redactor),
                    outcome: RecordedEnd::from_result(&redact::result(result, redactor)),
                }
            }
        };
        let mut writer = lock(&self.writer);
        if writer.failed.is_none()
            && let Err(error) = writer.line(&exchange)
        {
            writer.failed = Some(error.to_string());
        }
    }
}

impl RecordingWriter {
    fn line(&mut self, line: &impl Serialize) -> std::io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)?;
        self.file.flush()
    }
}

impl Model for Recorder {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn is_simulation(&self) -> bool {
        self.model.is_simulation()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            let mut heard = Vec::new();
            let mut listener = |event: ModelEvent| {
                heard.push(event.clone());
                events.event(event);
            };
            let result = self.model.complete(request, &mut listener, cancel).await;
            self.note(request, heard, &result);
            result
        }
        .boxed()
    }
}
