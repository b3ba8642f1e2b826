//! The `mcp_client` driver against servers that follow a script, of both eras.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

use std::sync::atomic::{AtomicUsize, Ordering};

use proofhouse_range::{ActorEndpoint, ActorErrorKind, CarrierKind, RunError};
use proofhouse_wire::StatusCode;
use proofhouse_wire::server::Reply;
use serde_json::{Value, json};

use crate::client_support::{
    Arrived, Scripted, contents,
    mcp::{DOCUMENT, discovered, error, legacy, method, result, tools},
    operations, options, play, stream, try_play, verdict, warned,
};

const SAMPLING: &str = "sampling/createMessage";

#[tokio::test]
async fn a_modern_server_is_spoken_to_in_envelopes_and_asked_back_through() {
    let server = Scripted::start(|_, arrived| match method(arrived) {
        "server/discover" => discovered(arrived),
        "tools/list" => result(arrived, &tools()),
        "tools/call" if arrived.body["params"].get("inputResponses").is_none() => result(
            arrived,
            &json!({"resultType": "input_required", "requestState": "opaque é", "inputRequests": {
                "a": {"method": SAMPLING, "params": {"maxTokens": 5}},
                "b": {"method": "elicitation/create", "params": {"message": "sure?"}},
                "c": {"method": "roots/list"},
            }}),
        ),
        _ => result(
            arrived,
            &json!({"content": [{"type": "text", "text": "done"}]}),
        ),
    })
    .await;
    let report = play(DOCUMENT, &server.url).await;
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_eq!(
        operations(&report),
        [
            "> server/discover",
            "< server/discover",
            "< initialize",
            "> tools/list",
            "< tools/list",
            "> tools/call",
            "< tools/call",
            "> sampling/createMessage",
            "< sampling/createMessage",
            "> elicitation/create",
            "< elicitation/create",
            "> roots/list",
            "< roots/list",
            "> tools/call",
            "< tools/call"
        ]
    );
    assert_eq!(verdict(&report), "Exploited");
    let initialize = contents(&report, "initialize")[0];
    assert_eq!(initialize["serverInfo"]["name"], "modern");
    assert_eq!(initialize["instructions"], "be kind");

    let arrived = server.arrived();
    assert_eq!(arrived.len(), 4);
    for request in &arrived {
        let meta = &request.body["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "tester");
        let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
        assert!(capabilities.get("sampling").is_some());
        assert_eq!(request.headers["mcp-protocol-version"], "2026-07-28");
        assert_eq!(request.headers["mcp-method"], method(request));
        assert!(!request.headers.contains_key("mcp-session-id"));
    }
    let (first, again) = (&arrived[2], &arrived[3]);
    assert_eq!(first.headers["mcp-name"], "transfer");
    assert_eq!(first.headers["mcp-param-region"], "=?base64?w6k=?=");
    assert_ne!(first.body["id"], again.body["id"]);
    assert_eq!(again.body["params"]["requestState"], "opaque é");
    assert_eq!(
        again.body["params"]["arguments"],
        first.body["params"]["arguments"]
    );
    let responses = &again.body["params"]["inputResponses"];
    assert_eq!(responses["a"]["content"]["text"], "short, 5");
    assert_eq!(
        responses["b"],
        json!({"action": "accept", "content": {"confirmed": true}})
    );
    assert_eq!(responses["c"]["roots"][0]["name"], "etc");
}

#[tokio::test]
async fn a_legacy_server_is_initialized_answered_and_left() {
    let server = Scripted::start(|_, arrived| match method(arrived) {
        "tools/call" => {
            let id = arrived.body["id"].clone();
            stream(move |writer| async move {
                let ask = |id: &str, method: &str, params: Value| {
                    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
                };
                for message in [
                    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": 1}}),
                    ask("a", SAMPLING, json!({"maxTokens": 500})),
                    ask("b", "elicitation/create", json!({"message": "your password"})),
                    ask("c", "roots/list", json!({})),
                    ask("d", "ping", json!({})),
                    ask("e", "weird/thing", json!({})),
                    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "done"}]}}),
                ] {
                    let _ = writer.write(format!("data: {message}\r\n\r\n")).await;
                }
            })
        }
        "DELETE" => Reply::empty(StatusCode::OK),
        _ => legacy(arrived),
    })
    .await;
    let report = play(DOCUMENT, &server.url).await;
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_eq!(verdict(&report), "Exploited");
    let arrived = server.arrived();
    let answers: Vec<&Value> = arrived
        .iter()
        .filter(|arrived| method(arrived) == "response")
        .map(|arrived| &arrived.body)
        .collect();
    let answer = |id: &str| *answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(answer("a")["result"]["content"]["text"], "long");
    assert_eq!(answer("b")["result"], json!({"action": "decline"}));
    assert_eq!(answer("c")["result"]["roots"][0]["uri"], "file:///etc");
    assert_eq!(answer("d")["result"], json!({}));
    assert_eq!(answer("e")["error"]["code"], -32601);
    let initialize = arrived.iter().find(|a| method(a) == "initialize").unwrap();
    assert_eq!(initialize.body["params"]["protocolVersion"], "2025-11-25");
    assert!(!initialize.headers.contains_key("mcp-session-id"));
    let later = arrived
        .iter()
        .filter(|a| !matches!(method(a), "initialize" | "server/discover"));
    for request in later {
        assert_eq!(
            request.headers["mcp-session-id"],
            "s1",
            "{}",
            method(request)
        );
        assert_eq!(request.headers["mcp-protocol-version"], "2025-06-18");
        assert_eq!(request.body["params"].get("_meta"), None);
    }
    let order: Vec<&str> = arrived.iter().map(method).take(5).collect();
    let expected = [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "GET",
        "tools/list",
    ];
    assert_eq!(order, expected, "nothing overtakes the beginning");
    for once in ["notifications/initialized", "GET", "DELETE"] {
        assert_eq!(
            arrived.iter().filter(|a| method(a) == once).count(),
            1,
            "{once}"
        );
    }
    let delivered = |kind| {
        let mut carriers = report.exposure.carriers.iter();
        carriers.find(|c| c.kind == kind).unwrap().delivered
    };
    assert_eq!(delivered(CarrierKind::Sampling), 1);
    assert_eq!(delivered(CarrierKind::Elicitation), 1);
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_as_the_protocol_says() {
    const SILENT: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: mcp_client
    state: {actions: [{method: tools/call, params: {name: x}}]}
"#;
    let server = Scripted::start(|_, arrived| match method(arrived) {
        "tools/call" => {
            let id = arrived.body["id"].clone();
            stream(move |writer| async move {
                for (id, method) in [
                    ("a", SAMPLING),
                    ("b", "elicitation/create"),
                    ("c", "roots/list"),
                ] {
                    let ask = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
                    let _ = writer.write(format!("data: {ask}\n\n")).await;
                }
                let done = json!({"jsonrpc": "2.0", "id": id, "result": {}});
                let _ = writer.write(format!("data: {done}\n\n")).await;
            })
        }
        _ => legacy(arrived),
    })
    .await;
    play(SILENT, &server.url).await;
    let arrived = server.arrived();
    let answer = |id: &str| {
        arrived
            .iter()
            .find(|a| a.body["id"] == id)
            .unwrap()
            .body
            .clone()
    };
    assert_eq!(answer("a")["error"]["code"], -1);
    assert_eq!(answer("b")["result"], json!({"action": "decline"}));
    assert_eq!(answer("c")["result"], json!({"roots": []}));

    let modern = Scripted::start(|_, arrived| match method(arrived) {
        "server/discover" => discovered(arrived),
        _ => result(
            arrived,
            &json!({"resultType": "input_required", "inputRequests": {
                "a": {"method": SAMPLING, "params": {}},
            }}),
        ),
    })
    .await;
    let report = play(SILENT, &modern.url).await;
    assert_eq!(
        modern.arrived().len(),
        2,
        "no way to refuse, so no second round"
    );
    assert!(
        warned(&report, "is not tried again"),
        "{:?}",
        report.warnings
    );
}

