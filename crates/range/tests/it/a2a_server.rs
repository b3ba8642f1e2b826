//! `a2a_server` over loopback: both generations, and agents that misbehave.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_oatf::{GenerationError, GenerationProvider, Protocol};
use proofhouse_range::{ActorEndpoint, RunOptions};
use proofhouse_test_support::loopback::{Serving, bound};
use proofhouse_wire::client::ClientError;
use proofhouse_wire::server::{Handler, Reply, Request};
use proofhouse_wire::{Bytes, Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::a2a::{self, Running, message, modern_message, options, small, steps, verdict};

const DELEGATE: &str = r#"
oatf: "0.1"
attack:
  id: TEST-001
  execution:
    mode: a2a_server
    phases:
      - name: trust
        state:
          agent_card:
            name: Analyst
            description: Analyses
            skills: [{id: a, name: A, description: Send keys}]
          task_responses:
            - when: {message.metadata.ask: odd}
              content: {telegram: stop}
            - when: {message.metadata.ask: message}
              content: {role: agent, parts: [{kind: text, text: hello}]}
            - when: {message.metadata.ask: skew}
              verbatim: true
              content: {kind: task, id: v, status: {state: working}}
            - content:
                id: t1
                status: {state: working, timestamp: "2026-01-02T03:04:05", message: {parts: [{text: "You said {{request.message.messageId}}"}]}}
                artifacts: [{parts: [{kind: file, file: {uri: "http://x", mimeType: a/b}}]}]
                history: [{role: user, parts: []}, {role: agent, parts: []}]
                extra: {kept: true}
        trigger: {event: SendMessage, count: 2, match: {message.metadata.ask: next}}
      - name: strike
        state: {task_responses: [{content: {status: failed}}]}
  indicators:
    - surface: message/send
      direction: request
      target: "message.parts[*].text"
      pattern: {contains: secret}
"#;

#[tokio::test]
async fn each_request_is_answered_in_its_generation() {
    let server = Running::start(DELEGATE, options()).await;
    let legacy = server.call("message/send", message("a secret")).await["result"].clone();
    assert_eq!(
        (&legacy["kind"], &legacy["id"]),
        (&json!("task"), &json!("t1"))
    );
    assert_eq!(legacy["status"]["state"], "working");
    assert_eq!(legacy["status"]["timestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(
        legacy["status"]["message"]["parts"][0],
        json!({"text": "You said m", "kind": "text"})
    );
    assert_eq!(legacy["status"]["message"]["role"], "agent");
    assert!(legacy["contextId"].is_string() && legacy["artifacts"][0]["artifactId"].is_string());
    assert_eq!(legacy["extra"], json!({"kept": true}));

    let modern = server.call("SendMessage", modern_message("a secret")).await["result"].clone();
    let task = &modern["task"];
    assert_eq!((&task["id"], task.get("kind")), (&json!("t1"), None));
    assert_eq!(task["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(task["status"]["message"]["role"], "ROLE_AGENT");
    assert_eq!(
        task["status"]["message"]["parts"],
        json!([{"text": "You said m"}])
    );
    assert_eq!(
        task["artifacts"][0]["parts"],
        json!([{"url": "http://x", "mediaType": "a/b"}])
    );
    assert_eq!(task["extra"], json!({"kept": true}));

    let report = server.finish().await;
    assert_eq!(verdict(&report), "exploited");
    let requests: Vec<_> = report
        .trace
        .iter()
        .filter(|m| m.operation == "message/send")
        .collect();
    assert_eq!(requests.len(), 4, "both generations are one operation");
    assert_eq!(requests[0].raw, None);
    assert_eq!(
        requests[2].content, requests[0].content,
        "both are seen as 0.3"
    );
    assert_eq!(requests[2].raw.as_ref().unwrap()["method"], "SendMessage");
    assert_eq!(requests[3].content["kind"], "task");
    assert_eq!(
        requests[3].raw.as_ref().unwrap()["result"]["task"]["id"],
        "t1"
    );
}

fn asking(what: &str, mut params: Value) -> Value {
    params["message"]["metadata"] = json!({"ask": what});
    params
}

#[tokio::test]
async fn messages_odd_shapes_and_verbatim_answers() {
    let server = Running::start(DELEGATE, options()).await;
    for (method, what, expected) in [
        ("message/send", "odd", json!({"telegram": "stop"})),
        ("SendMessage", "odd", json!({"telegram": "stop"})),
        (
            "message/send",
            "skew",
            json!({"kind": "task", "id": "v", "status": {"state": "working"}}),
        ),
        (
            "SendMessage",
            "skew",
            json!({"kind": "task", "id": "v", "status": {"state": "working"}}),
        ),
    ] {
        let answer = server.call(method, asking(what, message("x"))).await;
        assert_eq!(answer["result"], expected, "{method} {what}");
        let streamed = if method == "SendMessage" {
            "SendStreamingMessage"
        } else {
            "message/stream"
        };
        let items = server.stream(streamed, asking(what, message("x"))).await;
        assert_eq!(items, [expected]);
    }
    let legacy = server
        .stream("message/stream", asking("message", message("x")))
        .await;
    assert_eq!(legacy.len(), 1);
    assert_eq!(
        (&legacy[0]["kind"], &legacy[0]["role"]),
        (&json!("message"), &json!("agent"))
    );
    let modern = server
        .call("SendMessage", asking("message", modern_message("x")))
        .await;
    assert_eq!(
        modern["result"]["message"]["parts"],
        json!([{"text": "hello"}])
    );
    server.finish().await;
}

#[tokio::test]
async fn streams_tell_the_task_its_artifacts_and_its_status() {
    let server = Running::start(DELEGATE, options()).await;
    let items = server.stream("message/stream", message("x")).await;
    let kinds: Vec<&str> = items
        .iter()
        .map(|item| item["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["task", "artifact-update", "status-update"]);
    assert_eq!(
        (&items[2]["final"], &items[2]["taskId"]),
        (&json!(true), &json!("t1"))
    );
    let items = server
        .stream("SendStreamingMessage", modern_message("x"))
        .await;
    let kinds: Vec<&String> = items
        .iter()
        .map(|item| item.as_object().unwrap().keys().next().unwrap())
        .collect();
    assert_eq!(kinds, ["task", "artifactUpdate", "statusUpdate"]);
    assert_eq!(items[2]["statusUpdate"].get("final"), None);
    let again = server
        .stream("tasks/resubscribe", json!({"id": "t1"}))
        .await;
    assert_eq!(again.len(), 3);
    let again = server.stream("SubscribeToTask", json!({"id": "t1"})).await;
    assert_eq!(again, items);
    let report = server.finish().await;
    assert_eq!(
        report
            .exposure
            .carriers
            .iter()
            .map(|c| c.delivered)
            .sum::<u64>(),
        2
    );
}

#[tokio::test]
async fn phases_follow_events_of_either_name() {
    let server = Running::start(DELEGATE, options()).await;
    server
        .call("message/send", asking("next", message("x")))
        .await;
    let last = server
        .call("SendMessage", asking("next", modern_message("x")))
        .await;
    assert_eq!(
        last["result"]["task"]["id"], "t1",
        "the phase that held answers"
    );
    let next = server.call("message/send", message("x")).await;
    assert_eq!(next["result"]["status"]["state"], "failed");
    let report = server.finish().await;
    let reached: Vec<_> = report
        .exposure
        .carriers
        .iter()
        .map(|c| (&*c.name, c.delivered))
        .collect();
    assert!(reached.contains(&("trust.task_responses[3]", 2)));
    assert!(reached.contains(&("strike.task_responses[0]", 1)));
    assert!(
        reached.contains(&("Analyst", 0)),
        "planned and never asked for"
    );
}

#[tokio::test]
async fn cards_are_for_both_generations() {
    let server = Running::start(DELEGATE, options()).await;
    let card = server.card().await;
    assert_eq!(
        (&card["name"], &card["url"]),
        (&json!("Analyst"), &json!(server.address))
    );
    assert_eq!(card["supportedInterfaces"][0]["url"], server.address);
    assert_eq!(card["supportedInterfaces"][0]["protocolVersion"], "1.0");
    assert_eq!(card["skills"][0]["tags"], json!([]));
    for method in ["agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"] {
        assert_eq!(server.call(method, json!({})).await["result"], card);
    }
    let report = server.finish().await;
    assert_eq!(
        steps(&report)[..2],
        ["agent_card/get request", "agent_card/get response"]
    );

    let bare = Running::start(
        "{oatf: '0.1', attack: {execution: {mode: a2a_server, state: {}}}}",
        options(),
    )
    .await;
    assert_eq!(bare.card().await["url"], bare.address);
    let answer = bare.call("GetExtendedAgentCard", json!({})).await;
    assert_eq!(answer["error"]["code"], -32007);
    let empty = bare.call("message/send", message("x")).await["result"].clone();
    assert_eq!(
        (&empty["kind"], &empty["status"]),
        (&json!("task"), &json!({"state": "completed"}))
    );
    bare.finish().await;
}

#[tokio::test]
async fn tasks_are_remembered() {
    let server = Running::start(DELEGATE, options()).await;
    let error = |answer: &Value| answer["error"]["code"].as_i64();
    for method in ["tasks/get", "GetTask", "tasks/cancel", "tasks/resubscribe"] {
        let answer = server.call(method, json!({"id": "t1"})).await;
        assert_eq!(error(&answer), Some(-32001), "{method}");
        assert_eq!(error(&server.call(method, json!({})).await), Some(-32602));
    }
    let refused = server.call("GetTask", json!({"id": "t1"})).await;
    assert_eq!(refused["error"]["data"][0]["reason"], "TASK_NOT_FOUND");
    let sent = server.call("message/send", message("x")).await["result"].clone();
    let got = server
        .call("tasks/get", json!({"id": "t1", "historyLength": 1}))
        .await["result"]
        .clone();
    assert_eq!(got["status"], sent["status"]);
    assert_eq!(got["history"].as_array().unwrap().len(), 1);
    let got = server.call("GetTask", json!({"id": "t1"})).await["result"].clone();
    assert_eq!(
        (&got["status"]["state"], got.get("task")),
        (&json!("TASK_STATE_WORKING"), None)
    );
    let list = server
        .call("ListTasks", json!({"status": "TASK_STATE_WORKING"}))
        .await;
    assert_eq!(
        (
            &list["result"]["totalSize"],
            &list["result"]["tasks"][0]["id"]
        ),
        (&json!(1), &json!("t1"))
    );
    let canceled = server.call("CancelTask", json!({"id": "t1"})).await;
    assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(
        error(&server.call("tasks/cancel", json!({"id": "t1"})).await),
        Some(-32002)
    );
    server.finish().await;
}

const PUSHING: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: a2a_server
    phases:
      - name: wait
        state: {task_responses: [{content: {id: t1, status: {state: working}}}]}
        trigger: {event: tasks/pushNotificationConfig/delete}
      - name: push
        on_enter:
          - send_push_notification: {payload: {id: t1, status: {state: completed}}}
          - send_push_notification: {url: "http://198.51.100.7/", payload: {}}
"#;

/// Hands on what is posted to it.
struct Webhook(mpsc::UnboundedSender<(Option<String>, Value)>);

impl Handler for Webhook {
    async fn handle(&self, request: Request) -> Reply {
        let token = request
            .header("x-a2a-notification-token")
            .map(str::to_owned);
        let body = serde_json::from_slice(&request.body.unwrap()).unwrap();
        self.0.send((token, body)).unwrap();
        Reply::empty(StatusCode::OK)
    }
}

#[tokio::test]
async fn push_notifications_go_where_the_subject_wants_them_and_nowhere_else() {
    let (sender, mut pushed) = mpsc::unbounded_channel();
    let webhook = Serving::start(Arc::new(Webhook(sender)), small()).await;
    let url = format!("{}/hook", webhook.url());

    let server = Running::start(PUSHING, options()).await;
    let mut sent = message("x");
    sent["configuration"] =
        json!({"pushNotificationConfig": {"id": "one", "url": url, "token": "t"}});
    server.call("message/send", sent).await;
    let modern = json!({"taskId": "t1", "id": "two", "url": url, "token": "u"});
    let set = server
        .call("CreateTaskPushNotificationConfig", modern.clone())
        .await;
    assert_eq!(set["result"], modern);
    let set = server
        .call(
            "tasks/pushNotificationConfig/set",
            json!({"taskId": "t1", "pushNotificationConfig": {"url": "http://x/"}}),
        )
        .await["result"]
        .clone();
    let id = &set["pushNotificationConfig"]["id"];
    assert!(id.is_string());
    let got = server
        .call(
            "tasks/pushNotificationConfig/get",
            json!({"id": "t1", "pushNotificationConfigId": "two"}),
        )
        .await;
    assert_eq!(got["result"]["pushNotificationConfig"]["token"], "u");
    let listed = server
        .call("ListTaskPushNotificationConfigs", json!({"taskId": "t1"}))
        .await;
    assert_eq!(listed["result"]["configs"].as_array().unwrap().len(), 3);
    let listed = server
        .call("tasks/pushNotificationConfig/list", json!({"id": "t1"}))
        .await;
    assert_eq!(listed["result"].as_array().unwrap().len(), 3);
    for (params, code) in [
        (
            json!({"taskId": "no", "pushNotificationConfig": {"url": "x"}}),
            -32001,
        ),
        (
            json!({"taskId": "t1", "pushNotificationConfig": {}}),
            -32602,
        ),
        (json!([]), -32602),
    ] {
        let answer = server
            .call("tasks/pushNotificationConfig/set", params)
            .await;
        assert_eq!(answer["error"]["code"], code);
    }
    let gone = server
        .call(
            "DeleteTaskPushNotificationConfig",
            json!({"taskId": "t1", "id": id}),
        )
        .await;
    assert_eq!(gone["result"], json!({}));

    let (token, body) = pushed.recv().await.unwrap();
    assert_eq!(
        (token.as_deref(), &body["kind"]),
        (Some("t"), &json!("task"))
    );
    let (token, body) = pushed.recv().await.unwrap();
    assert_eq!(token.as_deref(), Some("u"));
    assert_eq!(body["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let report = server.finish().await;
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.contains("198.51.100.7") && w.contains("nothing is sent"))
    );
    let pushes = report
        .exposure
        .carriers
        .iter()
        .find(|c| c.name == "send_push_notification");
    assert_eq!(pushes.unwrap().delivered, 2);
    webhook.finish().await;
}

#[tokio::test]
async fn nonsense_is_answered_and_survived() {
    let server = Running::start(DELEGATE, options()).await;
    let body = |response: proofhouse_wire::client::StreamedResponse| async move {
        serde_json::from_slice::<Value>(&response.bytes().await.unwrap()).unwrap()
    };
    for (text, code) in [
        (Vec::new(), -32700),
        (b"{\"jsonrpc\":".to_vec(), -32700),
        (b"\xff\xfe".to_vec(), -32700),
        (vec![b'['; 50_000], -32700),
        (b"[]".to_vec(), -32600),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"message/send\"}]".to_vec(),
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"message/send\"}".to_vec(),
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}".to_vec(),
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"message/send\"}".to_vec(),
            -32602,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"message/send\",\"params\":[3]}".to_vec(),
            -32602,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":3}}"
                .to_vec(),
            -32602,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}".to_vec(),
            -32601,
        ),
    ] {
        let response = server.post(text.clone()).await.unwrap();
        assert_eq!(response.status, 200);
        let answer = body(response).await;
        assert_eq!(
            answer["error"]["code"],
            code,
            "{}",
            String::from_utf8_lossy(&text)
        );
    }
    let notified = server
        .post("{\"jsonrpc\":\"2.0\",\"method\":\"message/send\"}")
        .await
        .unwrap();
    assert_eq!(notified.status, 204);
    let huge = server.post(vec![b'x'; 200_000]).await;
    match huge {
        Ok(response) => assert_eq!(response.status, 413),
        Err(error) => assert!(matches!(error, ClientError::Broken(_)), "{error}"),
    }
    for (method, path, headers, status) in [
        (Method::GET, "/", &[][..], 404),
        (Method::DELETE, "/", &[][..], 405),
        (
            Method::POST,
            "/",
            &[("origin", "https://evil.example")][..],
            403,
        ),
        (Method::POST, "/", &[("origin", "null")][..], 403),
        (
            Method::GET,
            "/.well-known/agent.json",
            &[("origin", "http://localhost:3")][..],
            200,
        ),
    ] {
        let response = server
            .send(method, path, headers, Bytes::new())
            .await
            .unwrap();
        assert_eq!(response.status, status, "{path}");
    }
    let address = server.address.strip_prefix("http://").unwrap().to_owned();
    for half in [
        "GARBAGE\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{\"jso",
        "POST / HTT",
    ] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(half.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    let answer = server.call("message/send", message("x")).await;
    assert_eq!(answer["result"]["id"], "t1", "it goes on after all that");
    let report = server.finish().await;
    assert!(report.warnings.len() > 10, "{:?}", report.warnings);
    assert!(steps(&report).contains(&"tools/list request".to_owned()));
}

#[tokio::test]
async fn the_version_header_is_recorded_and_decides_nothing() {
    let server = Running::start(DELEGATE, options()).await;
    for version in ["1.0", "0.3", "99"] {
        let version: &'static str = version;
        let body =
            json!({"jsonrpc": "2.0", "id": 7, "method": "message/send", "params": message("x")});
        let headers = [("a2a-version", version), ("a2a-extensions", "x")];
        let response = server
            .send(Method::POST, "/agent", &headers, body.to_string())
            .await
            .unwrap();
        let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert_eq!(answer["result"]["kind"], "task");
    }
    let report = server.finish().await;
    let raw = report.trace[0].raw.as_ref().unwrap();
    assert_eq!(
        raw["headers"],
        json!({"a2a-version": "1.0", "a2a-extensions": "x"})
    );
}

#[tokio::test]
async fn a_flood_is_survived() {
    let server = Running::start(DELEGATE, options()).await;
    let mut floods = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let address = server.address.clone();
        floods.spawn(async move {
            let client = proofhouse_wire::client::Client::new(small()).unwrap();
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": message("x")});
            for _ in 0..20 {
                // Streams are left in the middle.
                let headers = proofhouse_wire::HeaderMap::new();
                let sent = client.send(Method::POST, &address, headers, body.to_string().into()).await;
                drop(sent.unwrap());
            }
        });
    }
    floods.join_all().await;
    let answer = server.call("message/send", message("x")).await;
    assert_eq!(answer["result"]["id"], "t1");
    let report = server.finish().await;
    assert!(report.messages > 400);
}

async fn delivering(delivery: &str) -> Running {
    let text = format!(
        "{{oatf: '0.1', attack: {{execution: {{actors: [{{name: default, mode: a2a_server, x-delivery: {delivery}, \
         phases: [{{name: p, state: {{task_responses: [{{content: {{id: t1, status: completed}}}}]}}}}]}}]}}}}}}"
    );
    Running::start(&text, options()).await
}

async fn text(server: &Running, body: &str) -> String {
    let response = server.post(body.to_owned()).await.unwrap();
    String::from_utf8(response.bytes().await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn replies_are_delivered_as_the_document_asks() {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "message/send", "params": message("x")})
        .to_string();
    let server = delivering("{delay: 300ms}").await;
    let began = Instant::now();
    text(&server, &body).await;
    assert!(began.elapsed() >= Duration::from_millis(300));
    server.finish().await;

    let server = delivering("{slow_stream: 10ms}").await;
    let began = Instant::now();
    let answer: Value = serde_json::from_str(&text(&server, &body).await).unwrap();
    assert_eq!(answer["result"]["id"], "t1");
    assert!(began.elapsed() >= Duration::from_millis(60));
    assert_eq!(server.stream("message/stream", message("x")).await.len(), 2);
    server.finish().await;

    let server = delivering("{oversized: 100000, deep_nesting: 50}").await;
    let answer: Value = serde_json::from_str(&text(&server, &body).await).unwrap();
    assert_eq!(
        answer["result"]["x-padding"].as_str().unwrap().len(),
        100_000
    );
    server.finish().await;

    let server = delivering("{duplicate_ids: true}").await;
    assert_eq!(text(&server, &body).await.matches("\"id\":7").count(), 2);
    assert_eq!(server.stream("message/stream", message("x")).await.len(), 4);
    server.finish().await;

    let server = delivering("{notification_flood: 50}").await;
    text(&server, &body).await;
    let items = server.stream("message/stream", message("x")).await;
    assert_eq!(items.len(), 52);
    assert_eq!(
        (&items[0]["status"]["state"], &items[0]["taskId"]),
        (&json!("working"), &json!("t1"))
    );
    server.finish().await;

    let server = delivering("{abrupt_close: true}").await;
    let response = server.post(body.clone()).await.unwrap();
    assert!(matches!(
        response.bytes().await,
        Err(ClientError::Broken(_))
    ));
    let streamed = body.replace("message/send", "message/stream");
    let mut events = server.post(streamed).await.unwrap().events();
    assert!(events.next().await.unwrap().is_some());
    assert!(matches!(events.next().await, Err(ClientError::Broken(_))));
    server.finish().await;
}

#[tokio::test]
async fn a_slow_reply_does_not_outlive_the_run() {
    let server = delivering("{slow_stream: 50s}").await;
    let body =
        json!({"jsonrpc": "2.0", "id": 7, "method": "message/stream", "params": message("x")});
    let response = server.post(body.to_string()).await.unwrap();
    let began = Instant::now();
    server.finish().await;
    drop(response);
    assert!(began.elapsed() < Duration::from_secs(30));
}

/// Gives what the prompt is.
struct Parrot;

impl GenerationProvider for Parrot {
    fn generate(
        &self,
        prompt: &str,
        protocol: &Protocol,
        context: &Value,
    ) -> Result<Value, GenerationError> {
        assert_eq!(
            (protocol, &context["request"]["message"]["role"]),
            (&Protocol::A2a, &json!("user"))
        );
        Ok(serde_json::from_str(prompt).unwrap())
    }
}

#[tokio::test]
async fn generated_answers_must_be_answers() {
    let text = r#"
oatf: "0.1"
attack:
  execution:
    mode: a2a_server
    state:
      task_responses:
        - when: {message.messageId: good}
          synthesize: {prompt: '{"role": "agent", "parts": [{"text": "made up"}]}'}
        - synthesize: {prompt: '{"no": "answer"}'}
          content: {id: static, status: completed}
"#;
    let options = RunOptions {
        generation: Some(std::sync::Arc::new(Parrot)),
        ..options()
    };
    let server = Running::start(text, options).await;
    let mut good = modern_message("x");
    good["message"]["messageId"] = "good".into();
    let made = server.call("SendMessage", good).await;
    assert_eq!(made["result"]["message"]["parts"][0]["text"], "made up");
    let fixed = server.call("message/send", message("x")).await;
    assert_eq!(fixed["result"]["id"], "static");
    let report = server.finish().await;
    assert!(
        report
            .warnings
            .iter()
            .any(|warning| warning.contains("static content"))
    );
}

#[tokio::test]
async fn a_server_on_every_address_is_found_where_it_was_asked() {
    let options = RunOptions {
        endpoints: [(
            "default".to_owned(),
            ActorEndpoint::Listen(([0, 0, 0, 0], 0).into()),
        )]
        .into(),
        ..options()
    };
    let mut server = Running::start(DELEGATE, options).await;
    server.address = server.address.replace("127.0.0.1", "127.0.0.2");
    assert_eq!(server.card().await["url"], server.address);
    let card = server.call("GetExtendedAgentCard", json!({})).await;
    assert_eq!(card["result"]["url"], server.address);
    server.finish().await;
}

#[tokio::test]
async fn endpoints_that_do_not_suit_are_refused() {
    let taken = bound().await;
    for (endpoint, told) in [
        (ActorEndpoint::Listen(taken.address()), "cannot listen"),
        (
            ActorEndpoint::Url("http://127.0.0.1/".into()),
            "listens on an address",
        ),
    ] {
        let options = RunOptions {
            endpoints: [("default".to_owned(), endpoint)].into(),
            ..options()
        };
        let document = a2a::document(DELEGATE);
        let refused = proofhouse_range::run(&document, options, &Default::default()).await;
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("default") && error.contains(told), "{error}");
    }
}
