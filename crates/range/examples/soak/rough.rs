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
    attack!(wrong_hosts, "hosts"),
    attack!(expected_bodies, "expected_size"),
    attack!(held_bodies, "bytes_in_flight"),
    attack!(resting_clients),
    attack!(crowd),
];

/// Those that need all the room, or can tell that there is none only while there is nobody else.
pub(crate) const FILLING: &[Attack] = &[
    attack!(late_comer, "connections"),
    attack!(held_bodies, "bytes_in_flight"),
];

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
            // What lies too deep is kept as its text, and what is left is no message.
            if answer.json()["error"]["code"] == -32600 {
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

/// Fills a server with connections that say nothing, and keeps it full: one who comes late is served all the same,
/// because one of the others makes way. As the system tells how many connections the server has, for all its addresses
/// together, there may be nobody else.
async fn late_comer(targets: &Targets) {
    for (address, path) in both(targets) {
        if targets.rest().await.is_none() {
            continue;
        }
        let limit = limits().max_connections;
        let is_full = || targets.connections().is_some_and(|count| count >= limit);
        let mut held = Vec::new();
        let end = Instant::now() + FILLING_TIME;
        while Instant::now() < end {
            // Those that came before are closed for their silence, so new ones come all the time.
            held.drain(..held.len().saturating_sub(limit));
            open_more(targets, address, &mut held, AT_A_TIME).await;
            if !is_full() {
                continue;
            }
            let late = post(path, &[("Connection", "close")], "{}");
            if exchange(address, &late).await.status != 0 {
                targets.tally.met("connections");
                break;
            }
        }
    }
}

/// Two hosts, two origins, and hosts that are not ours.
async fn wrong_hosts(targets: &Targets) {
    for (address, path) in both(targets) {
        for (headers, status) in [
            ("Host: 127.0.0.1\r\nHost: evil.example\r\n", 400),
            (
                "Host: 127.0.0.1\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n",
                400,
            ),
            ("Host: evil.example\r\n", 403),
        ] {
            targets.tally.request();
            let text = format!(
                "POST {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}"
            );
            if exchange(address, text.as_bytes()).await.status == status {
                targets.tally.met("hosts");
            }
        }
    }
    pause().await;
}

/// Announces more than a message may have, and waits to be asked for it.
async fn expected_bodies(targets: &Targets) {
    let length = limits().max_message_bytes + 1;
    for (address, path) in both(targets) {
        targets.tally.request();
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        );
        if exchange(address, text.as_bytes()).await.status == 413 {
            targets.tally.met("expected_size");
        }
    }
    pause().await;
}

/// More large bodies than there is room for, each without its last byte.
async fn held_bodies(targets: &Targets) {
    let _alone = targets.crowd.lock().await;
    let size = 512 << 10;
    let count = 30 * limits().max_bytes_in_flight / size;
    for (address, path) in both(targets) {
        let whole = post(path, &[], &"x".repeat(size));
        let holding = (0..count / 2).map(|_| async {
            targets.tally.request();
            let mut wire = Wire::open(address).await?;
            wire.write(&whole[..whole.len() - 1]).await;
            wire.first(PATIENCE).await;
            Some(wire)
        });
        join_all(holding).await;
    }
}

/// Clients that keep their connections and rest between requests.
async fn resting_clients(targets: &Targets) {
    for (address, path) in both(targets) {
        let Some(mut wire) = Wire::open(address).await else {
            continue;
        };
        for _ in 0..3 {
            targets.tally.request();
            wire.write(&post(path, &[], "{}")).await;
            wire.first(PATIENCE).await;
            tokio::time::sleep(limits().header_timeout * 3 / 2).await;
        }
    }
}
