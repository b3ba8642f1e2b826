//! A worker: is handed runs of a campaign, makes them side by side, and has each counted once.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_campaign::plan::PlannedRun;
use proofhouse_campaign::probes::{NeededChannel, ProbeRecord};
use proofhouse_campaign::result::RunRecord;
use proofhouse_store::model::{
    CampaignRow, CampaignState, ClaimedRun, FinishedRun, Millis, PlannedKind, RunClaim, RunCounted,
    WorkerRow,
};
use proofhouse_store::{Store, StoreError};
use proofhouse_subjects::OpenContext;
use proofhouse_wire::CancellationToken;
use tokio::task::{Id, JoinSet};

use crate::FleetError;
use crate::join::{JoinedCampaign, WorkerTools};
use crate::name::{CampaignName, shown};
use crate::retry::{MAX_LOSSES, pause};
use crate::steady::{Departure, is_away, left, patiently, until_answered};
use crate::traces::TraceStore;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Its name, which no other worker has.
    pub owner: String,
    /// Runs at a time.
    pub jobs: usize,
    /// How long it may be silent before its runs are given to others.
    pub lease: Duration,
    /// How long runs may still take when it is asked to leave.
    pub drain: Duration,
    /// Where traces go.
    pub traces: Option<TraceStore>,
    /// The version of this program.
    pub program: String,
}

/// A name for a worker that no other has: that of its machine, the process and the time.
#[must_use]
pub fn worker_name(host: Option<String>) -> String {
    let host = host.filter(|host| !host.is_empty());
    let host = host.unwrap_or_else(|| "worker".to_owned());
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
    let nanos = since.map_or(0, |since| since.subsec_nanos());
    format!("{host}/{}/{nanos:08x}", std::process::id())
}

/// How often in a lease a worker says that it is there, and looks for runs of others that are not.
const BEATS: u32 = 6;
/// The shortest pause before a worker asks again that was handed nothing.
const SHORTEST_WAIT: Duration = Duration::from_millis(20);
/// The longest.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// A run is made a second time when it takes this many times as long as others did.
const SLOW: u32 = 4;
/// It is never made a second time before this.
const SLOW_AT_LEAST: Duration = Duration::from_secs(15);

/// Something that happened while a worker worked.
#[derive(Debug)]
pub enum WorkerEvent<'a> {
    /// A run counts now.
    Made {
        /// What it came to; of probes there is no such record.
        record: Option<&'a RunRecord>,
        /// Runs that this worker has made.
        made: u64,
    },
    /// A run came to nothing and is made again later.
    Again {
        /// What it came to.
        record: &'a RunRecord,
        /// After how long.
        after: Duration,
    },
    /// The store is away; it is asked again.
    StoreAway(&'a StoreError),
    /// It was asked to leave, and waits for its runs.
    Draining(usize),
}

impl WorkerEvent<'_> {
    /// What people are told about it, if anything: about every run if they want that.
    #[must_use]
    pub fn lines(&self, is_verbose: bool) -> Vec<String> {
        match self {
            Self::Made { record, made } => {
                let lost = record.and_then(|one| Some((&one.id, one.trace_lost.as_ref()?)));
                let lost =
                    lost.map(|(id, lost)| format!("warning: {id}: its trace is lost: {lost}"));
                let run = record
                    .filter(|_| is_verbose)
                    .map(|record| format!("[{made}] {}: {}", record.id, record.outcome.word()));
                let many = || (made % 1_000 == 0).then(|| format!("{made} runs made"));
                lost.into_iter().chain(run.or_else(many)).collect()
            }
            Self::Again { record, after } => {
                let why = record.why().unwrap_or("it came to nothing");
                let (id, after) = (&record.id, after.as_secs());
                vec![format!("{id}: made again in {after} s: {why}")]
            }
            Self::StoreAway(error) => vec![format!("{error}; trying again until it answers")],
            Self::Draining(runs) => vec![format!(
                "Asked to leave. Waiting for {runs} runs; press Ctrl-C again to quit."
            )],
        }
    }
}

