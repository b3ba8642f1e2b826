//! What all workers together may ask of a model, against a provider on the loopback interface.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use proofhouse_fleet::caps::FleetCaps;
use proofhouse_fleet::plan::PlannedCampaign;
use proofhouse_fleet::worker::WorkerEnd;
use proofhouse_store::model::{CampaignRow, CampaignState, LaneRow, RunClaim};
use proofhouse_store::{SqliteOptions, Store};
use proofhouse_subjects::spec::{EndpointSpec, ModelSpec, SubjectKind, SubjectSpec, Urls};
use proofhouse_subjects::{EnvironmentLookup, OpenContext, open};
use proofhouse_test_support::http::{SeenRequest, TestReply, TestServer};
use proofhouse_tools::operator::OperatorConfig;
use serde_json::json;
use tokio::runtime::Handle;

use crate::support::{PROGRAM, documents, settings, worker_of};

const MODEL: &str = "openai:scripted";
/// How long the provider asks to wait.
const PAUSE: Duration = Duration::from_secs(1);

/// An environment in which the key of the provider says which worker asks.
fn environment(key: &'static str) -> EnvironmentLookup {
    Arc::new(move |name: &str| (name == "PROOFHOUSE_MODEL_KEY").then(|| key.to_owned()))
}

async fn opened(file: &std::path::Path) -> Arc<Store> {
    let options = SqliteOptions::file(file);
    Arc::new(Store::open_sqlite(options).await.unwrap())
}

/// Plans a campaign of two documents against a model at this address.
pub(crate) async fn planned(store: &Store, address: &str, caps: FleetCaps) -> CampaignRow {
    let spec = SubjectSpec {
        name: None,
        deadline: None,
        kind: SubjectKind::Model(ModelSpec {
            model: MODEL.to_owned(),
            base_url: Some(address.to_owned()),
            instructions: None,
            directory: None,
        }),
    };
    let opening = OpenContext {
        environment: environment("planner"),
        notify: &|_| {},
        gate: None,
    };
    let subject = open(&spec, &opening).unwrap();
    let wanted = proofhouse_fleet::plan::PlanSettings {
        caps,
        probes: false,
        repeats: 1,
        ..settings("capped")
    };
    let documents = documents().into_iter().take(2).collect();
    let planned = PlannedCampaign::new(documents, &[spec], &[subject], wanted).unwrap();
    planned.write(store).await.unwrap()
}

pub(crate) fn answer() -> TestReply {
    let message =
        json!({"role": "assistant", "content": "I have looked, and there is nothing to do."});
    TestReply::Json(json!({
        "model": "scripted",
        "usage": {"prompt_tokens": 50, "completion_tokens": 5},
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }))
}

/// Two workers, each with one job, a store of its own over the same file, and a key by which the provider knows it.
async fn two_workers(file: &std::path::Path, campaign: &CampaignRow) -> [WorkerEnd; 2] {
    let (one, other) = (opened(file).await, opened(file).await);
    let (one, other) = tokio::join!(
        worker_of(&one, "one", campaign, (None, 1), environment("one")),
        worker_of(&other, "other", campaign, (None, 1), environment("other")),
    );
    [one.unwrap(), other.unwrap()]
}

/// What the provider saw.
#[derive(Default)]
struct Provider {
    /// When each request came, and whose it was.
    arrived: Mutex<Vec<(Instant, String)>>,
    changed: Condvar,
    refused_at: Mutex<Option<Instant>>,
}

impl Provider {
    /// Answers the first request with 429 once the other worker has one under way, and that one once everybody knows of the
    /// pause.
    fn answer(&self, request: &SeenRequest, lane: impl Fn() -> LaneRow) -> TestReply {
        let key = request
            .header("authorization")
            .unwrap_or_default()
            .to_owned();
        let number = {
            let mut arrived = self.arrived.lock().unwrap();
            arrived.push((Instant::now(), key));
            self.changed.notify_all();
            arrived.len() - 1
        };
        match number {
            0 => {
                let mut arrived = self.arrived.lock().unwrap();
                while arrived.len() < 2 {
                    arrived = self.changed.wait(arrived).unwrap();
                }
                *self.refused_at.lock().unwrap() = Some(Instant::now());
                TestReply::Plain(429, "retry-after: 1\r\n", "{}".to_owned())
            }
            1 => {
                while lane().slowed == 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
                answer()
            }
            _ => answer(),
        }
    }
}

