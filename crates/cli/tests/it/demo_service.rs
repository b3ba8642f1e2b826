//! The demo service as programs see it: what it answers, also to nonsense, and how it ends.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use crate::support::{Demo, json, run, run_with_input};

#[test]
fn it_answers_and_ends_with_its_stdin() {
    let mut demo = Demo::start(&[]);
    let key = "authorization: Bearer demo-key";
    for (head, body, status, words) in [
        ("GET / HTTP/1.1", "", 200, "openapi.json"),
        ("GET /weather/Oslo HTTP/1.1", "", 401, "key"),
        (
            &format!("GET /weather/S%C3%A3o%20Paulo?days=2 HTTP/1.1\r\n{key}"),
            "",
            200,
            "São Paulo",
        ),
        (
            &format!("GET /weather/Oslo?days=99 HTTP/1.1\r\n{key}"),
            "",
            400,
            "days",
        ),
        (
            "POST /notes HTTP/1.1",
            "{\"text\": \"one\"}",
            201,
            "\"id\":1",
        ),
        ("POST /notes HTTP/1.1", "{\"text\": 1}", 400, "text"),
        ("POST /notes HTTP/1.1", "\u{0}{", 400, "text"),
        ("GET /notes?word=one HTTP/1.1", "", 200, "one"),
        ("GET /notes?word=two HTTP/1.1", "", 200, "[]"),
        ("GET /notes/1 HTTP/1.1", "", 200, "one"),
        ("GET /notes/%00 HTTP/1.1", "", 404, "no such note"),
        ("DELETE /notes/1 HTTP/1.1", "", 204, ""),
        ("DELETE /notes/1 HTTP/1.1", "", 404, "no such note"),
        (
            "POST /sessions/nobody/add HTTP/1.1",
            "{\"number\": 1}",
            404,
            "ended",
        ),
        ("GET /account HTTP/1.1", "", 401, "token"),
        (
            "POST /oauth/token HTTP/1.1",
            "grant_type=client_credentials&client_id=demo-client&client_secret=wrong",
            401,
            "invalid_client",
        ),
        (
            "POST /oauth/token HTTP/1.1",
            "grant_type=password",
            400,
            "unsupported_grant_type",
        ),
        ("GET /mcp HTTP/1.1", "", 405, "POST"),
        ("POST /mcp HTTP/1.1", "{", 400, "-32700"),
        (
            "POST /mcp HTTP/1.1\r\norigin: https://evil.example",
            "{}",
            403,
            "origin",
        ),
        (
            "POST /mcp HTTP/1.1",
            r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#,
            200,
            "-32601",
        ),
        (
            "POST /mcp HTTP/1.1",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            202,
            "",
        ),
        ("DELETE /weather/Oslo HTTP/1.1", "", 404, "nothing here"),
    ] {
        let (got, answer) = demo.ask(head, body);
        assert_eq!(got, status, "{head}: {answer}");
        assert!(answer.contains(words), "{head}: {answer}");
    }
    let (status, _) = demo.ask("POST /notes HTTP/1.1", &" ".repeat((1 << 20) + 1));
    assert_eq!(status, 413);
    assert_eq!(demo.end(), Some(0));
}

#[test]
fn tokens_open_the_account() {
    let demo = Demo::start(&[]);
    let form = "grant_type=client_credentials&client_id=demo-client&client_secret=demo-secret";
    let (status, answer) = demo.ask("POST /oauth/token HTTP/1.1", form);
    assert_eq!(status, 200, "{answer}");
    let token = json(&answer)["access_token"].as_str().unwrap().to_owned();
    let head = format!("GET /account HTTP/1.1\r\nauthorization: Bearer {token}");
    assert_eq!(demo.ask(&head, "").0, 200);
}

#[test]
fn sessions_expire() {
    let demo = Demo::start(&["--session-lifetime", "100ms"]);
    let (_, made) = demo.ask("POST /sessions HTTP/1.1", "");
    let id = json(&made)["session"]["id"].as_str().unwrap().to_owned();
    let mut asked = 0;
    while json(&demo.ask("GET /sessions HTTP/1.1", "").1)["open"] != 0 {
        asked += 1;
        assert!(asked < 1_000, "the session does not end");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let add = format!("POST /sessions/{id}/add HTTP/1.1");
    assert_eq!(demo.ask(&add, "{\"number\": 1}").0, 404);
}

#[test]
fn it_speaks_mcp_over_stdio() {
    let input = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"fail"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"dance"}}"#,
        "not JSON",
        "",
    ];
    let ran = run_with_input(
        &["demo-service", "--mcp-stdio"],
        input.join("\n").as_bytes(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answers: Vec<_> = ran.stdout.lines().map(json).collect();
    assert_eq!(answers.len(), 6, "{}", ran.stdout);
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answers[1]["result"]["tools"].as_array().unwrap().len(), 3);
    assert_eq!(answers[2]["result"]["structuredContent"]["sum"], 3.0);
    assert_eq!(answers[3]["result"]["isError"], true);
    assert_eq!(answers[4]["error"]["code"], -32602);
    assert_eq!(answers[5]["error"]["code"], -32700);
}

#[test]
fn an_address_in_use_is_told() {
    let demo = Demo::start(&[]);
    let ran = run(&["demo-service", "--listen", &demo.address]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("cannot listen"), "{}", ran.stderr);
}
