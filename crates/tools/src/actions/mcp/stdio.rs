//! The link to a server that is a child process: a line each way per message, and nothing left behind.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_wire::{CancellationToken, Child, Line, LineReader, ProcessError, Spawn};
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::failure::{LinkError, too_long};
use super::sieve::{Sieve, is_answer};
use crate::runtime::{ActionError, Failure};

/// Messages that wait to be written. More make their senders wait.
const QUEUE: usize = 64;

/// How long a server may take to read one message, before it counts as stuck.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// How much a server may write between two answers: notifications, log lines that went astray, garbage.
/// After that it is cut off.
const MAX_UNASKED_BYTES: u64 = 64 << 20;

/// What is still read after a server has ended, when something that it started keeps its output open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long a server may take to end after its input was closed, and again after it was told to.
const EXIT_PATIENCE: Duration = Duration::from_secs(3);

/// A server process under supervision. When this is dropped, the process is ended.
#[derive(Debug)]
pub(super) struct Process {
    /// Closes the input of the process.
    closing: CancellationToken,
    stopping: CancellationToken,
    questions: mpsc::Sender<oneshot::Sender<String>>,
    /// What it had written to its error output when it ended.
    said: Arc<Mutex<String>>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
    outgoing: mpsc::Sender<Vec<u8>>,
    late_discovery: Arc<AtomicBool>,
}

/// The client's end of the pipes.
pub(super) struct StdioTransport {
    lines: LineReader<BufReader<ChildStdout>>,
    outgoing: mpsc::Sender<Vec<u8>>,
    closing: CancellationToken,
    sieve: Arc<Sieve>,
    unasked: u64,
    /// The requests that have no answer yet, by the text of their ids: some servers make texts of numbers.
    waiting: HashMap<String, Waiting>,
    /// Whether a server said that it is of the modern era after it was no longer asked.
    late_discovery: Arc<AtomicBool>,
}

/// A request that has no answer yet.
struct Waiting {
    id: RequestId,
    /// Whether it is one for news, whose answer comes at the end of everything.
    listens: bool,
}

/// Starts a server.
pub(super) fn start(
    spawn: &Spawn,
    sieve: Arc<Sieve>,
    max_message_bytes: usize,
) -> Result<(Process, StdioTransport), ActionError> {
    let limits = proofhouse_wire::Limits {
        max_message_bytes,
        exit_timeout: EXIT_PATIENCE,
        ..proofhouse_wire::Limits::default()
    };
    let (child, stdin, lines) = spawn
        .start(&limits)
        .map_err(|error| start_error(&error, &spawn.program))?;
    let (closing, stopping) = (CancellationToken::new(), CancellationToken::new());
    let (outgoing, queue) = mpsc::channel(QUEUE);
    tokio::spawn(write(stdin, queue, closing.clone()));
    let (questions, asked) = mpsc::channel(4);
    let said = Arc::new(Mutex::new(String::new()));
    let supervisor = tokio::spawn(supervise(
        child,
        asked,
        closing.clone(),
        stopping.clone(),
        Arc::clone(&said),
    ));
    let process = Process {
        closing: closing.clone(),
        stopping,
        questions,
        said,
        supervisor: Mutex::new(Some(supervisor)),
        outgoing: outgoing.clone(),
        late_discovery: Arc::default(),
    };
    let transport = StdioTransport {
        lines,
        outgoing,
        closing,
        sieve,
        unasked: 0,
        waiting: HashMap::new(),
        late_discovery: Arc::clone(&process.late_discovery),
    };
    Ok((process, transport))
}

fn start_error(error: &ProcessError, program: &str) -> ActionError {
    use std::io::ErrorKind;
    match error {
        ProcessError::Start { source, .. } => match source.kind() {
            ErrorKind::NotFound => ActionError::new(
                Failure::Command,
                format!(
                    "the command `{program}` is not there; servers get a path of their own, so name it in full or set `PATH` in `env`"
                ),
            ),
            ErrorKind::PermissionDenied => ActionError::new(
                Failure::Command,
                format!("the command `{program}` may not be run"),
            ),
            _ => ActionError::new(Failure::Broken, error.to_string()),
        },
        ProcessError::Pipes { .. } => ActionError::new(Failure::Broken, error.to_string()),
    }
}

/// Writes messages until the connection is closed or the process stops reading. The input of the
/// process is closed at the end.
async fn write(
    mut stdin: ChildStdin,
    mut queue: mpsc::Receiver<Vec<u8>>,
    closing: CancellationToken,
) {
    let writing = async {
        while let Some(line) = queue.recv().await {
            let written = async {
                stdin.write_all(&line).await?;
                stdin.flush().await
            };
            match tokio::time::timeout(WRITE_PATIENCE, written).await {
                Ok(Ok(())) => {}
                // What it has written before it ended is still read.
                Ok(Err(_)) => return,
                Err(_) => {
                    closing.cancel();
                    return;
                }
            }
        }
    };
    tokio::select! {
        () = closing.cancelled() => {}
        () = writing => {}
    }
}

