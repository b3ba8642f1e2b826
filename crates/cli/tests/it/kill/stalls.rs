//! Stalls: a process that stands still for longer than its leases, and a store that nobody can write to. What was
//! acknowledged goes on afterwards, and nothing is stuck.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use proofhouse_test_support::postgres::Postgres;
use serde_json::json;

use super::{
    Chance, Feed, PATIENCE, SETTLE, Served, begin_with, get, inputs, number_of, request, seed,
    write_manifests,
};

/// Tasks that are about to be let go of when a stall comes.
const TASKS: usize = 30;
/// Stalls of a short run: one of each kind.
const FEW: u64 = 3;

/// Keeps everybody from writing to the store.
fn lock(store: &str, time: Duration) {
    if store.starts_with("postgres") {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let connected = tokio_postgres::connect(store, tokio_postgres::NoTls);
            let (client, connection) = connected.await.unwrap();
            let connection = tokio::spawn(connection);
            let held = "BEGIN; LOCK TABLE tasks, leases, deliveries, events IN EXCLUSIVE MODE";
            client.batch_execute(held).await.unwrap();
            tokio::time::sleep(time).await;
            client.batch_execute("ROLLBACK").await.unwrap();
            drop(client);
            let _ = connection.await;
        });
        return;
    }
    let mut connection = rusqlite::Connection::open(store).unwrap();
    connection.busy_timeout(PATIENCE).unwrap();
    let held = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate);
    let held = held.unwrap();
    thread::sleep(time);
    drop(held);
}

impl Served {
    /// Stops the process where it is, and lets it go on after this time.
    fn freeze(&self, time: Duration) {
        let id = self.child.as_ref().unwrap().id().to_string();
        let signal = |name: &str| {
            let sent = Command::new("kill").args([name, &id]).status().unwrap();
            assert!(sent.success(), "{name} {id}");
        };
        signal("-STOP");
        thread::sleep(time);
        signal("-CONT");
    }
}

/// Says something to a task, until it is acknowledged.
fn say(served: &Served, task: &str, number: u64) {
    let head = format!(
        "POST /v1/tasks/{task}/messages HTTP/1.1\r\ncontent-type: application/json\r\nidempotency-key: m{number}"
    );
    let body = json!({"message": format!("message {number}")}).to_string();
    let began = Instant::now();
    loop {
        match request(served.api, &head, &body) {
            Some((200..300, _)) => return,
            Some((503 | 429, _)) | None => thread::sleep(Duration::from_millis(20)),
            Some((status, text)) => panic!("{status} {text}"),
        }
        assert!(began.elapsed() < PATIENCE, "{task} is not told {number}");
    }
}

fn goes_on(store: &str, directory: &Path) {
    let stalls = number_of("PROOFHOUSE_KILLS").unwrap_or(FEW);
    let seed = seed();
    println!("{stalls} stalls, PROOFHOUSE_KILL_SEED={seed}");
    let mut chance = Chance(seed);
    let feed = Feed::open();
    let manifests = write_manifests(directory, &feed);
    let mut served = Served::at(store, &manifests, "1s");
    served.start();
    let tasks: Vec<String> = (0..TASKS)
        .map(|_| begin_with(served.api, "idler"))
        .collect();
    for number in 0..stalls {
        for task in &tasks {
            say(&served, task, number);
        }
        // They are let go of two seconds after they have answered: somewhere in the middle of the stall.
        thread::sleep(Duration::from_millis(chance.below(2_500)));
        let time = Duration::from_millis(1_500 + chance.below(7_000));
        match number % 3 {
            0 => lock(store, time),
            1 => served.freeze(time),
            _ => {
                thread::scope(|scope| {
                    scope.spawn(|| lock(store, time));
                    thread::sleep(Duration::from_millis(chance.below(1_000)));
                    served.kill();
                });
                served.start();
            }
        }
    }
    for task in &tasks {
        say(&served, task, stalls);
    }
    let expected: Vec<String> = (0..=stalls)
        .map(|number| format!("message {number}"))
        .collect();
    let began = Instant::now();
    let mut stuck: Vec<&String> = tasks.iter().collect();
    let mut counts: BTreeMap<&String, BTreeMap<String, usize>> = BTreeMap::new();
    while !stuck.is_empty() && began.elapsed() < SETTLE {
        stuck.retain(|task| {
            let inputs = inputs(served.api, task);
            let is_whole = expected.iter().all(|message| inputs.contains_key(message));
            counts.insert(*task, inputs);
            let row = get(served.api, &format!("/v1/tasks/{task}")).unwrap_or_default();
            !is_whole || row["state"] != "idle"
        });
        thread::sleep(Duration::from_millis(200));
    }
    let twice = counts.values().flat_map(BTreeMap::values);
    let twice = twice.filter(|count| **count > 1).count();
    let lost = counts.values().map(|inputs| {
        let missing = expected.iter().filter(|one| !inputs.contains_key(*one));
        missing.count()
    });
    let lost: usize = lost.sum();
    println!(
        "{} messages over {stalls} stalls: {lost} lost, {twice} delivered twice, {} tasks stuck",
        expected.len() * tasks.len(),
        stuck.len()
    );
    assert_eq!(
        (lost, twice, stuck.len()),
        (0, 0, 0),
        "lost, twice, stuck: {stuck:?}"
    );
    assert!(get(served.api, "/v1/ready").is_some(), "it is ready");
    // Nobody holds what nobody works on.
    let began = Instant::now();
    loop {
        let (_, metrics) = request(served.api, "GET /v1/metrics HTTP/1.1", "").unwrap();
        let held = |line: &&str| line.starts_with("proofhouse_leases_without_worker ");
        let held = metrics.lines().find(held).unwrap();
        if held.ends_with(" 0") {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{held}");
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn nothing_is_stuck_after_stalls_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store.db").display().to_string();
    goes_on(&store, directory.path());
}

#[test]
fn nothing_is_stuck_after_stalls_on_postgres() {
    let directory = tempfile::tempdir().unwrap();
    let Some(postgres) = Postgres::for_test("nothing_is_stuck_after_stalls") else {
        return;
    };
    goes_on(postgres.url(), directory.path());
}
