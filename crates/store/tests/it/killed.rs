//! A process that is killed has stored everything that it was told is stored, and half of nothing.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use proofhouse_store::model::{
    AppendTurns, EventKind, LeaseKind, NewEvent, NewTask, NewTurn, ReceiveOutcome, ToolRef,
};
use proofhouse_store::{SqliteOptions, Store};
use serde_json::json;

/// How often the process is killed.
const KILLS: usize = 8;

/// Tells the process that is killed where the file is.
const FILE: &str = "PROOFHOUSE_STORE_KILLED_FILE";

fn event(key: &str) -> NewEvent {
    NewEvent {
        source: "hooks".to_owned(),
        tool: ToolRef::new("acme", "tracker"),
        name: None,
        kind: EventKind::Webhook,
        repeats: Default::default(),
        dedupe_key: Some(key.to_owned()),
        headers: json!({}).into(),
        payload: vec![b'x'; 2_000],
        target_task: None,
    }
}

fn task() -> NewTask {
    NewTask {
        id: "t1".to_owned(),
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

async fn open(path: &Path) -> Arc<Store> {
    let store = Store::open_sqlite(SqliteOptions::file(path)).await;
    Arc::new(store.expect("the store opens"))
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    let said = writeln!(output, "{line}").and_then(|()| output.flush());
    said.expect("somebody listens");
}

/// Not a test of its own: it is what the test below starts and kills.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the other test"]
async fn writes_until_it_is_killed() {
    #[expect(clippy::disallowed_methods, reason = "the test's own setting")]
    let Some(path) = std::env::var_os(FILE).map(PathBuf::from) else {
        return;
    };
    let store = open(&path).await;
    let process = std::process::id();
    for writer in 0..6 {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for number in 0.. {
                let key = format!("{process}-{writer}-{number}");
                store.receive(vec![event(&key)].into()).await.unwrap();
                say(&format!("event {key}"));
            }
        });
    }
    let lease = store.acquire(LeaseKind::Task, "t1", "killed", 0).await;
    let held = lease.unwrap().expect("nobody lives to hold it").held();
    loop {
        let seq = store.task("t1").await.unwrap().next_seq;
        let turns = (0..3).map(|part| NewTurn {
            kind: "note".to_owned(),
            body: json!([seq, part]),
        });
        let step = AppendTurns {
            task: "t1".to_owned(),
            held: held.clone(),
            expected_seq: seq,
            turns: turns.collect(),
            allow: Vec::new(),
            from: Vec::new(),
            state: None,
            delivered: None,
        };
        store.append(step).await.unwrap();
        say(&format!("turns {}", seq + 3));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_survives_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.create_task(task()).await.unwrap();
    store.close().await;
    let mut answered = Vec::new();
    let mut turns = 0;
    for kill in 0..KILLS {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "killed::writes_until_it_is_killed",
                "--ignored",
                "--nocapture",
            ])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        // Killed in the middle of it, at another place each time; then all that it had said is read.
        let mut said: Vec<String> = lines
            .by_ref()
            .take(40 + kill * 13)
            .map(|line| line.unwrap())
            .collect();
        process.kill().unwrap();
        process.wait().unwrap();
        said.extend(lines.map_while(Result::ok));
        for line in said {
            match line.split_once(' ') {
                Some(("event", key)) => answered.push(key.to_owned()),
                Some(("turns", count)) => turns = turns.max(count.parse::<i64>().unwrap_or(0)),
                _ => {}
            }
        }
    }
    assert!(
        answered.len() > KILLS * 10 && turns > 0,
        "{} events, {turns} turns",
        answered.len()
    );

    let store = open(&path).await;
    let before = store.stats().await.unwrap().unrouted_events;
    assert!(before >= i64::try_from(answered.len()).unwrap());
    for key in &answered {
        let again = store.receive(vec![event(key)].into()).await.unwrap();
        assert!(
            matches!(again[..], [ReceiveOutcome::Duplicate(_)]),
            "{key} was answered and is lost"
        );
    }
    assert_eq!(store.stats().await.unwrap().unrouted_events, before);
    let task = store.task("t1").await.unwrap();
    assert!(
        task.next_seq >= turns,
        "{turns} turns were answered, {} are there",
        task.next_seq
    );
    let mut there = 0;
    loop {
        let page = store.turns("t1", there, 1000).await.unwrap();
        let Some(last) = page.last() else { break };
        there = last.seq + 1;
    }
    assert_eq!(
        (there, there % 3),
        (task.next_seq, 0),
        "half a step is there"
    );
}
