//! Workers whose store is away for a while: what it did not tell them, how they leave, and what they must not take from others.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofhouse_fleet::FleetError;
use proofhouse_fleet::join::WorkerTools;
use proofhouse_fleet::name::CampaignName;
use proofhouse_fleet::worker::{WorkerEnd, WorkerEvent, WorkerSettings, run_worker};
use proofhouse_store::model::{CampaignRow, CampaignState, RunClaim};
use proofhouse_store::{SimulatedDatabase, Store, StoreError, StoreFaults, TransactionFate};
use proofhouse_subjects::OpenContext;
use proofhouse_wire::CancellationToken;

use crate::support::{PROGRAM, environment, planned, settings};

/// Longer than any of these workers takes.
const HANGS: Duration = Duration::from_secs(30);

/// What a transaction meets, by its number among those that write, from 1, or none if it reads.
type Fate = Box<dyn Fn(Option<u32>) -> TransactionFate + Send + Sync>;

/// How one worker meets the database. Its clock stands still unless a test moves it.
struct Weather {
    fate: Fate,
    writes: AtomicU32,
    now: Arc<AtomicI64>,
}

impl StoreFaults for Weather {
    fn now(&self) -> i64 {
        self.now.load(Ordering::SeqCst)
    }

    fn arrive(&self, writes: bool) -> BoxFuture<'_, TransactionFate> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let number = writes.then(|| self.writes.fetch_add(1, Ordering::SeqCst) + 1);
            (self.fate)(number)
        })
    }

    fn answer(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// A database in memory, and its clock.
struct Shared {
    database: Arc<SimulatedDatabase>,
    now: Arc<AtomicI64>,
}

impl Shared {
    fn new() -> Self {
        Self {
            database: SimulatedDatabase::new().unwrap(),
            now: Arc::new(AtomicI64::new(1_000_000)),
        }
    }

    fn store(
        &self,
        fate: impl Fn(Option<u32>) -> TransactionFate + Send + Sync + 'static,
    ) -> Arc<Store> {
        let weather = Weather {
            fate: Box::new(fate),
            writes: AtomicU32::new(0),
            now: Arc::clone(&self.now),
        };
        let database = Arc::clone(&self.database);
        Arc::new(Store::simulated(database, Arc::new(weather)))
    }

    fn steady(&self) -> Arc<Store> {
        self.store(|_| TransactionFate::Done)
    }
}

/// Works with this lease until the campaign is over or `drain` is cancelled.
async fn worker(
    store: &Arc<Store>,
    campaign: &CampaignRow,
    lease: Duration,
    drain: &CancellationToken,
    listener: &(dyn Fn(&WorkerEvent<'_>) + Send + Sync),
) -> Result<WorkerEnd, FleetError> {
    let name = CampaignName {
        name: campaign.name.clone(),
        number: None,
    };
    let tools = WorkerTools {
        program: PROGRAM.to_owned(),
        ..WorkerTools::default()
    };
    let settings = WorkerSettings {
        owner: "worker".to_owned(),
        jobs: 100,
        lease,
        drain: Duration::from_millis(100),
        traces: None,
        program: PROGRAM.to_owned(),
    };
    let opening = OpenContext {
        environment: environment(),
        notify: &|_| {},
        gate: None,
    };
    let worked = run_worker(store, &name, &tools, &opening, &settings, listener, drain);
    let worked = tokio::time::timeout(HANGS, worked).await;
    worked.expect("the worker hangs").map(|(_, end)| end)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_a_claim_whose_answer_is_lost_are_made() {
    let shared = Shared::new();
    let campaign = planned(&shared.steady(), settings("cut")).await;
    // The first writing transaction says that the worker is there, the second hands out runs.
    let store = shared.store(|number| match number {
        Some(2) => TransactionFate::Unknown,
        _ => TransactionFate::Done,
    });
    let (lease, drain) = (Duration::from_secs(60), CancellationToken::new());
    let ended = worker(&store, &campaign, lease, &drain, &|_| {});
    let over = WorkerEnd::Over(CampaignState::Finished);
    assert_eq!(ended.await.unwrap(), over);
    let progress = store.campaign_progress(campaign.id).await.unwrap();
    assert_eq!(progress.done, campaign.total);
}

/// Whether an error says that the store is away.
fn is_away(error: &FleetError) -> bool {
    matches!(error, FleetError::Store(StoreError::Unavailable(_)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_asked_to_leave_does_not_wait_for_its_store() {
    let shared = Shared::new();
    let campaign = planned(&shared.steady(), settings("leaves")).await;
    // When the store goes away: before it tells anything, and with each of the first writing transactions.
    for last in 0..6 {
        let drain = CancellationToken::new();
        let store = shared.store({
            let (drain, is_gone) = (drain.clone(), AtomicU32::new(0));
            move |number| {
                if last == 0 || number.is_some_and(|number| number > last) {
                    is_gone.store(1, Ordering::SeqCst);
                }
                if is_gone.load(Ordering::SeqCst) == 0 {
                    return TransactionFate::Done;
                }
                drain.cancel();
                TransactionFate::Refused
            }
        });
        let lease = Duration::from_secs(60);
        let ended = worker(&store, &campaign, lease, &drain, &|_| {}).await;
        match ended {
            Ok(end) => assert_eq!(end, WorkerEnd::Drained, "{last}"),
            Err(error) => assert!(is_away(&error), "{last}: {error}"),
        }
        let steady = shared.steady();
        steady.release_runs(campaign.id, "worker").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_outage_nobody_takes_runs_of_workers_that_had_no_time_to_renew() {
    let shared = Shared::new();
    let steady = shared.steady();
    let campaign = planned(&steady, settings("outage")).await;
    let claim = RunClaim {
        campaign: campaign.id,
        owner: "other".to_owned(),
        lease_ms: 0,
        limit: 1_000,
        is_idle: true,
        has_lost: false,
    };
    let held = steady.claim_runs(claim).await.unwrap();
    assert!(!held.is_empty());
    // Five attempts, and the pauses between them, are longer than a lease.
    let lease = Duration::from_secs(3);
    let (drain, renewed) = (CancellationToken::new(), Arc::new(Mutex::new(None)));
    let runtime = tokio::runtime::Handle::current();
    let store = shared.store({
        let (drain, renewed) = (drain.clone(), Arc::clone(&renewed));
        let (campaign, is_back) = (campaign.id, AtomicU32::new(0));
        move |number| {
            match number {
                Some(2..=6) => return TransactionFate::Refused,
                Some(_) => {
                    is_back.store(number.unwrap_or(0), Ordering::SeqCst);
                }
                // It looks whether the campaign is over, after all that it takes from others: now the other renews.
                None if is_back.load(Ordering::SeqCst) > 6 && !drain.is_cancelled() => {
                    drain.cancel();
                    let (steady, renewed) = (Arc::clone(&steady), Arc::clone(&renewed));
                    runtime.spawn(async move {
                        let kept = steady.renew_runs(campaign, "other", 60_000).await;
                        *renewed.lock().unwrap() = Some(kept.unwrap());
                    });
                }
                None => {}
            }
            TransactionFate::Done
        }
    });
    let ended = worker(&store, &campaign, lease, &drain, &|_| {}).await;
    assert_eq!(ended.unwrap(), WorkerEnd::Drained);
    let kept = loop {
        if let Some(kept) = renewed.lock().unwrap().take() {
            break kept;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(kept.len(), held.len(), "{kept:?}");
}
