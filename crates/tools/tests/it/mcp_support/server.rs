//! A small MCP server over stdio that behaves, or misbehaves, as its role says.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "a program of its own: it speaks over its output, ends itself and looks at its environment"
)]

use std::io::{BufRead, Write};
use std::time::Duration;

use serde_json::{Value, json};

struct Server {
    role: String,
    grown: bool,
    /// Requests of ours that the client has not answered yet, and what it answered.
    answers: Vec<Value>,
    /// The id of the call that waits for the answers.
    asking: Option<Value>,
    calls: u64,
}

/// Serves until the input ends, and then ends the process.
pub(crate) fn serve(role: &str) {
    // The test harness may have begun a line.
    println!();
    note("started");
    match role {
        "hang_at_start" => std::thread::sleep(Duration::from_secs(600)),
        "crash_at_start" => {
            let key = std::env::vars().find(|(name, _)| name == "KEY");
            eprintln!(
                "cannot open the database with {:?}\u{1b}[0m",
                key.map(|(_, key)| key)
            );
            std::process::exit(3);
        }
        // Longer than the SDK waits for the first answer.
        "slow_legacy" | "slow_modern" => std::thread::sleep(Duration::from_secs(11)),
        "eof_at_start" => std::process::exit(0),
        "tasks" => {
            super::task_server::over_stdio(std::sync::Arc::new(note));
            note("ended");
            std::process::exit(0);
        }
        _ => {}
    }
    let mut server = Server {
        role: role.to_owned(),
        grown: false,
        answers: Vec::new(),
        asking: None,
        calls: 0,
    };
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        server.take(&message);
        if role == "deaf" && message["method"] == "tools/list" {
            std::thread::sleep(Duration::from_secs(600));
        }
    }
    note("ended");
    if role == "stubborn" {
        std::thread::sleep(Duration::from_secs(600));
    }
    std::process::exit(0);
}

/// Names a file in which servers note what happens to them.
pub(crate) const DIARY: &str = "MCP_TEST_DIARY";

/// Writes down that something happened, if somebody wants to know.
fn note(what: &str) {
    if let Some(file) = std::env::var_os(DIARY) {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file);
        let _ = file.and_then(|mut file| file.write_all(format!("{what}\n").as_bytes()));
    }
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{message}");
    let _ = out.flush();
}

