//! The clients: they begin tasks, send webhooks, say things and want things, again and again until they are answered, and
//! note what was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use proofhouse_agent::task::Decision;
use proofhouse_server::engine::{EngineError, Idempotency, TaskRequest, WebhookOutcome};
use proofhouse_store::model::TaskState;
use serde_json::{Map, json};
use tokio::task::JoinSet;

use super::world::SimWorld;
use crate::engine_support::ping;

/// More deliveries than are ever looked at together.
const MANY: u64 = 70;

/// What a task is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskRole {
    /// Gets everything, and calls a tool now and then.
    Plain,
    /// Asks a person before it calls.
    Asker,
    /// Is cancelled.
    Doomed,
    /// Is interrupted, and goes on.
    Stopped,
}

/// What was acknowledged.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) tasks: BTreeMap<String, TaskRole>,
    pub(super) pings: BTreeSet<u64>,
    /// What was said to which task.
    pub(super) said: BTreeMap<String, BTreeSet<String>>,
    pub(super) cancelled: BTreeSet<String>,
    pub(super) approved: BTreeSet<String>,
}

type ClientResult = Result<(), String>;

/// Begins the clients.
pub(super) fn spawn(world: &Arc<SimWorld>, clients: &mut JoinSet<ClientResult>) {
    let world = Arc::clone(world);
    let begin = async move {
        let roles = [
            TaskRole::Plain,
            TaskRole::Plain,
            TaskRole::Asker,
            TaskRole::Doomed,
            TaskRole::Stopped,
        ];
        let tasks = (0..)
            .zip(roles)
            .map(|(number, role)| (format!("task-{number}"), role));
        let tasks: Vec<(String, TaskRole)> = tasks.collect();
        for (task, role) in &tasks {
            start(&world, task, *role).await?;
        }
        let mut busy = JoinSet::new();
        busy.spawn_local(send_pings(Arc::clone(&world)));
        for (task, role) in tasks {
            busy.spawn_local(attend(Arc::clone(&world), task, role));
        }
        while let Some(ended) = busy.join_next().await {
            ended.map_err(|error| error.to_string())??;
        }
        Ok(())
    };
    clients.spawn_local(begin);
}

async fn pause(world: &SimWorld, up_to_ms: u64) {
    let time = world.stage.dice.below(up_to_ms);
    tokio::time::sleep(Duration::from_millis(time)).await;
}

fn failed(what: &str) -> impl Fn(EngineError) -> String {
    let what = what.to_owned();
    move |error| format!("{what}: {error}")
}

async fn start(world: &SimWorld, task: &str, role: TaskRole) -> ClientResult {
    let (agent, message) = match role {
        TaskRole::Asker => ("asker", "call hub {\"number\": 7}"),
        TaskRole::Plain | TaskRole::Doomed | TaskRole::Stopped => ("clerk", "hello"),
    };
    let once = Idempotency {
        task: task.to_owned(),
        fingerprint: task.to_owned(),
    };
    let request = TaskRequest {
        namespace: "demo".to_owned(),
        agent: agent.to_owned(),
        message: Some(message.to_owned()),
        origin: json!({"by": "simulation"}),
        ..TaskRequest::default()
    };
    world
        .ask(async |engine| engine.start_task_once(request.clone(), &once).await)
        .await
        .map_err(failed("a task cannot be started"))?;
    let mut ledger = world.ledger.lock().unwrap();
    ledger.tasks.insert(task.to_owned(), role);
    let said = ledger.said.entry(task.to_owned()).or_default();
    said.insert(message.to_owned());
    Ok(())
}

async fn send_pings(world: Arc<SimWorld>) -> ClientResult {
    for id in 0..world.stage.dice.between(4, 14) {
        pause(&world, 1_500).await;
        let body = ping(id).to_string();
        let mut headers = HeaderMap::new();
        let json = http::HeaderValue::from_static("application/json");
        headers.insert("content-type", json);
        headers.insert("x-github-delivery", http::HeaderValue::from(id));
        world
            .ask(
                async |engine| match engine.accept("hub", &headers, None, body.as_bytes()).await {
                    WebhookOutcome::Stored(_) | WebhookOutcome::Duplicate(_) => Ok(()),
                    other => Err(EngineError::Unavailable(format!("{other:?}"))),
                },
            )
            .await
            .map_err(failed("a webhook"))?;
        world.ledger.lock().unwrap().pings.insert(id);
    }
    Ok(())
}

