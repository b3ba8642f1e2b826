//! Clients that keep to HTTP and make the protocol expensive: floods, silence, long names.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::raw::{PATIENCE, Wire, exchange, notification, post, request};
use crate::server::limits;
use crate::speech::{briefly, call, leave, modern, say, start_session};
use crate::{Attack, Targets, attack};

pub(crate) const ATTACKS: &[Attack] = &[
    attack!(sessions, "sessions"),
    attack!(modern_contacts),
    attack!(duplicate_ids, "running_ids"),
    attack!(notifications),
    attack!(cancelled_calls),
    attack!(background_calls, "background_calls"),
    attack!(unanswered_questions, "questions"),
    attack!(unfinished_rounds, "rounds"),
    attack!(subscriptions, "subscriptions"),
    attack!(long_names),
    attack!(large_calls),
    attack!(long_ids),
    attack!(agent_tasks, "a2a_tasks"),
];

/// Those that take many requests to meet a cap, or much memory. They come first, one after the other, so that all is
/// full when everything starts, on slow machines too.
pub(crate) const FILLING: &[Attack] = &[
    attack!(large_calls),
    attack!(sessions, "sessions"),
    attack!(sessions, "sessions"),
    attack!(sessions, "sessions"),
    attack!(unfinished_rounds, "rounds"),
    attack!(agent_tasks, "a2a_tasks"),
    attack!(unanswered_questions, "questions"),
    attack!(background_calls, "background_calls"),
    attack!(subscriptions, "subscriptions"),
];

/// As long as the server lets texts be that it may have to remember.
fn long() -> String {
    "x".repeat(200_000)
}

/// What is done at a time, where it takes many to meet a cap.
const BATCH: usize = 20;

/// Sessions without end, some of them with much to remember.
async fn sessions(targets: &Targets) {
    let much = json!({"experimental": {"x": {"long": long()}}});
    let little = json!({});
    for number in 0..20 {
        let capabilities = if number == 0 { &much } else { &little };
        join_all((0..BATCH).map(|_| {
            targets.tally.request();
            start_session(targets, capabilities)
        }))
        .await;
    }
}

/// Clients without end, each with a long name.
async fn modern_contacts(targets: &Targets) {
    for number in 0..50 {
        let name = format!("{number} {} {}", targets.tally.requests(), long());
        let bytes = modern("tools/list", json!({}), &name);
        briefly(targets, &bytes, PATIENCE).await;
    }
}

