//! Tools whose functions cannot be listed: the task goes on, and the tool is asked again when the model wants it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

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

/// How many tools are asked at once: a task waits for dead hosts once, and starts no more programs than this at a time.
const ASKED_AT_ONCE: usize = 8;

/// What a server knows of the requests that it holds.
#[derive(Default)]
struct Held {
    asked: usize,
    now: usize,
    most: usize,
}

/// Nobody gets an answer before as many have asked as are asked at once. One after the other, no answer would ever come.
#[tokio::test]
async fn many_tools_are_asked_side_by_side_and_stay_in_their_order() {
    let held = Arc::new((Mutex::new(Held::default()), Condvar::new()));
    let (shared, more) = (Arc::clone(&held), ASKED_AT_ONCE);
    let server = TestServer::start(move |request, _| {
        let (held, changed) = &*shared;
        let mut known = held.lock().unwrap();
        known.asked += 1;
        known.now += 1;
        known.most = known.most.max(known.now);
        changed.notify_all();
        let waited =
            changed.wait_timeout_while(known, Duration::from_secs(20), |known| known.asked < more);
        let (mut known, result) = waited.unwrap();
        known.now -= 1;
        if result.timed_out() {
            // Nobody else need wait to know it.
            known.asked = more;
            return TestReply::Plain(500, "", "alone".to_owned());
        }
        let operation = request.path.trim_matches('/').replace(".json", "");
        let paths = json!({"/zen": {"get": {"operationId": operation}}});
        TestReply::Json(json!({"openapi": "3.1.0", "paths": paths}))
    });
    let mut manifests = String::new();
    let mut granted = Vec::new();
    for number in 10..10 + ASKED_AT_ONCE * 2 {
        manifests.push_str(&format!(
            "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: hub-{number}\ndescription: A hub.\n\
             openapi: {{url: \"http://{}/zen{number}.json\"}}\n---\n",
            server.address()
        ));
        granted.push(format!("hub-{number}: '*'"));
    }
    manifests.push_str(&clerk(&granted));
    let model = Puppet::calling(vec![]);
    let host = host(&manifests, Arc::clone(&model) as _);
    let task = host.start("demo", "clerk", TaskOptions::default()).unwrap();
    let output = task.send(TaskInput::message("go")).await;
    assert_eq!((output.ended, output.failed), (None, None));
    let asked = model.asked.lock().unwrap().clone();
    let expected: Vec<String> = (10..10 + ASKED_AT_ONCE * 2)
        .map(|number| format!("hub_{number}"))
        .collect();
    assert_eq!(functions(&asked[0]), expected);
    let described = asked[0].tools.iter();
    let failed = described.filter(|tool| tool.description.contains("500"));
    assert_eq!(failed.count(), 0);
    assert_eq!(held.0.lock().unwrap().most, ASKED_AT_ONCE);
}

/// An agent that may use these.
fn clerk(granted: &[String]) -> String {
    format!(
        "kind: commonagents.info/v1beta2/agent\nnamespace: demo\nname: clerk\ndescription: A clerk.\nprompt: Do it.\n\
         capabilities: {{{}}}\n",
        granted.join(", ")
    )
}
