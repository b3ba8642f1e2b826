//! Workers and planners with only the grants of `deploy/postgres/`.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_fleet::retention;
use proofhouse_fleet::worker::WorkerEnd;
use proofhouse_store::model::CampaignState;
use proofhouse_store::{PostgresOptions, Store};
use proofhouse_test_support::postgres::Postgres;
use proofhouse_test_support::workspace;

use crate::support::{planned, settings, worker};

/// Runs a statement or files with `psql`.
fn psql(url: &str, arguments: &[&str]) {
    let done = Command::new("psql")
        .args([url, "-q", "-v", "ON_ERROR_STOP=1"])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {said}");
}

/// The address with another user, who has the password `x`.
fn of_role(url: &str, role: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, host) = rest.split_once('@').unwrap();
    format!("{scheme}://{role}:x@{host}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_and_planners_need_no_more_than_their_grants() {
    let Some(server) = Postgres::for_test("grants") else {
        return;
    };
    let url = server.url();
    // The owner opens it once, which makes the tables.
    let owner = Store::open_postgres(PostgresOptions::url(url))
        .await
        .unwrap();
    owner.close().await;
    let file = |name: &str| {
        let path = workspace::root().join("deploy/postgres").join(name);
        path.to_str().unwrap().to_owned()
    };
    let (work, plan) = (file("campaign-worker.sql"), file("campaign-planner.sql"));
    for role in ["fleet_worker", "fleet_planner"] {
        psql(url, &["-c", &format!("DROP ROLE IF EXISTS {role}")]);
        psql(
            url,
            &["-c", &format!("CREATE ROLE {role} LOGIN PASSWORD 'x'")],
        );
        psql(url, &["-v", &format!("role={role}"), "-f", &work]);
    }
    psql(url, &["-v", "role=fleet_planner", "-f", &plan]);
    let open = |role: &str| {
        let url = of_role(url, role);
        async move {
            Arc::new(
                Store::open_postgres(PostgresOptions::url(url))
                    .await
                    .unwrap(),
            )
        }
    };
    let planner = open("fleet_planner").await;
    let mut wanted = settings("granted");
    wanted.repeats = 1;
    let campaign = planned(&planner, wanted).await;
    let store = open("fleet_worker").await;
    let end = worker(&store, "w", &campaign, None).await.unwrap();
    assert_eq!(end, WorkerEnd::Over(CampaignState::Finished));
    // A worker can do no more.
    store
        .plan_campaign(proofhouse_store::model::NewCampaign {
            name: "mine".to_owned(),
            format: 1,
            program: String::new(),
            plan: String::new(),
            traces: None,
            namespace: String::new(),
            lanes: Vec::new(),
            blobs: Vec::new(),
        })
        .await
        .unwrap_err();
    store.prune_campaigns(0, 1).await.unwrap_err();
    store.stats().await.unwrap_err();
    let open = |_: &str| unreachable!("there are no traces");
    let pruned = retention::prune(&planner, Duration::ZERO, false, &open);
    let pruned = pruned.await.unwrap();
    assert_eq!(pruned.campaigns, ["granted@1"]);
    assert_eq!(pruned.results, campaign.total.unsigned_abs());
    planner.stats().await.unwrap_err();
}
