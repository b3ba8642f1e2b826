//! What can never be kept, or breaks whoever works on it, ends with a reason or is put off, and holds up nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use proofhouse_agent::model::{Model, ModelError, ModelReply, ModelRequest, ModelSink};
use proofhouse_server::engine::{Engine, MAX_LEASE};
use proofhouse_store::model::limits::MAX_JSON_BYTES;
use proofhouse_store::model::{DeliveryState, TaskState};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, json};

use crate::engine_http::{Served, text_of};
use crate::engine_support::{
    MANIFESTS, PATIENCE, World, begin, idle_after, inputs, ping, routed, until,
};

/// A trigger for somebody whose name no store can hold.
const FOR_NOBODY: &str = r#"
---
kind: commonagents.info/v1beta2/trigger
namespace: demo
name: on-ping
agent: clerk
owner: "ro\0bot"
enabled: true
source:
  type: hub
message: "A ping."
"#;

async fn say(engine: &Engine, task: &str, message: &str) {
    let said = engine.message(task, Some(message.to_owned()), Map::new(), None);
    said.await.unwrap();
}

/// A task that a trigger would begin can never be kept: whoever listens gets the event all the same, and people see why there is
/// no task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_cannot_be_kept_is_not_begun_for_ever() {
    let world = World::new(&format!("{MANIFESTS}{FOR_NOBODY}"));
    let engine = world.engine().await;
    let listener = begin(&engine, None).await.id;
    let detail = routed(&engine, "hub", &ping(1)).await;
    let outcome = detail.event.summary.outcome.unwrap();
    let trigger = &outcome["triggers"][0];
    assert_eq!(trigger["trigger"], "demo/on-ping");
    let why = trigger["failed"].as_str().unwrap_or_default();
    assert!(why.contains("cannot be stored"), "{trigger}");
    assert!(trigger["task"].is_null(), "{trigger}");
    let turns = idle_after(&engine, &listener, 1).await;
    assert_eq!(inputs(&turns)[0].0, "ping 1");
    let began = Instant::now();
    while engine
        .store()
        .triggers()
        .await
        .unwrap()
        .iter()
        .all(|one| one.failures == 0)
    {
        assert!(began.elapsed() < PATIENCE, "the failure is not counted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine.shutdown(PATIENCE).await;
}

/// What is said to a task fits where it waits, and not into a turn, which says more: it is not given, with a reason, and the next
/// input is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_that_cannot_be_kept_is_discarded() {
    let takes =
        "prompt: You help.\nparameters: {properties: {pad: {type: string, default: none}}}\n";
    let world = World::new(&MANIFESTS.replace("prompt: You help.\n", takes));
    let engine = world
        .engine_with(|options| {
            // A debug build takes its time for so much.
            options.lease = MAX_LEASE;
        })
        .await;
    let task = begin(&engine, None).await.id;
    let mut parameters = Map::new();
    let room = MAX_JSON_BYTES
        - json!({"message": "hi", "parameters": {"pad": ""}})
            .to_string()
            .len();
    parameters.insert("pad".to_owned(), "x".repeat(room).into());
    let said = engine.message(&task, Some("hi".to_owned()), parameters, None);
    said.await.unwrap();
    say(&engine, &task, "hello").await;
    let turns = idle_after(&engine, &task, 1).await;
    assert_eq!(inputs(&turns)[0].0, "hello");
    let deliveries = engine.store().deliveries(&task, None, 10).await.unwrap();
    let first = deliveries.last().unwrap();
    assert_eq!(first.state, DeliveryState::Discarded);
    let why = first.reason.as_deref().unwrap();
    assert!(why.contains("too large"), "{why}");
    engine.shutdown(PATIENCE).await;
}

/// Says more than a turn may have, and counts how often it is asked.
struct Endless(Arc<AtomicUsize>);

impl Model for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        _request: &'a ModelRequest,
        _events: &'a mut dyn ModelSink,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(ModelReply {
                model: "endless".to_owned(),
                text: "x".repeat(MAX_JSON_BYTES),
                ..ModelReply::default()
            })
        })
    }
}

