//! `proofhouse serve` on a disk that gets full: it refuses what it cannot keep, loses nothing that it said it had, and goes
//! on when there is room again.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use proofhouse_test_support::wait::until;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::support::served::{PATIENCE, Reply, Served, example, github_signature, try_send};

const SECRET: &str = "correct horse battery staple";
/// Senders of webhooks.
const SENDERS: usize = 4;
/// How long the disk stays full: longer than the tries of a turn that is to be kept, and than a lease.
const FULL: Duration = Duration::from_secs(10);

/// A disk that can be filled while a server writes to it.
trait Disk {
    /// Starts a server whose database is on it.
    fn serve(&self, directory: tempfile::TempDir, more: &[&str]) -> Served;
    fn fill(&self, served: &Served);
    fn make_room(&self, served: &Served);
}

/// The system lets the server write to no file, not even to its log.
struct NoFileMayGrow;

impl NoFileMayGrow {
    fn allow(served: &Served, bytes: Option<u64>) {
        let process = Pid::from_raw(served.process().try_into().unwrap());
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(process, Resource::Fsize, limit).unwrap();
    }
}

impl Disk for NoFileMayGrow {
    fn serve(&self, directory: tempfile::TempDir, more: &[&str]) -> Served {
        Served::start_in(directory, more)
    }

    fn fill(&self, served: &Served) {
        Self::allow(served, Some(0));
    }

    fn make_room(&self, served: &Served) {
        Self::allow(served, None);
    }
}

/// A small file system of the server's own, which something else fills.
struct SmallFileSystem;

/// Mounts a file system at its first argument, and becomes the program that the others name. There is room for the log of
/// the database, which is copied into it and begins anew at 32 MiB.
const MOUNT: &str =
    "mkdir -p \"$0\" && mount -t tmpfs -o size=64m,mode=700 none \"$0\" && exec \"$@\"";

impl SmallFileSystem {
    /// Whether this system lets a user have file systems of his own.
    fn is_possible() -> bool {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("disk");
        let tried = Command::new("unshare")
            .args(["-Urm", "sh", "-c", MOUNT])
            .arg(place)
            .arg("true")
            .output();
        tried.is_ok_and(|tried| tried.status.success())
    }

    /// The file that takes the room away, as this process sees it: the mount is not in its own tree.
    fn filler(served: &Served) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", served.process()));
        let inside = served.path("disk/filler");
        root.join(inside.strip_prefix("/").unwrap())
    }
}

impl Disk for SmallFileSystem {
    fn serve(&self, directory: tempfile::TempDir, more: &[&str]) -> Served {
        let place = directory.path().join("disk").display().to_string();
        let wrapper = ["unshare", "-Urm", "sh", "-c", MOUNT, &place];
        Served::start_under(&wrapper, "disk/store.db", directory, more)
    }

