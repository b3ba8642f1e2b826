//! `proofhouse serve` where it meets strangers and mistakes: keys that end while they are used, connections that ask nothing,
//! requests that are repeated or make no sense, and a second server on the same file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use proofhouse_test_support::wait::until;
use serde_json::{Value, json};

use crate::support::{
    self,
    served::{PATIENCE, Reply, Served, cookie_of, form_token},
};

const CLERK: &str = r#"
kind: commonagents.info/v1beta2/agent
namespace: shop
name: clerk
description: Keeps watch.
prompt: You keep watch.
parameters:
  type: object
  properties:
    n: {type: number, default: 1}
"#;

const DAILY: &str = r#"
kind: commonagents.info/v1/schedule
namespace: shop
name: daily
agent: clerk
cron: "0 9 * * *"
owner: user:alice@example.com
inputs: {message: "Good morning."}
enabled: true
"#;

fn clerk(more: &[&str]) -> Served {
    Served::start(&[("clerk.yaml", CLERK)], "", more)
}

/// Runs a command that must end by itself, and soon.
fn ends(args: &[&str]) -> support::Ran {
    let mut child = support::command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() && began.elapsed() < PATIENCE / 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    // One that serves after all ends here, without a code.
    let _ = child.kill();
    support::finish(child.wait_with_output().unwrap())
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Follows a task with these headers, and returns a thread that reads to the end and says how long that took.
fn follow(
    served: &Served,
    task: &str,
    headers: &str,
) -> std::thread::JoinHandle<(String, Duration)> {
    let mut stream = connect(served.api);
    let head = format!(
        "GET /v1/tasks/{task}/stream HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}\r\n\r\n",
        served.api
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap();
    assert!(first.contains("200"), "{first}");
    let began = Instant::now();
    std::thread::spawn(move || {
        // Signs of life keep coming while nothing ends.
        let in_time = lines.take_while(|_| began.elapsed() < PATIENCE / 2);
        let text: Vec<String> = in_time.collect();
        (text.join("\n"), began.elapsed())
    })
}

#[test]
fn whoever_follows_a_task_is_sent_away_when_the_key_ends() {
    let served = clerk(&[]);
    let task = served.begin("clerk", None);
    let key = served.keys(&["create", "--scope", "tasks:read", "--name", "revoked"]);
    let brief = served.keys(&["create", "--scope", "tasks:read", "--expires", "5s"]);
    let bearer = |key: &str| format!("authorization: Bearer {}", key.trim());
    let revoked = follow(&served, &task, &bearer(&key));
    let expired = follow(&served, &task, &bearer(&brief));
    // A session of the dashboard ends when the person signs out.
    let session = cookie_of(&served.sign_in(&served.key));
    let signed_out = follow(&served, &task, &format!("cookie: {session}"));
    // One whose key is good stays.
    let mut good = connect(served.api);
    let head = format!(
        "GET /v1/tasks/{task}/stream HTTP/1.1\r\nhost: {}\r\n{}\r\n\r\n",
        served.api,
        bearer(&served.key)
    );
    good.write_all(head.as_bytes()).unwrap();

    let listed = support::json(&served.keys(&["list", "--format", "json"]));
    let keys = listed["keys"].as_array().unwrap();
    let known = keys.iter().find(|key| key["name"] == "revoked").unwrap();
    served.keys(&["revoke", known["id"].as_str().unwrap()]);
    let token = form_token(&served.look(&session, "/dashboard").text);
    let form = format!("form_token={token}");
    let left = served.post_form(&session, "/dashboard/sign-out", &form);
    assert_eq!(left.status, 303);
    for (why, follower) in [
        ("revoked", revoked),
        ("expired", expired),
        ("signed out", signed_out),
    ] {
        let (text, took) = follower.join().unwrap();
        let (_, last) = text.rsplit_once("event: ").unwrap();
        assert!(last.starts_with("end\n"), "{why}: {text}");
        assert!(last.contains(r#""code":"unauthorized""#), "{why}: {text}");
        assert!(took < Duration::from_secs(30), "{why}: {took:?}");
    }
    let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
    good.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    while let Ok(count) = good.read(&mut piece) {
        assert!(count > 0, "the stream of a good key ended");
        seen.extend_from_slice(&piece[..count]);
    }
    assert!(!String::from_utf8_lossy(&seen).contains("event: end"));
}

/// Whether the other side closes a connection within this time.
fn closes(stream: &mut TcpStream, within: Duration) -> bool {
    stream.set_read_timeout(Some(within)).unwrap();
    match stream.read(&mut [0; 1024]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn connections_that_ask_nothing_make_way_and_those_in_use_do_not() {
    let served = clerk(&["--peer-connections", "20"]);
    let mut idle: Vec<TcpStream> = (0..60).map(|_| connect(served.hooks)).collect();
    let began = Instant::now();
    assert_eq!(served.hook("nobody", "", b"{}").status, 404);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(closes(&mut idle[0], Duration::from_secs(5)));
    assert!(!closes(&mut idle[59], Duration::from_millis(50)));
    drop(idle);
    // Requests that are under way keep their connections; then there is no room, which is told at once.
    let mut busy: Vec<TcpStream> = (0..20).map(|_| connect(served.hooks)).collect();
    let head = format!(
        "POST /v1/webhooks/events/nobody HTTP/1.1\r\nhost: {}\r\nexpect: 100-continue\r\n\
         content-length: 2\r\n\r\n",
        served.hooks
    );
    let told = |stream: &mut TcpStream, words: &[u8]| {
        let mut first = vec![0; words.len()];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&first),
            String::from_utf8_lossy(words)
        );
    };
    for stream in &mut busy {
        stream.write_all(head.as_bytes()).unwrap();
        // It waits for the body.
        told(stream, b"HTTP/1.1 100 Continue\r\n\r\n");
    }
    let reply = served.hook("nobody", "", b"{}");
    assert_eq!(reply.status, 503, "{reply:?}");
    assert_eq!(reply.header("content-type"), "application/problem+json");
    assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
    assert_eq!(reply.json()["code"], "unavailable");
    // The other port has room of its own, and counts nothing of it.
    let counted = served.ask("GET", "/v1/metrics", None).text;
    for outcome in ["made_way", "refused"] {
        let line = format!("http_connections_over_limit_total{{outcome=\"{outcome}\"}}");
        assert!(counted.contains(&line), "{counted}");
    }
    for stream in &mut busy {
        stream.write_all(b"{}").unwrap();
        told(stream, b"HTTP/1.1 404");
    }
    assert_eq!(served.hook("nobody", "", b"{}").status, 404);
}

#[test]
fn a_new_connection_asks_soon_and_a_used_one_may_rest() {
    let served = clerk(&[]);
    let mut silent = connect(served.hooks);
    let mut slow = connect(served.hooks);
    slow.write_all(b"POST /v1/webhooks").unwrap();
    let mut used = connect(served.api);
    let head = format!("GET /v1/health HTTP/1.1\r\nhost: {}\r\n\r\n", served.api);
    used.write_all(head.as_bytes()).unwrap();
    let began = Instant::now();
    // Three times less than what a connection that was used may rest.
    assert!(closes(&mut silent, Duration::from_secs(20)));
    assert!(closes(&mut slow, Duration::from_secs(10)));
    let took = began.elapsed();
    assert!(took > Duration::from_secs(5), "{took:?}");
    used.write_all(head.as_bytes()).unwrap();
    used.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut lines = BufReader::new(used).lines().map_while(Result::ok);
    for _ in 0..2 {
        lines.find(|line| line.contains("HTTP/1.1 200")).unwrap();
    }
}

#[test]
fn headers_have_the_documented_limit_and_a_host() {
    let served = clerk(&[]);
    for address in [served.api, served.hooks] {
        let with = |bytes: usize| {
            let head = format!(
                "GET /v1/health HTTP/1.1\r\nhost: {address}\r\nx-long: {}",
                "x".repeat(bytes)
            );
            Served::send(address, &head, b"").status
        };
        assert!([200, 404].contains(&with(63 << 10)));
        assert_eq!(with(64 << 10), 431);
        assert_eq!(with(100 << 10), 431);
        let status = |head: &str| Served::send(address, head, b"").status;
        assert_eq!(status("GET /v1/health HTTP/1.1"), 400);
        let twice = format!("GET /v1/health HTTP/1.1\r\nhost: {address}\r\nhost: {address}");
        assert_eq!(status(&twice), 400);
        assert!([200, 404].contains(&status("GET /v1/health HTTP/1.0")));
    }
}

fn post(served: &Served, key: &str, path: &str, once: &str, body: &str) -> Reply {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         idempotency-key: {once}",
        served.api
    );
    Served::send(served.api, &head, body.as_bytes())
}

#[test]
fn what_is_repeated_is_done_once_and_a_key_says_one_thing() {
    let served = clerk(&[]);
    let create = |once: &str, body: &str| post(&served, &served.key, "/v1/tasks", once, body);
    let first = create("a", r#"{"agent": "clerk", "message": "Hello!"}"#);
    assert_eq!(first.status, 201, "{first:?}");
    let again = create("a", r#"{ "message": "Hello!",  "agent": "clerk" }"#);
    assert_eq!((again.status, again.json()), (201, first.json()));
    let other = create("b", r#"{"agent": "clerk", "message": "Hello!"}"#);
    assert_ne!(other.json(), first.json());
    let clash = create("a", r#"{"agent": "clerk", "message": "Goodbye!"}"#);
    assert_eq!(clash.status, 422, "{clash:?}");
    assert!(clash.text.contains("Idempotency-Key"), "{clash:?}");
    assert_eq!(create("a b", "{}").status, 400);
    // Another's key is another's.
    let colleague = served.keys(&["create", "--scope", "tasks:write"]);
    let body = r#"{"agent": "clerk", "message": "Hello!"}"#;
    let theirs = post(&served, colleague.trim(), "/v1/tasks", "a", body);
    assert_eq!(theirs.status, 201, "{theirs:?}");
    assert_ne!(theirs.json(), first.json());
    assert_eq!(
        served.get("/v1/tasks")["tasks"].as_array().unwrap().len(),
        3
    );
    // Many at the same moment begin one.
    let ids: Vec<Value> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| create("c", r#"{"agent": "clerk"}"#).json()))
            .collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");

    let task = first.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/tasks/{task}/messages");
    let say = |once: &str, body: &str| post(&served, &served.key, &path, once, body);
    let said = say("a", r#"{"message": "More.", "parameters": {"n": 0.1}}"#);
    assert_eq!(said.status, 202, "{said:?}");
    let again = say("a", r#"{"parameters": {"n": 0.1}, "message": "More."}"#);
    assert_eq!((again.status, again.json()), (202, said.json()));
    for body in [
        r#"{"message": "Less.", "parameters": {"n": 0.1}}"#,
        r#"{"message": "More."}"#,
    ] {
        let clash = say("a", body);
        assert_eq!(clash.status, 422, "{clash:?}");
        assert!(clash.text.contains("Idempotency-Key"), "{clash:?}");
    }
    // The keys of our own deliveries are no keys of others: the first message has `first`.
    let reply = say("first", r#"{"message": "Is this lost?"}"#);
    assert_eq!(reply.status, 202, "{reply:?}");
    let inputs = until("all that was said", || {
        let turns = served.get(&format!("/v1/tasks/{task}/turns?limit=200"));
        let turns = turns["turns"].as_array().unwrap().clone();
        let inputs = turns.into_iter().filter(|turn| turn["kind"] == "input");
        let inputs: Vec<Value> = inputs.map(|turn| turn["body"]["message"].clone()).collect();
        (inputs.len() >= 3).then_some(inputs)
    });
    assert_eq!(json!(inputs), json!(["Hello!", "More.", "Is this lost?"]));
}

#[test]
fn wrong_keys_are_told_to_wait_and_hold_up_no_right_one() {
    let served = clerk(&["--rate", "20"]);
    let reply = until("refusal", || {
        let reply = served.ask_as("phk_wrong", "GET", "/v1/tasks", None);
        assert!([401, 429].contains(&reply.status), "{reply:?}");
        (reply.status == 429).then_some(reply)
    });
    assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
    assert!(reply.text.contains("wrong keys"), "{reply:?}");
    assert_eq!(served.ask("GET", "/v1/tasks", None).status, 200);
    // Whoever sends none is asked for one.
    assert_eq!(served.ask_as("", "GET", "/v1/tasks", None).status, 401);
}

#[test]
fn bodies_are_objects_and_errors_are_in_the_words_of_the_api() {
    let served = clerk(&[]);
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json",
        served.api, served.key
    );
    for (body, words) in [
        (r#"["clerk", null, "Hello!"]"#, "must be an object"),
        (r#"{"agent": 7}"#, "`agent` is wrong"),
        ("{\n\"agent\": 7}", "2:10"),
        ("{}", "missing field `agent`"),
    ] {
        let reply = Served::send(served.api, &head, body.as_bytes());
        assert_eq!(reply.status, 400, "{reply:?}");
        assert!(reply.text.contains(words), "{body}: {reply:?}");
        assert!(!reply.text.contains("struct"), "{reply:?}");
    }
    let path = "/v1/tasks/nobody/reviews/first";
    let reply = served.ask("POST", path, Some(&json!({"approve": true})));
    assert_eq!(reply.status, 404);
    assert!(!reply.text.contains("u64"), "{reply:?}");
}

#[test]
fn schedules_that_were_removed_are_marked() {
    let files = [("clerk.yaml", CLERK), ("daily.yaml", DAILY)];
    let served = Served::start(&files, "", &[]);
    let start = |served: &Served| {
        let starts = served.get("/v1/starts")["starts"].clone();
        starts.as_array().unwrap().first().cloned()
    };
    let known = until("schedule", || {
        start(&served).filter(|start| !start["next_at"].is_null())
    });
    assert_eq!(
        (&known["name"], &known["removed"]),
        (&json!("daily"), &json!(false))
    );
    std::fs::remove_file(served.path("manifests/daily.yaml")).unwrap();
    let gone = until("mark", || {
        start(&served).filter(|start| start["removed"] == true)
    });
    assert_eq!(gone["next_at"], Value::Null);
}

#[test]
fn one_server_has_an_sqlite_file_and_keys_may_use_it_too() {
    let served = clerk(&[]);
    let (manifests, store) = (served.path("manifests"), served.path("store.db"));
    let (manifests, store) = (manifests.to_str().unwrap(), store.to_str().unwrap());
    let args = ["serve", manifests, "--store", store];
    let free = ["--listen", "127.0.0.1:0", "--webhook-listen", "127.0.0.1:0"];
    let ran = ends(&[&args[..], &free].concat());
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("PostgreSQL"), "{}", ran.stderr);
    assert!(ran.stderr.contains("store.db"), "{}", ran.stderr);
    served.keys(&["create", "--scope", "tasks:read"]);
    // The lock ends with the process, also when that is killed.
    let key = served.key.clone();
    served.signal("-KILL");
    let (_, directory) = served.ended();
    let mut served = Served::start_in(directory, &[]);
    served.key = key;
    served.begin("clerk", None);
}

#[test]
fn options_out_of_range_are_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let manifests = directory.path().join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    let manifests = manifests.to_str().unwrap();
    let store = directory.path().join("store.db");
    for (flag, value, words) in [
        ("--lease", "0s", "300 ms to 15 s"),
        ("--lease", "299ms", "300 ms to 15 s"),
        ("--lease", "16s", "300 ms to 15 s"),
        ("--lease", "10h", "300 ms to 15 s"),
        ("--max-webhook-bytes", "0", "1..=8388608"),
        ("--max-webhook-bytes", "8388609", "1..=8388608"),
        ("--peer-connections", "0", "1..=1024"),
        ("--public-url", "not a url", "https://hooks.example.com"),
        (
            "--public-url",
            "ftp://example.com",
            "https://hooks.example.com",
        ),
        ("--public-url", "https://", "https://hooks.example.com"),
        ("--public-url", "https://example.com/?a=b", "without"),
        ("--public-url", "https://me:hunter2@example.com", "without"),
        ("--store", "mysql://me:hunter2@host/db", "postgres://"),
    ] {
        let mut args = vec!["serve", manifests, "--listen", "127.0.0.1:0"];
        args.extend(["--webhook-listen", "127.0.0.1:0", flag, value]);
        if flag != "--store" {
            args.extend(["--store", store.to_str().unwrap()]);
        }
        let ran = ends(&args);
        assert_eq!(ran.code, Some(64), "{flag} {value}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{flag} {value}: {}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
    assert!(!store.exists());
}

#[test]
fn a_mistyped_store_is_not_made_by_looking_at_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stroe.db");
    let store = path.to_str().unwrap();
    for args in [
        &["keys", "list", "--store", store][..],
        &["keys", "revoke", "0a1b2c", "--store", store],
    ] {
        let ran = support::run(args);
        assert_eq!(ran.code, Some(64), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("stroe.db: there is no such store"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("keys create"), "{}", ran.stderr);
        assert!(!path.exists());
    }
    let url = "mysql://me:hunter2@127.0.0.1/db";
    let ran = support::run(&["keys", "list", "--store", url]);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    let create = ["keys", "create", "--scope", "tasks:read", "--store", store];
    let ran = support::run(&create);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("created a new store: "),
        "{}",
        ran.stderr
    );
    let ran = support::run(&create);
    assert!(
        !ran.stderr.contains("created a new store"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_list_says_which_keys_are_valid() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store.db");
    let store = store.to_str().unwrap();
    let keys = |args: &[&str]| {
        let ran = support::run(&[&["keys"], args, &["--store", store]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    for (name, expires) in [("good", "1h"), ("old", "1ms"), ("bad", "1h")] {
        let create = ["create", "--scope", "tasks:read", "--name", name];
        keys(&[&create[..], &["--expires", expires]].concat());
    }
    std::thread::sleep(Duration::from_millis(20));
    let state = |name: &str| {
        let listed = keys(&["list"]);
        let line = listed.lines().find(|line| line.ends_with(name)).unwrap();
        let mut words = line.split_whitespace().map(str::to_owned);
        (words.next().unwrap(), words.next().unwrap())
    };
    keys(&["revoke", &state("bad").0]);
    assert_eq!(state("good").1, "valid");
    assert_eq!(state("old").1, "expired");
    assert_eq!(state("bad").1, "revoked");
}
