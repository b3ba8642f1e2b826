//! Claims per second of the store on PostgreSQL, beside a loop of bare `UPDATE … SKIP LOCKED` statements.

use std::sync::Arc;
use std::time::Instant;

use proofhouse_store::model::{
    CampaignBlob, NewCampaign, NewLane, NewRun, PlannedKind, RunClaim, RunGate,
};
use proofhouse_store::{PostgresOptions, Store};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::campaign::{median, verdict};
use crate::figure;
use crate::work::{rate, told};

/// Who claims at the same time, each over a connection of its own.
const WORKERS: usize = 8;
/// How many times as many claims the bare statements may make.
const ASKED_RATIO: f64 = 0.5;
/// Claims over each connection that do not count: PostgreSQL plans the first five of a statement anew.
const WARMING: usize = 6;
/// Rows that are written at once.
const BATCH: usize = 1_000;

const BARE_TABLE: &str = "DROP TABLE IF EXISTS bare; CREATE TABLE bare (place BIGINT PRIMARY KEY, state TEXT NOT NULL, \
     owner TEXT, until BIGINT NOT NULL); CREATE INDEX bare_waiting ON bare (place) WHERE state = 'waiting'";
const BARE_CLAIM: &str = "UPDATE bare SET state = 'running', owner = $1, until = $2 WHERE place IN (SELECT place FROM bare \
     WHERE state = 'waiting' ORDER BY place LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING place";

pub(super) fn run(url: &str, quick: bool) -> Result<(), String> {
    let runtime = Runtime::new().map_err(told)?;
    // A worker asks for as many runs as it has free jobs: for one, or for all sixteen.
    for (name, limit, runs) in [("claim", 1, 10_000), ("claim-16", 16, 50_000)] {
        let (rounds, runs) = if quick { (1, 1_000) } else { (3, runs) };
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let schema = format!("{}_{round}", name.replace('-', "_"));
            let claimed = runtime.block_on(through_store(url, schema, runs, limit))?;
            let bare = runtime.block_on(bare(url, runs, limit))?;
            // The first round warms up.
            if round > 0 {
                ours.push(claimed);
                peer.push(bare);
            }
        }
        let (ours, peer) = (median(ours), median(peer));
        let unit = format!("claims/s, {limit} at a time");
        figure::print(name, ours, peer, ours / peer, &unit);
        figure::say(&format!(
            "{name}: {:.2} of what bare statements do; asked is {ASKED_RATIO}: {}",
            ours / peer,
            verdict(ours / peer >= ASKED_RATIO)
        ));
    }
    Ok(())
}

/// A campaign of so many runs, worked off by nobody yet.
async fn planned(store: &Store, runs: usize) -> Result<i64, String> {
    let plan = "0".repeat(64);
    let campaign = NewCampaign {
        name: "claim".to_owned(),
        format: 1,
        program: "bench".to_owned(),
        plan: plan.clone(),
        traces: None,
        namespace: String::new(),
        lanes: vec![NewLane {
            name: "bench".to_owned(),
            ..NewLane::default()
        }],
        blobs: vec![CampaignBlob {
            digest: plan,
            body: b"{}".to_vec(),
        }],
    };
    let campaign = store.plan_campaign(campaign).await.map_err(told)?;
    let total = i64::try_from(runs).map_err(told)?;
    let run = |place: i64| NewRun {
        place,
        kind: PlannedKind::Attack,
        document: 0,
        subject: 0,
        repeat: place + 1,
        lane: 0,
        gate: RunGate::Open,
    };
    let places: Vec<i64> = (0..total).collect();
    for batch in places.chunks(BATCH) {
        let batch = batch.iter().copied().map(run).collect();
        store.add_runs(campaign.id, batch).await.map_err(told)?;
    }
    let begun = store.begin_campaign(campaign.id, total).await;
    begun.map_err(told)?;
    Ok(campaign.id)
}

