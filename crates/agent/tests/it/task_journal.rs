//! Tasks with a journal: kept before acted on, restored at every point, stopped when somebody else owns them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use proofhouse_agent::model::{ChatMessage, Model};
use proofhouse_agent::task::{
    AllowedValue, CallStatus, EndReason, InputEvent, Journal, JournalEntry, JournalError, Restored,
    Task, TaskAllowList, TaskInput, TaskOptions, TaskOutput, TaskState, Turn,
};
use serde_json::{Value, json};

use crate::tasks::{Puppet, agent, call, host, say};

/// Keeps entries in memory, as JSON, and fails from the entry of this number on.
#[derive(Debug, Default)]
struct Notebook {
    kept: Mutex<Vec<JournalEntry>>,
    fails_at: Option<usize>,
}

impl Journal for Notebook {
    fn keep(&self, entry: JournalEntry) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let mut kept = self.kept.lock().unwrap();
            if self.fails_at.is_some_and(|at| kept.len() >= at) {
                return Err(JournalError::Fenced("owner 2".to_owned()));
            }
            // What cannot be read back is not kept.
            let text = serde_json::to_string(&entry.turn).unwrap();
            let turn: Turn = serde_json::from_str(&text).unwrap();
            assert_eq!(turn, entry.turn);
            kept.push(entry);
            Ok(())
        })
    }
}

impl Notebook {
    fn turns(&self) -> Vec<Turn> {
        let kept = self.kept.lock().unwrap();
        kept.iter().map(|entry| entry.turn.clone()).collect()
    }

    fn allowed(&self) -> TaskAllowList {
        let kept = self.kept.lock().unwrap();
        kept.iter()
            .flat_map(|entry| entry.allowed.clone())
            .collect()
    }

    fn deliveries(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap();
        kept.iter()
            .filter_map(|entry| entry.delivery.clone())
            .collect()
    }
}

fn begin(manifests: &str, model: Arc<dyn Model>, notebook: &Arc<Notebook>) -> Task {
    let options = TaskOptions {
        id: "task-1".to_owned(),
        journal: Some(Arc::clone(notebook) as Arc<dyn Journal>),
        ..TaskOptions::default()
    };
    host(manifests, model)
        .start("demo", "clerk", options)
        .unwrap()
}

/// The task as another process would go on with it.
fn again(
    manifests: &str,
    model: Arc<dyn Model>,
    old: &Notebook,
    started_at: &str,
) -> (Task, Arc<Notebook>) {
    let notebook = Arc::new(Notebook::default());
    let options = TaskOptions {
        id: "task-1".to_owned(),
        journal: Some(Arc::clone(&notebook) as Arc<dyn Journal>),
        restored: Some(Restored {
            turns: old.turns(),
            started_at: started_at.to_owned(),
        }),
        allowed: old.allowed(),
        ..TaskOptions::default()
    };
    let task = host(manifests, model)
        .start("demo", "clerk", options)
        .unwrap();
    (task, notebook)
}

const STARTED: &str = "2026-01-02T03:04:05.000Z";

fn two_calls() -> Arc<Puppet> {
    Puppet::calling(vec![
        ("notes_read", json!({"path": "a"})),
        ("notes_write", json!({"path": "b", "text": "x"})),
    ])
}

fn delivered(message: &str, delivery: &str) -> TaskInput {
    TaskInput {
        delivery: Some(delivery.to_owned()),
        ..TaskInput::message(message)
    }
}

const GRANT: &str = "capabilities: {notes: {bindings: {owner: \"'me'\"}}}\n";

#[tokio::test]
async fn a_task_is_restored_as_it_was() {
    let manifests = agent(
        "capabilities:\n  notes:\n    bindings: {owner: \"'me'\"}\n    before:\n      - {invoke: \"audit-log:record\", bindings: {what: \"'call'\"}}\n\
         exposes: {turns: \"context._history.turn_count\"}\n",
    );
    let notebook = Arc::new(Notebook::default());
    let task = begin(&manifests, two_calls(), &notebook);
    assert_eq!(task.send(delivered("one", "d1")).await.message, "done");
    assert_eq!(task.send(delivered("two", "d2")).await.message, "done");
    let (context, history, allowed) = (task.context(), task.history(), task.allowed());
    task.end().await;
    assert_eq!(notebook.deliveries(), ["d1", "d2"]);
    assert!(
        !notebook
            .turns()
            .iter()
            .any(|turn| matches!(turn, Turn::Ended { .. })),
        "letting go is no end"
    );
    let puppet = two_calls();
    let (task, _) = again(&manifests, Arc::clone(&puppet) as _, &notebook, STARTED);
    assert!(!task.is_unfinished());
    // Functions that were never called are known once the tools are asked.
    task.functions().await.unwrap();
    assert_eq!(task.context(), context);
    assert_eq!(task.history(), history);
    let entries = |list: &TaskAllowList| list.entries().collect::<Vec<AllowedValue>>();
    assert_eq!(entries(&task.allowed()), entries(&allowed));
    assert_eq!(task.allowed().values("notes", "owner"), [json!("me")]);
    assert_eq!(task.resume().await, TaskOutput::default());
    task.send(TaskInput::message("three")).await;
    let asked = puppet.asked.lock().unwrap();
    let said: Vec<&ChatMessage> = asked[0].messages.iter().collect();
    // Three messages, two replies with calls, two results each, two answers.
    assert_eq!(said.len(), 3 + 2 + 4 + 2);
}

