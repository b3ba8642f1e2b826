//! What `proofhouse serve` counts: each thing that happens is to be found in `/v1/metrics`, and each name in the docs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use proofhouse_test_support::http::{TestReply, TestServer};
use proofhouse_test_support::wait::until;
use serde_json::{Value, json};

use crate::support::served::{Served, example, github_signature};

const SECRET: &str = "correct horse battery staple";

const MORE: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: engineering
name: feed
description: A feed.
actions:
  - name: count
    description: Counts.
    execute:
      cel:
        expression: "{'count': 1}"
events:
  - name: item
    message: "item {event.number}"
    receive:
      poll:
        method: GET
        url: "http://FEED/items"
        interval: 1s
        detect: "response.items"
        key: item.id
    parameters:
      number: "item.id"
---
kind: commonagents.info/v1beta2/agent
namespace: engineering
name: reader
description: Reads.
prompt: You read.
capabilities:
  feed: "*"
"#;

/// A platform that is polled, and that may be out of order.
fn feed(broken: &Arc<AtomicBool>) -> TestServer {
    let broken = Arc::clone(broken);
    TestServer::start(move |_, _| {
        if broken.load(Ordering::Relaxed) {
            TestReply::Plain(500, "content-type: application/json\r\n", "{}".to_owned())
        } else {
            TestReply::Json(json!({"items": []}))
        }
    })
}

