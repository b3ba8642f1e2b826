//! Writing on the streams of clients: what calls say, and what changes.

use std::time::Duration;

use proofhouse_protocol::mcp::{McpEra, McpNotification, subscription_filter, tag_params};
use proofhouse_protocol::rpc;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::server::StreamWriter;
use proofhouse_wire::sse::SseEvent;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::core::RunningCall;
use super::protocol::response;

/// A comment: clients pass over it, and writing it shows whether they are still there.
const KEEP_ALIVE: &str = ":\n\n";

/// Where the messages of a server go.
#[derive(Clone)]
pub(super) enum ServerOutlet {
    /// Events of a stream, with the time after which a silent one says that it is there.
    Events(StreamWriter, Duration),
    /// Lines.
    Lines(mpsc::Sender<String>),
}

/// The client is gone.
pub(super) struct ClientGone;

impl ServerOutlet {
    pub(super) async fn send(&self, message: &Value) -> Result<(), ClientGone> {
        let text = rpc::to_text(message);
        match self {
            Self::Events(writer, _) => {
                let written = writer.write(SseEvent::data(text).encode()).await;
                written.map_err(|_| ClientGone)
            }
            Self::Lines(lines) => lines.send(text).await.map_err(|_| ClientGone),
        }
    }

    async fn closed(&self) {
        match self {
            Self::Events(writer, _) => writer.closed().await,
            Self::Lines(lines) => lines.closed().await,
        }
    }

    /// Says nothing in time, for ever.
    async fn kept_alive(&self) -> ClientGone {
        let Self::Events(writer, every) = self else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(*every).await;
            if writer.write(KEEP_ALIVE).await.is_err() {
                return ClientGone;
            }
        }
    }
}

/// Writes what a call says and what it comes to. In the modern era a client that goes cancels its call
/// with that; in the legacy era it does not, and what it would have heard is lost.
pub(super) async fn write_call(
    outlet: &ServerOutlet,
    era: McpEra,
    id: &Value,
    mut running: RunningCall,
) {
    let cancel = (era == McpEra::Modern).then(|| running.cancel.clone().drop_guard());
    let writing = async {
        loop {
            tokio::select! {
                biased;
                Some(note) = running.notes.recv() => outlet.send(&note).await?,
                done = &mut running.done => {
                    if let Ok(outcome) = done {
                        outlet.send(&response(id, outcome)).await?;
                    }
                    return Ok::<_, ClientGone>(());
                }
            }
        }
    };
    tokio::select! {
        _ = writing => {}
        _ = outlet.kept_alive() => {}
        () = outlet.closed() => {}
    }
    drop(cancel);
}

/// Who hears of changes.
pub(super) enum ChangeSubscription<'a> {
    /// The listening stream of a legacy session.
    Session,
    /// A request of the modern era, by its id, that wants to hear of the list of tools or not.
    Request(&'a Value, bool),
}

/// Tells a client of changes until it goes or `over`.
pub(super) async fn write_changes(
    outlet: &ServerOutlet,
    mut changes: watch::Receiver<u64>,
    subscription: ChangeSubscription<'_>,
    over: &CancellationToken,
) {
    const CHANGED: McpNotification = McpNotification::ToolsListChanged;
    changes.mark_unchanged();
    let writing = async {
        if let ChangeSubscription::Request(id, tools) = subscription {
            let key = CHANGED.subscription().unwrap_or_default();
            let heard = subscription_filter(&json!({ key: tools }));
            let params = tag_params(&json!({"notifications": heard}), id);
            let method = McpNotification::SubscriptionsAcknowledged.as_str();
            let told = rpc::notification(method, Some(&params));
            outlet.send(&told).await?;
        }
        loop {
            if changes.changed().await.is_err() {
                return std::future::pending::<Result<(), ClientGone>>().await;
            }
            match subscription {
                ChangeSubscription::Session => {
                    let told = rpc::notification(CHANGED.as_str(), None);
                    outlet.send(&told).await?;
                }
                ChangeSubscription::Request(id, true) => {
                    let params = tag_params(&Value::Null, id);
                    let told = rpc::notification(CHANGED.as_str(), Some(&params));
                    outlet.send(&told).await?;
                }
                ChangeSubscription::Request(_, false) => {}
            }
        }
    };
    tokio::select! {
        _ = writing => {}
        _ = outlet.kept_alive() => {}
        () = outlet.closed() => {}
        () = over.cancelled() => {}
    }
}