async fn duplicate_ids(targets: &Targets) {
    let Some(session) = start_session(targets, &json!({})).await else {
        return;
    };
    for _ in 0..20 {
        leave(targets, &session, &call(7, "wait")).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
}

/// A thousand notifications, one after the other on one connection.
async fn notifications(targets: &Targets) {
    let Some(session) = start_session(targets, &json!({})).await else {
        return;
    };
    let progress = notification(
        "notifications/progress",
        &json!({"progressToken": 1, "progress": 1}),
    );
    let one = post("/mcp", &[("Mcp-Session-Id", &session)], &progress);
    let Some(mut wire) = Wire::open(targets.mcp).await else {
        return;
    };
    for _ in 0..10 {
        for _ in 0..100 {
            targets.tally.request();
        }
        if !wire.write(&one.repeat(100)).await {
            return;
        }
        wire.read(Duration::from_millis(50)).await;
    }
}

async fn cancelled_calls(targets: &Targets) {
    let Some(session) = start_session(targets, &json!({})).await else {
        return;
    };
    for id in 0..50 {
        leave(targets, &session, &call(id, "wait")).await;
        let cancel = json!({"requestId": id, "reason": "never mind"});
        targets.tally.request();
        say(
            targets,
            &session,
            &notification("notifications/cancelled", &cancel),
        )
        .await;
    }
}

/// More calls that take their time than may run.
async fn background_calls(targets: &Targets) {
    if targets.tally.has_met("background_calls") {
        // Others want to run theirs, too.
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.extend(start_session(targets, &json!({})).await);
    }
    for id in 0..150 {
        let body = call(id, "stay");
        let leaving = sessions
            .iter()
            .map(|session| leave(targets, session, &body));
        let answers = join_all(leaving).await;
        if answers.iter().any(|answer| answer.status == 503) {
            targets.tally.met("background_calls");
            break;
        }
    }
    // What stays that long must not keep out all others: it ends with its session.
    for session in sessions {
        let end = format!(
            "DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nMcp-Session-Id: {session}\r\nConnection: close\r\n\r\n"
        );
        targets.tally.request();
        exchange(targets.mcp, end.as_bytes()).await;
    }
}

async fn unanswered_questions(targets: &Targets) {
    let capabilities = json!({"elicitation": {"form": {}}});
    let Some(session) = start_session(targets, &capabilities).await else {
        return;
    };
    for start in (0..800).step_by(BATCH) {
        let bodies: Vec<String> = (start..start + BATCH).map(|id| call(id, "ask")).collect();
        join_all(bodies.iter().map(|body| leave(targets, &session, body))).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
}

/// Calls that are asked back and never finished; the oldest is forgotten in the end.
async fn unfinished_rounds(targets: &Targets) {
    let ask = |state: Option<&Value>| {
        let mut params = json!({"name": "ask", "arguments": {"text": "t"}});
        if let Some(state) = state {
            params["requestState"] = state.clone();
            params["inputResponses"] =
                json!({"name": {"action": "accept", "content": {"name": "me"}}});
        }
        modern("tools/call", params, "rounds")
    };
    let mut first = None;
    let fresh = ask(None);
    for _ in 0..1_100 / BATCH {
        let asking = (0..BATCH).map(|_| briefly(targets, &fresh, PATIENCE));
        for answer in join_all(asking).await {
            if let Some(state) = answer.json()["result"].get("requestState") {
                first.get_or_insert_with(|| state.clone());
            }
        }
    }
    let Some(first) = first else { return };
    let answer = briefly(targets, &ask(Some(&first)), PATIENCE).await;
    if answer.json()["result"]["resultType"] != "complete" {
        targets.tally.met("rounds");
    }
}

async fn subscriptions(targets: &Targets) {
    let Some(session) = start_session(targets, &json!({})).await else {
        return;
    };
    let Some(mut wire) = Wire::open(targets.mcp).await else {
        return;
    };
    for start in (0..1_100).step_by(50) {
        let mut bytes = Vec::new();
        for number in start..start + 50 {
            targets.tally.request();
            let params = json!({"uri": format!("memo://{number}/{}", "x".repeat(2_000))});
            let subscribe = request(&json!(number), "resources/subscribe", &params);
            bytes.extend(post("/mcp", &[("Mcp-Session-Id", &session)], &subscribe));
        }
        wire.write(&bytes).await;
        wire.read(Duration::from_millis(20)).await;
    }
    // On the same connection, so that it comes after all the others.
    let params = json!({"uri": format!("memo://one-more/{}", "x".repeat(2_000))});
    let one_more = request(&json!("last"), "resources/subscribe", &params);
    let headers = [("Mcp-Session-Id", &*session), ("Connection", "close")];
    wire.write(&post("/mcp", &headers, &one_more)).await;
    let answers = wire.read(PATIENCE).await;
    let mut bodies = answers.text().lines();
    if bodies.any(|body| body.contains("\"error\"") && body.contains("\"last\"")) {
        targets.tally.met("subscriptions");
    }
}

/// Long ids, methods, tools, URIs and levels: whatever a server may put into a warning or a map.
async fn long_names(targets: &Targets) {
    let long = long();
    let Some(session) = start_session(targets, &json!({})).await else {
        return;
    };
    for _ in 0..20 {
        for body in [
            request(&json!(long), "tools/call", &json!({"name": "wait"})),
            request(&json!(long), "tools/call", &json!({"name": "wait"})),
            request(&json!(1), &long, &json!({})),
            request(&json!(1), "tools/call", &json!({"name": long})),
            request(&json!(1), "resources/read", &json!({"uri": long})),
            request(
                &json!(1),
                "resources/subscribe",
                &json!({"uri": format!("{}{long}", targets.tally.requests())}),
            ),
            request(&json!(1), "logging/setLevel", &json!({"level": long})),
            notification(&long, &json!({})),
            notification("notifications/cancelled", &json!({"requestId": long})),
            json!({"jsonrpc": "2.0", "id": long, "result": {}}).to_string(),
        ] {
            leave(targets, &session, &body).await;
        }
        targets.tally.request();
        exchange(
            targets.a2a,
            &post(
                "/",
                &[("Connection", "close")],
                &request(&json!(long), &long, &json!({})),
            ),
        )
        .await;
    }
}

/// Twelve calls at a time that are as large as may be, and take long to read.
async fn large_calls(targets: &Targets) {
    let Some(session) = start_session(targets, &json!({})).await else {
        return;
    };
    let arrays = vec!["[]"; limits().max_message_bytes / 3 - 100].join(",");
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"plain","arguments":{{"a":[{arrays}]}}}}}}"#
    );
    join_all((0..12).map(|_| {
        targets.tally.request();
        say(targets, &session, &call)
    }))
    .await;
    let agent = post("/", &[("Connection", "close")], &call);
    exchange(targets.a2a, &agent).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Ids that no machine number holds.
async fn long_ids(targets: &Targets) {
    let Some(session) = start_session(targets, &json!({})).await else {
        return;
    };
    for digits in [20, 30, 10_000] {
        let id = "9".repeat(digits);
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        targets.tally.request();
        say(targets, &session, &ping).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
}

/// Tasks without end; the oldest is forgotten in the end.
async fn agent_tasks(targets: &Targets) {
    let send = json!({"message": {"kind": "message", "messageId": "m", "role": "user",
        "parts": [{"kind": "text", "text": "x".repeat(10_000)}]}});
    let send = request(&json!(1), "message/send", &send);
    let send = post("/", &[("Connection", "close")], &send);
    let mut first = None;
    for _ in 0..1_100 / BATCH {
        let sending = (0..BATCH).map(|_| {
            targets.tally.request();
            exchange(targets.a2a, &send)
        });
        for answer in join_all(sending).await {
            if let Some(id) = answer.json()["result"].get("id") {
                first.get_or_insert_with(|| id.clone());
            }
        }
    }
    let Some(id) = first else { return };
    let get = request(&json!(1), "tasks/get", &json!({"id": id}));
    let answer = exchange(targets.a2a, &post("/", &[("Connection", "close")], &get)).await;
    if answer.json()["error"]["code"] == -32001 {
        targets.tally.met("a2a_tasks");
    }
}
