//! What is known in a session: documents that were loaded, and of each agent its channels and its control runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_oatf::ReadLimits;
use proofhouse_source::did_you_mean;
use proofhouse_subjects::host::{HostPrompt, HostSubject};
use proofhouse_subjects::{Notice, Pace, Subject};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::protocol::{DriveDocument, DriveKind, DriveRun, RequestError, Selection};
use super::verdict::DriveVerdict;
use crate::document::{CampaignDocument, slug};
use crate::engine::{CampaignSettings, execute};
use crate::filters;
use crate::load::{UnknownNames, load};
use crate::plan::Plan;
use crate::probes::ProbeRecord;
use crate::result::RunRecord;

/// How long to go on observing after the answer. An agent in a test is done when its function returns.
const GRACE: Duration = Duration::from_millis(200);
/// Agents of one session.
const MAX_AGENTS: usize = 10_000;
/// Sets of documents that are kept.
const MAX_SETS: usize = 64;
/// Lines about what is wrong with documents.
const MAX_TOLD: usize = 20;

/// How a session works.
#[derive(Debug, Clone)]
pub struct DriveSettings {
    /// The version of the program.
    pub version: String,
    /// How large documents may be.
    pub limits: ReadLimits,
}

/// What is known of an agent.
#[derive(Debug, Default)]
struct AgentMemory {
    probes: Vec<ProbeRecord>,
    /// The control run of each document.
    controls: HashMap<String, RunRecord>,
}

/// A session.
pub(super) struct DriveSession {
    settings: DriveSettings,
    documents: Mutex<HashMap<Vec<PathBuf>, Arc<Vec<CampaignDocument>>>>,
    agents: Mutex<HashMap<String, Arc<tokio::sync::Mutex<AgentMemory>>>>,
}

impl DriveSession {
    pub(super) fn new(settings: DriveSettings) -> Self {
        Self {
            settings,
            documents: Mutex::default(),
            agents: Mutex::default(),
        }
    }

