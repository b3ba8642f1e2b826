//! `mcp` over stdio: servers that behave, and servers that do everything they should not.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of them"
)]

use std::sync::Arc;
use std::time::Duration;

use proofhouse_test_support::process::is_running;
use proofhouse_tools::actions::McpRuntime;
use proofhouse_tools::runtime::{ActionFailure, Runtimes, ToolLimits, ToolTask};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

use crate::mcp_support::*;

#[tokio::test]
async fn all_tools_of_a_server_are_actions() {
    for role in ["plain", "modern"] {
        let task = task(acting(role, ""));
        let actions = task.actions(CancellationToken::new()).await.unwrap();
        let echo = actions.iter().find(|action| action.name == "echo").unwrap();
        assert_eq!(echo.description, "Says it again.");
        assert_eq!(echo.parameters.json_schema()["required"], json!(["text"]));
        assert_eq!(value(&task, "echo", json!({"text": "hi"})).await, "hi");
        assert_eq!(
            value(&task, "structured", json!({})).await,
            json!({"b": [1, 2]})
        );
        // A broken promise is the server's affair.
        assert_eq!(
            value(&task, "promise", json!({})).await,
            json!({"b": [1, 2]})
        );
        assert_eq!(value(&task, "empty", json!({})).await, Value::Null);
        let wrong = error(&task, "echo", json!({"text": 5})).await;
        assert_eq!(wrong.failure, ActionFailure::Arguments, "{wrong}");
        let unknown = error(&task, "ecko", json!({})).await;
        assert!(unknown.message.contains("did you mean `echo`"), "{unknown}");
        end(task).await;
    }
}

#[tokio::test]
async fn an_action_is_the_tool_of_its_name() {
    let blocks = format!(
        "mcp:\n{}actions:\n  - name: arguments\n    description: mine\n    parameters:\n      properties:\n        \
         days: {{type: integer, default: 3}}\n    execute: {{mcp: {{}}}}\n  - name: echo\n    description: Says.\n    \
         execute: {{mcp: {{}}}}\n",
        block("plain", "  ")
    );
    let task = task(tool(&blocks));
    let actions = task.actions(CancellationToken::new()).await.unwrap();
    let told: Vec<_> = actions
        .iter()
        .map(|action| (action.name.as_str(), action.description.as_str()))
        .collect();
    assert_eq!(told, [("arguments", "mine"), ("echo", "Says.")]);
    let said = value(&task, "arguments", json!({"more": true})).await;
    let said: Value = serde_json::from_str(said.as_str().unwrap()).unwrap();
    assert_eq!(said, json!({"more": true, "days": 3}));
    assert_eq!(
        error(&task, "arguments", json!({"days": "x"}))
            .await
            .failure,
        ActionFailure::Arguments
    );
    assert_eq!(
        error(&task, "echo", json!({})).await.failure,
        ActionFailure::Arguments
    );
    end(task).await;
}

#[tokio::test]
async fn an_action_that_the_server_does_not_have_is_an_error_of_the_manifest() {
    let action = "actions:\n  - name: ecko\n    description: d\n    execute: {mcp: {}}\n";
    let task = task(acting("plain", action));
    let error = error(&task, "ecko", json!({})).await;
    assert_eq!(error.failure, ActionFailure::Manifest);
    assert!(!error.is_recoverable());
    assert!(error.message.contains("did you mean `echo`?"), "{error}");
    end(task).await;
}

#[tokio::test]
async fn errors_of_tools_are_told_to_the_model() {
    let task = task(acting("plain", ""));
    let failed = error(&task, "fail", json!({})).await;
    assert_eq!(failed.to_json()["error"], "tool_error");
    assert_eq!(failed.message, "no luck with [redacted]");
    assert!(failed.is_recoverable() && !failed.outcome_unknown);
    let refused = error(&task, "rpc_error", json!({})).await;
    assert_eq!(refused.detail["code"], -32602);
    assert!(refused.is_recoverable(), "{refused}");
    let odd = error(&task, "nonsense", json!({})).await;
    assert_eq!(odd.failure, ActionFailure::Response, "{odd}");
    assert_eq!(value(&task, "count", json!({})).await, "4");
    end(task).await;
}

