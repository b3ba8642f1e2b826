//! Working off a backlog: tasks per second through the engine, with a model that answers at once, beside an ideal loop that
//! does the same writes to the same kind of store; on SQLite and on PostgreSQL.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_agent::model::{Model, ModelError, ModelReply, ModelRequest, ModelSink};
use proofhouse_agent::task::Host;
use proofhouse_manifest::{Bundle, Catalog};
use proofhouse_server::engine::{Engine, EngineOptions, ManifestSource};
use proofhouse_store::model::{
    AppendTurns, ClaimedTask, DirectDelivery, NewTask, NewTurn, TaskState, TurnRecord, WakeRules,
};
use proofhouse_store::{PostgresOptions, SqliteOptions, Store};
use proofhouse_tools::http::{EgressPolicy, HttpClient};
use proofhouse_tools::runtime::{Environment, Runtimes, ToolLimits};
use proofhouse_wire::CancellationToken;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{Options, figure, memory};

/// Tasks that work at the same time, with us and in the ideal loop.
const WORKERS: usize = 32;
/// Tasks that are leased at once.
const BATCH: usize = 64;
const LEASE_MS: i64 = 15_000;

const MANIFESTS: &str = r#"
kind: commonagents.info/v1beta2/agent
namespace: bench
name: clerk
description: Answers.
prompt: You answer.
"#;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let runtime = tokio::runtime::Runtime::new().map_err(told)?;
    let (rounds, tasks) = if options.quick { (1, 300) } else { (3, 5_000) };
    let directory = tempfile::tempdir().map_err(told)?;
    let sqlite = async |name: String| {
        let file = directory.path().join(name);
        Store::open_sqlite(SqliteOptions::file(file))
            .await
            .map_err(told)
    };
    measure("work", &runtime, rounds, tasks, sqlite)?;
    let Some(server) = PrivatePostgres::start(directory.path())? else {
        figure::say("there is no PostgreSQL, so work-postgres is not measured");
        return Ok(());
    };
    let postgres = async |name: String| {
        let mut options = PostgresOptions::url(&server.url);
        options.schema = Some(name);
        Store::open_postgres(options).await.map_err(told)
    };
    measure("work-postgres", &runtime, rounds, tasks, postgres)
}

pub(crate) fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn measure(
    name: &str,
    runtime: &tokio::runtime::Runtime,
    rounds: usize,
    tasks: usize,
    open: impl AsyncFn(String) -> Result<Store, String>,
) -> Result<(), String> {
    let (mut ours, mut peer, mut grown) = (Vec::new(), Vec::new(), Vec::new());
    // In turn, so that what disturbs the machine disturbs both; the first round warms up.
    for round in 0..=rounds {
        runtime.block_on(async {
            let store = Arc::new(open(format!("ours_{round}")).await?);
            backlog(&store, tasks).await?;
            let before = memory::resident().unwrap_or_default();
            memory::forget_peak();
            let rate = through_engine(&store, tasks).await?;
            let more = memory::peak().unwrap_or_default().saturating_sub(before);
            let turns = store.turns("task-0", 0, 100).await.map_err(told)?;
            store.close().await;
            let store = Arc::new(open(format!("peer_{round}")).await?);
            backlog(&store, tasks).await?;
            let ideal = ideal(&store, tasks, &turns).await?;
            store.close().await;
            if round > 0 {
                ours.push(rate);
                peer.push(ideal);
                grown.push(more);
            }
            Ok::<(), String>(())
        })?;
    }
    let (ours, peer) = (median(&mut ours), median(&mut peer));
    figure::print(name, ours, peer, ours / peer, "tasks/s");
    let most = grown.into_iter().max().unwrap_or_default() >> 20;
    figure::say(&format!("{tasks} tasks took {most} MB more at the most"));
    Ok(())
}

/// Tasks that wait to be worked on.
async fn backlog(store: &Arc<Store>, tasks: usize) -> Result<(), String> {
    let mut writing = JoinSet::new();
    for number in 0..tasks {
        let store = Arc::clone(store);
        let task = NewTask {
            id: format!("task-{number}"),
            agent_namespace: "bench".to_owned(),
            agent_name: "clerk".to_owned(),
            model: None,
            user_id: String::new(),
            user_email: None,
            params: json!({}),
            origin: json!({"by": "bench"}),
            interests: Vec::new(),
            sealed: Vec::new(),
            polls: Vec::new(),
            first: Some(DirectDelivery {
                key: Some("first".to_owned()),
                name: "message".to_owned(),
                body: json!({"message": format!("Task number {number}"), "parameters": {}}),
                same: Vec::new(),
            }),
        };
        writing.spawn(async move { store.create_task(task).await.map(drop) });
        if writing.len() >= 256
            && let Some(written) = writing.join_next().await
        {
            written.map_err(told)?.map_err(told)?;
        }
    }
    while let Some(written) = writing.join_next().await {
        written.map_err(told)?.map_err(told)?;
    }
    Ok(())
}

/// Answers at once.
struct Instantly;