/// All values, by name and labels.
fn scrape(served: &Served) -> BTreeMap<String, f64> {
    let reply = served.ask("GET", "/v1/metrics", None);
    assert_eq!(reply.status, 200, "{reply:?}");
    let lines = reply.text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let name = name.strip_prefix("proofhouse_").unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

fn value(served: &Served, name: &str) -> f64 {
    let all = scrape(served);
    *all.get(name)
        .unwrap_or_else(|| panic!("there is no {name}: {all:#?}"))
}

/// Waits until a value is at least this.
fn at_least(served: &Served, name: &str, least: f64) {
    // A tool has no value before its first poll.
    let now = || scrape(served).get(name).copied().unwrap_or(0.0);
    until(name, || (now() >= least).then_some(()));
}

fn comment(text: &str, repository: &str) -> Value {
    json!({
        "action": "created",
        "issue": {"number": 7, "pull_request": {}},
        "comment": {"body": text, "user": {"login": "ada"}},
        "repository": {"name": repository, "owner": {"login": "example"}, "private": false},
    })
}

#[test]
fn what_happens_is_counted() {
    let broken = Arc::new(AtomicBool::new(false));
    let manifests = example("events/github-pr.yaml");
    let feed = feed(&broken);
    let more = MORE.replace("FEED", &feed.address().to_string());
    let files = [("github.yaml", manifests.as_str()), ("feed.yaml", &more)];
    let operator = format!("settings: {{engineering/github-pr: {{hook_secret: '{SECRET}'}}}}\n");
    let served = Served::start(
        &files,
        &operator,
        &["--allow", "127.0.0.1/32", "--max-webhook-bytes", "10000"],
    );
    // Everything is there before it happens for the first time.
    assert_eq!(value(&served, "webhooks_total{outcome=\"stored\"}"), 0.0);
    assert_eq!(value(&served, "tasks{state=\"waiting\"}"), 0.0);

    let coder = served.begin("coder", None);
    let reader = served.begin("reader", None);
    assert_eq!(value(&served, "tasks_begun_total{by=\"api\"}"), 2.0);

    // Webhooks, by what was done with them.
    let post = |kind: &str, signature: &str, body: &[u8]| {
        let head = format!(
            "POST /v1/webhooks/events/github-pr HTTP/1.1\r\nhost: {}\r\ncontent-type: {kind}\r\n\
             x-hub-signature-256: {signature}",
            served.hooks
        );
        Served::send(served.hooks, &head, body).status
    };
    let signed = |kind: &str, body: &[u8]| post(kind, &github_signature(SECRET, body), body);
    let ours = comment("For us.", "mesh");
    assert_eq!(served.github("github-pr", SECRET, "d1", &ours).status, 202);
    assert_eq!(served.github("github-pr", SECRET, "d1", &ours).status, 200);
    let others = comment("For others.", "elsewhere");
    assert_eq!(
        served.github("github-pr", SECRET, "d2", &others).status,
        202
    );
    assert_eq!(served.github("github-pr", "guess", "d3", &ours).status, 401);
    assert_eq!(served.hook("nobody", "", b"{}").status, 404);
    assert_eq!(signed("application/json", b"{"), 400);
    assert_eq!(signed("application/json", &[b' '; 10_001]), 413);
    assert_eq!(signed("image/png", b"{}"), 415);
    let head = format!(
        "GET /v1/webhooks/events/github-pr HTTP/1.1\r\nhost: {}",
        served.hooks
    );
    assert_eq!(Served::send(served.hooks, &head, b"").status, 405);
    let head = head.replace("github-pr HTTP", "github-pr?validationToken=abc HTTP");
    let head = head.replace("GET", "POST");
    assert_eq!(Served::send(served.hooks, &head, b"").status, 200);
    let now = scrape(&served);
    for (outcome, count) in [
        ("stored", 2.0),
        ("duplicate", 1.0),
        ("signature", 1.0),
        ("unknown", 1.0),
        ("malformed", 1.0),
        ("unsupported", 1.0),
        ("method", 1.0),
        ("handshake", 1.0),
        ("unavailable", 0.0),
    ] {
        let name = format!("webhooks_total{{outcome=\"{outcome}\"}}");
        assert_eq!(now[&name], count, "{name}");
    }
    let refused_by_size = ["too_large", "unreadable"]
        .map(|outcome| now[&format!("webhooks_total{{outcome=\"{outcome}\"}}")]);
    assert_eq!(refused_by_size.iter().sum::<f64>(), 1.0);

    // What became of the two that were kept. Neither is for the trigger, which is disabled for them or asserts otherwise.
    at_least(&served, "deliveries_total{outcome=\"given\"}", 1.0);
    at_least(&served, "events_routed_total{outcome=\"delivered\"}", 1.0);
    at_least(&served, "events_routed_total{outcome=\"discarded\"}", 1.0);
    at_least(&served, "event_discards_total{reason=\"filter\"}", 1.0);
    until("rest", || {
        let all = scrape(&served);
        let rest = all["unrouted_events"] + all["pending_deliveries"] + all["tasks_working"];
        (rest == 0.0).then_some(())
    });
    assert_eq!(value(&served, "tasks{state=\"idle\"}"), 2.0);

    // Polls, by tool.
    let polls =
        |outcome: &str| format!("polls_total{{tool=\"engineering/feed\",outcome=\"{outcome}\"}}");
    at_least(&served, &polls("done"), 1.0);
    let since = "poll_last_success_timestamp_seconds{tool=\"engineering/feed\"}";
    let clock = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let ago = clock.as_secs_f64() - value(&served, since);
    assert!((-5.0..300.0).contains(&ago), "{ago} seconds ago");
    broken.store(true, Ordering::Relaxed);
    at_least(&served, &polls("failed"), 1.0);

    // Manifests.
    assert_eq!(value(&served, "manifest_problems"), 0.0);
    std::fs::write(served.path("manifests/broken.yaml"), "kind: nonsense\n").unwrap();
    at_least(&served, "manifest_problems", 1.0);
    at_least(&served, "manifest_reloads_total", 1.0);

    // The store: how long it takes, and that it fails.
    assert!(value(&served, "store_seconds_count{mode=\"write\"}") > 0.0);
    assert!(value(&served, "store_seconds_sum{mode=\"write\"}") > 0.0);
    assert_eq!(value(&served, "store_failures_total{mode=\"write\"}"), 0.0);
    let lock = rusqlite::Connection::open(served.path("store.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let late = comment("While it is locked.", "mesh");
    assert_eq!(served.github("github-pr", SECRET, "d4", &late).status, 503);
    let now = scrape(&served);
    assert!(now["store_failures_total{mode=\"write\"}"] >= 1.0);
    assert_eq!(now["webhooks_total{outcome=\"unavailable\"}"], 1.0);
    assert_eq!(now["store_up"], 1.0);
    lock.execute_batch("ROLLBACK").unwrap();

    for task in [coder, reader] {
        let ended = served.ask("POST", &format!("/v1/tasks/{task}/cancel"), None);
        assert!((200..300).contains(&ended.status), "{ended:?}");
    }
    at_least(&served, "tasks{state=\"ended\"}", 2.0);
    assert_eq!(value(&served, "tasks{state=\"idle\"}"), 0.0);

    // Each has its row in the docs, and there are as many series as before whatever strangers ask for.
    let docs = include_str!("../../../../docs/reference/server.md");
    for name in scrape(&served).keys() {
        let name = name.split('{').next().unwrap();
        let name = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        let row = format!("| `proofhouse_{name}` |");
        assert!(docs.contains(&row), "docs/reference/server.md has no {row}");
    }
    let before = scrape(&served).len();
    for number in 0..50 {
        served.hook(&format!("stranger-{number}"), "", b"{}");
    }
    assert_eq!(scrape(&served).len(), before);
}
