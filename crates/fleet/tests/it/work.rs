//! Several workers come to what one process comes to.

use std::sync::Arc;

use proofhouse_campaign::engine::{CampaignSettings, execute};
use proofhouse_campaign::plan::Plan;
use proofhouse_campaign::result::SubjectInfo;
use proofhouse_fleet::FleetError;
use proofhouse_fleet::join::{JoinedCampaign, WorkerTools};
use proofhouse_fleet::listing::{CampaignOverview, trend_lines};
use proofhouse_fleet::name::CampaignName;
use proofhouse_fleet::plan::{StoredModel, WorkerNeed};
use proofhouse_fleet::traces::TraceStore;
use proofhouse_fleet::worker::WorkerEnd;
use proofhouse_fleet::{report, trend};
use proofhouse_oatf::{EvaluationError, SemanticEvaluator, SemanticExamples, SemanticIntentClass};
use proofhouse_store::model::{CampaignBlob, CampaignState, NewCampaign};
use proofhouse_store::{SqliteOptions, Store};
use proofhouse_subjects::OpenContext;
use proofhouse_wire::CancellationToken;

use crate::support::{
    PROGRAM, access, documents, environment, outcomes, planned, settings, subjects, worker,
};

fn digest(body: &[u8]) -> String {
    proofhouse_fleet::digest::sha256(body)
}

