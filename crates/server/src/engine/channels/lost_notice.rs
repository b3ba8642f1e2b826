//! The notice that a channel is lost: events will be missing, and whoever waits for them should know.

use proofhouse_store::model::{DirectDelivery, TaskRecord, ToolRef};
use proofhouse_store::{Result, StoreError};
use serde_json::json;

use crate::engine::EngineShared;
use crate::metrics::engine::ChannelStep;

/// Stands for a channel that could not be opened, in the key of the notice about it.
pub(super) const OPENING: &str = "opening";

/// Tells a task, once, and those who look after it, that events will be missing.
pub(super) async fn send_lost_notice(
    inner: &EngineShared,
    task: &TaskRecord,
    tool: &ToolRef,
    event: &str,
    channel: &str,
    error: &str,
) -> Result<()> {
    inner.counts().channel_steps.one(ChannelStep::Lost);
    tracing::error!(task = %task.id, tool = %tool.name, %event, %error, "a channel is lost");
    let about = json!({"tool": tool.name, "event": event, "error": error});
    let entry = json!({"notice": "channel_lost", "about": about});
    inner.store.append_trace(&task.id, vec![entry]).await?;
    // What the platform said is for people: a task hears only what is ours to say.
    let message = format!(
        "Notice: the subscription to `{event}` of `{}` is lost. Such events do not come until it can be \
         opened again.",
        tool.name
    );
    let notice = DirectDelivery {
        key: Some(format!("channel_lost:{}:{event}:{channel}", tool.name)),
        name: "message".to_owned(),
        body: json!({"message": message}),
        same: Vec::new(),
    };
    match inner.store.deliver(&task.id, notice).await {
        Ok(_) => {
            if !inner.working.notify(&task.id) {
                inner.wake_deliverer.notify_one();
            }
            Ok(())
        }
        // The task has ended meanwhile.
        Err(StoreError::Conflict(_) | StoreError::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
