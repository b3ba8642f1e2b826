//! Clients that break HTTP and JSON: garbage, halves, too much, too slow, too deep, too many.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::raw::{PATIENCE, Wire, exchange, post, request};
use crate::server::limits;
use crate::{Attack, Targets, attack};
use serde_json::json;

pub(crate) const ATTACKS: &[Attack] = &[
    attack!(garbage),
    attack!(half_requests, "header_time"),
    attack!(slow_bodies, "body_time"),
    attack!(huge_bodies, "body_size"),
    attack!(too_many_headers, "headers"),
    attack!(long_headers, "header_size"),
    attack!(deep_json, "depth"),
    attack!(batches, "batch"),
    attack!(wrong_methods),
    attack!(crowd),
];

/// The one that can tell that the server is full only while there is nobody else.
pub(crate) const FILLING: &[Attack] = &[attack!(late_comer, "connections")];

/// Connections that are opened at a time. The system queues few for a server that is busy, and who
/// finds the queue full is heard a second later only, when those before have been closed.
pub(crate) const AT_A_TIME: usize = 40;
/// Who is not in that queue by then is not waited for.
const QUEUED: Duration = Duration::from_millis(100);
/// How long the server may take until it is full.
const FILLING_TIME: Duration = Duration::from_secs(5);

fn both(targets: &Targets) -> [(SocketAddr, &'static str); 2] {
    [(targets.mcp, "/mcp"), (targets.a2a, "/")]
}

/// What is cheap to do must not crowd out what takes longer.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

pub(crate) async fn garbage(targets: &Targets) {
    for (address, _) in both(targets) {
        let bytes: Vec<u8> = (0..4096_u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        for text in [
            &bytes[..],
            b"\r\n\r\n\r\n",
            b"GET",
            b"\x16\x03\x01\x02\x00\x01",
            b"POST /mcp HTTP/9.9\r\n\r\n",
        ] {
            targets.tally.request();
            if let Some(mut wire) = Wire::open(address).await {
                wire.write(text).await;
                wire.read(Duration::from_millis(50)).await;
            }
        }
    }
    pause().await;
}

async fn half_requests(targets: &Targets) {
    for (address, path) in both(targets) {
        targets.tally.request();
        let Some(mut wire) = Wire::open(address).await else {
            continue;
        };
        wire.write(format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-").as_bytes())
            .await;
        let began = Instant::now();
        let long = limits().header_timeout * 4;
        let answer = wire.read(long).await;
        if began.elapsed() < long && answer.status != 200 {
            targets.tally.met("header_time");
        }
    }
}

async fn slow_bodies(targets: &Targets) {
    for (address, path) in both(targets) {
        targets.tally.request();
        let Some(mut wire) = Wire::open(address).await else {
            continue;
        };
        let whole = post(path, &[], &"x".repeat(1_000));
        wire.write(&whole[..whole.len() - 990]).await;
        if wire.read(limits().body_timeout * 4).await.status == 408 {
            targets.tally.met("body_time");
        }
    }
}

async fn huge_bodies(targets: &Targets) {
    let limit = limits().max_message_bytes;
    for (address, path) in both(targets) {
        for size in [limit + 1, 16 * limit] {
            targets.tally.request();
            let text = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}",
                "x".repeat(size)
            );
            if exchange(address, &post(path, &[("Connection", "close")], &text))
                .await
                .status
                == 413
            {
                targets.tally.met("body_size");
            }
        }
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
}

async fn too_many_headers(targets: &Targets) {
    let headers = vec![("X-Header", "value"); limits().max_headers * 2];
    refused_head(targets, &headers, "headers").await;
}

async fn long_headers(targets: &Targets) {
    let long = "x".repeat(limits().max_header_bytes * 4);
    refused_head(targets, &[("X-Header", &long)], "header_size").await;
}

async fn refused_head(targets: &Targets, headers: &[(&str, &str)], cap: &'static str) {
    for (address, path) in both(targets) {
        targets.tally.request();
        // The answer may be lost when the server closes before it has read all of it.
        let status = exchange(address, &post(path, headers, "{}")).await.status;
        if matches!(status, 0 | 431) {
            targets.tally.met(cap);
        }
    }
    pause().await;
}

async fn deep_json(targets: &Targets) {
    for (address, path) in both(targets) {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            targets.tally.request();
            let deep = format!("{}1{}", open.repeat(50_000), close.repeat(50_000));
            let answer = exchange(address, &post(path, &[("Connection", "close")], &deep)).await;
            if answer.json()["error"]["code"] == -32700 {
                targets.tally.met("depth");
            }
        }
    }
    pause().await;
}

async fn batches(targets: &Targets) {
    for (address, path) in both(targets) {
        targets.tally.request();
        let one = request(&json!(1), "tools/list", &json!({}));
        let all = format!("[{}]", vec![one; 1_000].join(","));
        let answer = exchange(address, &post(path, &[("Connection", "close")], &all)).await;
        if answer.json()["error"]["code"] == -32600 {
            targets.tally.met("batch");
        }
    }
    pause().await;
}

async fn wrong_methods(targets: &Targets) {
    for (address, path) in both(targets) {
        for method in ["PUT", "PATCH", "OPTIONS", "HEAD", "BREW", "DELETE", "GET"] {
            for path in [path, "/", "/../../etc/passwd", "/%00"] {
                targets.tally.request();
                let text = format!(
                    "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
                );
                exchange(address, text.as_bytes()).await;
            }
        }
    }
    pause().await;
}

/// More connections than there may be.
async fn crowd(targets: &Targets) {
    for (address, _) in both(targets) {
        let _alone = targets.crowd.lock().await;
        let mut held = Vec::new();
        open_more(targets, address, &mut held, limits().max_connections + 20).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
}

/// Opens connections and says nothing on them.
async fn open_more(targets: &Targets, address: SocketAddr, held: &mut Vec<Wire>, count: usize) {
    let enough = held.len() + count;
    let end = Instant::now() + FILLING_TIME;
    while held.len() < enough && Instant::now() < end {
        let opening = (0..AT_A_TIME).map(|_| {
            targets.tally.request();
            timeout(QUEUED, Wire::open(address))
        });
        let opened = join_all(opening).await.into_iter();
        held.extend(opened.flat_map(Result::unwrap_or_default));
    }
}

/// Fills a server, and keeps it full, until one who comes late has to wait, and is served when the
/// others are gone. As the system tells how many connections the server has, for all its addresses
/// together, there may be nobody else.
async fn late_comer(targets: &Targets) {
    for (address, path) in both(targets) {
        if targets.rest().await.is_none() {
            continue;
        }
        let limit = limits().max_connections;
        let is_full = || targets.connections() == Some(limit);
        let mut held = Vec::new();
        let end = Instant::now() + FILLING_TIME;
        while Instant::now() < end {
            // Those that came before are closed for their silence, so new ones come all the time.
            held.drain(..held.len().saturating_sub(limit));
            open_more(targets, address, &mut held, AT_A_TIME).await;
            if !is_full() {
                continue;
            }
            let Ok(Some(mut late)) = timeout(QUEUED, Wire::open(address)).await else {
                continue;
            };
            late.write(&post(path, &[("Connection", "close")], "{}"))
                .await;
            let waits = late.first(QUEUED).await.status == 0;
            if waits && is_full() {
                drop(held);
                if late.first(PATIENCE).await.status != 0 {
                    targets.tally.met("connections");
                }
                break;
            }
        }
    }
}