pub(crate) async fn store() -> (tempfile::TempDir, Arc<Store>) {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteOptions::file(directory.path().join("store.db"));
    (
        directory,
        Arc::new(Store::open_sqlite(options).await.unwrap()),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_come_to_what_one_process_comes_to() {
    let (directory, store) = store().await;
    let subjects = subjects();
    let infos: Vec<SubjectInfo> = subjects.iter().map(|one| one.info()).collect();
    let plan = Plan::new(documents(), &infos, 2, 7).unwrap();
    let (plan, _) = plan.meetable(&subjects).unwrap();
    let cancel = CancellationToken::new();
    let alone = execute(
        &plan,
        &subjects,
        CampaignSettings::default(),
        Vec::new(),
        PROGRAM,
        &|_| {},
        &cancel,
    )
    .await;
    let place = directory.path().join("traces");
    let traces = TraceStore::open(place.to_str().unwrap(), &access()).unwrap();
    let mut wanted = settings("two");
    wanted.traces = Some(place.to_str().unwrap().to_owned());
    let campaign = planned(&store, wanted).await;
    assert_eq!(campaign.state, CampaignState::Running);
    let (one, other) = tokio::join!(
        worker(&store, "one", &campaign, Some(traces.clone())),
        worker(&store, "other", &campaign, Some(traces.clone())),
    );
    let over = WorkerEnd::Over(CampaignState::Finished);
    assert_eq!((one.unwrap(), other.unwrap()), (over, over));
    let campaign = store.campaign(campaign.id).await.unwrap();
    let mut stored = report::read(&store, &campaign, PROGRAM).await.unwrap();
    assert_eq!(outcomes(&stored.result.runs), outcomes(&alone.runs));
    assert!(stored.result.complete);
    assert_eq!(stored.result.probes.len(), alone.probes.len());
    let documents = stored.result.documents.iter().map(|one| &one.digest);
    let digests = alone.documents.iter().map(|one| &one.digest);
    assert!(documents.eq(digests));
    // The counts of the store are those of the records.
    let overview = CampaignOverview::read(&store, campaign.clone())
        .await
        .unwrap();
    let counted: i64 = overview.counts.iter().map(|count| count.runs).sum();
    assert_eq!(counted, campaign.total);
    let text = overview.lines().join("\n");
    assert!(
        text.contains("finished") && text.contains("worker     one"),
        "{text}"
    );
    // Every trace comes back as it was recorded.
    let out = directory.path().join("out");
    let lost = stored.fetch_traces(&traces, &out).await.unwrap();
    assert!(lost.is_empty(), "{lost:?}");
    let runs = stored.result.runs.iter();
    assert!(runs.clone().all(|run| run.trace.is_some()));
    let read = proofhouse_campaign::replay::traces(&stored.result, &out);
    assert_eq!(read.len(), runs.len());
    assert!(read.values().all(|messages| !messages.is_empty()));
    let points = trend::read(&store, "two", None, PROGRAM).await.unwrap();
    let text = trend_lines(&points).join("\n");
    assert!(text.contains("sim:gullible, all categories"), "{text}");
    // A name that is not there is told with what may be meant.
    for (name, help) in [
        ("tow", "did you mean `two`?"),
        ("two@7", "did you mean `two@1`?"),
        ("nightly", "`proofhouse campaigns list`"),
    ] {
        let name: CampaignName = name.parse().unwrap();
        let said = name.find(&store).await.unwrap_err().to_string();
        assert!(said.contains(&format!("no campaign {name}; ")), "{said}");
        assert!(said.contains(help), "{said}");
    }
    // The store holds the texts, so the same campaign can be made again.
    let again = planned(&store, settings("two")).await;
    assert_eq!((again.number, again.plan == campaign.plan), (2, true));
}

/// A model that judges, as a plan keeps it.
fn judge(model: &str) -> StoredModel {
    StoredModel {
        need: WorkerNeed::Semantic,
        method: Some("judge".to_owned()),
        url: "https://models.example/v1".to_owned(),
        model: model.to_owned(),
        key_env: None,
        timeout: None,
        max_requests: None,
    }
}

/// Judges alike whatever it is asked, which is nothing: the worker that has it never begins.
struct NoScore;

impl SemanticEvaluator for NoScore {
    fn evaluate(
        &self,
        _: &str,
        _: &str,
        _: Option<SemanticIntentClass>,
        _: Option<f64>,
        _: Option<&SemanticExamples>,
    ) -> Result<f64, EvaluationError> {
        Ok(0.0)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_refuses_what_it_cannot_do_and_says_so() {
    let (_directory, store) = store().await;
    let mut wanted = settings("needs");
    wanted.models = vec![judge("careful-judge")];
    let campaign = planned(&store, wanted).await;
    let refused = worker(&store, "bare", &campaign, None).await.unwrap_err();
    assert!(matches!(refused, FleetError::Refused { .. }), "{refused}");
    let workers = store.campaign_workers(campaign.id).await.unwrap();
    let remark = workers[0].remark.clone().unwrap();
    assert!(
        remark.contains("a model for semantic indicators"),
        "{remark}"
    );
    // Nor does it judge with another model than the others do.
    let mut tools = WorkerTools {
        semantic: Some(Arc::new(NoScore)),
        models: vec![judge("other-judge")],
        program: PROGRAM.to_owned(),
        ..WorkerTools::default()
    };
    let opening = OpenContext {
        environment: environment(),
        notify: &|_| {},
        gate: None,
    };
    let join = |tools| JoinedCampaign::new(&store, campaign.clone(), tools, &opening);
    let refused = join(tools.clone()).await.err().unwrap();
    assert!(
        matches!(refused, FleetError::OtherModel { .. }),
        "{refused}"
    );
    let said = refused.to_string();
    assert!(
        said.contains("careful-judge") && said.contains("other-judge"),
        "{said}"
    );
    tools.models = vec![judge("careful-judge")];
    let joined = join(tools).await.unwrap();
    assert_eq!(joined.plan.models, [judge("careful-judge")]);
    drop(joined);
    // A plan of a later version is not guessed at.
    let later = store
        .plan_campaign(NewCampaign {
            name: "later".to_owned(),
            format: 99,
            program: "9.0".to_owned(),
            plan: campaign.plan.clone(),
            traces: None,
            namespace: String::new(),
            lanes: Vec::new(),
            blobs: Vec::new(),
        })
        .await
        .unwrap();
    store.begin_campaign(later.id, 0).await.unwrap();
    let refused = worker(&store, "old", &later, None).await.unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("9.0") && text.contains("plan format 99"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_an_older_version_says_which_one_is_needed() {
    let (_directory, store) = store().await;
    let campaign = planned(&store, settings("known")).await;
    let plan = store.campaign_blob(&campaign.plan).await.unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&plan).unwrap();
    // A later version has kinds of subjects and documents that this one does not know.
    for key in ["subjects", "documents"] {
        for (program, needs) in [
            ("9.0", "that this version cannot read"),
            (PROGRAM, "is damaged"),
        ] {
            let unknown = br#"{"telepathy":true}"#.to_vec();
            let mut plan = plan.clone();
            plan[key][0] = digest(&unknown).into();
            let plan = serde_json::to_vec(&plan).unwrap();
            let blob = |body: Vec<u8>| CampaignBlob {
                digest: digest(&body),
                body,
            };
            let new = NewCampaign {
                name: "later".to_owned(),
                format: 1,
                program: program.to_owned(),
                plan: digest(&plan),
                traces: None,
                namespace: String::new(),
                lanes: Vec::new(),
                blobs: vec![blob(unknown), blob(plan)],
            };
            let later = store.plan_campaign(new).await.unwrap();
            store.begin_campaign(later.id, 0).await.unwrap();
            let refused = worker(&store, "old", &later, None).await.unwrap_err();
            let text = refused.to_string();
            assert!(text.contains(needs), "{key}: {text}");
            store.cancel_campaign(later.id, "").await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_takes_three_workers_with_it_is_an_error() {
    let (_directory, store) = store().await;
    let mut wanted = settings("deadly");
    wanted.probes = false;
    wanted.repeats = 1;
    let campaign = planned(&store, wanted).await;
    let claim = |owner: &str, limit| proofhouse_store::model::RunClaim {
        campaign: campaign.id,
        owner: owner.to_owned(),
        lease_ms: 0,
        limit,
        is_idle: limit == 1,
        has_lost: limit > 1,
    };
    for lost in 0..3 {
        let handed = store.claim_runs(claim("dies", 1)).await.unwrap();
        assert_eq!((handed[0].place, handed[0].losses), (0, lost));
        assert_eq!(store.take_back_runs(campaign.id, 0).await.unwrap(), 1);
        // Who has one already that a worker was lost with gets no second one.
        let rest = store.claim_runs(claim("waits", 100)).await.unwrap();
        assert_eq!(rest.is_empty(), lost > 0);
        store
            .renew_runs(campaign.id, "waits", 60_000)
            .await
            .unwrap();
    }
    store.release_runs(campaign.id, "waits").await.unwrap();
    let end = worker(&store, "lives", &campaign, None).await.unwrap();
    assert_eq!(end, WorkerEnd::Over(CampaignState::Finished));
    let campaign = store.campaign(campaign.id).await.unwrap();
    let stored = report::read(&store, &campaign, PROGRAM).await.unwrap();
    let first = &stored.result.runs[0];
    assert!(first.has_failed(), "{first:?}");
    let why = first.error.as_deref().unwrap();
    assert!(why.contains("3 workers were lost"), "{why}");
    let failed = stored.result.runs.iter().filter(|run| run.has_failed());
    assert_eq!(failed.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_worker_leaves_is_found_by_the_next() {
    let (_directory, store) = store().await;
    let campaign = planned(&store, settings("left")).await;
    let tools = WorkerTools {
        program: PROGRAM.to_owned(),
        ..WorkerTools::default()
    };
    let opening = OpenContext {
        environment: environment(),
        notify: &|_| {},
        gate: None,
    };
    let joined = JoinedCampaign::new(&store, campaign, tools, &opening).await;
    let joined = joined.unwrap();
    // Its directory is one of those that are swept when their owner is gone.
    let scratch = joined.directory.path().parent().unwrap().to_owned();
    assert!(scratch.join("campaign.lock").is_file());
    let name = scratch.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("proofhouse-run-"), "{name}");
    drop(joined);
    assert!(!scratch.exists());
}

#[tokio::test]
async fn planning_again_joins_and_another_plan_is_refused() {
    let (_directory, store) = store().await;
    let first = planned(&store, settings("same")).await;
    let again = planned(&store, settings("same")).await;
    assert_eq!(first.id, again.id);
    let other = proofhouse_fleet::plan::PlannedCampaign::new(
        documents(),
        &crate::support::specs(),
        &subjects(),
        proofhouse_fleet::plan::PlanSettings {
            seed: 8,
            ..settings("same")
        },
    );
    let refused = other.unwrap().write(&store).await.unwrap_err();
    assert!(refused.is_usage(), "{refused}");
}