#[tokio::test]
async fn only_the_environment_of_the_manifest_reaches_a_server() {
    let task = task(acting("plain", ""));
    let names = value(&task, "environment", json!({})).await;
    let mut names: Vec<String> = serde_json::from_str(names.as_str().unwrap()).unwrap();
    // What the test harness sets for itself.
    names.retain(|name| !name.starts_with("RUST") && !name.starts_with("__RUST"));
    names.sort();
    assert_eq!(names, ["KEY", ROLE, "PATH"]);
    end(task).await;
}

#[tokio::test]
async fn the_operator_adds_to_the_environment() {
    let variables = [
        ("LANG", "C"),
        ("PATH", "/opt/bin"),
        ("KEY", "the manifest wins"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mcp = McpRuntime::new(&limits(), loopback()).unwrap();
    let runtimes = Runtimes::new(&limits(), loopback()).unwrap();
    let runtimes = runtimes.with(
        proofhouse_manifest::BackendKind::Mcp,
        Arc::new(mcp.with_variables(variables)),
    );
    let task = ToolTask::new(acting("plain", ""), environment(), runtimes, limits());
    let names = value(&task, "environment", json!({})).await;
    let mut names: Vec<String> = serde_json::from_str(names.as_str().unwrap()).unwrap();
    names.retain(|name| !name.starts_with("RUST") && !name.starts_with("__RUST"));
    names.sort();
    assert_eq!(names, ["KEY", "LANG", ROLE, "PATH"]);
    end(task).await;
}

#[tokio::test]
async fn a_command_that_is_not_there_ends_the_task() {
    for command in ["no-such-server-anywhere", "/etc/passwd"] {
        let task = task(tool(&format!(
            "mcp: {{transport: stdio, command: {command}}}"
        )));
        let error = error(&task, "x", json!({})).await;
        assert_eq!(error.to_json()["error"], "command_not_found", "{error}");
        assert!(!error.is_recoverable());
    }
}

#[tokio::test]
async fn parameters_cannot_choose_the_server() {
    let blocks =
        "parameters:\n  properties:\n    name: {}\nmcp: {transport: stdio, command: \"{name}\"}";
    let error = error(&task(tool(blocks)), "x", json!({})).await;
    assert_eq!(error.failure, ActionFailure::Manifest, "{error}");
}

#[tokio::test]
async fn a_crash_at_the_start_shows_the_last_words_without_secrets() {
    let error = error(&task(acting("crash_at_start", "")), "echo", json!({})).await;
    assert_eq!(error.failure, ActionFailure::Broken, "{error}");
    assert!(error.is_recoverable());
    let said = error.detail["stderr"].as_str().unwrap();
    assert!(said.contains("cannot open the database"), "{said}");
    assert!(
        !error.to_json().to_string().contains("sk-secret"),
        "{error:?}"
    );
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[tokio::test]
async fn hanging_at_the_start_ends_in_time() {
    for role in ["hang_at_start", "hang_in_list"] {
        let limits = ToolLimits {
            mcp_start: Duration::from_secs(4),
            ..limits()
        };
        let task = task_with(acting(role, ""), limits);
        let error = error(&task, "echo", json!({})).await;
        assert_eq!(error.failure, ActionFailure::Timeout, "{role}: {error}");
        assert!(error.is_recoverable() && !error.outcome_unknown);
        end(task).await;
    }
}

#[tokio::test]
async fn servers_that_stumble_over_the_first_question_are_asked_otherwise() {
    for role in ["crash_on_discover", "mute_on_discover"] {
        let task = task(acting(role, ""));
        assert_eq!(
            value(&task, "echo", json!({"text": "a"})).await,
            "a",
            "{role}"
        );
        end(task).await;
    }
}

#[tokio::test]
async fn servers_that_are_slow_to_start_are_waited_for() {
    let slow = async |role| {
        let limits = ToolLimits {
            mcp_start: Duration::from_secs(40),
            ..limits()
        };
        let task = task_with(acting(role, ""), limits);
        assert_eq!(
            value(&task, "echo", json!({"text": "a"})).await,
            "a",
            "{role}"
        );
        end(task).await;
    };
    tokio::join!(slow("slow_legacy"), slow("slow_modern"));
}

#[tokio::test]
async fn a_call_that_hangs_is_given_up_and_the_server_goes_on() {
    let limits = ToolLimits {
        mcp_call: Duration::from_secs(4),
        ..limits()
    };
    let task = task_with(acting("plain", ""), limits);
    let before = value(&task, "pid", json!({})).await;
    let error = error(&task, "hang", json!({})).await;
    assert_eq!(error.failure, ActionFailure::Timeout);
    assert!(error.outcome_unknown && error.is_recoverable());
    let said = error.detail["stderr"].as_str().unwrap();
    assert!(said.contains("thinking hard"), "{said}");
    assert!(names(&task).await.contains(&"hang".to_owned()));
    assert_eq!(value(&task, "pid", json!({})).await, before);
    end(task).await;
}

#[tokio::test]
async fn a_server_that_died_is_started_again_for_the_next_call() {
    let task = task(acting("plain", ""));
    let first = value(&task, "pid", json!({})).await;
    let died = error(&task, "die", json!({})).await;
    assert_eq!(died.failure, ActionFailure::Broken, "{died}");
    assert!(died.outcome_unknown && died.is_recoverable());
    let said = died.detail["stderr"].as_str().unwrap();
    assert!(said.contains("the key is [redacted]"), "{said}");
    let second = value(&task, "pid", json!({})).await;
    assert_ne!(first, second);
    // The call that may have had its effect was not repeated.
    assert_eq!(value(&task, "count", json!({})).await, "2");
    end(task).await;
    assert!(!is_running(second.as_str().unwrap()));
}

#[tokio::test]
async fn what_a_server_started_goes_with_it() {
    let task = task(acting("plain", ""));
    let child = value(&task, "fork", json!({})).await;
    let child = child.as_str().unwrap();
    assert!(is_running(child));
    let died = error(&task, "die_and_leave", json!({})).await;
    assert_eq!(died.failure, ActionFailure::Broken, "{died}");
    let said = died.detail["stderr"].as_str().unwrap();
    let other = said.rsplit("child ").next().unwrap().trim();
    for process in [child, other] {
        assert!(is_gone(process).await, "{process} {said}");
    }
    let child = value(&task, "fork", json!({})).await;
    end(task).await;
    assert!(is_gone(child.as_str().unwrap()).await);
}

#[tokio::test]
async fn a_server_that_ignores_every_request_to_end_is_killed() {
    let program = std::env::current_exe().unwrap();
    let blocks = format!(
        "mcp:\n  transport: stdio\n  command: sh\n  args: [-c, 'trap \"\" TERM; exec \"$0\" \"$@\"', {}, \
         \"mcp_support::act_as_a_server\", --exact, --nocapture]\n  env: {{{ROLE}: stubborn}}\n",
        json!(program.display().to_string())
    );
    let task = task(tool(&blocks));
    let process = value(&task, "pid", json!({})).await;
    let child = value(&task, "fork", json!({})).await;
    end(task).await;
    for process in [process, child] {
        assert!(is_gone(process.as_str().unwrap()).await, "{process}");
    }
}

#[tokio::test]
async fn a_task_that_is_dropped_leaves_no_server() {
    let task = task(acting("plain", ""));
    let process = value(&task, "pid", json!({})).await;
    drop(task);
    assert!(is_gone(process.as_str().unwrap()).await);
}

#[tokio::test]
async fn noise_does_not_drown_the_answer() {
    let limits = ToolLimits {
        mcp_call: Duration::from_secs(60),
        ..limits()
    };
    let task = task_with(acting("plain", ""), limits);
    for (tool, answer) in [
        ("stderr", "heard"),
        ("garbage", "sorry"),
        ("wrong_ids", "for you"),
        ("flood", "done"),
    ] {
        assert_eq!(value(&task, tool, json!({})).await, answer, "{tool}");
    }
    assert_eq!(
        value(&task, "echo", json!({"text": "still here"})).await,
        "still here"
    );
    let huge = error(&task, "huge", json!({})).await;
    assert_eq!(huge.failure, ActionFailure::TooLarge, "{huge}");
    assert!(huge.is_recoverable() && huge.outcome_unknown);
    // The late answer is to nobody.
    assert_eq!(value(&task, "echo", json!({"text": "on"})).await, "on");
    let drowned = error(&task, "drown", json!({})).await;
    assert_eq!(drowned.failure, ActionFailure::Broken, "{drowned}");
    assert!(drowned.outcome_unknown);
    assert_eq!(
        value(&task, "echo", json!({"text": "again"})).await,
        "again"
    );
    end(task).await;
}

#[tokio::test]
async fn a_server_that_does_not_read_or_never_ends_a_line_is_left_in_time() {
    let limits = ToolLimits {
        mcp_call: Duration::from_secs(3),
        ..limits()
    };
    let deaf = task_with(acting("deaf", ""), limits.clone());
    for _ in 0..3 {
        let text = "x".repeat(200_000);
        let error = error(&deaf, "echo", json!({"text": text})).await;
        assert_eq!(error.failure, ActionFailure::Timeout, "{error}");
    }
    end(deaf).await;
    let endless = task_with(acting("plain", ""), limits);
    let process = value(&endless, "pid", json!({})).await;
    assert_eq!(
        error(&endless, "one_line", json!({})).await.failure,
        ActionFailure::Timeout
    );
    end(endless).await;
    assert!(is_gone(process.as_str().unwrap()).await);
}

#[tokio::test]
async fn lists_end_and_lies_are_left_out() {
    let task_of = |role| task(acting(role, ""));
    let task = task_of("endless_pages");
    assert_eq!(names(&task).await.len(), 100);
    end(task).await;
    let task = task_of("circle");
    assert_eq!(names(&task).await, ["tool_0", "tool_again"]);
    end(task).await;
    let task = task_of("liar");
    let actions = task.actions(CancellationToken::new()).await.unwrap();
    let told: Vec<_> = actions
        .iter()
        .map(|action| (action.name.as_str(), action.description.as_str()))
        .collect();
    assert_eq!(told[0], ("echo", "good[31m [redacted]"));
    let names: Vec<&str> = told.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["echo", "list", "broken", "remote"]);
    // A schema that means nothing is not held against the arguments.
    for name in ["broken", "remote", "list"] {
        let error = error(&task, name, json!({"a": 1})).await;
        assert_eq!(error.failure, ActionFailure::Tool, "{name}: {error}");
    }
    end(task).await;
}

#[tokio::test]
async fn a_list_that_changed_is_read_again() {
    for role in ["plain", "modern"] {
        let task = task(acting(role, ""));
        assert!(!names(&task).await.contains(&"grown".to_owned()));
        assert_eq!(value(&task, "change", json!({})).await, "changed");
        let mut seen = Vec::new();
        for _ in 0..100 {
            seen = names(&task).await;
            if seen.contains(&"grown".to_owned()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(seen.contains(&"grown".to_owned()), "{role}: {seen:?}");
        assert!(!seen.contains(&"structured".to_owned()));
        end(task).await;
    }
}

#[tokio::test]
async fn a_server_that_asks_back_is_declined() {
    let asked = |said: Value| -> Value { serde_json::from_str(said.as_str().unwrap()).unwrap() };
    let legacy = task(acting("plain", ""));
    let answers = asked(value(&legacy, "ask", json!({})).await);
    assert_eq!(
        answers,
        json!([-32601, -32601, {"action": "decline"}, {"roots": []}])
    );
    end(legacy).await;
    let modern = task(acting("modern", ""));
    let answers = asked(value(&modern, "ask", json!({})).await);
    assert_eq!(
        answers,
        json!([{"user": {"action": "decline"}, "files": {"roots": []}}, "opaque"])
    );
    let endless = error(&modern, "ask_without_end", json!({})).await;
    assert_eq!(endless.failure, ActionFailure::Response, "{endless}");
    assert_eq!(value(&modern, "count", json!({})).await, "8");
    end(modern).await;
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once() {
    let task = task(acting("plain", ""));
    assert_eq!(value(&task, "echo", json!({"text": "a"})).await, "a");
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        later.cancel();
    });
    let called = task.invoke("hang", Default::default(), json!({}), cancel);
    assert_eq!(called.await.unwrap_err().failure, ActionFailure::Cancelled);
    assert_eq!(value(&task, "echo", json!({"text": "b"})).await, "b");
    end(task).await;
}

#[tokio::test]
async fn many_calls_at_once_use_one_server() {
    let task = task(acting("plain", ""));
    let calls = (0..20).map(|_| value(&task, "pid", json!({})));
    let mut all = futures_util::future::join_all(calls).await;
    all.dedup();
    assert_eq!(all.len(), 1);
    end(task).await;
}
