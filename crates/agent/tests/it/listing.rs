//! Tools whose functions cannot be listed: the task goes on, and the tool is asked again when the model wants it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proofhouse_agent::model::{ChatMessage, ModelRequest};
use proofhouse_agent::task::{EndReason, Task, TaskInput, TaskOptions, Turn};
use proofhouse_test_support::http::{TestReply, TestServer};
use serde_json::{Value, json};

use crate::tasks::{Puppet, call, host, say};

/// An API whose description is there once `up` says so.
fn api(up: &Arc<AtomicBool>) -> TestServer {
    let up = Arc::clone(up);
    TestServer::start(move |request, _| match request.path.as_str() {
        _ if !up.load(Ordering::SeqCst) => TestReply::Plain(500, "", "down".to_owned()),
        "/api.json" => {
            let paths = json!({
                "/zen": {"get": {"operationId": "zen"}},
                "/other": {"get": {"operationId": "other"}},
            });
            TestReply::Json(json!({"openapi": "3.1.0", "paths": paths}))
        }
        path => TestReply::Json(json!({"path": path})),
    })
}

/// An agent with one tool that works and one whose description is at an address.
fn begin(description: &str, model: &Arc<Puppet>) -> Task {
    begin_with(description, "", model)
}

/// The same, where the second tool has these actions of its own.
fn begin_with(description: &str, own: &str, model: &Arc<Puppet>) -> Task {
    let manifests = format!(
        "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: echo\ndescription: Echoes.\n\
         actions: [{{name: say, description: d, execute: {{cel: {{expression: \"'hi'\"}}}}}}]\n---\n\
         kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: hub\ndescription: A hub.\n\
         openapi: {{url: \"{description}\"}}\n{own}---\n\
         kind: commonagents.info/v1beta2/agent\nnamespace: demo\nname: clerk\ndescription: A clerk.\n\
         prompt: Do it.\ncapabilities: {{hub: '*', echo: '*'}}\n"
    );
    let host = host(&manifests, Arc::clone(model) as _);
    host.start("demo", "clerk", TaskOptions::default()).unwrap()
}

fn functions(request: &ModelRequest) -> Vec<&str> {
    request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect()
}

fn results(task: &Task) -> Vec<Value> {
    let turns = task.history().into_iter();
    turns
        .filter_map(|turn| match turn {
            Turn::Capability { result, .. } => Some(result),
            _ => None,
        })
        .collect()
}

/// The function that stands for what is not known yet is called; afterwards there is what there is.
#[tokio::test]
async fn what_cannot_be_listed_is_listed_when_it_is_wanted() {
    let up = Arc::new(AtomicBool::new(false));
    let server = api(&up);
    let later = Arc::clone(&up);
    let model = Puppet::new(move |request| {
        let answers = request.messages.iter();
        let answers = answers.filter(|message| matches!(message, ChatMessage::Tool { .. }));
        Ok(match answers.count() {
            // It is still down at the first call, and the model hears that.
            0 => call(&[("hub", json!({})), ("echo", json!({}))]),
            2 => {
                later.store(true, Ordering::SeqCst);
                call(&[("hub", json!({}))])
            }
            3 => call(&[("hub_zen", json!({}))]),
            _ => say("done"),
        })
    });
    let task = begin(&format!("http://{}/api.json", server.address()), &model);
    let output = task.send(TaskInput::message("go")).await;
    assert_eq!((output.ended, output.failed), (None, None));
    assert_eq!(output.message, "done");
    let asked = model.asked.lock().unwrap().clone();
    assert_eq!(functions(&asked[0]), ["hub", "echo"]);
    assert!(asked[0].tools[0].description.contains("500"));
    assert_eq!(functions(&asked[2]), ["hub_zen", "hub_other", "echo"]);
    let results = results(&task);
    assert_eq!(results[0]["error"], "http_status");
    assert_eq!(results[1], "hi");
    assert_eq!(results[2], json!({"connected": true, "functions": 2}));
    assert_eq!(results[3], json!({"path": "/zen"}));
}

/// What the manifest declares works meanwhile.
#[tokio::test]
async fn what_is_declared_can_be_called_beside_what_cannot_be_listed() {
    let up = Arc::new(AtomicBool::new(false));
    let server = api(&up);
    let own = "actions: [{name: mine, description: d, execute: {cel: {expression: \"'own'\"}}}]\n";
    let later = Arc::clone(&up);
    let model = Puppet::new(move |request| {
        let answers = request.messages.iter();
        let answers = answers.filter(|message| matches!(message, ChatMessage::Tool { .. }));
        Ok(match answers.count() {
            0 => call(&[("hub_mine", json!({}))]),
            1 => {
                later.store(true, Ordering::SeqCst);
                call(&[("hub_connect", json!({}))])
            }
            _ => say("done"),
        })
    });
    let description = format!("http://{}/api.json", server.address());
    let task = begin_with(&description, own, &model);
    assert_eq!(task.send(TaskInput::message("go")).await.message, "done");
    let asked = model.asked.lock().unwrap().clone();
    assert_eq!(functions(&asked[0]), ["hub_mine", "hub_connect", "echo"]);
    assert_eq!(
        functions(&asked[2]),
        ["hub_mine", "hub_zen", "hub_other", "echo"]
    );
    assert_eq!(results(&task)[0], "own");
}

/// A tool that cannot be used at all ends the task of a model that wants it, and of no other.
#[tokio::test]
async fn an_error_that_stays_ends_the_task_with_the_call() {
    for (calls, end) in [
        (vec![("echo", json!({}))], None),
        (
            vec![("hub", json!({}))],
            Some(EndReason::UnrecoverableError),
        ),
    ] {
        let model = Puppet::calling(calls);
        let task = begin("http://10.1.2.3/api.json", &model);
        let output = task.send(TaskInput::message("go")).await;
        assert_eq!(output.ended.map(|end| end.reason), end);
    }
}