/// Hears what happens.
pub type WorkerListener<'a> = &'a (dyn Fn(&WorkerEvent<'_>) + Send + Sync);

/// Why a worker stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// The campaign is over, in this state.
    Over(CampaignState),
    /// It was asked to leave. Its runs are done or given back, or will be when the store is there again and its leases have ended.
    Drained,
}

/// What a task came to.
enum MadeRun {
    Run(Option<Box<RunRecord>>, Option<String>),
    Probe(Option<Box<ProbeRecord>>),
}

/// Works on a campaign until it is over, or until `drain` is cancelled and the runs under way are done or given back.
///
/// # Errors
///
/// Returns an error when the store holds what cannot be, or refuses this worker.
pub async fn work(
    store: &Arc<Store>,
    joined: &Arc<JoinedCampaign>,
    settings: &WorkerSettings,
    listener: WorkerListener<'_>,
    drain: &CancellationToken,
) -> Result<WorkerEnd, FleetError> {
    let mut worker = FleetWorker {
        store,
        joined,
        settings,
        listener,
        leaving: CancellationToken::new(),
        departure: Departure::new(drain, settings.drain),
        running: JoinSet::new(),
        handed: HashMap::new(),
        finished: Vec::new(),
        controls: HashMap::new(),
        probed: HashSet::new(),
        made: 0,
        took: Duration::ZERO,
        steady_since: Instant::now(),
    };
    let end = match worker.note(None, false).await {
        Ok(()) => worker.work().await,
        Err(error) => Err(error),
    };
    let end = match end {
        // Nobody can be told. What it has is given to others when its leases end.
        Err(error) if drain.is_cancelled() && is_away(&error) => Ok(WorkerEnd::Drained),
        end => end,
    };
    worker.running.shutdown().await;
    let (store, campaign) = (Arc::clone(store), joined.campaign.id);
    // A store that is away cannot be told; the leases end by themselves.
    if store.release_runs(campaign, &settings.owner).await.is_ok() {
        let remark = end.as_ref().err().map(ToString::to_string);
        let _ = worker.note(remark, true).await;
    }
    end
}

struct FleetWorker<'a> {
    store: &'a Arc<Store>,
    joined: &'a Arc<JoinedCampaign>,
    settings: &'a WorkerSettings,
    listener: WorkerListener<'a>,
    /// Ends the runs under way.
    leaving: CancellationToken,
    /// When it leaves, if it was asked to.
    departure: Departure,
    running: JoinSet<MadeRun>,
    handed: HashMap<Id, (ClaimedRun, CancellationToken)>,
    /// What is to be counted, with what it came to.
    finished: Vec<(FinishedRun, Option<Box<RunRecord>>)>,
    /// Controls that are done, by document and subject.
    controls: HashMap<(i64, i64), Arc<RunRecord>>,
    /// Subjects whose probes this worker has read.
    probed: HashSet<i64>,
    made: u64,
    /// How long its runs took together.
    took: Duration,
    /// Since when every lease was renewed in time.
    steady_since: Instant,
}

fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
}

