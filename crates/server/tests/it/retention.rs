//! Data ends: under a steady load the database stops growing, because finished tasks end and what is old is removed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_server::engine::{Engine, EngineRetention, OperatorSetup, TaskRequest};
use proofhouse_store::model::Retention;
use serde_json::json;

use crate::engine_support::{MANIFESTS, PATIENCE, World, ping, post};

/// Rounds of the same load, and after how many of them the size is the usual one. What is never removed makes the last size four
/// times that.
const ROUNDS: usize = 12;
const WARM_UP: usize = 3;
/// Tasks and events of a round; more than a sweep removes at once.
const TASKS: u64 = 60;

const ANSWERER: &str = r"
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: answerer
description: Listens to nothing.
prompt: You answer.
";

/// Keeps nothing that is done, and removes a few rows at a time.
const NOTHING: EngineRetention = EngineRetention {
    idle_tasks_ms: Some(0),
    rows: Retention {
        dedupe_ms: 0,
        events_ms: Some(0),
        ended_tasks_ms: Some(0),
        turns_ms: None,
        traces_ms: Some(0),
        keys_ms: None,
        channels_ms: Some(0),
        batch: 10,
    },
    audit_ms: None,
};

/// Begins tasks that answer once and listen to nothing, and posts an event beside each.
async fn load(engine: &Engine, number: u64) {
    for task in 0..TASKS {
        let request = TaskRequest {
            namespace: "demo".to_owned(),
            agent: "answerer".to_owned(),
            message: Some(format!(
                "Task {task} of round {number}: {}",
                "x".repeat(2_000)
            )),
            origin: json!({"by": "test"}),
            ..TaskRequest::default()
        };
        engine.start_task(request).await.unwrap();
        post(engine, "hub", &ping(number * TASKS + task)).await;
    }
}

async fn round(engine: &Engine, number: u64) {
    load(engine, number).await;
    gone(engine).await;
}

/// Waits until no task and no event is left.
async fn gone(engine: &Engine) {
    let began = Instant::now();
    loop {
        let stats = engine.store().stats().await.unwrap();
        let events = engine.store().events(proofhouse_store::model::EventFilter {
            limit: 1,
            ..Default::default()
        });
        let is_empty = stats.tasks.values().sum::<i64>() == 0 && stats.unrouted_events == 0;
        if is_empty && events.await.unwrap().is_empty() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{stats:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_stops_growing() {
    let world = World::new(&format!("{}{ANSWERER}", MANIFESTS.trim_end()));
    let engine = world
        .engine_with(|options| {
            options.retention = NOTHING;
            options.sweep_every = Duration::from_millis(50);
        })
        .await;
    let mut sizes = Vec::new();
    for number in 0..ROUNDS {
        round(&engine, u64::try_from(number).unwrap()).await;
        let file = rusqlite::Connection::open(world.database()).unwrap();
        let pages = "SELECT page_count FROM pragma_page_count()";
        let pages: i64 = file.query_row(pages, [], |row| row.get(0)).unwrap();
        sizes.push(pages);
    }
    let usual = sizes[..WARM_UP].iter().copied().max().unwrap();
    let last = sizes[WARM_UP..].iter().copied().max().unwrap();
    println!("pages after each round: {sizes:?}");
    // How far a sweep gets while a round goes on is chance.
    assert!(last < 2 * usual, "it grows: {sizes:?}");
    engine.shutdown(PATIENCE).await;
}

/// One sweep goes on until everything that is due is gone, though it removes ten rows at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_goes_on_until_everything_is_gone() {
    let world = World::new(&format!("{}{ANSWERER}", MANIFESTS.trim_end()));
    let engine = world.engine().await;
    load(&engine, 0).await;
    let answered = async || {
        let stats = engine.store().stats().await.unwrap();
        let idle = stats.tasks.get("idle").copied().unwrap_or(0);
        idle.unsigned_abs() == TASKS && stats.unrouted_events + stats.pending_deliveries == 0
    };
    let began = Instant::now();
    // Idle before the first input and after the last are the same state; an answer is not.
    let outputs = || {
        let file = rusqlite::Connection::open(world.database()).unwrap();
        let sql = "SELECT COUNT(*) FROM turns WHERE kind = 'output'";
        file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    while !answered().await || outputs().unsigned_abs() < TASKS {
        assert!(began.elapsed() < PATIENCE, "the tasks are not worked off");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine.shutdown(PATIENCE).await;
    let engine = world
        .engine_with(|options| {
            options.retention = NOTHING;
            // Once, at the start.
            options.sweep_every = 10 * PATIENCE;
        })
        .await;
    gone(&engine).await;
    engine.shutdown(PATIENCE).await;
}

/// What the operator's file says after it was read again holds from the next sweep on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_retention_holds() {
    let world = World::new(&format!("{}{ANSWERER}", MANIFESTS.trim_end()));
    let mut setup = None;
    let engine = world
        .engine_with(|options| {
            options.sweep_every = Duration::from_millis(50);
            setup = Some(OperatorSetup {
                host: Arc::clone(&options.host),
                environment: options.environment.clone(),
                client: Arc::clone(&options.client),
                webhooks: options.webhooks.clone(),
                prices: options.prices.clone(),
                retention: NOTHING,
            });
        })
        .await;
    load(&engine, 0).await;
    engine.reconfigure(setup.unwrap());
    gone(&engine).await;
    engine.shutdown(PATIENCE).await;
}
