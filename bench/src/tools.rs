//! Tool actions: what the runtime adds to an HTTP call and to an expression, and what a large
//! description costs.

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_manifest::Bundle;
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{Environment, Runtimes, ToolLimits, ToolTask};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::{Options, figure, mcp_server, openapi_load};

/// Callers at the same time, when calls per second are counted.
const CALLERS: usize = 16;

const EXPRESSION: &str = "{'greeting': 'hello ' + input.name, 'long': size(input.name) > 3, 'agent': context.agent.name}";

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    // A runtime of its own, so that the server's work is not counted among the callers'.
    let serving = Runtime::new().map_err(|error| error.to_string())?;
    let address = serving.block_on(serve())?;
    runtime.block_on(http(options, address))?;
    runtime.block_on(cel(options))?;
    serving.shutdown_background();
    runtime.block_on(openapi_load::run(options))
}

/// A service that answers every request with the same small document.
async fn serve() -> Result<SocketAddr, String> {
    let handler = |body: String| async move {
        let length = body.len();
        (
            [("content-type", "application/json")],
            format!("{{\"data\":{{\"received\":{length}}}}}"),
        )
    };
    let router = axum::Router::new().route("/notes/{id}", axum::routing::post(handler));
    mcp_server::serve(router).await
}

fn task(text: &str) -> Result<ToolTask, String> {
    let (bundle, findings) = Bundle::read(text);
    if let Some(finding) = findings.first() {
        return Err(finding.message.clone());
    }
    let tool = bundle.tools().next().ok_or("there is no tool")?.clone();
    let loopback = "127.0.0.0/8"
        .parse()
        .map_err(|_| "a network that cannot be read")?;
    let limits = ToolLimits::default();
    let runtimes = Runtimes::new(&limits, EgressPolicy::allowing([loopback]))
        .map_err(|error| error.to_string())?;
    let environment = Environment::new(json!({"api_key": "sk-0123456789"}), || {
        "2026-01-02T03:04:05.000Z".to_owned()
    });
    Ok(ToolTask::new(Arc::new(tool), environment, runtimes, limits))
}

fn arguments() -> Map<String, Value> {
    let arguments = json!({"id": "a b", "text": "A note of some words, as notes are."});
    arguments.as_object().cloned().unwrap_or_default()
}

async fn call(task: &ToolTask) -> Result<Value, String> {
    let outcome = task
        .invoke("note", arguments(), json!({}), CancellationToken::new())
        .await;
    Ok(outcome.map_err(|error| error.to_string())?.value)
}

async fn bare(client: &reqwest::Client, url: &str) -> Result<Value, String> {
    let body = json!({"text": "A note of some words, as notes are.", "by": "proofhouse"});
    let answer = client
        .post(url)
        .header("content-type", "application/json")
        .header("authorization", "Bearer sk-0123456789")
        .body(body.to_string())
        .send()
        .await
        .map_err(|error| error.to_string())?;
    let bytes = answer.bytes().await.map_err(|error| error.to_string())?;
    let whole: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    Ok(whole["data"].clone())
}

/// The same request with a manifest and by hand: interpolated, sent, read and cut out.
async fn http(options: &Options, address: SocketAddr) -> Result<(), String> {
    let task = task(&format!(
        r#"kind: commonagents.info/v1beta2/tool
namespace: bench
name: notes
description: Keeps notes.
settings: {{properties: {{api_key: {{format: password}}}}}}
actions:
  - name: note
    description: Keeps a note.
    parameters: {{properties: {{id: {{type: string}}, text: {{type: string}}}}}}
    execute:
      stateless_http:
        method: POST
        url: "http://{address}/notes/{{parameters.id}}"
        headers: {{Authorization: "Bearer {{settings.api_key}}"}}
        body: {{text: "{{parameters.text}}", by: proofhouse}}
        response_path: $.data
"#
    ))?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    #[expect(clippy::disallowed_methods, reason = "the bare client is the peer")]
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .map_err(|error| error.to_string())?;
    let url = format!("http://{address}/notes/a%20b");
    if call(&task).await? != bare(&client, &url).await? {
        return Err("both sides do not get the same answer".to_owned());
    }
    let rounds = if options.quick { 300 } else { 20_000 };
    let (mut ours, mut peer) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    // One of each in turn, so that what disturbs the machine disturbs both.
    for _ in 0..rounds {
        let started = Instant::now();
        call(&task).await?;
        ours.push(started.elapsed());
        let started = Instant::now();
        bare(&client, &url).await?;
        peer.push(started.elapsed());
    }
    let (ours, peer) = (median(ours), median(peer));
    figure::print(
        "tools-http",
        ours,
        peer,
        ours / peer,
        "us/call at the median",
    );

    let seconds = Duration::from_millis(if options.quick { 200 } else { 3_000 });
    let (task, client) = (Arc::new(task), Arc::new(client));
    let (mut ours, mut peer) = (0.0, 0.0);
    let turns = if options.quick { 1 } else { 3 };
    for _ in 0..turns {
        let shared = Arc::clone(&task);
        ours += per_second(seconds, move || {
            let task = Arc::clone(&shared);
            async move { call(&task).await }
        })
        .await?;
        let (shared, url) = (Arc::clone(&client), url.clone());
        peer += per_second(seconds, move || {
            let (client, url) = (Arc::clone(&shared), url.clone());
            async move { bare(&client, &url).await }
        })
        .await?;
    }
    let (ours, peer) = (ours / f64::from(turns), peer / f64::from(turns));
    figure::print("tools-http-throughput", ours, peer, ours / peer, "calls/s");
    task.teardown().await;
    Ok(())
}

