//! Several processes on one PostgreSQL: they share the work, and take over what another cannot do any more.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proofhouse_test_support::postgres::Postgres;

use super::{Feed, PATIENCE, Served, begin, get, hook, inputs, placed, request, write_manifests};

/// How long the work of a killed process may wait for another.
const MOVES_WITHIN: Duration = Duration::from_secs(30);
const TASKS: usize = 8;
const WEBHOOKS: usize = 40;

/// Who holds leases on tasks, according to the database.
fn owners(url: &str) -> BTreeSet<String> {
    use proofhouse_store::{PostgresOptions, PostgresStore, Store, model::LeaseKind};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let store = PostgresStore::open_postgres(PostgresOptions::url(url))
            .await
            .unwrap();
        let leases = store.leases(LeaseKind::Task).await.unwrap();
        store.close().await;
        leases.into_iter().map(|lease| lease.owner).collect()
    })
}

#[test]
fn two_processes_share_the_work_and_one_takes_over() {
    let directory = tempfile::tempdir().unwrap();
    let Some(postgres) = Postgres::for_test("two_processes_share_the_work") else {
        return;
    };
    let feed = Feed::open();
    let manifests = write_manifests(directory.path(), &feed);
    // The usual lease: what is shown is what users get.
    let mut one = Served::at(postgres.url(), &manifests, "15s");
    let mut other = Served::at(postgres.url(), &manifests, "15s");
    one.start();
    other.start();
    let tasks: Vec<String> = (0..TASKS)
        .map(|number| begin(if number % 2 == 0 { one.api } else { other.api }))
        .collect();
    let mut seen = BTreeSet::new();
    for number in 0..WEBHOOKS {
        let (head, body) = (hook(&format!("s{number}")), placed(number));
        let door = if number % 2 == 0 {
            one.hooks
        } else {
            other.hooks
        };
        let (status, body) = request(door, &head, &body).unwrap();
        assert!((200..300).contains(&status), "{status} {body}");
        if number % 5 == 0 {
            seen.extend(owners(postgres.url()));
        }
    }
    // The work is under way; one of them is gone for good.
    one.kill();
    let killed = Instant::now();
    let expected: Vec<String> = (0..WEBHOOKS)
        .map(|number| format!("webhook w{number}"))
        .collect();
    let mut last = Instant::now();
    let mut counts: Vec<BTreeMap<String, usize>> = Vec::new();
    while killed.elapsed() < MOVES_WITHIN + PATIENCE {
        counts = tasks.iter().map(|task| inputs(other.api, task)).collect();
        last = Instant::now();
        let whole = |counts: &BTreeMap<String, usize>| {
            expected.iter().all(|message| counts.contains_key(message))
        };
        if counts.iter().all(whole) {
            break;
        }
        seen.extend(owners(postgres.url()));
        thread::sleep(Duration::from_millis(250));
    }
    let took = last.duration_since(killed);
    println!(
        "{} owners; everything was delivered {} ms after the kill",
        seen.len(),
        took.as_millis()
    );
    for (task, counts) in tasks.iter().zip(&counts) {
        arrived_once(task, counts, &expected);
    }
    assert!(seen.len() >= 2, "only one process worked: {seen:?}");
}

fn arrived_once(task: &str, counts: &BTreeMap<String, usize>, expected: &[String]) {
    let lost = expected
        .iter()
        .filter(|message| !counts.contains_key(*message))
        .count();
    let twice = counts.values().filter(|count| **count > 1).count();
    assert_eq!((lost, twice), (0, 0), "{task}: lost and twice");
}

/// A wire to a server that can be cut: nothing gets through then, and nobody is told.
struct Wire {
    port: u16,
    cut: Arc<AtomicBool>,
}

