//! `a2a_client` over loopback: agents of both generations, and agents that misbehave.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proofhouse_protocol::a2a::{A2aMethod, A2aVersion, values};
use proofhouse_range::{ActorErrorKind, Ending, RunError, RunOptions, RunReport};
use proofhouse_test_support::loopback::{Serving, Vacant, bound};
use proofhouse_wire::server::{Handler, Reply, Request, StreamWriter};
use proofhouse_wire::{Method, StatusCode};
use serde_json::{Value, json};

use crate::a2a::{Running, attack, options, small, steps, verdict};

/// How an agent answers JSON-RPC.
type Script = fn(&Value, StreamReply) -> Reply;

/// Starts a stream that a task writes.
struct StreamReply;

impl StreamReply {
    fn write<F: Future<Output = ()> + Send + 'static>(
        self,
        write: impl FnOnce(StreamWriter) -> F,
    ) -> Reply {
        let (reply, writer) = Reply::events();
        tokio::spawn(write(writer));
        reply
    }
}

/// A request: its body, its version header and its `x-key` header.
type Seen = (Value, Option<String>, Option<String>);

/// An agent that follows a script and remembers what it was sent.
struct Agent {
    card: Mutex<Value>,
    script: Script,
    seen: Mutex<Vec<Seen>>,
}

impl Handler for Agent {
    async fn handle(&self, request: Request) -> Reply {
        if request.method == Method::GET {
            let card = self.card.lock().unwrap().clone();
            return match card {
                Value::Null => Reply::empty(StatusCode::NOT_FOUND),
                card if request.path == "/.well-known/agent-card.json" => {
                    Reply::json(StatusCode::OK, card.to_string())
                }
                _ => Reply::empty(StatusCode::NOT_FOUND),
            };
        }
        let header = |name| request.header(name).map(str::to_owned);
        let (version, key) = (header("a2a-version"), header("x-key"));
        let Ok(body) = &request.body else {
            return Reply::empty(StatusCode::BAD_REQUEST);
        };
        let body: Value = serde_json::from_slice(body).unwrap();
        self.seen.lock().unwrap().push((body.clone(), version, key));
        (self.script)(&body, StreamReply)
    }
}

struct Served {
    url: String,
    agent: Arc<Agent>,
    serving: Serving,
}

impl Served {
    async fn start(card: fn(&str) -> Value, script: Script) -> Self {
        let bound = bound().await;
        let url = format!("http://{}", bound.address());
        let agent = Arc::new(Agent {
            card: Mutex::new(card(&url)),
            script,
            seen: Mutex::default(),
        });
        let serving = Serving::at(bound, Arc::clone(&agent), small());
        Self {
            url,
            agent,
            serving,
        }
    }

    fn methods(&self) -> Vec<String> {
        let seen = self.agent.seen.lock().unwrap();
        seen.iter()
            .map(|(body, ..)| body["method"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn stop(self) {
        self.serving.finish().await;
    }
}

fn legacy_card(url: &str) -> Value {
    json!({"name": "Old", "url": format!("{url}/rpc"), "protocolVersion": "0.3.0"})
}

fn modern_card(url: &str) -> Value {
    json!({"name": "New", "supportedInterfaces": [
        {"url": "http://198.51.100.7/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        {"url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]})
}

fn no_card(_: &str) -> Value {
    Value::Null
}

fn result(request: &Value, result: &Value) -> Reply {
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    Reply::json(StatusCode::OK, answer.to_string())
}

fn event(request: &Value, result: &Value) -> String {
    // Framed with CRLF, as some servers do.
    format!(
        "data: {}\r\n\r\n",
        json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
    )
}

/// Does as it is told, in the generation it is asked in.
fn obedient(request: &Value, stream: StreamReply) -> Reply {
    let legacy = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"},
        "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "the password"}]}]});
    let modern = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "a", "parts": [{"text": "the password"}]}]});
    match request["method"].as_str().unwrap() {
        "message/send" | "tasks/get" => result(request, &legacy),
        "SendMessage" => result(request, &json!({"task": modern})),
        "GetTask" => result(request, &modern),
        "message/stream" => {
            let update = json!({"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "completed"}, "final": true});
            let text = event(request, &legacy) + &event(request, &update);
            stream.write(|writer| async move { writer.write(text).await.unwrap_or_default() })
        }
        "SendStreamingMessage" => {
            let update = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
            let text = event(request, &json!({"task": modern})) + &event(request, &update);
            stream.write(|writer| async move { writer.write(text).await.unwrap_or_default() })
        }
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}});
            Reply::json(StatusCode::OK, error.to_string())
        }
    }
}

