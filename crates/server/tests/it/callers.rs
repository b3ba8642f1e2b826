//! What holders of keys ask for over HTTP: whose words are whose, who may answer for whom, and what the audit log says of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_server::engine::{Engine, EngineOptions};
use proofhouse_server::key_change::{self, KeyOrder};
use proofhouse_server::keys::{KeyScope, KeySecret};
use proofhouse_store::model::{AuditFilter, LeaseKind, TaskState};
use serde_json::{Value, json};

use crate::engine_http::{Served, request};
use crate::engine_support::{MANIFESTS, PATIENCE, World, begin, idle_after, inputs, until};

const LONG_MS: i64 = 600_000;

/// A new key, as a header.
async fn key(engine: &Engine, scopes: &[KeyScope], holder: Option<&str>) -> String {
    let secret = KeySecret::new().unwrap();
    let order = KeyOrder {
        name: "key",
        scopes,
        holder: holder.map(str::to_owned),
        ..KeyOrder::default()
    };
    let kept = key_change::keep(engine.store(), &secret, order).await;
    kept.unwrap();
    format!("authorization: Bearer {}\r\n", secret.reveal())
}

/// How often an action is in the audit log with each outcome: `done`, then `refused`.
async fn logged(engine: &Engine, action: &str) -> [usize; 2] {
    let filter = AuditFilter {
        limit: 1_000,
        ..AuditFilter::default()
    };
    let entries = engine.store().audit(filter).await.unwrap();
    let entries = entries.into_iter().map(|one| one.entry);
    let entries: Vec<Value> = entries
        .map(|text| serde_json::from_str(&text).unwrap())
        .collect();
    ["done", "refused"].map(|outcome| {
        let found = entries.iter();
        found
            .filter(|entry| entry["action"] == action && entry["outcome"] == outcome)
            .count()
    })
}

/// A task that asks anybody before it calls anything, and on which nobody works.
async fn question(engine: &Engine, task: &str) {
    until(engine, task, |row, _| row.state == TaskState::Waiting).await;
    let began = Instant::now();
    while engine.working() > 0 {
        assert!(began.elapsed() < PATIENCE, "the task is never put away");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn asking() -> String {
    MANIFESTS.replace(
        "    before:\n",
        "    before:\n      - {condition: \"!has(event)\", assert: \"review('')\"}\n",
    )
}

fn parked(options: &mut EngineOptions) {
    options.park = Duration::from_millis(200);
}

/// A person may have several programs, each with a key. What one of them says is not what the other has said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotency_key_of_a_message_belongs_to_a_key_of_the_api() {
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let served = Served::start_with_keys(&engine).await;
    let scopes = [KeyScope::TasksBegin, KeyScope::TasksRead];
    let keys = [
        key(&engine, &scopes, Some("ann@example.com")).await,
        key(&engine, &scopes, Some("ann@example.com")).await,
    ];
    let task = begin(&engine, None).await.id;
    let line = format!("POST /v1/tasks/{task}/messages");
    let say = async |key: &str, text: &str| {
        let headers = format!("{key}idempotency-key: same\r\n");
        let body = json!({"message": text}).to_string();
        request(served.api, &line, &headers, &body).await
    };
    let (status, first) = say(&keys[0], "hello").await;
    assert_eq!(status, 202, "{first}");
    let (status, second) = say(&keys[1], "hello").await;
    assert_eq!(status, 202, "{second}");
    assert_ne!(first["delivery"], second["delivery"]);
    assert_eq!(say(&keys[0], "hello").await, (202, first));
    assert_eq!(inputs(&idle_after(&engine, &task, 2).await).len(), 2);
    // What was refused is not in the log as done.
    assert_eq!(say(&keys[0], "other words").await.0, 422);
    let done = async || logged(&engine, "task.message").await;
    let began = Instant::now();
    while done().await[1] == 0 {
        assert!(began.elapsed() < PATIENCE, "the refusal is not in the log");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(done().await, [3, 1]);
    engine.shutdown(PATIENCE).await;
}

/// Of two who answer a question, the log says only of one that it is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_came_too_late_is_not_in_the_log_as_done() {
    let world = World::new(&asking());
    let engine = Arc::new(world.engine_with(parked).await);
    let served = Served::start_with_keys(&engine).await;
    let task = begin(&engine, Some("call hub {\"number\": 7}")).await.id;
    question(&engine, &task).await;
    // Nobody obeys until both have answered.
    let other = engine
        .store()
        .acquire(LeaseKind::Task, &task, "other", LONG_MS);
    let other = other.await.unwrap().unwrap();
    let scopes = [KeyScope::TasksApprove];
    let (ann, bob) = (
        key(&engine, &scopes, Some("ann")).await,
        key(&engine, &scopes, Some("bob")).await,
    );
    let line = format!("POST /v1/tasks/{task}/reviews/1");
    let answer = async |key: &str, approve: bool| {
        let body = json!({"approve": approve}).to_string();
        crate::engine_http::answer(served.api, &line, key, &body)
            .await
            .0
    };
    assert_eq!(answer(&ann, true).await, 204);
    assert_eq!(answer(&bob, false).await, 409);
    // Whoever says the same is right.
    assert_eq!(answer(&bob, true).await, 204);
    let began = Instant::now();
    while logged(&engine, "task.review").await[1] == 0 {
        assert!(began.elapsed() < PATIENCE, "the refusal is not in the log");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(logged(&engine, "task.review").await, [2, 1]);
    engine.store().release(other.held()).await.unwrap();
    engine.shutdown(PATIENCE).await;
}

/// Whoever may do everything still does not approve what they began, in nobody's name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_does_not_answer_for_others() {
    let world = World::new(&asking());
    let engine = Arc::new(world.engine_with(parked).await);
    let served = Served::start_with_keys(&engine).await;
    let admin = key(&engine, &[KeyScope::Admin], None).await;
    let gateway = [KeyScope::Admin, KeyScope::UsersAct];
    let gateway = key(&engine, &gateway, None).await;
    let body = json!({"agent": "clerk", "message": "call hub {\"number\": 7}"}).to_string();
    let (status, task) = request(served.api, "POST /v1/tasks", &admin, &body).await;
    assert_eq!(status, 201, "{task}");
    let task = task["id"].as_str().unwrap();
    question(&engine, task).await;
    let line = format!("POST /v1/tasks/{task}/reviews/1");
    let answer = async |key: &str, body: Value| {
        crate::engine_http::answer(served.api, &line, key, &body.to_string())
            .await
            .0
    };
    assert_eq!(answer(&admin, json!({"approve": true})).await, 403);
    let as_bob = json!({"approve": true, "user": "bob"});
    assert_eq!(answer(&admin, as_bob.clone()).await, 403);
    assert_eq!(answer(&gateway, as_bob).await, 204);
    engine.shutdown(PATIENCE).await;
}
