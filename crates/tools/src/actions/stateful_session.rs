//! `stateful_session`: a remote session that is made at the first call, made again when it expired, and
//! ended with the task.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::session::{OpenSession, session_of};
use crate::http::HttpClient;
use crate::runtime::{
    ActionCall, ActionError, ActionFailure, ActionRuntime, ActionSession, Environment, Preview,
    Setup,
};

/// The runtime, as far as it needs nothing from an operator.
pub(super) fn runtime(setup: &Setup<'_>) -> Result<Arc<dyn ActionRuntime>, ActionError> {
    Ok(Arc::new(StatefulSession::new(Arc::clone(&setup.client))))
}

/// Keeps sessions with servers.
#[derive(Debug, Clone)]
pub struct StatefulSession {
    client: Arc<HttpClient>,
}

/// The session of a task with a server.
struct RemoteSession {
    client: Arc<HttpClient>,
    slot: Arc<Mutex<SessionSlot>>,
}

struct SessionSlot {
    open: Arc<OpenSession>,
    /// How often a new one was tried for.
    renewals: u64,
    /// Statuses that a new session did not mend. With this server, they say something else.
    unmended: Vec<u16>,
    /// Whether the task has ended.
    closed: bool,
}

/// A call that the server refused, perhaps because the session expired.
struct RefusedCall {
    session: Arc<OpenSession>,
    /// How often a new session had been tried for when the call began.
    renewals: u64,
    status: u16,
    error: ActionError,
}

impl StatefulSession {
    /// A runtime that sends through this client.
    #[must_use]
    pub fn new(client: Arc<HttpClient>) -> Self {
        Self { client }
    }
}

impl ActionRuntime for StatefulSession {
    fn initialize<'a>(
        &'a self,
        call: &'a ActionCall,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        Box::pin(async move {
            let open = OpenSession::new(&self.client, call, environment).await?;
            let slot = SessionSlot {
                open: Arc::new(open),
                renewals: 0,
                unmended: Vec::new(),
                closed: false,
            };
            Ok(Arc::new(RemoteSession {
                client: Arc::clone(&self.client),
                slot: Arc::new(Mutex::new(slot)),
            }) as Arc<dyn ActionSession>)
        })
    }

    fn preview(&self, mut preview: Preview<'_>) -> Result<Value, ActionError> {
        let session = session_of(preview.call)?;
        preview.set_session(session.extract.iter().map(|(key, _)| key.as_str()));
        let mut shown = Map::new();
        for (key, call) in [
            ("create", &session.create),
            ("initialize", &session.initialize),
            ("execute", &session.execute),
            ("destroy", &session.destroy),
        ] {
            if let Some(call) = call {
                shown.insert(key.to_owned(), preview.request(call)?);
            }
        }
        Ok(json!({"requests": shown}))
    }
}

impl RemoteSession {
    /// Repeats a call in a new session.
    ///
    /// Of many calls that see the same session expire, one makes the new one, and the others wait. The
    /// session is replaced only once the new one has proven better: a status like 404 may also be about
    /// what the action names, and then the session with all that happened in it must stay.
    async fn renew(
        client: &HttpClient,
        slot: &Mutex<SessionSlot>,
        refused: RefusedCall,
        call: &ActionCall,
        environment: &Environment,
    ) -> Result<Value, ActionError> {
        let mut slot = slot.lock().await;
        if slot.closed {
            return Err(refused.error);
        }
        if !Arc::ptr_eq(&slot.open, &refused.session) {
            let open = Arc::clone(&slot.open);
            drop(slot);
            return open.execute(client, call, environment).await;
        }
        if slot.renewals != refused.renewals || slot.unmended.contains(&refused.status) {
            return Err(refused.error);
        }
        slot.renewals += 1;
        let open = Arc::new(OpenSession::new(client, call, environment).await?);
        let result = open.execute(client, call, environment).await;
        match &result {
            Err(error) if expired(error) == Some(refused.status) => {
                slot.unmended.push(refused.status);
                let _ = open.close(client, environment).await;
            }
            _ => {
                let old = std::mem::replace(&mut slot.open, open);
                // 410 says that it is gone. After 401 or 404 it may still be there, for all we know, and
                // ending it twice does no harm. How that ends concerns nobody any more.
                if refused.status != 410 {
                    let _ = old.close(client, environment).await;
                }
            }
        }
        result
    }
}

impl ActionSession for RemoteSession {
    fn holds_state(&self) -> bool {
        true
    }

    fn invoke<'a>(
        &'a self,
        call: &'a ActionCall,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async move {
            let (session, renewals) = {
                let slot = self.slot.lock().await;
                (Arc::clone(&slot.open), slot.renewals)
            };
            let result = session.execute(&self.client, call, environment).await;
            let (error, status) = match result {
                Ok(value) => return Ok(value),
                Err(error) => match expired(&error) {
                    Some(status) => (error, status),
                    None => return Err(error),
                },
            };
            let refused = RefusedCall {
                session,
                renewals,
                status,
                error,
            };
            // In a task of its own: a caller that is cancelled must not lose a session that was made.
            let (client, slot) = (Arc::clone(&self.client), Arc::clone(&self.slot));
            let (call, environment) = (call.clone(), environment.clone());
            let renewing =
                async move { Self::renew(&client, &slot, refused, &call, &environment).await };
            let stopped = |_| ActionError::new(ActionFailure::Ended, "the runtime stopped");
            tokio::spawn(renewing).await.map_err(stopped)?
        })
    }

    fn teardown<'a>(
        &'a self,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<(), ActionError>> {
        Box::pin(async move {
            let mut slot = self.slot.lock().await;
            slot.closed = true;
            slot.open.close(&self.client, environment).await
        })
    }
}

/// The status of an answer that may mean that the session is no more.
fn expired(error: &ActionError) -> Option<u16> {
    if error.failure != ActionFailure::HttpStatus {
        return None;
    }
    match error.detail.get("status").and_then(Value::as_u64) {
        Some(status @ (401 | 404 | 410)) => u16::try_from(status).ok(),
        _ => None,
    }
}
