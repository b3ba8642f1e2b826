//! A run that ends its workers takes no others with it.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use proofhouse_fleet::caps::FleetCaps;
use proofhouse_fleet::report;
use proofhouse_fleet::worker::WorkerEnd;
use proofhouse_store::Store;
use proofhouse_store::model::CampaignState;
use proofhouse_subjects::EnvironmentLookup;
use proofhouse_test_support::http::TestServer;

use crate::caps::{answer, planned};
use crate::support::{PROGRAM, worker_of};
use crate::work::store;

/// The run that ends whoever makes it.
const DEADLY: i64 = 0;
/// How long its workers may be silent; it ends when the test says so.
const LEASE: i64 = 60_000;

/// The requests that wait for their answers, by the key of who asks, and whose are answered.
#[derive(Default)]
struct Provider {
    held: Mutex<(HashMap<String, usize>, u64)>,
    changed: Condvar,
}

impl Provider {
    /// Holds a request until the next time that all are answered.
    fn hold(&self, key: &str) {
        let mut held = self.held.lock().unwrap();
        *held.0.entry(key.to_owned()).or_default() += 1;
        let round = held.1;
        while held.1 == round {
            held = self.changed.wait(held).unwrap();
        }
    }

    fn waiting(&self, key: &str) -> usize {
        self.held.lock().unwrap().0.get(key).copied().unwrap_or(0)
    }

    fn answer_all(&self) {
        let mut held = self.held.lock().unwrap();
        held.0.clear();
        held.1 += 1;
        self.changed.notify_all();
    }
}

/// Answers what a worker asks until it makes the deadly run, and the others that it has are under way, too.
async fn until_deadly(store: &Store, campaign: i64, owner: &str, provider: &Provider) {
    loop {
        let runs = store.renew_runs(campaign, owner, LEASE).await.unwrap();
        let waiting = provider.waiting(&format!("Bearer {owner}"));
        if runs.is_empty() || waiting < runs.len() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        } else if runs.iter().any(|(place, _)| *place == DEADLY) {
            return;
        } else {
            provider.answer_all();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_neighbours_of_a_run_that_ends_its_workers_are_made() {
    let (_directory, store) = store().await;
    let provider = Arc::new(Provider::default());
    let server = TestServer::start({
        let provider = Arc::clone(&provider);
        move |request, _| {
            provider.hold(request.header("authorization").unwrap_or_default());
            answer()
        }
    });
    let address = format!("http://{}", server.address());
    let campaign = planned(&store, &address, FleetCaps::default()).await;
    let mut lost = 0;
    let end = loop {
        let owner = format!("w{lost}");
        let environment: EnvironmentLookup = {
            let key = owner.clone();
            Arc::new(move |name: &str| (name == "PROOFHOUSE_MODEL_KEY").then(|| key.clone()))
        };
        let working = worker_of(&store, &owner, &campaign, (None, 6), environment);
        tokio::select! {
            end = working => break end.unwrap(),
            () = until_deadly(&store, campaign.id, &owner, &provider) => {}
        }
        // The worker is gone, and has told nobody.
        provider.answer_all();
        lost += 1;
        assert!(lost <= 3, "it is not tried a fourth time");
        store.renew_runs(campaign.id, &owner, 0).await.unwrap();
        store.take_back_runs(campaign.id, LEASE).await.unwrap();
    };
    assert_eq!(end, WorkerEnd::Over(CampaignState::Finished));
    assert_eq!(lost, 3);
    let campaign = store.campaign(campaign.id).await.unwrap();
    let stored = report::read(&store, &campaign, PROGRAM).await.unwrap();
    let of_losses = stored.result.runs.iter().filter(|run| {
        let error = run.error.as_deref().unwrap_or_default();
        error.contains("workers were lost")
    });
    let of_losses: Vec<&str> = of_losses.map(|run| run.id.as_str()).collect();
    assert_eq!(of_losses.len(), 1, "{of_losses:?}");
    assert!(stored.result.runs.len() > 2);
}
