//! Stalls: a process that stands still for longer than its leases, a store that nobody can write to, a database that is
//! stopped and started again. What was acknowledged goes on afterwards, and nothing is stuck.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proofhouse_test_support::postgres::Postgres;
use proofhouse_test_support::process::signal;
use serde_json::json;

use super::{
    Chance, Feed, PATIENCE, SETTLE, Served, begin, begin_with, get, hook, inputs, number_of,
    placed, request, seed, write_manifests,
};

/// Tasks that are about to be let go of when a stall comes.
const TASKS: usize = 30;
/// Webhooks come at this pace, whatever goes wrong: 25 a second.
const PACE: Duration = Duration::from_millis(40);

/// What stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stall {
    /// Nobody can write to the store.
    Locked,
    /// A process stands still, for longer than its leases.
    Frozen,
    /// Nobody can write to the store, and a process is killed meanwhile.
    LockedAndKilled,
    /// The database is stopped, and started again after a while.
    DatabaseGone,
}

/// Those that an SQLite file can meet. On PostgreSQL there is one more, and several processes.
const ON_SQLITE: [Stall; 3] = [Stall::Locked, Stall::Frozen, Stall::LockedAndKilled];
const ON_POSTGRES: [Stall; 4] = [
    Stall::DatabaseGone,
    Stall::Locked,
    Stall::Frozen,
    Stall::LockedAndKilled,
];

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
        let id = self.child.as_ref().unwrap().id();
        signal(id, "-STOP");
        thread::sleep(time);
        signal(id, "-CONT");
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

/// Sends webhooks until it is told to stop, each to one of the processes after the other until one has acknowledged it, and
/// returns how many.
fn send_at_pace(doors: &[SocketAddr], stop: &AtomicBool) -> usize {
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        let (head, body) = (hook(&format!("d{sent}")), placed(sent));
        let began = Instant::now();
        for door in doors.iter().cycle().skip(sent % doors.len()) {
            match request(*door, &head, &body) {
                Some((200..300, _)) => break,
                Some((503 | 429, _)) | None => thread::sleep(Duration::from_millis(10)),
                Some((status, text)) => panic!("{status} {text}"),
            }
            assert!(began.elapsed() < PATIENCE, "webhook {sent} is not taken");
        }
        sent += 1;
        thread::sleep(PACE);
    }
    sent
}

/// One or more processes on a store, and the server of the store if it can be stopped.
struct Stalled {
    store: String,
    served: Vec<Served>,
    database: Option<Postgres>,
}

impl Stalled {
    /// Stalls once.
    fn strike(&mut self, stall: Stall, chance: &mut Chance) {
        let time = Duration::from_millis(1_500 + chance.below(7_000));
        let count = u64::try_from(self.served.len()).unwrap();
        let victim = usize::try_from(chance.below(count)).unwrap();
        match stall {
            // Longer than the store waits for a lock.
            Stall::Locked => lock(
                &self.store,
                time + Duration::from_millis(chance.below(5_500)),
            ),
            Stall::Frozen => self.served[victim].freeze(time),
            Stall::LockedAndKilled => {
                let (store, victim) = (self.store.as_str(), &mut self.served[victim]);
                let pause = Duration::from_millis(chance.below(1_000));
                thread::scope(|scope| {
                    scope.spawn(|| lock(store, time));
                    thread::sleep(pause);
                    victim.kill();
                });
                victim.start();
            }
            Stall::DatabaseGone => {
                let database = self.database.as_mut().unwrap();
                database.stop();
                thread::sleep(time / 2);
                database.start_again();
            }
        }
    }

    /// What tasks have got, and which of them are stuck: those that do not get everything, or go on working on nothing.
    fn settled(&self, expected: &BTreeMap<String, Vec<String>>) -> Settled {
        let api = self.served[0].api;
        let began = Instant::now();
        let mut stuck: Vec<String> = expected.keys().cloned().collect();
        let mut counts: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        while !stuck.is_empty() && began.elapsed() < SETTLE {
            stuck.retain(|task| {
                let inputs = inputs(api, task);
                let is_whole = expected[task].iter().all(|one| inputs.contains_key(one));
                counts.insert(task.clone(), inputs);
                let row = get(api, &format!("/v1/tasks/{task}")).unwrap_or_default();
                !is_whole || row["state"] != "idle"
            });
            thread::sleep(Duration::from_millis(200));
        }
        let twice = counts.values().flat_map(BTreeMap::values);
        let twice = twice.filter(|count| **count > 1).count();
        let lost = expected.iter().map(|(task, wanted)| {
            let inputs = &counts[task];
            wanted
                .iter()
                .filter(|one| !inputs.contains_key(*one))
                .count()
        });
        Settled {
            lost: lost.sum(),
            twice,
            stuck,
        }
    }
}

