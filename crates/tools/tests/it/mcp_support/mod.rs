//! What the tests of `mcp` share: tools that start a server, and how to look at processes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of them"
)]

pub(crate) mod server;
pub(crate) mod task_server;

use std::sync::Arc;
use std::time::Duration;

use proofhouse_manifest::{Bundle, Tool};
use proofhouse_test_support::process::is_running;
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{
    ActionError, ActionResult, Environment, Runtimes, ToolLimits, ToolTask,
};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::retry::RetryPolicy;
use serde_json::{Value, json};

/// Names the part that this program plays when it is started as a server.
pub(crate) const ROLE: &str = "MCP_TEST_ROLE";

/// Long enough for a busy machine, short enough for a test of what hangs.
pub(crate) fn limits() -> ToolLimits {
    ToolLimits {
        mcp_start: Duration::from_secs(25),
        mcp_call: Duration::from_secs(10),
        retry: RetryPolicy {
            base: Duration::from_millis(1),
            ..ToolLimits::default().retry
        },
        outage: Duration::ZERO,
        ..ToolLimits::default()
    }
}

/// A tool with this in its top level.
pub(crate) fn tool(blocks: &str) -> Arc<Tool> {
    let text = format!(
        "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: t\ndescription: d\n\
         settings:\n  properties:\n    api_key: {{}}\n    region: {{}}\n{blocks}\n"
    );
    let (bundle, findings) = Bundle::read(&text);
    assert!(findings.is_empty(), "{findings:#?}\n{text}");
    Arc::new(bundle.tools().next().unwrap().clone())
}

/// Not a test of its own: the program starts itself again, and this is the server of `mcp`.
#[test]
fn act_as_a_server() {
    #[expect(clippy::disallowed_methods, reason = "the role of this process")]
    if let Ok(role) = std::env::var(ROLE) {
        server::serve(&role);
    }
}

/// A tool whose server is this very program in a role, with more keys in the block if need be.
pub(crate) fn acting(role: &str, more: &str) -> Arc<Tool> {
    tool(&format!(
        "mcp:\n{}\n{more}",
        block(role, "  ").trim_end_matches('\n')
    ))
}

/// The lines of a block that starts this program.
pub(crate) fn block(role: &str, indent: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let program = json!(program.display().to_string());
    [
        "transport: stdio".to_owned(),
        format!("command: {program}"),
        "args: [\"mcp_support::act_as_a_server\", --exact, --nocapture]".to_owned(),
        format!("env: {{{ROLE}: {role}, KEY: \"{{settings.api_key}}\"}}"),
    ]
    .map(|line| format!("{indent}{line}\n"))
    .concat()
}

pub(crate) fn environment() -> Environment {
    Environment::new(json!({"api_key": "sk-secret/1", "region": "north"}), || {
        "2026-01-02T03:04:05.000Z".to_owned()
    })
}

pub(crate) fn loopback() -> EgressPolicy {
    EgressPolicy::allowing(["127.0.0.0/8".parse().unwrap()])
}

pub(crate) fn task_with(tool: Arc<Tool>, limits: ToolLimits) -> ToolTask {
    let runtimes = Runtimes::new(&limits, loopback()).unwrap();
    ToolTask::new(tool, environment(), runtimes, limits)
}

pub(crate) fn task(tool: Arc<Tool>) -> ToolTask {
    task_with(tool, limits())
}

pub(crate) async fn invoke(
    task: &ToolTask,
    action: &str,
    arguments: Value,
) -> Result<ActionResult, ActionError> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let cancel = CancellationToken::new();
    task.invoke(action, arguments, json!({}), cancel).await
}

/// The value of a call that must succeed.
pub(crate) async fn value(task: &ToolTask, action: &str, arguments: Value) -> Value {
    match invoke(task, action, arguments).await {
        Ok(outcome) => outcome.value,
        Err(error) => panic!("{action}: {error} {:?}", error.detail),
    }
}

/// The error of a call that must fail.
pub(crate) async fn error(task: &ToolTask, action: &str, arguments: Value) -> ActionError {
    match invoke(task, action, arguments).await {
        Ok(outcome) => panic!("{action}: {outcome:?}"),
        Err(error) => error,
    }
}

pub(crate) async fn names(task: &ToolTask) -> Vec<String> {
    let actions = task.actions(CancellationToken::new()).await.unwrap();
    actions.iter().map(|action| action.name.clone()).collect()
}

pub(crate) async fn end(task: ToolTask) {
    assert_eq!(task.teardown().await, []);
}

/// Whether a process ends soon: a signal takes a moment to arrive.
pub(crate) async fn is_gone(process: &str) -> bool {
    for _ in 0..100 {
        if !is_running(process) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}