impl FleetWorker<'_> {
    fn id(&self) -> i64 {
        self.joined.campaign.id
    }

    fn claim(&self, limit: usize) -> RunClaim {
        RunClaim {
            campaign: self.id(),
            owner: self.settings.owner.clone(),
            lease_ms: self.lease_ms(),
            limit,
            is_idle: self.running.is_empty(),
            has_lost: self.handed.values().any(|(run, _)| run.losses > 0),
        }
    }

    /// How long its runs are its own after it said that it is there. Others look a beat later at the latest, so that its runs are
    /// given to others within the lease.
    fn lease_ms(&self) -> Millis {
        millis(self.settings.lease - self.settings.lease / BEATS)
    }

    /// Asks the store until it answers, or until this worker leaves.
    async fn ask<T, F>(&mut self, ask: impl FnMut() -> F + Send) -> Result<T, FleetError>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let (listener, asked) = (self.listener, Instant::now());
        let told = |error: &StoreError| listener(&WorkerEvent::StoreAway(error));
        let answer = until_answered(self.departure.due(), &told, ask).await;
        if asked.elapsed() > self.settings.lease / 3 {
            // The store was away. Others could not renew their leases either: they get the time to.
            self.steady_since = Instant::now();
        }
        answer.map_or_else(|| Err(left()), |answer| Ok(answer?))
    }

    /// Says that the worker is there, or that it left.
    async fn note(&mut self, remark: Option<String>, left: bool) -> Result<(), FleetError> {
        let row = WorkerRow {
            owner: self.settings.owner.clone(),
            program: self.settings.program.clone(),
            jobs: i64::try_from(self.settings.jobs).unwrap_or(i64::MAX),
            seen_at: 0,
            left_at: left.then_some(0),
            remark,
            running: 0,
        };
        let (store, id) = (self.store, self.id());
        self.ask(|| store.note_campaign_worker(id, row.clone()))
            .await
    }

    async fn work(&mut self) -> Result<WorkerEnd, FleetError> {
        let jobs = self.settings.jobs.max(1);
        let mut beat = tokio::time::interval(self.settings.lease / BEATS);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut wait, mut is_draining) = (SHORTEST_WAIT, false);
        loop {
            while let Some(joined) = self.running.try_join_next_with_id() {
                self.collect(joined).await?;
            }
            self.count().await?;
            let mut idle = false;
            if !is_draining && self.running.len() < jobs && !self.is_alone() {
                let claimed = self.take(jobs - self.running.len()).await?;
                idle = claimed == 0;
                if idle && self.running.is_empty() {
                    let (store, id) = (self.store, self.id());
                    let state = self.ask(|| store.settle_campaign(id)).await?;
                    if state.is_over() {
                        return Ok(WorkerEnd::Over(state));
                    }
                }
                if idle {
                    idle = !self.steal().await?;
                }
            }
            if is_draining && self.running.is_empty() {
                return Ok(WorkerEnd::Drained);
            }
            if !idle {
                wait = SHORTEST_WAIT;
            }
            tokio::select! {
                Some(joined) = self.running.join_next_with_id() => self.collect(joined).await?,
                _ = beat.tick() => self.beat().await?,
                () = tokio::time::sleep(wait), if idle => wait = (wait * 2).min(LONGEST_WAIT),
                () = self.departure.asked(), if !is_draining => {
                    is_draining = true;
                    (self.listener)(&WorkerEvent::Draining(self.running.len()));
                }
                () = self.departure.due(), if is_draining => {
                    // What is not done by now is given back, and counts as no loss.
                    self.leaving.cancel();
                    self.running.shutdown().await;
                    return Ok(WorkerEnd::Drained);
                }
            }
        }
    }

    /// Renews the leases, ends runs that were given to others, and takes back what others have lost.
    async fn beat(&mut self) -> Result<(), FleetError> {
        let (store, id, settings) = (self.store, self.id(), self.settings);
        let (owner, lease) = (settings.owner.as_str(), self.lease_ms());
        let kept = self.ask(|| store.renew_runs(id, owner, lease)).await?;
        let kept: HashSet<(i64, i64)> = kept.into_iter().collect();
        // The answer that handed these out never came: nobody makes them.
        let known = self.handed.values().map(|(run, _)| (run.place, run.fence));
        let done = self.finished.iter().map(|(run, _)| (run.place, run.fence));
        let known: HashSet<(i64, i64)> = known.chain(done).collect();
        let unknown: Vec<(i64, i64)> = kept.difference(&known).copied().collect();
        if !unknown.is_empty() {
            self.ask(|| store.give_back_runs(id, owner, unknown.clone()))
                .await?;
        }
        for (run, stop) in self.handed.values() {
            // It is somebody else's by now.
            if !kept.contains(&(run.place, run.fence)) {
                stop.cancel();
            }
        }
        if self.steady_since.elapsed() >= self.settings.lease {
            self.ask(|| store.take_back_runs(id, lease)).await?;
        }
        let state = self.ask(|| store.campaign(id)).await?.state;
        if state.is_over() {
            for (_, stop) in self.handed.values() {
                stop.cancel();
            }
        }
        Ok(())
    }

    /// Whether it makes a run that several workers were lost with. Nothing else is begun beside that.
    fn is_alone(&self) -> bool {
        self.handed.values().any(|(run, _)| run.losses > 1)
    }

    /// Is handed runs and begins them. Returns how many.
    async fn take(&mut self, free: usize) -> Result<usize, FleetError> {
        let claim = self.claim(free);
        let store = self.store;
        let claimed = self.ask(|| store.claim_runs(claim.clone())).await?;
        let count = claimed.len();
        for run in claimed {
            self.begin(run).await?;
        }
        Ok(count)
    }

    /// When nothing is left to be handed out, makes a run a second time that somebody is slow with.
    async fn steal(&mut self) -> Result<bool, FleetError> {
        if self.made == 0 {
            return Ok(false);
        }
        let usual = self.took / u32::try_from(self.made).unwrap_or(u32::MAX);
        let slow = (usual * SLOW).max(SLOW_AT_LEAST);
        let (store, claim) = (self.store, self.claim(1));
        let stolen = self
            .ask(|| store.steal_run(claim.clone(), millis(slow)))
            .await?;
        match stolen {
            Some(run) => {
                self.begin(run).await?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    async fn begin(&mut self, run: ClaimedRun) -> Result<(), FleetError> {
        if run.kind != PlannedKind::Probe && self.probed.insert(run.subject) {
            self.read_probes().await?;
        }
        let stop = self.leaving.child_token();
        let joined = Arc::clone(self.joined);
        let traces = self.settings.traces.clone();
        let making = make(joined, traces, run, stop.clone());
        let id = self.running.spawn(making).id();
        self.handed.insert(id, (run, stop));
        Ok(())
    }

    /// Reads what the probes have shown.
    async fn read_probes(&mut self) -> Result<(), FleetError> {
        let (store, id) = (self.store, self.id());
        let rows = self.ask(|| store.campaign_probes(id)).await?;
        let records = rows.iter().map(|row| {
            serde_json::from_str(&row.record).map_err(|error| FleetError::Damaged {
                what: format!("the record of run {}", row.place),
                reason: error.to_string(),
            })
        });
        let records = records.collect::<Result<Vec<ProbeRecord>, _>>()?;
        self.joined.maker.note_probes(&records);
        Ok(())
    }

    /// Notes what a task came to.
    async fn collect(
        &mut self,
        ended: Result<(Id, MadeRun), tokio::task::JoinError>,
    ) -> Result<(), FleetError> {
        let (id, made) = match ended {
            Ok((id, made)) => (id, Some(made)),
            Err(error) => (error.id(), None),
        };
        let Some((run, stop)) = self.handed.remove(&id) else {
            return Ok(());
        };
        let broken = "the run broke off: this is a mistake of ours";
        match made {
            // Interrupted: given back, or somebody else's by now.
            Some(MadeRun::Run(None, _) | MadeRun::Probe(None)) if stop.is_cancelled() => Ok(()),
            Some(MadeRun::Run(Some(record), trace)) => self.settle(run, record, trace).await,
            Some(MadeRun::Probe(Some(record))) => self.probe_done(run, &record),
            Some(MadeRun::Run(None, _) | MadeRun::Probe(None)) | None => {
                if run.kind == PlannedKind::Probe {
                    let failed = channel(self.joined, &run)
                        .and_then(|channel| self.joined.maker.failed_probe(channel, broken));
                    failed.map_or(Ok(()), |record| self.probe_done(run, &record))
                } else {
                    let failed = failed(self.joined, &run, broken);
                    match failed {
                        Some(record) => self.settle(run, record, None).await,
                        None => Ok(()),
                    }
                }
            }
        }
    }

    fn probe_done(&mut self, run: ClaimedRun, record: &ProbeRecord) -> Result<(), FleetError> {
        let outcome = match record.state.is_read() {
            Some(true) => "read",
            Some(false) => "not_read",
            None => "not_proved",
        };
        let text = text_of(record)?;
        let finished = FinishedRun {
            place: run.place,
            fence: run.fence,
            outcome: outcome.to_owned(),
            reason: String::new(),
            tokens: number(record.tokens.unwrap_or(0)),
            milliseconds: number(record.milliseconds),
            record: text,
            trace: None,
            stops: false,
        };
        self.finished.push((finished, None));
        Ok(())
    }

    /// Settles what a run came to, by its control, or puts it back to be made again.
    async fn settle(
        &mut self,
        run: ClaimedRun,
        mut record: Box<RunRecord>,
        trace: Option<String>,
    ) -> Result<(), FleetError> {
        let pair = (run.document, run.subject);
        let document = usize::try_from(run.document).unwrap_or(usize::MAX);
        let has_control = self.joined.maker.documents().get(document);
        let has_control = has_control.is_some_and(|document| document.twin.is_some());
        if run.kind == PlannedKind::Attack && has_control && !self.controls.contains_key(&pair) {
            self.read_control(pair).await?;
        }
        let control = self.controls.get(&pair).cloned();
        let maker = &self.joined.maker;
        maker.settle(document, &mut record, control.as_deref());
        if let Some(after) = pause(&record, run.retries).filter(|_| run.losses < MAX_LOSSES) {
            let (store, id) = (self.store, self.id());
            let put = (run.place, run.fence);
            let tokens = number(record.tokens.unwrap_or(0));
            self.ask(|| store.put_back_run(id, put, millis(after), tokens))
                .await?;
            (self.listener)(&WorkerEvent::Again {
                record: &record,
                after,
            });
            return Ok(());
        }
        self.took += Duration::from_millis(record.milliseconds);
        let is_attack = run.kind == PlannedKind::Attack;
        let stops = self.joined.plan.fail_fast && is_attack && record.outcome.gave_way();
        let finished = FinishedRun {
            place: run.place,
            fence: run.fence,
            outcome: record.outcome.word().to_owned(),
            reason: record.reason.map_or("", |reason| reason.code()).to_owned(),
            tokens: number(record.tokens.unwrap_or(0)),
            milliseconds: number(record.milliseconds),
            record: text_of(&*record)?,
            trace,
            stops,
        };
        self.finished.push((finished, Some(record)));
        Ok(())
    }

    async fn read_control(&mut self, pair: (i64, i64)) -> Result<(), FleetError> {
        let (store, id) = (self.store, self.id());
        let row = self
            .ask(|| store.campaign_control(id, pair.0, pair.1))
            .await?;
        if let Some(row) = row {
            let record: RunRecord =
                serde_json::from_str(&row.record).map_err(|error| FleetError::Damaged {
                    what: format!("the record of run {}", row.place),
                    reason: error.to_string(),
                })?;
            self.controls.insert(pair, Arc::new(slim(record)));
        }
        Ok(())
    }

    /// Has the store count what is done, in one transaction.
    async fn count(&mut self) -> Result<(), FleetError> {
        if self.finished.is_empty() {
            return Ok(());
        }
        let finished = std::mem::take(&mut self.finished);
        let rows: Vec<FinishedRun> = finished.iter().map(|(row, _)| row.clone()).collect();
        let (store, id) = (self.store, self.id());
        let counted = self.ask(|| store.finish_runs(id, rows.clone())).await?;
        for ((_, record), counted) in finished.into_iter().zip(counted) {
            match counted {
                RunCounted::Now | RunCounted::Before => {
                    self.made += 1;
                    (self.listener)(&WorkerEvent::Made {
                        record: record.as_deref(),
                        made: self.made,
                    });
                }
                // Somebody else's result counts.
                RunCounted::Fenced => {}
            }
        }
        Ok(())
    }
}

/// What of a control is needed to settle attacks.
fn slim(mut record: RunRecord) -> RunRecord {
    record.indicators = Vec::new();
    record.answer = None;
    record.warnings = Vec::new();
    record.stderr = None;
    record
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn text_of(record: &impl serde::Serialize) -> Result<String, FleetError> {
    serde_json::to_string(record).map_err(|error| FleetError::Damaged {
        what: "the record of a run".to_owned(),
        reason: error.to_string(),
    })
}

/// The channel of a probe.
fn channel<'a>(joined: &'a JoinedCampaign, run: &ClaimedRun) -> Option<&'a NeededChannel> {
    let number = usize::try_from(run.document).ok()?;
    joined.plan.probes.get(number)
}

/// The record of a run that came to nothing.
fn failed(joined: &JoinedCampaign, run: &ClaimedRun, why: &str) -> Option<Box<RunRecord>> {
    let planned = planned(joined, run)?;
    Some(Box::new(joined.maker.failed(planned, why)))
}

fn planned(joined: &JoinedCampaign, run: &ClaimedRun) -> Option<PlannedRun> {
    let document = usize::try_from(run.document).ok()?;
    let subject = usize::try_from(run.subject).ok()?;
    let repeat = u32::try_from(run.repeat).ok()?;
    let twin = run.kind == PlannedKind::Control;
    joined.maker.planned(document, subject, repeat, twin)
}

/// Makes one run, and puts its trace away.
async fn make(
    joined: Arc<JoinedCampaign>,
    traces: Option<TraceStore>,
    run: ClaimedRun,
    stop: CancellationToken,
) -> MadeRun {
    let lost = (run.losses >= MAX_LOSSES).then(|| {
        format!(
            "{} workers were lost while they made this run; it is not tried again",
            run.losses
        )
    });
    if run.kind == PlannedKind::Probe {
        let Some(channel) = channel(&joined, &run) else {
            return MadeRun::Probe(None);
        };
        let record = match lost {
            Some(why) => joined.maker.failed_probe(channel, &why),
            None => joined.maker.probe(channel, stop).await,
        };
        return MadeRun::Probe(record.map(|mut record| {
            for trace in std::mem::take(&mut record.traces) {
                let _ = std::fs::remove_file(joined.directory.path().join(trace));
            }
            Box::new(record)
        }));
    }
    if let Some(why) = lost {
        return MadeRun::Run(failed(&joined, &run, &why), None);
    }
    let Some(planned) = planned(&joined, &run) else {
        return MadeRun::Run(None, None);
    };
    let Some(mut record) = joined.maker.make(planned, stop).await else {
        return MadeRun::Run(None, None);
    };
    let mut digest = None;
    if let (Some(file), Some(traces)) = (record.trace.take(), traces) {
        let path = joined.directory.path().join(file);
        match traces.put_file(&path).await {
            Ok(put) => digest = Some(put),
            Err(error) => record.trace_lost = Some(error.to_string()),
        }
        let _ = std::fs::remove_file(path);
    }
    MadeRun::Run(Some(Box::new(record)), digest)
}

/// How long a worker waits for a campaign that is being planned.
const PLANNING: Duration = Duration::from_secs(600);

/// Joins the campaign of a name and works on it until it is over or `drain` is cancelled. One that is over already needs nothing.
/// A worker that cannot do what the campaign needs says so in the store as well.
///
/// # Errors
///
/// Returns an error when there is no such campaign, or this worker cannot work on it.
pub async fn run_worker(
    store: &Arc<Store>,
    name: &CampaignName,
    tools: &WorkerTools,
    opening: &OpenContext<'_>,
    settings: &WorkerSettings,
    listener: WorkerListener<'_>,
    drain: &CancellationToken,
) -> Result<(CampaignRow, WorkerEnd), FleetError> {
    let begun = Instant::now();
    let campaign = loop {
        let found = patiently(drain.cancelled(), || name.find(store)).await?;
        if found.state.is_over() {
            let end = WorkerEnd::Over(found.state);
            return Ok((found, end));
        }
        if found.state != CampaignState::Planning {
            break found;
        }
        if begun.elapsed() > PLANNING {
            return Err(FleetError::StillPlanned(shown(&found)));
        }
        tokio::select! {
            () = tokio::time::sleep(LONGEST_WAIT) => {}
            () = drain.cancelled() => return Ok((found, WorkerEnd::Drained)),
        }
    };
    let joining = || JoinedCampaign::new(store, campaign.clone(), tools.clone(), opening);
    let joined = match patiently(drain.cancelled(), joining).await {
        Ok(joined) => Arc::new(joined),
        Err(error) if drain.is_cancelled() && is_away(&error) => {
            return Ok((campaign, WorkerEnd::Drained));
        }
        Err(error) => {
            let row = WorkerRow {
                owner: settings.owner.clone(),
                program: settings.program.clone(),
                jobs: 0,
                seen_at: 0,
                left_at: Some(0),
                remark: Some(error.to_string()),
                running: 0,
            };
            // The error itself is what counts.
            let _ = store.note_campaign_worker(campaign.id, row).await;
            return Err(error);
        }
    };
    let end = work(store, &joined, settings, listener, drain).await?;
    if end == WorkerEnd::Drained {
        return Ok((campaign, end));
    }
    let read = || async { Ok::<_, FleetError>(store.campaign(campaign.id).await?) };
    let campaign = patiently(drain.cancelled(), read).await?;
    Ok((campaign, end))
}
