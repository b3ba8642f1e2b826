//! Streams that nobody says anything on: what a thousand of them cost the whole process, in parts of one core.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_server::api::{Api, ApiConfig, StreamLimits};
use proofhouse_server::engine::{Engine, ManifestSource, TaskRequest};
use proofhouse_server::listen::{self, ConnectionLimits, Listener};
use proofhouse_server::metrics::Metrics;
use proofhouse_store::{SqliteOptions, Store};
use proofhouse_wire::CancellationToken;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::work::{catalog, options, told};
use crate::{Options, figure, memory};

/// Streams at the same time, and tasks that they follow.
const STREAMS: usize = 1_000;
const TASKS: usize = 100;
/// What they may cost, in percent of a core.
const LIMIT: f64 = 2.0;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let runtime = tokio::runtime::Runtime::new().map_err(told)?;
    let time = Duration::from_secs(if options.quick { 3 } else { 30 });
    let percent = runtime.block_on(idle(time))?;
    let times = LIMIT / percent.max(1e-3);
    figure::print("streams-idle", percent, LIMIT, times, "%core");
    Ok(())
}

async fn idle(time: Duration) -> Result<f64, String> {
    let directory = tempfile::tempdir().map_err(told)?;
    let file = directory.path().join("store.db");
    let store = Store::open_sqlite(SqliteOptions::file(file)).await;
    let store = Arc::new(store.map_err(told)?);
    let source = ManifestSource::Fixed(catalog());
    let engine = Engine::open(Arc::clone(&store), source, options()?).await;
    let engine = Arc::new(engine.map_err(told)?);
    let mut tasks = Vec::with_capacity(TASKS);
    for _ in 0..TASKS {
        let request = TaskRequest {
            namespace: "bench".to_owned(),
            agent: "clerk".to_owned(),
            ..TaskRequest::default()
        };
        tasks.push(engine.start_task(request).await.map_err(told)?.id);
    }
    let socket = TcpListener::bind("127.0.0.1:0").await.map_err(told)?;
    let address = socket.local_addr().map_err(told)?;
    let room = 2 * STREAMS;
    let config = ApiConfig {
        open: true,
        streams: StreamLimits {
            all: room,
            of_peer: room,
        },
        rate: proofhouse_server::rate::RateQuota {
            burst: u32::MAX,
            per_second: 1e9,
        },
        ..ApiConfig::at(address)
    };
    let metrics = Arc::new(Metrics::default());
    let api = Api::new(Arc::clone(&engine), Arc::clone(&metrics), config);
    let listener = Listener {
        socket,
        tls: None,
        router: api.router(),
        limits: ConnectionLimits {
            all: room,
            of_peer: room,
        },
        essential: |_| false,
    };
    let stop = CancellationToken::new();
    let patience = Duration::from_secs(1);
    let serving = tokio::spawn(listen::serve(
        vec![listener],
        metrics,
        stop.clone(),
        patience,
    ));
    let mut streams = Vec::with_capacity(STREAMS);
    for task in tasks.iter().cycle().take(STREAMS) {
        let mut stream = TcpStream::connect(address).await.map_err(told)?;
        let head = format!("GET /v1/tasks/{task}/stream HTTP/1.1\r\nhost: {address}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.map_err(told)?;
        let mut answer = Vec::new();
        // The first event says what the task is doing; after that nothing comes.
        while !String::from_utf8_lossy(&answer).contains("event: state") {
            if stream.read_buf(&mut answer).await.map_err(told)? == 0 {
                return Err(String::from_utf8_lossy(&answer).into_owned());
            }
        }
        streams.push(stream);
    }
    let (began, used) = (Instant::now(), memory::cpu_time());
    tokio::time::sleep(time).await;
    let (took, used_now) = (began.elapsed(), memory::cpu_time());
    let (Some(used), Some(used_now)) = (used, used_now) else {
        return Err("the system does not tell how much time a process takes".to_owned());
    };
    drop(streams);
    stop.cancel();
    let _ = serving.await;
    engine.shutdown(Duration::from_secs(5)).await;
    store.close().await;
    let spent = used_now.saturating_sub(used);
    Ok(spent.as_secs_f64() / took.as_secs_f64() * 100.0)
}
