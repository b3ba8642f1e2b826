//! The rows of the error table with real peers: what ends the task, what the model is told, and what the
//! server saw of it.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use proofhouse_manifest::Bundle;
use proofhouse_tools::runtime::{
    ActionError, ActionFailure, ActionResult, Runtimes, ToolLimits, ToolTask,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, pki_types};

use crate::support::*;

async fn send(method: &str, url: &str, limits: ToolLimits) -> Result<ActionResult, ActionError> {
    let tool = tool(&format!(
        "stateless_http: {{method: {method}, url: \"{url}\"}}"
    ));
    let runtimes = Runtimes::new(&limits, loopback()).expect("the test is set up");
    act(
        &ToolTask::new(tool, environment(), runtimes, limits),
        json!({}),
    )
    .await
}

async fn ask(method: &str, server: &Server) -> Result<ActionResult, ActionError> {
    send(
        method,
        &format!("http://127.0.0.1:{}/", server.port),
        limits(),
    )
    .await
}

/// Time enough for what should fail for another reason.
fn patient() -> ToolLimits {
    ToolLimits {
        http: Duration::from_secs(20),
        ..limits()
    }
}

#[tokio::test]
async fn a_name_that_nobody_has_ends_the_task() {
    let url = "http://nobody.proofhouse.invalid/{settings.api_key}";
    let error = send("POST", url, patient()).await.unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable(), error.outcome_unknown),
        (ActionFailure::Unreachable, false, false),
        "{error}"
    );
    assert!(
        error.message.contains("nobody.proofhouse.invalid"),
        "{error}"
    );
}

/// A server with a certificate that nobody vouches for; counts the requests that get through.
async fn self_signed() -> (u16, Arc<Mutex<usize>>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("the test is set up");
    let key = pki_types::PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the test is set up")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .expect("the test is set up");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("the test is set up");
    let port = listener.local_addr().expect("the test is set up").port();
    let requests = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut buffer = [0; 1024];
                if stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                    *seen.lock().expect("the test is set up") += 1;
                }
            });
        }
    });
    (port, requests)
}

#[tokio::test]
async fn tls_that_fails_ends_the_task_and_sends_nothing() {
    let (port, requests) = self_signed().await;
    let url = format!("https://127.0.0.1:{port}/{{settings.api_key}}");
    let error = send("POST", &url, patient()).await.unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable(), error.outcome_unknown),
        (ActionFailure::Unreachable, false, false),
        "{error}"
    );
    assert!(error.message.contains("certificate"), "{error}");
    assert_eq!(*requests.lock().unwrap(), 0);

    // A server that does not speak TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let error = send("POST", &url, patient()).await.unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable(), error.outcome_unknown),
        (ActionFailure::Unreachable, false, false),
        "{error}"
    );

    // And one that says nothing at all.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let impatient = ToolLimits {
        connect: Duration::from_millis(200),
        ..patient()
    };
    let error = send("POST", &url, impatient).await.unwrap_err();
    assert_eq!(
        (error.failure, error.outcome_unknown),
        (ActionFailure::Unreachable, false),
        "{error}"
    );
}

