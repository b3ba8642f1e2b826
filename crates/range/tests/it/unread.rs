//! What was sent to a client that never read it was not delivered, in a stream as little as in a whole reply.

use proofhouse_range::{CarrierKind, RunReport};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::mcp_support::*;

/// A tool that answers in a stream, and one that takes longer.
fn tools() -> Value {
    json!({"tools": [
        {"name": "steps", "x-steps": [{"pause": "1ms"}], "responses": [{"content": "PAYLOAD"}]},
        {"name": "later", "x-steps": [{"pause": "50ms"}], "responses": [{"content": "PAYLOAD"}]},
        {"name": "other", "x-steps": [{"pause": "200ms"}], "responses": [{"content": "else"}]},
    ]})
}

fn delivered(report: &RunReport, tool: &str) -> u64 {
    let carriers = report.exposure.carriers.iter();
    let responses = carriers.filter(|carrier| carrier.kind == CarrierKind::ToolResponse);
    let of_tool = responses.filter(|carrier| carrier.name == tool);
    of_tool.map(|carrier| carrier.delivered).sum()
}

/// A connection on which a tool was called, in a session or in the modern era.
async fn raw_call(stage: &Stage, session: Option<&str>, tool: &str) -> TcpStream {
    let place = stage.url.trim_start_matches("http://");
    let place = place.split('/').next().unwrap();
    let (params, headers) = match session {
        Some(id) => (json!({"name": tool}), format!("mcp-session-id: {id}\r\n")),
        None => (
            envelope(json!({"name": tool}), json!({})),
            format!(
                "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
            ),
        ),
    };
    let body = request(77, "tools/call", params).to_string();
    let mut stream = TcpStream::connect(place).await.unwrap();
    let text = format!(
        "POST /mcp HTTP/1.1\r\nhost: {place}\r\n{headers}content-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Waits until the answer has arrived, and leaves it unread.
async fn arrived(stream: &TcpStream) {
    let looking = async {
        let mut seen = vec![0; 64 << 10];
        loop {
            let length = stream.peek(&mut seen).await.unwrap();
            if String::from_utf8_lossy(&seen[..length]).contains("PAYLOAD") {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap();
}

#[tokio::test]
async fn the_end_of_a_stream_that_nobody_read_was_not_delivered() {
    for legacy in [true, false] {
        let stage = Stage::http(of_state(&tools())).await;
        let mut http = Http::initialized(&stage.url, json!({})).await;
        let session = http.session.clone().filter(|_| legacy);
        let stream = raw_call(&stage, session.as_deref(), "steps").await;
        arrived(&stream).await;
        drop(stream);
        // What the server does meanwhile.
        http.call("tools/call", json!({"name": "other"})).await;
        let report = stage.finish().await;
        assert_eq!(delivered(&report, "steps"), 0, "legacy: {legacy}");
        assert_eq!(delivered(&report, "other"), 1, "legacy: {legacy}");
        let warnings = format!("{:?}", report.warnings);
        assert!(warnings.contains("before it was read"), "{warnings}");
    }
}

#[tokio::test]
async fn who_left_before_the_answer_was_not_told() {
    for legacy in [true, false] {
        let stage = Stage::http(of_state(&tools())).await;
        let mut http = Http::initialized(&stage.url, json!({})).await;
        let session = http.session.clone().filter(|_| legacy);
        drop(raw_call(&stage, session.as_deref(), "later").await);
        http.call("tools/call", json!({"name": "other"})).await;
        let report = stage.finish().await;
        assert_eq!(delivered(&report, "later"), 0, "legacy: {legacy}");
    }
}

#[tokio::test]
async fn who_comes_back_for_the_answer_was_told() {
    let stage = Stage::http(of_state(&tools())).await;
    let mut http = Http::initialized(&stage.url, json!({})).await;
    let session = http.session.clone();
    drop(raw_call(&stage, session.as_deref(), "later").await);
    http.call("tools/call", json!({"name": "other"})).await;
    let resumed = http
        .send(
            proofhouse_wire::Method::GET,
            &[("last-event-id", "1-0")],
            "",
        )
        .await;
    let message = next(&mut resumed.events()).await.expect("the answer");
    assert_eq!(message["id"], 77);
    let report = stage.finish().await;
    assert_eq!(delivered(&report, "later"), 1);
}

#[tokio::test]
async fn who_closes_once_it_has_the_answer_was_told() {
    for legacy in [true, false] {
        let stage = Stage::http(of_state(&tools())).await;
        let mut http = Http::initialized(&stage.url, json!({})).await;
        let session = http.session.clone().filter(|_| legacy);
        let stream = raw_call(&stage, session.as_deref(), "steps").await;
        arrived(&stream).await;
        // What is there, and no more: nobody waits for the end of the stream.
        let mut read = vec![0; 64 << 10];
        let length = stream.try_read(&mut read).unwrap();
        assert!(String::from_utf8_lossy(&read[..length]).contains("PAYLOAD"));
        drop(stream);
        http.call("tools/call", json!({"name": "other"})).await;
        let report = stage.finish().await;
        assert_eq!(delivered(&report, "steps"), 1, "legacy: {legacy}");
    }
}

#[tokio::test]
async fn half_of_an_answer_is_none() {
    let state = tools();
    let document = of_phases(&json!([
        {"name": "cut", "x-delivery": {"abrupt_close": true}, "state": state},
    ]));
    let stage = Stage::http(document).await;
    let http = Http::new(&stage.url);
    let response = http
        .modern("tools/call", json!({"name": "steps"}), json!({}))
        .await;
    assert!(response.bytes().await.is_err());
    let report = stage.finish().await;
    assert_eq!(delivered(&report, "steps"), 0);
}
