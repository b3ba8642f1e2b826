//! `stateless_http`: one HTTP request per call, each independent of the others.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::exchange::exchange;
use crate::http::HttpClient;
use crate::runtime::{
    ActionCall, ActionError, ActionFailure, ActionRuntime, ActionSession, Environment, Preview,
    Setup,
};
use proofhouse_manifest::{Execute, HttpCall};

/// The runtime, as far as it needs nothing from an operator.
pub(super) fn runtime(setup: &Setup<'_>) -> Result<Arc<dyn ActionRuntime>, ActionError> {
    Ok(Arc::new(StatelessHttp {
        client: Arc::clone(&setup.client),
    }))
}

/// Sends requests; keeps nothing between calls.
#[derive(Debug, Clone)]
struct StatelessHttp {
    client: Arc<HttpClient>,
}

impl ActionRuntime for StatelessHttp {
    fn initialize<'a>(
        &'a self,
        _call: &'a ActionCall,
        _environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        Box::pin(async { Ok(Arc::new(self.clone()) as Arc<dyn ActionSession>) })
    }

    fn preview(&self, mut preview: Preview<'_>) -> Result<Value, ActionError> {
        let http = call_of(preview.call)?;
        Ok(json!({"request": preview.request(http)?}))
    }
}

impl ActionSession for StatelessHttp {
    fn invoke<'a>(
        &'a self,
        call: &'a ActionCall,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async move {
            let http = call_of(call)?;
            let response = exchange(&self.client, http, call, environment, None).await?;
            response.result(http)
        })
    }
}

fn call_of(call: &ActionCall) -> Result<&HttpCall, ActionError> {
    match &call.action.execute {
        Execute::StatelessHttp(http) => Ok(http),
        _ => Err(ActionError::new(
            ActionFailure::Manifest,
            "this is not a `stateless_http` action",
        )),
    }
}