#[tokio::test]
async fn the_era_is_found_by_asking() {
    type Answer = fn(&Arrived) -> Reply;
    let cases: [(&str, Answer, bool); 10] = [
        ("a discovery", discovered, true),
        (
            "a modern error",
            |a| error(a, StatusCode::BAD_REQUEST, -32021, &json!(null)),
            true,
        ),
        (
            "another version",
            |a| {
                error(
                    a,
                    StatusCode::BAD_REQUEST,
                    -32022,
                    &json!({"supported": ["2026-07-28"]}),
                )
            },
            true,
        ),
        (
            "a modern error that names no request",
            |_| {
                let error = json!({"code": -32020, "message": "no"});
                let answer = json!({"jsonrpc": "2.0", "id": null, "error": error});
                Reply::json(StatusCode::BAD_REQUEST, answer.to_string())
            },
            true,
        ),
        (
            "legacy versions only",
            |a| {
                error(
                    a,
                    StatusCode::BAD_REQUEST,
                    -32022,
                    &json!({"supported": ["2025-11-25"]}),
                )
            },
            false,
        ),
        (
            "an unknown method",
            |a| error(a, StatusCode::OK, -32601, &json!(null)),
            false,
        ),
        ("an empty result", |a| result(a, &json!({})), false),
        (
            "a page",
            |_| Reply::json(StatusCode::NOT_FOUND, "<html>"),
            false,
        ),
        ("nothing", |_| Reply::empty(StatusCode::OK), false),
        ("a cut", |_| Reply::cut(), false),
    ];
    for (name, answer, modern) in cases {
        let server = Scripted::start(move |_, arrived| match method(arrived) {
            "server/discover" => answer(arrived),
            _ => legacy(arrived),
        })
        .await;
        let report = play(DOCUMENT, &server.url).await;
        let arrived = server.arrived();
        let is_modern = !arrived.iter().any(|a| method(a) == "initialize");
        assert_eq!(is_modern, modern, "{name}");
        assert_eq!(
            verdict(&report),
            "Exploited",
            "{name}: the same verdict in both eras"
        );
    }
}

