//! Our attacking MCP server over HTTP, beside a server on the official SDK and a bare handler.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use proofhouse_range::{ActorEndpoint, RunEvent, RunHandle, RunOptions, run as run_document};
use rmcp::ServerHandler;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::http_load::{self, Load, Template};
use crate::{Options, figure, memory};

const CONNECTIONS: usize = 16;
const REPLY: &str = "It is sunny in Oslo.";

const DOCUMENT: &str = r#"
oatf: "0.1"
attack:
  name: bench
  execution:
    mode: mcp_server
    state:
      tools:
        - name: weather
          description: Says what the weather is like.
          inputSchema: {type: object, properties: {city: {type: string}}}
          responses: [{content: [{type: text, text: "It is sunny in Oslo."}]}]
  indicators:
    - {surface: tools/call, target: arguments, pattern: {contains: "PRIVATE KEY"}}
"#;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(measure(options))
}

async fn measure(options: &Options) -> Result<(), String> {
    let count = if options.quick { 2_000 } else { 40_000 };
    let ours = ours().await?;
    let session = session(ours).await?;
    let servers = [
        ("ours", ours, session),
        ("rmcp", rmcp().await?, plain()),
        ("bare", bare().await?, plain()),
    ];
    // Round by round, so that what disturbs the machine disturbs all; the median of each counts.
    let mut rounds: [Vec<Load>; 3] = Default::default();
    for _ in 0..if options.quick { 1 } else { 5 } {
        for ((_, address, template), results) in servers.iter().zip(&mut rounds) {
            let load = http_load::run(*address, template, call, REPLY, CONNECTIONS, count);
            results.push(load.await?);
        }
    }
    let medians = rounds.map(|mut loads| {
        loads.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
        let middle = loads.len() / 2;
        loads.swap_remove(middle)
    });
    for ((name, ..), load) in servers.iter().zip(&medians) {
        figure::say(&format!(
            "mcp-server: {name}: {:.0} calls/s, p50 {:.3} ms, p99 {:.3} ms at {CONNECTIONS} connections",
            load.per_second,
            load.p50.as_secs_f64() * 1e3,
            load.p99.as_secs_f64() * 1e3,
        ));
    }
    let [ours_load, rmcp_load, bare_load] = medians;
    let rate = |load: &Load| load.per_second;
    let (a, b) = (rate(&ours_load), rate(&rmcp_load));
    figure::print("mcp-server-throughput", a, b, a / b, "calls/s");
    let b = rate(&bare_load);
    figure::print("mcp-server-limit", a, b, a / b, "calls/s");
    flat_memory(options, ours, &servers[0].2).await
}

/// What the process holds before and after a million calls.
async fn flat_memory(
    options: &Options,
    address: SocketAddr,
    template: &Template,
) -> Result<(), String> {
    let count = if options.quick { 5_000 } else { 1_000_000 };
    let before = memory::resident().unwrap_or(0) as f64 / 1e6;
    http_load::run(address, template, call, REPLY, CONNECTIONS, count).await?;
    let after = memory::resident().unwrap_or(0) as f64 / 1e6;
    figure::say(&format!(
        "mcp-server: {before:.1} MB resident before {count} calls, {after:.1} MB after"
    ));
    figure::print("mcp-server-memory", after, before, after / before, "MB");
    Ok(())
}

fn call(number: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"weather","arguments":{{"city":"Oslo"}}}}}}"#
    )
}

fn plain() -> Template {
    Template {
        path: "/mcp",
        headers: "mcp-protocol-version: 2025-11-25\r\n".to_owned(),
    }
}

/// A client of ours that has said hello.
async fn session(address: SocketAddr) -> Result<Template, String> {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
    let answer = http_load::once(address, &plain(), hello).await?;
    let head = answer.split("\r\n\r\n").next().unwrap_or_default();
    let id = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("mcp-session-id")
            .then(|| value.trim().to_owned())
    });
    let mut template = plain();
    if let Some(id) = id {
        template
            .headers
            .push_str(&format!("mcp-session-id: {id}\r\n"));
    }
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    http_load::once(address, &template, ready).await?;
    Ok(template)
}

async fn ours() -> Result<SocketAddr, String> {
    let document = proofhouse_oatf::load(DOCUMENT)
        .map_err(|errors| errors[0].to_string())?
        .document;
    let (ready, address) = mpsc::channel();
    let options = RunOptions {
        endpoints: [("default".to_owned(), ActorEndpoint::Listen(loopback()))].into(),
        settle: Duration::from_secs(3600),
        max_session: Duration::from_secs(3600),
        observer: Some(std::sync::Arc::new(move |event: &RunEvent| {
            if let RunEvent::Ready {
                address: Some(address),
                ..
            } = event
            {
                let _ = ready.send(address.clone());
            }
        })),
        ..RunOptions::default()
    };
    tokio::spawn(async move { run_document(&document, options, &RunHandle::default()).await });
    let url = tokio::task::spawn_blocking(move || address.recv_timeout(Duration::from_secs(10)))
        .await
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    let authority = url.trim_start_matches("http://").split('/').next();
    authority
        .and_then(|authority| authority.parse().ok())
        .ok_or_else(|| format!("{url}: no address"))
}

/// The least that an MCP server on the SDK can be, in its fastest setting.
#[derive(Clone)]
struct Weather;

impl ServerHandler for Weather {
    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, rmcp::ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text(REPLY)]).into())
    }
}

async fn rmcp() -> Result<SocketAddr, String> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let sessions = LocalSessionManager::default().into();
    let service = StreamableHttpService::new(|| Ok(Weather), sessions, config);
    serve(axum::Router::new().nest_service("/mcp", service)).await
}

async fn bare() -> Result<SocketAddr, String> {
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{REPLY}"}}]}}}}"#
    );
    let handler = move |_: String| std::future::ready(answer.clone());
    serve(axum::Router::new().route("/mcp", axum::routing::post(handler))).await
}

/// Serves on a loopback port until the runtime ends.
pub(crate) async fn serve(router: axum::Router) -> Result<SocketAddr, String> {
    let listener = tokio::net::TcpListener::bind(loopback())
        .await
        .map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        let _ = stream.set_nodelay(true);
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}
