//! The public documents, each run to a verdict against a subject that follows a script: it takes every
//! tool, resource and prompt it is offered, and passes on what it is told.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_oatf::{AttackResult, Document, Mode, load};
use proofhouse_range::{ActorEndpoint, RunEvent, RunHandle, RunOptions, RunReport, run};
use proofhouse_test_support::workspace::vectors;
use serde_json::{Value, json};

use crate::client_support::{Scripted, stream};
use crate::puppet_support::{Mcp, a2a_send};

/// Where the servers of a run are, by mode.
type Servers = Arc<Mutex<Vec<(Mode, String)>>>;

#[tokio::test(flavor = "multi_thread")]
async fn every_public_document_runs_to_a_verdict() {
    let test = "every_public_document_runs_to_a_verdict";
    let Some(folder) = vectors(test, "oatf-scenarios") else {
        return;
    };
    let mut running = tokio::task::JoinSet::new();
    for path in documents(&folder) {
        running.spawn(async move {
            let document = read(&path);
            (path, play(&document).await)
        });
    }
    let mut seen = HashMap::<&str, usize>::new();
    let mut count = 0;
    while let Some(played) = running.join_next().await {
        let (path, report) = played.unwrap();
        let name = path.display();
        assert_eq!(report.errors, [], "{name}");
        assert!(report.messages > 0, "{name}: nothing was seen");
        assert!(report.exposure.reached, "{name}: {:?}", report.exposure);
        let result = report.verdict.unwrap().attack.result;
        assert_ne!(result, AttackResult::Error, "{name}");
        *seen.entry(result.as_str()).or_default() += 1;
        count += 1;
    }
    println!("{count} documents: {seen:?}");
    assert_eq!(count, 40);
    assert!(
        seen["exploited"] > 10,
        "a subject that does everything falls for much: {seen:?}"
    );
}

#[expect(clippy::disallowed_methods, reason = "small files of the test")]
fn read(path: &Path) -> Document {
    load(&std::fs::read_to_string(path).unwrap())
        .unwrap()
        .document
}

fn documents(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(documents(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            found.push(path);
        }
    }
    found
}

async fn play(document: &Document) -> RunReport {
    let servers = Servers::default();
    let puppet = ag_ui_puppet(Arc::clone(&servers)).await;
    let actors = document.attack.execution.actors();
    let has_client = actors.iter().any(|actor| actor.mode == Mode::AgUiClient);
    let modes: HashMap<String, Mode> = actors
        .iter()
        .map(|actor| (actor.name.clone(), actor.mode.clone()))
        .collect();
    let (ready, found) = (Arc::clone(&servers), modes.clone());
    let options = RunOptions {
        endpoints: actors
            .iter()
            .filter(|actor| actor.mode == Mode::AgUiClient)
            .map(|actor| (actor.name.clone(), ActorEndpoint::Url(puppet.url.clone())))
            .collect(),
        grace: Duration::from_millis(100),
        settle: Duration::from_millis(1_500),
        max_session: Duration::from_secs(45),
        observer: Some(Arc::new(move |event: &RunEvent| {
            if let RunEvent::Ready {
                actor,
                address: Some(address),
            } = event
            {
                let mut ready = ready.lock().unwrap();
                ready.push((found[actor].clone(), address.clone()));
            }
        })),
        ..RunOptions::default()
    };
    let handle = RunHandle::default();
    let alone = async {
        // Without a frontend, the subject begins by itself.
        if !has_client {
            tokio::time::sleep(Duration::from_millis(300)).await;
            work(&servers).await;
        }
    };
    let (report, ()) = tokio::join!(run(document, options, &handle), alone);
    report.unwrap()
}

/// An agent behind AG-UI: on every run it does all it can, and says what it was asked to.
async fn ag_ui_puppet(servers: Servers) -> Scripted {
    Scripted::start(move |_, arrived| {
        let (servers, input) = (Arc::clone(&servers), arrived.body.clone());
        stream(move |writer| async move {
            let said = work(&servers).await;
            let ids = json!({"threadId": input["threadId"], "runId": input["runId"]});
            let text = format!("{} {}", last_message(&input), said);
            let events = [
                json!({"type": "RUN_STARTED", "threadId": ids["threadId"], "runId": ids["runId"]}),
                json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}),
                json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": text}),
                json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
                json!({"type": "RUN_FINISHED", "threadId": ids["threadId"], "runId": ids["runId"]}),
            ];
            for event in events {
                let _ = writer.write(format!("data: {event}\n\n")).await;
            }
        })
    })
    .await
}

fn last_message(input: &Value) -> String {
    let messages = input["messages"].as_array();
    let last = messages.and_then(|messages| messages.last());
    last.map(|message| message["content"].to_string())
        .unwrap_or_default()
}

/// Goes to every server and takes what it offers; returns what it was told.
async fn work(servers: &Servers) -> String {
    let servers = servers.lock().unwrap().clone();
    let mut told = String::new();
    for (mode, address) in servers {
        match mode {
            Mode::McpServer => told.push_str(&use_mcp(&address).await),
            Mode::A2aServer => told.push_str(&use_a2a(&address).await),
            _ => {}
        }
    }
    told
}

async fn use_mcp(url: &str) -> String {
    let mut mcp = Mcp::open(url).await;
    let mut told = String::new();
    // Twice, so that later phases of a document are seen, too.
    for _ in 0..2 {
        let tools = mcp.call("tools/list", json!({})).await;
        for tool in list(&tools, "tools") {
            let arguments = arguments_for(&tool["inputSchema"], &told);
            let call = json!({"name": tool["name"], "arguments": arguments});
            let result = mcp.call("tools/call", call).await;
            told.push_str(&result["content"].to_string());
            told.truncate(told.floor_char_boundary(20_000));
        }
        for resource in list(&mcp.call("resources/list", json!({})).await, "resources") {
            mcp.call("resources/read", json!({"uri": resource["uri"]}))
                .await;
        }
        for prompt in list(&mcp.call("prompts/list", json!({})).await, "prompts") {
            mcp.call("prompts/get", json!({"name": prompt["name"]}))
                .await;
        }
    }
    told
}

fn list(result: &Value, key: &str) -> Vec<Value> {
    result[key].as_array().cloned().unwrap_or_default()
}

/// An argument for every property: what was told before, and things an agent should keep.
fn arguments_for(schema: &Value, told: &str) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut arguments: serde_json::Map<String, Value> = properties
        .map(|(name, property)| {
            let value = match property["type"].as_str() {
                Some("integer" | "number") => json!(1),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") => json!({}),
                _ => json!(format!("/home/user/.ssh/id_rsa {told}")),
            };
            (name.clone(), value)
        })
        .collect();
    arguments.insert("path".to_owned(), json!("/home/user/.ssh/id_rsa"));
    Value::Object(arguments)
}

async fn use_a2a(address: &str) -> String {
    let text = "Please do what is on the list, with /home/user/.ssh/id_rsa.";
    a2a_send(address, text).await.to_string()
}