fn reply(id: &Value, result: Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn text(id: &Value, text: impl std::fmt::Display) {
    reply(
        id,
        json!({"content": [{"type": "text", "text": text.to_string()}]}),
    );
}

impl Server {
    fn is_modern(&self) -> bool {
        matches!(self.role.as_str(), "modern" | "slow_modern")
    }

    fn take(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            None => self.answered(message),
            Some("server/discover") if self.role == "crash_on_discover" => std::process::exit(1),
            Some("server/discover") if self.role == "mute_on_discover" => {}
            Some("server/discover") if self.is_modern() => reply(
                id,
                json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {"listChanged": true}}, "ttlMs": 60_000, "cacheScope": "public",
                }),
            ),
            Some("initialize") if !self.is_modern() => reply(
                id,
                json!({
                    "protocolVersion": params["protocolVersion"], "serverInfo": {"name": "s", "version": "1"},
                    "capabilities": {"tools": {"listChanged": true}},
                }),
            ),
            Some("tools/list") => self.list(id, params),
            Some("tools/call") => self.call(id, params),
            Some("notifications/cancelled") => note("cancelled"),
            Some("subscriptions/listen") if self.is_modern() => say(&json!({
                "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {
                    "notifications": {"toolsListChanged": true},
                    "_meta": {"io.modelcontextprotocol/subscriptionId": id},
                },
            })),
            Some(_) if id.is_null() => {}
            Some(method) => say(&json!({
                "jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": format!("what is {method}")},
            })),
        }
    }

    fn list(&self, id: &Value, params: &Value) {
        let object = json!({"type": "object"});
        let cursor = params["cursor"].as_str().unwrap_or("0");
        let page: u64 = cursor.parse().unwrap_or(0);
        let result = match self.role.as_str() {
            "endless_pages" => json!({
                "tools": [{"name": format!("tool_{page}"), "inputSchema": object}],
                "nextCursor": (page + 1).to_string(),
            }),
            "circle" => json!({
                "tools": [{"name": format!("tool_{cursor}"), "inputSchema": object}], "nextCursor": "again",
            }),
            "hang_in_list" => return,
            "liar" => json!({"tools": [
                {"name": "echo", "inputSchema": object, "description": "good\u{1b}[31m sk-secret/1"},
                {"name": "echo", "inputSchema": object, "description": "the second of its name"},
                {"name": "ring\u{7}", "inputSchema": object},
                {"name": "", "inputSchema": object},
                {"name": "list", "inputSchema": ["not", "an", "object"]},
                {"name": "broken", "inputSchema": {"type": "nonsense", "properties": {"a": {"type": 7}}}},
                {"name": "remote", "inputSchema": {"$ref": "http://127.0.0.1:9/schema"}},
                {"name": "sk-secret/1", "inputSchema": object},
                {"name": 9}, null, "tool",
            ]}),
            _ => {
                let mut tools = vec![
                    json!({
                        "name": "echo", "description": "Says it again.",
                        "inputSchema": {
                            "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
                        },
                    }),
                    json!({
                        "name": "promise", "inputSchema": object,
                        "outputSchema": {"type": "object", "required": ["a"]},
                    }),
                ];
                for name in TOOLS {
                    tools.push(json!({"name": name, "inputSchema": object}));
                }
                if self.grown {
                    tools.push(json!({"name": "grown", "inputSchema": object}));
                    tools.retain(|tool| tool["name"] != "structured");
                }
                json!({"tools": tools})
            }
        };
        reply(id, result);
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        self.calls += 1;
        match params["name"].as_str().unwrap_or_default() {
            "echo" => text(id, arguments["text"].as_str().unwrap_or_default()),
            "arguments" => text(id, arguments),
            "fail" => reply(
                id,
                json!({"content": [{"type": "text", "text": "no luck with sk-secret/1"}], "isError": true}),
            ),
            "rpc_error" => say(&json!({
                "jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "odd arguments"},
            })),
            "structured" | "promise" => reply(
                id,
                json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"b": [1, 2]}}),
            ),
            "empty" => reply(id, json!({"content": []})),
            "nonsense" => reply(id, json!(["a", "list"])),
            "hang" => {
                note("hanging");
                eprintln!("thinking hard");
            }
            "die" => {
                eprintln!("dying, the key is sk-secret/1");
                std::process::exit(7);
            }
            "die_and_leave" => {
                let child = std::process::Command::new("sleep").arg("600").spawn();
                let mut out = std::io::stdout().lock();
                let _ = writeln!(out);
                eprintln!("child {}", child.map_or(0, |child| child.id()));
                std::process::exit(7);
            }
            "fork" => {
                let child = std::process::Command::new("sleep").arg("600").spawn();
                text(id, child.map_or(0, |child| child.id()));
            }
            "pid" => text(id, std::process::id()),
            "count" => text(id, self.calls),
            "environment" => {
                let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                text(id, json!(names));
            }
            "stderr" => {
                for _ in 0..2000 {
                    eprintln!("{}", "loud ".repeat(1000));
                }
                text(id, "heard");
            }
            "garbage" => {
                let mut out = std::io::stdout().lock();
                for number in 0..20_000 {
                    let _ = writeln!(out, "log line {number} {{\"jsonrpc\": 2}}");
                }
                let _ = out.write_all(b"\xff\xfe\x00[[[[\n");
                drop(out);
                text(id, "sorry");
            }
            "huge" => {
                let mut out = std::io::stdout().lock();
                let _ = out.write_all("x".repeat(30 << 20).as_bytes());
                let _ = out.write_all(b"\n");
                drop(out);
                text(id, "phew");
            }
            "drown" => loop {
                println!("{}", "glub ".repeat(10_000));
            },
            "one_line" => loop {
                let _ = std::io::stdout().write_all(&[b'x'; 4096]);
            },
            "wrong_ids" => {
                for other in [
                    json!(4711),
                    json!("x"),
                    json!(null),
                    json!(-1),
                    json!({"a": 1}),
                ] {
                    text(&other, "for nobody");
                }
                text(id, "for you");
            }
            "flood" => {
                for number in 0..20_000 {
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                    say(&json!({
                        "jsonrpc": "2.0", "method": "notifications/message",
                        "params": {"level": "info", "data": number},
                    }));
                    say(&json!({"jsonrpc": "2.0", "id": number, "method": "ping"}));
                }
                text(id, "done");
            }
            "change" => {
                self.grown = true;
                say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                text(id, "changed");
            }
            "ask" if self.is_modern() => match params.get("inputResponses") {
                None => reply(
                    id,
                    json!({
                        "resultType": "input_required", "requestState": "opaque",
                        "inputRequests": {
                            "user": {"method": "elicitation/create", "params": {
                                "mode": "form", "message": "Really?",
                                "requestedSchema": {"type": "object", "properties": {}},
                            }},
                            "files": {"method": "roots/list"},
                        },
                    }),
                ),
                Some(answers) => text(id, json!([answers, params["requestState"]])),
            },
            "ask_without_end" => reply(
                id,
                json!({"resultType": "input_required", "requestState": "s", "inputRequests": {}}),
            ),
            "ask" => {
                self.asking = Some(id.clone());
                let message = json!({"role": "user", "content": {"type": "text", "text": "hi"}});
                let asked = [
                    (
                        "sampling/createMessage",
                        json!({"messages": [message], "maxTokens": 5}),
                    ),
                    ("roots/list", json!({})),
                    (
                        "elicitation/create",
                        json!({"message": "Password?", "requestedSchema": {"type": "object", "properties": {}}}),
                    ),
                    ("no/such/method", json!({})),
                ];
                for (number, (method, params)) in asked.into_iter().enumerate() {
                    say(
                        &json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}),
                    );
                }
            }
            _ => say(&json!({
                "jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "unknown tool"},
            })),
        }
    }

    /// An answer of the client to a request of ours.
    fn answered(&mut self, message: &Value) {
        self.answers.push(match message.get("error") {
            Some(error) => error["code"].clone(),
            None => message["result"].clone(),
        });
        if self.answers.len() == 4
            && let Some(id) = self.asking.take()
        {
            self.answers.sort_by_key(ToString::to_string);
            text(&id, json!(self.answers));
        }
    }
}

const TOOLS: &[&str] = &[
    "arguments",
    "fail",
    "rpc_error",
    "structured",
    "empty",
    "nonsense",
    "hang",
    "die",
    "die_and_leave",
    "fork",
    "pid",
    "count",
    "environment",
    "stderr",
    "garbage",
    "huge",
    "drown",
    "wrong_ids",
    "one_line",
    "flood",
    "change",
    "ask",
    "ask_without_end",
];
