//! A large API in an agent: it is searched, and what is bound, included and ruled holds for the operations that are called.

use std::sync::Arc;

use proofhouse_agent::task::{TaskInput, TaskOptions, Turn};
use proofhouse_test_support::http::{TestReply, TestServer};
use serde_json::{Value, json};

use crate::tasks::{Puppet, host};

/// Two hundred operations, each of which deals with a repository of an owner, but one.
fn api() -> TestServer {
    TestServer::start(|request, _| {
        if request.path != "/api.json" {
            return TestReply::Json(json!({"path": request.path}));
        }
        let owned =
            json!({"name": "owner", "in": "path", "required": true, "schema": {"type": "string"}});
        let mut paths = serde_json::Map::new();
        for number in 0..200 {
            let operation = json!({"operationId": format!("read_{number}"), "parameters": [owned]});
            paths.insert(format!("/{{owner}}/{number}"), json!({"get": operation}));
        }
        paths.insert("/zen".to_owned(), json!({"get": {"operationId": "zen"}}));
        TestReply::Json(json!({"openapi": "3.1.0", "paths": paths}))
    })
}

async fn play(
    capability: &str,
    calls: Vec<(&'static str, Value)>,
) -> (TestServer, Vec<Turn>, Vec<String>) {
    let server = api();
    let manifests = format!(
        "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: hub\ndescription: A hub.\n\
         openapi: {{url: \"http://{}/api.json\"}}\n---\n\
         kind: commonagents.info/v1beta2/agent\nnamespace: demo\nname: clerk\ndescription: A clerk.\n\
         prompt: Do it.\ncapabilities: {{hub: {capability}}}\n",
        server.address()
    );
    let model = Puppet::calling(calls);
    let host = host(&manifests, Arc::clone(&model) as _);
    let task = host.start("demo", "clerk", TaskOptions::default()).unwrap();
    task.send(TaskInput::message("go")).await;
    let asked = model.asked.lock().unwrap().clone();
    let functions = asked[0].tools.iter().map(|tool| tool.name.clone());
    let functions = functions.collect();
    let history = task.history();
    (server, history, functions)
}

fn paths(server: &TestServer) -> Vec<String> {
    let requests = server.requests().into_iter();
    let paths = requests.map(|request| request.path);
    paths.filter(|path| path != "/api.json").collect()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "written at the place of the call"
)]
fn call(operation: &str, arguments: Value) -> (&'static str, Value) {
    (
        "hub_call",
        json!({"operation": operation, "arguments": arguments}),
    )
}

/// Whatever the model says of a bound parameter is not heard, also inside of a `call`.
#[tokio::test]
async fn what_is_bound_is_bound_in_every_operation() {
    let calls = vec![
        call("read_7", json!({"owner": "evil"})),
        call("read_8", json!({})),
        // One that has no such parameter can be called all the same.
        call("zen", json!({})),
    ];
    let (server, history, functions) = play("{bindings: {owner: \"'acme'\"}}", calls).await;
    assert_eq!(functions, ["hub_search", "hub_call"]);
    // They are called side by side.
    let mut called = paths(&server);
    called.sort();
    assert_eq!(called, ["/acme/7", "/acme/8", "/zen"]);
    // What is kept of a call says which operation it was.
    let said = history.iter().find_map(|turn| match turn {
        Turn::Capability { arguments, .. } => Some(arguments.clone()),
        _ => None,
    });
    assert_eq!(said.unwrap()["operation"], "read_7");
}

/// Rules see the operation and its arguments, not the function that it is called by.
#[tokio::test]
async fn rules_are_about_operations() {
    let rule = "{before: [{assert: 'false', match: read_9}, {assert: \"input.owner != 'evil'\"}]}";
    let (server, _, _) = play(
        rule,
        vec![
            call("read_9", json!({"owner": "acme"})),
            call("read_7", json!({"owner": "evil"})),
            call("read_7", json!({"owner": "acme"})),
        ],
    )
    .await;
    assert_eq!(paths(&server), ["/acme/7"]);
}

/// Whoever names operations gets those as functions, and no others.
#[tokio::test]
async fn what_is_included_need_not_be_searched() {
    let calls = vec![
        ("hub_read_3", json!({"owner": "acme"})),
        call("read_4", json!({"owner": "acme"})),
    ];
    let (server, _, functions) = play("{include: [read_3, zen]}", calls).await;
    assert_eq!(functions, ["hub_read_3", "hub_zen"]);
    assert_eq!(paths(&server), ["/acme/3"]);
}
