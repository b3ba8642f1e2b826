//! Agents: what a task adds to a bare call of its model, and what tasks cost that wait.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use proofhouse_agent::model::{
    self, Model, ModelConfig, ModelError, ModelReply, ModelRequest, ModelSink,
};
use proofhouse_agent::task::{Host, Task, TaskInput, TaskOptions};
use proofhouse_manifest::interpolate::Sealed;
use proofhouse_manifest::{Bundle, Catalog};
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{Environment, Runtimes, ToolLimits};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{Options, figure, mcp_server, memory};

/// Messages to one task before the next begins: a conversation of usual length.
const MESSAGES: usize = 8;
/// What a turn may cost beside its model.
const OVERHEAD_LIMIT_US: f64 = 1_000.0;
/// Tasks that wait at the same time, and what they may hold together.
const IDLE_TASKS: usize = 1_000;
const IDLE_LIMIT_MB: f64 = 50.0;

const MANIFESTS: &str = r#"
kind: commonagents.info/v1beta2/agent
namespace: bench
name: clerk
description: Greets.
prompt: You greet people. It is {now}.
capabilities:
  greeter:
    bindings: {by: context.user.id}
    before: [{assert: "size(input.name) > 0"}]
---
kind: commonagents.info/v1beta2/tool
namespace: bench
name: greeter
description: Greets.
actions:
  - name: greet
    description: Greets someone.
    parameters: {properties: {name: {type: string}, by: {type: string}}}
    execute: {cel: {expression: "{'greeting': 'hello ' + input.name, 'by': input.by}"}}
"#;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    // A runtime of its own, so that the provider's work is not counted among the tasks'.
    let serving = Runtime::new().map_err(|error| error.to_string())?;
    let address = serving.block_on(serve())?;
    runtime.block_on(turns(options, address, false))?;
    runtime.block_on(turns(options, address, true))?;
    runtime.block_on(idle(address))?;
    serving.shutdown_background();
    Ok(())
}

/// A provider that has the function called when it is asked to greet, and otherwise says the same.
async fn serve() -> Result<SocketAddr, String> {
    let handler = |body: Bytes| async move {
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let last = request["messages"].as_array().and_then(|list| list.last());
        let greets = last.is_some_and(|message| message["content"] == "greet");
        let message = if greets {
            json!({"role": "assistant", "content": null, "tool_calls": [{
                "id": "call-1",
                "type": "function",
                "function": {"name": "greeter", "arguments": "{\"name\": \"Ada\"}"},
            }]})
        } else {
            json!({"role": "assistant", "content": "Hello, and welcome."})
        };
        let reason = if greets { "tool_calls" } else { "stop" };
        let answer = json!({
            "model": "bench",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 50, "completion_tokens": 5},
        });
        ([(CONTENT_TYPE, "application/json")], answer.to_string())
    };
    let router = axum::Router::new().route("/chat/completions", axum::routing::post(handler));
    mcp_server::serve(router).await
}

/// A model that knows how long its calls took.
struct Timed {
    model: Arc<dyn Model>,
    spent: Mutex<Duration>,
}

impl Timed {
    fn take(&self) -> Duration {
        std::mem::take(&mut lock(&self.spent))
    }
}

impl Model for Timed {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn is_simulation(&self) -> bool {
        self.model.is_simulation()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        cancel: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        Box::pin(async move {
            let started = Instant::now();
            let result = self.model.complete(request, events, cancel).await;
            let took = started.elapsed();
            *lock(&self.spent) += took;
            result
        })
    }
}

fn host(model: Arc<dyn Model>) -> Result<Host, String> {
    let (bundle, findings) = Bundle::read(MANIFESTS);
    if let Some(finding) = findings.first() {
        return Err(finding.message.clone());
    }
    let mut catalog = Catalog::default();
    catalog.add(&bundle);
    let limits = ToolLimits::default();
    let runtimes = Runtimes::new(&limits, EgressPolicy::default());
    let runtimes = runtimes.map_err(|error| error.to_string())?;
    let environment = Environment::new(json!({}), || "2026-01-02T03:04:05.000Z".to_owned());
    Ok(Host::new(catalog, runtimes, limits, environment, model))
}

