//! A command in a run: asked as its user would, and gone without a trace when the run is over.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use proofhouse_oatf::Mode;
use proofhouse_range::{ActorEndpoint, BoxFuture};
use proofhouse_wire::{count_marked, kill_marked};

use super::ports::Port;
use super::process::SubjectProcess;
use super::variables::{CommandVariables, MARK};
use super::workplace::Watch;
use crate::mcp_config::Placed;
use crate::prompt_delivery::PromptDelivery;
use crate::spec::{CommandSpec, Urls};
use crate::subject::{LEFT_RUNNING, LiveSubject, Shutdown, SubjectAnswer, SubjectError};

/// How often is looked for processes that a command has left.
const LOOK: Duration = Duration::from_millis(100);

/// A command in a run.
pub(super) struct LiveCommand {
    pub(super) spec: CommandSpec,
    pub(super) variables: CommandVariables,
    /// What tells its processes from all others.
    pub(super) mark: String,
    pub(super) directory: PathBuf,
    pub(super) urls: Urls,
    pub(super) user: Option<PromptDelivery>,
    pub(super) port: Option<Port>,
    pub(super) process: Option<SubjectProcess>,
    /// The configuration that is not the user's for now.
    pub(super) placed: Option<Placed>,
    pub(super) watch: Watch,
    /// How long processes that it started may go on after its own end.
    pub(super) linger: Duration,
    /// How many of them did so for longer.
    pub(super) left_running: usize,
    pub(super) is_ended: bool,
}

impl LiveCommand {
    /// One task: the command gets the prompt, and what it says until it ends is the answer.
    async fn once(&mut self, prompt: &str) -> Result<SubjectAnswer, SubjectError> {
        let process = self.spawn(Some(prompt))?;
        let process = self.process.insert(process);
        let (said, status) = process.converse(prompt).await;
        match status {
            Some(status) if status.success() => {
                self.wait_for_others().await;
                Ok(SubjectAnswer {
                    text: Some(said.text),
                    said_at: said.at,
                })
            }
            status => {
                let words = process.last_words(status).await;
                Err(SubjectError::new(format!("the command failed{words}")))
            }
        }
    }

    /// Waits for the processes that the command started and left: what they do belongs to the run.
    async fn wait_for_others(&mut self) {
        let begun = Instant::now();
        loop {
            let mark = self.mark.clone();
            let looked = tokio::task::spawn_blocking(move || count_marked(MARK, &mark)).await;
            self.left_running = looked.unwrap_or_default();
            if self.left_running == 0 || begun.elapsed() >= self.linger {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn asked(&mut self, text: &str) -> Result<SubjectAnswer, SubjectError> {
        match &mut self.user {
            Some(user) => Ok(user.say(text).await?),
            None if self.urls.is_empty() => self.once(text).await,
            None => Err(SubjectError::new(
                "nobody can tell a command that serves MCP what to do",
            )),
        }
    }

    async fn leave(mut self: Box<Self>) -> Shutdown {
        let mut warnings: Vec<String> = self.watch.reason().into_iter().collect();
        let (mut failure, mut stderr) = (None, None);
        if let Some(mut process) = self.process.take() {
            // A server that died in the run has not ended well, whatever it said before. One that was asked for one
            // thing has told how it ended.
            if !self.urls.is_empty()
                && let Some(status) = process.status().await
                && !status.success()
            {
                let words = process.last_words(Some(status)).await;
                failure = Some(format!("the command exited during the run{words}"));
            }
            stderr = process.end().await;
        }
        let mark = self.mark.clone();
        let left = tokio::task::spawn_blocking(move || kill_marked(MARK, &mark)).await;
        self.is_ended = left.is_ok();
        if let Ok(left @ 1..) = left {
            warnings.push(match left {
                1 => "a process that the command left behind was ended".to_owned(),
                _ => format!("{left} processes that the command left running were stopped"),
            });
        }
        if let Some(placed) = self.placed.take() {
            warnings.extend(placed.restore());
        }
        self.port = None;
        let unfinished = (self.left_running > 0).then(|| {
            format!(
                "{LEFT_RUNNING} {} s after its end (processes: {}), and what it does later is not seen",
                self.linger.as_secs(),
                self.left_running
            )
        });
        Shutdown {
            tokens: None,
            failure,
            unfinished,
            warnings,
            stderr,
            guard: None,
        }
    }
}

impl LiveSubject for LiveCommand {
    fn endpoint(&self, mode: &Mode) -> Option<ActorEndpoint> {
        self.urls.endpoint(mode)
    }

    fn prompt<'a>(
        &'a mut self,
        text: &'a str,
    ) -> BoxFuture<'a, Result<SubjectAnswer, SubjectError>> {
        Box::pin(async move {
            let full = self.watch.full();
            let answer = tokio::select! {
                answer = self.asked(text) => answer,
                () = full.cancelled() => Ok(SubjectAnswer::default()),
            };
            match self.watch.reason() {
                Some(reason) => Err(SubjectError(reason)),
                None => answer,
            }
        })
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Shutdown> {
        Box::pin(self.leave())
    }
}

impl Drop for LiveCommand {
    fn drop(&mut self) {
        if !self.is_ended {
            // First its group, then those that left it; the configuration goes back when nobody reads it.
            drop(self.process.take());
            kill_marked(MARK, &self.mark);
        }
    }
}