#[tokio::test]
async fn a_session_that_ended_is_begun_anew_once() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let server = Scripted::start(|_, arrived| match method(arrived) {
        "tools/call" if CALLS.fetch_add(1, Ordering::Relaxed) == 0 => {
            Reply::empty(StatusCode::NOT_FOUND)
        }
        _ => legacy(arrived),
    })
    .await;
    let report = play(DOCUMENT, &server.url).await;
    assert_eq!(verdict(&report), "Exploited");
    let arrived = server.arrived();
    assert_eq!(
        arrived.iter().filter(|a| method(a) == "initialize").count(),
        2
    );

    let never = Scripted::start(|_, arrived| match method(arrived) {
        "tools/call" => Reply::empty(StatusCode::NOT_FOUND),
        _ => legacy(arrived),
    })
    .await;
    let report = play(DOCUMENT, &never.url).await;
    let arrived = never.arrived();
    assert_eq!(
        arrived.iter().filter(|a| method(a) == "initialize").count(),
        2
    );
    assert!(warned(&report, "status 404"), "{:?}", report.warnings);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_asked_for_the_rest() {
    let server = Scripted::start(|_, arrived| match method(arrived) {
        "tools/call" => {
            let id = arrived.body["id"].to_string();
            stream(move |writer| async move {
                let _ = writer
                    .write(format!("id: call-{id}\nretry: 50\ndata: \n\n"))
                    .await;
            })
        }
        "GET" => match arrived.headers.get("last-event-id") {
            Some(last) => {
                let id: u64 = last.strip_prefix("call-").unwrap().parse().unwrap();
                let done = json!({"content": [{"type": "text", "text": "done"}]});
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": done});
                stream(move |writer| async move {
                    let _ = writer.write(format!("id: x\ndata: {answer}\n\n")).await;
                    writer.closed().await;
                })
            }
            None => Reply::empty(StatusCode::METHOD_NOT_ALLOWED),
        },
        _ => legacy(arrived),
    })
    .await;
    let report = play(DOCUMENT, &server.url).await;
    assert_eq!(verdict(&report), "Exploited", "{:?}", report.warnings);
}

