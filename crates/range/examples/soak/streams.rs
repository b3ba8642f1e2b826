//! Clients that open streams: to drop them, to hold them, to read nothing, to come back for more.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::raw::{PATIENCE, Wire, post, request};
use crate::rough::AT_A_TIME;
use crate::server::{LARGE, limits};
use crate::speech::{briefly, call, modern, start_session};
use crate::{Attack, Targets, attack};

pub(crate) const ATTACKS: &[Attack] = &[
    attack!(dropped_streams),
    attack!(listeners, "listeners"),
    attack!(slow_readers, "reader_time"),
    attack!(resumed_streams, "kept_events"),
];

/// The one whose cap is only met when the server has connections to spare.
pub(crate) const FILLING: &[Attack] = &[attack!(listeners, "listeners")];

/// More than may listen, and fewer than there may be connections.
const LISTENERS: usize = 280;

async fn dropped_streams(targets: &Targets) {
    let Some(session) = start_session(targets, &json!({})).await else {
        return;
    };
    let listen = format!(
        "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    for time in 0..50_u32 {
        let moment = Duration::from_millis(u64::from(time % 10));
        briefly(targets, listen.as_bytes(), moment).await;
        let bytes = post("/mcp", &[("Mcp-Session-Id", &session)], &call(1, "talk"));
        briefly(targets, &bytes, moment).await;
        let stream = json!({"message": {"kind": "message", "messageId": "m", "role": "user",
            "parts": [{"kind": "text", "text": "hello"}]}});
        let bytes = post("/", &[], &request(&json!(time), "message/stream", &stream));
        if let Some(mut wire) = Wire::open(targets.a2a).await {
            wire.write(&bytes).await;
        }
    }
}

/// More streams that listen for changes than there may be.
async fn listeners(targets: &Targets) {
    let _alone = targets.crowd.lock().await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let listen = modern("subscriptions/listen", wanted, "listener");
    let mut held = Vec::new();
    while held.len() < LISTENERS {
        let opening = (0..AT_A_TIME).map(|_| async {
            targets.tally.request();
            let mut wire = Wire::open(targets.mcp).await?;
            wire.write(&listen).await;
            wire.first(PATIENCE).await;
            Some(wire)
        });
        held.extend(join_all(opening).await);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// Asks for much and reads nothing of it.
async fn slow_readers(targets: &Targets) {
    let Some(session) = start_session(targets, &json!({})).await else {
        return;
    };
    let read = request(&json!(1), "resources/read", &json!({"uri": "large://one"}));
    let bytes = post("/mcp", &[("Mcp-Session-Id", &session)], &read);
    let mut held = Vec::new();
    for _ in 0..4 {
        targets.tally.request();
        if let Some(mut wire) = Wire::narrow(targets.mcp).await {
            wire.write(&bytes).await;
            held.push(wire);
        }
    }
    tokio::time::sleep(limits().idle_timeout * 2).await;
    for mut wire in held {
        if wire.drain().await < LARGE {
            targets.tally.met("reader_time");
        }
    }
}

/// Comes back to a stream for more events than are kept of it.
async fn resumed_streams(targets: &Targets) {
    let Some(session) = start_session(targets, &json!({})).await else {
        return;
    };
    let headers = [("Mcp-Session-Id", &*session), ("Connection", "close")];
    let bytes = post("/mcp", &headers, &call(1, "talk"));
    let whole = briefly(targets, &bytes, PATIENCE).await;
    let Some(first) = whole
        .text()
        .lines()
        .find_map(|line| line.strip_prefix("id: "))
    else {
        return;
    };
    let resume = format!(
        "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\
         Last-Event-ID: {first}\r\nConnection: close\r\n\r\n"
    );
    let rest = briefly(targets, resume.as_bytes(), PATIENCE).await;
    let kept = rest.text().matches("id: ").count();
    if kept > 0 && kept < whole.text().matches("id: ").count() - 1 {
        targets.tally.met("kept_events");
    }
}