impl Model for Instantly {
    fn name(&self) -> &str {
        "instantly"
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: &'a mut dyn ModelSink,
        _: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        Box::pin(async {
            Ok(ModelReply {
                text: "This is what there is to say.".to_owned(),
                model: "instantly".to_owned(),
                ..ModelReply::default()
            })
        })
    }
}

pub(crate) fn options() -> Result<EngineOptions, String> {
    let limits = ToolLimits::default();
    let egress = EgressPolicy::default;
    let client = HttpClient::new(&limits, egress()).map_err(told)?;
    let runtimes = Runtimes::new(&limits, egress()).map_err(told)?;
    let environment = Environment::new(json!({}), || "2026-01-01T00:00:00Z".to_owned());
    let known = environment.clone();
    let host = move |catalog: Catalog| {
        let (runtimes, limits) = (runtimes.clone(), limits.clone());
        Host::new(
            catalog,
            runtimes,
            limits,
            known.clone(),
            Arc::new(Instantly),
        )
    };
    let mut options = EngineOptions::new(Arc::new(host), environment, Arc::new(client));
    options.workers = WORKERS;
    Ok(options)
}

/// An agent that answers.
pub(crate) fn catalog() -> Catalog {
    let (bundle, _) = Bundle::read(MANIFESTS);
    let mut catalog = Catalog::default();
    catalog.add(&bundle);
    catalog
}

/// How many tasks a second the engine works off.
async fn through_engine(store: &Arc<Store>, tasks: usize) -> Result<f64, String> {
    let source = ManifestSource::Fixed(catalog());
    let started = Instant::now();
    let engine = Engine::open(Arc::clone(store), source, options()?).await;
    let engine = engine.map_err(told)?;
    let all = i64::try_from(tasks).map_err(told)?;
    let took = loop {
        let stats = store.stats().await.map_err(told)?;
        let idle = stats.tasks.get("idle").copied().unwrap_or_default();
        if stats.pending_deliveries == 0 && idle == all {
            break started.elapsed();
        }
        if started.elapsed() > Duration::from_secs(600) {
            return Err(format!("the tasks are not worked off: {stats:?}"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    engine.shutdown(Duration::from_secs(10)).await;
    Ok(rate(tasks, took))
}

/// How many tasks a second a loop works off that knows what to write.
async fn ideal(store: &Arc<Store>, tasks: usize, turns: &[TurnRecord]) -> Result<f64, String> {
    let turns: Arc<[NewTurn]> = turns
        .iter()
        .map(|turn| NewTurn {
            kind: turn.kind.clone(),
            body: turn.body.clone(),
        })
        .collect();
    let wake = WakeRules {
        waiting: true,
        interrupted: true,
    };
    let started = Instant::now();
    let mut working: JoinSet<Result<(), String>> = JoinSet::new();
    let mut left = tasks;
    while left > 0 {
        let claimed = store.claim_tasks("ideal", LEASE_MS, wake, BATCH.min(left));
        let claimed = claimed.await.map_err(told)?;
        left -= claimed.len();
        for task in claimed {
            if working.len() >= WORKERS
                && let Some(done) = working.join_next().await
            {
                done.map_err(told)??;
            }
            working.spawn(write_turns(Arc::clone(store), task, Arc::clone(&turns)));
        }
    }
    while let Some(done) = working.join_next().await {
        done.map_err(told)??;
    }
    Ok(rate(tasks, started.elapsed()))
}

/// The writes that a task is: a transaction for each turn, and the end of the lease.
async fn write_turns(
    store: Arc<Store>,
    claimed: ClaimedTask,
    turns: Arc<[NewTurn]>,
) -> Result<(), String> {
    let held = claimed.lease.held();
    let last = turns.len().saturating_sub(1);
    for (at, turn) in turns.iter().enumerate() {
        let state = if at == last {
            TaskState::Idle
        } else {
            TaskState::Running
        };
        let append = AppendTurns {
            task: claimed.task.id.clone(),
            held: held.clone(),
            expected_seq: i64::try_from(at).map_err(told)?,
            turns: vec![turn.clone()],
            allow: Vec::new(),
            from: Vec::new(),
            state: Some((state, None)),
            delivered: claimed
                .next
                .as_ref()
                .filter(|_| at == 0)
                .map(|next| next.id),
        };
        store.append(append).await.map_err(told)?;
    }
    store.release(held).await.map_err(told)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of tasks are small")]
pub(crate) fn rate(tasks: usize, took: Duration) -> f64 {
    tasks as f64 / took.as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// A server of `scripts/postgres`, which ends when its standard input is closed.
pub(crate) struct PrivatePostgres {
    pub(crate) url: String,
    _server: Child,
}

impl PrivatePostgres {
    /// Starts one, unless PostgreSQL is not installed.
    pub(crate) fn start(directory: &Path) -> Result<Option<Self>, String> {
        let started = Command::new("scripts/postgres")
            .arg(directory.join("postgres"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut server) = started else {
            return Ok(None);
        };
        let mut url = String::new();
        if let Some(output) = server.stdout.take() {
            BufReader::new(output).read_line(&mut url).map_err(told)?;
        }
        if url.trim().is_empty() {
            let _ = server.wait();
            return Ok(None);
        }
        Ok(Some(Self {
            url: url.trim().to_owned(),
            _server: server,
        }))
    }
}
