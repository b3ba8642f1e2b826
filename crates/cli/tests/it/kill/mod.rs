//! The kill test: webhooks and polls keep coming while `proofhouse serve` is killed again and again. Whatever was
//! acknowledged becomes a turn of the task once, counted from both ends.
//!
//! `PROOFHOUSE_KILLS` says how often it is killed (`scripts/kill-test` sets 50), `PROOFHOUSE_KILL_SEED` repeats the
//! moments of an earlier run.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test may, and is told by the environment how long to go on"
)]

mod several;
mod stalls;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proofhouse_test_support::http::{TestReply, TestServer};
use proofhouse_test_support::loopback::free_address;
use proofhouse_test_support::postgres::Postgres;
use serde_json::{Value, json};

use crate::support::{
    self,
    served::{PATIENCE, try_send},
};

/// Kills of a short run.
const FEW: u64 = 5;
/// How long the work that is left may take at the end.
const SETTLE: Duration = Duration::from_secs(180);

const MANIFESTS: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: shop
name: orders
description: Orders of the shop.
actions:
  - name: count
    description: Counts.
    execute:
      cel:
        expression: "{'count': 1}"
events:
  - name: placed
    message: "webhook {event.number}"
    receive:
      webhook:
        filter: "event.payload.kind == 'placed'"
    parameters:
      number: "event.payload.number"
---
kind: commonagents.info/v1beta2/tool
namespace: shop
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
    message: "poll {event.number}"
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
namespace: shop
name: clerk
description: Keeps watch.
prompt: You keep watch.
capabilities:
  orders: "*"
  feed: "*"
---
kind: commonagents.info/v1beta2/agent
namespace: shop
name: idler
description: Listens to nothing.
prompt: You answer.
"#;

/// Sends one request to a server that may be killed meanwhile, and returns the status and the body.
fn request(address: SocketAddr, head: &str, body: &str) -> Option<(u16, String)> {
    let head = format!("{head}\r\nhost: {address}");
    let reply = try_send(address, &head, body.as_bytes())?;
    Some((reply.status, reply.text))
}

fn get(address: SocketAddr, path: &str) -> Option<Value> {
    let (status, body) = request(address, &format!("GET {path} HTTP/1.1"), "")?;
    (status == 200).then(|| serde_json::from_str(&body).ok())?
}

/// Writes the manifests, with where the feed is.
fn write_manifests(directory: &Path, feed: &Feed) -> PathBuf {
    let manifests = directory.join("manifests");
    fs::create_dir_all(&manifests).unwrap();
    let text = MANIFESTS.replace("FEED", &feed.server.address().to_string());
    fs::write(manifests.join("shop.yaml"), text).unwrap();
    manifests
}

/// A platform that is polled. What it has grows while the test goes on.
struct Feed {
    server: TestServer,
    items: Arc<AtomicUsize>,
}

impl Feed {
    fn open() -> Self {
        let items = Arc::new(AtomicUsize::new(1));
        let count = Arc::clone(&items);
        let server = TestServer::start(move |_, _| {
            let known = 0..count.load(Ordering::SeqCst);
            let items: Vec<Value> = known.map(|id| json!({"id": format!("i{id}")})).collect();
            TestReply::Json(json!({"items": items}))
        });
        Self { server, items }
    }
}

/// A server that can be killed and started again at the same place.
struct Served {
    store: String,
    manifests: String,
    api: SocketAddr,
    hooks: SocketAddr,
    lease: &'static str,
    child: Option<Child>,
}

impl Served {
    fn at(store: &str, manifests: &Path, lease: &'static str) -> Self {
        Self {
            store: store.to_owned(),
            manifests: manifests.display().to_string(),
            api: free_address(),
            hooks: free_address(),
            lease,
            child: None,
        }
    }

