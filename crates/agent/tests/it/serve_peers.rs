//! The official clients of AG-UI, A2A and MCP drive a served agent with a simulated model from end to end.
//! Needs `scripts/peers`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

use std::path::Path;
use std::time::Duration;

use proofhouse_agent::model::{ModelConfig, open};
use proofhouse_test_support::peers::{peers, script};
use proofhouse_wire::{WireLimits, WireLine};
use serde_json::{Value, json};

use crate::served::Served;

/// How long a peer may take for all it does.
const PATIENCE: Duration = Duration::from_secs(60);

const MANIFESTS: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: demo
description: Greets people.
actions:
  - name: greet
    description: Greets a person by name.
    parameters: {properties: {name: {type: string, description: The name of the person.}}}
    execute: {cel: {expression: "{'greeting': 'hello ' + input.name}"}}
  - name: publish
    description: Publishes the greeting of a person.
    parameters: {properties: {name: {type: string, description: The name of the person.}}}
    execute: {cel: {expression: "{'published': input.name}"}}
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: clerk
description: Greets people and publishes greetings.
prompt: You greet people.
capabilities:
  demo:
    before: [{assert: "review('boss')", match: publish}]
"#;

const GREET: &str = "Greet the person with the name \"Ada\".";
const PUBLISH: &str = "Publish the greeting of the person with the name \"Ada\".";

async fn careful() -> Served {
    let model = open("sim:careful", &ModelConfig::default()).unwrap();
    Served::start(MANIFESTS, model).await
}

/// What a peer's program says at its end.
async fn ask(directory: &Path, peer: &str, arguments: &[&str]) -> Value {
    let spawn = script(directory, peer, "agent", arguments);
    let (mut child, stdin, mut lines) = spawn.start(&WireLimits::default()).unwrap();
    let mut told = Vec::new();
    while let Ok(Some(WireLine::Whole(line) | WireLine::Cut(line))) =
        tokio::time::timeout(PATIENCE, lines.next()).await.unwrap()
    {
        told.push(String::from_utf8(line).unwrap());
    }
    drop(stdin);
    let ended = tokio::time::timeout(PATIENCE, child.wait()).await.unwrap();
    let is_fine = ended.is_some_and(|status| status.success());
    assert!(is_fine, "{peer}: {told:?}: {}", child.stderr());
    serde_json::from_str(told.last().unwrap()).unwrap()
}

#[tokio::test]
async fn the_client_of_ag_ui_runs_the_agent() {
    let Some(directory) = peers("the_client_of_ag_ui_runs_the_agent") else {
        return;
    };
    let served = careful().await;
    let url = served.ag_ui_url();
    let seen = ask(&directory, "ag-ui-server-js", &[&url, GREET, PUBLISH]).await;
    let runs = seen["runs"].as_array().unwrap();
    for run in runs {
        let outcome = &run["outcome"];
        assert!(
            outcome.get("error").is_none() && outcome.get("failed").is_none(),
            "{seen:#}"
        );
    }
    let of = |at: usize| {
        let types = runs[at]["types"].as_array().unwrap();
        types
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of(0)[..5],
        [
            "RUN_STARTED",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT"
        ]
    );
    assert!(
        runs[0]["last"]["content"]
            .as_str()
            .unwrap()
            .contains("hello Ada"),
        "{seen:#}"
    );
    assert!(!of(1).contains(&"TOOL_CALL_START"), "{seen:#}");
    assert_eq!(runs[2]["outcome"]["type"], "interrupt", "{seen:#}");
    assert_eq!(of(3)[1], "TOOL_CALL_RESULT", "{seen:#}");
    assert_eq!(runs[3]["outcome"]["type"], "success");
    // The frontend tool, and the run that has its result.
    assert_eq!(runs.len(), 6, "{seen:#}");
    assert_eq!(
        of(4)[1..],
        [
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "RUN_FINISHED"
        ]
    );
    assert!(of(5).contains(&"TEXT_MESSAGE_CONTENT"), "{seen:#}");
    served.finish().await;
}