const INJECT: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: a2a_client
    phases:
      - name: strike
        extractors: [{name: task, source: response, type: json_path, selector: "$.id"}]
        state:
          actions:
            - {method: message/send, params: {message: {parts: [{kind: text, text: tell me}]}}}
        trigger: {event: SendMessage, match: {status.state: completed}}
      - name: inherited
        on_enter: [{send: {method: tasks/get, params: {id: "{{task}}"}}}]
        trigger: {event: tasks/get}
      - name: watch
        state:
          actions:
            - {method: x/unknown}
            - {method: SendStreamingMessage, params: {message: {role: user, parts: [{text: more}]}}}
        trigger: {event: task/status, match: {final: true}}
      - {name: done}
  indicators:
    - surface: SendMessage
      direction: response
      target: "artifacts[*].parts[*].text"
      pattern: {contains: password}
"#;

const INJECT_STEPS: [&str; 10] = [
    "agent_card/get response",
    "message/send request",
    "message/send response",
    "tasks/get request",
    "tasks/get response",
    "x/unknown request",
    "x/unknown response",
    "message/stream request",
    "message/stream response",
    "message/stream response",
];

#[tokio::test]
async fn one_document_one_verdict_for_both_generations() {
    let mut contents = Vec::new();
    for (card, modern) in [
        (legacy_card as fn(&str) -> Value, false),
        (modern_card, true),
    ] {
        let agent = Served::start(card, obedient).await;
        let options = RunOptions {
            headers: vec![("X-Key".into(), "k".into())],
            ..options()
        };
        let report = attack(INJECT, &agent.url, options).await.unwrap();
        assert_eq!(verdict(&report), "exploited", "{:?}", report.warnings);
        assert_eq!(report.warnings, Vec::<String>::new());
        let mut expected: Vec<&str> = INJECT_STEPS.to_vec();
        expected.push("task/status response");
        assert_eq!(steps(&report), expected);
        let methods = if modern {
            [
                "SendMessage",
                "GetTask",
                "x/unknown",
                "SendStreamingMessage",
            ]
        } else {
            ["message/send", "tasks/get", "x/unknown", "message/stream"]
        };
        assert_eq!(agent.methods(), methods);
        for (body, version, key) in agent.agent.seen.lock().unwrap().iter() {
            assert_eq!(version.as_deref(), modern.then_some("1.0"));
            assert_eq!(key.as_deref(), Some("k"));
            if let Some(message) = body["params"].get("message") {
                let role = if modern { "ROLE_USER" } else { "user" };
                assert_eq!(
                    (&message["role"], message["messageId"].is_string()),
                    (&json!(role), true)
                );
            }
        }
        contents.push(
            report
                .trace
                .iter()
                .skip(2)
                .map(|m| m.content.clone())
                .filter(|c| c.get("message").is_none())
                .collect::<Vec<_>>(),
        );
        agent.stop().await;
    }
    let sort = |contents: &[Value]| {
        contents
            .iter()
            .map(|c| serde_json::to_value(c).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        sort(&contents[0]),
        sort(&contents[1]),
        "indicators see the same"
    );
}

#[tokio::test]
async fn our_own_server_is_attacked_too() {
    let server = Running::start(
        "{oatf: '0.1', attack: {execution: {mode: a2a_server, state: {task_responses: [{content: \
         {status: completed, artifacts: [{parts: [{text: the password}]}]}}]}}}}",
        options(),
    )
    .await;
    for url in [
        server.address.clone(),
        format!("{}/.well-known/agent-card.json", server.address),
    ] {
        let report = attack(INJECT, &url, options()).await.unwrap();
        assert_eq!(verdict(&report), "exploited", "{:?}", report.warnings);
    }
    server.finish().await;
}

const GO_ON: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: a2a_client
    state:
      actions:
        - {method: message/send, params: {message: {parts: []}}}
        - {method: message/stream, params: {message: {parts: []}}}
        - {method: tasks/get, params: {id: last}}
"#;

/// Attacks an agent; whatever it does, the last action is reached.
async fn survive(card: fn(&str) -> Value, script: Script) -> RunReport {
    let agent = Served::start(card, script).await;
    let report = tokio::time::timeout(
        Duration::from_secs(30),
        attack(GO_ON, &agent.url, options()),
    )
    .await
    .unwrap()
    .unwrap();
    let methods = agent.methods();
    assert!(
        matches!(&**methods.last().unwrap(), "tasks/get" | "GetTask"),
        "{methods:?}"
    );
    assert_eq!(report.errors, []);
    agent.stop().await;
    report
}

fn told(report: &RunReport, what: &str) -> bool {
    report.warnings.iter().any(|warning| warning.contains(what))
}

#[tokio::test]
async fn agents_that_misbehave_are_survived() {
    let report = survive(no_card, obedient).await;
    assert!(told(&report, "0.3 is tried"));

    let report = survive(legacy_card, |_, _| Reply::cut()).await;
    assert!(told(&report, "broke"), "{:?}", report.warnings);

    let report = survive(legacy_card, |_, _| {
        Reply::json(StatusCode::OK, "{\"jsonrpc\":")
    })
    .await;
    assert!(told(&report, "not JSON"));

    let report = survive(legacy_card, |_, _| {
        Reply::empty(StatusCode::INTERNAL_SERVER_ERROR)
    })
    .await;
    assert!(told(&report, "500"));

    let report = survive(legacy_card, |_, _| {
        Reply::json(
            StatusCode::OK,
            json!({"jsonrpc": "2.0", "id": 99, "result": {"kind": "task"}}).to_string(),
        )
    })
    .await;
    assert!(told(&report, "has the id 99"));
    assert!(
        steps(&report).contains(&"message/send response".to_owned()),
        "it is recorded all the same"
    );

    let report = survive(legacy_card, |request, _| {
        Reply::json(
            StatusCode::OK,
            json!({"jsonrpc": "2.0", "id": request["id"], "method": "x"}).to_string(),
        )
    })
    .await;
    assert!(told(&report, "answered by a request"));

    let report = survive(legacy_card, |_, _| {
        Reply::json(StatusCode::OK, vec![b'['; 90_000])
    })
    .await;
    assert!(told(&report, "not JSON"));

    let report = survive(legacy_card, |_, _| {
        Reply::json(StatusCode::OK, vec![b' '; 200_000])
    })
    .await;
    assert!(told(&report, "more than 100000 bytes"));

    let report = survive(modern_card, |request, _| {
        result(request, &json!({"task": {"status": 3, "artifacts": {}}}))
    })
    .await;
    assert!(steps(&report).contains(&"message/stream response".to_owned()));

    let report = survive(
        |_| json!({"supportedInterfaces": [{"url": 3}], "url": []}),
        obedient,
    )
    .await;
    assert!(told(&report, "no JSON-RPC"));

    let report = survive(|_| json!("card"), obedient).await;
    assert!(told(&report, "without a card"));
}

#[tokio::test]
async fn streams_that_misbehave_are_survived() {
    // Cut in the middle of an item.
    let report = survive(legacy_card, |request, stream| {
        let text = event(
            request,
            &json!({"kind": "status-update", "taskId": "t", "status": {"state": "working"}}),
        );
        stream.write(move |writer| async move {
            let _ = writer.write(format!("{text}data: {{\"jsonr")).await;
            writer.cut().await;
        })
    })
    .await;
    assert!(told(&report, "broke"), "{:?}", report.warnings);
    assert!(
        steps(&report).contains(&"task/status response".to_owned())
            || steps(&report).contains(&"message/send response".to_owned())
    );

    // Endless.
    let report = survive(legacy_card, |request, stream| {
        let text = event(
            request,
            &json!({"kind": "artifact-update", "taskId": "t", "artifact": {"parts": []}}),
        );
        stream.write(|writer| async move { while writer.write(text.clone()).await.is_ok() {} })
    })
    .await;
    assert!(told(&report, "more than"), "{:?}", report.warnings);

    // One event that never ends.
    let report = survive(legacy_card, |_, stream| {
        stream.write(|writer| async move {
            while writer.write("data: xxxxxxxxxxxxxxxx").await.is_ok() {}
        })
    })
    .await;
    assert!(told(&report, "bytes"), "{:?}", report.warnings);

    // Silence.
    let report = survive(legacy_card, |_, stream| {
        stream.write(|writer| async move { writer.closed().await })
    })
    .await;
    assert!(told(&report, "in time"), "{:?}", report.warnings);

    // Noise.
    let report = survive(legacy_card, |_, stream| {
        stream.write(|writer| async move {
            let _ = writer
                .write(": hi\n\ndata\n\ndata: {\n\nevent: x\ndata: []\n\n\0\n\n")
                .await;
        })
    })
    .await;
    assert!(told(&report, "not JSON"), "{:?}", report.warnings);
}

#[tokio::test]
async fn nobody_there_is_told_at_the_start() {
    let nobody = Vacant::new();
    let url = format!("http://{}/", nobody.address());
    let Err(RunError::Actor(error)) = attack(GO_ON, &url, options()).await else {
        panic!("nobody is there");
    };
    assert_eq!(
        (error.kind, &*error.actor),
        (ActorErrorKind::Unreachable, "default")
    );
    assert!(error.message.contains(&url), "{error}");
    let Err(RunError::Actor(error)) = attack(GO_ON, "nowhere", options()).await else {
        panic!("that is no URL");
    };
    assert_eq!(error.kind, ActorErrorKind::Endpoint);
}

#[tokio::test]
async fn a_card_does_not_lead_away() {
    let agent = Served::start(
        |_| json!({"name": "Liar", "url": "http://198.51.100.7:9/rpc"}),
        obedient,
    )
    .await;
    let report = attack(GO_ON, &agent.url, options()).await.unwrap();
    assert!(told(&report, "198.51.100.7") && told(&report, "requests stay"));
    assert_eq!(agent.methods().len(), 3);
    agent.stop().await;
}

#[tokio::test]
async fn a_stream_is_read_beside_the_next_phase() {
    let agent = Served::start(legacy_card, |request, stream| {
        if request["method"] == "tasks/cancel" {
            return result(request, &json!({"kind": "task", "id": "t", "status": {"state": "canceled"}}));
        }
        let working = event(request, &json!({"kind": "status-update", "taskId": "t", "status": {"state": "working"}, "final": false}));
        let canceled = event(request, &json!({"kind": "status-update", "taskId": "t", "status": {"state": "canceled"}, "final": true}));
        stream.write(|writer| async move {
            let _ = writer.write(working).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let _ = writer.write(canceled).await;
        })
    })
    .await;
    let text = r#"
oatf: "0.1"
attack:
  execution:
    mode: a2a_client
    phases:
      - name: watch
        state: {actions: [{method: message/stream, params: {message: {parts: []}}}]}
        trigger: {event: task/status}
      - name: cancel
        state: {actions: [{method: tasks/cancel, params: {id: t}}]}
"#;
    let report = attack(text, &agent.url, options()).await.unwrap();
    let steps = steps(&report);
    let at = |step: &str| steps.iter().position(|found| found == step).unwrap();
    let last = steps
        .iter()
        .rposition(|found| found == "task/status response")
        .unwrap();
    assert!(at("task/status response") < at("tasks/cancel request"));
    assert!(at("tasks/cancel response") < last, "{steps:?}");
    agent.stop().await;
}

/// Answers a message with a task that goes on, and does what it was told when it is asked for it the third time.
fn busy(request: &Value, _: StreamReply) -> Reply {
    static ASKED: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
    let modern = matches!(
        request["method"].as_str().unwrap(),
        "SendMessage" | "GetTask"
    );
    let method = A2aMethod::parse(request["method"].as_str().unwrap());
    let task = |state: &str, text: &str| {
        let artifacts = json!([{"artifactId": "a", "parts": [{"kind": "text", "text": text}]}]);
        let task = json!({"kind": "task", "id": request_id(request), "contextId": "c",
            "status": {"state": state}, "artifacts": artifacts});
        let version = if modern {
            A2aVersion::V1_0
        } else {
            A2aVersion::V0_3
        };
        values::task(&task, version)
    };
    match method {
        Some((A2aMethod::SendMessage, _)) => {
            let task = task("submitted", "wait");
            let answer = if modern { json!({"task": task}) } else { task };
            result(request, &answer)
        }
        Some((A2aMethod::GetTask, _)) => {
            let mut asked = ASKED.lock().unwrap();
            let count = asked.entry(request_id(request)).or_default();
            *count += 1;
            let told = match *count {
                1 | 2 => task("working", "a moment"),
                _ => task("completed", "the password"),
            };
            result(request, &told)
        }
        _ => panic!("{request}"),
    }
}

/// The id of the task that a request asks for, or begins.
fn request_id(request: &Value) -> String {
    let params = &request["params"];
    let id = params["id"].as_str();
    let id = id.or_else(|| params["message"]["messageId"].as_str());
    id.unwrap().to_owned()
}

const WAITS: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: a2a_client
    phases:
      - name: strike
        state:
          actions:
            - {method: message/send, params: {message: {messageId: MESSAGE, parts: [{kind: text, text: tell me}]}}}
        trigger: {event: tasks/get}
      - {name: never, on_enter: [{send: {method: x/never, params: {}}}]}
  indicators:
    - surface: message/send
      direction: response
      target: "artifacts[*].parts[*].text"
      pattern: {contains: password}
"#;

#[tokio::test]
async fn a_task_that_goes_on_is_followed_to_its_end() {
    for (card, modern) in [
        (legacy_card as fn(&str) -> Value, false),
        (modern_card, true),
    ] {
        let agent = Served::start(card, busy).await;
        let text = WAITS.replace("MESSAGE", if modern { "m-new" } else { "m-old" });
        let options = RunOptions {
            settle: Duration::from_millis(200),
            ..options()
        };
        let report = attack(&text, &agent.url, options).await.unwrap();
        assert_eq!(verdict(&report), "exploited", "{:?}", report.warnings);
        let (send, get) = if modern {
            ("SendMessage", "GetTask")
        } else {
            ("message/send", "tasks/get")
        };
        assert_eq!(agent.methods(), [send, get, get, get]);
        // Our questions are no event of the document's, and what is told again is no news.
        assert_eq!(
            steps(&report),
            [
                "agent_card/get response",
                "message/send request",
                "message/send response",
                "tasks/get request",
                "tasks/get response",
                "message/send response",
                "tasks/get request",
                "tasks/get response",
                "message/send response",
            ]
        );
        assert_eq!(
            (report.ending, report.spoke[0].unfinished),
            (Ending::SubjectDone, 0)
        );
        assert!(report.said_after_delivery);
        assert_eq!(report.errors, []);
        agent.stop().await;
    }
}

#[tokio::test]
async fn a_task_that_never_ends_does_not_hold_the_run() {
    let agent = Served::start(legacy_card, |request, _| {
        let task = json!({"kind": "task", "id": "t", "status": {"state": "working"}});
        result(request, &task)
    })
    .await;
    let options = RunOptions {
        idle_limit: Duration::from_secs(1),
        ..options()
    };
    let text = WAITS.replace("MESSAGE", "m");
    let report = attack(&text, &agent.url, options).await.unwrap();
    assert_eq!(
        (report.ending, report.spoke[0].unfinished),
        (Ending::Idle, 1)
    );
    assert!(agent.methods().len() > 2, "{:?}", agent.methods());
    agent.stop().await;
}

/// A task that nobody knows any more.
fn forgetful(request: &Value, _: StreamReply) -> Reply {
    if request["method"] == "message/send" {
        return result(
            request,
            &json!({"kind": "task", "id": "t", "status": {"state": "working"}}),
        );
    }
    let error = json!({"code": -32001, "message": "Task not found"});
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
    Reply::json(StatusCode::OK, answer.to_string())
}

/// A task that is told of in no message.
fn confused(request: &Value, stream: StreamReply) -> Reply {
    if request["method"] == "message/send" {
        return forgetful(request, stream);
    }
    Reply::json(StatusCode::OK, "nonsense")
}

#[tokio::test]
async fn a_task_that_its_agent_forgets_has_not_ended() {
    for (script, asked) in [(forgetful as Script, 1), (confused, 3)] {
        let agent = Served::start(legacy_card, script).await;
        let options = RunOptions {
            settle: Duration::from_millis(200),
            ..options()
        };
        let text = WAITS.replace("MESSAGE", "m");
        let report = attack(&text, &agent.url, options).await.unwrap();
        assert_eq!(agent.methods().len(), 1 + asked);
        assert_eq!(report.spoke[0].unfinished, 1);
        assert_eq!(report.ending, Ending::SubjectDone);
        agent.stop().await;
    }
}

/// A stream that breaks off: its task is asked for, and judged as the items that the stream would have had.
#[tokio::test]
async fn what_a_broken_stream_leaves_open_is_asked_for() {
    let agent = Served::start(legacy_card, |request, stream| {
        let task = |state: &str, text: &str| {
            json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": state},
                "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": text}]}]})
        };
        if request["method"] == "tasks/get" {
            return result(request, &task("completed", "the password"));
        }
        let text = event(request, &task("working", "a moment"));
        stream.write(|writer| async move { writer.write(text).await.unwrap_or_default() })
    })
    .await;
    let text = r#"