    /// The documents behind paths; what was loaded once stays as it was.
    fn load(&self, paths: &[PathBuf]) -> Result<Arc<Vec<CampaignDocument>>, RequestError> {
        let mut known = lock(&self.documents);
        if let Some(documents) = known.get(paths) {
            return Ok(Arc::clone(documents));
        }
        let told = Mutex::new(Vec::new());
        let notify = |notice: Notice| {
            let mut told = lock(&told);
            told.extend(lines(&notice));
        };
        let unknown = UnknownNames::Refused;
        let loaded = load(paths, &self.settings.limits, None, unknown, &notify);
        let loaded = loaded.map_err(|error| {
            let mut told = lock(&told);
            told.truncate(MAX_TOLD);
            told.push(error.to_string());
            RequestError::Documents(told.join("\n"))
        })?;
        if known.len() >= MAX_SETS {
            known.clear();
        }
        let loaded = Arc::new(loaded);
        known.insert(paths.to_vec(), Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Which documents fit, and which of them no agent in a host can meet.
    pub(super) fn select(&self, id: u64, selection: &Selection) -> Result<Value, RequestError> {
        let documents = self.load(&selection.paths)?;
        let documents = documents.as_ref().clone();
        let (fitting, idle) = filters::apply(&selection.filter(), documents)
            .map_err(|error| RequestError::Documents(error.to_string()))?;
        let (prompts, _) = mpsc::channel(1);
        let anyone = HostSubject::new("host", Pace::default(), Vec::new(), prompts);
        let (met, others): (Vec<_>, Vec<_>) = fitting
            .iter()
            .partition(|one| cannot_meet(one, &anyone).is_none());
        let skipped = others.iter().map(|one| {
            json!({"document": DriveDocument::of(&one.info), "why": cannot_meet(one, &anyone)})
        });
        Ok(json!({
            "id": id,
            "event": "selected",
            "documents": met.iter().map(|one| DriveDocument::of(&one.info)).collect::<Vec<_>>(),
            "skipped": skipped.collect::<Vec<_>>(),
            "warnings": idle.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))
    }

    /// The one document of a name.
    fn document(&self, paths: &[PathBuf], name: &str) -> Result<CampaignDocument, RequestError> {
        let documents = self.load(paths)?;
        let mut fitting = documents
            .iter()
            .filter(|one| one.info.id == name || slug(&one.info.path) == name);
        match (fitting.next(), fitting.next()) {
            (Some(one), None) => Ok(one.clone()),
            (Some(_), Some(_)) => Err(RequestError::Ambiguous(name.to_owned())),
            (None, _) => {
                let known = documents.iter();
                let known = known.flat_map(|one| [one.info.id.as_str(), slug(&one.info.path)]);
                let near = did_you_mean(name, known).map(str::to_owned);
                let name = name.to_owned();
                Err(RequestError::NoDocument { name, near })
            }
        }
    }

    fn agent(&self, name: &str) -> Arc<tokio::sync::Mutex<AgentMemory>> {
        let mut agents = lock(&self.agents);
        if agents.len() >= MAX_AGENTS {
            agents.clear();
        }
        Arc::clone(agents.entry(name.to_owned()).or_default())
    }

    /// Makes the run that a host asked for, and what it rests on where that is not known yet.
    pub(super) async fn run(
        &self,
        id: u64,
        wanted: &DriveRun,
        prompts: mpsc::Sender<HostPrompt>,
        cancel: &CancellationToken,
    ) -> Result<Value, RequestError> {
        let document = self.document(&wanted.paths, &wanted.document)?;
        let deadline = wanted.deadline.map(Duration::from_secs_f64);
        let pace = Pace {
            grace: GRACE,
            deadline: deadline.unwrap_or(Pace::default().deadline),
            ..Pace::default()
        };
        let subject = HostSubject::new(&wanted.agent, pace, wanted.secrets.clone(), prompts);
        if let Some(why) = cannot_meet(&document, &subject) {
            return Err(RequestError::CannotMeet(why));
        }
        if wanted.kind == DriveKind::Control && document.twin.is_none() {
            return Err(RequestError::NoControl);
        }
        let subject: Arc<dyn Subject> = Arc::new(subject);
        let infos = [subject.info()];
        let plan = Plan::new(vec![document.clone()], &infos, wanted.repeats, wanted.seed);
        let mut plan = plan.map_err(|error| RequestError::CannotMeet(error.to_string()))?;
        if wanted.kind == DriveKind::Control {
            plan.runs.retain(|run| run.twin);
        }
        let memory = self.agent(&wanted.agent);
        let mut memory = memory.lock().await;
        let earlier: Vec<RunRecord> = memory
            .controls
            .get(&document.info.id)
            .cloned()
            .into_iter()
            .collect();
        let settings = CampaignSettings {
            jobs: 1,
            probes: wanted.probes,
            earlier_probes: memory.probes.clone(),
            ..CampaignSettings::default()
        };
        let version = &self.settings.version;
        let made = execute(
            &plan,
            &[subject],
            settings,
            earlier,
            version,
            &|_| {},
            cancel,
        )
        .await;
        if cancel.is_cancelled() {
            return Err(RequestError::Cancelled);
        }
        for record in &made.probes {
            let is_same = |known: &ProbeRecord| {
                let channel = |one: &ProbeRecord| (one.mode.clone(), one.kind, one.field);
                channel(known) == channel(record)
            };
            memory.probes.retain(|known| !is_same(known));
            // What was not asked for can be asked the next time.
            if record.attempts > 0 {
                memory.probes.push(record.clone());
            }
        }
        let (controls, attacks): (Vec<_>, Vec<_>) = made.runs.into_iter().partition(|run| run.twin);
        let control = controls.into_iter().next();
        if let Some(control) = &control {
            memory
                .controls
                .insert(document.info.id.clone(), control.clone());
        }
        let verdict = DriveVerdict {
            document: &document,
            kind: wanted.kind,
            max_asr: wanted.max_asr,
            control: control.as_ref(),
            attacks: &attacks,
            probes: &made.probes,
        };
        Ok(verdict.event(id))
    }
}

/// Why an agent in a host cannot be attacked with a document, if so.
fn cannot_meet(document: &CampaignDocument, subject: &HostSubject) -> Option<String> {
    let mut actors = document.info.actors.iter();
    let other = actors.find(|actor| !subject.meets(&actor.mode))?;
    Some(format!(
        "its actor `{}` ({}) comes to an agent that serves; test that with `proofhouse run`",
        other.name, other.mode
    ))
}

/// What a notice says, line by line.
fn lines(notice: &Notice) -> Vec<String> {
    match notice {
        Notice::Unreadable { name, error } => vec![format!("{name}: {error}")],
        Notice::Unusable { name, reason } => vec![format!("{name}: {reason}")],
        Notice::UncleanControl { name, why } => {
            vec![format!("{name}: its control still has the payload: {why}")]
        }
        Notice::Findings { name, findings, .. } => {
            let findings = findings.iter().take(MAX_TOLD);
            findings
                .map(|finding| format!("{name}: {finding}"))
                .collect()
        }
        Notice::MountWithoutFiles
        | Notice::ListensForOthers(_)
        | Notice::CopiedConfig(_)
        | Notice::RestoredConfig(_) => Vec::new(),
    }
}