/// What became of everything that was acknowledged.
struct Settled {
    lost: usize,
    twice: usize,
    stuck: Vec<String>,
}

fn goes_on(mut world: Stalled, kinds: &[Stall]) {
    let few = u64::try_from(kinds.len()).unwrap();
    let stalls = number_of("PROOFHOUSE_KILLS").unwrap_or(few);
    let seed = seed();
    println!("{stalls} stalls, PROOFHOUSE_KILL_SEED={seed}");
    let mut chance = Chance(seed);
    for served in &mut world.served {
        served.start();
    }
    let api = world.served[0].api;
    let clerk = begin(api);
    let tasks: Vec<String> = (0..TASKS).map(|_| begin_with(api, "idler")).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let doors: Vec<SocketAddr> = world.served.iter().map(|served| served.hooks).collect();
    let ended = Arc::clone(&stop);
    let sender = thread::spawn(move || send_at_pace(&doors, &ended));
    for number in 0..stalls {
        let turn = usize::try_from(number).unwrap();
        for (at, task) in tasks.iter().enumerate() {
            say(&world.served[at % world.served.len()], task, number);
        }
        // They are let go of two seconds after they have answered: somewhere in the middle of the stall.
        thread::sleep(Duration::from_millis(chance.below(2_500)));
        world.strike(kinds[turn % kinds.len()], &mut chance);
    }
    for task in &tasks {
        say(&world.served[0], task, stalls);
    }
    stop.store(true, Ordering::Relaxed);
    let sent = sender.join().unwrap();
    let messages = (0..=stalls).map(|number| format!("message {number}"));
    let messages: Vec<String> = messages.collect();
    let mut expected: BTreeMap<String, Vec<String>> = tasks
        .into_iter()
        .map(|task| (task, messages.clone()))
        .collect();
    let webhooks = (0..sent).map(|number| format!("webhook w{number}"));
    expected.insert(clerk, webhooks.collect());
    let Settled { lost, twice, stuck } = world.settled(&expected);
    println!(
        "{} messages and {sent} webhooks over {stalls} stalls of {} processes: {lost} lost, {twice} delivered twice, {} tasks stuck",
        messages.len() * TASKS,
        world.served.len(),
        stuck.len()
    );
    assert_eq!(
        (lost, twice, stuck.len()),
        (0, 0, 0),
        "lost, twice, stuck: {stuck:?}"
    );
    assert!(sent > 0, "there was nothing to lose");
    for served in &world.served {
        nothing_is_held(served.api);
    }
}

/// A process is ready, and holds nothing that nobody works on.
fn nothing_is_held(api: SocketAddr) {
    assert!(get(api, "/v1/ready").is_some(), "it is not ready");
    let began = Instant::now();
    loop {
        let (_, metrics) = request(api, "GET /v1/metrics HTTP/1.1", "").unwrap();
        let held = |line: &&str| line.starts_with("proofhouse_leases_without_worker ");
        let held = metrics.lines().find(held).unwrap();
        if held.ends_with(" 0") {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{held}");
        thread::sleep(Duration::from_millis(200));
    }
}

/// So many processes on a store that stalls.
fn stalled(store: &str, directory: &Path, feed: &Feed, processes: usize) -> Stalled {
    let manifests = write_manifests(directory, feed);
    let served = (0..processes).map(|_| Served::at(store, &manifests, "1s"));
    Stalled {
        store: store.to_owned(),
        served: served.collect(),
        database: None,
    }
}

#[test]
fn nothing_is_stuck_after_stalls_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store.db").display().to_string();
    let feed = Feed::open();
    goes_on(stalled(&store, directory.path(), &feed, 1), &ON_SQLITE);
}

#[test]
fn nothing_is_stuck_after_stalls_on_postgres() {
    let directory = tempfile::tempdir().unwrap();
    let Some(postgres) = Postgres::private("nothing_is_stuck_after_stalls") else {
        return;
    };
    let feed = Feed::open();
    let mut world = stalled(postgres.url(), directory.path(), &feed, 2);
    world.database = Some(postgres);
    goes_on(world, &ON_POSTGRES);
}
