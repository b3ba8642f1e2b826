//! The HTTP calls of receive blocks, sent as the calls of actions are.

use std::sync::Arc;

use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value};

use crate::actions::exchange::{Exchanged, exchange};
use crate::http::HttpClient;
use crate::runtime::{ActionCall, ActionError, Environment};
use proofhouse_manifest::{Execute, HttpCall, ParameterSchema, Tool, ToolAction, ToolEvent};

/// Who listens to what: what the calls of a subscription or a poll are made with.
#[derive(Debug, Clone)]
pub struct EventListener {
    /// The tool.
    pub tool: Arc<Tool>,
    /// What `{parameters.name}` names: the tool's parameters, from the agent's bindings and their defaults.
    pub parameters: Map<String, Value>,
    /// What `{context…}` names.
    pub context: Value,
    /// Settings, tokens, and `{runtime.api_root}`.
    pub environment: Environment,
    /// Ends a call early.
    pub cancel: CancellationToken,
}

impl EventListener {
    /// The event of a name.
    #[must_use]
    pub fn event(&self, name: &str) -> Option<&ToolEvent> {
        self.tool.events.iter().find(|event| event.name == name)
    }

    /// Sends a call, with a new token once if the server answers 401.
    pub(super) async fn send(
        &self,
        client: &HttpClient,
        http: &HttpCall,
        environment: &Environment,
    ) -> Result<Exchanged, ActionError> {
        let action = ToolAction {
            name: String::new(),
            description: String::new(),
            parameters: ParameterSchema::default(),
            execute: Execute::StatelessHttp(http.clone()),
        };
        let call = ActionCall {
            invocation: String::new(),
            tool: Arc::clone(&self.tool),
            action: Arc::new(action),
            parameters: self.parameters.clone(),
            context: self.context.clone(),
            secrets: environment.secrets(&self.tool),
            cancel: self.cancel.clone(),
        };
        let cancelled = || {
            let message = "the call was cancelled";
            let mut error = ActionError::new(crate::runtime::ActionFailure::Cancelled, message);
            error.outcome_unknown = true;
            error
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(cancelled()),
            answer = exchange(client, http, &call, environment, None) => answer,
        }
    }
}
