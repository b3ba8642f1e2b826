//! Webhooks of `proofhouse serve`: only what is signed gets in, once, and a 2xx says that it is on the disk.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::net::TcpStream;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofhouse_test_support::wait::until;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use ring::hmac;
use serde_json::{Value, json};

use crate::support::{
    self,
    served::{Served, cookie_of, example, exchange, form_head, form_token, github_signature},
};

const SECRET: &str = "correct horse battery staple";

fn operator() -> String {
    format!(
        "settings: {{engineering/github-pr: {{hook_secret: '{SECRET}'}}}}\nwebhooks:\n  billing: {{scheme: standard, secret: {}}}\n",
        STANDARD.encode(SECRET)
    )
}

const BILLING: &str = r#"
kind: commonagents.info/v1beta2/trigger
namespace: engineering
name: paid
agent: coder
owner: user:bot@example.com
source:
  type: billing
message: "Paid: {event.payload.amount}"
enabled: true
"#;

fn github(more: &[&str]) -> Served {
    let manifests = example("events/github-pr.yaml");
    let files = [
        ("github.yaml", manifests.as_str()),
        ("billing.yaml", BILLING),
    ];
    Served::start(&files, &operator(), more)
}

fn comment(text: &str) -> Value {
    json!({
        "action": "created",
        "issue": {"number": 7, "pull_request": {}},
        "comment": {"body": text, "user": {"login": "ada"}},
        "repository": {"name": "mesh", "owner": {"login": "example"}, "private": false},
    })
}

