//! Subjects: what is attacked, as the campaign sees it. A program with a subject of its own implements this.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_oatf::Mode;
use proofhouse_range::{ActorEndpoint, BoxFuture, ListeningServer, OfferedCard};
use proofhouse_wire::gate::GateClock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Someone who can be attacked, once per run and in several runs at a time.
pub trait Subject: Send + Sync {
    /// Who it is.
    fn info(&self) -> SubjectInfo;

    /// How patient runs are with it.
    fn pace(&self) -> Pace {
        Pace::default()
    }

    /// Where a server of this mode listens, for a subject that cannot be told; the next one of the same mode
    /// listens at the next port. Otherwise each run has ports of its own.
    fn listen(&self, _mode: &Mode) -> Option<SocketAddr> {
        None
    }

    /// Whether an actor of this mode can meet it at all: a client comes to what it serves, a server to where it
    /// looks. Documents with other actors are left out of a campaign.
    fn meets(&self, _mode: &Mode) -> bool {
        true
    }

    /// What its user should check when it could not be started or reached, in whole sentences.
    fn start_hints(&self) -> Vec<String> {
        Vec::new()
    }

    /// How many runs it can take at a time, if there is a limit.
    fn at_a_time(&self) -> Option<usize> {
        None
    }

    /// What its runs need for themselves, such as a file or a port: subjects with the same need take turns.
    fn alone_with(&self) -> Option<String> {
        None
    }

    /// Headers that clients of documents send to it.
    fn headers(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Texts that must not be in the traces and results of its runs.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }

    /// Starts it for one run. The servers of the document answer already.
    fn start<'a>(
        &'a self,
        run: &'a RunContext,
    ) -> BoxFuture<'a, Result<Box<dyn LiveSubject>, SubjectError>>;
}

/// Someone who was attacked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectInfo {
    /// The name, unique in the campaign.
    pub name: String,
    /// What kind of subject: `sim`, `manifest`, `command`, `endpoint`, `model` or `host`.
    pub kind: String,
    /// Whether it is a simulation, which every report says.
    pub simulation: bool,
    /// One line about it.
    pub description: String,
    /// Tells one version of its description from another; results of earlier programs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The guard in front of its servers, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardInfo>,
}

/// The guard in front of the servers of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuardInfo {
    /// The same subject without the guard.
    pub subject: String,
    /// The policy: `stock`, or its file.
    pub policy: String,
    /// Tells one version of the policy from another.
    pub digest: String,
    /// Whether the definitions of the control count as approved, so that what an attack changes in them is withheld. Where not,
    /// each run is the first that the guard sees of its servers.
    pub approves_controls: bool,
}

/// What a guard did in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuardCounts {
    /// Calls that it asked about. Nobody answers in a campaign, so each was denied.
    pub asked: u64,
    /// Other messages and definitions that it did not let pass.
    pub blocked: u64,
    /// Messages that it took something out of.
    pub redacted: u64,
    /// What it only wrote down.
    pub logged: u64,
    /// The first that it asked about, did not let pass or took something out of, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

impl GuardCounts {
    /// How often it did not let something pass as it was.
    #[must_use]
    pub fn stopped(&self) -> u64 {
        self.asked + self.blocked + self.redacted
    }
}

impl SubjectInfo {
    /// Whether its description is all of it, so that the same description is the same subject: not where it is a program, which
    /// may have changed since.
    #[must_use]
    pub fn is_all_known(&self) -> bool {
        matches!(self.kind.as_str(), "sim" | "manifest" | "model")
    }

    /// Whether nothing says that this is another subject.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let digests = self.digest.as_ref().zip(other.digest.as_ref());
        let others = |info: &Self| Self {
            digest: None,
            ..info.clone()
        };
        digests.is_none_or(|(one, two)| one == two) && others(self) == others(other)
    }
}

/// A subject in a run. Dropping it must leave nothing behind.
pub trait LiveSubject: Send {
    /// Where an actor of this client mode meets it: `ag_ui_client`, `a2a_client` or `mcp_client`.
    fn endpoint(&self, mode: &Mode) -> Option<ActorEndpoint>;

    /// Says something to it as its user would, and waits until it is done with that.
    fn prompt<'a>(
        &'a mut self,
        text: &'a str,
    ) -> BoxFuture<'a, Result<SubjectAnswer, SubjectError>>;

    /// Ends it.
    fn end(self: Box<Self>) -> BoxFuture<'static, Shutdown>;
}

/// What a subject needs to know of its run.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// Names the run.
    pub id: String,
    /// A directory of its own, which goes away after the run.
    pub directory: PathBuf,
    /// The servers of the document.
    pub servers: Vec<ListeningServer>,
    /// The modes of the document's clients, which will come to the subject.
    pub clients: Vec<Mode>,
    /// Where the run's chance comes from.
    pub seed: u64,
    /// What the servers offer without the attack, where there is a control.
    pub benign: BenignOffers,
    /// Stands still for the time limit of the run while requests of its model wait for a cap.
    pub gates: Arc<GateClock>,
}

/// What the servers of a document offer without the attack, by actor.
#[derive(Debug, Clone, Default)]
pub struct BenignOffers {
    /// The definitions of tools.
    pub tools: HashMap<String, Vec<Value>>,
    /// The cards of agents.
    pub cards: HashMap<String, OfferedCard>,
}

/// How patient runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long to go on observing at the end; the document's own `grace_period` wins.
    pub grace: Duration,
    /// Silence after which a subject that nobody waits for counts as done.
    pub quiet: Duration,
    /// How long it may take to start.
    pub start: Duration,
    /// How long a run may take, the start included.
    pub deadline: Duration,
    /// How long it may take to end.
    pub end: Duration,
}

impl Default for Pace {
    /// What suits an agent with a model that thinks.
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(1),
            quiet: Duration::from_secs(10),
            start: Duration::from_secs(30),
            deadline: Duration::from_secs(180),
            end: Duration::from_secs(10),
        }
    }
}

/// What a subject answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectAnswer {
    /// What it said, if that can be known.
    pub text: Option<String>,
    /// When it said the last of it, where that is known: what was said before something was sent is no answer to that.
    pub said_at: Option<Instant>,
}

/// How [`Shutdown::unfinished`] begins.
pub const LEFT_RUNNING: &str = "what the command had started still ran";

/// What is known of a subject when it is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// Tokens of its model.
    pub tokens: Option<u64>,
    /// How it failed, if it ended by itself before it was asked to, and not well.
    pub failure: Option<String>,
    /// What of it still ran when it had answered and ended, so that nobody knows what it would have done.
    pub unfinished: Option<String>,
    /// What went wrong without spoiling the run.
    pub warnings: Vec<String>,
    /// The end of what it wrote to its error output, if it has one.
    pub stderr: Option<String>,
    /// What the guard in front of its servers did, if there is one.
    pub guard: Option<GuardCounts>,
}

/// Why a subject cannot take part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SubjectError(pub String);

impl SubjectError {
    /// One line about it.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// What another error says.
    #[must_use]
    pub fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}