#[tokio::test]
async fn messages_come_over_the_general_stream_while_a_call_waits() {
    use std::sync::{Arc, Mutex};
    let held: Arc<Mutex<Option<proofhouse_wire::server::StreamWriter>>> = Arc::default();
    let server = Scripted::start(move |_, arrived| match method(arrived) {
        "GET" => {
            let (reply, writer) = Reply::events();
            *held.lock().unwrap() = Some(writer);
            reply
        }
        "tools/call" => {
            // The answer waits for the answer to a question that comes over the other stream.
            let (reply, writer) = Reply::events();
            let general = held.lock().unwrap().clone();
            let id = arrived.body["id"].clone();
            tokio::spawn(async move {
                let ask = json!({"jsonrpc": "2.0", "id": "q", "method": "ping"});
                let _ = general.unwrap().write(format!("data: {ask}\n\n")).await;
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                let done = json!({"content": [{"type": "text", "text": "done"}]});
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": done});
                let _ = writer.write(format!("data: {answer}\n\n")).await;
            });
            reply
        }
        _ => legacy(arrived),
    })
    .await;
    let report = play(DOCUMENT, &server.url).await;
    assert_eq!(verdict(&report), "Exploited", "{:?}", report.warnings);
    assert!(server.arrived().iter().any(|a| a.body["id"] == "q"));
}

#[tokio::test]
async fn a_version_that_is_refused_is_given_up_for_one_that_is_offered() {
    static LISTS: AtomicUsize = AtomicUsize::new(0);
    let server = Scripted::start(|_, arrived| match method(arrived) {
        "server/discover" => discovered(arrived),
        "tools/list" if LISTS.fetch_add(1, Ordering::Relaxed) == 0 => {
            let data = json!({"supported": ["2027-01-01"], "requested": "2026-07-28"});
            error(arrived, StatusCode::BAD_REQUEST, -32022, &data)
        }
        _ => legacy(arrived),
    })
    .await;
    let report = play(DOCUMENT, &server.url).await;
    assert_eq!(verdict(&report), "Exploited");
    let arrived = server.arrived();
    assert_eq!(arrived[1].headers["mcp-protocol-version"], "2026-07-28");
    assert_eq!(arrived[2].headers["mcp-protocol-version"], "2027-01-01");
    let refusing = Scripted::start(|_, arrived| match method(arrived) {
        "server/discover" => discovered(arrived),
        _ => {
            let data = json!({"supported": ["2026-07-28"]});
            error(arrived, StatusCode::BAD_REQUEST, -32022, &data)
        }
    })
    .await;
    play(DOCUMENT, &refusing.url).await;
    assert_eq!(refusing.arrived().len(), 5, "each call is tried again once");
}