/// Wherever the journal breaks, the next owner brings the answer about, and no call is made twice.
#[tokio::test]
async fn every_broken_point_is_gone_on_from() {
    let manifests = agent(GRANT);
    let whole = Arc::new(Notebook::default());
    let task = begin(&manifests, two_calls(), &whole);
    task.send(delivered("hello", "d1")).await;
    task.end().await;
    let entries = whole.turns().len();
    assert_eq!(entries, 8, "{:#?}", whole.turns());
    for at in 0..entries {
        let notebook = Arc::new(Notebook {
            fails_at: Some(at),
            ..Notebook::default()
        });
        let task = begin(&manifests, two_calls(), &notebook);
        let output = task.send(delivered("hello", "d1")).await;
        assert!(
            matches!(output.lost, Some(JournalError::Fenced(_))),
            "{at}: {output:?}"
        );
        assert!(output.ended.is_none() && task.ended().is_none());
        let later = task.send(TaskInput::message("anyone?")).await;
        assert!(later.lost.is_some(), "{at}: nothing more is taken");
        assert_eq!(notebook.turns().len(), at, "nothing is written any more");
        let (task, next) = again(&manifests, two_calls(), &notebook, STARTED);
        assert_eq!(task.is_unfinished(), at > 0, "{at}");
        let output = match at {
            0 => task.send(delivered("hello", "d1")).await,
            _ => task.resume().await,
        };
        assert_eq!(output.message, "done", "{at}: {output:?}");
        let all: Vec<Turn> = notebook.turns().into_iter().chain(next.turns()).collect();
        for id in ["call-0", "call-1"] {
            let begun = all
                .iter()
                .filter(|turn| matches!(turn, Turn::Calling { call, .. } if call == id))
                .count();
            assert_eq!(begun, 1, "{at}: {id} of {all:#?}");
            let results: Vec<_> = all
                .iter()
                .filter_map(|turn| match turn {
                    Turn::Capability {
                        call,
                        result,
                        status,
                        ..
                    } if call == id => Some((result, status)),
                    _ => None,
                })
                .collect();
            assert_eq!(results.len(), 1, "{at}: {id} of {all:#?}");
            if *results[0].1 != CallStatus::Successful {
                assert_eq!(results[0].0["outcome_unknown"], true, "{at}: {results:?}");
            }
        }
        let deliveries = [notebook.deliveries(), next.deliveries()].concat();
        assert_eq!(deliveries, ["d1"], "{at}");
    }
}

/// What events may be about is kept before the call that they may be about.
#[tokio::test]
async fn the_allow_list_is_kept_before_the_call() {
    let notebook = Arc::new(Notebook::default());
    let task = begin(&agent(GRANT), two_calls(), &notebook);
    task.send(TaskInput::message("go")).await;
    let kept = notebook.kept.lock().unwrap();
    let gained: Vec<(&str, Vec<(&str, bool)>)> = kept
        .iter()
        .filter(|entry| !entry.allowed.is_empty())
        .map(|entry| {
            let names = entry.allowed.iter();
            let names = names.map(|one| (one.name.as_str(), one.sealed)).collect();
            (entry.turn.kind(), names)
        })
        .collect();
    assert_eq!(gained[0], ("input", vec![("owner", true)]));
    assert!(gained[1..].iter().all(|(kind, _)| *kind == "calling"));
    let names: Vec<_> = gained[1..]
        .iter()
        .flat_map(|(_, names)| names.clone())
        .collect();
    assert!(names.contains(&("path", false)) && names.contains(&("text", false)));
    assert!(!names.iter().any(|(name, _)| *name == "owner"), "{names:?}");
    let states: Vec<TaskState> = kept.iter().map(|entry| entry.state).collect();
    assert_eq!(states.last(), Some(&TaskState::Idle));
    assert_eq!(states[0], TaskState::Running);
}

