//! Crashes and several processes: nothing is lost, nothing comes twice, and work moves.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_agent::task::{CallStatus, Turn};
use proofhouse_server::engine::{Accepted, Engine, EngineOptions};
use proofhouse_store::model::TaskState;
use serde_json::Map;
use tokio::runtime::Runtime;

use crate::engine_support::{
    self, MANIFESTS, Obedient, PATIENCE, Shift, World, begin, idle_after, inputs, open, options,
    ping, post, store, turns, until,
};

/// An engine in a runtime of its own, which can be killed with everything in it.
struct Process {
    runtime: Runtime,
    engine: Arc<Engine>,
}

impl Process {
    fn start(database: &Path, manifests: &Path, lease: Duration) -> Self {
        Self::start_with(database, manifests, |options| options.lease = lease)
    }

    fn start_with(
        database: &Path,
        manifests: &Path,
        change: impl FnOnce(&mut EngineOptions),
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let engine = runtime.block_on(async {
            let mut options = options(Shift::default(), Arc::new(Obedient), "http://127.0.0.1:9");
            change(&mut options);
            open(database, manifests, options).await
        });
        Self {
            runtime,
            engine: Arc::new(engine),
        }
    }

    /// Ends everything at its next pause, as SIGKILL would: nothing is released or finished.
    fn kill(self) {
        // The engine must not be told that it is dropped.
        std::mem::forget(self.engine);
        self.runtime.shutdown_background();
    }
}

const TASKS: usize = 3;
const EVENTS: u64 = 120;
/// Every so many events, each task is also told to call something.
const CALL_EVERY: u64 = 8;

