//! The contract of all runtimes: each row of the table goes through the same checks against a real peer.
//!
//! A new runtime is one row in `contract_support/mod.rs`. Each check has a process of its own, because
//! they count what it has open.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests stand outside of them"
)]

use std::time::Duration;

use futures_util::future::join_all;
use proofhouse_test_support::alone::is_alone;
use proofhouse_test_support::process::{children, open_files};
use proofhouse_test_support::wait::soon;
use proofhouse_tools::runtime::{ActionError, ActionFailure, ActionResult, ErrorClass, ToolTask};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

use crate::contract_support::{self, Does, Peer, ROWS, SECRET};

/// How long anything may take that should happen soon.
const SOON: Duration = Duration::from_secs(20);

type Acted = Result<ActionResult, ActionError>;

/// Calls, and makes sure that the secret is in nothing that comes back.
async fn call(
    task: &ToolTask,
    call: (&'static str, Value),
    cancel: CancellationToken,
) -> Result<Value, ActionError> {
    let (action, arguments) = call;
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let acted: Acted = tokio::time::timeout(
        3 * SOON,
        task.invoke(action, arguments, json!({"agent": {"name": "a"}}), cancel),
    )
    .await
    .unwrap_or_else(|_| panic!("`{action}` does not end"));
    let shown = match &acted {
        Ok(outcome) => format!("{outcome:?}"),
        Err(error) => format!("{error} {error:?} {}", error.to_json()),
    };
    assert!(!shown.contains(SECRET), "{shown}");
    acted.map(|outcome| outcome.value)
}

async fn does(peer: &dyn Peer, task: &ToolTask, what: Does) -> Result<Value, ActionError> {
    let arguments = peer.call(what, "hello").unwrap();
    call(task, arguments, CancellationToken::new()).await
}

/// Works, and its answer is the one to what was asked.
async fn works(peer: &dyn Peer, task: &ToolTask) {
    let said = does(peer, task, Does::Work).await;
    let said = said.unwrap_or_else(|error| panic!("{error} {:?}", error.detail));
    assert!(said.to_string().contains("hello"), "{said}");
}

/// Does a check with a peer of every runtime.
async fn for_each_runtime(check: impl AsyncFn(&dyn Peer)) {
    for (name, start) in ROWS {
        println!("{name}");
        let peer = start().await;
        check(peer.as_ref()).await;
        assert_eq!(peer.running(), 0, "{name}");
        soon("a process is left", || children().is_empty()).await;
    }
}

#[test]
fn every_runtime_has_a_row() {
    let mut rows = ROWS.map(|(name, _)| name);
    rows.sort_unstable();
    let mut keys: Vec<&str> = contract_support::runtimes().keys().collect();
    keys.sort_unstable();
    assert_eq!(rows.as_slice(), keys);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_first_calls_initialize_once() {
    if !is_alone(module_path!(), "a_hundred_first_calls_initialize_once") {
        return;
    }
    for_each_runtime(async |peer| {
        let task = peer.task();
        join_all((0..100).map(|_| works(peer, &task))).await;
        assert!(matches!(peer.initialized(), None | Some(1)));
        assert_eq!(task.teardown().await, []);
        assert!(matches!(peer.torn_down(), None | Some(1)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_told_and_the_next_call_works() {
    if !is_alone(module_path!(), "what_fails_is_told_and_the_next_call_works") {
        return;
    }
    for_each_runtime(async |peer| {
        let task = peer.task();
        for _ in 0..2 {
            let error = does(peer, &task, Does::Fail).await.unwrap_err();
            assert_eq!(error.failure, peer.failure(), "{error}");
            assert_eq!(error.failure.class(), ErrorClass::Recoverable);
            works(peer, &task).await;
        }
        let (action, _) = peer.call(Does::Work, "").unwrap();
        let mistaken = action.replacen(|_: char| true, "q", 1);
        let wrong = task.invoke(
            &mistaken,
            serde_json::Map::new(),
            json!({}),
            Default::default(),
        );
        let error = wrong.await.unwrap_err();
        assert_eq!(error.failure, ActionFailure::Arguments);
        assert!(error.message.contains(&format!("`{action}`?")), "{error}");
        assert!(matches!(peer.initialized(), None | Some(1)));
        assert_eq!(task.teardown().await, []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_ends_the_task() {
    if !is_alone(module_path!(), "what_cannot_be_used_ends_the_task") {
        return;
    }
    for_each_runtime(async |peer| {
        let (task, failure) = peer.broken();
        for _ in 0..2 {
            let error = does(peer, &task, Does::Work).await.unwrap_err();
            assert_eq!(error.failure, failure, "{error}");
            assert_eq!(error.failure.class(), ErrorClass::Unrecoverable);
        }
        assert_eq!(task.teardown().await, []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_ends_soon_and_nothing_goes_on() {
    if !is_alone(
        module_path!(),
        "a_cancelled_call_ends_soon_and_nothing_goes_on",
    ) {
        return;
    }
    for_each_runtime(async |peer| {
        let Some(hang) = peer.call(Does::Hang, "hello") else {
            return;
        };
        let task = peer.task();
        let cancel = CancellationToken::new();
        let (hanging, stop) = (task.clone(), cancel.clone());
        let (again, hang) = (hang.clone(), hang);
        let called = tokio::spawn(async move { call(&hanging, hang, stop).await });
        soon("it hangs", || peer.running() == 1).await;
        cancel.cancel();
        let error = tokio::time::timeout(SOON, called).await.unwrap().unwrap();
        assert_eq!(error.unwrap_err().failure, ActionFailure::Cancelled);
        soon("nothing goes on", || peer.running() == 0).await;
        works(peer, &task).await;
        // The end of a task cancels, too.
        let hanging = task.clone();
        let called =
            tokio::spawn(async move { call(&hanging, again, CancellationToken::new()).await });
        soon("it hangs again", || peer.running() == 1).await;
        assert_eq!(task.teardown().await, []);
        let error = called.await.unwrap().unwrap_err();
        assert_eq!(error.failure, ActionFailure::Cancelled, "{error}");
        soon("nothing goes on", || peer.running() == 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_torn_down_once_and_refuses_later_calls() {
    if !is_alone(
        module_path!(),
        "a_task_is_torn_down_once_and_refuses_later_calls",
    ) {
        return;
    }
    for_each_runtime(async |peer| {
        let unused = peer.task();
        assert_eq!(unused.teardown().await, []);
        let before = peer.torn_down();
        assert!(matches!(before, None | Some(0)), "nothing was there");
        let task = peer.task();
        works(peer, &task).await;
        does(peer, &task, Does::Fail).await.unwrap_err();
        let ended = join_all((0..5).map(|_| task.teardown())).await;
        assert!(ended.iter().all(Vec::is_empty), "{ended:?}");
        assert!(matches!(peer.torn_down(), None | Some(1)));
        for task in [task, unused] {
            let error = does(peer, &task, Does::Work).await.unwrap_err();
            assert_eq!(error.failure, ActionFailure::Ended);
        }
        assert!(matches!(peer.initialized(), None | Some(1)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evicted_tool_is_made_ready_again() {
    if !is_alone(module_path!(), "an_evicted_tool_is_made_ready_again") {
        return;
    }
    for_each_runtime(async |peer| {
        let task = peer.task();
        works(peer, &task).await;
        assert_eq!(task.evict().await, Some(vec![]));
        assert!(matches!(peer.torn_down(), None | Some(1)));
        works(peer, &task).await;
        assert!(matches!(peer.initialized(), None | Some(2)));
        assert_eq!(task.teardown().await, []);
        assert!(matches!(peer.torn_down(), None | Some(2)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_come_back_are_hidden() {
    if !is_alone(module_path!(), "secrets_that_come_back_are_hidden") {
        return;
    }
    for_each_runtime(async |peer| {
        let task = peer.task();
        for does in [Does::Work, Does::Fail] {
            // `call` looks for the secret; peers say what they were told, in answers and in errors.
            let arguments = peer.call(does, SECRET).unwrap();
            let acted = call(&task, arguments, CancellationToken::new()).await;
            let shown = match acted {
                Ok(said) => said.to_string(),
                Err(error) if does == Does::Fail => error.to_json().to_string(),
                Err(error) => panic!("{error}"),
            };
            let says = peer.failure() == ActionFailure::Cel && does == Does::Fail;
            assert!(says || shown.contains("[redacted]"), "{shown}");
        }
        assert_eq!(task.teardown().await, []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_tasks_leave_nothing_open() {
    if !is_alone(module_path!(), "twenty_tasks_leave_nothing_open") {
        return;
    }
    let open = || {
        let tasks = tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks();
        (open_files(), tasks)
    };
    for_each_runtime(async |peer| {
        let cycle = async || {
            let task = peer.task();
            works(peer, &task).await;
            does(peer, &task, Does::Fail).await.unwrap_err();
            assert_eq!(task.teardown().await, []);
        };
        // The first opens what the process keeps, such as the pipe of its signals.
        cycle().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let before = open();
        for _ in 0..20 {
            cycle().await;
        }
        soon(&format!("{before:?} were open before"), || {
            let after = open();
            after.0 <= before.0 && after.1 <= before.1
        })
        .await;
    })
    .await;
}