#[tokio::test]
async fn slow_answers_are_timeouts() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n";
    for (sent, method, unknown) in [
        (head.to_owned(), "GET", false),
        (head.to_owned(), "POST", true),
        (format!("{head}\r\nsome"), "GET", false),
        (format!("{head}\r\nsome"), "POST", true),
        (format!("{head}\r\nsome"), "PUT", false),
    ] {
        let server = Server::start(move |_, _| Reply::Stall(sent.clone().into_bytes())).await;
        let url = format!("http://127.0.0.1:{}/", server.port);
        let impatient = ToolLimits {
            http: Duration::from_millis(500),
            ..limits()
        };
        let error = send(method, &url, impatient).await.unwrap_err();
        assert_eq!(
            (error.failure, error.is_recoverable(), error.outcome_unknown),
            (ActionFailure::Timeout, true, unknown),
            "{method} {error}"
        );
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn oversized_answers_are_refused() {
    let small = ToolLimits {
        max_response_bytes: 1000,
        ..patient()
    };
    let announced = "HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n";
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n{}\r\n0\r\n\r\n",
        "x".repeat(1001)
    );
    for (sent, fits) in [
        // What is announced is refused without being waited for.
        (announced.to_owned(), false),
        (chunked, false),
        (
            format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1001)),
            false,
        ),
        (format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1000)), true),
        (
            format!("HTTP/1.1 500 Oops\r\n\r\n{}", "x".repeat(1001)),
            false,
        ),
    ] {
        let shown = sent[..40].to_owned();
        let server = Server::start(move |_, _| {
            if sent.ends_with("\r\n\r\n") {
                Reply::Stall(sent.clone().into_bytes())
            } else {
                Reply::Bytes(sent.clone().into_bytes())
            }
        })
        .await;
        let url = format!("http://127.0.0.1:{}/", server.port);
        // What a POST did before it answered so much, nobody knows.
        for (method, unknown) in [("GET", false), ("POST", true)] {
            match send(method, &url, small.clone()).await {
                Ok(_) => assert!(fits, "{shown}"),
                Err(error) => {
                    assert!(!fits, "{shown}: {error}");
                    assert_eq!(
                        (error.failure, error.is_recoverable(), error.outcome_unknown),
                        (ActionFailure::TooLarge, true, unknown),
                        "{shown}: {error}"
                    );
                }
            }
        }
        assert_eq!(server.seen().len(), 2, "{shown}");
    }
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).expect("the test is set up");
    encoder.finish().expect("the test is set up")
}

#[tokio::test]
async fn compressed_answers_are_read_and_bombs_are_not() {
    let coded = |status: &'static str, coding: &str, body: Vec<u8>| {
        let headers = format!("content-encoding: {coding}\r\n");
        Server::start(move |_, _| reply(status, &headers, &body))
    };
    let json = gzip(br#"{"secret": "sk-secret/1"}"#);
    let server = coded("200 OK", "gzip", json).await;
    let outcome = ask("GET", &server).await.unwrap();
    assert_eq!(outcome.value, json!({"secret": "[redacted]"}));
    assert!(server.seen()[0].contains("\r\naccept-encoding: identity\r\n"));

    let server = coded("400 Bad", "gzip", gzip(b"because of sk-secret/1")).await;
    let error = ask("GET", &server).await.unwrap_err();
    assert_eq!(error.detail["body"], "because of [redacted]");

    let most = ToolLimits::default().max_response_bytes;
    let bomb = gzip(&vec![b' '; most + 1]);
    assert!(bomb.len() < 20_000);
    for (coding, status, body, failure) in [
        ("gzip", "200 OK", bomb.clone(), ActionFailure::TooLarge),
        ("gzip, gzip", "200 OK", gzip(&bomb), ActionFailure::TooLarge),
        ("gzip", "500 Oops", bomb, ActionFailure::HttpStatus),
        ("br", "200 OK", b"x".to_vec(), ActionFailure::Response),
        ("gzip", "200 OK", b"{}".to_vec(), ActionFailure::Response),
        (
            "gzip",
            "500 Oops",
            b"{}".to_vec(),
            ActionFailure::HttpStatus,
        ),
    ] {
        let server = coded(status, coding, body).await;
        let url = format!("http://127.0.0.1:{}/", server.port);
        let error = send("GET", &url, patient()).await.unwrap_err();
        assert_eq!(
            (error.failure, error.is_recoverable()),
            (failure, true),
            "{coding} {status}: {error}"
        );
    }
    let server = coded("200 OK", "gzip", gzip(&vec![b' '; most])).await;
    let url = format!("http://127.0.0.1:{}/", server.port);
    assert!(send("GET", &url, patient()).await.unwrap().truncated);
}