fn messages(served: &Served, task: &str) -> Vec<String> {
    let turns = served.get(&format!("/v1/tasks/{task}/turns?limit=200"));
    let turns = turns["turns"].as_array().unwrap();
    let inputs = turns.iter().filter(|turn| turn["kind"] == "input");
    let text = |turn: &Value| {
        turn["body"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    inputs.map(text).collect()
}

#[test]
fn what_is_signed_gets_in_once() {
    let served = github(&[]);
    let task = served.begin("coder", None);
    let body = comment("Looks good.");
    let first = served.github("github-pr", SECRET, "d1", &body);
    assert_eq!(first.status, 202, "{first:?}");
    // The platform sends it again, or somebody who listened does.
    for _ in 0..3 {
        let again = served.github("github-pr", SECRET, "d1", &body);
        assert_eq!(again.status, 200, "{again:?}");
        assert_eq!(again.json()["event"], first.json()["event"]);
    }
    let told = "ada commented on #7: Looks good.";
    until("comment", || {
        messages(&served, &task)
            .contains(&told.to_owned())
            .then_some(())
    });
    let second = served.github("github-pr", SECRET, "d2", &comment("Ship it."));
    assert_eq!(second.status, 202);
    until("second comment", || {
        (messages(&served, &task).len() == 2).then_some(())
    });
    assert_eq!(messages(&served, &task)[0], told);
    // What became of it, and why.
    let event = first.json()["event"].as_i64().unwrap();
    let shown = served.get(&format!("/v1/events/{event}"));
    assert_eq!(
        shown["payload"]["comment"]["body"], "Looks good.",
        "{shown}"
    );
    assert!(!shown.to_string().contains("sha256="), "{shown}");
    // Routed again, it is a new attempt with a turn of its own.
    let replayed = served.ask("POST", &format!("/v1/events/{event}/replay"), None);
    assert_eq!(replayed.status, 202, "{replayed:?}");
    assert_eq!(replayed.json()["attempt"], 2);
    until("replayed comment", || {
        (messages(&served, &task).len() == 3).then_some(())
    });
    assert_eq!(messages(&served, &task)[2], told);
}

#[test]
fn what_is_not_signed_as_it_must_be_does_not() {
    let served = github(&[]);
    let body = comment("Let me in.").to_string();
    let signature = github_signature(SECRET, body.as_bytes());
    let wrong = github_signature("guess", body.as_bytes());
    let other = comment("Something else.").to_string();
    let with = |signature: &str, body: &str| {
        let headers = format!("\r\nx-github-delivery: d1\r\nx-hub-signature-256: {signature}");
        served.hook("github-pr", &headers, body.as_bytes())
    };
    for (signature, body, why) in [
        (wrong.as_str(), body.as_str(), "does not fit"),
        ("sha256=nonsense", &body, "cannot be read"),
        ("", &body, "cannot be read"),
        // A signature of another message.
        (&signature, &other, "does not fit"),
    ] {
        let reply = with(signature, body);
        assert_eq!(reply.status, 401, "{reply:?}");
        assert!(reply.text.contains(why), "{why}: {reply:?}");
    }
    let missing = served.hook("github-pr", "\r\nx-github-delivery: d1", body.as_bytes());
    assert_eq!(missing.status, 401);
    assert!(missing.text.contains("missing"), "{missing:?}");
    // What is malformed but not signed is not read, so nobody learns how it is read.
    assert_eq!(served.hook("github-pr", "", b"{").status, 401);
    let events = served.get("/v1/events");
    assert_eq!(events["events"], json!([]));
    assert!(!served.log().contains(SECRET));
}

#[test]
fn old_signatures_are_not_taken() {
    let served = github(&[]);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let post = |id: &str, time: u64| {
        let body = json!({"amount": 12}).to_string();
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        let tag = hmac::sign(&key, format!("{id}.{time}.{body}").as_bytes());
        let headers = format!(
            "\r\nwebhook-id: {id}\r\nwebhook-timestamp: {time}\r\nwebhook-signature: v1,{}",
            STANDARD.encode(tag.as_ref())
        );
        served.hook("billing", &headers, body.as_bytes())
    };
    assert_eq!(post("m1", now).status, 202);
    assert_eq!(post("m1", now).status, 200);
    for time in [now - 3_600, now + 3_600] {
        let reply = post("m2", time);
        assert_eq!(reply.status, 401, "{reply:?}");
        assert!(reply.text.contains("too far from ours"), "{reply:?}");
    }
    // The one that got in began a task.
    until("task of the trigger", || {
        let starts = served.get("/v1/starts");
        let starts = starts["starts"].as_array().unwrap();
        starts
            .iter()
            .find(|start| start["name"] == "paid" && start["total"] == 1)?;
        Some(())
    });
}

#[test]
fn bad_bodies_are_told_apart() {
    let served = github(&["--max-webhook-bytes", "100000"]);
    let post = |form: &str, body: &[u8]| {
        let signature = github_signature(SECRET, body);
        let head = format!(
            "POST /v1/webhooks/events/github-pr HTTP/1.1\r\nhost: {}\r\n\
             x-hub-signature-256: {signature}{form}",
            served.hooks
        );
        Served::send(served.hooks, &head, body)
    };
    let json_form = "\r\ncontent-type: application/json";
    let deep = "[".repeat(10_000);
    for (form, body, status) in [
        (json_form, b"{".as_slice(), 400),
        (json_form, b"\xff\xfe", 400),
        (json_form, deep.as_bytes(), 400),
        (json_form, vec![b' '; 100_001].as_slice(), 413),
        ("\r\ncontent-type: image/png", b"{}", 415),
        (
            "\r\ncontent-type: application/json\r\ncontent-encoding: gzip",
            b"{}",
            415,
        ),
    ] {
        let reply = post(form, body);
        assert_eq!(reply.status, status, "{form}: {reply:?}");
    }
    assert_eq!(served.hook("nobody", "", b"{}").status, 404);
    // Whoever asks sends nothing that is kept.
    for method in ["GET", "HEAD", "PUT", "DELETE"] {
        let head = format!(
            "{method} /v1/webhooks/events/github-pr HTTP/1.1\r\nhost: {}\r\n\
             content-type: application/json\r\nx-hub-signature-256: {}",
            served.hooks,
            github_signature(SECRET, b"{}")
        );
        assert_eq!(
            Served::send(served.hooks, &head, b"{}").status,
            405,
            "{method}"
        );
    }
    let head = format!(
        "POST /v1/webhooks/events/github-pr?validationToken=abc HTTP/1.1\r\nhost: {}",
        served.hooks
    );
    let reply = Served::send(served.hooks, &head, b"");
    assert_eq!((reply.status, reply.text.as_str()), (200, "abc"));
    assert!(reply.header("content-type").starts_with("text/plain"));
    assert_eq!(served.get("/v1/events")["events"], json!([]));
    // Neither the API nor the dashboard is where webhooks arrive.
    for path in ["/v1/tasks", "/dashboard", "/v1/metrics"] {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}",
            served.hooks, served.key
        );
        assert_eq!(Served::send(served.hooks, &head, b"").status, 404);
    }
}

#[test]
fn floods_of_webhooks_are_told_to_wait() {
    let served = github(&["--webhook-rate", "1"]);
    let reply = until("refusal", || {
        let reply = served.hook("github-pr", "", b"{}");
        (reply.status == 429).then_some(reply)
    });
    assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
    // The API is not held up by them.
    assert_eq!(served.ask("GET", "/v1/tasks", None).status, 200);
}

#[test]
fn unsigned_webhooks_need_an_open_door() {
    let manifests =
        example("events/github-pr.yaml").replace("secret: \"{settings.hook_secret}\"\n", "\n");
    let files = [("github.yaml", manifests.as_str())];
    let served = Served::start(&files, "", &["--strict-webhooks"]);
    let body = comment("Hello?").to_string();
    assert_eq!(served.hook("github-pr", "", body.as_bytes()).status, 401);
    let served = Served::start(&files, "", &[]);
    assert_eq!(served.hook("github-pr", "", body.as_bytes()).status, 202);
}

