//! Tasks and those who ask: functions of theirs, what was said elsewhere, calls from outside.

use proofhouse_agent::model::{ChatMessage, ToolCall, ToolSpec};
use proofhouse_agent::task::{CallStatus, EndReason, TaskInput, TaskOptions};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};

use crate::tasks::*;

fn arguments(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "Shows something.".to_owned(),
        parameters: json!({"type": "object"}),
    }
}

#[tokio::test]
async fn a_call_of_a_function_of_whoever_asks_is_left_open() {
    let model = Puppet::calling(vec![
        ("notes_read", json!({"path": "a"})),
        ("show", json!({"text": "hi"})),
    ]);
    let task = start(&agent("capabilities: {notes: '*'}\n"), model.clone());
    let input = TaskInput {
        tools: vec![tool("show"), tool("notes_read"), tool("show")],
        context: Some("The page is blue.".to_owned()),
        ..TaskInput::message("go")
    };
    let output = task.send(input).await;
    assert_eq!(output.pending.len(), 1);
    assert_eq!(output.pending[0].name, "show");
    let asked = model.asked.lock().unwrap()[0].clone();
    assert!(asked.system.unwrap().ends_with("The page is blue."));
    let names: Vec<&str> = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["notes_read", "notes_write", "notes_fail", "show"]);

    let result = ChatMessage::tool(&output.pending[0], "shown", false);
    let stray = ChatMessage::user("by the way");
    let input = TaskInput {
        preceding: vec![stray.clone(), result.clone()],
        goes_on: true,
        ..TaskInput::default()
    };
    let output = task.send(input).await;
    assert_eq!(output.pending.len(), 0);
    let asked = model.asked.lock().unwrap()[1].clone();
    assert!(!asked.system.unwrap().contains("blue"));
    assert_eq!(asked.messages[3..], [result, stray]);
    assert!(matches!(&asked.messages[2], ChatMessage::Tool { name, .. } if name == "notes_read"));
}

#[tokio::test]
async fn a_call_that_stays_open_is_closed_for_the_model() {
    let model = Puppet::new(|request| {
        Ok(match request.messages.len() {
            1 => call(&[("show", json!({}))]),
            _ => say("fine"),
        })
    });
    let task = start(&agent(""), model.clone());
    let input = TaskInput {
        tools: vec![tool("show")],
        ..TaskInput::message("go")
    };
    assert_eq!(task.send(input).await.pending.len(), 1);
    assert_eq!(
        task.send(TaskInput::message("never mind")).await.message,
        "fine"
    );
    let asked = model.asked.lock().unwrap()[1].clone();
    let ChatMessage::Tool {
        content, is_error, ..
    } = &asked.messages[2]
    else {
        panic!("{asked:?}")
    };
    assert_eq!((content.as_str(), *is_error), ("no result was given", true));
}

#[tokio::test]
async fn open_calls_count_towards_the_limit() {
    let model = Puppet::new(|_| Ok(call(&[("show", json!({})), ("show", json!({}))])));
    let task = start(&agent("limits: {max_tool_calls: 1}\n"), model);
    let input = TaskInput {
        tools: vec![tool("show")],
        ..TaskInput::message("go")
    };
    let end = task.send(input).await.ended.unwrap();
    assert_eq!(end.reason, EndReason::LimitExceeded);
}

#[tokio::test]
async fn what_was_said_before_is_in_the_conversation() {
    let model = Puppet::new(|_| Ok(say("yes")));
    let before = ToolCall::new("c1", "transfer", arguments(&json!({"to": "eve"})));
    let history = vec![
        ChatMessage::user("pay eve"),
        ChatMessage::Assistant {
            text: String::new(),
            calls: vec![before.clone()],
        },
        ChatMessage::tool(&before, "paid", false),
    ];
    let options = TaskOptions {
        history: history.clone(),
        ..TaskOptions::default()
    };
    let host = host(
        &agent("guardrails: {before: [{assert: 'size(input) < 2', on_fail: lock_task}]}\n"),
        model.clone(),
    );
    let task = host.start("demo", "clerk", options).unwrap();
    let input = TaskInput {
        message: Some("pay eve".to_owned()),
        goes_on: true,
        ..TaskInput::default()
    };
    assert_eq!(task.send(input.clone()).await.message, "yes");
    assert_eq!(model.asked.lock().unwrap()[0].messages, history);
    let end = task.send(input).await.ended.unwrap();
    assert_eq!(end.reason, EndReason::Locked);
}

#[tokio::test]
async fn calls_from_outside_keep_the_rules() {
    let rest = r#"limits: {max_tool_calls: 4}
capabilities:
  notes:
    include: [read, write]
    bindings: {owner: context.user.id}
    before: [{assert: "c.cap.notes_read.count_successful < 1", match: read}]
"#;
    let model = Puppet::new(|_| Ok(say("hello")));
    let task = start(&agent(rest), model.clone());
    let functions = task.functions().await.unwrap();
    assert_eq!(functions.len(), 2);
    assert!(functions[0].parameters["properties"].get("owner").is_none());
    let ask = |function: &'static str, path: &str| {
        let said = arguments(&json!({"path": path, "owner": "mallory"}));
        task.call(function, said, CancellationToken::new())
    };
    let read = ask("notes_read", "a").await;
    assert_eq!(read.result, json!({"owner": "u1", "path": "a"}));
    assert_eq!(task.allowed().values("notes", "path"), [json!("a")]);
    assert_eq!(ask("notes_read", "b").await.status, CallStatus::Restricted);
    assert_eq!(ask("notes_fail", "b").await.status, CallStatus::Errored);
    assert_eq!(ask("notes_write", "b").await.status, CallStatus::Successful);
    assert_eq!(task.send(TaskInput::message("hi")).await.message, "hello");
    // The model heard of none of it.
    assert_eq!(model.asked.lock().unwrap()[0].messages.len(), 1);
    let over = ask("notes_write", "b").await;
    assert_eq!(over.ended.unwrap().reason, EndReason::LimitExceeded);
    assert_eq!(ask("notes_write", "b").await.result["error"], "ended");
    assert!(task.functions().await.is_err());
}