/// Waits for the process to end, or ends it, with everything in its group.
async fn supervise(
    mut child: Child,
    mut asked: mpsc::Receiver<oneshot::Sender<String>>,
    closing: CancellationToken,
    stopping: CancellationToken,
    said: Arc<Mutex<String>>,
) {
    let keep = |child: &Child| {
        if let Ok(mut said) = said.lock() {
            *said = child.stderr();
        }
    };
    loop {
        tokio::select! {
            _ = child.wait() => {
                tokio::time::sleep(LAST_WORDS).await;
                closing.cancel();
                keep(&child);
                // Dropping it kills what the server has started and left behind.
                return;
            }
            () = stopping.cancelled() => {
                closing.cancel();
                keep(&child);
                child.stop().await;
                return;
            }
            Some(answer) = asked.recv() => {
                let _ = answer.send(child.stderr());
            }
        }
    }
}

impl Process {
    /// The end of what it wrote to its error output.
    pub(super) async fn said(&self) -> String {
        let (sender, answer) = oneshot::channel();
        if self.questions.send(sender).await.is_ok()
            && let Ok(said) = answer.await
        {
            return said;
        }
        self.said
            .lock()
            .map_or_else(|_| String::new(), |said| said.clone())
    }

    /// Whether it said that it is of the modern era, too late to be heard.
    pub(super) fn is_modern_but_slow(&self) -> bool {
        self.late_discovery.load(Ordering::Relaxed)
    }

    /// Whether it still takes messages.
    pub(super) fn is_open(&self) -> bool {
        !self.outgoing.is_closed() && !self.closing.is_cancelled()
    }

    /// Ends it, and waits until it is gone.
    pub(super) async fn stop(&self) {
        self.stopping.cancel();
        let supervisor = self.supervisor.lock().ok().and_then(|mut task| task.take());
        if let Some(supervisor) = supervisor {
            let _ = supervisor.await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

impl StdioTransport {
    fn remember(&mut self, item: &TxJsonRpcMessage<RoleClient>) {
        match item {
            ClientJsonRpcMessage::Request(request) => {
                // The first question is no longer waited for; its answer would be taken for this one's.
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    self.waiting.clear();
                }
                let waiting = Waiting {
                    id: request.id.clone(),
                    listens: matches!(
                        request.request,
                        ClientRequest::SubscriptionsListenRequest(_)
                    ),
                };
                self.waiting.insert(request.id.to_string(), waiting);
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.waiting.remove(&id.to_string());
                }
            }
            _ => {}
        }
    }

    /// Whether somebody waits for an answer.
    fn is_awaited(&mut self, answer: &ServerJsonRpcMessage) -> bool {
        let id = match answer {
            ServerJsonRpcMessage::Response(response) => &response.id,
            ServerJsonRpcMessage::Error(error) => match &error.id {
                Some(id) => id,
                None => return false,
            },
            _ => return false,
        };
        let is_awaited = self.waiting.remove(&id.to_string()).is_some();
        if let (false, ServerJsonRpcMessage::Response(response)) = (is_awaited, answer)
            && matches!(response.result, ServerResult::DiscoverResult(_))
        {
            self.late_discovery.store(true, Ordering::Relaxed);
        }
        is_awaited
    }

    /// A line that was passed over must have been the answer, if there is but one that it can be to.
    fn instead_of_a_long_answer(&self) -> Option<ServerJsonRpcMessage> {
        let mut waiting = self.waiting.values().filter(|waiting| !waiting.listens);
        match (waiting.next(), waiting.next()) {
            (Some(one), None) => {
                let id = Some(one.id.clone());
                Some(ServerJsonRpcMessage::error(too_long(), id))
            }
            _ => None,
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = LinkError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), LinkError>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        self.remember(&item);
        async move {
            let mut line = serde_json::to_vec(&item)
                .map_err(|error| LinkError::new(Failure::Arguments, error.to_string()))?;
            line.push(b'\n');
            let sent = outgoing.send(line).await;
            sent.map_err(|_| LinkError::new(Failure::Broken, "the server reads no more messages"))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = tokio::select! {
                biased;
                line = self.lines.next() => line.ok()??,
                () = self.closing.cancelled() => return None,
            };
            let (size, message) = match line {
                Line::Whole(line) => (line.len() as u64, self.sieve.admit(&line)),
                Line::TooLong { bytes } => (bytes, self.instead_of_a_long_answer()),
                Line::Cut(line) => (line.len() as u64, None),
            };
            let answer = message.as_ref().filter(|message| is_answer(message));
            let is_awaited = answer.is_some_and(|answer| self.is_awaited(answer));
            if is_awaited {
                self.unasked = 0;
            } else {
                self.unasked += size;
                if self.unasked > MAX_UNASKED_BYTES {
                    tracing::warn!(
                        "an MCP server was cut off: it wrote too much that nobody asked for"
                    );
                    self.closing.cancel();
                    return None;
                }
            }
            match message {
                // An error without an id may be to anything.
                Some(message) if is_awaited || !is_answer(&message) || is_nameless(&message) => {
                    return Some(message);
                }
                _ => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), LinkError> {
        self.closing.cancel();
        Ok(())
    }
}

fn is_nameless(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, ServerJsonRpcMessage::Error(error) if error.id.is_none())
}