/// Says something to a task; whether it still could be said.
async fn say(world: &SimWorld, task: &str, message: &str) -> Result<bool, String> {
    let key = Some(message.replace(' ', "-"));
    let said = world
        .ask(async |engine| {
            let message = Some(message.to_owned());
            engine.message(task, message, Map::new(), key.clone()).await
        })
        .await;
    match said {
        Ok(_) => {
            let mut ledger = world.ledger.lock().unwrap();
            let said = ledger.said.entry(task.to_owned()).or_default();
            said.insert(message.to_owned());
            Ok(true)
        }
        Err(EngineError::Conflict(_)) => Ok(false),
        Err(error) => Err(format!("{task} cannot be told {message}: {error}")),
    }
}

async fn attend(world: Arc<SimWorld>, task: String, role: TaskRole) -> ClientResult {
    let (world, task) = (&*world, task.as_str());
    match role {
        TaskRole::Plain => {
            for number in 0..world.stage.dice.between(2, 7) {
                pause(world, 2_500).await;
                let message = if number % 2 == 0 {
                    format!("call hub {{\"number\": {number}}}")
                } else {
                    format!("note {number}")
                };
                say(world, task, &message).await?;
            }
            Ok(())
        }
        TaskRole::Asker => approve(world, task).await,
        TaskRole::Doomed => {
            pause(world, 8_000).await;
            say(world, task, "note before").await?;
            let cancelled = world.ask(async |engine| engine.cancel(task).await).await;
            match cancelled {
                // It may have ended because an earlier try was kept.
                Ok(()) | Err(EngineError::Conflict(_)) => {}
                Err(error) => return Err(format!("{task} cannot be cancelled: {error}")),
            }
            world
                .ledger
                .lock()
                .unwrap()
                .cancelled
                .insert(task.to_owned());
            for number in 0..world.stage.dice.pick(&[0, MANY]).copied().unwrap_or(0) {
                if !say(world, task, &format!("note after {number}")).await? {
                    break;
                }
            }
            Ok(())
        }
        TaskRole::Stopped => {
            pause(world, 6_000).await;
            let stopped = world.ask(async |engine| engine.interrupt(task).await).await;
            stopped.map_err(failed("a task cannot be interrupted"))?;
            pause(world, 4_000).await;
            say(world, task, "note while stopped").await?;
            match world.ask(async |engine| engine.resume(task).await).await {
                // It goes on by itself when it is told something.
                Ok(()) | Err(EngineError::Conflict(_)) => {}
                Err(error) => return Err(format!("{task} cannot go on: {error}")),
            }
            say(world, task, "note at last").await?;
            Ok(())
        }
    }
}

/// Answers the question of a task that waits for it, sometimes after many other things were said to it.
async fn approve(world: &SimWorld, task: &str) -> ClientResult {
    loop {
        let row = world.observer.task(task).await;
        let row = row.map_err(|error| error.to_string())?;
        if row.state == TaskState::Waiting {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let many = world.stage.dice.pick(&[0, 3, MANY]).copied().unwrap_or(0);
    for number in 0..many {
        say(world, task, &format!("note {number}")).await?;
    }
    pause(world, 4_000).await;
    loop {
        let decided = world
            .ask(async |engine| engine.decide(task, 1, Decision::Approve, json!({})).await)
            .await;
        let known = world.observer.deliveries(task, None, 1_000).await;
        let known = known.map_err(|error| error.to_string())?;
        let is_kept = known.iter().any(|one| one.name == "control.approve");
        match decided {
            Ok(()) if is_kept => break,
            Ok(()) => return Err(format!("the answer to {task} was acknowledged and is lost")),
            // An earlier try was kept though nobody was told.
            Err(EngineError::Conflict(_)) if is_kept => break,
            Err(EngineError::Conflict(_)) => pause(world, 500).await,
            Err(error) => return Err(format!("{task} cannot be answered: {error}")),
        }
    }
    world
        .ledger
        .lock()
        .unwrap()
        .approved
        .insert(task.to_owned());
    Ok(())
}
