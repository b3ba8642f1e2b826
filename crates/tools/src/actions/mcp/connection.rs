//! Connections: a server that was started or connected to, until it is left.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientConfig, SubscriptionFilter};
use rmcp::service::{ClientCacheConfig, Peer, RoleClient, RunningService};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::catalog::{self, ToolCatalog};
use super::process::ServerProcess;
use super::server_task::TaskCancellations;
use super::sieve::Sieve;
use crate::runtime::ActionError;

/// How long saying goodbye may take; the SDK gives the end of an HTTP session five seconds.
const CLOSE_PATIENCE: Duration = Duration::from_secs(6);

/// How long to wait after the news that the list has changed: more changes may follow.
const REFRESH_PAUSE: Duration = Duration::from_millis(100);

/// The shortest time between two lists, however often a server says that it has changed.
const REFRESH_REST: Duration = Duration::from_secs(1);

/// How long to wait before asking for news again, after a server ended the subscription to it.
const LISTEN_PAUSE: Duration = Duration::from_secs(10);

/// A connection to a server.
pub(super) struct McpConnection {
    peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, ClientConfig>>>,
    process: Option<ServerProcess>,
    cancellations: TaskCancellations,
    /// Keeps the list of tools fresh.
    background: JoinHandle<()>,
}

impl McpConnection {
    /// Takes over a session that has begun.
    pub(super) async fn new(
        running: RunningService<RoleClient, ClientConfig>,
        process: Option<ServerProcess>,
        sieve: Arc<Sieve>,
        catalog: Arc<ToolCatalog>,
        refresh: Duration,
    ) -> Self {
        let peer = running.peer().clone();
        // The sieve keeps the news from the SDK, so its memory would grow old.
        peer.set_response_cache_config(ClientCacheConfig::disabled())
            .await;
        let background = tokio::spawn(keep_fresh(peer.clone(), sieve, catalog, refresh));
        Self {
            peer,
            running: Mutex::new(Some(running)),
            process,
            cancellations: TaskCancellations::default(),
            background,
        }
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    /// Where tasks of the server are cancelled.
    pub(super) fn cancellations(&self) -> &TaskCancellations {
        &self.cancellations
    }

    /// Whether something can be sent.
    pub(super) fn is_open(&self) -> bool {
        !self.peer.is_transport_closed() && self.process.as_ref().is_none_or(ServerProcess::is_open)
    }

    /// What the process, if it is one, wrote to its error output.
    pub(super) async fn said(&self) -> String {
        match &self.process {
            Some(process) => process.said().await,
            None => String::new(),
        }
    }

    /// Asks for all tools.
    pub(super) async fn list(&self) -> Result<Vec<rmcp::model::Tool>, ActionError> {
        catalog::list(&self.peer).await
    }

    /// Ends the session and the process, and waits until they are gone.
    pub(super) async fn close(&self) {
        self.background.abort();
        self.cancellations.finish().await;
        let running = self.running.lock().await.take();
        let session = async {
            if let Some(mut running) = running {
                let _ = running.close_with_timeout(CLOSE_PATIENCE).await;
            }
        };
        let process = async {
            if let Some(process) = &self.process {
                process.stop().await;
            }
        };
        tokio::join!(session, process);
    }
}

impl Drop for McpConnection {
    fn drop(&mut self) {
        self.background.abort();
    }
}

/// Lists the tools again whenever the server says that they have changed. A list that cannot be had
/// leaves the old one in place.
async fn keep_fresh(
    peer: Peer<RoleClient>,
    sieve: Arc<Sieve>,
    catalog: Arc<ToolCatalog>,
    patience: Duration,
) {
    let refreshing = async {
        loop {
            sieve.changed().await;
            tokio::time::sleep(REFRESH_PAUSE).await;
            match tokio::time::timeout(patience, catalog::list(&peer)).await {
                Ok(Ok(tools)) => catalog.replace(tools),
                _ => tracing::warn!("an MCP server has new tools and does not list them"),
            }
            tokio::time::sleep(REFRESH_REST).await;
        }
    };
    tokio::join!(refreshing, listen(&peer, &sieve));
}

/// Asks a server of the modern era for news of its tools; those of the legacy era send it unasked.
async fn listen(peer: &Peer<RoleClient>, sieve: &Sieve) {
    let Some(info) = peer.peer_info() else { return };
    let tools = info.capabilities.tools.as_ref();
    let has_news = tools.is_some_and(|tools| tools.list_changed == Some(true));
    if info.protocol_version.has_initialize() || !has_news {
        return;
    }
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        if let Ok(mut subscription) = peer.listen(filter).await {
            // The sieve takes the news; this waits for the end.
            while let Ok(Some(_)) = subscription.next().await {}
        }
        if peer.is_transport_closed() {
            return;
        }
        tokio::time::sleep(LISTEN_PAUSE).await;
        // What happened in between was not heard.
        sieve.poke();
    }
}
