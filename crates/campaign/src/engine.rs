//! The engine: makes the runs of a plan side by side, keeps what comes of them, and tells how far it is.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use proofhouse_oatf::{GenerationProvider, SemanticEvaluator};
use proofhouse_subjects::Subject;
use proofhouse_wire::CancellationToken;
use tokio::sync::Semaphore;
use tokio::task::{Id, JoinSet};

use crate::accepted::AcceptedRisk;
use crate::archive::keep;
use crate::document::CampaignDocument;
use crate::outcome::ControlState;
use crate::plan::Plan;
use crate::probes::{self, PlannedProbes, ProbeRecord, ProbeSetup, ProvenChannels};
use crate::result::{CampaignResult, RunRecord, SubjectInfo, VERSION};
use crate::run::{RunSetup, TRACES, no_control};
use crate::scratch::ScratchDirectory;
use crate::store::{self, FILE};

/// How a campaign is made.
#[derive(Clone)]
pub struct CampaignSettings {
    /// Runs at a time.
    pub jobs: usize,
    /// Whether to stop when a subject gives way.
    pub fail_fast: bool,
    /// Judges semantic indicators.
    pub semantic: Option<Arc<dyn SemanticEvaluator>>,
    /// Answers `synthesize` blocks.
    pub generation: Option<Arc<dyn GenerationProvider>>,
    /// Whether to ask, before the runs, which channels the models of the subjects read.
    pub probes: bool,
    /// What is known of that from the part of the campaign that was made before.
    pub earlier_probes: Vec<ProbeRecord>,
    /// Findings that somebody accepted.
    pub accepted: Vec<AcceptedRisk>,
    /// Where the result and the traces go.
    pub directory: Option<PathBuf>,
}

impl Default for CampaignSettings {
    /// Eight at a time, all of them, kept nowhere.
    fn default() -> Self {
        Self {
            jobs: 8,
            fail_fast: false,
            semantic: None,
            generation: None,
            probes: true,
            earlier_probes: Vec::new(),
            accepted: Vec::new(),
            directory: None,
        }
    }
}

/// How far a campaign is.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignProgress<'a> {
    /// The run that has just ended, if it is about one.
    pub run: Option<&'a RunRecord>,
    /// Runs that are done, earlier ones included.
    pub done: usize,
    /// All runs that will be made.
    pub total: usize,
    /// Runs under way.
    pub running: usize,
    /// How long the rest will take, once that can be guessed.
    pub left: Option<Duration>,
    /// Attacks that ended before their control run, and are decided by it now.
    pub decided: &'a [RunRecord],
    /// What went wrong with keeping the results.
    pub trouble: Option<&'a str>,
}