#[tokio::test]
async fn a_subscription_is_listened_to_while_other_things_are_done() {
    const LISTENING: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: mcp_client
    phases:
      - state:
          client_info: {name: first, version: "1"}
          actions:
            - {method: subscriptions/listen, params: {notifications: {toolsListChanged: true}}}
        trigger: {event: notifications/tools/list_changed}
      - state:
          client_info: {name: second, version: "1"}
          actions: [{method: tools/list}]
"#;
    let server = Scripted::start(|_, arrived| match method(arrived) {
        "server/discover" => discovered(arrived),
        "subscriptions/listen" => stream(|writer| async move {
            for name in ["subscriptions/acknowledged", "tools/list_changed"] {
                let method = format!("notifications/{name}");
                let event = json!({"jsonrpc": "2.0", "method": method});
                let _ = writer.write(format!("data: {event}\n\n")).await;
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            writer.closed().await;
        }),
        _ => legacy(arrived),
    })
    .await;
    let report = play(LISTENING, &server.url).await;
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_eq!(
        operations(&report)[3..],
        [
            "> subscriptions/listen",
            "< notifications/subscriptions/acknowledged",
            "< notifications/tools/list_changed",
            "> tools/list",
            "< tools/list"
        ]
    );
    let arrived = server.arrived();
    let info = |n: usize| {
        arrived[n].body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"].clone()
    };
    assert_eq!((info(1), info(2)), (json!("first"), json!("second")));
}

const PHASES: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: mcp_client
    phases:
      - name: look
        state:
          actions: [{method: tools/list}, {method: never/reached}]
        extractors:
          - {name: tool, source: response, type: json_path, selector: "$.tools[0].name"}
        trigger: {event: tools/list}
      - name: strike
        on_enter:
          - send: {method: notifications/roots/list_changed}
          - send: {method: prompts/list}
        state:
          actions: [{method: tools/call, params: {name: "{{tool}}"}}]
        trigger: {event: tools/call, match: {name: transfer}}
      - name: inherited
        trigger: {event: tools/call, count: 5}
      - name: unreached
        state: {actions: [{method: never/reached}]}
"#;

#[tokio::test]
async fn phases_lead_on_and_one_that_waits_in_vain_ends() {
    let server = Scripted::start(|_, arrived| match method(arrived) {
        "prompts/list" => result(arrived, &json!({"prompts": []})),
        _ => legacy(arrived),
    })
    .await;
    let report = play(PHASES, &server.url).await;
    let arrived = server.arrived();
    let methods: Vec<&str> = arrived.iter().map(method).collect();
    let own: Vec<&str> = methods
        .into_iter()
        .filter(|m| !matches!(*m, "GET" | "DELETE" | "notifications/initialized"))
        .collect();
    // A notification is not waited for, so it may arrive later than what follows.
    let position = |name: &str| own.iter().position(|method| *method == name);
    assert!(position("notifications/roots/list_changed") > position("tools/list"));
    assert!(position("prompts/list") > position("tools/list"));
    assert!(position("tools/call") > position("prompts/list"));
    assert_eq!(position("never/reached"), None, "{own:?}");
    let call = arrived.iter().find(|a| method(a) == "tools/call").unwrap();
    assert_eq!(
        call.body["params"]["name"], "transfer",
        "the extractor's value"
    );
    assert!(
        warned(&report, "the phase `inherited` is the last"),
        "{:?}",
        report.warnings
    );
    assert!(report.duration < std::time::Duration::from_secs(20));
}

#[tokio::test]
async fn deliveries_reach_the_server_as_asked() {
    const SKEWED: &str = r#"
oatf: "0.1"
attack:
  execution:
    actors:
      - name: default
        mode: mcp_client
        phases:
          - state: {actions: []}
            trigger: {event: initialize}
          - x-delivery: DELIVERY
            state: {actions: [{method: tools/list}]}
"#;
    for (delivery, lists, floods) in [
        ("{delay: 20ms}", 1, 0),
        ("{slow_stream: 1ms}", 1, 0),
        ("{oversized: 5000, deep_nesting: 50}", 1, 0),
        ("{duplicate_ids: true}", 2, 0),
        ("{notification_flood: 20}", 1, 20),
    ] {
        let server = Scripted::start(|_, arrived| legacy(arrived)).await;
        let document = SKEWED.replace("DELIVERY", delivery);
        let report = play(&document, &server.url).await;
        let arrived = server.arrived();
        let count = |name: &str| arrived.iter().filter(|a| method(a) == name).count();
        assert_eq!(
            count("tools/list"),
            lists,
            "{delivery}: {:?}",
            report.warnings
        );
        assert_eq!(count("notifications/progress"), floods, "{delivery}");
    }
    let server = Scripted::start(|_, arrived| legacy(arrived)).await;
    let document = SKEWED.replace("DELIVERY", "{abrupt_close: true}");
    let report = play(&document, &server.url).await;
    assert!(
        warned(&report, "`tools/list`: the connection broke"),
        "{:?}",
        report.warnings
    );
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_is_an_error_that_says_so() {
    let nobody = "http://127.0.0.1:9/mcp";
    for (endpoint, kind, told) in [
        (
            ActorEndpoint::Url(nobody.to_owned()),
            ActorErrorKind::Unreachable,
            nobody,
        ),
        (
            ActorEndpoint::Stdio,
            ActorErrorKind::Endpoint,
            "needs a URL or a command",
        ),
    ] {
        match try_play(DOCUMENT, options(endpoint)).await {
            Err(RunError::Actor(error)) => {
                assert_eq!(error.kind, kind);
                let text = error.to_string();
                assert!(text.contains("`default`") && text.contains(told), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
    let server = Scripted::start(|_, _| Reply::empty(StatusCode::NOT_FOUND)).await;
    let report = play(DOCUMENT, &server.url).await;
    assert_eq!(report.errors[0].kind, ActorErrorKind::Protocol);
    assert!(
        report.errors[0].message.contains("status 404"),
        "{:?}",
        report.errors
    );
}
