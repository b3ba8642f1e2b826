//! The guarded server as a process. Unlike other processes of ours, its error output goes where ours goes: clients show it.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardedCommand {
    /// The program, looked for on the path.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// The running server. When it is dropped, its whole group is killed.
pub(super) struct GuardedServer {
    child: Child,
    group: Option<Pid>,
}

impl GuardedCommand {
    pub(super) fn start(&self) -> std::io::Result<(GuardedServer, ChildStdin, ChildStdout)> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pipes = (child.stdin.take(), child.stdout.take());
        let server = GuardedServer { child, group };
        match pipes {
            (Some(stdin), Some(stdout)) => Ok((server, stdin, stdout)),
            _ => Err(std::io::Error::other("it was started without pipes")),
        }
    }
}

impl GuardedServer {
    /// Waits for its end; after each `patience` it is asked more firmly.
    pub(super) async fn end(&mut self, patience: Duration) -> Option<std::process::ExitStatus> {
        for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
            if let (Some(signal), Some(group)) = (signal, self.group) {
                let _ = kill_process_group(group, signal);
            }
            if let Ok(status) = tokio::time::timeout(patience, self.child.wait()).await {
                return status.ok();
            }
        }
        None
    }
}

impl Drop for GuardedServer {
    fn drop(&mut self) {
        // The group may outlive its first process.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
