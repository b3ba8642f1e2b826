//! `proofhouse serve` as a user runs it: keys and scopes, tasks, manifests, the dashboard, and how it ends.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use proofhouse_test_support::wait::until;
use serde_json::{Value, json};

use crate::support::{
    self,
    served::{PATIENCE, Served, example, try_send},
};

const CLERK: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: shop
name: orders
description: Orders of the shop.
actions:
  - name: count
    description: Counts the orders.
    execute:
      cel:
        expression: "{'count': 1}"
---
kind: commonagents.info/v1beta2/agent
namespace: shop
name: clerk
description: Keeps watch.
prompt: You keep watch.
capabilities:
  orders: "*"
"#;

fn clerk(more: &[&str]) -> Served {
    Served::start(&[("clerk.yaml", CLERK)], "", more)
}

fn inputs_of(served: &Served, task: &str) -> Vec<String> {
    let turns = served.get(&format!("/v1/tasks/{task}/turns?limit=200"));
    let turns = turns["turns"].as_array().unwrap();
    let inputs = turns.iter().filter(|turn| turn["kind"] == "input");
    inputs
        .map(|turn| {
            turn["body"]["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

/// Waits until a task has done what it was asked.
fn idle(served: &Served, task: &str, turns: usize) -> Value {
    until("task that is done", || {
        let shown = served.get(&format!("/v1/tasks/{task}"));
        let known = served.get(&format!("/v1/tasks/{task}/turns?limit=200"));
        let enough = known["turns"].as_array().unwrap().len() >= turns;
        (enough && shown["state"] == "idle").then_some(shown)
    })
}

#[test]
fn keys_say_who_may_do_what() {
    let served = clerk(&[]);
    assert!(served.key.starts_with("phk_"));
    // No key at all, one that nobody made, one that is no key.
    for key in ["", "phk_0000", "secret"] {
        let reply = served.ask_as(key, "GET", "/v1/tasks", None);
        assert_eq!(reply.status, 401, "{reply:?}");
        assert_eq!(reply.header("www-authenticate"), "Bearer");
        assert_eq!(reply.header("content-type"), "application/problem+json");
        assert_eq!(reply.json()["code"], "unauthorized");
    }
    // A scope that is missing is named.
    let reader = served.keys(&["create", "--scope", "tasks:read"]);
    let reader = reader.trim();
    assert_eq!(served.ask_as(reader, "GET", "/v1/tasks", None).status, 200);
    let order = json!({"agent": "clerk"});
    let reply = served.ask_as(reader, "POST", "/v1/tasks", Some(&order));
    assert_eq!(reply.status, 403);
    assert!(reply.text.contains("tasks:begin"), "{reply:?}");
    for path in ["/v1/events", "/v1/manifests", "/v1/starts", "/v1/metrics"] {
        assert_eq!(served.ask_as(reader, "GET", path, None).status, 403);
    }
    // Health needs no key.
    for path in ["/v1/health", "/v1/ready", "/v1/openapi.json"] {
        assert_eq!(served.ask_as("", "GET", path, None).status, 200);
    }
    // Revoked, expired.
    let listed = support::json(&served.keys(&["list", "--format", "json"]));
    let keys = listed["keys"].as_array().unwrap();
    let known = keys
        .iter()
        .find(|key| key["scopes"] == json!(["tasks:read"]));
    served.keys(&["revoke", known.unwrap()["id"].as_str().unwrap()]);
    assert_eq!(served.ask_as(reader, "GET", "/v1/tasks", None).status, 401);
    let brief = served.keys(&["create", "--scope", "admin", "--expires", "1ms"]);
    std::thread::sleep(Duration::from_millis(5));
    let reply = served.ask_as(brief.trim(), "GET", "/v1/tasks", None);
    assert_eq!(reply.status, 401);
    // What is kept tells no key, and neither do the lists and the log.
    let stored = std::fs::read(served.path("store.db")).unwrap();
    let log = std::fs::read(served.path("store.db-wal")).unwrap_or_default();
    for text in [stored, log, listed.to_string().into(), served.log().into()] {
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(&served.key[4..]));
        assert!(!text.contains(&reader[4..]));
    }
}

#[test]
fn a_task_is_begun_talked_to_followed_and_ended() {
    let served = clerk(&[]);
    let task = served.begin("clerk", Some("Hello!"));
    let shown = idle(&served, &task, 2);
    assert_eq!(shown["agent"], "clerk", "{shown}");
    // Said twice with one key, it is said once.
    let say = |text: &str| {
        let head = format!(
            "POST /v1/tasks/{task}/messages HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\nidempotency-key: once",
            served.api, served.key
        );
        let body = json!({"message": text}).to_string();
        Served::send(served.api, &head, body.as_bytes())
    };
    let (first, second) = (say("Again."), say("Again."));
    assert_eq!((first.status, second.status), (202, 202), "{first:?}");
    assert_eq!(first.json(), second.json());
    idle(&served, &task, 4);
    assert_eq!(inputs_of(&served, &task), ["Hello!", "Again."]);
    // A stream that begins after the first turn and ends with the task.
    let stream = TcpStream::connect(served.api).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET /v1/tasks/{task}/stream HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         last-event-id: 0\r\n\r\n",
        served.api, served.key
    );
    (&stream).write_all(head.as_bytes()).unwrap();
    let cancelled = served.ask("POST", &format!("/v1/tasks/{task}/cancel"), None);
    assert_eq!(cancelled.status, 204, "{cancelled:?}");
    let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
    let mut seen = Vec::new();
    while !seen
        .iter()
        .any(|line: &String| line.contains(r#""state":"ended""#))
    {
        seen.push(
            lines
                .next()
                .expect("the stream goes on until the task ends"),
        );
    }
    let text = seen.join("\n");
    assert!(text.contains("text/event-stream"), "{text}");
    assert!(
        text.contains("id: 1\n") && !text.contains("id: 0\n"),
        "{text}"
    );
    // Ended, it takes nothing more, and can be removed.
    until("end of the task", || {
        (served.get(&format!("/v1/tasks/{task}"))["state"] == "ended").then_some(())
    });
    let late = json!({"message": "Too late."});
    let reply = served.ask("POST", &format!("/v1/tasks/{task}/messages"), Some(&late));
    assert_eq!(reply.status, 409, "{reply:?}");
    let path = format!("/v1/tasks/{task}");
    assert_eq!(served.ask("DELETE", &path, None).status, 204);
    assert_eq!(served.ask("GET", &path, None).status, 404);
}

#[test]
fn bad_requests_get_clear_answers() {
    let served = clerk(&[]);
    let send = |form: &str, body: &[u8]| {
        let head = format!(
            "POST /v1/tasks HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}{form}",
            served.api, served.key
        );
        Served::send(served.api, &head, body)
    };
    let json_form = "\r\ncontent-type: application/json";
    assert_eq!(send(json_form, b"{").status, 400);
    assert_eq!(send(json_form, b"[]").status, 400);
    assert_eq!(send(json_form, br#"{"agent":"clerk","x":1}"#).status, 400);
    assert_eq!(send("", br#"{"agent":"clerk"}"#).status, 415);
    let large = format!(r#"{{"agent":"clerk","message":"{}"}}"#, "x".repeat(2 << 20));
    assert_eq!(send(json_form, large.as_bytes()).status, 413);
    let deep = "[".repeat(100_000);
    assert_eq!(send(json_form, deep.as_bytes()).status, 400);
    let reply = send(json_form, br#"{"agent":"nobody"}"#);
    assert_eq!(reply.status, 404);
    assert!(reply.text.contains("nobody"));
    for (method, path, status) in [
        ("GET", "/v1/nothing", 404),
        ("PUT", "/v1/tasks", 405),
        ("GET", "/v1/tasks?limit=0", 400),
        ("GET", "/v1/tasks?state=sleepy", 400),
        ("GET", "/v1/tasks/nobody", 404),
        ("GET", "/v1/events/none", 404),
        ("POST", "/v1/events/99/replay", 404),
        // Webhooks do not arrive where the API is.
        ("POST", "/v1/webhooks/events/orders", 404),
    ] {
        let reply = served.ask(method, path, None);
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
        assert_eq!(reply.header("content-type"), "application/problem+json");
    }
    // Headers without an end do not fill the memory.
    let endless = format!(
        "GET /v1/health HTTP/1.1\r\nhost: {}\r\nx-long: {}",
        served.api,
        "x".repeat(256 << 10)
    );
    assert_eq!(Served::send(served.api, &endless, b"").status, 431);
}

#[test]
fn floods_are_told_to_wait() {
    let served = clerk(&["--rate", "1"]);
    let reply = until("refusal", || {
        let reply = served.ask("GET", "/v1/tasks", None);
        (reply.status == 429).then_some(reply)
    });
    let wait: u64 = reply.header("retry-after").parse().unwrap();
    assert!(wait >= 1, "{reply:?}");
    // Another key is not held up, and health is never.
    let other = served.keys(&["create", "--scope", "tasks:read"]);
    let reply = served.ask_as(other.trim(), "GET", "/v1/tasks", None);
    assert_eq!(reply.status, 200);
    assert_eq!(served.ask_as("", "GET", "/v1/health", None).status, 200);
}

#[test]
fn web_pages_cannot_use_it_and_answers_are_safe() {
    let served = clerk(&["--open"]);
    let from = |lines: &str| {
        let head = format!("GET /v1/tasks HTTP/1.1\r\n{lines}");
        Served::send(served.api, &head, b"").status
    };
    let host = served.api;
    assert_eq!(from(&format!("host: {host}")), 200);
    assert_eq!(from(&format!("host: {host}\r\norigin: http://{host}")), 200);
    assert_eq!(from("host: evil.example"), 403);
    assert_eq!(
        from(&format!("host: {host}\r\norigin: http://evil.example")),
        403
    );
    assert_eq!(from(&format!("host: {host}\r\norigin: null")), 403);
    for path in [
        "/v1/tasks",
        "/v1/nothing",
        "/dashboard",
        "/dashboard/style.css",
    ] {
        let reply = served.ask_as("", "GET", path, None);
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("x-frame-options"), "DENY");
        assert_eq!(reply.header("cache-control"), "no-store");
        let policy = reply.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(reply.header("access-control-allow-origin").is_empty());
    }
}

#[test]
fn the_dashboard_asks_for_a_key_and_forgets_revoked_ones() {
    let served = clerk(&[]);
    let task = served.begin("clerk", Some("<script>alert(1)</script>"));
    idle(&served, &task, 2);
    let reply = served.ask_as("", "GET", "/dashboard", None);
    assert_eq!(reply.status, 303);
    assert_eq!(reply.header("location"), "/dashboard/sign-in");
    let sign_in = |key: &str| served.sign_in(key);
    assert_eq!(sign_in("phk_wrong").status, 401);
    let key = served.keys(&["create", "--scope", "admin", "--name", "person"]);
    let reply = sign_in(key.trim());
    assert_eq!(reply.status, 303, "{reply:?}");
    let cookie = reply.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
    // Without TLS a browser would not send it at all.
    assert!(!cookie.contains("Secure"), "{cookie}");
    let session = cookie.split(';').next().unwrap().to_owned();
    let look = |method: &str, path: &str| {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncookie: {session}",
            served.api
        );
        Served::send(served.api, &head, b"")
    };
    assert!(look("GET", "/dashboard").text.contains(&task));
    let page = look("GET", &format!("/dashboard/tasks/{task}"));
    assert!(page.text.contains("&lt;script&gt;"), "{page:?}");
    let own = r#"<script src="/dashboard/live.js" defer></script>"#;
    assert!(!page.text.replace(own, "").contains("<script"), "{page:?}");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("script-src 'self';"), "{policy}");
    assert!(
        look("GET", "/dashboard/manifests")
            .text
            .contains("clerk.yaml")
    );
    assert_eq!(look("GET", "/dashboard/events").status, 200);
    // The cookie is for looking.
    assert_eq!(
        look("POST", &format!("/v1/tasks/{task}/cancel")).status,
        401
    );
    let listed = support::json(&served.keys(&["list", "--format", "json"]));
    let keys = listed["keys"].as_array().unwrap();
    let known = keys.iter().find(|key| key["name"] == "person").unwrap();
    served.keys(&["revoke", known["id"].as_str().unwrap()]);
    assert_eq!(look("GET", "/dashboard").status, 303);
}

#[test]
fn a_bad_edit_keeps_the_good_version() {
    let files = [
        ("clerk.yaml", CLERK),
        ("support.yaml", &example("agents/support.yaml")),
    ];
    let served = Served::start(&files, "", &[]);
    let path = served.path("manifests/clerk.yaml");
    std::fs::write(&path, CLERK.replace("prompt:", "promt:")).unwrap();
    let file = until("problem of the edit", || {
        let told = served.get("/v1/manifests");
        let files = told["files"].as_array().unwrap().clone();
        files
            .into_iter()
            .find(|file| file["path"] == "clerk.yaml" && file["stale"] == true)
    });
    let problems = file["problems"].as_array().unwrap();
    assert!(
        problems
            .iter()
            .any(|problem| problem["severity"] == "error" && problem["line"].as_u64() > Some(1)),
        "{file}"
    );
    served.begin("clerk", None);
    // A good edit is taken up.
    std::fs::write(&path, CLERK.replace("name: clerk", "name: keeper")).unwrap();
    until("edit", || {
        let reply = served.ask("POST", "/v1/tasks", Some(&json!({"agent": "keeper"})));
        (reply.status == 201).then_some(())
    });
}

#[test]
fn what_is_counted_can_be_read() {
    let served = clerk(&[]);
    served.begin("clerk", Some("Hello!"));
    served.ask("GET", "/v1/nothing-like-this", None);
    let reply = served.ask("GET", "/v1/metrics", None);
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").contains("openmetrics-text"));
    assert!(reply.text.contains("proofhouse_http_requests_total{"));
    assert!(reply.text.contains("proofhouse_tasks{"), "{}", reply.text);
    assert!(reply.text.ends_with("# EOF\n"));
    // Labels do not grow with what is asked for.
    assert!(!reply.text.contains("nothing-like-this"));
}

#[test]
fn it_ends_when_asked_and_goes_on_when_started_again() {
    // Longer than the test would wait: nothing that is idle holds it up, not even one who follows a task.
    let served = clerk(&["--grace", "300s"]);
    let task = served.begin("clerk", Some("Hello!"));
    idle(&served, &task, 2);
    let key = served.key.clone();
    let mut stream = TcpStream::connect(served.api).unwrap();
    let head = format!(
        "GET /v1/tasks/{task}/stream HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\r\n",
        served.api
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    served.terminate();
    let (code, directory) = served.ended();
    assert_eq!(code, Some(0));
    let mut served = Served::start_in(directory, &[]);
    // The first key was told once, and is good still.
    assert!(served.key.is_empty());
    served.key = key;
    let say = json!({"message": "Are you there?"});
    let reply = served.ask("POST", &format!("/v1/tasks/{task}/messages"), Some(&say));
    assert_eq!(reply.status, 202, "{reply:?}");
    idle(&served, &task, 4);
    assert_eq!(inputs_of(&served, &task), ["Hello!", "Are you there?"]);
}

/// Whoever asks it to stop sees first that it is not ready, while everything else is served for as long as `--drain` says.
#[test]
fn it_is_not_ready_before_it_stops() {
    // Longer than the test.
    let served = clerk(&["--drain", "300s"]);
    let ready = || {
        try_send(
            served.api,
            &format!("GET /v1/ready HTTP/1.1\r\nhost: {}", served.api),
            b"",
        )
    };
    assert_eq!(ready().map(|reply| reply.status), Some(200));
    served.terminate();
    let refused = until("a server that is not ready", || {
        let reply = ready().expect("it still answers");
        (reply.status == 503).then_some(reply)
    });
    assert!(refused.text.contains("shutting down"), "{refused:?}");
    // On new connections.
    assert_eq!(served.ask("GET", "/v1/health", None).status, 200);
    let task = served.begin("clerk", Some("Hello!"));
    idle(&served, &task, 2);
}

#[test]
fn spans_reach_a_collector() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", collector.local_addr().unwrap());
    let (sender, spans) = mpsc::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for stream in collector.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                let lower = line.to_ascii_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = (&stream).write_all(answer.as_bytes());
            if sender.send(body).is_err() {
                return;
            }
        }
    });
    let served = clerk(&["--otlp", &url]);
    let task = served.begin("clerk", Some("Hello!"));
    idle(&served, &task, 2);
    let key = served.key.clone();
    served.terminate();
    let (code, _directory) = served.ended();
    assert_eq!(code, Some(0));
    let mut all = Vec::new();
    while let Ok(body) = spans.recv_timeout(Duration::from_millis(500)) {
        all.extend(body);
    }
    let text = String::from_utf8_lossy(&all);
    for name in [
        "proofhouse",
        "http.request",
        "/v1/tasks/{task}",
        "task.work",
        &task,
    ] {
        assert!(text.contains(name), "no {name} in {} bytes", all.len());
    }
    assert!(!text.contains(&key));
}

#[test]
fn commands_that_make_no_sense_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    let store = directory.path().join("store.db").display().to_string();
    let refused = |args: &[&str], code: i32, words: &str| {
        let ran = support::run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    };
    refused(&["serve", "no/such/place"], 64, "no such directory");
    let open = ["serve", &path, "--open", "--listen", "0.0.0.0:0"];
    refused(&open, 64, "--open");
    refused(&["serve", &path, "--tls-cert", "x.pem"], 64, "--tls-key");
    let lock = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = lock.local_addr().unwrap().to_string();
    let args = ["serve", &path, "--store", &store, "--listen", &taken];
    refused(&args, 3, "cannot listen");
    let missing = ["serve", &path, "--store", "/no/such/place/store.db"];
    let free = ["--listen", "127.0.0.1:0", "--webhook-listen", "127.0.0.1:0"];
    refused(&[&missing[..], &free].concat(), 3, "store.db");
    refused(
        &["keys", "create", "--scope", "everything"],
        64,
        "tasks:read",
    );
    let create = ["keys", "create", "--scope", "admin", "--store", &store];
    assert_eq!(support::run(&create).code, Some(0));
    let args = ["keys", "revoke", "nobody", "--store", &store];
    refused(&args, 3, "nobody");
}
