//! Processes of servers: started with a clean environment, supervised, and ended with all they started.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_wire::{CancellationToken, Child, ProcessError, Spawn};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::sieve::Sieve;
use super::stdio::StdioTransport;
use crate::runtime::{ActionError, ActionFailure};

/// Messages that wait to be written. More make their senders wait.
const QUEUE: usize = 64;

/// How long a server may take to read one message, before it counts as stuck.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// What is still read after a server has ended, when something that it started keeps its output open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long a server may take to end after its input was closed, and again after it was told to.
const EXIT_PATIENCE: Duration = Duration::from_secs(3);

/// A server process under supervision. When this is dropped, the process is ended.
#[derive(Debug)]
pub(super) struct ServerProcess {
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

/// Starts a server.
pub(super) fn start(
    spawn: &Spawn,
    sieve: Arc<Sieve>,
    max_message_bytes: usize,
) -> Result<(ServerProcess, StdioTransport), ActionError> {
    let limits = proofhouse_wire::WireLimits {
        max_message_bytes,
        exit_timeout: EXIT_PATIENCE,
        ..proofhouse_wire::WireLimits::default()
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
    let process = ServerProcess {
        closing: closing.clone(),
        stopping,
        questions,
        said,
        supervisor: Mutex::new(Some(supervisor)),
        outgoing: outgoing.clone(),
        late_discovery: Arc::default(),
    };
    let late_discovery = Arc::clone(&process.late_discovery);
    let transport = StdioTransport::new(lines, outgoing, closing, sieve, late_discovery);
    Ok((process, transport))
}

fn start_error(error: &ProcessError, program: &str) -> ActionError {
    use std::io::ErrorKind;
    match error {
        ProcessError::Start { source, .. } => match source.kind() {
            ErrorKind::NotFound => ActionError::new(
                ActionFailure::Command,
                format!(
                    "the command `{program}` is not there; servers get a path of their own, so name it in full or set `PATH` in `env`"
                ),
            ),
            ErrorKind::PermissionDenied => ActionError::new(
                ActionFailure::Command,
                format!("the command `{program}` may not be run"),
            ),
            _ => ActionError::new(ActionFailure::Broken, error.to_string()),
        },
        ProcessError::Pipes { .. } => ActionError::new(ActionFailure::Broken, error.to_string()),
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

impl ServerProcess {
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

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}
