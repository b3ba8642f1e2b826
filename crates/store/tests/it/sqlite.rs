//! What only SQLite can meet: groups of writes, a full disk, a locked file, a file that is gone or no database.

use std::collections::HashSet;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::future::join_all;
use proofhouse_store::model::{EventKind, NewEvent, NewTask, ReceiveOutcome, TaskFilter, ToolRef};
use proofhouse_store::{Result, SqliteOptions, Store, StoreError};
use serde_json::json;

fn task(id: &str) -> NewTask {
    NewTask {
        id: id.to_owned(),
        agent_namespace: "acme".to_owned(),
        agent_name: "helper".to_owned(),
        model: None,
        user_id: "u1".to_owned(),
        user_email: None,
        params: json!({}),
        origin: json!({}),
        interests: Vec::new(),
        sealed: Vec::new(),
        polls: Vec::new(),
        first: None,
    }
}

fn event(key: &str, bytes: usize) -> NewEvent {
    NewEvent {
        source: "hooks".to_owned(),
        tool: ToolRef::new("acme", "tracker"),
        name: None,
        kind: EventKind::Webhook,
        repeats: Default::default(),
        dedupe_key: Some(key.to_owned()),
        headers: json!({}).into(),
        payload: vec![b'x'; bytes],
        target_task: None,
    }
}

async fn open(path: &Path) -> Arc<Store> {
    Arc::new(
        Store::open_sqlite(SqliteOptions::file(path))
            .await
            .expect("the store opens"),
    )
}

#[track_caller]
fn unavailable<T: std::fmt::Debug>(outcome: &Result<T>) {
    assert!(
        matches!(outcome, Err(StoreError::Unavailable(_))),
        "{outcome:?}"
    );
}

