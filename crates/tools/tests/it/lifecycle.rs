//! The life of a runtime in a task: one initialization, one teardown, and `cel` as the simplest of all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use proofhouse_manifest::{ParameterSchema, ToolAction};
use proofhouse_tools::runtime::{
    ActionCall, ActionError, ActionFailure, ActionRuntime, ActionSession, CallEvent, Environment,
    Observer, Runtimes, ToolTask,
};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};

use crate::support::*;

/// Counts what is done to it; fails to initialize as often as it is told.
#[derive(Default, Clone)]
struct Counting {
    initialized: Arc<AtomicUsize>,
    invoked: Arc<AtomicUsize>,
    torn_down: Arc<AtomicUsize>,
    failures: Arc<AtomicUsize>,
    fail_with: Option<ActionFailure>,
}

/// The session with this number.
struct CountingSession(usize, Counting);

impl ActionRuntime for Counting {
    fn initialize<'a>(
        &'a self,
        _: &'a ActionCall,
        _: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            let number = self.initialized.fetch_add(1, Ordering::SeqCst);
            match self.fail_with {
                Some(failure) if number < self.failures.load(Ordering::SeqCst) => {
                    Err(ActionError::new(failure, "not now: sk-secret/1"))
                }
                _ => Ok(Arc::new(CountingSession(number, self.clone())) as Arc<dyn ActionSession>),
            }
        })
    }
}

impl ActionSession for CountingSession {
    fn invoke<'a>(
        &'a self,
        call: &'a ActionCall,
        _: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async {
            self.1.invoked.fetch_add(1, Ordering::SeqCst);
            if call.parameters["x"] == "fail" {
                return Err(ActionError::new(ActionFailure::Unreachable, "gone"));
            }
            Ok(json!(self.0))
        })
    }

    fn teardown<'a>(&'a self, _: &'a Environment) -> BoxFuture<'a, Result<(), ActionError>> {
        Box::pin(async {
            self.1.torn_down.fetch_add(1, Ordering::SeqCst);
            Err(ActionError::new(
                ActionFailure::Broken,
                "sk-secret/1 did not say goodbye",
            ))
        })
    }
}

fn counted(runtime: Counting) -> (Arc<Counting>, ToolTask) {
    let runtime = Arc::new(runtime);
    let runtimes = Runtimes::new(&limits(), loopback())
        .expect("the client is set up")
        .with(proofhouse_manifest::BackendKind::Cel, runtime.clone());
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
    assert_eq!(error.failure, ActionFailure::Ended);
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
    for (failure, tries) in [
        (ActionFailure::HttpStatus, 2),
        // The host may answer by then.
        (ActionFailure::Unreachable, 2),
        (ActionFailure::Setting, 1),
    ] {
        let (runtime, task) = counted(Counting {
            fail_with: Some(failure),
            failures: Arc::new(1.into()),
            ..Counting::default()
        });
        let error = act(&task, json!({})).await.unwrap_err();
        assert_eq!(
            (error.failure, error.message.as_str()),
            (failure, "not now: [redacted]")
        );
        let second = act(&task, json!({})).await;
        assert_eq!(second.is_ok(), tries == 2);
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
        (ActionFailure::Cancelled, true)
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
        ("act", json!({"x": 0}), ActionFailure::Cel),
        ("act", json!({"x": "many"}), ActionFailure::Cel),
        ("act", json!({"y": 1}), ActionFailure::Arguments),
        ("other", json!({}), ActionFailure::Arguments),
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
    let runtimes = Runtimes::new(&limits(), loopback()).expect("the client is set up");
    let runtimes = runtimes.without(proofhouse_manifest::BackendKind::Cel);
    let tool = tool("cel: {expression: now}");
    let task = ToolTask::new(tool, environment(), runtimes, limits());
    let error = act(&task, json!({})).await.unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (ActionFailure::NoRuntime, false)
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
            (ActionFailure::Cancelled, unknown),
            "{method}"
        );
    }
}

/// Waits for a second in every call; may clean up when it is cancelled.
#[derive(Default, Clone)]
struct Slow {
    cleans_up: bool,
    running: Arc<AtomicUsize>,
    cleaned_up: Arc<AtomicUsize>,
    torn_down_with: Arc<AtomicUsize>,
}

impl ActionRuntime for Slow {
    fn initialize<'a>(
        &'a self,
        _: &'a ActionCall,
        _: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        Box::pin(async { Ok(Arc::new(self.clone()) as Arc<dyn ActionSession>) })
    }

    fn cancels_itself(&self) -> bool {
        self.cleans_up
    }
}

impl ActionSession for Slow {
    fn invoke<'a>(
        &'a self,
        call: &'a ActionCall,
        _: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async {
            self.running.fetch_add(1, Ordering::SeqCst);
            tokio::select! {
                () = call.cancel.cancelled(), if self.cleans_up => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    self.cleaned_up.fetch_add(1, Ordering::SeqCst);
                }
                () = tokio::time::sleep(Duration::from_secs(30)) => {}
            }
            self.running.fetch_sub(1, Ordering::SeqCst);
            Err(ActionError::new(ActionFailure::Cancelled, "cleaned up"))
        })
    }

    fn teardown<'a>(&'a self, _: &'a Environment) -> BoxFuture<'a, Result<(), ActionError>> {
        Box::pin(async {
            let running = self.running.load(Ordering::SeqCst);
            self.torn_down_with.store(running + 100, Ordering::SeqCst);
            Ok(())
        })
    }
}

fn with_runtime(runtime: Arc<dyn ActionRuntime>) -> ToolTask {
    let runtimes = Runtimes::new(&limits(), loopback())
        .expect("the client is set up")
        .with(proofhouse_manifest::BackendKind::Cel, runtime);
    ToolTask::new(
        tool("cel: {expression: now}"),
        environment(),
        runtimes,
        limits(),
    )
}

