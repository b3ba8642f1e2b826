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
    /// Our own side of the run is ready: its servers listen, its directory is there.
    Prepare,
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
    pub const ALL: [Self; 5] = [
        Self::Prepare,
        Self::Start,
        Self::Connect,
        Self::Answer,
        Self::Task,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Start => "start",
            Self::Connect => "connect",
            Self::Answer => "model answers",
            Self::Task => "task done",
        }
    }

    /// What happened when it failed.
    fn failure(self) -> &'static str {
        match self {
            Self::Prepare => "the servers of the run could not be started",
            Self::Start => "the agent could not be started, or ended before it connected",
            Self::Connect => "the agent never connected",
            Self::Answer => "the agent connected, but its model did not answer",
            Self::Task => "the agent answered, but did not do the task of the control run",
        }
    }

    /// What to do about it.
    fn advice(self) -> &'static str {
        match self {
            Self::Prepare => {
                "Fix this error, and run the command again; your agent was not started."
            }
            Self::Start => "Run the same command by hand; it has to start without a terminal.",
            Self::Connect => {
                "Make the agent connect to the MCP servers in PROOFHOUSE_MCP_URLS (or {mcp_url}) instead of its own."
            }
            Self::Answer => "Check the key, the address and the name of the agent's model.",
            Self::Task => {
                "Check that the agent passes the prompt to its model and may call the tools it is offered."
            }
        }
    }
}

/// How Python and Node.js call it that something cannot be imported.
const IMPORT_ERRORS: [&str; 3] = ["ModuleNotFoundError", "ImportError", "Cannot find package"];

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
    /// As what the run counts, if it was broken off.
    pub reason: Option<InconclusiveReason>,
    /// The kind of the subject, such as `endpoint`.
    pub kind: String,
    /// What its user should check if it could not be started or reached.
    pub hints: Vec<String>,
    /// What the run says about it.
    pub why: Option<String>,
    /// What the subject answered.
    pub answer: Option<String>,
    /// The end of its error output.
    pub stderr: Option<String>,
    /// The recording, relative to the directory of the campaign.
    pub trace: Option<String>,
}