#[tokio::test]
async fn limits_stay_used_up() {
    let manifests = agent(&format!("limits: {{max_turns: 2}}\n{GRANT}"));
    let notebook = Arc::new(Notebook::default());
    let task = begin(&manifests, two_calls(), &notebook);
    assert_eq!(task.send(TaskInput::message("one")).await.message, "done");
    let (task, next) = again(&manifests, two_calls(), &notebook, STARTED);
    let output = task.send(delivered("two", "d2")).await;
    assert_eq!(output.ended.unwrap().reason, EndReason::LimitExceeded);
    assert_eq!(
        next.deliveries(),
        ["d2"],
        "an end settles what was under way"
    );
    assert!(matches!(next.turns().last(), Some(Turn::Ended { .. })));
    let old = agent(&format!("limits: {{max_age: 1h}}\n{GRANT}"));
    let (task, _) = again(&old, two_calls(), &notebook, "2026-01-01T00:00:00.000Z");
    let output = task.send(TaskInput::message("two")).await;
    assert_eq!(output.ended.unwrap().reason, EndReason::LimitExceeded);
}

fn event(payload: &Value) -> TaskInput {
    TaskInput {
        event: Some(InputEvent {
            capability: "notes".to_owned(),
            name: "changed".to_owned(),
            value: json!({"payload": payload}),
        }),
        ..delivered("A note changed.", "d7")
    }
}

#[tokio::test]
async fn rules_see_events_and_shape_them() {
    let manifests = agent(
        "capabilities:\n  notes:\n    before:\n      - assert: \"!has(event) || event.payload.user != 'bot'\"\n        error_message: bots are not heard\n    after:\n      - condition: \"has(event)\"\n        transform: \"'[ACTION REQUIRED] ' + input.message\"\n",
    );
    let notebook = Arc::new(Notebook::default());
    let puppet = Puppet::calling(vec![("notes_read", json!({"path": "a"}))]);
    let task = begin(&manifests, Arc::clone(&puppet) as _, &notebook);
    let output = task.send(event(&json!({"user": "bot"}))).await;
    assert_eq!(output.discarded.as_deref(), Some("bots are not heard"));
    assert!(puppet.asked.lock().unwrap().is_empty());
    assert!(matches!(
        notebook.turns().as_slice(),
        [Turn::Discarded { reason, .. }] if reason == "bots are not heard"
    ));
    assert_eq!(notebook.deliveries(), ["d7"]);
    let output = task.send(event(&json!({"user": "ann"}))).await;
    assert_eq!(output.message, "done", "a call has no event in scope");
    let asked = puppet.asked.lock().unwrap();
    assert_eq!(
        asked[0].messages,
        [ChatMessage::user("[ACTION REQUIRED] A note changed.")]
    );
    assert!(matches!(
        &task.history()[1],
        Turn::Input { source: Some(source), event: Some(name), delivery: Some(id), .. }
            if source == "notes" && name == "changed" && id == "d7"
    ));
}

#[tokio::test]
async fn an_interrupted_answer_is_gone_on_with() {
    let manifests =
        agent("capabilities:\n  notes:\n    before:\n      - assert: \"review('ann')\"\n");
    let notebook = Arc::new(Notebook::default());
    let puppet = Puppet::new(|request| {
        let last = request.messages.last();
        Ok(match last {
            Some(ChatMessage::Tool { .. }) => say("done"),
            _ => call(&[("notes_read", json!({"path": "a"}))]),
        })
    });
    let task = begin(&manifests, Arc::clone(&puppet) as _, &notebook);
    let asking = tokio::spawn({
        let task = task.clone();
        async move { task.send(delivered("hello", "d1")).await }
    });
    while task.reviews().is_empty() {
        tokio::task::yield_now().await;
    }
    task.interrupt().await;
    assert!(asking.await.unwrap().interrupted);
    assert!(task.reviews().is_empty(), "nobody is asked any more");
    assert!(matches!(
        notebook.turns().last(),
        Some(Turn::Interrupted { .. })
    ));
    let (other, _) = again(&manifests, Arc::clone(&puppet) as _, &notebook, STARTED);
    assert!(!other.is_unfinished(), "it waits until somebody wants more");
    assert_eq!(other.resume().await.message, "done");
    assert_eq!(task.resume().await.message, "done");
    assert_eq!(task.resume().await, TaskOutput::default());
}