async fn through_store(
    url: &str,
    schema: String,
    runs: usize,
    limit: usize,
) -> Result<f64, String> {
    let mut options = PostgresOptions::url(url);
    options.schema = Some(schema);
    let store = Arc::new(Store::open_postgres(options).await.map_err(told)?);
    let campaign = planned(&store, runs).await?;
    let claim_of = move |campaign, worker: usize| RunClaim {
        campaign,
        owner: format!("worker-{worker}"),
        lease_ms: 60_000,
        limit,
        is_idle: true,
        has_lost: false,
    };
    // Each connection is open and knows the statement, as that of a worker after its first claims. There is no such campaign.
    for _ in 0..WARMING {
        let mut warming = JoinSet::new();
        for worker in 0..WORKERS {
            let store = Arc::clone(&store);
            warming.spawn(async move {
                let none = store.claim_runs(claim_of(0, worker)).await;
                none.map(|none| none.len()).map_err(told)
            });
        }
        all(warming).await?;
    }
    let started = Instant::now();
    let mut working = JoinSet::new();
    for worker in 0..WORKERS {
        let store = Arc::clone(&store);
        working.spawn(async move {
            let mut claimed = 0;
            loop {
                let claim = claim_of(campaign, worker);
                match store.claim_runs(claim).await.map_err(told)?.len() {
                    0 => return Ok::<usize, String>(claimed),
                    some => claimed += some,
                }
            }
        });
    }
    let claimed = all(working).await?;
    let took = started.elapsed();
    store.close().await;
    complete(claimed, runs)?;
    Ok(rate(runs, took))
}

async fn bare(url: &str, runs: usize, limit: usize) -> Result<f64, String> {
    let client = connect(url).await?;
    client.batch_execute(BARE_TABLE).await.map_err(told)?;
    let last = i64::try_from(runs).map_err(told)? - 1;
    let fill = "INSERT INTO bare SELECT place, 'waiting', NULL, 0 FROM generate_series(0::BIGINT, $1) AS place";
    client.execute(fill, &[&last]).await.map_err(told)?;
    let limit = i64::try_from(limit).map_err(told)?;
    let mut clients = Vec::new();
    for _ in 0..WORKERS {
        let client = connect(url).await?;
        let claim = client.prepare(BARE_CLAIM).await.map_err(told)?;
        for _ in 0..WARMING {
            let none = client.query(&claim, &[&"nobody", &0_i64, &0_i64]);
            none.await.map_err(told)?;
        }
        clients.push((client, claim));
    }
    let started = Instant::now();
    let mut working = JoinSet::new();
    for (worker, (client, claim)) in clients.into_iter().enumerate() {
        working.spawn(async move {
            let owner = format!("worker-{worker}");
            let mut claimed = 0;
            loop {
                let rows = client.query(&claim, &[&owner, &60_000_i64, &limit]).await;
                match rows.map_err(told)?.len() {
                    0 => return Ok::<usize, String>(claimed),
                    some => claimed += some,
                }
            }
        });
    }
    let claimed = all(working).await?;
    let took = started.elapsed();
    complete(claimed, runs)?;
    Ok(rate(runs, took))
}

async fn connect(url: &str) -> Result<tokio_postgres::Client, String> {
    let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
    let (client, connection) = connected.map_err(told)?;
    // It ends with its client.
    tokio::spawn(connection);
    // As durable as what the store does.
    let durable = client.batch_execute("SET synchronous_commit = on").await;
    durable.map_err(told)?;
    Ok(client)
}

async fn all(mut working: JoinSet<Result<usize, String>>) -> Result<usize, String> {
    let mut sum = 0;
    while let Some(done) = working.join_next().await {
        sum += done.map_err(told)??;
    }
    Ok(sum)
}

/// A measurement is worth nothing unless every run was claimed once.
fn complete(claimed: usize, runs: usize) -> Result<(), String> {
    if claimed == runs {
        Ok(())
    } else {
        Err(format!("{claimed} of {runs} runs were claimed"))
    }
}