/// Microseconds of the one in the middle.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times
        .get(times.len() / 2)
        .map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

/// Calls per second of several callers that each call again as soon as they have an answer.
async fn per_second<F, W>(time: Duration, work: F) -> Result<f64, String>
where
    F: Fn() -> W + Send + Clone + 'static,
    W: Future<Output = Result<Value, String>> + Send,
{
    let started = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let work = work.clone();
            tokio::spawn(async move {
                let mut calls = 0_u64;
                while started.elapsed() < time {
                    work().await?;
                    calls += 1;
                }
                Ok::<u64, String>(calls)
            })
        })
        .collect();
    let mut calls = 0;
    for caller in callers {
        calls += caller.await.map_err(|error| error.to_string())??;
    }
    Ok(calls as f64 / started.elapsed().as_secs_f64())
}

/// An action beside the bare crate with the same variables and the same prepared environment.
async fn cel(options: &Options) -> Result<(), String> {
    let task = task(&format!(
        r#"kind: commonagents.info/v1beta2/tool
namespace: bench
name: greeter
description: Greets.
actions:
  - name: greet
    description: Greets.
    parameters: {{properties: {{name: {{type: string}}}}}}
    execute: {{cel: {{expression: "{EXPRESSION}"}}}}
"#
    ))?;
    let context = json!({"agent": {"name": "clerk", "namespace": "demo"}});
    let input = json!({"name": "proofhouse"});
    let bare = cel::Program::compile(EXPRESSION).map_err(|error| error.to_string())?;
    let env = Arc::new(cel::Env::stdlib());
    let evaluate_bare = || {
        let mut variables = cel::Context::with_env(Arc::clone(&env));
        variables.add_variable("context", &context).ok()?;
        variables.add_variable("input", &input).ok()?;
        variables
            .add_variable("now", "2026-01-02T03:04:05.000Z")
            .ok()?;
        variables.add_variable("runtime", json!({})).ok()?;
        bare.execute(&variables).ok()
    };
    let greet = || {
        let input = input.as_object().cloned().unwrap_or_default();
        task.invoke("greet", input, context.clone(), CancellationToken::new())
    };
    let ours = greet().await.map_err(|error| error.to_string())?.value;
    let same = json!({"greeting": "hello proofhouse", "long": true, "agent": "clerk"});
    // The bare crate keeps its own kind of value; only ours is turned into JSON, which counts too.
    if ours != same || !matches!(evaluate_bare(), Some(cel::Value::Map(map)) if map.map.len() == 3)
    {
        return Err("both sides do not get the same result".to_owned());
    }
    let rounds = if options.quick { 300 } else { 50_000 };
    let (mut ours, mut peer) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for _ in 0..rounds {
        let started = Instant::now();
        let _ = black_box(greet().await);
        ours.push(started.elapsed());
        let started = Instant::now();
        black_box(evaluate_bare());
        peer.push(started.elapsed());
    }
    let (ours, peer) = (median(ours), median(peer));
    figure::print(
        "tools-cel",
        ours,
        peer,
        ours / peer,
        "us/call at the median",
    );
    task.teardown().await;
    Ok(())
}