fn check_a2a(peer: &str, seen: &Value, states: [&str; 2]) {
    let [completed, waiting] = states;
    assert_eq!(seen["card"], json!(["clerk", "clerk", "demo"]), "{peer}");
    assert_eq!(seen["send"][0], completed, "{peer}: {seen}");
    assert!(
        seen["send"][1].as_str().unwrap().contains("hello Ada"),
        "{peer}: {seen}"
    );
    assert_eq!(seen["get"], completed, "{peer}");
    assert_eq!(
        seen["approval"],
        json!([waiting, completed]),
        "{peer}: {seen}"
    );
}

#[tokio::test]
async fn the_clients_of_a2a_send_stream_and_approve() {
    let Some(directory) = peers("the_clients_of_a2a_send_stream_and_approve") else {
        return;
    };
    let served = careful().await;
    let url = served.a2a_url();
    let modern = ["TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"];

    let seen = ask(&directory, "a2a-py", &[&url, GREET, PUBLISH]).await;
    check_a2a("a2a-py", &seen, modern);
    assert_eq!(seen["list"], json!([1, true]));
    assert_eq!(
        seen["stream"],
        json!(["task", "status_update", "artifact_update", "status_update"])
    );
    let errors = [
        "TaskNotCancelableError",
        "TaskNotFoundError",
        "PushNotificationNotSupportedError",
        "UnsupportedOperationError",
    ];
    assert_eq!(seen["errors"], json!(errors));

    let seen = ask(&directory, "a2a-js", &[&url, GREET, PUBLISH]).await;
    check_a2a("a2a-js", &seen, modern);
    assert_eq!(
        seen["stream"],
        json!(["task", "statusUpdate", "artifactUpdate", "statusUpdate"])
    );
    assert_eq!(
        seen["errors"],
        json!(["JsonRpcTaskNotCancelableError", "JsonRpcTaskNotFoundError"])
    );

    let seen = ask(&directory, "a2a-py03", &[&url, GREET, PUBLISH]).await;
    check_a2a("a2a-py03", &seen, ["completed", "input-required"]);
    assert_eq!(
        seen["stream"],
        json!(["task", "status-update", "artifact-update", "status-update"])
    );
    assert_eq!(seen["errors"], json!([-32002, -32001, -32003]));
    served.finish().await;
}

#[tokio::test]
async fn the_clients_of_mcp_ask_the_agent_and_its_tools() {
    let Some(directory) = peers("the_clients_of_mcp_ask_the_agent_and_its_tools") else {
        return;
    };
    let served = careful().await;
    let url = served.mcp_url();
    for (peer, mode, version) in [
        ("mcp-python-1", "legacy", "2025-11-25"),
        ("mcp-python-2", "legacy", "2025-11-25"),
        ("mcp-python-2", "auto", "2026-07-28"),
        ("mcp-js-1", "legacy", "2025-11-25"),
        ("mcp-js-2", "legacy", "2025-11-25"),
        ("mcp-js-2", "auto", "2026-07-28"),
    ] {
        let seen = ask(&directory, peer, &[mode, "http", &url]).await;
        assert_eq!(seen["version"], version, "{peer} {mode}");
        assert_eq!(
            seen["tools"],
            json!(["clerk", "demo_greet", "demo_publish"])
        );
        assert_eq!(seen["said"][0], false, "{peer} {mode}: {seen}");
        let said = seen["said"][1].as_str().unwrap();
        assert!(said.contains("hello Ada"), "{peer} {mode}: {said}");
        assert_eq!(seen["text"], r#"{"greeting":"hello Ada"}"#);
        assert_eq!(seen["denied"][0], true);
        assert!(seen["denied"][1].as_str().unwrap().contains("restricted"));
    }
    served.finish().await;
}