    fn start(&mut self) {
        let (api, hooks) = (self.api.to_string(), self.hooks.to_string());
        // Who sends again what was not answered is not to be heard twice, also where nobody signs.
        let operator = format!("{}.operator.yaml", self.manifests);
        let once = "webhooks: {orders: {scheme: none, dedupe: id}}\n";
        std::fs::write(&operator, once).unwrap();
        let args = [
            "serve",
            &self.manifests,
            "--settings",
            &operator,
            "--open",
            "--listen",
            &api,
            "--webhook-listen",
            &hooks,
            "--lease",
            self.lease,
            "--model",
            "sim:careful",
            "--allow",
            "127.0.0.1/32",
            "--log",
            "error",
        ];
        let child = support::command(&args)
            .env("PROOFHOUSE_STORE", &self.store)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.unwrap());
        let began = Instant::now();
        while get(self.api, "/v1/ready").is_none() {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the server ended by itself: {ended:?}");
            assert!(began.elapsed() < PATIENCE, "the server does not answer");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Numbers that look random and can be had again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn number_of(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Sends webhooks until it is told to stop, each until it is acknowledged, and returns how many.
fn send_all(hooks: SocketAddr, stop: &AtomicBool) -> usize {
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        let (head, body) = (hook(&format!("d{sent}")), placed(sent));
        let began = Instant::now();
        loop {
            match request(hooks, &head, &body) {
                Some((200..300, _)) => break,
                Some((503 | 429, _)) | None => thread::sleep(Duration::from_millis(10)),
                Some((status, text)) => panic!("{status} {text}"),
            }
            assert!(began.elapsed() < PATIENCE, "webhook {sent} is not taken");
        }
        sent += 1;
        thread::sleep(Duration::from_millis(5));
    }
    sent
}

/// How often each message became an input of the task.
fn inputs(api: SocketAddr, task: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut from = 0;
    loop {
        let page = get(
            api,
            &format!("/v1/tasks/{task}/turns?from={from}&limit=200"),
        );
        let Some(page) = page else {
            return BTreeMap::new();
        };
        let turns = page["turns"].as_array().unwrap();
        for turn in turns.iter().filter(|turn| turn["kind"] == "input") {
            let message = turn["body"]["message"].as_str().unwrap_or_default();
            *counts.entry(message.to_owned()).or_default() += 1;
        }
        match turns.last() {
            Some(last) => from = last["number"].as_i64().unwrap() + 1,
            None => return counts,
        }
    }
}

/// Begins a task and returns its id.
fn begin(api: SocketAddr) -> String {
    begin_with(api, "clerk")
}

/// Begins a task of this agent and returns its id.
fn begin_with(api: SocketAddr, agent: &str) -> String {
    let order = json!({"agent": agent, "message": "begin"}).to_string();
    let head = "POST /v1/tasks HTTP/1.1\r\ncontent-type: application/json";
    let (status, body) = request(api, head, &order).unwrap();
    assert_eq!(status, 201, "{body}");
    support::json(&body)["id"].as_str().unwrap().to_owned()
}

/// Where the moments come from: those of an earlier run, or new ones.
fn seed() -> u64 {
    let moment = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    number_of("PROOFHOUSE_KILL_SEED").unwrap_or(moment.subsec_nanos().into()) | 1
}

fn survives(store: &str, directory: &Path) {
    let kills = number_of("PROOFHOUSE_KILLS").unwrap_or(FEW);
    let seed = seed();
    println!("{kills} kills, PROOFHOUSE_KILL_SEED={seed}");
    let mut chance = Chance(seed);
    let feed = Feed::open();
    let manifests = write_manifests(directory, &feed);
    let mut served = Served::at(store, &manifests, "1s");
    served.start();
    let task = begin(served.api);
    // What the feed has at the first poll is the baseline. From then on everything counts.
    let began = Instant::now();
    while !polled_once(&served, &task) {
        assert!(began.elapsed() < PATIENCE, "the feed is not polled");
        thread::sleep(Duration::from_millis(50));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (hooks, ended) = (served.hooks, Arc::clone(&stop));
    let sender = thread::spawn(move || send_all(hooks, &ended));
    for _ in 0..kills {
        feed.items.fetch_add(
            1 + usize::try_from(chance.below(3)).unwrap(),
            Ordering::SeqCst,
        );
        thread::sleep(Duration::from_millis(chance.below(700)));
        served.kill();
        served.start();
    }
    stop.store(true, Ordering::Relaxed);
    let sent = sender.join().unwrap();
    let items = feed.items.load(Ordering::SeqCst);
    let expected: Vec<String> = (0..sent)
        .map(|number| format!("webhook w{number}"))
        .chain((1..items).map(|number| format!("poll i{number}")))
        .collect();
    let began = Instant::now();
    let mut counts = BTreeMap::new();
    while began.elapsed() < SETTLE {
        counts = inputs(served.api, &task);
        if expected.iter().all(|message| counts.contains_key(message)) {
            break;
        }
        thread::sleep(Duration::from_millis(200));
    }
    let lost: Vec<&String> = expected
        .iter()
        .filter(|message| !counts.contains_key(*message))
        .collect();
    let twice: Vec<&String> = counts
        .iter()
        .filter(|(_, count)| **count > 1)
        .map(|(message, _)| message)
        .collect();
    println!(
        "{sent} webhooks and {} items of the feed over {kills} kills: {} lost, {} delivered twice",
        items - 1,
        lost.len(),
        twice.len()
    );
    assert!(lost.is_empty(), "lost: {lost:?}");
    assert!(twice.is_empty(), "twice: {twice:?}");
    assert!(sent > 0 && items > 1, "there was nothing to lose");
}

/// Whether the feed was asked and its answer kept: nothing of a baseline is to see but the wish for the next poll.
fn polled_once(served: &Served, task: &str) -> bool {
    let text = get(served.api, &format!("/v1/tasks/{task}/listening")).unwrap_or_default();
    text["polls"]
        .as_array()
        .is_some_and(|polls| polls.iter().any(|poll| poll["polled"] == true))
}

#[test]
fn nothing_is_lost_or_doubled_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store.db").display().to_string();
    survives(&store, directory.path());
}

/// The head of a webhook with an id.
fn hook(id: &str) -> String {
    format!(
        "POST /v1/webhooks/events/orders HTTP/1.1\r\ncontent-type: application/json\r\nx-github-delivery: {id}"
    )
}

/// The body of a webhook.
fn placed(number: usize) -> String {
    json!({"kind": "placed", "number": format!("w{number}")}).to_string()
}

#[test]
fn nothing_is_lost_or_doubled_on_postgres() {
    let directory = tempfile::tempdir().unwrap();
    let Some(postgres) = Postgres::for_test("nothing_is_lost_or_doubled") else {
        return;
    };
    survives(postgres.url(), directory.path());
}
