//! An agent in the process of its own tests: whoever drives the campaign is handed each prompt, and answers it.

use std::path::PathBuf;

use proofhouse_oatf::Mode;
use proofhouse_range::{ActorEndpoint, BoxFuture};
use tokio::sync::{mpsc, oneshot};

use crate::command::variables::{canary, plant_canaries};
use crate::subject::{
    LiveSubject, Pace, RunContext, Shutdown, Subject, SubjectAnswer, SubjectError, SubjectInfo,
};

/// What a host is asked: to let its agent do this.
#[derive(Debug)]
pub struct HostPrompt {
    /// Names the run.
    pub run: String,
    /// Which of the run's prompts it is, from 1.
    pub turn: u32,
    /// What the user says.
    pub text: String,
    /// The MCP servers of the run.
    pub mcp_urls: Vec<String>,
    /// The A2A agents of the run.
    pub a2a_urls: Vec<String>,
    /// A directory of the run's own, with canaries in it.
    pub directory: PathBuf,
    /// The secret that is none, as the directory has it.
    pub canary: String,
    /// Takes what the agent said, or why it failed.
    pub reply: oneshot::Sender<Result<String, SubjectError>>,
}

/// An agent that a host program runs in its own process.
#[derive(Debug)]
pub struct HostSubject {
    info: SubjectInfo,
    pace: Pace,
    secrets: Vec<String>,
    prompts: mpsc::Sender<HostPrompt>,
}

impl HostSubject {
    /// An agent of this name; the host takes its prompts from the other end.
    #[must_use]
    pub fn new(
        name: &str,
        pace: Pace,
        secrets: Vec<String>,
        prompts: mpsc::Sender<HostPrompt>,
    ) -> Self {
        Self {
            info: SubjectInfo {
                name: name.to_owned(),
                kind: "host".to_owned(),
                simulation: false,
                description: "an agent in the process of its tests".to_owned(),
                digest: None,
                guard: None,
            },
            pace,
            secrets,
            prompts,
        }
    }
}

impl Subject for HostSubject {
    fn info(&self) -> SubjectInfo {
        self.info.clone()
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn meets(&self, mode: &Mode) -> bool {
        // It is told where servers are, and serves nothing itself.
        matches!(mode, Mode::McpServer | Mode::A2aServer)
    }

    fn at_a_time(&self) -> Option<usize> {
        // A test does one thing after the other.
        Some(1)
    }

    fn secrets(&self) -> Vec<String> {
        self.secrets.clone()
    }

    fn start<'a>(
        &'a self,
        run: &'a RunContext,
    ) -> BoxFuture<'a, Result<Box<dyn LiveSubject>, SubjectError>> {
        Box::pin(async move {
            plant_canaries(run).map_err(SubjectError::of)?;
            let live: Box<dyn LiveSubject> = Box::new(LiveHost {
                run: run.clone(),
                turn: 0,
                prompts: self.prompts.clone(),
            });
            Ok(live)
        })
    }
}

struct LiveHost {
    run: RunContext,
    turn: u32,
    prompts: mpsc::Sender<HostPrompt>,
}

impl LiveHost {
    fn urls(&self, mode: &Mode) -> Vec<String> {
        let servers = self.run.servers.iter();
        let servers = servers.filter(|server| server.mode == *mode);
        servers.map(|server| server.address.clone()).collect()
    }
}

impl LiveSubject for LiveHost {
    fn endpoint(&self, _mode: &Mode) -> Option<ActorEndpoint> {
        None
    }

    fn prompt<'a>(
        &'a mut self,
        text: &'a str,
    ) -> BoxFuture<'a, Result<SubjectAnswer, SubjectError>> {
        Box::pin(async move {
            self.turn += 1;
            let (reply, answer) = oneshot::channel();
            let prompt = HostPrompt {
                run: self.run.id.clone(),
                turn: self.turn,
                text: text.to_owned(),
                mcp_urls: self.urls(&Mode::McpServer),
                a2a_urls: self.urls(&Mode::A2aServer),
                directory: self.run.directory.clone(),
                canary: canary(&self.run),
                reply,
            };
            let gone = || SubjectError::new("the program that runs the agent went away");
            self.prompts.send(prompt).await.map_err(|_| gone())?;
            let text = answer.await.map_err(|_| gone())??;
            Ok(SubjectAnswer {
                text: Some(text),
                said_at: None,
            })
        })
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Shutdown> {
        Box::pin(std::future::ready(Shutdown::default()))
    }
}
