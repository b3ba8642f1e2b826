//! Raw JSON-RPC logs of MCP and A2A, one message a line, seen as a trace.

use std::collections::VecDeque;
use std::io::Read;

use proofhouse_oatf::{Direction, Protocol};
use proofhouse_protocol::a2a::{A2aMethod, A2aShape, ARTIFACT_EVENT, STATUS_EVENT};
use serde_json::{Map, Value};

use super::a2a;
use super::detect::{ObjectKey, has};
use super::methods;
use super::open_requests::{OpenRequest, OpenRequests};
use super::wrapper::{Envelope, PAYLOAD_KEYS, open_envelope};
use super::{ImportOptions, TraceFormat};
use crate::trace::lenient::RepairNotes;
use crate::trace::lines::{LineSplitter, json_error};
use crate::trace::stream::LineFormat;
use crate::trace::{
    LineError, LineErrorKind, ReadSummary, TraceItem, TraceMessage, TraceReadError,
};

/// The lines of a JSON-RPC log. What is understood of them is described in `docs/reference/traces.md`.
pub(crate) struct JsonRpcLines {
    queue: VecDeque<TraceItem>,
    state: LineState,
}

/// What is known from the lines before.
struct LineState {
    options: ImportOptions,
    open: OpenRequests,
    /// The protocol of the last message that could only be of one.
    protocol: Option<Protocol>,
    sequence: u64,
    /// Whether this is another reading of a message whose usual one is still to come.
    reading: bool,
    /// Whether it is that, or what a message is besides what it is first.
    tentative: bool,
}

impl TraceFormat for JsonRpcLines {
    const NAME: &'static str = "json-rpc";
    const SUMMARY: &'static str = "JSON-RPC log of MCP or A2A, one message a line";

    fn recognises(keys: &[ObjectKey<'_>]) -> bool {
        let has = |key| has(keys, key);
        has("jsonrpc")
            || has("method")
            || (has("id") && (has("result") || has("error")))
            // A line of a log that only has a text there is no message in a wrapper.
            || (keys.iter()).any(|key| key.opens && PAYLOAD_KEYS.contains(&key.name))
    }

    fn new(options: &ImportOptions) -> Self {
        let limits = &options.limits;
        let open = OpenRequests::new(limits.max_open_requests, limits.max_open_request_bytes);
        Self {
            queue: VecDeque::new(),
            state: LineState {
                options: options.clone(),
                open,
                protocol: None,
                sequence: 0,
                reading: false,
                tentative: false,
            },
        }
    }
}

impl LineFormat for JsonRpcLines {
    fn step<R: Read>(
        &mut self,
        lines: &mut LineSplitter<R>,
        summary: &mut ReadSummary,
    ) -> Result<Option<TraceItem>, TraceReadError> {
        loop {
            if let Some(item) = self.queue.pop_front() {
                return Ok(Some(item));
            }
            let Some(line) = lines.next_line()? else {
                return Ok(None);
            };
            let number = line.number;
            let text = match line.text {
                Ok(text) if text.trim_ascii().is_empty() => continue,
                Ok(text) => text,
                Err(error) => return Ok(Some(summary.problem(error))),
            };
            let mut notes = RepairNotes::default();
            let envelopes = match open_envelope(text, &mut notes) {
                Ok(envelopes) => envelopes,
                Err(error) => {
                    let error = match line.damage {
                        Some(damage) => damage.error(number),
                        None => json_error(number, line.terminated, &error),
                    };
                    return Ok(Some(summary.problem(error)));
                }
            };
            notes.repairs.not_utf8 = line.damage.map(|damage| damage.byte);
            for problem in notes.problems(number) {
                self.queue.push_back(summary.problem(problem));
            }
            // The usual reading comes first and is taken last, because it is the one that counts
            // when the response is looked for.
            for (position, envelope) in envelopes.into_iter().enumerate().rev() {
                let mut sink = LineSink {
                    line: number,
                    bytes: text.len(),
                    summary,
                    queue: &mut self.queue,
                };
                self.state.reading = position > 0;
                self.state.tentative = position > 0;
                self.state.take(envelope, &mut sink);
            }
            summary.forgotten_requests = self.state.open.forgotten();
        }
    }
}

/// Where the items of one line go.
struct LineSink<'a> {
    line: u64,
    bytes: usize,
    summary: &'a mut ReadSummary,
    queue: &'a mut VecDeque<TraceItem>,
}

