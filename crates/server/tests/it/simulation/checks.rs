//! What must hold: nothing acknowledged is lost, nothing is done twice, everything gets done.

use std::collections::BTreeMap;
use std::time::Duration;

use proofhouse_agent::task::{CallStatus, Turn};
use proofhouse_store::model::TaskState;

use super::clients::TaskRole;
use super::world::SimWorld;
use crate::engine_support::{inputs, turns};

/// What is not done yet, if something is not. An error is something that must never be.
pub(super) async fn unmet(world: &SimWorld) -> Result<Option<String>, String> {
    let tasks: Vec<(String, TaskRole)> = {
        let ledger = world.ledger.lock().unwrap();
        ledger.tasks.clone().into_iter().collect()
    };
    for (task, role) in tasks {
        if let Some(unmet) = unmet_of(world, &task, role).await? {
            return Ok(Some(unmet));
        }
    }
    Ok(None)
}

async fn unmet_of(world: &SimWorld, task: &str, role: TaskRole) -> Result<Option<String>, String> {
    let row = world.observer.task(task).await;
    let row = row.map_err(|error| error.to_string())?;
    let turns = turns(&world.observer, task).await;
    let mut given: BTreeMap<String, usize> = BTreeMap::new();
    for (message, _) in inputs(&turns) {
        *given.entry(message).or_default() += 1;
    }
    if let Some((message, times)) = given.iter().find(|(_, times)| **times > 1) {
        return Err(format!("{task} was given `{message}` {times} times"));
    }
    calls_are_made_once(task, &turns)?;
    let ledger = world.ledger.lock().unwrap();
    let is_lost = |message: &str| !given.contains_key(message);
    if ledger.cancelled.contains(task) {
        return Ok((row.state != TaskState::Ended)
            .then(|| format!("{task} is cancelled and {}", row.state)));
    }
    if row.state == TaskState::Ended {
        return Err(format!("{task} has ended: {:?}", row.detail));
    }
    let said = ledger.said.get(task).into_iter().flatten();
    if let Some(message) = said.into_iter().find(|message| is_lost(message)) {
        return Ok(Some(format!("{task} is {} without `{message}`", row.state)));
    }
    // Whoever is interrupted gets no events.
    let listens = match role {
        TaskRole::Plain | TaskRole::Asker => true,
        TaskRole::Doomed | TaskRole::Stopped => false,
    };
    let mut pings = ledger.pings.iter().map(|id| format!("ping {id}"));
    if listens && let Some(message) = pings.find(|message| is_lost(message)) {
        return Ok(Some(format!("{task} is {} without `{message}`", row.state)));
    }
    let waits_rightly = role == TaskRole::Asker && !ledger.approved.contains(task);
    if row.state != TaskState::Idle && !waits_rightly {
        return Ok(Some(format!("{task} is {}", row.state)));
    }
    drop(ledger);
    let answers = turns
        .iter()
        .filter(|turn| matches!(turn, Turn::Output { .. }))
        .count();
    let asked = given.len();
    if role == TaskRole::Plain && answers != asked {
        return Err(format!("{task} answered {answers} of {asked} inputs"));
    }
    let commands = world.observer.commands(task, 10).await;
    let commands = commands.map_err(|error| error.to_string())?;
    Ok(commands
        .first()
        .map(|command| format!("{task} has not obeyed {}", command.name)))
}

/// Every call has one result at most, and none was begun twice.
fn calls_are_made_once(task: &str, turns: &[Turn]) -> Result<(), String> {
    let (mut begun, mut ended) = (BTreeMap::new(), BTreeMap::new());
    for turn in turns {
        match turn {
            Turn::Calling { arguments, .. } => {
                *begun.entry(arguments["number"].to_string()).or_insert(0) += 1;
            }
            Turn::Capability {
                arguments,
                result,
                status,
                ..
            } => {
                *ended.entry(arguments["number"].to_string()).or_insert(0) += 1;
                if *status != CallStatus::Successful && result["outcome_unknown"] != true {
                    return Err(format!("{task}: a call failed: {result}"));
                }
            }
            _ => {}
        }
    }
    match begun.iter().chain(&ended).find(|(_, times)| **times > 1) {
        Some((number, times)) => Err(format!("{task}: call {number} was made {times} times")),
        None => Ok(()),
    }
}

/// How often it is looked at what is held, and how long after each other: together longer than the longest pause. A process that
/// was paused when the faults ended sleeps to the end of its pause, and lets go only then.
const LOOKS: u32 = 30;
const LOOK_AGAIN: Duration = Duration::from_millis(370);

/// Nobody holds anything for long when nothing is left to do.
pub(super) async fn nothing_is_held(world: &SimWorld) -> Result<(), String> {
    let mut held = still_held(world).await?;
    for _ in 1..LOOKS {
        if held.is_none() {
            break;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
        held = still_held(world).await?;
    }
    held.map_or(Ok(()), Err)
}

async fn still_held(world: &SimWorld) -> Result<Option<String>, String> {
    for engine in world.engines() {
        let progress = world.observer.progress(engine.owner(), None).await;
        let progress = progress.map_err(|error| error.to_string())?;
        let (workers, leases) = (engine.working(), progress.leases);
        if workers > 0 || leases > 0 {
            let held = format!("{workers} workers and {leases} leases are left");
            return Ok(Some(held));
        }
        if progress.oldest_event_ms.is_some() || progress.oldest_command_ms.is_some() {
            return Ok(Some(format!("something waits: {progress:?}")));
        }
    }
    Ok(None)
}
