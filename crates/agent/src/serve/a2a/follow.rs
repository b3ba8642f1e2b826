//! Streams of A2A: what happens to a task, told as it happens.

use std::sync::Arc;

use proofhouse_protocol::a2a::A2aVersion;
use proofhouse_protocol::rpc;
use proofhouse_wire::server::StreamWriter;
use proofhouse_wire::sse::SseEvent;
use serde_json::Value;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::records::{A2aTaskRecord, Update, ends_stream};

/// Writes what happens to a task.
pub(super) struct TaskStreamWriter {
    pub(super) id: Value,
    pub(super) generation: A2aVersion,
    pub(super) record: Arc<A2aTaskRecord>,
    pub(super) writer: StreamWriter,
    pub(super) keep_alive: std::time::Duration,
}

impl TaskStreamWriter {
    pub(super) async fn follow(self, first: Value, mut updates: broadcast::Receiver<Update>) {
        if self.write(first).await.is_none() {
            return;
        }
        loop {
            let update = tokio::select! {
                update = updates.recv() => update,
                () = self.writer.closed() => return,
                () = tokio::time::sleep(self.keep_alive) => {
                    let _ = self.writer.try_write(": waiting\n\n");
                    continue;
                }
            };
            let update = match update {
                Ok(update) => update,
                // What was missed is in the task.
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            };
            let item = self.record.item(&update, self.generation);
            if self.write(item).await.is_none() || ends_stream(&update) {
                return;
            }
        }
    }

    async fn write(&self, item: Value) -> Option<()> {
        let text = rpc::to_text(&rpc::response(&self.id, item));
        self.writer.write(SseEvent::data(text).encode()).await.ok()
    }
}