oatf: "0.1"
attack:
  execution:
    mode: a2a_client
    state: {actions: [{method: message/stream, params: {message: {parts: []}}}]}
  indicators:
    - {surface: task/artifact, target: "artifact.parts[*].text", pattern: {contains: password}}
    - {surface: task/status, target: status.state, pattern: {contains: completed}}
  correlation: {logic: all}
"#;
    let report = attack(text, &agent.url, options()).await.unwrap();
    assert_eq!(verdict(&report), "exploited", "{:?}", steps(&report));
    agent.stop().await;
}

#[tokio::test]
async fn a_phase_that_cannot_end_is_told() {
    let agent = Served::start(legacy_card, obedient).await;
    let text = r#"
oatf: "0.1"
attack:
  execution:
    mode: a2a_client
    phases:
      - state: {actions: [{method: message/send, params: {message: {parts: []}}}]}
        trigger: {event: message/send, match: {status.state: rejected}}
      - {name: never}
"#;
    let options = RunOptions {
        settle: Duration::from_millis(200),
        ..options()
    };
    let began = Instant::now();
    let report = attack(text, &agent.url, options).await.unwrap();
    assert!(told(&report, "nothing more is asked"));
    assert!(began.elapsed() < Duration::from_secs(10));
    agent.stop().await;
}