#[tokio::test]
async fn redirects_that_look_like_the_origin_are_not_followed() {
    let other = Server::start(|_, _| json_reply(&json!("stolen"))).await;
    for target in [
        format!("//127.0.0.1:{}/", other.port),
        format!("http://localhost:{}/", other.port),
        format!("\\\\127.0.0.1:{}\\", other.port),
        "https://127.0.0.1:PORT/".to_owned(),
        "http://127.0.0.1:PORT@127.0.0.2/".to_owned(),
        "http://[::ffff:127.0.0.1]:PORT/".to_owned(),
        "javascript:alert(1)".to_owned(),
    ] {
        let shown = target.clone();
        let server = Server::start(move |_, request| {
            let host = request.split("host: 127.0.0.1:").nth(1).unwrap_or_default();
            let port = host.lines().next().unwrap_or_default();
            let target = target.replace("PORT", port);
            reply("302 Found", &format!("location: {target}\r\n"), "")
        })
        .await;
        let error = ask("GET", &server).await.unwrap_err();
        assert_eq!(error.failure, ActionFailure::HttpStatus, "{shown}");
        assert_eq!(error.detail["status"], 302, "{shown}");
        assert_eq!(server.seen().len(), 1, "{shown}");
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn climbing_out_of_a_path_is_refused_in_every_form() {
    let server = Server::start(|_, _| json_reply(&json!(1))).await;
    let execute = |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", server.port);
        task(tool(&format!(
            "stateless_http: {{method: GET, url: \"{url}\"}}"
        )))
    };
    for value in [
        "..",
        "%2e%2e",
        "%2E.",
        ".%2e",
        "%252e%252e",
        "..%2f..",
        "..\\",
        "a/%2e%2e/b",
        "..%5cb",
        ".",
        "",
        "a\0b",
        "a%0d%0ab/..",
    ] {
        let result = act(&execute("/a/{x}/b"), json!({"x": value})).await;
        let failure = result.map_err(|error| error.failure);
        assert_eq!(failure, Err(ActionFailure::Arguments), "{value:?}");
    }
    // Two values, and text, can make a `..` together.
    for (path, value) in [
        ("/a/{x}{x}/b", "."),
        ("/a/.{x}/b", "."),
        ("/a/{x}./b", "."),
        ("/a/.{x}/b", "%2e"),
        ("/a/{x}2e/b", ".%"),
        ("/a/{x}fb", "..%2"),
    ] {
        let result = act(&execute(path), json!({"x": value})).await;
        let failure = result.map_err(|error| error.failure);
        assert_eq!(failure, Err(ActionFailure::Arguments), "{path} {value}");
    }
    assert!(server.seen().is_empty());
    act(&execute("/a/{x}/b"), json!({"x": "a..b/...%"}))
        .await
        .unwrap();
    assert!(server.seen()[0].starts_with("GET /a/a..b%2F...%25/b HTTP"));
}

fn typed() -> ToolTask {
    let text = r"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: weather
description: d
parameters:
  properties:
    city: {type: string}
    days: {type: integer}
    units: {type: string, enum: [metric, imperial]}
actions:
  - name: forecast
    description: d
    execute: {cel: {expression: input.city}}
";
    let (bundle, findings) = Bundle::read(text);
    assert!(findings.is_empty(), "{findings:#?}");
    task(Arc::new(
        bundle.tools().next().expect("the test is set up").clone(),
    ))
}

async fn forecast(action: &str, arguments: Value) -> ActionError {
    let arguments: Map<String, Value> = arguments.as_object().expect("the test is set up").clone();
    let cancel = proofhouse_wire::CancellationToken::new();
    let result = typed().invoke(action, arguments, json!({}), cancel).await;
    let error = result.expect_err("it fails");
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (ActionFailure::Arguments, true)
    );
    error
}

#[tokio::test]
async fn everything_that_is_wrong_with_arguments_is_told_at_once() {
    let error = forecast("forecast", json!({})).await;
    for name in ["city", "days", "units"] {
        assert!(error.message.contains(name), "{error}");
    }
    let wrong = json!({"city": 5, "days": "many", "units": "kelvin", "country": "x"});
    let error = forecast("forecast", wrong).await;
    for name in ["city", "days", "units", "country"] {
        assert!(error.message.contains(name), "{error}");
    }
    assert!(!error.message.contains("kelvin"), "{error}");
    let error = forecast("forcast", json!({})).await;
    assert!(
        error.message.ends_with("did you mean `forecast`?"),
        "{error}"
    );
    let error = forecast("something", json!({})).await;
    assert!(!error.message.contains("did you mean"), "{error}");
}