#[test]
fn a_store_that_cannot_write_answers_503_and_loses_nothing() {
    let served = github(&[]);
    let task = served.begin("coder", None);
    let lock = rusqlite::Connection::open(served.path("store.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body = comment("While it is locked.");
    let reply = served.github("github-pr", SECRET, "d1", &body);
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
    // It does not tell strangers where the file is.
    assert!(!reply.text.contains("store.db"), "{reply:?}");
    assert_eq!(served.ask_as("", "GET", "/v1/ready", None).status, 503);
    let say = json!({"message": "Hello!"});
    let path = format!("/v1/tasks/{task}/messages");
    assert_eq!(served.ask("POST", &path, Some(&say)).status, 503);
    assert_eq!(served.ask_as("", "GET", "/v1/health", None).status, 200);
    lock.execute_batch("ROLLBACK").unwrap();
    // It goes on by itself, and the platform's second try is the first that counts.
    until("answer", || {
        let reply = served.github("github-pr", SECRET, "d1", &body);
        (reply.status == 202).then_some(())
    });
    assert_eq!(served.github("github-pr", SECRET, "d1", &body).status, 200);
    until("comment", || {
        (messages(&served, &task).len() == 1).then_some(())
    });
    until("readiness", || {
        (served.ask_as("", "GET", "/v1/ready", None).status == 200).then_some(())
    });
}

#[test]
fn a_database_that_vanished_answers_503_until_it_is_back() {
    let served = github(&[]);
    let task = served.begin("coder", None);
    let (file, aside) = (served.path("store.db"), served.path("aside.db"));
    std::fs::rename(&file, &aside).unwrap();
    let body = comment("While it is away.");
    let reply = served.github("github-pr", SECRET, "v1", &body);
    assert_eq!(reply.status, 503, "{reply:?}");
    assert_eq!(served.ask_as("", "GET", "/v1/ready", None).status, 503);
    // Another file in its place is not the database either.
    std::fs::write(&file, b"").unwrap();
    let reply = served.github("github-pr", SECRET, "v1", &body);
    assert_eq!(reply.status, 503, "{reply:?}");
    std::fs::rename(&aside, &file).unwrap();
    until("answer", || {
        let reply = served.github("github-pr", SECRET, "v1", &body);
        matches!(reply.status, 200 | 202).then_some(())
    });
    until("comment", || {
        (messages(&served, &task).len() == 1).then_some(())
    });
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

#[test]
fn tls_is_spoken_when_there_is_a_certificate() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (chain, key) = (path("chain.pem"), path("key.pem"));
    std::fs::write(&chain, pem("CERTIFICATE", cert.der())).unwrap();
    std::fs::write(&key, pem("PRIVATE KEY", &signing_key.serialize_der())).unwrap();
    let served = github(&["--tls-cert", &chain, "--tls-key", &key]);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let open = |address| {
        let name = "localhost".try_into().unwrap();
        let session = rustls::ClientConnection::new(Arc::clone(&config), name).unwrap();
        rustls::StreamOwned::new(session, TcpStream::connect(address).unwrap())
    };
    let head = format!(
        "GET /v1/tasks HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}",
        served.key
    );
    let reply = exchange(open(served.api), &head, b"");
    assert_eq!(reply.status, 200, "{reply:?}");
    let body = comment("Over TLS.").to_string();
    let head = format!(
        "POST /v1/webhooks/events/github-pr HTTP/1.1\r\nhost: hooks.example.com\r\n\
         content-type: application/json\r\nx-hub-signature-256: {}",
        github_signature(SECRET, body.as_bytes())
    );
    let reply = exchange(open(served.hooks), &head, body.as_bytes());
    assert_eq!(reply.status, 202, "{reply:?}");
    // The browser of one who signs in sends the cookie over nothing else.
    let page = "GET /dashboard/sign-in HTTP/1.1\r\nhost: localhost";
    let page = exchange(open(served.api), page, b"");
    let head = form_head(
        "localhost",
        "https",
        &cookie_of(&page),
        "/dashboard/sign-in",
    );
    let form = format!("form_token={}&key={}", form_token(&page.text), served.key);
    let reply = exchange(open(served.api), &head, form.as_bytes());
    assert_eq!(reply.status, 303, "{reply:?}");
    let cookie = reply.header("set-cookie");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    // A key that does not fit, or is none, is told before anything is served.
    std::fs::write(&key, "nonsense").unwrap();
    let manifests = served.path("manifests").display().to_string();
    let ran = support::run(&["serve", &manifests, "--tls-cert", &chain, "--tls-key", &key]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("--tls-key"), "{}", ran.stderr);
}