impl LineSink<'_> {
    fn problem(&mut self, kind: LineErrorKind, message: String) {
        let line = self.line;
        self.queue.push_back(self.summary.problem(LineError {
            line,
            kind,
            message,
        }));
    }

    fn message(&mut self, message: TraceMessage, is_reading: bool) {
        let item = if is_reading {
            self.summary.reading(self.line, message)
        } else {
            self.summary.message(self.line, message)
        };
        self.queue.push_back(item);
    }
}

impl LineState {
    fn take(&mut self, envelope: Envelope, sink: &mut LineSink<'_>) {
        let Envelope {
            payload,
            sender,
            receiver,
            time,
        } = envelope;
        let parties = Parties {
            sender,
            receiver,
            time,
        };
        match payload {
            Value::Array(batch) if batch.is_empty() => {
                sink.problem(
                    LineErrorKind::NotAMessage,
                    "not a message: an empty batch".into(),
                );
            }
            Value::Array(batch) => {
                // The parameters of a batch share its line, so each counts for its part of it.
                sink.bytes /= batch.len();
                for message in batch {
                    self.message(message, &parties, sink);
                }
            }
            message => self.message(message, &parties, sink),
        }
    }

    fn message(&mut self, message: Value, parties: &Parties, sink: &mut LineSink<'_>) {
        let Value::Object(mut map) = message else {
            sink.problem(
                LineErrorKind::NotAMessage,
                "not a message: neither an object nor a batch of objects".into(),
            );
            return;
        };
        let id = map.get("id").and_then(id_text);
        let mut known = false;
        if let Some(Value::String(method)) = map.shift_remove("method") {
            let params = map.shift_remove("params");
            self.request(&method, id.clone(), params, parties, sink);
            known = true;
        }
        // A message should be one of the three. One that is more must not hide what else it is.
        let tentative = self.tentative;
        let mut answers = [("result", false), ("error", true)]
            .map(|(key, is_error)| (map.shift_remove(key), is_error));
        // Some write the one that it is not as null.
        let said =
            |(answer, _): &(Option<Value>, bool)| answer.as_ref().is_some_and(|a| !a.is_null());
        if known || answers.iter().any(said) {
            for (answer, _) in &mut answers {
                answer.take_if(|answer| answer.is_null());
            }
        }
        for (answer, is_error) in answers {
            if let Some(answer) = answer {
                self.tentative |= known;
                self.response(id.as_deref(), answer, is_error, parties, sink);
                known = true;
            }
        }
        self.tentative = tentative;
        if !known {
            sink.problem(
                LineErrorKind::NotAMessage,
                "not a message: none of `method`, `result` and `error` is there".into(),
            );
        }
    }

    fn request(
        &mut self,
        method: &str,
        id: Option<String>,
        params: Option<Value>,
        parties: &Parties,
        sink: &mut LineSink<'_>,
    ) {
        let params = params.unwrap_or_else(|| Value::Object(Map::new()));
        let certain = methods::protocol_of(method, &params);
        if certain.is_some() {
            self.protocol = certain;
        }
        let protocol = match &self.options.protocol {
            Some(protocol) => protocol.clone(),
            None => self.protocol.clone().unwrap_or(Protocol::Mcp),
        };
        let modern = if protocol == Protocol::A2a {
            a2a::operation(method)
        } else {
            None
        };
        let operation = modern.map_or(method, |known| known.event()).to_owned();
        let (content, raw) = match modern {
            Some(_) => projected(params, false),
            None => (params, None),
        };
        if let Some(id) = id {
            let enriches = self.options.enrich && methods::enriches(&protocol, &operation);
            let request = OpenRequest {
                asker: parties.sender.clone(),
                protocol: protocol.clone(),
                operation: operation.clone(),
                modern_a2a: modern.is_some(),
                params: enriches.then(|| content.clone()),
                stream: protocol == Protocol::A2a
                    && A2aMethod::parse(&operation).is_some_and(|(method, _)| method.is_streamed()),
            };
            // Names and bookkeeping take memory too.
            let bytes = 256
                + if enriches {
                    sink.bytes
                } else {
                    operation.len()
                };
            self.open.insert(id, bytes, request);
        }
        let side = methods::side_of(&operation);
        let mut message = self.new_message(protocol, operation, side, content, parties);
        message.raw = raw;
        sink.message(message, self.reading);
    }

