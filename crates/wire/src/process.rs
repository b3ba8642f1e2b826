//! Processes that are spoken to over stdio, in a process group of their own so that nothing of them
//! stays behind.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::WireLimits;
use crate::lines::LineReader;

/// What to start.
#[derive(Debug, Clone, Default)]
pub struct Spawn {
    /// The program, looked for on the path.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables to set for it.
    pub environment: Vec<(String, String)>,
    /// Whether it gets only those, and not ours.
    pub clean_environment: bool,
    /// Where it runs.
    pub directory: Option<PathBuf>,
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The system would not start it.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It has no pipes, which does not happen.
    #[error("`{program}` was started without pipes")]
    Pipes {
        /// The program.
        program: String,
    },
}

/// A running process. When it is dropped, its whole group is killed.
#[derive(Debug)]
pub struct Child {
    inner: tokio::process::Child,
    group: Option<Pid>,
    stderr: Arc<Mutex<Vec<u8>>>,
    draining: JoinHandle<()>,
    exit_timeout: std::time::Duration,
}

impl Spawn {
    /// Starts it. Its input and output are returned; its error output is read away and the end of
    /// it kept.
    ///
    /// # Errors
    ///
    /// Returns an error when the system will not start it.
    pub fn start(
        &self,
        limits: &WireLimits,
    ) -> Result<(Child, ChildStdin, LineReader<BufReader<ChildStdout>>), ProcessError> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if self.clean_environment {
            command.env_clear();
        }
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let mut inner = command.spawn().map_err(|source| ProcessError::Start {
            program: self.program.clone(),
            source,
        })?;
        let group = inner
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let (Some(stdin), Some(stdout), Some(errors)) =
            (inner.stdin.take(), inner.stdout.take(), inner.stderr.take())
        else {
            return Err(ProcessError::Pipes {
                program: self.program.clone(),
            });
        };
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let draining = tokio::spawn(drain(errors, Arc::clone(&stderr), limits.max_stderr_bytes));
        let lines = LineReader::new(BufReader::new(stdout), limits.max_message_bytes);
        let child = Child {
            inner,
            group,
            stderr,
            draining,
            exit_timeout: limits.exit_timeout,
        };
        Ok((child, stdin, lines))
    }
}

/// Reads error output away, so that a process that floods it does not block, and keeps the end.
async fn drain(mut errors: tokio::process::ChildStderr, kept: Arc<Mutex<Vec<u8>>>, limit: usize) {
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut piece).await {
        if let Ok(mut kept) = kept.lock() {
            kept.extend_from_slice(&piece[..count]);
            let excess = kept.len().saturating_sub(limit);
            kept.drain(..excess);
        }
    }
}

impl Child {
    /// The end of what it wrote to its error output.
    #[must_use]
    pub fn stderr(&self) -> String {
        let kept = self.stderr.lock();
        kept.map_or_else(
            |_| String::new(),
            |kept| String::from_utf8_lossy(&kept).into_owned(),
        )
    }

    /// Waits for it to end; `None` when that cannot be told.
    pub async fn wait(&mut self) -> Option<std::process::ExitStatus> {
        self.inner.wait().await.ok()
    }

    /// Ends it as the protocol asks: its input is closed by the caller, then it has a moment, then
    /// it is asked, then it is killed with everything it started.
    pub async fn stop(self) {
        self.stop_by(&[None, Some(Signal::TERM), Some(Signal::KILL)])
            .await;
    }

    /// Ends one that does not wait for its input: it is asked, then killed with everything it started.
    pub async fn stop_now(self) {
        self.stop_by(&[Some(Signal::TERM), Some(Signal::KILL)])
            .await;
    }

    async fn stop_by(mut self, signals: &[Option<Signal>]) {
        for signal in signals {
            if let (Some(signal), Some(group)) = (*signal, self.group) {
                let _ = kill_process_group(group, signal);
            }
            if tokio::time::timeout(self.exit_timeout, self.inner.wait())
                .await
                .is_ok()
            {
                break;
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.draining.abort();
        // The group may outlive its first process.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
