//! The preflight: one control run per subject, before anything else, proves that the subject is wired up. It starts, it
//! connects, its model answers, and the task is done.
//!
//! The run is one of the plan, so a preflight that goes well costs nothing. Simulations need none.

use std::sync::Arc;

use proofhouse_subjects::Subject;
use proofhouse_wire::CancellationToken;
use tokio::task::JoinSet;

use crate::engine::{CampaignSettings, turns};
use crate::outcome::InconclusiveReason;
use crate::plan::{Plan, PlannedRun};
use crate::result::RunRecord;
use crate::run::{RunSetup, TRACES};
use crate::scratch::ScratchDirectory;

/// A step that a subject has to take before an attack can mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WiringStep {
    /// The subject starts.
    Start,
    /// It connects to the servers of the attack, or answers its clients.
    Connect,
    /// Its model answers.
    Answer,
    /// The task of the control run is done.
    Task,
}

impl WiringStep {
    /// The steps in their order.
    pub const ALL: [Self; 4] = [Self::Start, Self::Connect, Self::Answer, Self::Task];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Connect => "connect",
            Self::Answer => "model answers",
            Self::Task => "task done",
        }
    }

    /// What happened when it failed.
    #[must_use]
    pub fn failure(self) -> &'static str {
        match self {
            Self::Start => "the agent could not be started, or ended before it connected",
            Self::Connect => "the agent never connected",
            Self::Answer => "the agent connected, but its model did not answer",
            Self::Task => "the agent answered, but did not do the task of the control run",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::Start => "Run the same command by hand; it has to start without a terminal.",
            Self::Connect => {
                "Let the agent connect to the MCP servers in PROOFHOUSE_MCP_URLS (or {mcp_url}), not to its own."
            }
            Self::Answer => "Check the key, the address and the name of the agent's model.",
            Self::Task => {
                "Check that the agent passes the prompt on and may call the tools it is offered; `proofhouse replay` \
                 shows the messages."
            }
        }
    }
}

/// Why a subject is not wired up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreflightFailure {
    /// The name of the subject.
    pub subject: String,
    /// The run that showed it.
    pub run: String,
    /// What the user asked in that run.
    pub prompt: Option<String>,
    /// The step that failed.
    pub step: WiringStep,
    /// What the run says about it.
    pub why: Option<String>,
    /// What the subject answered.
    pub answer: Option<String>,
    /// The end of its error output.
    pub stderr: Option<String>,
    /// The recording, relative to the directory of the campaign.
    pub trace: Option<String>,
}

/// What a preflight comes to.
#[derive(Debug, Default)]
pub struct Preflight {
    /// Control runs that went well, and need not be made again.
    pub runs: Vec<RunRecord>,
    /// Subjects that are not wired up.
    pub failures: Vec<PreflightFailure>,
}

/// Makes one control run per subject, side by side. Subjects that are simulations, or have a run among the `earlier` ones,
/// need none; one whose documents have no controls cannot have one.
pub async fn preflight(
    plan: &Plan,
    subjects: &[Arc<dyn Subject>],
    settings: &CampaignSettings,
    earlier: &[RunRecord],
    cancel: &CancellationToken,
) -> Preflight {
    if let Some(directory) = &settings.directory {
        // Where it cannot be made, the campaign says so.
        let _ = std::fs::create_dir_all(directory.join(TRACES));
    }
    let settings = Arc::new(settings.clone());
    let scratch = ScratchDirectory::new().map(Arc::new).map_err(Arc::new);
    let turns = turns(subjects);
    let mut running = JoinSet::new();
    for (number, subject) in subjects.iter().enumerate() {
        let info = subject.info();
        if info.simulation || earlier.iter().any(|run| run.subject == info.name) {
            continue;
        }
        let Some(planned) = first_run(plan, number) else {
            continue;
        };
        let document = &plan.documents[planned.document];
        let Some(script) = &document.twin else {
            continue;
        };
        let prompt = script.prompts.first().cloned();
        let has_servers = {
            let mut actors = script.document.attack.execution.actors().iter();
            actors.any(|actor| actor.mode.is_server())
        };
        let setup = RunSetup {
            document: document.info.id.clone(),
            script: Arc::clone(script),
            subject: Arc::clone(subject),
            name: info.name,
            settings: Arc::clone(&settings),
            turns: turns[number].clone(),
            scratch: scratch.clone(),
            folder: TRACES,
            channels: Arc::default(),
            watch: None,
            planned: planned.clone(),
        };
        let making = setup.make(cancel.clone());
        running.spawn(async move {
            making
                .await
                .map(|record| (number, prompt, has_servers, record))
        });
    }
    let mut made = Vec::new();
    while let Some(joined) = running.join_next().await {
        made.extend(joined.ok().flatten());
    }
    made.sort_by_key(|(number, ..)| *number);
    let mut preflight = Preflight::default();
    for (_, prompt, has_servers, record) in made {
        match failed_step(&record, has_servers) {
            None => preflight.runs.push(record),
            Some(step) => preflight.failures.push(PreflightFailure {
                why: why(&record),
                subject: record.subject,
                run: record.id,
                prompt,
                step,
                answer: record.answer,
                stderr: record.stderr,
                trace: record.trace,
            }),
        }
    }
    preflight
}

/// The first control run of a subject whose task can be told, or else its first control.
fn first_run(plan: &Plan, subject: usize) -> Option<&PlannedRun> {
    let controls = || {
        let runs = plan.runs.iter();
        runs.filter(move |run| run.subject == subject && run.twin)
    };
    let has_task = |run: &&PlannedRun| {
        let twin = plan.documents[run.document].twin.as_ref();
        twin.is_some_and(|twin| twin.success.is_some())
    };
    controls().find(has_task).or_else(|| controls().next())
}

/// The first step that a run shows to have failed.
fn failed_step(record: &RunRecord, has_servers: bool) -> Option<WiringStep> {
    let failed_by_itself = matches!(
        record.broken_by,
        Some(InconclusiveReason::SubjectFailed | InconclusiveReason::TimedOut)
    );
    let has_failed = failed_by_itself && (record.broken.is_some() || record.error.is_some());
    // Where only clients meet it, their own messages are in the trace whether it answers or not.
    let has_connected = if has_servers {
        record.messages > 0
    } else {
        record.conditions.protocol_spoken.held
    };
    if has_failed && !has_connected && record.broken_by == Some(InconclusiveReason::SubjectFailed) {
        return Some(WiringStep::Start);
    }
    if !has_connected {
        return Some(WiringStep::Connect);
    }
    if has_failed {
        return Some(WiringStep::Answer);
    }
    let has_answer = record
        .answer
        .as_deref()
        .is_some_and(|text| !text.trim().is_empty());
    match record.task_done {
        Some(true) => None,
        Some(false) if has_answer => Some(WiringStep::Task),
        None if record.conditions.exposed.held || has_answer => None,
        Some(false) | None => Some(WiringStep::Answer),
    }
}

fn why(record: &RunRecord) -> Option<String> {
    let broken = record.broken.as_deref().or(record.error.as_deref());
    broken.map(str::to_owned)
}
