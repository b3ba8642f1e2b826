//! The lines: a thread reads requests, each run is a task of its own, and a thread writes what they say.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proofhouse_subjects::SubjectError;
use proofhouse_subjects::host::HostPrompt;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::protocol::{DriveRequest, DriveRun, PROTOCOL, RequestError, read};
use super::session::{DriveSession, DriveSettings};

/// Bytes of a line.
const MAX_LINE: usize = 8 << 20;
/// Runs that are open at a time.
const MAX_OPEN: usize = 64;
/// Bytes of an answer that are kept.
const MAX_ANSWER: usize = 1 << 20;

/// Why a session could not go on.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The host cannot be written to.
    #[error("the host cannot be written to: {0}")]
    Write(io::Error),
}

/// Serves one host until it ends its input; then its runs are cancelled.
///
/// # Errors
///
/// Returns an error when the host cannot be written to.
pub fn serve(
    runtime: &Handle,
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write,
    settings: DriveSettings,
) -> Result<(), DriveError> {
    let (out, mut lines) = mpsc::unbounded_channel::<Value>();
    let (sender, requests) = mpsc::channel::<Result<String, RequestError>>(16);
    let ready = json!({"event": "ready", "protocol": PROTOCOL, "version": settings.version});
    // The reader ends with the input. Whatever is wrong with a line is told to whoever sent it.
    std::thread::spawn(move || {
        while let Some(line) = next_line(&mut input) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    let board = Arc::new(Board {
        session: DriveSession::new(settings),
        out,
        open: Mutex::default(),
        calls: AtomicU64::new(0),
    });
    let _ = board.out.send(ready);
    runtime.spawn(board.attend(requests));
    // Ends when all who could say something are gone.
    while let Some(line) = lines.blocking_recv() {
        let written = writeln!(output, "{line}").and_then(|()| output.flush());
        written.map_err(DriveError::Write)?;
    }
    Ok(())
}

/// The next line with something in it; `None` at the end.
fn next_line(input: &mut impl BufRead) -> Option<Result<String, RequestError>> {
    loop {
        let mut line = Vec::new();
        let most = MAX_LINE as u64 + 1;
        let read = input.by_ref().take(most).read_until(b'\n', &mut line);
        match read {
            Ok(0) | Err(_) => return None,
            Ok(_) if line.len() > MAX_LINE && line.last() != Some(&b'\n') => {
                // The rest of it is skipped, so that the next line is one again.
                while line.last() != Some(&b'\n') {
                    line.clear();
                    let read = input.by_ref().take(most).read_until(b'\n', &mut line);
                    if !matches!(read, Ok(count) if count > 0) {
                        return None;
                    }
                }
                return Some(Err(RequestError::LongLine(MAX_LINE)));
            }
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                if !text.trim().is_empty() {
                    return Some(Ok(text.trim().to_owned()));
                }
            }
        }
    }
}

/// Who waits for an answer.
type Waiting = HashMap<u64, oneshot::Sender<Result<String, SubjectError>>>;

/// A run that is open.
struct OpenRun {
    cancel: CancellationToken,
    waiting: Waiting,
}

/// What all tasks of a session share.
struct Board {
    session: DriveSession,
    out: mpsc::UnboundedSender<Value>,
    open: Mutex<HashMap<u64, OpenRun>>,
    /// Numbers the prompts.
    calls: AtomicU64,
}

impl Board {
    /// Takes requests until there are no more, and then ends what is open.
    async fn attend(self: Arc<Self>, mut requests: mpsc::Receiver<Result<String, RequestError>>) {
        let all = CancellationToken::new();
        let mut tasks = JoinSet::new();
        while let Some(line) = requests.recv().await {
            while tasks.try_join_next().is_some() {}
            let (id, request) = match line {
                Ok(line) => read(&line),
                Err(error) => (None, Err(error)),
            };
            let failed = match (id, request) {
                (Some(id), Ok(DriveRequest::Run(run))) => match self.begin(id, &all) {
                    Ok(cancel) => {
                        let board = Arc::clone(&self);
                        tasks.spawn(async move { board.make(id, &run, &cancel).await });
                        None
                    }
                    Err(error) => Some(error),
                },
                (Some(id), Ok(DriveRequest::Select(selection))) => {
                    let board = Arc::clone(&self);
                    tasks.spawn(async move {
                        let chosen = board.session.select(id, &selection);
                        board.say(Some(id), chosen);
                    });
                    None
                }
                (Some(id), Ok(DriveRequest::Answer(answer))) => {
                    let mut open = lock(&self.open);
                    let run = open.get_mut(&id);
                    match run.and_then(|run| run.waiting.remove(&answer.call)) {
                        Some(reply) => {
                            // A run that is over needs no answer.
                            let _ = reply.send(match (answer.text, answer.error) {
                                (Some(text), _) => Ok(start_of(text)),
                                (None, why) => Err(SubjectError(start_of(why.unwrap_or_default()))),
                            });
                            None
                        }
                        None => Some(RequestError::NotOpen),
                    }
                }
                (Some(id), Ok(DriveRequest::Cancel)) => {
                    let open = lock(&self.open);
                    match open.get(&id) {
                        Some(run) => {
                            run.cancel.cancel();
                            None
                        }
                        None => Some(RequestError::NotOpen),
                    }
                }
                (_, Err(error)) => Some(error),
                (None, Ok(_)) => Some(RequestError::NoId),
            };
            if let Some(error) = failed {
                self.say(id, Err(error));
            }
        }
        all.cancel();
        while tasks.join_next().await.is_some() {}
    }

    fn begin(&self, id: u64, all: &CancellationToken) -> Result<CancellationToken, RequestError> {
        let mut open = lock(&self.open);
        if open.contains_key(&id) {
            return Err(RequestError::SameId);
        }
        if open.len() >= MAX_OPEN {
            return Err(RequestError::TooMany(MAX_OPEN));
        }
        let cancel = all.child_token();
        let run = OpenRun {
            cancel: cancel.clone(),
            waiting: Waiting::new(),
        };
        open.insert(id, run);
        Ok(cancel)
    }

    async fn make(&self, id: u64, wanted: &DriveRun, cancel: &CancellationToken) {
        let (sender, mut prompts) = mpsc::channel(4);
        let running = self.session.run(id, wanted, sender, cancel);
        tokio::pin!(running);
        let made = loop {
            tokio::select! {
                made = &mut running => break made,
                Some(prompt) = prompts.recv() => self.ask(id, wanted, prompt),
            }
        };
        let mut open = lock(&self.open);
        open.remove(&id);
        drop(open);
        self.say(Some(id), made);
    }

    /// Hands a prompt to the host.
    fn ask(&self, id: u64, wanted: &DriveRun, prompt: HostPrompt) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let purpose = if prompt.run.starts_with("probe/") {
            "probe"
        } else if prompt.run.ends_with("/twin") {
            "control"
        } else {
            "attack"
        };
        {
            let mut open = lock(&self.open);
            if let Some(run) = open.get_mut(&id) {
                run.waiting.insert(call, prompt.reply);
            }
        }
        let event = json!({
            "id": id,
            "event": "prompt",
            "call": call,
            "purpose": purpose,
            "agent": wanted.agent,
            "document": wanted.document,
            "run": prompt.run,
            "turn": prompt.turn,
            "prompt": prompt.text,
            "mcp_urls": prompt.mcp_urls,
            "a2a_urls": prompt.a2a_urls,
            "directory": prompt.directory.to_string_lossy(),
            "canary": prompt.canary,
        });
        let _ = self.out.send(event);
    }

    fn say(&self, id: Option<u64>, said: Result<Value, RequestError>) {
        let event = said.unwrap_or_else(|error| {
            json!({"id": id, "event": "error", "code": error.code(), "message": error.to_string()})
        });
        let _ = self.out.send(event);
    }
}

/// As much of an answer as is kept.
fn start_of(mut text: String) -> String {
    let mut end = MAX_ANSWER.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
