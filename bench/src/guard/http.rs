//! Over HTTP: a bare server directly, through a bare reverse proxy, and through the guard.

use std::net::SocketAddr;

use proofhouse_guard::{GuardAsks, ListeningGuard};
use proofhouse_wire::client::{Client, Roots};
use proofhouse_wire::server::{BoundServer, Handler, Reply, ReplyBody, Request};
use proofhouse_wire::{CancellationToken, Method, ProxySettings, StatusCode, WireLimits};

use super::{EXPECTED, GuardOptions, MeasuredWay, answer, call, id_of, opened};
use crate::http_load::{self, Load, Template};
use crate::mcp_server::serve;

/// Connections for the throughput; the latency is that of one.
const CONNECTIONS: usize = 16;

pub(super) async fn measure(options: &GuardOptions) -> Result<Vec<MeasuredWay>, String> {
    let handler = |body: String| async move {
        let headers = [("content-type", "application/json")];
        (headers, answer(id_of(&body)))
    };
    let router = axum::Router::new().route("/mcp", axum::routing::post(handler));
    let direct = serve(router).await?;
    let url = format!("http://{direct}/mcp");
    let ways = [
        ("direct", direct),
        ("bare", bare(&url).await?),
        ("stock", guarded(&url, opened(None)?).await?),
        (
            "library",
            guarded(&url, opened(Some(&options.documents))?).await?,
        ),
    ];
    let (alone, together) = if options.quick {
        (50, 160)
    } else {
        (5_000, 20_000)
    };
    let template = Template {
        path: "/mcp",
        headers: "mcp-protocol-version: 2025-11-25\r\n".to_owned(),
    };
    // Round by round, so that what disturbs the machine disturbs all; the median of each counts.
    let mut rounds: [Vec<(Load, Load)>; 4] = Default::default();
    for _ in 0..if options.quick { 1 } else { 5 } {
        for ((_, address), results) in ways.iter().zip(&mut rounds) {
            let latency = http_load::run(*address, &template, call, EXPECTED, 1, alone).await?;
            let load = http_load::run(*address, &template, call, EXPECTED, CONNECTIONS, together);
            results.push((latency, load.await?));
        }
    }
    let measured = ways.iter().zip(rounds).map(|((name, _), loads)| {
        let median = |of: &dyn Fn(&(Load, Load)) -> f64| {
            let mut values: Vec<f64> = loads.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let duration = std::time::Duration::from_secs_f64;
        MeasuredWay {
            name,
            p50: duration(median(&|(latency, _)| latency.p50.as_secs_f64())),
            p99: duration(median(&|(latency, _)| latency.p99.as_secs_f64())),
            per_second: median(&|(_, load)| load.per_second),
        }
    });
    Ok(measured.collect())
}

/// Passes everything on, with the client and the server that the guard has.
struct BareProxy {
    client: Client,
    url: String,
}

impl Handler for BareProxy {
    async fn handle(&self, request: Request) -> Reply {
        let mut headers = request.headers.clone();
        headers.remove("host");
        headers.remove("content-length");
        let body = request.body.unwrap_or_default();
        let sent = self.client.send(Method::POST, &self.url, headers, body);
        let Ok(response) = sent.await else {
            return Reply::empty(StatusCode::BAD_GATEWAY);
        };
        let status = response.status;
        match response.bytes().await {
            Ok(body) => Reply::empty(status)
                .with_header("content-type", "application/json")
                .with_body(ReplyBody::Whole(body)),
            Err(_) => Reply::empty(StatusCode::BAD_GATEWAY),
        }
    }
}

async fn bare(url: &str) -> Result<SocketAddr, String> {
    let limits = WireLimits::default();
    let client = Client::proxied(limits.clone(), ProxySettings::default(), Roots::System);
    let proxy = BareProxy {
        client: client.map_err(|error| error.to_string())?,
        url: url.to_owned(),
    };
    let bound = BoundServer::new(loopback()).await;
    let bound = bound.map_err(|error| error.to_string())?;
    let address = bound.address();
    tokio::spawn(bound.serve(std::sync::Arc::new(proxy), limits, CancellationToken::new()));
    Ok(address)
}

async fn guarded(
    url: &str,
    opened: std::sync::Arc<proofhouse_guard::OpenedGuard>,
) -> Result<SocketAddr, String> {
    let asks = Some(GuardAsks::Nobody);
    let guard = ListeningGuard::new(
        &opened,
        url,
        loopback(),
        asks,
        ProxySettings::default(),
        None,
    );
    let guard = guard.await.map_err(|error| error.to_string())?;
    let authority = guard.url().trim_start_matches("http://").split('/').next();
    let address = authority.and_then(|authority| authority.parse().ok());
    let address = address.ok_or_else(|| format!("{}: no address", guard.url()))?;
    tokio::spawn(guard.serve(CancellationToken::new()));
    Ok(address)
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}