    fn response(
        &mut self,
        id: Option<&str>,
        result: Value,
        is_error: bool,
        parties: &Parties,
        sink: &mut LineSink<'_>,
    ) {
        let last = is_error || ends_stream(&result);
        let fits = |request: &OpenRequest| parties.may_answer(request);
        let request = id.and_then(|id| {
            if self.tentative {
                self.open.peek(id, fits)
            } else {
                self.open.answer(id, last, fits)
            }
        });
        let Some(request) = request else {
            let (protocol, operation) = methods::guess(&result, is_error);
            let protocol = match &self.options.protocol {
                Some(protocol) => protocol.clone(),
                None => protocol
                    .or_else(|| self.protocol.clone())
                    .unwrap_or(Protocol::Mcp),
            };
            let guess = if operation == methods::UNKNOWN {
                "its operation is not known".to_owned()
            } else {
                format!("it looks like one to {operation}")
            };
            if !self.tentative {
                sink.problem(
                    LineErrorKind::Unrequested,
                    format!("the request of this response was not seen; {guess}"),
                );
            }
            let modern = protocol == Protocol::A2a && !is_error && a2a::wrapped(&result).is_some();
            let (content, raw) = if modern {
                projected(result, true)
            } else {
                (result, None)
            };
            let mut message = self.new_message(
                protocol,
                operation.to_owned(),
                Direction::Response,
                content,
                parties,
            );
            message.raw = raw;
            sink.message(message, self.reading);
            return;
        };
        let modern = request.modern_a2a && !is_error;
        let (mut content, raw) = if modern {
            projected(result, true)
        } else {
            (result, None)
        };
        if let (Some(Value::Object(params)), Value::Object(content)) =
            (request.params, &mut content)
        {
            for (key, value) in params {
                content.entry(key).or_insert(value);
            }
        }
        // Items of a stream are events of their own besides.
        let kind = content.get("kind").and_then(Value::as_str);
        let event = match kind.and_then(A2aShape::of_kind) {
            Some(A2aShape::StatusUpdate) => Some(STATUS_EVENT),
            Some(A2aShape::ArtifactUpdate) => Some(ARTIFACT_EVENT),
            Some(A2aShape::Task | A2aShape::Message) | None => None,
        };
        let event = event.filter(|_| request.stream);
        let mut message = self.new_message(
            request.protocol,
            request.operation,
            Direction::Response,
            content,
            parties,
        );
        message.raw = raw;
        if let Some(event) = event {
            let mut second = message.clone();
            sink.message(message, self.reading);
            self.sequence += 1;
            second.sequence = self.sequence;
            event.clone_into(&mut second.operation);
            message = second;
        }
        sink.message(message, self.reading);
    }

    fn new_message(
        &mut self,
        protocol: Protocol,
        operation: String,
        direction: Direction,
        content: Value,
        parties: &Parties,
    ) -> TraceMessage {
        self.sequence += 1;
        let mut message = TraceMessage::new(protocol, operation, content);
        message.sequence = self.sequence;
        message.direction = Some(direction);
        message.time.clone_from(&parties.time);
        message.actor.clone_from(&self.options.actor);
        message
    }
}

/// Who spoke to whom, as far as the log says it.
struct Parties {
    sender: Option<String>,
    receiver: Option<String>,
    time: Option<String>,
}

impl Parties {
    /// Whether a response between these can be one to the request.
    fn may_answer(&self, request: &OpenRequest) -> bool {
        match (&request.asker, &self.receiver, &self.sender) {
            (Some(asker), Some(receiver), _) => asker == receiver,
            // Nobody answers himself.
            (Some(asker), None, Some(sender)) => asker != sender,
            _ => true,
        }
    }
}

/// The 0.3 form, and the wire form where the two differ.
fn projected(content: Value, is_result: bool) -> (Value, Option<Value>) {
    let legacy = a2a::project(&content, is_result);
    if legacy == content {
        (legacy, None)
    } else {
        (legacy, Some(content))
    }
}

/// Ids are texts or numbers, and `1` is not `"1"`.
fn id_text(id: &Value) -> Option<String> {
    match id {
        Value::String(_) | Value::Number(_) => Some(id.to_string()),
        _ => None,
    }
}

fn ends_stream(result: &Value) -> bool {
    result.get("final") == Some(&Value::Bool(true))
}
