//! `mcp_server` over Streamable HTTP, in the era without a handshake.

use proofhouse_wire::Method;
use serde_json::{Value, json};

use crate::mcp_support::*;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[tokio::test]
async fn every_request_says_what_it_is_or_is_refused() {
    let state = json!({"tools": [{
        "name": "t",
        "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    }]});
    let stage = Stage::http(of_state(&state)).await;
    let http = Http::new(&stage.url);
    let enveloped = |params: Value| envelope(params, json!({}));
    let without = |key: &str| {
        let mut params = enveloped(json!({}));
        params["_meta"].as_object_mut().unwrap().remove(key);
        params
    };
    let mut other = enveloped(json!({}));
    other["_meta"][VERSION] = json!("2030-01-01");
    let call = |region: Value| enveloped(json!({"name": "t", "arguments": {"region": region}}));
    let version = ("mcp-protocol-version", "2026-07-28");
    let list = ("mcp-method", "tools/list");
    let called = ("mcp-method", "tools/call");
    let name = ("mcp-name", "t");
    for (method, params, headers, status, code) in [
        ("tools/list", json!({}), vec![version, list], 400, -32602),
        (
            "tools/list",
            without(VERSION),
            vec![version, list],
            400,
            -32602,
        ),
        (
            "tools/list",
            without("io.modelcontextprotocol/clientCapabilities"),
            vec![version, list],
            400,
            -32602,
        ),
        (
            "tools/list",
            without("io.modelcontextprotocol/clientInfo"),
            vec![version, list],
            200,
            0,
        ),
        (
            "tools/list",
            other.clone(),
            vec![version, list],
            400,
            -32020,
        ),
        (
            "tools/list",
            other,
            vec![("mcp-protocol-version", "2030-01-01"), list],
            400,
            -32022,
        ),
        ("tools/list", enveloped(json!({})), vec![list], 400, -32020),
        (
            "tools/list",
            enveloped(json!({})),
            vec![version],
            400,
            -32020,
        ),
        (
            "tools/list",
            enveloped(json!({})),
            vec![version, called],
            400,
            -32020,
        ),
        (
            "tools/list",
            enveloped(json!({})),
            vec![version, list],
            200,
            0,
        ),
        (
            "tools/call",
            call(Value::Null),
            vec![version, called],
            400,
            -32020,
        ),
        (
            "tools/call",
            call(Value::Null),
            vec![version, called, ("mcp-name", "u")],
            400,
            -32020,
        ),
        (
            "tools/call",
            call(Value::Null),
            vec![version, called, name],
            200,
            0,
        ),
        (
            "tools/call",
            call(json!("é")),
            vec![version, called, name],
            400,
            -32020,
        ),
        (
            "tools/call",
            call(json!("é")),
            vec![
                version,
                called,
                name,
                ("mcp-param-region", "=?base64?w6k=?="),
            ],
            200,
            0,
        ),
        (
            "initialize",
            enveloped(json!({})),
            vec![version, ("mcp-method", "initialize")],
            404,
            -32601,
        ),
        (
            "ping",
            enveloped(json!({})),
            vec![version, ("mcp-method", "ping")],
            404,
            -32601,
        ),
        ("server/discover", json!({}), vec![], 400, -32602),
    ] {
        let text = request(5, method, params.clone()).to_string();
        let response = http.send(Method::POST, &headers, &text).await;
        let place = format!("{method} {params} {headers:?}");
        assert_eq!(response.status, status, "{place}");
        let answer = body(response).await;
        assert_eq!(
            answer["error"]["code"].as_i64().unwrap_or(0),
            code,
            "{place}"
        );
        assert_eq!(answer["id"], 5, "{place}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn results_carry_what_the_era_wants() {
    let state = json!({
        "server_info": {"name": "s", "version": "2"},
        "instructions": "I",
        "resources": [{"uri": "a://x", "name": "x", "content": {"text": "X"}}],
    });
    let stage = Stage::http(of_state(&state)).await;
    let http = Http::new(&stage.url);
    for (method, params, cacheable) in [
        ("server/discover", json!({}), true),
        ("tools/list", json!({}), true),
        ("resources/read", json!({"uri": "a://x"}), true),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p"}}),
            false,
        ),
    ] {
        let result = body(http.modern(method, params, json!({})).await).await["result"].clone();
        assert_eq!(result["resultType"], "complete", "{method}");
        let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(info["name"], "s", "{method}");
        assert_eq!(result.get("ttlMs").is_some(), cacheable, "{method}");
        if method == "server/discover" {
            assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
            assert_eq!(result["instructions"], "I");
        }
    }
    let missing = http
        .modern("resources/read", json!({"uri": "b://"}), json!({}))
        .await;
    assert_eq!(body(missing).await["error"]["code"], -32602);
    stage.finish().await;
}

#[tokio::test]
async fn a_contact_counts_once_and_a_probe_with_its_handshake_too() {
    let phases = json!([
        {"name": "first", "state": {}, "trigger": {"event": "initialize", "match": {"clientInfo.name": "test"}}},
        {"name": "second", "trigger": {"event": "initialize"}},
        {"name": "third"},
    ]);
    let stage = Stage::http(of_phases(&phases)).await;
    let mut http = Http::new(&stage.url);
    for method in ["server/discover", "tools/list", "tools/list"] {
        assert_eq!(http.modern(method, json!({}), json!({})).await.status, 200);
    }
    assert_eq!(stage.phases(), ["first", "second"]);
    http.initialize(json!({})).await;
    assert_eq!(
        stage.phases(),
        ["first", "second"],
        "the probe counted already"
    );
    http.initialize(json!({})).await;
    stage.in_phase("third").await;
    assert_eq!(stage.phases(), ["first", "second", "third"]);
    let report = stage.finish().await;
    let first = report
        .trace
        .iter()
        .find(|one| &*one.operation == "initialize")
        .unwrap();
    assert_eq!(first.content["protocolVersion"], "2026-07-28");
}

#[tokio::test]
async fn answers_come_with_the_retry_which_is_the_same_event() {
    let phases = json!([
        {
            "name": "ask",
            "state": {
                "tools": [{"name": "login", "responses": [
                    {"when": {"inputResponses.elicitation.action": "accept"}, "content": "Got {{request.inputResponses.elicitation.content.password}}"},
                    {"content": "Nothing"},
                ]}],
                "elicitations": [{"message": "Password?", "elicitationId": "e", "requestedSchema": {"type": "object", "properties": {}}}],
            },
            "trigger": {"event": "tools/call", "count": 2},
        },
        {"name": "later", "state": {"tools": [{"name": "login", "responses": [{"content": "Too late"}]}]}},
    ]);
    let stage = Stage::http(of_phases(&phases)).await;
    let http = Http::new(&stage.url);
    let can = json!({"elicitation": {}});
    let call = json!({"name": "login"});
    let first = body(http.modern("tools/call", call.clone(), can.clone()).await).await;
    let result = &first["result"];
    assert_eq!(result["resultType"], "input_required");
    let asked = &result["inputRequests"]["elicitation"];
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(asked["params"]["message"], "Password?");
    assert!(asked["params"].get("elicitationId").is_none());

    let mut retry = call.clone();
    retry["requestState"] = result["requestState"].clone();
    retry["inputResponses"] = json!({"elicitation": {"action": "accept", "content": {"password": "hunter2"}}, "extra": 1});
    for _ in 0..2 {
        let second = body(http.modern("tools/call", retry.clone(), can.clone()).await).await;
        let text = &second["result"]["content"][0]["text"];
        assert_eq!(text, "Got hunter2", "{second}");
    }
    assert_eq!(stage.phases(), ["ask"], "retries are no second event");

    for (key, value) in [
        ("requestState", json!("made up")),
        ("requestState", json!(3)),
        ("inputResponses", json!([])),
    ] {
        let mut wrong = retry.clone();
        wrong[key] = value;
        let answer = body(http.modern("tools/call", wrong, can.clone()).await).await;
        assert_eq!(answer["error"]["code"], -32602, "{key}");
    }
    let mut other = retry.clone();
    other["inputResponses"] = json!({"elicitation": 7});
    let again = body(http.modern("tools/call", other, can.clone()).await).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");

    // A client that cannot be asked gets the answer for those who said nothing.
    let plain = body(http.modern("tools/call", call, json!({})).await).await;
    assert_eq!(plain["result"]["content"][0]["text"], "Nothing");
    stage.in_phase("later").await;
    assert_eq!(stage.phases(), ["ask", "later"]);
    // What began in one phase ends in it.
    let late = body(http.modern("tools/call", retry, can).await).await;
    assert_eq!(late["result"]["content"][0]["text"], "Got hunter2");
    let report = stage.finish().await;
    assert!(count(&report, "elicitation/create", "Response") >= 2);
}

#[tokio::test]
async fn listeners_hear_what_they_asked_for() {
    let phases = json!([
        {"name": "trust", "state": {}, "trigger": {"event": "tools/list"}},
        {"name": "strike", "state": {"tools": [{"name": "new"}]}, "on_enter": [
            {"send": {"method": "notifications/tools/list_changed"}},
            {"send": {"method": "notifications/resources/updated", "params": {"uri": "a://x"}}},
            {"send": {"method": "elicitation/create", "params": {"message": "Hi"}}},
        ]},
    ]);
    let stage = Stage::http(of_phases(&phases)).await;
    let http = Http::new(&stage.url);
    let listen = |wanted: Value| {
        let http = http.clone();
        async move {
            let params = json!({"notifications": wanted});
            let mut events = http
                .modern("subscriptions/listen", params, json!({}))
                .await
                .events();
            let first = next(&mut events).await.unwrap();
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
            (first["params"]["notifications"].clone(), events)
        }
    };
    let (honoured, mut tools) = listen(json!({"toolsListChanged": true, "sandwiches": true})).await;
    assert_eq!(honoured, json!({"toolsListChanged": true}));
    let (_, mut resource) = listen(json!({"resourceSubscriptions": ["a://x"]})).await;
    let (_, mut prompts) = listen(json!({"promptsListChanged": true})).await;
    http.modern("tools/list", json!({}), json!({})).await;
    let heard = next(&mut tools).await.unwrap();
    assert_eq!(heard["method"], "notifications/tools/list_changed");
    assert_eq!(heard["params"]["_meta"][SUBSCRIPTION], 7);
    let heard = next(&mut resource).await.unwrap();
    assert_eq!(heard["method"], "notifications/resources/updated");
    let heard = next(&mut prompts).await.unwrap();
    assert_eq!(heard["method"], "elicitation/create", "only the violation");
    let report = stage.finish().await;
    let told = |text: &str| report.warnings.iter().any(|one| one.contains(text));
    assert!(told("deliberate violation"), "{:?}", report.warnings);
}

#[tokio::test]
async fn nobody_listening_is_told_and_leaving_cancels() {
    let phases = json!([
        {
            "name": "trust",
            "state": {"tools": [{"name": "sleep", "x-steps": [{"log": "zzz"}, {"progress": 1}, {"pause": "30s"}]}]},
            "trigger": {"event": "tools/list"},
        },
        {"name": "strike", "on_enter": [{"send": {"method": "notifications/tools/list_changed"}}]},
    ]);
    let stage = Stage::http(of_phases(&phases)).await;
    let http = Http::new(&stage.url);
    let mut params = envelope(json!({"name": "sleep"}), json!({}));
    params["_meta"]["progressToken"] = json!(1);
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "sleep"),
    ];
    let text = request(3, "tools/call", params).to_string();
    let mut events = http.send(Method::POST, &headers, &text).await.events();
    let first = next(&mut events).await.unwrap();
    assert_eq!(
        first["method"], "notifications/progress",
        "no log without a level"
    );
    drop(events);
    http.modern("tools/list", json!({}), json!({})).await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let report = stage.finish().await;
    assert_eq!(count(&report, "tools/call", "Response"), 0);
    let told = |text: &str| report.warnings.iter().any(|one| one.contains(text));
    assert!(told("`notifications/tools/list_changed` was not delivered"));
}

#[tokio::test]
async fn a_version_the_document_insists_on_is_the_only_one() {
    let stage = Stage::http(of_state(&json!({"protocol_version": "2025-06-18"}))).await;
    let mut http = Http::new(&stage.url);
    let response = http.modern("server/discover", json!({}), json!({})).await;
    assert_eq!(response.status, 400);
    let error = body(response).await["error"].clone();
    assert_eq!(error["code"], -32022);
    assert_eq!(
        error["data"],
        json!({"supported": ["2025-06-18"], "requested": "2026-07-28"})
    );
    let result = http.initialize(json!({})).await;
    assert_eq!(result["result"]["protocolVersion"], "2025-06-18");
    let report = stage.finish().await;
    assert_eq!(count(&report, "initialize", "Request"), 1);
}

#[tokio::test]
async fn what_needs_a_capability_is_refused_without_it() {
    let state = json!({"tools": [{"name": "t", "x-requires": ["sampling"], "responses": [{"content": "ok"}]}]});
    let stage = Stage::http(of_state(&state)).await;
    let http = Http::new(&stage.url);
    let response = http
        .modern("tools/call", json!({"name": "t"}), json!({}))
        .await;
    assert_eq!(response.status, 400);
    let error = body(response).await["error"].clone();
    assert_eq!(error["code"], -32021);
    assert_eq!(
        error["data"],
        json!({"requiredCapabilities": {"sampling": {}}})
    );
    let can = json!({"sampling": {}});
    assert_eq!(
        http.modern("tools/call", json!({"name": "t"}), can)
            .await
            .status,
        200
    );
    stage.finish().await;
}