/// Hears how far a campaign is.
pub type ProgressListener<'a> = &'a (dyn Fn(&CampaignProgress<'_>) + Send + Sync);

/// Makes the runs of a plan that are not among the `earlier` ones. Cancelling `cancel` ends it early; the
/// result has what is known until then. The program's own version goes into the result.
pub async fn execute(
    plan: &Plan,
    subjects: &[Arc<dyn Subject>],
    settings: CampaignSettings,
    earlier: Vec<RunRecord>,
    version: &str,
    listener: ProgressListener<'_>,
    cancel: &CancellationToken,
) -> CampaignResult {
    let mut trouble = None;
    let mut documents: Vec<_> = plan.documents.iter().map(|one| one.info.clone()).collect();
    if let Some(directory) = &settings.directory {
        store::sweep(directory, store::UNFINISHED);
        for folder in [TRACES, probes::DIRECTORY] {
            let folder = directory.join(folder);
            if let Err(error) = std::fs::create_dir_all(&folder) {
                trouble = Some(format!("{}: {error}", folder.display()));
            }
        }
        for (info, document) in documents.iter_mut().zip(&plan.documents) {
            match keep(directory, document) {
                Ok(path) => info.kept = Some(path),
                Err(error) => trouble = trouble.or_else(|| Some(error.to_string())),
            }
        }
    }
    let infos: Vec<SubjectInfo> = subjects.iter().map(|subject| subject.info()).collect();
    let accepted = settings.accepted.clone();
    let mut campaign = Campaign {
        plan,
        records: BTreeMap::new(),
        pairs: pairs(plan),
        settings: Arc::new(settings),
        channels: Arc::default(),
        started: Instant::now(),
        resumed: 0,
        turns: turns(subjects),
        listener,
        result: CampaignResult {
            version: VERSION,
            proofhouse: version.to_owned(),
            started_at: Timestamp::now().to_string(),
            finished_at: None,
            complete: false,
            repeats: plan.repeats,
            seed: plan.seed,
            subjects: infos,
            documents,
            probes: Vec::new(),
            runs: Vec::new(),
            spared: 0,
            accepted,
        },
        saving: Saving {
            begun: Instant::now(),
            last: None,
            has_failed: false,
        },
        scratch: ScratchDirectory::new().map(Arc::new).map_err(Arc::new),
    };
    if let Some(trouble) = trouble {
        campaign.tell(None, &[], 0, Some(&trouble));
    }
    let places: HashMap<&str, usize> = plan
        .runs
        .iter()
        .enumerate()
        .map(|(place, run)| (run.id.as_str(), place))
        .collect();
    for record in earlier {
        if let Some(place) = places.get(record.id.as_str()) {
            campaign.records.insert(*place, record);
        }
    }
    campaign.resumed = campaign.records.len();
    let known: Vec<usize> = campaign.records.keys().copied().collect();
    for place in known {
        campaign.settle(place);
    }
    let stop = cancel.child_token();
    campaign.make_runs(subjects, &stop).await;
    let result = &mut campaign.result;
    result.finished_at = Some(Timestamp::now().to_string());
    campaign.save(true);
    campaign.result
}

/// Where the runs of each document and subject are in the plan.
fn pairs(plan: &Plan) -> HashMap<(usize, usize), Vec<usize>> {
    let mut pairs: HashMap<_, Vec<usize>> = HashMap::new();
    for (place, run) in plan.runs.iter().enumerate() {
        let pair = (run.document, run.subject);
        pairs.entry(pair).or_default().push(place);
    }
    pairs
}

/// Who may be in a run with each subject, if not everyone. Those that need the same share their turns.
pub(crate) fn turns(subjects: &[Arc<dyn Subject>]) -> Vec<Option<Arc<Semaphore>>> {
    let mut shared: HashMap<String, Arc<Semaphore>> = HashMap::new();
    let turns = subjects.iter().map(|subject| {
        let own = || Arc::new(Semaphore::new(subject.at_a_time().unwrap_or(1).max(1)));
        match (subject.alone_with(), subject.at_a_time()) {
            (Some(need), _) => Some(Arc::clone(shared.entry(need).or_insert_with(own))),
            (None, Some(_)) => Some(own()),
            (None, None) => None,
        }
    });
    turns.collect()
}

/// What is known of the control of a document, by the record of its run, if there is one.
pub(crate) fn control_of(document: &CampaignDocument, control: Option<&RunRecord>) -> ControlState {
    match (control, &document.control_problem) {
        (_, Some(problem)) => ControlState::Absent {
            why: format!("the control still has the payload: {problem}"),
        },
        (Some(control), None) => ControlState::of(control),
        (None, None) if document.twin.is_some() => ControlState::Pending,
        (None, None) => no_control(),
    }
}

struct Campaign<'a> {
    plan: &'a Plan,
    records: BTreeMap<usize, RunRecord>,
    /// Where the runs of each document and subject are in the plan.
    pairs: HashMap<(usize, usize), Vec<usize>>,
    settings: Arc<CampaignSettings>,
    /// What the probes have shown.
    channels: Arc<ProvenChannels>,
    started: Instant,
    resumed: usize,
    turns: Vec<Option<Arc<Semaphore>>>,
    listener: ProgressListener<'a>,
    result: CampaignResult,
    saving: Saving,
    scratch: Result<Arc<ScratchDirectory>, Arc<io::Error>>,
}

/// When the result was written last, and how long that took.
struct Saving {
    begun: Instant,
    last: Option<(Instant, Duration)>,
    has_failed: bool,
}

impl Saving {
    /// When the result may be written again.
    fn due(&self) -> Instant {
        match self.last {
            Some((last, took)) => last + took * SAVING_SHARE,
            None => self.begun,
        }
    }
}

/// What a task is about.
enum PlannedWork {
    /// A probe: its place, its subject, and the record if it breaks off.
    Probe(usize, usize, ProbeRecord),
    /// A run, by its place.
    Run(usize),
}

/// What came of a task; nothing when the campaign was stopped.
enum MadeWork {
    Probe(Option<ProbeRecord>),
    Run(Option<Box<RunRecord>>),
}

/// Writing may take one part in this many of the time.
const SAVING_SHARE: u32 = 10;

impl Campaign<'_> {
    /// The probes that the plan needs.
    fn planned_probes(&self, subjects: &[Arc<dyn Subject>]) -> PlannedProbes {
        let names = self.result.subjects.iter();
        PlannedProbes::new(&ProbeSetup {
            plan: self.plan,
            subjects,
            names: names.map(|subject| subject.name.clone()).collect(),
            settings: &self.settings,
            turns: &self.turns,
            scratch: &self.scratch,
        })
    }

    /// Keeps what the probes have shown until now.
    fn note_probes(&mut self, probes: &PlannedProbes) {
        self.result.probes = probes.records();
        self.channels = Arc::new(ProvenChannels::new(&self.result.probes));
    }

    /// Asks which channels the models of the subjects read, and makes the runs. Those of a subject start when its own
    /// probes are done, and whoever has least going on is next: a subject that hangs holds up nobody else.
    async fn make_runs(&mut self, subjects: &[Arc<dyn Subject>], stop: &CancellationToken) {
        let mut probes = self.planned_probes(subjects);
        self.note_probes(&probes);
        let mut waiting: Vec<VecDeque<usize>> = vec![VecDeque::new(); subjects.len()];
        for (place, run) in self.plan.runs.iter().enumerate() {
            if !self.records.contains_key(&place) {
                waiting[run.subject].push_back(place);
            }
        }
        let mut busy = vec![0_usize; subjects.len()];
        let mut running: JoinSet<MadeWork> = JoinSet::new();
        let mut work: HashMap<Id, PlannedWork> = HashMap::new();
        let jobs = self.settings.jobs.max(1);
        let mut unsaved = false;
        loop {
            while running.len() < jobs && !stop.is_cancelled() {
                let has_work = |subject: &usize| {
                    let has_runs = !waiting[*subject].is_empty();
                    probes.is_waiting(*subject) || (has_runs && probes.is_done(*subject))
                };
                let next = (0..subjects.len()).filter(has_work).min_by_key(|subject| {
                    let runs = &waiting[*subject];
                    (busy[*subject], runs.front().copied())
                });
                let Some(subject) = next else {
                    break;
                };
                if let Some((place, probe)) = probes.next(subject) {
                    let broken = probe.not_tried("the probe broke off: this is a mistake of ours");
                    let asking = probe.ask(stop.clone());
                    let id = running.spawn(async { MadeWork::Probe(asking.await) }).id();
                    work.insert(id, PlannedWork::Probe(place, subject, broken));
                } else if let Some(place) = waiting[subject].pop_front() {
                    let making = self.run(place, subjects).make(stop.clone());
                    let id = running
                        .spawn(async { MadeWork::Run(making.await.map(Box::new)) })
                        .id();
                    work.insert(id, PlannedWork::Run(place));
                }
                busy[subject] += 1;
            }
            // Writing blocks, so whoever can run does so meanwhile.
            if unsaved {
                unsaved = !self.save(false);
            }
            // What could not be written yet is when its time has come, even if nobody else ends until then.
            let due = self.saving.due();
            let joined = tokio::select! {
                joined = running.join_next_with_id() => joined,
                () = tokio::time::sleep_until(due.into()), if unsaved => continue,
            };
            let (id, done) = match joined {
                None => break,
                Some(Ok((id, done))) => (id, Some(done)),
                Some(Err(error)) => (error.id(), None),
            };
            match (work.remove(&id), done) {
                (Some(PlannedWork::Probe(place, subject, broken)), done) => {
                    busy[subject] = busy[subject].saturating_sub(1);
                    let record = match done {
                        Some(MadeWork::Probe(record)) => record,
                        Some(MadeWork::Run(_)) | None => Some(broken),
                    };
                    if let Some(record) = record {
                        probes.note(place, subject, record);
                        self.note_probes(&probes);
                    }
                }
                (Some(PlannedWork::Run(place)), done) => {
                    let subject = self.plan.runs[place].subject;
                    busy[subject] = busy[subject].saturating_sub(1);
                    let record = match done {
                        Some(MadeWork::Run(record)) => record.map(|record| *record),
                        Some(MadeWork::Probe(_)) | None => {
                            let mut record = self.run(place, subjects).record();
                            record.error =
                                Some("the run broke off: this is a mistake of ours".to_owned());
                            Some(record)
                        }
                    };
                    let Some(record) = record else {
                        continue;
                    };
                    let gave_way = record.outcome.gave_way() && !record.twin;
                    self.records.insert(place, record);
                    let decided = self.settle(place);
                    if gave_way && self.settings.fail_fast {
                        stop.cancel();
                    }
                    let record = self.records[&place].clone();
                    self.tell(Some(&record), &decided, running.len(), None);
                }
                (None, _) => continue,
            }
            unsaved = true;
        }
    }

    fn run(&self, place: usize, subjects: &[Arc<dyn Subject>]) -> RunSetup {
        let planned = self.plan.runs[place].clone();
        let document = &self.plan.documents[planned.document];
        let script = document.script(planned.twin);
        RunSetup {
            document: document.info.id.clone(),
            script: Arc::clone(script),
            subject: Arc::clone(&subjects[planned.subject]),
            name: self.result.subjects[planned.subject].name.clone(),
            settings: Arc::clone(&self.settings),
            turns: self.turns[planned.subject].clone(),
            scratch: self.scratch.clone(),
            folder: TRACES,
            channels: Arc::clone(&self.channels),
            watch: None,
            planned,
        }
    }

    /// Settles what rests on a run that has ended: an attack by its control, if that is known, and by a control the
    /// attacks that came before it. Those are returned.
    fn settle(&mut self, place: usize) -> Vec<RunRecord> {
        let run = &self.plan.runs[place];
        let places = self.pairs.get(&(run.document, run.subject));
        let places = places.map(Vec::as_slice).unwrap_or_default();
        let control = places
            .iter()
            .filter_map(|place| self.records.get(place))
            .find(|record| record.twin);
        let control = control_of(&self.plan.documents[run.document], control);
        let mut decided = Vec::new();
        for other in places {
            if let Some(record) = self.records.get_mut(other) {
                let was_waiting = record.is_waiting_for_control();
                record.settle(&control);
                if *other != place && was_waiting && !record.is_waiting_for_control() {
                    decided.push(record.clone());
                }
            }
        }
        decided
    }

    fn tell(
        &self,
        run: Option<&RunRecord>,
        decided: &[RunRecord],
        running: usize,
        trouble: Option<&str>,
    ) {
        let total = self.plan.runs.len();
        let made = self.records.len() - self.resumed;
        let rest = total.saturating_sub(self.records.len());
        let left = (made > 0).then(|| {
            let each = self.started.elapsed().as_secs_f64() / made as f64;
            Duration::from_secs_f64((each * rest as f64).min(1e9))
        });
        (self.listener)(&CampaignProgress {
            run,
            done: self.records.len(),
            total,
            running,
            left,
            decided,
            trouble,
        });
    }

    /// Keeps what is known; `false` when writing would take too much of the time now. The last time, it is always done.
    fn save(&mut self, last_time: bool) -> bool {
        if !last_time && Instant::now() < self.saving.due() {
            return false;
        }
        let directory = self.settings.directory.as_ref();
        // Without a directory, only the end has to know all of them.
        if directory.is_some() || last_time {
            self.result.runs = self.records.values().cloned().collect();
            self.result.complete = self.records.len() == self.plan.runs.len();
        }
        let Some(directory) = directory else {
            return true;
        };
        let begun = Instant::now();
        let saved = store::save(&directory.join(FILE), &self.result);
        self.saving.last = Some((Instant::now(), begun.elapsed()));
        match saved {
            Ok(()) => self.saving.has_failed = false,
            Err(error) if !self.saving.has_failed || last_time => {
                self.saving.has_failed = true;
                self.tell(None, &[], 0, Some(&error.to_string()));
            }
            Err(_) => {}
        }
        true
    }
}