/// A turn that cannot be kept ends its task, with the reason; nobody is asked for it again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_cannot_be_kept_ends_its_task() {
    let asked = Arc::new(AtomicUsize::new(0));
    let mut world = World::new(MANIFESTS);
    world.model = Arc::new(Endless(Arc::clone(&asked)));
    let engine = world.engine().await;
    let task = begin(&engine, Some("hello")).await.id;
    until(&engine, &task, |row, _| row.state == TaskState::Ended).await;
    let row = engine.store().task(&task).await.unwrap();
    let why = row.detail.unwrap()["failed"].as_str().unwrap().to_owned();
    assert!(why.contains("too large"), "{why}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    engine.shutdown(PATIENCE).await;
}

/// A task whose turns cannot be read is left alone for a while before it is tried again, keeps nobody from being ready, and
/// can be ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_cannot_be_read_is_put_off() {
    let world = World::new(MANIFESTS);
    let engine = world.engine().await;
    let task = begin(&engine, Some("hello")).await.id;
    idle_after(&engine, &task, 1).await;
    engine.shutdown(PATIENCE).await;
    engine.store().close().await;
    drop(engine);
    let database = rusqlite::Connection::open(world.database()).unwrap();
    let damage = r#"UPDATE turns SET body = '{"kind": "nonsense"}'"#;
    assert!(database.execute(damage, []).unwrap() > 0);
    let engine = Arc::new(world.engine().await);
    let served = Served::start(&engine).await;
    say(&engine, &task, "hello?").await;
    let began = Instant::now();
    loop {
        let put_off = "SELECT COUNT(*) FROM tasks WHERE ready_at > unixepoch('subsec') * 1000";
        let count: i64 = database.query_row(put_off, [], |row| row.get(0)).unwrap();
        if count == 1 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "it is tried without a pause");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(text_of(served.api, "/v1/ready").await.0, 200);
    engine.cancel(&task).await.unwrap();
    let began = Instant::now();
    while engine.store().task(&task).await.unwrap().state != TaskState::Ended {
        assert!(began.elapsed() < PATIENCE, "it cannot be ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine.shutdown(PATIENCE).await;
}

/// Whatever breaks a loop of the engine does not end it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_that_panics_goes_on() {
    let world = World::new(MANIFESTS);
    let breaks = Arc::new(AtomicBool::new(false));
    let (shift, broken) = (world.shift.clone(), Arc::clone(&breaks));
    let metrics = Arc::new(proofhouse_server::metrics::Metrics::default());
    let counted = Arc::clone(&metrics);
    let engine = world
        .engine_with(|options| {
            options.metrics = counted;
            options.clock = Arc::new(move || {
                // The test itself is not among the tasks of the runtime: only the router looks at the clock then.
                let is_router = tokio::task::try_id().is_some();
                assert!(
                    !(is_router && broken.swap(false, Ordering::SeqCst)),
                    "a bug"
                );
                shift.now()
            });
        })
        .await;
    let task = begin(&engine, None).await.id;
    for number in 1..=3 {
        breaks.store(number == 2, Ordering::SeqCst);
        routed(&engine, "hub", &ping(number)).await;
        let count = usize::try_from(number).unwrap();
        assert_eq!(
            inputs(&idle_after(&engine, &task, count).await).len(),
            count
        );
    }
    let counts = metrics.text();
    let restarts = "proofhouse_engine_restarts_total{loop=\"router\"} 1";
    assert!(counts.contains(restarts), "{counts}");
    engine.shutdown(PATIENCE).await;
}

/// Manifests that break whoever reads them keep nobody from reading the next ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_are_read_again_after_a_panic() {
    let world = World::new(MANIFESTS);
    let engine = world
        .engine_with(|options| {
            let host = Arc::clone(&options.host);
            options.host = Arc::new(move |catalog| {
                let is_broken = catalog.agents().any(|agent| agent.name == "broken");
                assert!(!is_broken, "a bug");
                host(catalog)
            });
        })
        .await;
    let agents = || {
        let manifests = engine.manifests();
        let agents = manifests.catalog().agents();
        agents.map(|agent| agent.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(agents(), ["clerk"]);
    let before = engine.manifests().version;
    let other = "\nkind: commonagents.info/v1beta2/agent\nnamespace: demo\nname: NAME\ndescription: Helps.\nprompt: Help.\n";
    world.write("other.yaml", &other.replace("NAME", "broken"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.write("other.yaml", &other.replace("NAME", "whole"));
    let began = Instant::now();
    while agents().len() < 2 {
        assert!(
            began.elapsed() < PATIENCE,
            "the manifests are not read again"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(engine.manifests().version > before);
    engine.shutdown(PATIENCE).await;
}