fn start(host: &Host) -> Result<Task, String> {
    let task = host.start("bench", "clerk", TaskOptions::default());
    task.map_err(|error| error.to_string())
}

async fn say(task: &Task, message: &str) -> Result<(), String> {
    let output = task.send(TaskInput::message(message)).await;
    if output.message.is_empty() {
        Err(format!("there is no answer: {output:?}"))
    } else {
        Ok(())
    }
}

fn over_http(address: SocketAddr) -> Result<Arc<dyn Model>, String> {
    let config = ModelConfig {
        base_url: Some(format!("http://{address}")),
        key: Some(Sealed::new("sk-bench".to_owned())),
        stream: false,
        ..ModelConfig::default()
    };
    model::open("openai:bench", &config).map_err(|error| error.to_string())
}

/// Whole turns beside the calls of the model in them, over real HTTP.
async fn turns(options: &Options, address: SocketAddr, calls: bool) -> Result<(), String> {
    let timed = Arc::new(Timed {
        model: over_http(address)?,
        spent: Mutex::default(),
    });
    let host = host(Arc::clone(&timed) as Arc<dyn Model>)?;
    let (name, message, model_turns) = if calls {
        ("agent-turn-with-call", "greet", 2)
    } else {
        ("agent-turn", "hello", 1)
    };
    let tasks = if options.quick { 20 } else { 1_000 };
    let (mut whole, mut bare, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=tasks {
        let task = start(&host)?;
        for _ in 0..MESSAGES {
            timed.take();
            let started = Instant::now();
            say(&task, message).await?;
            let total = started.elapsed() / model_turns;
            let spent = timed.take() / model_turns;
            // The first task warms up connections and lazily compiled parts.
            if round > 0 {
                whole.push(total);
                bare.push(spent);
                added.push(total.saturating_sub(spent));
            }
        }
        task.end().await;
    }
    let (ours, peer) = (percentile(&mut whole, 50), percentile(&mut bare, 50));
    figure::print(name, ours, peer, ours / peer, "us/turn at the median");
    let (median, late) = (percentile(&mut added, 50), percentile(&mut added, 99));
    figure::say(&format!(
        "{name}: overhead beside the bare model call p50 {median:.0} us, p99 {late:.0} us; \
         the limit is {OVERHEAD_LIMIT_US:.0} us at p50: {}",
        verdict(median < OVERHEAD_LIMIT_US)
    ));
    Ok(())
}

/// Tasks that have answered once, with a call, and wait.
async fn idle(address: SocketAddr) -> Result<(), String> {
    let host = host(over_http(address)?)?;
    // What is made once is not counted.
    say(&start(&host)?, "greet").await?;
    let before = memory::resident().ok_or("the system does not tell memory")?;
    let mut tasks = Vec::with_capacity(IDLE_TASKS);
    for _ in 0..IDLE_TASKS {
        let task = start(&host)?;
        say(&task, "greet").await?;
        tasks.push(task);
    }
    let after = memory::resident().ok_or("the system does not tell memory")?;
    let calls = tasks
        .iter()
        .map(|task| task.context()["capabilities"]["_meta"]["count"].as_u64());
    if calls.flatten().sum::<u64>() < IDLE_TASKS as u64 {
        return Err("the tasks called nothing".to_owned());
    }
    let used = after.saturating_sub(before) as f64 / 1e6;
    figure::print(
        "agent-idle-memory",
        used,
        IDLE_LIMIT_MB,
        IDLE_LIMIT_MB / used.max(0.001),
        "MB for 1000 idle tasks; the peer is the limit",
    );
    figure::say(&format!(
        "agent-idle-memory: {IDLE_TASKS} tasks hold {used:.1} MB; the limit is {IDLE_LIMIT_MB:.0} MB: {}",
        verdict(used < IDLE_LIMIT_MB)
    ));
    for task in tasks {
        task.end().await;
    }
    Ok(())
}

fn verdict(held: bool) -> &'static str {
    if held { "held" } else { "NOT held" }
}

/// Microseconds of the one at a part of the way, in hundredths.
fn percentile(times: &mut [Duration], part: usize) -> f64 {
    times.sort_unstable();
    let at = (times.len() * part / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}
