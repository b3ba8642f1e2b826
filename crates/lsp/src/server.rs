//! The server: one loop that owns all documents. A thread reads messages; findings are worked out when typing pauses.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use proofhouse_oatf::ReadLimits;
use proofhouse_source::{Diagnostic, DiagnosticSeverity};
use serde_json::{Value, json};
use url::Url;

use crate::formats::FileKind;
use crate::rpc::{FrameError, answer, code, notification, read_frame, refusal, write_frame};
use crate::text::{LspPlace, MAX_BUFFER, TextBuffer};
use crate::{actions, completion, diagnostics, folding, formats, hover, navigation};

/// Documents that are open at a time.
const MAX_DOCUMENTS: usize = 500;
/// Changes in one message.
const MAX_CHANGES: usize = 10_000;
/// Messages that wait to be handled.
const MAX_WAITING: usize = 64;

/// How the server works.
#[derive(Debug, Clone)]
pub struct LspSettings {
    /// The version of the program.
    pub version: String,
    /// How much of a document is read.
    pub limits: ReadLimits,
    /// How long typing has to pause before findings are worked out.
    pub pause: Duration,
    /// How long findings may wait while typing goes on.
    pub patience: Duration,
}

impl Default for LspSettings {
    fn default() -> Self {
        Self {
            version: String::new(),
            limits: ReadLimits::default(),
            pause: Duration::from_millis(25),
            patience: Duration::from_millis(75),
        }
    }
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LspEnd {
    /// The client said that it would, and did.
    Orderly,
    /// The client went away.
    Abandoned,
}

/// Why a session could not go on.
#[derive(Debug, thiserror::Error)]
pub enum LspError {
    /// What the client sends cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The client cannot be written to.
    #[error("the client cannot be written to: {0}")]
    Write(#[from] io::Error),
}

/// A document that is open.
#[derive(Debug)]
pub(crate) struct EditedDocument {
    pub(crate) buffer: TextBuffer,
    pub(crate) path: Option<PathBuf>,
    /// Whether it is one of ours, as far as is known. Nothing is said about others.
    is_ours: bool,
    /// What was found last.
    pub(crate) findings: Vec<Diagnostic>,
    version: Value,
    /// Since when its findings are out of date, and when it was changed last.
    changed: Option<(Instant, Instant)>,
}

/// Serves one client until it leaves.
///
/// # Errors
///
/// Returns an error when the streams break, or when a message is larger than the limits.
pub fn serve(
    mut input: impl BufRead + Send + 'static,
    output: impl Write,
    settings: LspSettings,
) -> Result<LspEnd, LspError> {
    let (sender, messages) = mpsc::sync_channel(MAX_WAITING);
    // It ends with its input, or when nobody takes its messages any more.
    std::thread::spawn(move || {
        loop {
            let frame = read_frame(&mut input);
            let is_last = !matches!(frame, Ok(Some(_)));
            if sender.send(frame).is_err() || is_last {
                return;
            }
        }
    });
    let mut session = LspSession {
        output,
        settings,
        documents: BTreeMap::new(),
        stage: Stage::New,
    };
    loop {
        let frame = match session.next_check() {
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => messages.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match frame {
            Ok(Ok(Some(bytes))) => {
                if let Some(end) = session.handle(&bytes)? {
                    return Ok(end);
                }
            }
            Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => return Ok(LspEnd::Abandoned),
            Ok(Err(error)) => return Err(error.into()),
            Err(RecvTimeoutError::Timeout) => session.check_due()?,
        }
    }
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Ready,
    ShutDown,
}

struct LspSession<W> {
    output: W,
    settings: LspSettings,
    documents: BTreeMap<String, EditedDocument>,
    stage: Stage,
}

impl<W: Write> LspSession<W> {
    /// When the next document is to be checked.
    fn next_check(&self) -> Option<Instant> {
        let due = |document: &EditedDocument| {
            let (first, last) = document.changed?;
            Some((last + self.settings.pause).min(first + self.settings.patience))
        };
        self.documents.values().filter_map(due).min()
    }

    fn check_due(&mut self) -> Result<(), LspError> {
        let now = Instant::now();
        let (pause, patience) = (self.settings.pause, self.settings.patience);
        let is_due = |document: &EditedDocument| {
            let changed = document.changed;
            changed.is_some_and(|(first, last)| now >= last + pause || now >= first + patience)
        };
        let due: Vec<String> = self
            .documents
            .iter()
            .filter(|(_, document)| is_due(document))
            .map(|(uri, _)| uri.clone())
            .collect();
        for uri in due {
            self.publish(&uri)?;
        }
        Ok(())
    }

    /// Works out the findings of a document, if they are out of date, and shows them.
    fn publish(&mut self, uri: &str) -> Result<(), LspError> {
        let Some(document) = self.documents.get_mut(uri) else {
            return Ok(());
        };
        refresh(document, &self.settings.limits);
        let params = json!({
            "uri": uri,
            "version": document.version,
            "diagnostics": diagnostics::shown(&document.buffer, &document.findings),
        });
        self.tell("textDocument/publishDiagnostics", &params)
    }

    fn tell(&mut self, method: &str, params: &Value) -> Result<(), LspError> {
        Ok(write_frame(
            &mut self.output,
            &notification(method, params),
        )?)
    }

    /// Handles a message; says when the session has ended.
    fn handle(&mut self, bytes: &[u8]) -> Result<Option<LspEnd>, LspError> {
        let Ok(message) = serde_json::from_slice::<Value>(bytes) else {
            let refused = refusal(&Value::Null, code::PARSE_ERROR, "the message is no JSON");
            write_frame(&mut self.output, &refused)?;
            return Ok(None);
        };
        let method = message.get("method").and_then(Value::as_str);
        let id = message.get("id");
        let Some(method) = method else {
            // Answers to us, of which we expect none, or nothing that we know.
            if id.is_none() || (message.get("result").is_none() && message.get("error").is_none()) {
                let refused = refusal(
                    &Value::Null,
                    code::INVALID_REQUEST,
                    "the message has no method",
                );
                write_frame(&mut self.output, &refused)?;
            }
            return Ok(None);
        };
        let none = Value::Null;
        let params = message.get("params").unwrap_or(&none);
        match id {
            Some(id) => {
                let reply = self.request(id, method, params);
                write_frame(&mut self.output, &reply)?;
                Ok(None)
            }
            None if method == "exit" => Ok(Some(if self.stage == Stage::ShutDown {
                LspEnd::Orderly
            } else {
                LspEnd::Abandoned
            })),
            None => {
                if self.stage == Stage::Ready {
                    self.notice(method, params)?;
                }
                Ok(None)
            }
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) -> Value {
        match (method, self.stage) {
            ("initialize", Stage::New) => {
                self.stage = Stage::Ready;
                return answer(id, &capabilities(&self.settings.version));
            }
            ("initialize", _) | (_, Stage::ShutDown) => {
                return refusal(id, code::INVALID_REQUEST, "not at this time");
            }
            (_, Stage::New) => {
                return refusal(id, code::NOT_INITIALIZED, "initialize comes first");
            }
            ("shutdown", Stage::Ready) => {
                self.stage = Stage::ShutDown;
                return answer(id, &Value::Null);
            }
            (_, Stage::Ready) => {}
        }
        let Some(kind) = Question::parse(method) else {
            return refusal(id, code::METHOD_NOT_FOUND, "there is no such method here");
        };
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
        let Some(document) = self.documents.get_mut(uri) else {
            return refusal(id, code::INVALID_PARAMS, "the document is not open");
        };
        let place = LspPlace::read(&params["position"]);
        let range = &params["range"];
        let range = LspPlace::read(&range["start"]).zip(LspPlace::read(&range["end"]));
        let result = match (kind, place, range) {
            (Question::Completion, Some(place), _) => completion::complete(document, place),
            (Question::Hover, Some(place), _) => {
                refresh(document, &self.settings.limits);
                hover::hover(document, place)
            }
            (Question::Definition, Some(place), _) => match Url::parse(uri) {
                Ok(parsed) => navigation::definition(document, &parsed, place),
                Err(_) => Value::Null,
            },
            (Question::CodeAction, _, Some((from, to))) => {
                refresh(document, &self.settings.limits);
                actions::actions(document, uri, from, to)
            }
            (Question::Folding, _, _) => folding::folds(&document.buffer),
            (
                Question::Completion
                | Question::Hover
                | Question::Definition
                | Question::CodeAction,
                _,
                _,
            ) => return refusal(id, code::INVALID_PARAMS, "it is not said where"),
        };
        answer(id, &result)
    }

    fn notice(&mut self, method: &str, params: &Value) -> Result<(), LspError> {
        let document = &params["textDocument"];
        let uri = document["uri"].as_str().unwrap_or_default().to_owned();
        match method {
            "textDocument/didOpen" => {
                if self.documents.len() >= MAX_DOCUMENTS && !self.documents.contains_key(&uri) {
                    let message = format!(
                        "more than {MAX_DOCUMENTS} documents are open; this one is not checked: {uri}"
                    );
                    return self.tell("window/logMessage", &json!({"type": 2, "message": message}));
                }
                let text = document["text"].as_str().unwrap_or_default();
                let path = Url::parse(&uri).ok();
                let path = path.and_then(|url| url.to_file_path().ok());
                let now = Instant::now();
                let opened = EditedDocument {
                    buffer: TextBuffer::new(text),
                    is_ours: FileKind::recognized(path.as_deref(), text).is_some(),
                    path,
                    findings: Vec::new(),
                    version: document["version"].clone(),
                    changed: Some((now, now)),
                };
                self.documents.insert(uri.clone(), opened);
                // Nobody is typing yet.
                self.publish(&uri)
            }
            "textDocument/didChange" => {
                let Some(open) = self.documents.get_mut(&uri) else {
                    return Ok(());
                };
                let changes = params["contentChanges"].as_array();
                for change in changes.into_iter().flatten().take(MAX_CHANGES) {
                    let text = change["text"].as_str().unwrap_or_default();
                    let range = &change["range"];
                    let places = LspPlace::read(&range["start"]).zip(LspPlace::read(&range["end"]));
                    match places {
                        Some((from, to)) => open.buffer.edit(from, to, text),
                        None => open.buffer.set(text),
                    }
                }
                open.version = document["version"].clone();
                let now = Instant::now();
                let first = open.changed.map_or(now, |(first, _)| first);
                open.changed = Some((first, now));
                Ok(())
            }
            "textDocument/didClose" => {
                if self.documents.remove(&uri).is_none() {
                    return Ok(());
                }
                let params = json!({"uri": uri, "diagnostics": []});
                self.tell("textDocument/publishDiagnostics", &params)
            }
            _ => Ok(()),
        }
    }
}

/// Works out the findings of a document, if they are out of date.
fn refresh(document: &mut EditedDocument, limits: &ReadLimits) {
    if document.changed.take().is_none() {
        return;
    }
    let buffer = &document.buffer;
    if !buffer.is_lost() {
        document.is_ours = FileKind::recognized(document.path.as_deref(), buffer.text()).is_some();
    }
    document.findings = if !document.is_ours {
        Vec::new()
    } else if buffer.is_lost() || buffer.text().len() > limits.max_bytes {
        let most = limits.max_bytes.min(MAX_BUFFER);
        vec![Diagnostic {
            severity: DiagnosticSeverity::Error,
            code: "PH-002",
            path: None,
            span: None,
            message: format!(
                "the document is larger than {most} bytes; raise the limit if it may be"
            ),
            help: None,
        }]
    } else {
        formats::check_alone(document.path.as_deref(), buffer.text(), limits).findings
    };
}

/// What a client can ask about a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Completion,
    Hover,
    Definition,
    CodeAction,
    Folding,
}

impl Question {
    fn parse(method: &str) -> Option<Self> {
        match method {
            "textDocument/completion" => Some(Self::Completion),
            "textDocument/hover" => Some(Self::Hover),
            "textDocument/definition" => Some(Self::Definition),
            "textDocument/codeAction" => Some(Self::CodeAction),
            "textDocument/foldingRange" => Some(Self::Folding),
            _ => None,
        }
    }
}

/// What the server can do.
fn capabilities(version: &str) -> Value {
    let kinds: BTreeSet<&str> = [":", " ", "-"].into_iter().collect();
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": {"openClose": true, "change": 2},
            "completionProvider": {"triggerCharacters": kinds},
            "hoverProvider": true,
            "definitionProvider": true,
            "foldingRangeProvider": true,
            "codeActionProvider": {"codeActionKinds": ["quickfix"]},
        },
        "serverInfo": {"name": "proofhouse", "version": version},
    })
}
