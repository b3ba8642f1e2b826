//! What the tests share: a small campaign, and workers for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_campaign::document::CampaignDocument;
use proofhouse_campaign::load::{UnknownNames, load};
use proofhouse_campaign::plan::DocumentFilter;
use proofhouse_campaign::result::RunRecord;
use proofhouse_fleet::FleetError;
use proofhouse_fleet::join::WorkerTools;
use proofhouse_fleet::name::CampaignName;
use proofhouse_fleet::plan::{PlanSettings, PlannedCampaign};
use proofhouse_fleet::trace_place::TraceAccess;
use proofhouse_fleet::traces::TraceStore;
use proofhouse_fleet::worker::{WorkerEnd, WorkerSettings, run_worker};
use proofhouse_oatf::ReadLimits;
use proofhouse_store::Store;
use proofhouse_store::model::CampaignRow;
use proofhouse_subjects::spec::{SubjectKind, SubjectSpec};
use proofhouse_subjects::{EnvironmentLookup, OpenContext, Subject, open};
use proofhouse_wire::{CancellationToken, ProxySettings};

/// The version that the workers of these tests have.
pub(crate) const PROGRAM: &str = "1.0-test";

pub(crate) fn environment() -> EnvironmentLookup {
    Arc::new(|_| None)
}

/// What places for traces get here: no variables, no proxies.
pub(crate) fn access() -> TraceAccess {
    TraceAccess {
        environment: environment(),
        proxies: ProxySettings::default(),
    }
}

/// A few attacks of the library.
pub(crate) fn documents() -> Vec<CampaignDocument> {
    let limits = ReadLimits::default();
    let all = load(&[], &limits, None, UnknownNames::Refused, &|_| {}).unwrap();
    let filter = DocumentFilter {
        ids: vec!["*-001".to_owned(), "*-002".to_owned(), "*-003".to_owned()],
        ..DocumentFilter::default()
    };
    let some: Vec<_> = all
        .into_iter()
        .filter(|document| filter.fits(&document.info))
        .take(3)
        .collect();
    assert!(some.len() >= 2, "the library has such documents");
    some
}

pub(crate) fn specs() -> Vec<SubjectSpec> {
    let spec = |name: &str| SubjectSpec {
        name: None,
        deadline: None,
        kind: SubjectKind::Simulation(name.to_owned()),
    };
    vec![spec("sim:gullible"), spec("sim:careful")]
}

pub(crate) fn subjects() -> Vec<Arc<dyn Subject>> {
    let opening = OpenContext {
        environment: environment(),
        notify: &|_| {},
        gate: None,
    };
    specs()
        .iter()
        .map(|spec| open(spec, &opening).unwrap())
        .collect()
}

pub(crate) fn settings(name: &str) -> PlanSettings {
    PlanSettings {
        name: name.to_owned(),
        repeats: 2,
        seed: 7,
        probes: true,
        program: PROGRAM.to_owned(),
        ..PlanSettings::default()
    }
}

/// Plans the campaign.
pub(crate) async fn planned(store: &Store, settings: PlanSettings) -> CampaignRow {
    let planned = PlannedCampaign::new(documents(), &specs(), &subjects(), settings).unwrap();
    planned.write(store).await.unwrap()
}

/// Works on the campaign as one worker.
pub(crate) async fn worker(
    store: &Arc<Store>,
    owner: &str,
    campaign: &CampaignRow,
    traces: Option<TraceStore>,
) -> Result<WorkerEnd, FleetError> {
    worker_of(store, owner, campaign, (traces, 2), environment()).await
}

/// The same with so many jobs, in this environment.
pub(crate) async fn worker_of(
    store: &Arc<Store>,
    owner: &str,
    campaign: &CampaignRow,
    (traces, jobs): (Option<TraceStore>, usize),
    environment: EnvironmentLookup,
) -> Result<WorkerEnd, FleetError> {
    let name = CampaignName {
        name: campaign.name.clone(),
        number: Some(campaign.number),
    };
    let tools = WorkerTools {
        keeps_traces: traces.is_some(),
        program: PROGRAM.to_owned(),
        ..WorkerTools::default()
    };
    let settings = WorkerSettings {
        owner: owner.to_owned(),
        jobs,
        lease: Duration::from_secs(60),
        drain: Duration::from_secs(20),
        traces,
        program: PROGRAM.to_owned(),
    };
    let opening = OpenContext {
        environment,
        notify: &|_| {},
        gate: None,
    };
    let drain = CancellationToken::new();
    let worked = run_worker(store, &name, &tools, &opening, &settings, &|_| {}, &drain).await;
    worked.map(|(_, end)| end)
}

/// What runs came to, by their names.
pub(crate) fn outcomes(runs: &[RunRecord]) -> BTreeMap<String, String> {
    let outcome = |run: &RunRecord| {
        let reason = run.reason.map_or("", |reason| reason.code());
        (run.id.clone(), format!("{} {reason}", run.outcome.word()))
    };
    let outcomes: BTreeMap<_, _> = runs.iter().map(outcome).collect();
    assert_eq!(outcomes.len(), runs.len(), "no run is there twice");
    outcomes
}
