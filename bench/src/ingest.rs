//! Taking events in: durable events per second through the store, beside bare batched inserts into the same file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proofhouse_store::model::{EventKind, NewEvent, RepeatRule, ToolRef};
use proofhouse_store::{SqliteOptions, Store};
use rusqlite::Connection;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{Options, figure, webhooks};

/// Callers at the same time, each with one event, as webhooks come in.
const CALLERS: usize = 256;

/// Rows in one transaction of the bare inserts.
const BATCH: usize = 100;

/// About as long as a small webhook.
const PAYLOAD_BYTES: usize = 1_000;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = directory.path().join("store.db");
    let store = Store::open_sqlite(SqliteOptions::file(&path));
    let store: Arc<Store> = Arc::new(runtime.block_on(store).map_err(|error| error.to_string())?);
    let (rounds, events) = if options.quick {
        (1, 2_000)
    } else {
        (7, 20_000)
    };
    let keys = Arc::new(AtomicU64::new(0));

    let mut ours = Vec::new();
    let mut peer = Vec::new();
    let mut waits = Vec::new();
    // In turn, so that what disturbs the machine disturbs both; the first round warms up.
    for round in 0..=rounds {
        let (taken, waited) = runtime.block_on(through_store(&store, events, &keys))?;
        let bare = bare(&path, events, &keys)?;
        if round > 0 {
            ours.push(rate(events, taken));
            peer.push(rate(events, bare));
            waits.extend(waited);
        }
    }
    runtime.block_on(store.close());
    let (ours, peer) = (median(&mut ours), median(&mut peer));
    figure::print("ingest-store", ours, peer, ours / peer, "events/s");
    waits.sort_unstable();
    let at = |share: usize| {
        waits
            .get(waits.len() * share / 100)
            .copied()
            .unwrap_or_default()
    };
    figure::say(&format!(
        "{CALLERS} callers with one event each: half within {:.1} ms, 99 of 100 within {:.1} ms",
        at(50).as_secs_f64() * 1e3,
        at(99).as_secs_f64() * 1e3
    ));
    webhooks::run(options, &runtime)
}

fn event(keys: &AtomicU64) -> NewEvent {
    NewEvent {
        source: "acme/tracker".to_owned(),
        tool: ToolRef::new("acme", "tracker"),
        name: None,
        kind: EventKind::Webhook,
        dedupe_key: Some(key(keys)),
        repeats: RepeatRule::Kept,
        headers: json!({"content-type": "application/json", "x-event": "opened"}).into(),
        payload: vec![b'x'; PAYLOAD_BYTES],
        target_task: None,
    }
}

/// A key as platforms make them: in no order. An odd factor visits every number once.
fn key(keys: &AtomicU64) -> String {
    let number = keys.fetch_add(1, Ordering::Relaxed);
    format!(
        "{:016x}-0000-4000-8000",
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    )
}

async fn through_store(
    store: &Arc<Store>,
    events: usize,
    keys: &Arc<AtomicU64>,
) -> Result<(Duration, Vec<Duration>), String> {
    let started = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (store, keys) = (Arc::clone(store), Arc::clone(keys));
            let count = events / CALLERS + usize::from(caller < events % CALLERS);
            tokio::spawn(async move {
                let mut waits = Vec::with_capacity(count);
                for _ in 0..count {
                    let asked = Instant::now();
                    store
                        .receive(vec![event(&keys)].into())
                        .await
                        .map_err(|error| error.to_string())?;
                    waits.push(asked.elapsed());
                }
                Ok::<_, String>(waits)
            })
        })
        .collect();
    let mut waits = Vec::with_capacity(events);
    for caller in callers {
        waits.extend(caller.await.map_err(|error| error.to_string())??);
    }
    Ok((started.elapsed(), waits))
}

/// The same rows into the same table, as quickly as a program without anything around it can.
fn bare(path: &Path, events: usize, keys: &AtomicU64) -> Result<Duration, String> {
    let insert = || -> rusqlite::Result<Duration> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let headers = json!({"content-type": "application/json", "x-event": "opened"}).to_string();
        let payload = vec![b'x'; PAYLOAD_BYTES];
        let started = Instant::now();
        let mut left = events;
        while left > 0 {
            let transaction = connection.transaction()?;
            {
                let mut statement = transaction.prepare_cached(
                    "INSERT INTO events (source, tool_namespace, tool, kind, dedupe_key, headers, payload, state, \
                     attempt, received_at, claim_until, claim_fence) \
                     VALUES ('acme/tracker', 'acme', 'tracker', 'webhook', ?1, ?2, ?3, 'received', 1, ?4, 0, 0)",
                )?;
                for _ in 0..left.min(BATCH) {
                    statement.execute((key(keys), &headers, &payload, 1_800_000_000_000_i64))?;
                }
            }
            transaction.commit()?;
            left = left.saturating_sub(BATCH);
        }
        Ok(started.elapsed())
    };
    insert().map_err(|error| error.to_string())
}

fn rate(events: usize, took: Duration) -> f64 {
    events as f64 / took.as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
