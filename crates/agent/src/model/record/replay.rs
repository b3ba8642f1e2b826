//! Says again what was recorded, without a model.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;

use super::super::{Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, ModelSink};
use super::difference::first_difference;
use super::line::{RecordedExchange, RecordingHeader, VERSION, request_hash};
use super::{RecordError, RedactText, redact};

/// The largest recording that is read; it is held in memory.
const MAX_BYTES: u64 = 256 << 20;

/// A recording that answers like the model that was recorded.
///
/// Each recorded exchange is used once. Requests that are the same get their replies in the order in
/// which they were recorded, so tasks that run side by side do not disturb each other.
pub struct RecordedModel {
    name: String,
    simulation: bool,
    started_at: Option<String>,
    state: Mutex<ReplayPosition>,
    redactor: Option<RedactText>,
}

#[derive(Default)]
struct ReplayPosition {
    /// In the order of the file; those that were used are gone.
    left: Vec<Option<RecordedExchange>>,
    by_hash: HashMap<String, VecDeque<usize>>,
    used: usize,
}

impl RecordedModel {
    /// Reads a recording from a file.
    ///
    /// # Errors
    ///
    /// Returns an error when the file cannot be read or is no recording.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let wrong = |error: std::io::Error| RecordError::File {
            file: path.display().to_string(),
            reason: error.to_string(),
        };
        let mut text = Vec::new();
        let file = File::open(path).map_err(wrong)?;
        #[expect(clippy::disallowed_methods, reason = "`take` caps it")]
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(wrong)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(RecordError::TooLarge { limit: MAX_BYTES });
        }
        Self::read(&String::from_utf8_lossy(&text))
    }

    /// Reads a recording.
    ///
    /// # Errors
    ///
    /// Returns an error when it is none.
    pub fn read(text: &str) -> Result<Self, RecordError> {
        let mut lines = text.lines().enumerate();
        let wrong = |line: usize, reason: String| RecordError::Line {
            line: line + 1,
            reason,
        };
        let first = lines.next().map(|(_, line)| line).unwrap_or_default();
        let header: RecordingHeader = serde_json::from_str(first)
            .map_err(|error| wrong(0, format!("not the header of a recording: {error}")))?;
        if header.proofhouse_model_record != VERSION {
            let found = header.proofhouse_model_record;
            return Err(wrong(
                0,
                format!("version {found} of the format is not known"),
            ));
        }
        let mut state = ReplayPosition::default();
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let exchange: RecordedExchange = serde_json::from_str(line)
                .map_err(|error| wrong(number, format!("not an exchange: {error}")))?;
            if request_hash(&exchange.request) != exchange.hash {
                let reason = "the request is not the one that was hashed: the line was changed";
                return Err(wrong(number, reason.to_owned()));
            }
            let place = state.left.len();
            let same = state.by_hash.entry(exchange.hash.clone()).or_default();
            same.push_back(place);
            state.left.push(Some(exchange));
        }
        Ok(Self {
            name: header.model,
            simulation: header.simulation,
            started_at: header.started_at,
            state: Mutex::new(state),
            redactor: None,
        })
    }

    /// With the redactor that the recording was made with: requests are found by what it leaves of them.
    #[must_use]
    pub fn with_redactor(mut self, redactor: RedactText) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// When the recorded task began, if the recording says so.
    #[must_use]
    pub fn started_at(&self) -> Option<&str> {
        self.started_at.as_deref()
    }

    /// How many recorded exchanges were not asked for yet.
    #[must_use]
    pub fn left(&self) -> usize {
        let state = lock(&self.state);
        state.left.len() - state.used
    }

    fn take(&self, request: &ModelRequest) -> Result<RecordedExchange, ModelError> {
        let request = match &self.redactor {
            None => request.clone(),
            Some(redactor) => redact::request(request, redactor),
        };
        let hash = request_hash(&request);
        let mut state = lock(&self.state);
        let state = &mut *state;
        let places = state.by_hash.get_mut(&hash);
        let place = places.and_then(VecDeque::pop_front);
        if let Some(exchange) = place.and_then(|place| state.left[place].take()) {
            state.used += 1;
            return Ok(exchange);
        }
        let message = if state.by_hash.contains_key(&hash) {
            "the recording has this request, but not as often as it is asked".to_owned()
        } else {
            not_recorded(&request, &state.left)
        };
        Err(ModelError::new(ModelErrorKind::NotRecorded, message))
    }
}

/// Tells how the request differs from the recorded one that is most like it.
fn not_recorded(request: &ModelRequest, left: &[Option<RecordedExchange>]) -> String {
    let agreeing = |exchange: &RecordedExchange| {
        let pairs = exchange.request.messages.iter().zip(&request.messages);
        pairs
            .take_while(|(recorded, asked)| recorded == asked)
            .count()
    };
    let mut nearest: Option<(usize, usize, &RecordedExchange)> = None;
    for (place, exchange) in left.iter().enumerate() {
        if let Some(exchange) = exchange {
            let score = agreeing(exchange);
            if nearest.is_none_or(|(best, ..)| score > best) {
                nearest = Some((score, place, exchange));
            }
        }
    }
    match nearest {
        None => "the recording has no exchange left, but the model is asked again".to_owned(),
        Some((_, place, exchange)) => {
            let difference = first_difference(&exchange.request, request);
            let number = place + 1;
            format!(
                "the recording has no such request; exchange {number} comes nearest: {difference}"
            )
        }
    }
}

impl Model for RecordedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_simulation(&self) -> bool {
        self.simulation
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            let exchange = self.take(request)?;
            for event in exchange.events {
                events.event(event);
            }
            exchange.outcome.into_result()
        }
        .boxed()
    }
}
