//! Clients that break HTTP and JSON: garbage, halves, too much, too slow, too deep, too many.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;

use crate::raw::{Wire, exchange, post, request};
use crate::server::limits;
use crate::{Attack, Targets, attack};
use serde_json::json;

pub(crate) const ATTACKS: &[Attack] = &[
    attack!(garbage),
    attack!(half_requests),
    attack!(slow_bodies),
    attack!(huge_bodies),
    attack!(too_many_headers),
    attack!(long_headers),
    attack!(deep_json),
    attack!(batches),
    attack!(wrong_methods),
    attack!(crowd),
];

/// The one that takes the most connections; it comes before the others, when it can be told best
/// that the server is full.
pub(crate) const FILLING: &[Attack] = &[attack!(crowd)];

fn both(targets: &Targets) -> [(SocketAddr, &'static str); 2] {
    [(targets.mcp, "/mcp"), (targets.a2a, "/")]
}

/// What is cheap to do must not crowd out what takes longer.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

async fn garbage(targets: &Targets) {
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
        let began = std::time::Instant::now();
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

/// More connections than there may be; someone who comes then has to wait.
async fn crowd(targets: &Targets) {
    for (address, path) in both(targets) {
        let _alone = targets.crowd.lock().await;
        let opening = (0..limits().max_connections + 20).map(|_| {
            targets.tally.request();
            Wire::open(address)
        });
        let held = join_all(opening).await;
        let Some(mut late) = Wire::open(address).await else {
            continue;
        };
        late.write(&post(path, &[("Connection", "close")], "{}"))
            .await;
        let waits = late.first(Duration::from_millis(200)).await.status == 0;
        drop(held);
        if waits && late.first(Duration::from_secs(4)).await.status != 0 {
            targets.tally.met("connections");
        }
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
}