/// How many commits the write-ahead log of a database holds: frames that say how large the database is after them.
fn commits(database: &Path) -> usize {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    let log = database.with_extension("db-wal");
    #[expect(clippy::disallowed_methods, reason = "a small file of the test's own")]
    let log = std::fs::read(log).expect("there is a log");
    let frames = log.get(HEADER..).unwrap_or_default().chunks_exact(FRAME);
    // Frames of an earlier round are overwritten from the start and have other salts.
    let salts = &log[16..24];
    frames
        .filter(|frame| &frame[8..16] == salts && frame[4..8] != [0; 4])
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_wait_are_committed_together() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.create_task(task("taken")).await.unwrap();
    // Somebody else writes, so that the writer waits while commands arrive.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = commits(&path);
    let names: Vec<_> = (0..100)
        .map(|number| {
            if number % 10 == 3 {
                "taken".to_owned()
            } else {
                format!("t{number}")
            }
        })
        .collect();
    let mut all = Box::pin(join_all(
        names.iter().map(|name| store.create_task(task(name))),
    ));
    assert!(
        all.as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending(),
        "nobody is answered before the commit"
    );
    other.execute_batch("ROLLBACK").unwrap();
    let outcomes = all.await;
    for (name, outcome) in names.iter().zip(outcomes) {
        match outcome {
            Ok(made) => assert_eq!(made.id, *name),
            Err(StoreError::Conflict(_)) => assert_eq!(name, "taken"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
    let made = store.stats().await.unwrap().tasks["idle"];
    assert_eq!(made, 91, "one that fails undoes nothing of the others");
    let commits = commits(&path) - before;
    assert!(
        (1..50).contains(&commits),
        "{commits} commits for 100 commands"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let small = SqliteOptions {
        max_bytes: Some(1_000_000),
        ..SqliteOptions::file(&path)
    };
    let store = Arc::new(Store::open_sqlite(small).await.expect("the store opens"));
    // Large and small ones at once, until nothing goes in any more.
    let mut stored = HashSet::new();
    let mut refused = 0;
    for round in 0..10 {
        let outcomes = join_all((0..20).map(|number| {
            let (store, key) = (Arc::clone(&store), format!("{round}-{number}"));
            async move {
                let bytes = if number % 3 == 0 { 40_000 } else { 100 };
                (
                    key.clone(),
                    store.receive(vec![event(&key, bytes)].into()).await,
                )
            }
        }))
        .await;
        for (key, outcome) in outcomes {
            match outcome {
                Ok(_) => assert!(stored.insert(key)),
                Err(StoreError::Unavailable(message)) => {
                    assert!(message.contains("full"), "{message}");
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(
        refused > 0 && !stored.is_empty(),
        "{refused} refused, {} stored",
        stored.len()
    );
    unavailable(&store.receive(vec![event("much", 2_000_000)].into()).await);
    // It can still be read, and it goes on once there is room.
    let count = i64::try_from(stored.len()).unwrap();
    assert_eq!(store.stats().await.unwrap().unrouted_events, count);
    store.close().await;
    let store = open(&path).await;
    for key in &stored {
        let again = store.receive(vec![event(key, 10)].into()).await.unwrap();
        assert!(
            matches!(again[..], [ReceiveOutcome::Duplicate(_)]),
            "{key} was answered and is not there"
        );
    }
    assert_eq!(store.stats().await.unwrap().unrouted_events, count);
    store
        .receive(vec![event("much", 2_000_000)].into())
        .await
        .unwrap();
    store.health().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_file_is_waited_for_and_then_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.create_task(task("refused")).await }
    });
    let outcome = tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .expect("in bounded time")
        .unwrap();
    unavailable(&outcome);
    // Reading goes on meanwhile.
    assert!(
        store
            .tasks(TaskFilter {
                limit: 1,
                ..TaskFilter::default()
            })
            .await
            .unwrap()
            .is_empty()
    );
    other.execute_batch("ROLLBACK").unwrap();
    store.create_task(task("fine")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_gone_takes_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.create_task(task("t1")).await.unwrap();
    let aside = directory.path().join("aside.db");
    std::fs::rename(&path, &aside).unwrap();
    unavailable(&store.create_task(task("t2")).await);
    unavailable(&store.health().await);
    // Another file at its place is not ours either.
    std::fs::write(&path, "").unwrap();
    unavailable(&store.create_task(task("t3")).await);
    // What was refused was not done, as is seen when the file is back.
    std::fs::rename(&aside, &path).unwrap();
    store.create_task(task("t4")).await.unwrap();
    let all = TaskFilter {
        limit: 10,
        ..TaskFilter::default()
    };
    let tasks = store.tasks(all).await.unwrap();
    let mut ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["t1", "t4"]);
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_stored_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.create_task(task("t1")).await.unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", entry.file_name());
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    std::fs::write(
        &text,
        "not a database at all, but long enough to look at\n".repeat(100),
    )
    .unwrap();
    let outcome = Store::open_sqlite(SqliteOptions::file(&text)).await;
    assert!(
        matches!(outcome, Err(StoreError::Corrupt(_))),
        "{outcome:?}"
    );
    let nowhere = directory.path().join("no/such/directory/store.db");
    unavailable(&Store::open_sqlite(SqliteOptions::file(nowhere)).await);
    unavailable(&Store::open_sqlite(SqliteOptions::file(directory.path())).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_goes_away_breaks_nothing() {
    let store = Arc::new(Store::open_sqlite(SqliteOptions::memory()).await.unwrap());
    let callers: Vec<_> = (0..50)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.create_task(task(&format!("t{number}"))).await })
        })
        .collect();
    for caller in &callers[..25] {
        caller.abort();
    }
    for caller in callers {
        if let Ok(outcome) = caller.await {
            outcome.unwrap();
        }
    }
    // A store in memory reads what it wrote, and whole tasks only.
    assert!(store.stats().await.unwrap().tasks["idle"] >= 25);
    store.create_task(task("last")).await.unwrap();
    store.close().await;
}