#[tokio::test]
async fn teardown_ends_calls_under_way_and_waits_for_their_cleaning_up() {
    let slow = Arc::new(Slow {
        cleans_up: true,
        ..Slow::default()
    });
    let task = with_runtime(slow.clone());
    let calling = task.clone();
    let call = tokio::spawn(async move { act(&calling, json!({})).await });
    while count(&slow.running) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(
        task.evict().await.is_none(),
        "a task with a call is not idle"
    );
    assert!(task.teardown().await.is_empty());
    assert_eq!(count(&slow.cleaned_up), 1);
    assert_eq!(count(&slow.torn_down_with), 100, "no call was running then");
    assert_eq!(call.await.unwrap().unwrap_err().message, "cleaned up");
}

#[tokio::test]
async fn a_call_that_does_not_clean_up_is_dropped_at_once() {
    let slow = Arc::new(Slow::default());
    let task = with_runtime(slow.clone());
    let calling = task.clone();
    let call = tokio::spawn(async move { act(&calling, json!({})).await });
    while count(&slow.running) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(task.teardown().await.is_empty());
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.failure, ActionFailure::Cancelled);
}

#[tokio::test]
async fn an_evicted_state_is_made_again() {
    let (runtime, task) = counted(Counting::default());
    assert_eq!(task.evict().await, Some(vec![]), "nothing was there");
    act(&task, json!({})).await.unwrap();
    assert_eq!(task.evict().await.map(|errors| errors.len()), Some(1));
    assert_eq!(act(&task, json!({})).await.unwrap().value, json!(1));
    task.teardown().await;
    assert_eq!(
        (count(&runtime.initialized), count(&runtime.torn_down)),
        (2, 2)
    );
    assert_eq!(task.evict().await, Some(vec![]), "the task has ended");
}

/// Keeps what it was told.
#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<String>>);

impl Observer for Heard {
    fn observe(&self, event: CallEvent<'_>) {
        self.0
            .lock()
            .expect("nobody panicked")
            .push(format!("{event:?}"));
    }
}

#[tokio::test]
async fn observers_hear_of_every_call_but_of_no_secret() {
    let heard = Arc::new(Heard::default());
    let runtimes = Runtimes::new(&limits(), loopback()).unwrap();
    let tool = tool("cel: {expression: \"input.x\"}");
    let task = ToolTask::new(tool, environment(), runtimes, limits()).with_observer(heard.clone());
    act(&task, json!({"x": "sk-secret/1"})).await.unwrap();
    act(&task, json!({"y": 1})).await.unwrap_err();
    let heard = heard.0.lock().unwrap();
    assert_eq!(heard.len(), 4);
    assert!(heard[0].contains("Called") && heard[0].contains("[redacted]"));
    assert!(heard[1].contains("Returned") && heard[1].contains("Ok("));
    assert!(heard[3].contains("Err("));
    assert!(!heard.iter().any(|event| event.contains("sk-secret")));
}

/// A backend that knows its actions only once it is initialized.
struct Deriving;

impl ActionRuntime for Deriving {
    fn initialize<'a>(
        &'a self,
        call: &'a ActionCall,
        _: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        Box::pin(async {
            Ok(Arc::new(DerivingSession(Arc::clone(&call.action))) as Arc<dyn ActionSession>)
        })
    }

    fn completes_actions(&self) -> bool {
        true
    }
}

/// A session for this block.
struct DerivingSession(Arc<ToolAction>);

impl ActionSession for DerivingSession {
    fn derived(&self) -> Vec<String> {
        vec!["list".to_owned(), "read".to_owned()]
    }

    fn action(
        &self,
        name: &str,
        declared: Option<&Arc<ToolAction>>,
    ) -> Result<Option<Arc<ToolAction>>, ActionError> {
        if !self.derived().iter().any(|known| known == name) {
            return Ok(None);
        }
        let mut action = ToolAction::clone(declared.unwrap_or(&self.0));
        action.name = name.to_owned();
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        action.parameters = ParameterSchema::given(schema);
        Ok(Some(Arc::new(action)))
    }

    fn invoke<'a>(
        &'a self,
        call: &'a ActionCall,
        _: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async { Ok(json!([call.action.name, call.parameters])) })
    }
}

#[tokio::test]
async fn a_shared_block_derives_actions() {
    let text = "kind: commonagents.info/v1/tool\nnamespace: demo\nname: files\ndescription: d\n\
        mcp: {transport: stdio, command: files}\n";
    let (bundle, findings) = proofhouse_manifest::Bundle::read(text);
    assert!(findings.is_empty(), "{findings:#?}");
    let tool = Arc::new(bundle.tools().next().unwrap().clone());
    let runtimes = Runtimes::new(&limits(), loopback())
        .unwrap()
        .with(proofhouse_manifest::BackendKind::Mcp, Arc::new(Deriving));
    let task = ToolTask::new(tool, environment(), runtimes, limits());
    let actions = task.actions(CancellationToken::new()).await.unwrap();
    let names: Vec<&str> = actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(names, ["list", "read"]);
    let call = |name: &'static str, arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap();
        task.invoke(name, arguments, json!({}), CancellationToken::new())
    };
    let outcome = call("read", json!({"path": "a"})).await.unwrap();
    assert_eq!(outcome.value, json!(["read", {"path": "a"}]));
    let error = call("read", json!({})).await.unwrap_err();
    assert_eq!(error.failure, ActionFailure::Arguments);
    let error = call("raed", json!({})).await.unwrap_err();
    assert!(error.message.contains("did you mean `read`?"), "{error}");
}
