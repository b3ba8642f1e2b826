//! The agent over A2A, on the wire: both generations, tasks, streams, approvals, and clients that mean harm.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proofhouse_agent::serve::AgentLimits;
use proofhouse_test_support::wait::soon;
use proofhouse_wire::Method;
use serde_json::{Value, json};

use crate::served::*;
use crate::tasks::*;

fn legacy(text: &str) -> Value {
    json!({"message": {"kind": "message", "messageId": "m1", "role": "user",
        "parts": [{"kind": "text", "text": text}]}})
}

fn modern(text: &str) -> Value {
    json!({"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// The same in a conversation, or in a task of it.
fn within(mut params: Value, key: &str, id: &Value) -> Value {
    params["message"][key] = id.clone();
    params
}

#[tokio::test]
async fn the_card_suits_both_generations() {
    let served = Served::start(
        &agent("capabilities: {notes: '*'}\n"),
        Puppet::new(|_| Ok(say("hi"))),
    )
    .await;
    for path in [".well-known/agent-card.json", ".well-known/agent.json"] {
        let url = format!("{}{path}", served.a2a_url());
        let card = json_of(served.send(Method::GET, &url, &[], "").await).await;
        assert_eq!(
            (&card["name"], &card["url"]),
            (&json!("clerk"), &json!(served.a2a_url()))
        );
        assert_eq!(card["supportedInterfaces"][0]["url"], served.a2a_url());
        assert_eq!(card["skills"][1]["description"], "Keeps notes.");
        assert_eq!(card["capabilities"]["pushNotifications"], false);
    }
    served.finish().await;
}

#[tokio::test]
async fn messages_become_tasks_in_the_callers_generation() {
    let model = Puppet::calling(vec![("notes_read", json!({"path": "a"}))]);
    let served = Served::start(&agent("capabilities: {notes: '*'}\n"), model.clone()).await;
    let task = served.a2a("message/send", legacy("read a")).await["result"].clone();
    assert_eq!(
        (&task["kind"], &task["status"]["state"]),
        (&json!("task"), &json!("completed"))
    );
    assert_eq!(
        task["artifacts"][0]["parts"][0],
        json!({"kind": "text", "text": "done"})
    );
    assert_eq!(task["history"][0]["parts"][0]["text"], "read a");
    // The conversation goes on in the same context, in either generation.
    let more = within(modern("again"), "contextId", &task["contextId"]);
    let next = served.a2a("SendMessage", more).await["result"]["task"].clone();
    assert_eq!(next["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(next["artifacts"][0]["parts"][0], json!({"text": "done"}));
    assert_eq!(next["history"][0]["role"], "ROLE_USER");
    assert_eq!(next.get("kind"), None);
    assert_eq!(next["contextId"], task["contextId"]);
    assert_ne!(next["id"], task["id"]);
    assert_eq!(model.asked.lock().unwrap()[2].messages.len(), 5);
    // A task can be asked for in the other generation too.
    let got = served
        .a2a("GetTask", json!({"id": task["id"], "historyLength": 0}))
        .await;
    assert_eq!(got["result"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(got["result"]["history"], json!([]));
    let got = served.a2a("tasks/get", json!({"id": next["id"]})).await;
    assert_eq!(got["result"]["status"]["state"], "completed");
    let listed = served
        .a2a(
            "ListTasks",
            json!({"contextId": task["contextId"], "pageSize": 1}),
        )
        .await;
    let listed = &listed["result"];
    assert_eq!(
        (&listed["totalSize"], &listed["tasks"][0]["id"]),
        (&json!(2), &next["id"])
    );
    let page = json!({"contextId": task["contextId"], "pageToken": listed["nextPageToken"]});
    let rest = served.a2a("ListTasks", page).await;
    assert_eq!(rest["result"]["tasks"][0]["id"], task["id"]);
    // Whoever names no context sees no tasks.
    assert_eq!(
        served.a2a("ListTasks", json!({})).await["result"]["totalSize"],
        0
    );
    served.finish().await;
}

#[tokio::test]
async fn streams_tell_the_task_the_artifact_and_the_end() {
    let served = Served::start(&agent(""), Puppet::new(|_| Ok(say("hi")))).await;
    let items = all(served.ask("message/stream", legacy("hello")).await).await;
    let kinds: Vec<&str> = items
        .iter()
        .map(|item| item["result"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["task", "status-update", "artifact-update", "status-update"]
    );
    assert_eq!(items[1]["result"]["final"], false);
    assert_eq!(items[3]["result"]["final"], true);
    assert_eq!(items[3]["result"]["status"]["state"], "completed");
    assert!(items.iter().all(|item| item["id"] == 7));
    let items = all(served.ask("SendStreamingMessage", modern("hello")).await).await;
    assert_eq!(
        items[0]["result"]["task"]["status"]["state"],
        "TASK_STATE_SUBMITTED"
    );
    assert_eq!(
        items[2]["result"]["artifactUpdate"]["artifact"]["parts"],
        json!([{"text": "hi"}])
    );
    assert_eq!(
        items[3]["result"]["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    assert_eq!(items[3]["result"]["statusUpdate"].get("final"), None);
    served.finish().await;
}

#[tokio::test]
async fn a_task_is_cancelled_and_followed_meanwhile() {
    let model = Arc::new(Patient::default());
    let served = Served::start(&agent(""), model.clone()).await;
    let mut params = modern("wait");
    params["configuration"] = json!({"returnImmediately": true});
    let task = served.a2a("SendMessage", params).await["result"]["task"].clone();
    soon("the model waits", || {
        model.waiting.load(Ordering::SeqCst) == 1
    })
    .await;
    let follow = served
        .ask("tasks/resubscribe", json!({"id": task["id"]}))
        .await;
    // What comes next in the context waits for its turn, and can be cancelled while it does.
    let mut second = within(legacy("hi"), "contextId", &task["contextId"]);
    second["configuration"] = json!({"blocking": false});
    let second = served.a2a("message/send", second).await["result"].clone();
    assert_eq!(second["status"]["state"], "submitted");
    let gone = served
        .a2a("tasks/cancel", json!({"id": second["id"]}))
        .await;
    assert_eq!(gone["result"]["status"]["state"], "canceled");
    let gone = served.a2a("CancelTask", json!({"id": task["id"]})).await;
    assert_eq!(gone["result"]["status"]["state"], "TASK_STATE_CANCELED");
    let items = all(follow).await;
    let end = &items.last().unwrap()["result"];
    assert_eq!(
        (&end["status"]["state"], &end["final"]),
        (&json!("canceled"), &json!(true))
    );
    assert_eq!(
        served.a2a("CancelTask", json!({"id": task["id"]})).await["error"]["code"],
        -32002
    );
    assert_eq!(
        served
            .a2a("SubscribeToTask", json!({"id": task["id"]}))
            .await["error"]["code"],
        -32004
    );
    // The conversation goes on.
    let more = within(legacy("hi"), "contextId", &task["contextId"]);
    assert_eq!(
        served.a2a("message/send", more).await["result"]["status"]["state"],
        "completed"
    );
    served.finish().await;
}

#[tokio::test]
async fn an_approval_is_input_that_is_required() {
    let rest = "capabilities: {notes: {before: [{assert: \"review('boss')\", match: write}]}}\n";
    let model = Puppet::calling(vec![("notes_write", json!({"path": "w"}))]);
    let served = Served::start(&agent(rest), model.clone()).await;
    let task = served.a2a("message/send", legacy("write")).await["result"].clone();
    assert_eq!(task["status"]["state"], "input-required");
    let asked = &task["status"]["message"]["parts"];
    assert_eq!(asked[1]["data"]["review"]["function"], "notes_write");
    let unclear = within(legacy("what do you think?"), "taskId", &task["id"]);
    assert_eq!(
        served.a2a("message/send", unclear).await["error"]["code"],
        -32602
    );
    let elsewhere = within(
        within(legacy("yes"), "taskId", &task["id"]),
        "contextId",
        &json!("x"),
    );
    assert_eq!(
        served.a2a("message/send", elsewhere).await["error"]["code"],
        -32602
    );
    let yes = within(legacy("approve"), "taskId", &task["id"]);
    let done = served.a2a("message/send", yes.clone()).await["result"].clone();
    assert_eq!(
        (&done["id"], &done["status"]["state"]),
        (&task["id"], &json!("completed"))
    );
    assert_eq!(
        served.a2a("message/send", yes).await["error"]["code"],
        -32602
    );
    assert_eq!(
        served
            .a2a("SendMessage", within(modern("yes"), "taskId", &task["id"]))
            .await["error"]["code"],
        -32004
    );

    let items = all(served.ask("SendStreamingMessage", modern("write")).await).await;
    let waits = &items.last().unwrap()["result"]["statusUpdate"];
    assert_eq!(waits["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let mut no = within(modern(""), "taskId", &waits["taskId"]);
    no["message"]["parts"] = json!([{"data": {"decision": "deny"}}]);
    let items = all(served.ask("SendStreamingMessage", no).await).await;
    assert_eq!(
        items.last().unwrap()["result"]["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    let told = model.asked.lock().unwrap().last().unwrap().messages.clone();
    assert!(
        format!("{:?}", told.last()).contains("restricted"),
        "{told:?}"
    );
    // One that waits when the server ends is no obstacle.
    served.a2a("message/send", legacy("write")).await;
    served.finish().await;
}

#[tokio::test]
async fn what_cannot_be_done_has_its_error() {
    let served = Served::start(&agent(""), Puppet::new(|_| Ok(say("hi")))).await;
    let mut push = modern("hi");
    push["configuration"] = json!({"taskPushNotificationConfig": {"url": "http://127.0.0.1:9/"}});
    let mut image = legacy("hi");
    image["configuration"] = json!({"acceptedOutputModes": ["image/png"]});
    for (method, params, code) in [
        ("tasks/get", json!({"id": "nobody's"}), -32001),
        ("GetTask", json!({"id": "nobody's"}), -32001),
        ("tasks/get", json!({}), -32602),
        ("tasks/get", json!([1]), -32602),
        ("tasks/cancel", json!({"id": "nobody's"}), -32001),
        ("tasks/resubscribe", json!({"id": "nobody's"}), -32001),
        ("tasks/pushNotificationConfig/set", json!({}), -32003),
        ("CreateTaskPushNotificationConfig", json!({}), -32003),
        ("SendMessage", push, -32003),
        ("message/send", image, -32005),
        ("agent/getAuthenticatedExtendedCard", json!({}), -32007),
        ("GetExtendedAgentCard", json!({}), -32007),
        ("message/send", json!({}), -32602),
        (
            "message/stream",
            json!({"message": {"messageId": "m", "parts": []}}),
            -32602,
        ),
        (
            "message/send",
            within(legacy("hi"), "taskId", &json!("nobody's")),
            -32001,
        ),
        (
            "message/send",
            within(legacy("hi"), "contextId", &json!("x".repeat(600))),
            -32602,
        ),
        (
            "ListTasks",
            json!({"contextId": "c", "pageToken": "7"}),
            -32602,
        ),
        ("tools/list", json!({}), -32601),
    ] {
        let error = served.a2a(method, params).await["error"].clone();
        assert_eq!(error["code"], code, "{method}: {error}");
        let is_modern = method.starts_with(char::is_uppercase);
        assert_eq!(error["data"].is_array(), is_modern, "{method}: {error}");
    }
    let url = served.a2a_url();
    for (method, path, headers, body, status, code) in [
        (Method::POST, "", vec![], "{", 200, -32700),
        (Method::POST, "", vec![], "[]", 200, -32600),
        (
            Method::POST,
            "",
            vec![],
            r#"{"jsonrpc": "2.0", "method": "x"}"#,
            200,
            -32600,
        ),
        (
            Method::POST,
            "",
            vec![("origin", "http://evil.example")],
            "{}",
            403,
            0,
        ),
        (
            Method::POST,
            "",
            vec![("host", "evil.example")],
            "{}",
            403,
            0,
        ),
        (Method::GET, "", vec![], "", 404, 0),
        (Method::PUT, "", vec![], "", 405, 0),
        (
            Method::POST,
            ".well-known/agent-card.json",
            vec![],
            "",
            405,
            0,
        ),
    ] {
        let response = served
            .send(method, &format!("{url}{path}"), &headers, body)
            .await;
        assert_eq!(response.status, status, "{body}");
        if code != 0 {
            assert_eq!(json_of(response).await["error"]["code"], code, "{body}");
        }
    }
    served.finish().await;
}

#[tokio::test]
async fn a_task_that_fails_says_why() {
    let served = Served::start(
        &agent("limits: {max_turns: 1}\n"),
        Puppet::new(|_| Ok(say("hi"))),
    )
    .await;
    let first = served.a2a("message/send", legacy("one")).await["result"].clone();
    let second = within(legacy("two"), "contextId", &first["contextId"]);
    let second = served.a2a("message/send", second).await["result"].clone();
    assert_eq!(second["status"]["state"], "failed");
    let why = second["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert!(why.contains("max_turns"), "{why}");
    served.finish().await;
}

#[tokio::test]
async fn floods_are_bounded() {
    let model = Arc::new(Patient::default());
    let limits = AgentLimits {
        max_conversations: 4,
        max_records: 8,
        max_runs: 6,
        max_waiting: 2,
        ..AgentLimits::default()
    };
    let served = Served::within(&agent(""), model.clone(), limits).await;
    let first = served.a2a("message/send", legacy("hi")).await["result"]["id"].clone();
    for _ in 0..20 {
        let task = served.a2a("message/send", legacy("hi")).await;
        assert_eq!(task["result"]["status"]["state"], "completed");
    }
    // The oldest are forgotten.
    assert_eq!(
        served.a2a("tasks/get", json!({"id": first})).await["error"]["code"],
        -32001
    );
    let mut wait = within(legacy("wait"), "contextId", &json!("c"));
    wait["configuration"] = json!({"blocking": false});
    let mut refused = 0;
    for _ in 0..10 {
        let answer = served.a2a("message/send", wait.clone()).await;
        refused += usize::from(answer["error"]["code"] == -32603);
    }
    assert_eq!(refused, 7, "three are in the context, one under way");
    served.finish().await;
}
