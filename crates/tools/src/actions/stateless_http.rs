//! `stateless_http`: one HTTP request per call, each independent of the others.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::exchange::exchange;
use crate::http::HttpClient;
use crate::runtime::{ActionError, ActionRuntime, ActionSession, Call, Environment, Failure};
use proofhouse_manifest::Execute;

/// Sends requests; keeps nothing between calls.
#[derive(Debug, Clone)]
pub struct StatelessHttp {
    client: Arc<HttpClient>,
}

impl StatelessHttp {
    /// A runtime that sends through this client.
    #[must_use]
    pub fn new(client: Arc<HttpClient>) -> Self {
        Self { client }
    }
}

impl ActionRuntime for StatelessHttp {
    fn initialize<'a>(
        &'a self,
        _call: &'a Call,
        _environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        Box::pin(async { Ok(Arc::new(self.clone()) as Arc<dyn ActionSession>) })
    }
}

impl ActionSession for StatelessHttp {
    fn invoke<'a>(
        &'a self,
        call: &'a Call,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async move {
            match &call.action.execute {
                Execute::StatelessHttp(http) => {
                    exchange(&self.client, http, call, environment, None)
                        .await?
                        .result(http)
                }
                _ => Err(ActionError::new(
                    Failure::Manifest,
                    "this is not a `stateless_http` action",
                )),
            }
        })
    }
}