impl Wire {
    fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicBool::new(false));
        let is_cut = Arc::clone(&cut);
        // It ends with the test program.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                for (from, to) in [
                    (client.try_clone().unwrap(), server.try_clone().unwrap()),
                    (server, client),
                ] {
                    let is_cut = Arc::clone(&is_cut);
                    thread::spawn(move || pass(from, to, &is_cut));
                }
            }
        });
        Self { port, cut }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if is_cut.load(Ordering::SeqCst) {
            // What is lost stays lost: this connection never works again, but it does not look closed either.
            while is_cut.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(20));
            }
            break;
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
}

/// The port in an address of PostgreSQL.
fn port_of(url: &str) -> u16 {
    let port = url.rsplit_once(':').unwrap().1;
    let digits: String = port.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn a_process_that_is_cut_off_is_replaced_and_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let Some(postgres) = Postgres::for_test("a_process_that_is_cut_off") else {
        return;
    };
    let port = port_of(postgres.url());
    let wire = Wire::to(port);
    let url = postgres
        .url()
        .replace(&format!(":{port}"), &format!(":{}", wire.port));
    let feed = Feed::open();
    let manifests = write_manifests(directory.path(), &feed);
    let mut near = Served::at(postgres.url(), &manifests, "3s");
    let mut far = Served::at(&url, &manifests, "3s");
    near.start();
    far.start();
    // Those of the one that is cut off are the ones that have to move.
    let tasks: Vec<String> = (0..4).map(|_| begin(far.api)).collect();
    let mut taken = Vec::new();
    let mut send = |served: &Served, number: usize| {
        let head = hook(&format!("p{number}"));
        let answer = request(served.hooks, &head, &placed(number));
        if matches!(answer, Some((200..300, _))) {
            taken.push(format!("webhook w{number}"));
        }
        answer.map(|(status, _)| status)
    };
    for number in 0..20 {
        let served = if number % 2 == 0 { &near } else { &far };
        assert_eq!(send(served, number), Some(202));
    }
    wire.cut.store(true, Ordering::SeqCst);
    let cut = Instant::now();
    // The one that cannot keep anything says so; the sender goes on, with the other.
    assert_eq!(send(&far, 20), Some(503));
    assert!(get(far.api, "/v1/ready").is_none(), "it is not ready");
    for number in 20..30 {
        assert_eq!(send(&near, number), Some(202));
    }
    let whole = |expected: &[String]| {
        let begun = Instant::now();
        loop {
            let counts: Vec<_> = tasks.iter().map(|task| inputs(near.api, task)).collect();
            let is_whole = |counts: &BTreeMap<String, usize>| {
                expected.iter().all(|message| counts.contains_key(message))
            };
            if counts.iter().all(is_whole) || begun.elapsed() > MOVES_WITHIN + PATIENCE {
                return counts;
            }
            thread::sleep(Duration::from_millis(250));
        }
    };
    let expected: Vec<String> = (0..30).map(|number| format!("webhook w{number}")).collect();
    let counts = whole(&expected);
    println!(
        "{} ms after the cut all was delivered",
        cut.elapsed().as_millis()
    );
    for (task, counts) in tasks.iter().zip(&counts) {
        arrived_once(task, counts, &expected);
    }
    // Whole again: what it had in its hands is another's now, and it takes part as before.
    wire.cut.store(false, Ordering::SeqCst);
    let healed = Instant::now();
    while get(far.api, "/v1/ready").is_none() {
        assert!(healed.elapsed() < PATIENCE, "it does not come back");
        thread::sleep(Duration::from_millis(100));
    }
    for number in 30..40 {
        let served = if number % 2 == 0 { &near } else { &far };
        assert_eq!(send(served, number), Some(202));
    }
    let expected: Vec<String> = (0..40).map(|number| format!("webhook w{number}")).collect();
    assert_eq!(taken.len(), expected.len());
    let counts = whole(&expected);
    for (task, counts) in tasks.iter().zip(&counts) {
        arrived_once(task, counts, &expected);
    }
}