    fn fill(&self, served: &Served) {
        let mut filler = fs::File::create(Self::filler(served)).unwrap();
        for size in [1 << 20, 4_096, 1] {
            while filler.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn make_room(&self, served: &Served) {
        fs::remove_file(Self::filler(served)).unwrap();
    }
}

fn comment(number: usize) -> Value {
    json!({
        "action": "created",
        "issue": {"number": 7, "pull_request": {}},
        "comment": {"body": format!("w{number}"), "user": {"login": "ada"}},
        "repository": {"name": "mesh", "owner": {"login": "example"}, "private": false},
    })
}

fn told(number: usize) -> String {
    format!("ada commented on #7: w{number}")
}

/// How often each message became an input of the task.
fn inputs(served: &Served, task: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut from = 0;
    loop {
        let page = served.get(&format!("/v1/tasks/{task}/turns?from={from}&limit=200"));
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

/// The ids of all events that are stored.
fn stored(served: &Served) -> BTreeSet<i64> {
    let mut ids = BTreeSet::new();
    let mut before = String::new();
    loop {
        let page = served.get(&format!("/v1/events?limit=200{before}"));
        let events = page["events"].as_array().unwrap();
        ids.extend(events.iter().map(|event| event["id"].as_i64().unwrap()));
        match page["next"].as_i64() {
            Some(next) => before = format!("&before={next}"),
            None => return ids,
        }
    }
}

/// Nothing was kept, the sender is told when to come again, and nobody learns where the file is.
#[track_caller]
fn is_refused(reply: &Reply) {
    assert_eq!(reply.status, 503, "{reply:?}");
    let wait = reply.header("retry-after").parse::<u64>();
    assert!(wait.is_ok_and(|seconds| seconds >= 1), "{reply:?}");
    assert!(!reply.text.contains("store.db"), "{reply:?}");
}

/// Sends webhooks, each until it is taken, as a platform would. Returns the events that were acknowledged, by number.
fn send(
    hooks: std::net::SocketAddr,
    next: &AtomicUsize,
    refusals: &AtomicUsize,
    stop: &AtomicBool,
) -> BTreeMap<usize, i64> {
    let mut taken = BTreeMap::new();
    while !stop.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let body = comment(number).to_string();
        let signature = github_signature(SECRET, body.as_bytes());
        let head = format!(
            "POST /v1/webhooks/events/github-pr HTTP/1.1\r\nhost: {hooks}\r\ncontent-type: application/json\r\n\
             x-github-delivery: d{number}\r\nx-hub-signature-256: {signature}"
        );
        let began = Instant::now();
        loop {
            let reply = try_send(hooks, &head, body.as_bytes()).expect("an answer");
            if let 200 | 202 = reply.status {
                taken.insert(number, reply.json()["event"].as_i64().unwrap());
                break;
            }
            is_refused(&reply);
            refusals.fetch_add(1, Ordering::Relaxed);
            assert!(
                began.elapsed() < PATIENCE,
                "webhook {number} is never taken"
            );
            thread::sleep(Duration::from_millis(50));
        }
        thread::sleep(Duration::from_millis(10));
    }
    taken
}

fn goes_on(disk: &dyn Disk) {
    let directory = tempfile::tempdir().unwrap();
    let manifests = directory.path().join("manifests");
    fs::create_dir(&manifests).unwrap();
    fs::write(
        manifests.join("github.yaml"),
        example("events/github-pr.yaml"),
    )
    .unwrap();
    let operator = format!("settings: {{engineering/github-pr: {{hook_secret: '{SECRET}'}}}}\n");
    fs::write(directory.path().join("operator.yaml"), operator).unwrap();
    let served = disk.serve(directory, &["--lease", "1s", "--log", "warn"]);
    let task = served.begin("coder", None);
    let (next, refusals, stop) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let senders: Vec<_> = (0..SENDERS)
        .map(|_| {
            let (next, refusals, stop) =
                (Arc::clone(&next), Arc::clone(&refusals), Arc::clone(&stop));
            let hooks = served.hooks;
            thread::spawn(move || send(hooks, &next, &refusals, &stop))
        })
        .collect();
    until("first delivery", || {
        (inputs(&served, &task).len() > 5).then_some(())
    });

    disk.fill(&served);
    let ready = || served.ask_as("", "GET", "/v1/ready", None).status;
    until("full disk", || (ready() == 503).then_some(()));
    let full = Instant::now();
    let say = |key: &str| {
        let body = json!({"message": key}).to_string();
        let head = format!(
            "POST /v1/tasks/{task}/messages HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\nidempotency-key: {key}",
            served.api, served.key
        );
        Served::send(served.api, &head, body.as_bytes())
    };
    let before = refusals.load(Ordering::Relaxed);
    while full.elapsed() < FULL {
        is_refused(&served.github("github-pr", SECRET, "late", &comment(1_000_000)));
        is_refused(&say("late"));
        is_refused(&served.ask("POST", "/v1/tasks", Some(&json!({"agent": "coder"}))));
        assert_eq!(ready(), 503);
        assert_eq!(served.ask_as("", "GET", "/v1/health", None).status, 200);
        for path in ["/v1/events", "/v1/tasks", "/v1/starts", "/v1/manifests"] {
            served.get(path);
        }
        assert_eq!(served.get(&format!("/v1/tasks/{task}"))["id"], task);
        thread::sleep(Duration::from_millis(500));
    }
    assert!(refusals.load(Ordering::Relaxed) > before, "nobody sent");
    // What is acknowledged is there and stays there.
    let kept = stored(&served);

    disk.make_room(&served);
    until("readiness", || (ready() == 200).then_some(()));
    let late = served.github("github-pr", SECRET, "late", &comment(1_000_000));
    assert_eq!(late.status, 202, "{late:?}");
    assert!(matches!(say("late").status, 200..300));
    thread::sleep(Duration::from_secs(1));
    stop.store(true, Ordering::Relaxed);
    let mut taken: BTreeMap<usize, i64> = BTreeMap::new();
    for sender in senders {
        taken.extend(sender.join().unwrap());
    }
    taken.insert(1_000_000, late.json()["event"].as_i64().unwrap());

    // From this end: what was acknowledged is what is stored, nothing else, each once.
    let acknowledged: BTreeSet<i64> = taken.values().copied().collect();
    assert_eq!(acknowledged.len(), taken.len(), "two share an event");
    assert_eq!(stored(&served), acknowledged);
    assert!(
        kept.is_subset(&acknowledged),
        "something was kept and refused"
    );
    // From the other: each reached the task, once.
    let mut expected: BTreeSet<String> = taken.keys().map(|number| told(*number)).collect();
    expected.insert("late".to_owned());
    until("last delivery", || {
        let counts = inputs(&served, &task);
        let known: BTreeSet<String> = counts.into_keys().collect();
        expected.is_subset(&known).then_some(())
    });
    let counts = inputs(&served, &task);
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "twice: {twice:?}");
    assert_eq!(counts.into_keys().collect::<BTreeSet<_>>(), expected);
    assert_eq!(
        served.get("/v1/tasks")["tasks"].as_array().unwrap().len(),
        1
    );
    served.terminate();
    assert_eq!(served.ended().0, Some(0));
}

#[test]
fn nothing_is_lost_when_no_file_may_grow() {
    goes_on(&NoFileMayGrow);
}

#[test]
fn nothing_is_lost_on_a_file_system_that_is_full() {
    if !SmallFileSystem::is_possible() {
        let said = "SKIPPED: this system lets nobody mount a file system of his own, so that none gets full";
        // Not with `println!`, which is only heard when a test fails.
        let _ = writeln!(std::io::stderr(), "{said}");
        return;
    }
    goes_on(&SmallFileSystem);
}
