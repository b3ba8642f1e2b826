//! Who listens: what the calls of a task's polls and channels are made with.

use std::sync::Arc;

use proofhouse_manifest::interpolate::Root;
use proofhouse_store::Result;
use proofhouse_store::model::{TaskRecord, ToolRef};
use proofhouse_tools::receive::EventListener;
use serde_json::{Map, Value, json};

use super::EngineShared;
use super::manifests::ManifestSnapshot;

/// The listener of a task for a tool; nothing if the tool is not there any more.
pub(super) async fn of(
    inner: &EngineShared,
    snapshot: &ManifestSnapshot,
    task: &TaskRecord,
    tool: &ToolRef,
) -> Result<Option<EventListener>> {
    let Some(compiled) = snapshot.tool(tool) else {
        return Ok(None);
    };
    let mut parameters = Map::new();
    for (name, schema) in compiled.tool.parameters.properties() {
        if let Some(default) = schema.get("default") {
            parameters.insert(name.clone(), default.clone());
        }
    }
    for entry in inner.store.allow_list(&task.id).await? {
        if entry.sealed && entry.tool == *tool {
            parameters.insert(entry.name, entry.value);
        }
    }
    let agent = json!({"name": task.agent_name, "namespace": task.agent_namespace});
    let context: Value = json!({
        "agent": agent,
        "user": {"id": task.user_id, "email": task.user_email},
        "task": {"id": task.id},
    });
    Ok(Some(EventListener {
        tool: Arc::clone(&compiled.tool),
        parameters,
        context,
        environment: inner.options.call_environment().with(Root::Agent, agent),
        cancel: inner.deadline.child_token(),
    }))
}