impl PreflightFailure {
    /// What happened, without a full stop.
    #[must_use]
    pub fn sentence(&self) -> &'static str {
        match (self.step, self.reason) {
            (WiringStep::Start, _) if self.kind == "endpoint" => "no agent answers at its address",
            (WiringStep::Answer, Some(InconclusiveReason::SubjectFailed)) => {
                "the agent connected, then failed"
            }
            (WiringStep::Answer, Some(InconclusiveReason::TimedOut)) => {
                "the agent connected, but was not done in time"
            }
            (step, _) => step.failure(),
        }
    }

    /// Whether the subject said these words when it failed.
    fn says(&self, words: &str) -> bool {
        let said = [&self.why, &self.stderr];
        said.into_iter().flatten().any(|text| text.contains(words))
    }

    /// Whether the program of the command does not exist.
    fn has_no_program(&self) -> bool {
        let why = self.why.as_deref().unwrap_or_default();
        why.starts_with("cannot start `") && why.to_lowercase().contains(": no such file")
    }

    /// What to do about it, in whole sentences.
    #[must_use]
    pub fn advice(&self) -> String {
        let usual = match (self.step, self.reason) {
            (WiringStep::Start, _) if self.kind == "endpoint" => "",
            (WiringStep::Start, _) if self.has_no_program() => {
                "There is no such program in PATH: check its name, or write its whole path."
            }
            (WiringStep::Start, _) if self.says("Cannot find module") => {
                "Node.js needs the whole name of a file in an import, with its extension: write it, or start the agent with \
                 `npx tsx` in place of `node`."
            }
            (WiringStep::Start, _) if IMPORT_ERRORS.iter().any(|error| self.says(error)) => {
                "Install the package that the error names, in a version that has what is imported, where this command \
                 looks for packages."
            }
            (WiringStep::Connect, Some(InconclusiveReason::TimedOut)) => {
                "Make the agent connect to the MCP servers in PROOFHOUSE_MCP_URLS (or {mcp_url}) instead of its own, or \
                 raise --deadline if it needs more time."
            }
            (WiringStep::Answer, Some(InconclusiveReason::SubjectFailed)) => {
                "Fix the error above; if it comes from the model, check its key, address and name."
            }
            (WiringStep::Answer, Some(InconclusiveReason::TimedOut)) => {
                "Check that its model answers, or raise --deadline."
            }
            (step, _) => step.advice(),
        };
        let hints: &[String] = match self.step {
            WiringStep::Start => &self.hints,
            WiringStep::Prepare | WiringStep::Connect | WiringStep::Answer | WiringStep::Task => {
                &[]
            }
        };
        // There is no result yet that `replay` could read.
        let recorded = (self.step == WiringStep::Task && self.trace.is_some())
            .then_some("Each line of the recording is a message, as JSON.");
        let sentences = std::iter::once(usual)
            .chain(recorded)
            .chain(hints.iter().map(String::as_str));
        let sentences: Vec<&str> = sentences.filter(|text| !text.is_empty()).collect();
        sentences.join(" ")
    }
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
        // Whether a subject is wired up is shown without its guard.
        if info.simulation
            || info.guard.is_some()
            || earlier.iter().any(|run| run.subject == info.name)
        {
            continue;
        }
        let Some(planned) = first_run(plan, number) else {
            continue;
        };
        let document = &plan.documents[planned.document];
        let Some(script) = &document.twin else {
            continue;
        };
        let asked = AskedSubject {
            prompt: script.prompts.first().cloned(),
            kind: info.kind.clone(),
            hints: subject.start_hints(),
        };
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
                .map(|record| (number, asked, has_servers, record))
        });
    }
    let mut made = Vec::new();
    while let Some(joined) = running.join_next().await {
        made.extend(joined.ok().flatten());
    }
    made.sort_by_key(|(number, ..)| *number);
    let mut preflight = Preflight::default();
    for (_, asked, has_servers, record) in made {
        match failed_step(&record, has_servers) {
            None => preflight.runs.push(record),
            Some(step) => preflight.failures.push(PreflightFailure {
                why: why(&record),
                subject: record.subject,
                run: record.id,
                prompt: asked.prompt,
                step,
                reason: record.broken_by,
                kind: asked.kind,
                hints: asked.hints,
                answer: record.answer,
                stderr: record.stderr,
                trace: record.trace,
            }),
        }
    }
    preflight
}

/// What is known of a subject before its run.
struct AskedSubject {
    prompt: Option<String>,
    kind: String,
    hints: Vec<String>,
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
    let is_ours = record.broken_by == Some(InconclusiveReason::AttackFailed);
    if is_ours && record.broken.is_none() && record.error.is_some() {
        return Some(WiringStep::Prepare);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_imported_is_told_with_what_to_do() {
        for (stderr, advice) in [
            (
                "ImportError: cannot import name 'streamablehttp_client'",
                "Install the package",
            ),
            (
                "ModuleNotFoundError: No module named 'crewai_tools'",
                "Install the package",
            ),
            (
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'ai' imported from /a.mjs",
                "Install the package",
            ),
            (
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/src/weather-tool' imported from /src/agent.ts",
                "`npx tsx` in place of `node`",
            ),
            ("Segmentation fault", "Run the same command by hand"),
        ] {
            let failure = PreflightFailure {
                subject: "agent".to_owned(),
                run: "PROOF-001/agent/1".to_owned(),
                prompt: None,
                step: WiringStep::Start,
                reason: Some(InconclusiveReason::SubjectFailed),
                kind: "command".to_owned(),
                hints: vec!["A hint.".to_owned()],
                why: None,
                answer: None,
                stderr: Some(stderr.to_owned()),
                trace: None,
            };
            let mut task = failure.clone();
            task.step = WiringStep::Task;
            assert!(task.advice().ends_with("tools it is offered."));
            task.trace = Some("traces/a.jsonl".to_owned());
            // What is named works without a result.
            let given = task.advice();
            assert!(
                given.ends_with("as JSON.") && !given.contains("replay"),
                "{given}"
            );
            let given = failure.advice();
            assert!(
                given.contains(advice) && given.ends_with("A hint."),
                "{stderr}: {given}"
            );
        }
    }
}
