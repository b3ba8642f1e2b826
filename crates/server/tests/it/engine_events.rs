//! Events on their way to tasks: duplicates, filters, allow lists, rules, timeouts, interruption, cold starts.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

use std::time::Duration;

use http::HeaderMap;
use proofhouse_agent::task::{Decision, Turn};
use proofhouse_server::engine::{
    Engine, ManifestSnapshot, TaskUpdate, WebhookOutcome, WebhookRefusal,
};
use proofhouse_store::model::{DeliveryRecord, DeliveryState, TaskFilter, TaskState, TriggerKind};
use proofhouse_tools::operator::OperatorConfig;
use serde_json::{Map, json};

use crate::engine_support::{
    MANIFESTS, PATIENCE, World, begin, comment, idle_after, inputs, ping, post, routed,
    routed_event, turns, until,
};

fn reasons(detail: &proofhouse_store::model::EventDetail) -> serde_json::Value {
    detail.event.summary.outcome.clone().unwrap()["discarded"]["because"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_reach_the_tasks_they_concern_once() {
    let world = World::new(MANIFESTS);
    let once = "webhooks: {hub: {scheme: none, dedupe: body}}\n";
    let (operator, _) = OperatorConfig::read(once, &|_| None);
    let engine = world
        .engine_with(|options| options.webhooks = operator.webhooks)
        .await;
    let task = begin(&engine, Some("hello")).await;
    idle_after(&engine, &task.id, 1).await;
    // No call has named a number yet.
    let early = routed(&engine, "hub", &comment(1, "acme", 7, "ann")).await;
    assert_eq!(reasons(&early)["empty_parameter"], 1, "{early:?}");
    engine
        .message(
            &task.id,
            Some("call hub {\"number\": 7}".to_owned()),
            Map::new(),
            None,
        )
        .await
        .unwrap();
    idle_after(&engine, &task.id, 2).await;
    // Another owner and another number stay out; a bot is kept out by a rule; a duplicate is one.
    let other = routed(&engine, "hub", &comment(2, "evil", 7, "ann")).await;
    assert_eq!(reasons(&other)["filter"], 2, "{other:?}");
    let other = routed(&engine, "hub", &comment(3, "acme", 8, "ann")).await;
    assert_eq!(reasons(&other)["filter"], 2);
    let good = comment(4, "acme", 7, "ann");
    let routed_once = routed(&engine, "hub", &good).await;
    assert_eq!(routed_once.event.summary.matched, 1);
    assert!(matches!(
        post(&engine, "hub", &good).await,
        WebhookOutcome::Duplicate(_)
    ));
    routed(&engine, "hub", &comment(5, "acme", 7, "bot")).await;
    routed(&engine, "hub", &ping(6)).await;
    let turns = idle_after(&engine, &task.id, 4).await;
    let said: Vec<String> = inputs(&turns).into_iter().map(|(said, _)| said).collect();
    assert_eq!(
        said[2..],
        ["[!] ann said comment 4".to_owned(), "ping 6".to_owned()]
    );
    let kept_out: Vec<&Turn> = turns
        .iter()
        .filter(|turn| matches!(turn, Turn::Discarded { .. }))
        .collect();
    assert!(
        matches!(kept_out[..], [Turn::Discarded { reason, .. }] if reason == "bots are not heard")
    );
    assert!(
        engine
            .store()
            .pending(&task.id, 10)
            .await
            .unwrap()
            .is_empty()
    );
    // A replay is a new attempt.
    engine.replay(routed_once.event.summary.id).await.unwrap();
    idle_after(&engine, &task.id, 5).await;
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused() {
    let signed = MANIFESTS.replace(
        "filter: \"event.payload.kind == 'ping'",
        "secret: \"{settings.hub_secret}\"\n        filter: \"event.payload.kind == 'ping'",
    );
    let world = World::new(&signed);
    let engine = world.engine().await;
    let refused = |accepted: WebhookOutcome| match accepted {
        WebhookOutcome::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(post(&engine, "nobody", &ping(1)).await),
        WebhookRefusal::NobodyListens
    );
    let task = begin(&engine, None).await;
    // Events without a secret of their own take the unsigned delivery; the signed one does not.
    let unsigned = routed(&engine, "hub", &ping(2)).await;
    assert_eq!(reasons(&unsigned)["signature"], 1, "{unsigned:?}");
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    let broken = engine.accept("hub", &headers, None, b"{\"a\":").await;
    assert!(matches!(refused(broken), WebhookRefusal::Malformed(_)));
    let strict = world.engine_with(|options| options.strict = true).await;
    let unsigned = refused(post(&strict, "hub", &ping(3)).await);
    assert!(
        matches!(unsigned, WebhookRefusal::Signature(_)),
        "{unsigned:?}"
    );
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"s3cret-s3cret-s3cret");
    let body = ping(4).to_string();
    let tag = ring::hmac::sign(&key, body.as_bytes());
    let hex: String = tag
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    headers.insert(
        "x-hub-signature-256",
        format!("sha256={hex}").parse().unwrap(),
    );
    let accepted = strict.accept("hub", &headers, None, body.as_bytes()).await;
    let WebhookOutcome::Stored(ids) = accepted else {
        panic!("{accepted:?}");
    };
    assert_eq!(routed_event(&strict, ids[0]).await.event.summary.matched, 1);
    idle_after(&engine, &task.id, 1).await;
    headers.insert("x-hub-signature-256", "sha256=00".parse().unwrap());
    let forged = strict.accept("hub", &headers, None, body.as_bytes()).await;
    assert!(matches!(refused(forged), WebhookRefusal::Signature(_)));
    strict.shutdown(PATIENCE).await;
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_listens_for_a_while_after_its_last_activity() {
    let world = World::new(MANIFESTS);
    let engine = world.engine().await;
    let task = begin(&engine, Some("call hub {\"number\": 7}")).await;
    idle_after(&engine, &task.id, 1).await;
    world.shift.forward(Duration::from_secs(59 * 60));
    let detail = routed(&engine, "hub", &comment(1, "acme", 7, "ann")).await;
    assert_eq!(detail.event.summary.matched, 1);
    idle_after(&engine, &task.id, 2).await;
    world.shift.forward(Duration::from_secs(2 * 60));
    let late = routed(&engine, "hub", &comment(2, "acme", 7, "ann")).await;
    assert_eq!(reasons(&late)["timed_out"], 1, "{late:?}");
    // The other event has no timeout, and the task is not over.
    routed(&engine, "hub", &ping(3)).await;
    idle_after(&engine, &task.id, 3).await;
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn include_leaves_events_out() {
    let manifests = MANIFESTS.replace(
        "  hub:\n    bindings",
        "  hub:\n    include: [open, ping]\n    bindings",
    );
    let world = World::new(&manifests);
    let engine = world.engine().await;
    let task = begin(&engine, Some("call hub {\"number\": 7}")).await;
    idle_after(&engine, &task.id, 1).await;
    let interests = engine.store().interests(&task.id).await.unwrap();
    assert_eq!(interests.len(), 1);
    let detail = routed(&engine, "hub", &comment(1, "acme", 7, "ann")).await;
    assert_eq!(detail.event.summary.matched, 0);
    engine.shutdown(PATIENCE).await;
}

async fn say(engine: &Engine, task: &str, text: &str) {
    let said = engine.message(task, Some(text.to_owned()), Map::new(), None);
    said.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_task_gets_nothing_until_it_goes_on() {
    let world = World::new(MANIFESTS);
    let engine = world.engine().await;
    let task = begin(&engine, Some("wait")).await;
    until(&engine, &task.id, |row, _| row.state == TaskState::Running).await;
    engine.interrupt(&task.id).await.unwrap();
    until(&engine, &task.id, |row, _| {
        row.state == TaskState::Interrupted
    })
    .await;
    let missed = routed(&engine, "hub", &ping(1)).await;
    assert_eq!(missed.event.summary.matched, 0);
    say(&engine, &task.id, "go on").await;
    idle_after(&engine, &task.id, 2).await;
    routed(&engine, "hub", &ping(2)).await;
    let turns = idle_after(&engine, &task.id, 3).await;
    let said: Vec<String> = inputs(&turns).into_iter().map(|(said, _)| said).collect();
    assert_eq!(said, ["wait", "go on", "ping 2"]);
    engine.cancel(&task.id).await.unwrap();
    until(&engine, &task.id, |row, _| row.state == TaskState::Ended).await;
    assert!(engine.cancel(&task.id).await.is_err());
    let gone = routed(&engine, "hub", &ping(3)).await;
    assert_eq!(gone.event.summary.matched, 0);
    engine.shutdown(PATIENCE).await;
}

/// A decision is wanted until what came of it is kept: whoever goes on after a process that was killed in between finds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_outlives_a_process_that_cannot_keep_what_came_of_it() {
    let manifests = MANIFESTS.replace(
        "    before:\n",
        "    before:\n      - {condition: \"!has(event)\", assert: \"review('ann')\"}\n",
    );
    let world = World::new(&manifests);
    let engine = world.engine().await;
    let task = begin(&engine, Some("call hub {\"number\": 7}")).await;
    until(&engine, &task.id, |row, _| row.state == TaskState::Waiting).await;
    // From now on no turn can be kept, while everything else can.
    let beside = rusqlite::Connection::open(world.database()).unwrap();
    beside.busy_timeout(PATIENCE).unwrap();
    beside
        .execute_batch(
            "CREATE TRIGGER no_turns BEFORE INSERT ON turns BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .unwrap();
    let decided = engine.decide(&task.id, 1, Decision::Approve, json!({}));
    decided.await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    engine.shutdown(PATIENCE).await;
    let row = engine.store().task(&task.id).await;
    assert!(row.is_ok_and(|row| row.state == TaskState::Waiting));
    beside.execute_batch("DROP TRIGGER no_turns").unwrap();
    let engine = world.engine().await;
    let turns = idle_after(&engine, &task.id, 1).await;
    let opened =
        |turn: &Turn| matches!(turn, Turn::Capability { result, .. } if result["opened"] == 7);
    assert_eq!(
        turns.iter().filter(|turn| opened(turn)).count(),
        1,
        "{turns:#?}"
    );
    // It is settled once, soon after what came of it is kept, and not looked at for ever.
    let started = std::time::Instant::now();
    loop {
        let deliveries = engine.store().deliveries(&task.id, None, 10).await.unwrap();
        let pending = |one: &&DeliveryRecord| one.state == DeliveryState::Pending;
        let Some(one) = deliveries.iter().find(pending) else {
            break;
        };
        assert!(started.elapsed() < PATIENCE, "{one:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_decide_and_watch() {
    let manifests = MANIFESTS.replace(
        "    before:\n",
        "    before:\n      - {condition: \"!has(event)\", assert: \"review('ann')\"}\n",
    );
    let world = World::new(&manifests);
    let engine = world
        .engine_with(|options| options.park = Duration::from_millis(200))
        .await;
    let task = begin(&engine, Some("call hub {\"number\": 7}")).await;
    let mut watch = engine.watch(&task.id, 0);
    let waits =
        |row: &proofhouse_store::model::TaskRecord, _: &[Turn]| row.state == TaskState::Waiting;
    until(&engine, &task.id, waits).await;
    let wrong = engine.decide(&task.id, 99, Decision::Approve, json!({}));
    assert!(wrong.await.is_err());
    // It is put away meanwhile, and goes on when the answer comes.
    let started = std::time::Instant::now();
    while engine.working() > 0 {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine
        .decide(&task.id, 1, Decision::Approve, json!({"by": "ann"}))
        .await
        .unwrap();
    let turns = idle_after(&engine, &task.id, 1).await;
    assert!(
        turns
            .iter()
            .any(|turn| matches!(turn, Turn::Capability { result, .. } if result["opened"] == 7)),
        "{turns:#?}"
    );
    engine.cancel(&task.id).await.unwrap();
    let mut kinds = Vec::new();
    loop {
        match tokio::time::timeout(PATIENCE, watch.next())
            .await
            .unwrap()
            .unwrap()
        {
            TaskUpdate::Turn(turn) => kinds.push(turn.kind),
            TaskUpdate::Live(_) => {}
            TaskUpdate::Over => break,
        }
    }
    assert_eq!(kinds.first().map(String::as_str), Some("input"));
    assert_eq!(kinds.last().map(String::as_str), Some("ended"));
    assert!(kinds.iter().any(|kind| kind == "asked"));
    engine.shutdown(PATIENCE).await;
}

const STARTS: &str = r#"
kind: commonagents.info/v1beta2/trigger
namespace: demo
name: on-issue
agent: clerk
owner: robot
enabled: true
source:
  type: hub
  before:
    - assert: "event.payload.kind == 'issue'"
message: "An issue: {event.payload.title}"
---
kind: commonagents.info/v1beta2/schedule
namespace: demo
name: hourly
agent: clerk
owner: robot
enabled: true
cron: "0 * * * *"
inputs: {message: "An hour has passed."}
"#;

async fn tasks(engine: &Engine) -> Vec<proofhouse_store::model::TaskRecord> {
    let filter = TaskFilter {
        limit: 100,
        ..TaskFilter::default()
    };
    engine.store().tasks(filter).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_the_clock_begin_tasks_once() {
    let world = World::new(&format!("{MANIFESTS}---{STARTS}"));
    let engine = world.engine().await;
    let second = world.engine().await;
    let issue = json!({"kind": "issue", "title": "it burns", "owner": "acme"});
    let detail = routed(&engine, "hub", &issue).await;
    let begun = detail.event.summary.outcome.unwrap()["triggers"][0]["task"].clone();
    let id = begun.as_str().unwrap();
    let turns = idle_after(&engine, id, 1).await;
    assert_eq!(inputs(&turns)[0].0, "An issue: it burns");
    routed(&engine, "hub", &ping(1)).await;
    assert_eq!(tasks(&engine).await.len(), 1);
    // Both have seen the schedule; each tick fires once, missed ones are passed over but for the latest.
    let started = std::time::Instant::now();
    let seen = |starts: &[proofhouse_store::model::TriggerStatus]| {
        starts
            .iter()
            .any(|start| start.key.kind == TriggerKind::Schedule && start.next_at.is_some())
    };
    while !seen(&engine.store().triggers().await.unwrap()) {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let now = world.shift.now().as_second();
    // Ten minutes past an hour, some hours from now.
    let wait = 5 * 3600 - now.rem_euclid(3600) + 600;
    world
        .shift
        .forward(Duration::from_secs(wait.unsigned_abs()));
    while tasks(&engine).await.len() < 2 {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let all = tasks(&engine).await;
    assert_eq!(all.len(), 2, "{all:#?}");
    let scheduled = all
        .iter()
        .find(|task| task.origin["by"] == "schedule")
        .unwrap();
    assert_eq!(scheduled.user_id, "robot");
    let turns = idle_after(&engine, &scheduled.id, 1).await;
    assert_eq!(inputs(&turns)[0].0, "An hour has passed.");
    second.shutdown(PATIENCE).await;
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_edit_keeps_the_good_version() {
    let world = World::new(MANIFESTS);
    let engine = world.engine().await;
    let version = engine.manifests().version;
    std::fs::write(world.manifests().join("all.yaml"), "kind: [").unwrap();
    reloaded(&engine, version).await;
    let snapshot = engine.manifests();
    assert!(snapshot.files[0].stale && !snapshot.files[0].problems.is_empty());
    let task = begin(&engine, Some("still here")).await;
    let all = idle_after(&engine, &task.id, 1).await;
    assert!(matches!(&all[1], Turn::Llm { text, .. } if text == "heard: still here"));
    assert_eq!(turns(engine.store(), &task.id).await.len(), all.len());
    engine.shutdown(PATIENCE).await;
}

/// Whether a namespace has its clerk.
fn has_agent(snapshot: &ManifestSnapshot, namespace: &str) -> bool {
    let mut agents = snapshot.catalog().agents();
    agents.any(|agent| agent.namespace == namespace && agent.name == "clerk")
}

/// Waits until other manifests are in use.
async fn reloaded(engine: &Engine, version: u64) {
    let started = std::time::Instant::now();
    while engine.manifests().version == version {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_read_is_told_of_and_keeps_nothing_else() {
    let world = World::new(MANIFESTS);
    world.write(
        "more.yaml",
        &MANIFESTS.replace("namespace: demo", "namespace: more"),
    );
    let engine = world.engine().await;
    assert!(has_agent(&engine.manifests(), "more"));
    let version = engine.manifests().version;
    std::fs::write(world.manifests().join("all.yaml"), b"\xff\xfe").unwrap();
    reloaded(&engine, version).await;
    let snapshot = engine.manifests();
    assert!(snapshot.files[0].stale && !snapshot.files[0].problems.is_empty());
    assert!(has_agent(&snapshot, "demo"), "the good version");
    // Another file can go all the same.
    std::fs::remove_file(world.manifests().join("more.yaml")).unwrap();
    reloaded(&engine, snapshot.version).await;
    let snapshot = engine.manifests();
    assert!(!has_agent(&snapshot, "more"));
    assert!(has_agent(&snapshot, "demo"));
    engine.shutdown(PATIENCE).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn manifests_may_be_links_as_mounted_ones_are() {
    let world = World::new(MANIFESTS);
    let hidden = world.manifests().join("..data");
    std::fs::create_dir(&hidden).unwrap();
    let file = hidden.join("more.yaml");
    std::fs::write(
        &file,
        MANIFESTS.replace("namespace: demo", "namespace: more"),
    )
    .unwrap();
    std::os::unix::fs::symlink(&file, world.manifests().join("more.yaml")).unwrap();
    let engine = world.engine().await;
    let snapshot = engine.manifests();
    assert!(has_agent(&snapshot, "more"));
    assert_eq!(snapshot.files.len(), 2, "{:?}", snapshot.files);
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_agent_is_gone_can_be_cancelled() {
    let world = World::new(MANIFESTS);
    let engine = world.engine().await;
    let task = begin(&engine, Some("hello")).await;
    idle_after(&engine, &task.id, 1).await;
    let version = engine.manifests().version;
    std::fs::remove_file(world.manifests().join("all.yaml")).unwrap();
    reloaded(&engine, version).await;
    engine.cancel(&task.id).await.unwrap();
    until(&engine, &task.id, |row, _| row.state == TaskState::Ended).await;
    engine.shutdown(PATIENCE).await;
}
