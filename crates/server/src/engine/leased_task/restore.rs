//! Taking a task up: its turns, its allow list and its tools are read, and it goes on from there.

use std::sync::Arc;

use proofhouse_agent::task::{AllowedValue, Restored, TaskAllowList, TaskOptions, Turn, User};
use proofhouse_manifest::{Receive, ToolEvent};
use proofhouse_store::StoreError;
use proofhouse_store::model::{ClaimedTask, TaskState, ToolRef};
use proofhouse_wire::CancellationToken;
use tokio::sync::OwnedSemaphorePermit;

use super::LeasedTask;
use crate::engine::deliver::TaskSignal;
use crate::engine::journal::StoreJournal;
use crate::engine::{EngineShared, kept_trace};

/// Turns that are read at once.
const PAGE: usize = 500;

/// Why a task is not taken up.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestoreError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Store(#[from] StoreError),
    /// It cannot go on as things stand.
    #[error("{0}")]
    Start(String),
}

/// Makes the task anew from what is kept of it.
pub(super) async fn restore<'a>(
    inner: &'a Arc<EngineShared>,
    claimed: ClaimedTask,
    signal: &'a TaskSignal,
    slot: Option<OwnedSemaphorePermit>,
) -> std::result::Result<LeasedTask<'a>, RestoreError> {
    let (row, lease, entries) = (claimed.task, claimed.lease, claimed.allow);
    // A command is read with all others, which it may not be the first of.
    let next = claimed.next.filter(|_| !claimed.is_command);
    let snapshot = inner.manifests.current();
    let Some(agent) = snapshot.agent(&row.agent_namespace, &row.agent_name) else {
        let (namespace, name) = (&row.agent_namespace, &row.agent_name);
        return Err(RestoreError::Start(format!(
            "there is no agent `{namespace}/{name}` any more"
        )));
    };
    let mut turns: Vec<Turn> = Vec::new();
    let mut from = 0;
    // Of a task that has done nothing yet there is nothing to read.
    while from < row.next_seq {
        let page = inner.store.turns(&row.id, from, PAGE).await?;
        let Some(last) = page.last() else {
            break;
        };
        from = last.seq + 1;
        for turn in page {
            let read = serde_json::from_value(turn.body);
            turns.push(read.map_err(|error| {
                StoreError::Corrupt(format!("turn {} of {}: {error}", turn.seq, row.id))
            })?);
        }
    }
    let tools: Vec<(String, ToolRef)> = agent
        .capabilities
        .iter()
        .filter_map(|(reference, _)| {
            Some((reference.clone(), snapshot.resolve(&agent, reference)?))
        })
        .collect();
    let allowed: TaskAllowList = entries
        .into_iter()
        .flat_map(|entry| {
            let named = tools.iter().filter(move |(_, tool)| *tool == entry.tool);
            let entry_name = entry.name;
            named.map(move |(reference, _)| AllowedValue {
                tool: reference.clone(),
                name: entry_name.clone(),
                value: entry.value.clone(),
                sealed: entry.sealed,
            })
        })
        .collect();
    let is_pushed = |event: &ToolEvent| matches!(event.receive, Receive::Subscription(_));
    let has_push = tools.iter().any(|(_, tool)| {
        let declared = snapshot.tool(tool);
        declared.is_some_and(|declared| declared.tool.events.iter().any(is_pushed))
    });
    let held = lease.held();
    let journal = Arc::new(StoreJournal::new(
        Arc::clone(&inner.store),
        inner.hub.clone(),
        &row.id,
        held.clone(),
        from,
        tools,
        Arc::clone(inner),
    ));
    let started_at = jiff::Timestamp::from_millisecond(row.created_at).unwrap_or_default();
    let options = TaskOptions {
        id: row.id.clone(),
        user: User {
            id: row.user_id,
            email: row.user_email,
        },
        cancel: CancellationToken::new(),
        journal: Some(Arc::clone(&journal) as _),
        restored: Some(Restored {
            turns,
            started_at: format!("{started_at:.3}"),
        }),
        allowed,
        ..TaskOptions::default()
    };
    let reference = format!("{}/{}", agent.namespace, agent.name);
    let task = snapshot.host.start(&agent.namespace, &reference, options);
    let task = task.map_err(|error| RestoreError::Start(error.to_string()))?;
    Ok(LeasedTask {
        inner,
        signal,
        id: row.id,
        task,
        held,
        journal,
        agent: (row.agent_namespace, row.agent_name),
        decisions: Vec::new(),
        interrupted: row.state == TaskState::Interrupted,
        interrupting: None,
        has_push,
        next,
        trace: kept_trace::of(&row.origin),
        slot,
        snapshot,
    })
}