/// Webhooks come while processes are killed at random. Every event that was answered is an input of every task
/// exactly once.
#[test]
fn every_event_arrives_exactly_once_whatever_is_killed() {
    let world = World::new(MANIFESTS);
    let (database, manifests) = (world.database(), world.manifests());
    let lease = Duration::from_millis(600);
    let mut process = Process::start(&database, &manifests, lease);
    let tasks: Vec<String> = process.runtime.block_on(async {
        let mut ids = Vec::new();
        for _ in 0..TASKS {
            ids.push(begin(&process.engine, Some("hello")).await.id);
        }
        ids
    });
    let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut kills = 0;
    for id in 0..EVENTS {
        loop {
            let engine = Arc::clone(&process.engine);
            let posted = process
                .runtime
                .block_on(async move { post(&engine, "hub", &ping(id)).await });
            match posted {
                Accepted::Stored(_) | Accepted::Duplicate(_) => break,
                Accepted::Unavailable => std::thread::sleep(Duration::from_millis(50)),
                other => panic!("{other:?}"),
            }
        }
        if id % CALL_EVERY == 0 {
            let (engine, tasks) = (Arc::clone(&process.engine), tasks.clone());
            process.runtime.block_on(async move {
                for task in tasks {
                    let call = format!("call hub {{\"number\": {id}}}");
                    // Whoever gets no answer says it again, and it is said once.
                    let key = Some(format!("call-{id}"));
                    while engine
                        .message(&task, Some(call.clone()), Map::new(), key.clone())
                        .await
                        .is_err()
                    {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            });
        }
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if random >> 61 == 0 {
            std::thread::sleep(Duration::from_millis(random >> 40 & 0x3f));
            process.kill();
            kills += 1;
            process = Process::start(&database, &manifests, lease);
        }
    }
    assert!(kills >= 3, "{kills}");
    let engine = Arc::clone(&process.engine);
    process.runtime.block_on(async {
        let wanted = usize::try_from(EVENTS + EVENTS.div_ceil(CALL_EVERY)).unwrap() + 1;
        for task in &tasks {
            let turns = idle_after(&engine, task, wanted).await;
            let mut count: BTreeMap<String, usize> = BTreeMap::new();
            for (message, _) in inputs(&turns) {
                *count.entry(message).or_default() += 1;
            }
            assert_eq!(count.len(), wanted, "{count:?}");
            assert!(count.values().all(|times| *times == 1), "{count:?}");
            let answers = turns
                .iter()
                .filter(|turn| matches!(turn, Turn::Output { .. }))
                .count();
            let kinds: Vec<&str> = turns.iter().map(Turn::kind).collect();
            assert_eq!(answers, wanted, "every input is answered: {kinds:?}");
            calls_are_made_once(&turns);
        }
        engine.shutdown(PATIENCE).await;
    });
}

/// Every call has one result, and none was begun twice.
fn calls_are_made_once(turns: &[Turn]) {
    let (mut asked, mut begun, mut results) = (0, BTreeMap::new(), BTreeMap::new());
    for turn in turns {
        match turn {
            Turn::Llm { calls, .. } => asked += calls.len(),
            Turn::Calling { arguments, .. } => {
                *begun.entry(arguments["number"].to_string()).or_insert(0) += 1;
            }
            Turn::Capability {
                arguments,
                result,
                status,
                ..
            } => {
                *results.entry(arguments["number"].to_string()).or_insert(0) += 1;
                let fine = *status == CallStatus::Successful || result["outcome_unknown"] == true;
                assert!(fine, "{turn:?}");
            }
            _ => {}
        }
    }
    assert_eq!(results.len(), asked);
    assert_eq!(begun.len(), asked);
    assert!(
        begun
            .values()
            .chain(results.values())
            .all(|times| *times == 1)
    );
}

/// A call that was under way when the process was killed is not made again.
#[test]
fn a_call_under_way_is_not_repeated() {
    let manifests = MANIFESTS.replace(
        "    before:\n",
        "    before:\n      - {condition: \"!has(event)\", assert: \"review('ann')\"}\n",
    );
    let world = World::new(&manifests);
    let lease = Duration::from_millis(600);
    let process = Process::start(&world.database(), &world.manifests(), lease);
    let engine = Arc::clone(&process.engine);
    let task = process.runtime.block_on(async {
        let task = begin(&engine, Some("call hub {\"number\": 7}")).await.id;
        until(&engine, &task, |row, _| row.state == TaskState::Waiting).await;
        task
    });
    drop(engine);
    process.kill();
    let process = Process::start(&world.database(), &world.manifests(), lease);
    let engine = Arc::clone(&process.engine);
    process.runtime.block_on(async {
        let decision = proofhouse_agent::task::Decision::Approve;
        let decided = engine.decide(&task, 1, decision, serde_json::json!({}));
        decided.await.unwrap();
        let turns = idle_after(&engine, &task, 1).await;
        let calls = turns
            .iter()
            .filter(|turn| matches!(turn, Turn::Calling { .. }))
            .count();
        assert_eq!(calls, 1, "{turns:#?}");
        engine.shutdown(PATIENCE).await;
    });
}

/// An agent that can ask another one, which asks a person before it uses the hub.
fn with_a_helper() -> String {
    let helper = r#"
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: helper
description: Is asked.
prompt: You help those who help.
capabilities:
  hub:
    bindings: {owner: "'acme'"}
    before:
      - assert: "review('ann')"
"#;
    format!(
        "{}  helper: \"*\"\n{helper}",
        MANIFESTS.trim_end_matches(' ')
    )
}

/// The results of calls of the other agent, which were begun as often.
fn asked_helper(turns: &[Turn]) -> Vec<&serde_json::Value> {
    let is_helper = |name: &str| name.contains("helper");
    let begun = turns
        .iter()
        .filter(|turn| matches!(turn, Turn::Calling { function, .. } if is_helper(function)));
    let results: Vec<_> = turns
        .iter()
        .filter_map(|turn| match turn {
            Turn::Capability {
                function, result, ..
            } if is_helper(function) => Some(result),
            _ => None,
        })
        .collect();
    assert_eq!(begun.count(), results.len(), "{turns:#?}");
    results
}

/// An agent that was asked by another when the process was killed is not asked again: the call has an unknown outcome, and
/// the one who asked goes on.
#[test]
fn an_agent_that_was_being_asked_is_not_asked_again() {
    let world = World::new(&with_a_helper());
    let lease = Duration::from_millis(600);
    let process = Process::start(&world.database(), &world.manifests(), lease);
    let engine = Arc::clone(&process.engine);
    let task = process.runtime.block_on(async {
        // The other one works until somebody stops it.
        let task = begin(&engine, Some("call helper {\"message\": \"wait\"}"));
        let task = task.await.id;
        until(&engine, &task, |_, turns| {
            matches!(turns.last(), Some(Turn::Calling { .. }))
        })
        .await;
        task
    });
    drop(engine);
    process.kill();
    let process = Process::start(&world.database(), &world.manifests(), lease);
    let engine = Arc::clone(&process.engine);
    process.runtime.block_on(async {
        let turns = idle_after(&engine, &task, 1).await;
        let results = asked_helper(&turns);
        assert_eq!(results.len(), 1, "{turns:#?}");
        assert_eq!(results[0]["outcome_unknown"], true, "{results:?}");
        let said = results[0].to_string();
        assert!(said.contains("the server stopped"), "{said}");
        assert!(
            matches!(turns.last(), Some(Turn::Output { message, .. }) if message == "done"),
            "{turns:#?}"
        );
        // It can be asked anew.
        let again = Some("call helper {\"message\": \"hello\"}".to_owned());
        let said = engine.message(&task, again, Map::new(), None);
        said.await.unwrap();
        let turns = idle_after(&engine, &task, 2).await;
        let results = asked_helper(&turns);
        assert_eq!(results.len(), 2, "{turns:#?}");
        assert_eq!(results[1], "heard: hello");
        engine.shutdown(PATIENCE).await;
    });
}

/// The same where the other one had a question for a person: it has lost its place, so that the answer lets nothing happen.
#[test]
fn a_question_of_an_agent_that_is_gone_lets_nothing_happen() {
    let world = World::new(&with_a_helper());
    let lease = Duration::from_millis(600);
    let process = Process::start(&world.database(), &world.manifests(), lease);
    let engine = Arc::clone(&process.engine);
    let task = process.runtime.block_on(async {
        let call = r#"call helper {"message": "call hub {\"number\": 7}"}"#;
        let task = begin(&engine, Some(call)).await.id;
        until(&engine, &task, |row, _| row.state == TaskState::Waiting).await;
        task
    });
    drop(engine);
    process.kill();
    let process = Process::start(&world.database(), &world.manifests(), lease);
    let engine = Arc::clone(&process.engine);
    process.runtime.block_on(async {
        let decision = proofhouse_agent::task::Decision::Approve;
        let decided = engine.decide(&task, 1, decision, serde_json::json!({}));
        decided.await.unwrap();
        let turns = idle_after(&engine, &task, 1).await;
        let results = asked_helper(&turns);
        assert_eq!(results.len(), 1, "{turns:#?}");
        assert_eq!(results[0]["outcome_unknown"], true, "{results:?}");
        // The answer was to that question alone: the next one waits for its own.
        let again = Some(r#"call helper {"message": "call hub {\"number\": 8}"}"#.to_owned());
        let said = engine.message(&task, again, Map::new(), None);
        said.await.unwrap();
        let asks = |row: &proofhouse_store::model::Task| {
            row.state == TaskState::Waiting
                && row.detail.as_ref().unwrap()["review"]["id"] == serde_json::json!(2)
        };
        until(&engine, &task, |row, _| asks(row)).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(asks(&engine.store().task(&task).await.unwrap()));
        let decided = engine.decide(&task, 2, decision, serde_json::json!({}));
        decided.await.unwrap();
        let turns = idle_after(&engine, &task, 2).await;
        assert_eq!(asked_helper(&turns)[1], "done", "{turns:#?}");
        engine.shutdown(PATIENCE).await;
    });
}

/// Questions of an agent that was asked are answered like others, however long the answer takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_an_agent_that_was_asked_is_answered() {
    let world = World::new(&with_a_helper());
    let park = Duration::from_millis(100);
    let engine = world.engine_with(|options| options.park = park).await;
    let call = r#"call helper {"message": "call hub {\"number\": 7}"}"#;
    let task = begin(&engine, Some(call)).await.id;
    until(&engine, &task, |row, _| row.state == TaskState::Waiting).await;
    // It is not put away meanwhile, with which the other agent would be gone.
    tokio::time::sleep(park * 10).await;
    let decision = proofhouse_agent::task::Decision::Approve;
    let decided = engine.decide(&task, 1, decision, serde_json::json!({}));
    decided.await.unwrap();
    let turns = idle_after(&engine, &task, 1).await;
    assert_eq!(asked_helper(&turns), ["done"], "{turns:#?}");
    engine.shutdown(PATIENCE).await;
}

/// Two processes share the work of one store, and the work of one that is killed moves to the other.
#[test]
fn leases_move_to_another_process() {
    let world = World::new(MANIFESTS);
    let lease = Duration::from_millis(900);
    let first = Process::start(&world.database(), &world.manifests(), lease);
    let engine = Arc::clone(&first.engine);
    let task = first.runtime.block_on(async {
        let task = begin(&engine, Some("wait")).await.id;
        until(&engine, &task, |row, turns| {
            row.state == TaskState::Running && !turns.is_empty()
        })
        .await;
        task
    });
    drop(engine);
    let second = Process::start(&world.database(), &world.manifests(), lease);
    let engine = Arc::clone(&second.engine);
    // The owner is elsewhere, and obeys what is asked for here: its model is stopped.
    first.kill();
    let killed = Instant::now();
    second.runtime.block_on(async {
        while engine.working() == 0 {
            assert!(
                killed.elapsed() < Duration::from_secs(30),
                "work moves within 30 s"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        engine.interrupt(&task).await.unwrap();
        until(&engine, &task, |row, _| row.state == TaskState::Interrupted).await;
        engine.shutdown(PATIENCE).await;
    });
}

/// Two processes whose clocks are hours apart, one before and one after the store's: nothing times out early, nobody
/// takes what another still holds, and every event arrives once.
#[test]
fn clocks_that_are_wrong_change_nothing() {
    const HOURS: i64 = 3 * 60 * 60 * 1_000;
    let world = World::new(MANIFESTS);
    let start = |wrong: i64| {
        Process::start_with(&world.database(), &world.manifests(), |options| {
            let clock = Shift::wrong_by(wrong);
            options.clock = Arc::new(move || clock.now());
            options.by_store_clock = true;
        })
    };
    let (slow, fast) = (start(-HOURS), start(HOURS));
    let task = slow.runtime.block_on(async {
        let task = begin(&slow.engine, Some("call hub {\"number\": 7}")).await;
        idle_after(&slow.engine, &task.id, 1).await;
        task.id
    });
    for id in 0..20 {
        let to = if id % 2 == 0 { &slow } else { &fast };
        to.runtime.block_on(async {
            // It is listened to for an hour after the last activity.
            let said = engine_support::comment(id, "acme", 7, "ada");
            assert!(matches!(
                post(&to.engine, "hub", &said).await,
                Accepted::Stored(_)
            ));
        });
    }
    let turns = fast
        .runtime
        .block_on(idle_after(&fast.engine, &task, 1 + 20));
    let heard: Vec<_> = inputs(&turns).into_iter().map(|(said, _)| said).collect();
    for id in 0..20 {
        let said = format!("comment {id}");
        let times = heard.iter().filter(|one| one.ends_with(&said)).count();
        assert_eq!(times, 1, "{said}: {heard:?}");
    }
    for process in [slow, fast] {
        process.runtime.block_on(process.engine.shutdown(PATIENCE));
    }
}

/// What is asked for in one process is done in the one that owns the task.
#[tokio::test(flavor = "multi_thread")]
async fn any_process_can_be_asked() {
    let world = World::new(MANIFESTS);
    let first = world.engine().await;
    let task = begin(&first, Some("wait")).await.id;
    until(&first, &task, |row, turns| {
        row.state == TaskState::Running && !turns.is_empty()
    })
    .await;
    let second = world.engine().await;
    second.interrupt(&task).await.unwrap();
    until(&second, &task, |row, _| row.state == TaskState::Interrupted).await;
    let said = second.message(&task, Some("and now?".to_owned()), Map::new(), None);
    said.await.unwrap();
    idle_after(&second, &task, 2).await;
    second.shutdown(PATIENCE).await;
    first.shutdown(PATIENCE).await;
}

/// Shutting down hands over what cannot finish, without an end and without losing it.
#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_hands_over() {
    let world = World::new(MANIFESTS);
    let first = world.engine().await;
    let task = begin(&first, Some("wait")).await.id;
    until(&first, &task, |row, turns| {
        row.state == TaskState::Running && !turns.is_empty()
    })
    .await;
    first.shutdown(Duration::from_millis(100)).await;
    drop(first);
    let kept = store(&world.database()).await;
    assert_eq!(kept.task(&task).await.unwrap().state, TaskState::Running);
    assert_eq!(inputs(&turns(&kept, &task).await).len(), 1);
    let second = world.engine().await;
    until(&second, &task, |_, _| second.working() == 1).await;
    second.cancel(&task).await.unwrap();
    until(&second, &task, |row, _| row.state == TaskState::Ended).await;
    second.shutdown(PATIENCE).await;
}
