//! `proofhouse tool serve` with clients of the official SDKs, over stdio and HTTP and in both eras, and with the
//! MCP inspector. Needs `scripts/peers`.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests, helpers included")]

use std::path::Path;
use std::time::Duration;

use proofhouse_test_support::peers::{self, MCP_CLIENTS, peers, script};
use proofhouse_wire::{Child, Spawn, WireLimits, WireLine};
use serde_json::{Value, json};
use tokio::process::ChildStdin;

/// How long a peer may take for all it does.
const PATIENCE: Duration = Duration::from_secs(60);

const MANIFEST: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: demo
description: Greets.
actions:
  - name: greet
    description: Says hello.
    parameters: {properties: {name: {type: string}}}
    execute: {cel: {expression: "{'greeting': 'hello ' + input.name}"}}
  - name: now
    description: Tells the time.
    execute: {cel: {expression: now}}
---
kind: commonagents.info/v1beta2/tool
namespace: demo
name: lone-one
description: Has one action.
actions:
  - name: only
    description: Says nothing.
    execute: {cel: {expression: "null"}}
"#;

pub(crate) fn proofhouse() -> String {
    env!("CARGO_BIN_EXE_proofhouse").to_owned()
}

pub(crate) fn manifest(directory: &Path) -> String {
    let path = directory.join("tools.yaml");
    std::fs::write(&path, MANIFEST).unwrap();
    path.display().to_string()
}

/// A server over HTTP: its address, and the process.
pub(crate) async fn served(manifest: &str) -> (String, Child, ChildStdin) {
    let arguments = [
        "tool",
        "serve",
        manifest,
        "--listen",
        "127.0.0.1:0",
        "--format",
        "json",
    ];
    let spawn = Spawn {
        program: proofhouse(),
        arguments: arguments.map(str::to_owned).to_vec(),
        ..Spawn::default()
    };
    let (child, stdin, mut lines) = spawn.start(&WireLimits::default()).unwrap();
    let line = tokio::time::timeout(PATIENCE, lines.next()).await;
    let Ok(Ok(Some(WireLine::Whole(line)))) = line else {
        panic!("{line:?}: {}", child.stderr());
    };
    let told: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!((&told["version"], &told["tools"]), (&json!(1), &json!(2)));
    (told["url"].as_str().unwrap().to_owned(), child, stdin)
}

/// Runs a program to its end: everything that it wrote, and how it ended.
pub(crate) async fn run(spawn: &Spawn) -> String {
    let (mut child, stdin, mut lines) = spawn.start(&WireLimits::default()).unwrap();
    let mut told = Vec::new();
    while let Ok(Some(WireLine::Whole(line) | WireLine::Cut(line))) =
        tokio::time::timeout(PATIENCE, lines.next()).await.unwrap()
    {
        told.push(String::from_utf8(line).unwrap());
    }
    drop(stdin);
    let ended = tokio::time::timeout(PATIENCE, child.wait()).await.unwrap();
    let told = told.join("\n");
    assert!(
        ended.is_some_and(|status| status.success()),
        "{:?}: {told}: {}",
        spawn.arguments,
        child.stderr()
    );
    told
}

pub(crate) fn check(name: &str, told: &str, version: &str) {
    let mut seen: Value = serde_json::from_str(told).unwrap();
    let wrong = seen["wrong"].take();
    assert_eq!(wrong[0], true, "{name}");
    let problems: Value = serde_json::from_str(wrong[1].as_str().unwrap()).unwrap();
    assert_eq!(problems["error"], "bad_arguments", "{name}");
    let message = problems["message"].as_str().unwrap();
    assert!(
        message.contains("name") && message.contains("more"),
        "{name}: all problems are named: {message}"
    );
    let expected = json!({
        "version": version,
        "tools": ["demo_greet", "demo_now", "lone_one"],
        "text": "{\"greeting\":\"hello Ada\"}",
        "structured": {"greeting": "hello Ada"},
        "wrong": null,
        "unknown": -32602,
    });
    assert_eq!(seen, expected, "{name}");
}

#[tokio::test]
async fn the_official_clients_use_tools_over_http() {
    let Some(directory) = peers("the_official_clients_use_tools_over_http") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let (url, server, _stdin) = served(&manifest(scratch.path())).await;
    for (peer, mode, version) in MCP_CLIENTS {
        let told = run(&script(&directory, peer, "tools", &[mode, "http", &url])).await;
        check(&format!("{peer} {mode} http"), &told, version);
    }
    assert_eq!(server.stderr(), "");
    server.stop().await;
}

#[tokio::test]
async fn the_official_clients_start_the_server_themselves() {
    let Some(directory) = peers("the_official_clients_start_the_server_themselves") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let (program, manifest) = (proofhouse(), manifest(scratch.path()));
    for (peer, mode, version) in MCP_CLIENTS {
        let arguments = [
            mode, "stdio", &program, "tool", "serve", &manifest, "--stdio",
        ];
        let told = run(&script(&directory, peer, "tools", &arguments)).await;
        check(&format!("{peer} {mode} stdio"), &told, version);
    }
}

#[tokio::test]
async fn the_inspector_lists_and_calls() {
    let package = "mcp-inspector/node_modules/.bin/mcp-inspector";
    let Some(directory) = peers::installed("the_inspector_lists_and_calls", package) else {
        return;
    };
    let inspector = directory.join(package);
    let scratch = tempfile::tempdir().unwrap();
    let manifest = manifest(scratch.path());
    let (url, server, _stdin) = served(&manifest).await;
    let http = [url, "--transport".to_owned(), "http".to_owned()];
    let stdio = [
        proofhouse(),
        "tool".to_owned(),
        "serve".to_owned(),
        manifest,
    ];
    for target in [&http[..], &stdio[..]] {
        let inspect = |arguments: &[&str]| {
            let node = peers::node(&directory);
            let program = inspector.display().to_string();
            let own = arguments.iter().map(|one| (*one).to_owned());
            Spawn {
                program: node.display().to_string(),
                arguments: [program, "--cli".to_owned()]
                    .into_iter()
                    .chain(target.iter().cloned())
                    .chain(own)
                    .collect(),
                ..Spawn::default()
            }
        };
        let listed = run(&inspect(&["--method", "tools/list"])).await;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed["tools"][2]["name"], "lone_one");
        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            "demo_greet",
            "--tool-arg",
            "name=Ada",
        ];
        let called: Value = serde_json::from_str(&run(&inspect(&call)).await).unwrap();
        assert_eq!(
            called["structuredContent"],
            json!({"greeting": "hello Ada"})
        );
    }
    server.stop().await;
}
