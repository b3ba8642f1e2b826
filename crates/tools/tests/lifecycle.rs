//! The life of a runtime in a task: one initialization, one teardown, and `cel` as the simplest of all.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use proofhouse_tools::runtime::{
    ActionError, ActionRuntime, Call, Environment, Failure, Runtimes, State, ToolTask,
};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};
use support::*;

/// Counts what is done to it; fails to initialize as often as it is told.
#[derive(Default)]
struct Counting {
    initialized: AtomicUsize,
    invoked: AtomicUsize,
    torn_down: AtomicUsize,
    failures: AtomicUsize,
    fail_with: Option<Failure>,
}

impl ActionRuntime for Counting {
    fn initialize<'a>(
        &'a self,
        _: &'a Call,
        _: &'a Environment,
    ) -> BoxFuture<'a, Result<State, ActionError>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            let number = self.initialized.fetch_add(1, Ordering::SeqCst);
            match self.fail_with {
                Some(failure) if number < self.failures.load(Ordering::SeqCst) => {
                    Err(ActionError::new(failure, "not now: sk-secret/1"))
                }
                _ => Ok(State::new(number)),
            }
        })
    }

    fn invoke<'a>(
        &'a self,
        state: &'a State,
        call: &'a Call,
        _: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async {
            self.invoked.fetch_add(1, Ordering::SeqCst);
            if call.parameters["x"] == "fail" {
                return Err(ActionError::new(Failure::Unreachable, "gone"));
            }
            Ok(json!(state.get::<usize>()))
        })
    }

    fn teardown<'a>(
        &'a self,
        _: &'a State,
        _: &'a Environment,
    ) -> BoxFuture<'a, Result<(), ActionError>> {
        Box::pin(async {
            self.torn_down.fetch_add(1, Ordering::SeqCst);
            Err(ActionError::new(
                Failure::Broken,
                "sk-secret/1 did not say goodbye",
            ))
        })
    }
}

fn counted(runtime: Counting) -> (Arc<Counting>, ToolTask) {
    let runtime = Arc::new(runtime);
    let runtimes = Runtimes::new(&limits(), loopback())
        .expect("the client is set up")
        .with("cel", runtime.clone());
    let tool = tool("cel: {expression: now}");
    (
        runtime,
        ToolTask::new(tool, environment(), runtimes, limits()),
    )
}

fn count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_first_calls_initialize_once() {
    let (runtime, task) = counted(Counting::default());
    let calls = (0..100).map(|_| {
        let task = task.clone();
        tokio::spawn(async move { act(&task, json!({})).await })
    });
    for result in join_all(calls).await {
        assert_eq!(result.unwrap().unwrap().value, json!(0));
    }
    assert_eq!(
        (count(&runtime.initialized), count(&runtime.invoked)),
        (1, 100)
    );
}

#[tokio::test]
async fn teardown_runs_once_also_after_failure() {
    let (runtime, task) = counted(Counting::default());
    let error = act(&task, json!({"x": "fail"})).await.unwrap_err();
    assert!(!error.is_recoverable());
    let errors = task.teardown().await;
    assert_eq!(errors[0].message, "[redacted] did not say goodbye");
    assert!(task.teardown().await.is_empty());
    assert_eq!(count(&runtime.torn_down), 1);
    let error = act(&task, json!({})).await.unwrap_err();
    assert_eq!(error.failure, Failure::Ended);
    assert_eq!(
        (count(&runtime.initialized), count(&runtime.invoked)),
        (1, 1)
    );
}

#[tokio::test]
async fn what_was_never_used_is_not_torn_down() {
    let (runtime, task) = counted(Counting::default());
    assert!(task.teardown().await.is_empty());
    assert_eq!(
        (count(&runtime.initialized), count(&runtime.torn_down)),
        (0, 0)
    );
}

#[tokio::test]
async fn a_recoverable_failure_to_initialize_can_be_tried_again() {
    for (failure, tries) in [(Failure::HttpStatus, 2), (Failure::Unreachable, 1)] {
        let (runtime, task) = counted(Counting {
            fail_with: Some(failure),
            failures: 1.into(),
            ..Counting::default()
        });
        let error = act(&task, json!({})).await.unwrap_err();
        assert_eq!(
            (error.failure, error.message.as_str()),
            (failure, "not now: [redacted]")
        );
        let second = act(&task, json!({})).await;
        assert_eq!(second.is_ok(), failure == Failure::HttpStatus);
        assert_eq!(count(&runtime.initialized), tries);
    }
}

#[tokio::test]
async fn a_cancelled_first_call_loses_nothing() {
    let (runtime, task) = counted(Counting::default());
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        stop.cancel();
    });
    let error = task
        .invoke("act", Map::new(), json!({}), cancel)
        .await
        .unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (Failure::Cancelled, true)
    );
    // Teardown waits for the initialization that is under way.
    assert_eq!(task.teardown().await.len(), 1);
    assert_eq!(
        (count(&runtime.initialized), count(&runtime.torn_down)),
        (1, 1)
    );
}

#[tokio::test]
async fn cel_sees_its_variables() {
    let task = task(tool(
        "cel: {expression: \"{'x': input.x, 'now': now, 'agent': context.agent.name}\"}",
    ));
    let outcome = act(&task, json!({"x": 7})).await.unwrap();
    assert_eq!(
        outcome.value,
        json!({"x": 7, "now": "2026-01-02T03:04:05.000Z", "agent": "a"})
    );
}

#[tokio::test]
async fn failures_before_and_in_cel_are_told() {
    let divide = task(tool("cel: {expression: \"1 / int(input.x)\"}"));
    for (action, arguments, failure) in [
        ("act", json!({"x": 0}), Failure::Cel),
        ("act", json!({"x": "many"}), Failure::Cel),
        ("act", json!({"y": 1}), Failure::Arguments),
        ("other", json!({}), Failure::Arguments),
    ] {
        let arguments = arguments.as_object().cloned().unwrap();
        let result = divide
            .invoke(action, arguments, json!({}), CancellationToken::new())
            .await;
        let error = result.unwrap_err();
        assert_eq!(
            (error.failure, error.is_recoverable()),
            (failure, true),
            "{error}"
        );
    }
}

#[tokio::test]
async fn backends_without_a_runtime_say_so() {
    let task = task(tool("kubernetes_job: {namespace: n, spec: {}}"));
    let error = act(&task, json!({})).await.unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (Failure::NoRuntime, false)
    );
}

#[tokio::test]
async fn a_cancelled_request_may_have_had_its_effect() {
    let server = Server::start(|_, _| Reply::Silence).await;
    for (method, unknown) in [("GET", false), ("POST", true), ("DELETE", false)] {
        let url = format!("http://127.0.0.1:{}/", server.port);
        let task = task(tool(&format!(
            "stateless_http: {{method: {method}, url: \"{url}\"}}"
        )));
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            stop.cancel();
        });
        let error = task
            .invoke("act", Map::new(), json!({}), cancel)
            .await
            .unwrap_err();
        assert_eq!(
            (error.failure, error.outcome_unknown),
            (Failure::Cancelled, unknown),
            "{method}"
        );
    }
}
