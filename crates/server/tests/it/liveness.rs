//! Whatever was acknowledged makes progress: after stalls of the store, and however much waits before a command.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_agent::task::{Decision, Turn};
use proofhouse_server::engine::{Engine, EngineOptions, MAX_LEASE};
use proofhouse_store::model::{DirectDelivery, LeaseKind, TaskState};
use serde_json::{Map, json};

use crate::engine_http::{Served, request, text_of};
use crate::engine_support::{
    MANIFESTS, PATIENCE, World, begin, idle_after, inputs, ping, post, routed, until,
};

/// Deliveries that wait; more than are ever read at once.
const MANY: u64 = 70;
/// Tasks that a stall catches.
const TASKS: usize = 30;
const LONG_MS: i64 = 600_000;

async fn say(engine: &Engine, task: &str, message: &str) {
    let said = engine.message(task, Some(message.to_owned()), Map::new(), None);
    said.await.unwrap();
}

/// Tasks that are about to be let go of when the store stalls are let go of afterwards, and go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_failed_is_made_up_for() {
    let world = World::new(MANIFESTS);
    let engine = world
        .engine_with(|options| {
            options.linger = Duration::from_millis(1_500);
            // No lease runs out while nothing can be written.
            options.lease = MAX_LEASE;
        })
        .await;
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        tasks.push(begin(&engine, Some("hello")).await.id);
    }
    for task in &tasks {
        idle_after(&engine, task, 1).await;
    }
    // Nothing can be written until every task could not be let go of.
    let mut lock = rusqlite::Connection::open(world.database()).unwrap();
    let held = lock
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .unwrap();
    let (timings, began) = (engine.store().timings(), Instant::now());
    while engine.working() > 0 || timings.writes.failures() == 0 {
        assert!(began.elapsed() < PATIENCE, "the tasks are never let go of");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(held);
    let began = Instant::now();
    // A command is obeyed as well as a message.
    let cancelled = tasks.remove(0);
    while engine.cancel(&cancelled).await.is_err() {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until(&engine, &cancelled, |row, _| row.state == TaskState::Ended).await;
    for task in &tasks {
        while engine
            .message(
                task,
                Some("go on".to_owned()),
                Map::new(),
                Some("m".to_owned()),
            )
            .await
            .is_err()
        {
            assert!(began.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    for task in &tasks {
        let turns = idle_after(&engine, task, 2).await;
        assert_eq!(inputs(&turns).len(), 2, "{turns:#?}");
    }
    engine.shutdown(PATIENCE).await;
}

/// The manifests, with a question to a person before the agent calls anything.
fn asking() -> String {
    MANIFESTS.replace(
        "    before:\n",
        "    before:\n      - {condition: \"!has(event)\", assert: \"review('ann')\"}\n",
    )
}

/// A task that waits for a person, that nobody works on, and that many events wait for.
async fn waiting_behind_many(engine: &Engine) -> String {
    let task = begin(engine, Some("call hub {\"number\": 7}")).await.id;
    until(engine, &task, |row, _| row.state == TaskState::Waiting).await;
    let began = Instant::now();
    while engine.working() > 0 {
        assert!(began.elapsed() < PATIENCE, "the task is never put away");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for id in 0..MANY {
        routed(engine, "hub", &ping(id)).await;
    }
    task
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_read_before_what_waits() {
    let world = World::new(&asking());
    let engine = world
        .engine_with(|options| options.park = Duration::from_millis(200))
        .await;
    let task = waiting_behind_many(&engine).await;
    approved(&engine, &task).await;
    engine.shutdown(PATIENCE).await;
}

/// Approves what a task asks; it makes its call once, and then gets everything that waits.
async fn approved(engine: &Engine, task: &str) {
    engine
        .decide(task, 1, Decision::Approve, json!({}))
        .await
        .unwrap();
    let turns = idle_after(engine, task, 1 + usize::try_from(MANY).unwrap()).await;
    let calls = turns
        .iter()
        .filter(|turn| matches!(turn, Turn::Calling { .. }))
        .count();
    assert_eq!(calls, 1, "{turns:#?}");
}

/// The same in a process that was started after everything had come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_read_first_after_a_restart() {
    let world = World::new(&asking());
    let parked = |options: &mut EngineOptions| options.park = Duration::from_millis(200);
    let engine = world.engine_with(parked).await;
    let task = waiting_behind_many(&engine).await;
    engine.shutdown(PATIENCE).await;
    let engine = world.engine_with(parked).await;
    approved(&engine, &task).await;
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_is_read_before_what_waits() {
    let world = World::new(&asking());
    let engine = world
        .engine_with(|options| options.park = Duration::from_millis(200))
        .await;
    let task = waiting_behind_many(&engine).await;
    engine.cancel(&task).await.unwrap();
    until(&engine, &task, |row, _| row.state == TaskState::Ended).await;
    engine.shutdown(PATIENCE).await;
}

/// A cancel that many newer deliveries came after ends the task before any of them is given to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_is_read_before_what_came_later() {
    let world = World::new(MANIFESTS);
    let engine = world.engine().await;
    let task = begin(&engine, None).await.id;
    // Nobody works on it until all of this is kept.
    let store = Arc::clone(engine.store());
    let other = store.acquire(LeaseKind::Task, &task, "other", LONG_MS);
    let other = other.await.unwrap().unwrap();
    engine.cancel(&task).await.unwrap();
    for number in 0..MANY {
        say(&engine, &task, &format!("later {number}")).await;
    }
    store.release(other.held()).await.unwrap();
    let turns = until(&engine, &task, |row, _| row.state == TaskState::Ended).await;
    assert_eq!(inputs(&turns), [], "{turns:#?}");
    engine.shutdown(PATIENCE).await;
}

/// An interruption is obeyed while many events wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interruption_is_read_before_what_came_later() {
    let world = World::new(MANIFESTS);
    let engine = world.engine().await;
    let task = begin(&engine, None).await.id;
    let store = Arc::clone(engine.store());
    let other = store.acquire(LeaseKind::Task, &task, "other", LONG_MS);
    let other = other.await.unwrap().unwrap();
    engine.interrupt(&task).await.unwrap();
    for id in 0..MANY {
        post(&engine, "hub", &ping(id)).await;
    }
    store.release(other.held()).await.unwrap();
    let turns = until(&engine, &task, |row, _| row.state == TaskState::Interrupted).await;
    assert_eq!(inputs(&turns), [], "{turns:#?}");
    engine.shutdown(PATIENCE).await;
}

/// A task that waits for more keeps nobody from working, however long it waits: one worker is enough for all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_more_keeps_nobody_from_working() {
    let world = World::new(MANIFESTS);
    let engine = world
        .engine_with(|options| {
            options.workers = 1;
            // Longer than the test.
            options.linger = 2 * PATIENCE;
        })
        .await;
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        tasks.push(begin(&engine, Some("hello")).await.id);
    }
    for task in &tasks {
        idle_after(&engine, task, 1).await;
    }
    engine.shutdown(PATIENCE).await;
}

/// Tasks whose agent is in no manifest any more are told of and can be ended. Nobody is promised anything of them, and they
/// make the server unready for nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_without_its_agent_is_told_of_and_holds_nobody_up() {
    let world = World::new(&asking());
    let parked = |options: &mut EngineOptions| options.park = Duration::from_millis(200);
    let engine = world.engine_with(parked).await;
    let asks = begin(&engine, Some("call hub {\"number\": 7}")).await.id;
    until(&engine, &asks, |row, _| row.state == TaskState::Waiting).await;
    let idle = begin(&engine, None).await.id;
    engine.shutdown(PATIENCE).await;
    // Acknowledged while there was an agent, an hour ago.
    let kept = |name: &str, body| DirectDelivery {
        key: None,
        name: name.to_owned(),
        body,
        same: Vec::new(),
    };
    let store = Arc::clone(engine.store());
    let message = kept("message", json!({"message": "hello", "parameters": {}}));
    store.deliver(&idle, message).await.unwrap();
    let answer = kept("control.approve", json!({"review": 1, "about": {}}));
    store.command(&asks, answer).await.unwrap();
    store.close().await;
    drop((store, engine));
    let database = rusqlite::Connection::open(world.database()).unwrap();
    for change in [
        "UPDATE deliveries SET created_at = created_at - 3600000",
        "UPDATE tasks SET ready_at = ready_at - 3600000",
    ] {
        assert!(database.execute(change, []).unwrap() >= 2);
    }
    drop(database);
    std::fs::remove_file(world.manifests().join("all.yaml")).unwrap();
    let engine = Arc::new(world.engine().await);
    let served = Served::start(&engine).await;
    assert_eq!(text_of(served.api, "/v1/ready").await.0, 200);
    let (_, counts) = text_of(served.api, "/v1/metrics").await;
    assert!(
        counts.contains("proofhouse_tasks_without_agent 2"),
        "{counts}"
    );
    for line in [
        format!("POST /v1/tasks/{idle}/messages"),
        format!("POST /v1/tasks/{asks}/reviews/1"),
        format!("POST /v1/tasks/{asks}/interrupt"),
    ] {
        let body = match &line {
            line if line.ends_with("messages") => r#"{"message": "more"}"#,
            line if line.ends_with("1") => r#"{"approve": true}"#,
            _ => "",
        };
        let (status, problem) = request(served.api, &line, "", body).await;
        assert_eq!(status, 409, "{line}: {problem}");
        let why = problem["detail"].as_str().unwrap();
        assert!(why.contains("there is no agent `demo/clerk`"), "{why}");
    }
    for task in [&idle, &asks] {
        let (_, page) = text_of(served.api, &format!("/dashboard/tasks/{task}")).await;
        assert!(
            page.contains("stuck") && page.contains("there is no agent"),
            "{page}"
        );
        let (_, list) = text_of(served.api, "/dashboard?state=stuck").await;
        assert!(list.contains(task.as_str()), "{list}");
        engine.cancel(task).await.unwrap();
        until(&engine, task, |row, _| row.state == TaskState::Ended).await;
    }
    let (_, counts) = text_of(served.api, "/v1/metrics").await;
    assert!(
        counts.contains("proofhouse_tasks_without_agent 0"),
        "{counts}"
    );
    engine.shutdown(PATIENCE).await;
}
