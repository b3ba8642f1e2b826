//! Tasks that sleep: what their tools have open lives as long as the task, or as long as the operator lets it.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail loudly")]

use std::time::{Duration, Instant};

use proofhouse_server::engine::Engine;
use proofhouse_test_support::http::{TestReply, TestServer};
use serde_json::{Map, json};

use crate::engine_support::{PATIENCE, World, begin, idle_after};

const SESSION: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: sums
description: Adds in a session.
EVICTION
actions:
  - name: add
    description: Adds one.
    execute:
      stateful_session:
        create: {method: POST, url: "http://ADDRESS/sessions"}
        extract: {id: $.id}
        execute: {method: PUT, url: "http://ADDRESS/sessions/{session.id}"}
        destroy: {method: DELETE, url: "http://ADDRESS/sessions/{session.id}"}
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: clerk
description: Helps.
prompt: You help.
capabilities: {sums: "*"}
"#;

fn service() -> TestServer {
    TestServer::start(|_, _| TestReply::Json(json!({"id": "s1"})))
}

fn world(service: &TestServer, eviction: &str) -> World {
    let manifests = SESSION.replace("ADDRESS", &service.address().to_string());
    World::new(&manifests.replace("EVICTION\n", eviction))
}

/// How often sessions were made, used and ended.
fn counts(service: &TestServer) -> [usize; 3] {
    let requests = service.requests();
    ["POST", "PUT", "DELETE"].map(|method| {
        let of = requests.iter().filter(|request| request.method == method);
        of.count()
    })
}

async fn until_counted(service: &TestServer, expected: [usize; 3]) {
    let started = Instant::now();
    while counts(service) != expected {
        assert!(started.elapsed() < PATIENCE, "{:?}", counts(service));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Says something to a task, and waits until it is idle again.
async fn say(engine: &Engine, task: &str, number: usize) {
    let message = Some("call sums".to_owned());
    let said = engine.message(task, message, Map::new(), None).await;
    said.unwrap();
    idle_after(engine, task, number).await;
    // Longer than a task without open tools would stay.
    tokio::time::sleep(Duration::from_millis(400)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_a_tool_lives_as_long_as_its_task() {
    let service = service();
    let world = world(&service, "");
    // One worker: a task that sleeps holds none.
    let engine = world.engine_with(|options| options.workers = 1).await;
    let task = begin(&engine, Some("call sums")).await.id;
    idle_after(&engine, &task, 1).await;
    for number in 2..=3 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        say(&engine, &task, number).await;
    }
    let other = begin(&engine, Some("call sums")).await.id;
    idle_after(&engine, &other, 1).await;
    assert_eq!(counts(&service), [2, 4, 0], "one session per task");
    engine.cancel(&task).await.unwrap();
    until_counted(&service, [2, 4, 1]).await;
    engine.shutdown(Duration::from_secs(10)).await;
    until_counted(&service, [2, 4, 2]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_tools_are_put_away_unless_their_manifest_forbids_it() {
    for (eviction, evicted) in [("", true), ("idle_eviction: never\n", false)] {
        let service = service();
        let world = world(&service, eviction);
        let change = |options: &mut proofhouse_server::engine::EngineOptions| {
            options.idle_tools = Duration::from_millis(100);
        };
        let engine = world.engine_with(change).await;
        let task = begin(&engine, Some("call sums")).await.id;
        idle_after(&engine, &task, 1).await;
        if evicted {
            until_counted(&service, [1, 1, 1]).await;
        } else {
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
        say(&engine, &task, 2).await;
        let made = if evicted { 2 } else { 1 };
        assert_eq!(counts(&service)[..2], [made, 2], "{eviction}");
        engine.shutdown(Duration::from_secs(10)).await;
        until_counted(&service, [made, 2, made]).await;
    }
}