async fn nobody_asks_before_the_pause_is_over(caps: FleetCaps) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let store = opened(&file).await;
    let (provider, runtime) = (Arc::new(Provider::default()), Handle::current());
    let id = Arc::new(Mutex::new(0));
    let server = TestServer::start({
        let (provider, store, id) = (Arc::clone(&provider), Arc::clone(&store), Arc::clone(&id));
        move |request, _| {
            let campaign = *id.lock().unwrap();
            let lane = || {
                let lanes = runtime.block_on(store.campaign_lanes(campaign));
                lanes.unwrap().remove(0)
            };
            provider.answer(request, lane)
        }
    });
    let is_counted = !caps.requests_per_minute.is_empty();
    let campaign = planned(&store, &format!("http://{}", server.address()), caps).await;
    *id.lock().unwrap() = campaign.id;
    let over = WorkerEnd::Over(CampaignState::Finished);
    assert_eq!(two_workers(&file, &campaign).await, [over, over]);
    let refused = provider.refused_at.lock().unwrap().unwrap();
    let arrived = provider.arrived.lock().unwrap().clone();
    for (number, (at, key)) in arrived.iter().enumerate().skip(2) {
        let after = at.duration_since(refused);
        // The clock of the store has whole milliseconds.
        let early = after + Duration::from_millis(2) < PAUSE;
        assert!(!early, "request {number} of {key} came after {after:?}");
    }
    let keys: BTreeSet<&str> = arrived.iter().map(|(_, key)| key.as_str()).collect();
    assert_eq!(keys, BTreeSet::from(["Bearer one", "Bearer other"]));
    let lane = store.campaign_lanes(campaign.id).await.unwrap().remove(0);
    assert_eq!((lane.name.as_str(), lane.slowed), (MODEL, 1));
    let counted = usize::try_from(lane.used_requests).unwrap();
    assert_eq!(counted, if is_counted { arrived.len() } else { 0 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_that_one_worker_is_asked_for_holds_for_all() {
    nobody_asks_before_the_pause_is_over(FleetCaps::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_holds_where_requests_are_counted() {
    let caps = FleetCaps {
        requests_per_minute: vec!["openai:scripted=60000".parse().unwrap()],
        ..FleetCaps::default()
    };
    nobody_asks_before_the_pause_is_over(caps).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_a_minute_are_those_of_all_workers() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let store = opened(&file).await;
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let server = TestServer::start({
        let arrived = Arc::clone(&arrived);
        move |_, _| {
            arrived.lock().unwrap().push(Instant::now());
            answer()
        }
    });
    // Three in a second, and a second's worth at once.
    let caps = FleetCaps {
        requests_per_minute: vec!["180".parse().unwrap()],
        ..FleetCaps::default()
    };
    let campaign = planned(&store, &format!("http://{}", server.address()), caps).await;
    let over = WorkerEnd::Over(CampaignState::Finished);
    assert_eq!(two_workers(&file, &campaign).await, [over, over]);
    let mut arrived = arrived.lock().unwrap().clone();
    arrived.sort_unstable();
    assert!(arrived.len() >= 2, "{}", arrived.len());
    let (first, last) = (arrived[0], arrived[arrived.len() - 1]);
    let spaced = u32::try_from(arrived.len()).unwrap().saturating_sub(5);
    let least = Duration::from_secs(1) * spaced / 3;
    assert!(last.duration_since(first) + Duration::from_millis(5) >= least);
    let lane = store.campaign_lanes(campaign.id).await.unwrap().remove(0);
    assert_eq!(usize::try_from(lane.used_requests).unwrap(), arrived.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_ends_a_campaign_but_no_run_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let store = opened(&file).await;
    let server = TestServer::start(|_, _| answer());
    let prices = "prices: {currency: USD, models: {scripted: {input: 1000, output: 2000}}}";
    let (operator, findings) = OperatorConfig::read(prices, &|_| None);
    assert_eq!(findings, []);
    // A reply costs 50 thousandths for its question and 10 for itself.
    let caps = FleetCaps {
        cost: vec!["0.05".parse().unwrap()],
        prices: operator.prices,
        ..FleetCaps::default()
    };
    let campaign = planned(&store, &format!("http://{}", server.address()), caps).await;
    let over = WorkerEnd::Over(CampaignState::Capped);
    assert_eq!(two_workers(&file, &campaign).await, [over, over]);
    let lane = store.campaign_lanes(campaign.id).await.unwrap().remove(0);
    let requests = i64::try_from(server.requests().len()).unwrap();
    assert_eq!(lane.used_cost, requests * 60_000_000);
    let progress = store.campaign_progress(campaign.id).await.unwrap();
    assert!((1..=2).contains(&progress.done), "{progress:?}");
    let remark = store.campaign(campaign.id).await.unwrap().remark.unwrap();
    assert!(remark.contains("tokens or cost"), "{remark}");
    assert_eq!(PROGRAM, campaign.program);
}

/// An agent that looks for its servers at these addresses, and is asked at its own.
fn endpoint(name: &str, listen: &str) -> SubjectSpec {
    SubjectSpec {
        name: Some(name.to_owned()),
        deadline: None,
        kind: SubjectKind::Endpoint(EndpointSpec {
            urls: Urls {
                ag_ui: Some(format!("http://127.0.0.1:1/{name}")),
                ..Urls::default()
            },
            mcp_listen: Some(listen.parse().unwrap()),
            ..EndpointSpec::default()
        }),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_takes_one_run_at_a_time_gets_one_from_all_workers() {
    let directory = tempfile::tempdir().unwrap();
    let store = opened(&directory.path().join("store.db")).await;
    let specs = [
        endpoint("one", "127.0.0.1:5001"),
        endpoint("same-place", "127.0.0.1:5001"),
        endpoint("elsewhere", "127.0.0.1:5002"),
    ];
    let opening = OpenContext {
        environment: environment("planner"),
        notify: &|_| {},
        gate: None,
    };
    let subjects = specs.iter().map(|spec| open(spec, &opening).unwrap());
    let subjects: Vec<_> = subjects.collect();
    let wanted = settings("alone");
    let planned = PlannedCampaign::new(documents(), &specs, &subjects, wanted).unwrap();
    let campaign = planned.write(&store).await.unwrap();
    let claim = |owner: &str| RunClaim {
        campaign: campaign.id,
        owner: owner.to_owned(),
        lease_ms: 60_000,
        limit: 100,
        is_idle: true,
        has_lost: false,
    };
    let held = store.claim_runs(claim("a")).await.unwrap();
    // One of the two that are at the same address, and one of the other.
    let subjects: Vec<i64> = held.iter().map(|run| run.subject).collect();
    assert_eq!(subjects.len(), 2, "{subjects:?}");
    assert!(subjects.contains(&2), "{subjects:?}");
    let none = store.claim_runs(claim("b")).await.unwrap();
    assert!(none.is_empty(), "{none:?}");
}
