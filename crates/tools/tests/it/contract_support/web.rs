//! The three runtimes whose peer is an HTTP server: it answers, refuses, or holds a request until the client leaves.

use std::sync::atomic::Ordering;

use proofhouse_tools::runtime::{ActionFailure, ToolTask};
use serde_json::{Value, json};

use super::{Does, Peer, actions, plainly, runtimes, task, tool};
use crate::support::{Reply, Server, json_reply, reply};

/// A server, and the manifest of a tool for a port.
struct Web {
    server: Server,
    blocks: fn(u16) -> String,
    /// How requests begin that begin a session, and those that end one.
    begins: Option<&'static str>,
    ends: Option<&'static str>,
}

async fn web(
    blocks: fn(u16) -> String,
    begins: Option<&'static str>,
    ends: Option<&'static str>,
) -> Box<dyn Peer> {
    Box::new(Web {
        server: Server::start(|_, request| answer(request)).await,
        blocks,
        begins,
        ends,
    })
}

fn answer(request: &str) -> Reply {
    let line = request.lines().next().unwrap_or_default();
    let path = line.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    match (line.split(' ').next(), path.rsplit('/').next()) {
        (Some("POST"), Some("sessions")) => json_reply(&json!({"id": "s1", "token": "tok-en-1"})),
        (Some("DELETE"), _) => reply("204 No Content", "", ""),
        (Some("GET"), Some("description")) => json_reply(&description()),
        (_, Some("fail")) => reply("400 Bad Request", "", format!("no: {request}")),
        (_, Some("hang")) => Reply::Held,
        _ => json_reply(&json!({"seen": request})),
    }
}

fn base(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

pub(crate) async fn stateless() -> Box<dyn Peer> {
    let blocks = |port| {
        actions(|name| {
            let url = format!("{}/{name}", base(port));
            Some(format!(
                "stateless_http: {{method: POST, url: \"{url}\", body: {{x: \"{{x}}\"}}, \
                 headers: {{X-Key: \"{{settings.api_key}}\"}}}}"
            ))
        })
    };
    web(blocks, None, None).await
}

pub(crate) async fn session() -> Box<dyn Peer> {
    let blocks = |port| {
        let base = base(port);
        let shared = format!(
            "stateful_session:\n  create: {{method: POST, url: \"{base}/sessions\", \
             headers: {{X-Key: \"{{settings.api_key}}\"}}}}\n  \
             extract: {{id: $.id, token: $.token}}\n  \
             destroy: {{method: DELETE, url: \"{base}/sessions/{{session.id}}\"}}\n"
        );
        let acting = actions(|name| {
            let url = format!("{base}/sessions/{{session.id}}/{name}");
            Some(format!(
                "stateful_session: {{execute: {{method: POST, url: \"{url}\", body: {{x: \"{{x}}\"}}, \
                 headers: {{X-Key: \"{{settings.api_key}}\"}}}}}}"
            ))
        });
        format!("{shared}{acting}")
    };
    web(
        blocks,
        Some("POST /sessions "),
        Some("DELETE /sessions/s1 "),
    )
    .await
}

pub(crate) async fn described() -> Box<dyn Peer> {
    let blocks = |port| {
        let base = base(port);
        format!(
            "openapi: {{url: \"{base}/description\", headers: {{X-Key: \"{{settings.api_key}}\"}}}}"
        )
    };
    web(blocks, Some("GET /description "), None).await
}

fn description() -> Value {
    let operation = |name: &str| {
        json!({"post": {
            "operationId": name,
            "parameters": [{"name": "x", "in": "query", "schema": {"type": "string"}}],
            "responses": {"200": {"description": "done"}},
        }})
    };
    json!({
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {"/work": operation("work"), "/fail": operation("fail"), "/hang": operation("hang")},
    })
}

impl Web {
    fn count(&self, start: Option<&str>) -> Option<usize> {
        let seen = self.server.seen();
        let start = start?;
        Some(
            seen.iter()
                .filter(|request| request.starts_with(start))
                .count(),
        )
    }
}

impl Peer for Web {
    fn task(&self) -> ToolTask {
        task(tool(&(self.blocks)(self.server.port)), runtimes())
    }

    fn broken(&self) -> (ToolTask, ActionFailure) {
        // A port of which nobody else could have made a server in the meantime.
        (
            task(tool(&(self.blocks)(1)), runtimes()),
            ActionFailure::Unreachable,
        )
    }

    fn call(&self, does: Does, text: &str) -> Option<(&'static str, Value)> {
        Some(plainly(does, text))
    }

    fn failure(&self) -> ActionFailure {
        ActionFailure::HttpStatus
    }

    fn initialized(&self) -> Option<usize> {
        self.count(self.begins)
    }

    fn torn_down(&self) -> Option<usize> {
        self.count(self.ends)
    }

    fn running(&self) -> usize {
        self.server.held.load(Ordering::SeqCst)
    }
}