#[test]
fn manifests_choose_one_backend_and_a_host_themselves() {
    let read = |execute: &str| {
        let text = format!(
            "kind: commonagents.info/v1/tool\nnamespace: n\nname: t\ndescription: d\n\
             parameters: {{properties: {{x: {{type: string}}}}}}\n\
             actions:\n  - {{name: a, description: d, execute: {execute}}}\n"
        );
        let (bundle, findings) = Bundle::read(&text);
        assert_eq!(bundle.tools().count(), 0, "{execute}");
        findings
            .iter()
            .map(|finding| finding.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(read("{}"), ["TM-007"]);
    let http = "stateless_http: {method: GET, url: \"https://h.test\"}";
    assert_eq!(
        read(&format!("{{cel: {{expression: now}}, {http}}}")),
        ["TM-007"]
    );
    // The model never chooses the host, in whatever disguise.
    for url in [
        "{x}",
        "https://{x}/",
        "https://{x}.h.test/",
        "https://h.test:{x}/",
        "https://h.test@{x}/",
        "{x}://h.test/",
        "https://h.test{x}",
        "https:{x}",
        "https://{context.host}/",
        "https://{agent.name}/",
    ] {
        let execute = format!("{{stateless_http: {{method: GET, url: \"{url}\"}}}}");
        assert_eq!(read(&execute), ["TM-013"], "{url}");
    }
}

#[tokio::test]
async fn what_is_cut_off_is_repeated_only_if_it_may_be() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n";
    for cut in ["", "HTTP/1.1 200", head, &format!("{head}\r\nsome")] {
        for (method, tries, unknown) in [
            ("GET", 3, false),
            ("DELETE", 3, false),
            ("POST", 1, true),
            ("PATCH", 1, true),
        ] {
            let bytes = cut.to_owned().into_bytes();
            let server = Server::start(move |_, _| Reply::Bytes(bytes.clone())).await;
            let error = ask(method, &server).await.unwrap_err();
            assert_eq!(
                (error.failure, error.is_recoverable(), error.outcome_unknown),
                (ActionFailure::Broken, true, unknown),
                "{method} {cut:?}: {error}"
            );
            assert_eq!(error.to_json()["outcome_unknown"] == true, unknown);
            assert_eq!(server.seen().len(), tries, "{method} {cut:?}");
        }
    }
    for (status, tries) in [
        ("503 Busy", 3),
        ("429 Slow", 3),
        ("500 Oops", 1),
        ("501 No", 1),
    ] {
        let server = Server::start(move |_, _| reply(status, "", "")).await;
        let error = ask("GET", &server).await.unwrap_err();
        assert_eq!(error.failure, ActionFailure::HttpStatus);
        assert_eq!(server.seen().len(), tries, "{status}");
    }
}

/// A connection that is kept open looks good until the request is on it.
#[tokio::test]
async fn a_post_on_a_connection_that_was_kept_is_sent_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    tokio::spawn(async move {
        let mut connection = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                for request in 0..2 {
                    if !stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                        return;
                    }
                    log.lock().unwrap().push((connection, request));
                    if request == 0 {
                        let fine = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                        let _ = stream.write_all(fine).await;
                    }
                }
            });
            connection += 1;
        }
    });
    let task = task(tool(&format!(
        "stateless_http: {{method: POST, url: \"{url}\"}}"
    )));
    assert_eq!(act(&task, json!({})).await.unwrap().value, Value::Null);
    let error = act(&task, json!({})).await.unwrap_err();
    assert_eq!(
        (error.failure, error.outcome_unknown),
        (ActionFailure::Broken, true),
        "{error}"
    );
    assert_eq!(*seen.lock().unwrap(), [(0, 0), (0, 1)]);
}

#[tokio::test]
async fn a_server_that_asks_for_patience_gets_it() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&times);
    let server = Server::start(move |number, _| {
        log.lock().unwrap().push(Instant::now());
        match number {
            0 => reply("503 Busy", "retry-after: 1\r\n", ""),
            _ => json_reply(&json!(number)),
        }
    })
    .await;
    assert_eq!(ask("GET", &server).await.unwrap().value, json!(1));
    let times = times.lock().unwrap().clone();
    assert!(times[1].duration_since(times[0]) >= Duration::from_secs(1));

    // More than may be asked for is not waited for, nor is what makes no sense.
    for (asked, seen) in [
        ("31", 1),
        ("99999999999999999999", 3),
        ("-1", 3),
        ("soon", 3),
    ] {
        let headers = format!("retry-after: {asked}\r\n");
        let server = Server::start(move |_, _| reply("503 Busy", &headers, "")).await;
        let error = ask("GET", &server).await.unwrap_err();
        assert_eq!(error.detail["status"], 503, "{asked}");
        assert_eq!(server.seen().len(), seen, "{asked}");
    }
}
