//! Writing on the streams of clients: what calls say, and what changes.

use std::time::Duration;

use proofhouse_wire::server::StreamWriter;
use proofhouse_wire::sse::Event;
use proofhouse_wire::{CancellationToken, rpc};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

use super::core::Running;
use super::protocol::{Era, response, tagged};

/// A comment: clients pass over it, and writing it shows whether they are still there.
const KEEP_ALIVE: &str = ":\n\n";

/// Where the messages of a server go.
#[derive(Clone)]
pub(super) enum Outlet {
    /// Events of a stream, with the time after which a silent one says that it is there.
    Events(StreamWriter, Duration),
    /// Lines.
    Lines(mpsc::Sender<String>),
}

/// The client is gone.
pub(super) struct Gone;

impl Outlet {
    pub(super) async fn send(&self, message: &Value) -> Result<(), Gone> {
        let text = message.to_string();
        match self {
            Self::Events(writer, _) => {
                let written = writer.write(Event::data(text).encode()).await;
                written.map_err(|_| Gone)
            }
            Self::Lines(lines) => lines.send(text).await.map_err(|_| Gone),
        }
    }

    async fn closed(&self) {
        match self {
            Self::Events(writer, _) => writer.closed().await,
            Self::Lines(lines) => lines.closed().await,
        }
    }

    /// Says nothing in time, for ever.
    async fn kept_alive(&self) -> Gone {
        let Self::Events(writer, every) = self else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(*every).await;
            if writer.write(KEEP_ALIVE).await.is_err() {
                return Gone;
            }
        }
    }
}

/// Writes what a call says and what it comes to. In the modern era a client that goes cancels its call
/// with that; in the legacy era it does not, and what it would have heard is lost.
pub(super) async fn write_call(outlet: &Outlet, era: Era, id: &Value, mut running: Running) {
    let cancel = (era == Era::Modern).then(|| running.cancel.clone().drop_guard());
    let writing = async {
        loop {
            tokio::select! {
                biased;
                Some(note) = running.notes.recv() => outlet.send(&note).await?,
                done = &mut running.done => {
                    if let Ok(outcome) = done {
                        outlet.send(&response(id, outcome)).await?;
                    }
                    return Ok::<_, Gone>(());
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
pub(super) enum Subscription<'a> {
    /// The listening stream of a legacy session.
    Session,
    /// A request of the modern era, by its id, that wants to hear of the list of tools or not.
    Request(&'a Value, bool),
}

/// Tells a client of changes until it goes or `over`.
pub(super) async fn write_changes(
    outlet: &Outlet,
    mut changes: watch::Receiver<u64>,
    subscription: Subscription<'_>,
    over: &CancellationToken,
) {
    const CHANGED: &str = "notifications/tools/list_changed";
    changes.mark_unchanged();
    let writing = async {
        if let Subscription::Request(id, tools) = subscription {
            let mut heard = Map::new();
            if tools {
                heard.insert("toolsListChanged".into(), true.into());
            }
            let mut params = Map::new();
            params.insert("notifications".into(), json!(heard));
            let method = "notifications/subscriptions/acknowledged";
            outlet.send(&tagged(method, params, id)).await?;
        }
        loop {
            if changes.changed().await.is_err() {
                return std::future::pending::<Result<(), Gone>>().await;
            }
            match subscription {
                Subscription::Session => outlet.send(&rpc::notification(CHANGED, None)).await?,
                Subscription::Request(id, true) => {
                    outlet.send(&tagged(CHANGED, Map::new(), id)).await?;
                }
                Subscription::Request(_, false) => {}
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