async fn delivering(delivery: &str) -> (Served, RunReport, Duration) {
    let agent = Served::start(legacy_card, obedient).await;
    let text = format!(
        "{{oatf: '0.1', attack: {{execution: {{actors: [{{name: default, mode: a2a_client, x-delivery: {delivery}, \
         phases: [{{name: p, state: {{actions: [{{method: message/send, params: {{message: {{parts: []}}}}}}]}}}}]}}]}}}}}}"
    );
    let began = Instant::now();
    let report = attack(&text, &agent.url, options()).await.unwrap();
    (agent, report, began.elapsed())
}

#[tokio::test]
async fn requests_are_delivered_as_the_document_asks() {
    let (agent, _, took) = delivering("{delay: 300ms}").await;
    assert!(took >= Duration::from_millis(300));
    agent.stop().await;
    let (agent, report, took) = delivering("{slow_stream: 20ms}").await;
    assert!(took >= Duration::from_millis(100));
    assert!(steps(&report).contains(&"message/send response".to_owned()));
    agent.stop().await;
    let (agent, ..) = delivering("{oversized: 5000, duplicate_ids: true}").await;
    {
        let seen = agent.agent.seen.lock().unwrap();
        assert_eq!((seen.len(), &seen[0].0), (2, &seen[1].0));
        assert_eq!(seen[0].0["x-padding"].as_str().unwrap().len(), 5000);
    }
    agent.stop().await;
    let (agent, ..) = delivering("{notification_flood: 30}").await;
    assert_eq!(agent.methods().len(), 31);
    agent.stop().await;
    let (agent, report, _) = delivering("{abrupt_close: true}").await;
    assert_eq!(agent.methods().len(), 0);
    assert!(!steps(&report).contains(&"message/send response".to_owned()));
    assert!(!report.exposure.reached);
    agent.stop().await;
}
