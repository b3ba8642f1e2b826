//! Authorization of tools with MCP servers: one [`Authorizer`] for each tool and server, shared by all tasks.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_manifest::Tool;
use proofhouse_manifest::interpolate::Secrets;
use proofhouse_mcp_auth::{
    AuthorizationConfig, AuthorizationError, Authorizer, AutomaticConsent, Consent,
    EndpointReached, NoConsent, SecretText, TokenVault, UnixSeconds,
};
use proofhouse_wire::client::Client;
use proofhouse_wire::sync::lock;
use url::Url;

use crate::operator::McpOauthTool;
use crate::runtime::{ActionError, ActionFailure};

/// Who may authorize, and how.
#[derive(Clone)]
pub struct McpAuthorization {
    tools: Arc<BTreeMap<String, McpOauthTool>>,
    vault: Option<Arc<TokenVault>>,
    clock: UnixSeconds,
    outage: Duration,
    known: Arc<Mutex<HashMap<(String, String), Authorizer>>>,
}

impl std::fmt::Debug for McpAuthorization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.tools.keys()).finish()
    }
}

impl McpAuthorization {
    /// Authorizes these tools, by namespace and name. Tokens are kept in the vault, or in memory without one.
    #[must_use]
    pub fn new(
        tools: BTreeMap<String, McpOauthTool>,
        vault: Option<Arc<TokenVault>>,
        clock: UnixSeconds,
    ) -> Self {
        Self {
            tools: Arc::new(tools),
            vault,
            clock,
            outage: Duration::ZERO,
            known: Arc::default(),
        }
    }

    /// The same, with so much patience for authorization servers that cannot be connected to.
    pub(super) fn waiting(mut self, outage: Duration) -> Self {
        self.outage = outage;
        self
    }

    /// What is configured for a tool.
    #[must_use]
    pub fn of(&self, tool: &Tool) -> Option<&McpOauthTool> {
        self.tools.get(&name_of(tool))
    }

    /// Whether tokens outlive this process.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.vault.is_some()
    }

    /// What authorizes the requests of a tool to a server, if the operator configured it.
    pub(super) fn authorizer(&self, tool: &Tool, mcp: &Url, client: &Client) -> Option<Authorizer> {
        let configured = self.of(tool)?;
        let mut known = lock(&self.known);
        let key = (name_of(tool), mcp.to_string());
        let found = known.entry(key).or_insert_with(|| {
            let consent: Arc<dyn Consent> = if configured.is_automatic {
                Arc::new(AutomaticConsent::new(client.clone()))
            } else {
                Arc::new(NoConsent)
            };
            self.made(tool, mcp, client, configured.authorization.clone(), consent)
        });
        Some(found.clone())
    }

    /// The same with another way to get consent, of nobody else.
    pub(super) fn with_consent(
        &self,
        tool: &Tool,
        mcp: &Url,
        client: &Client,
        consent: Arc<dyn Consent>,
    ) -> Option<Authorizer> {
        let configured = self.of(tool)?;
        let config = configured.authorization.clone();
        Some(self.made(tool, mcp, client, config, consent))
    }

    fn made(
        &self,
        tool: &Tool,
        mcp: &Url,
        client: &Client,
        config: AuthorizationConfig,
        consent: Arc<dyn Consent>,
    ) -> Authorizer {
        let clock = Arc::clone(&self.clock);
        let made =
            Authorizer::new(client.clone(), mcp, config, consent, clock).waiting(self.outage);
        match &self.vault {
            Some(vault) => made.kept_in(Arc::clone(vault), &name_of(tool)),
            None => made,
        }
    }
}

fn name_of(tool: &Tool) -> String {
    format!("{}/{}", tool.namespace, tool.name)
}

/// A token as a secret that must not come back.
pub(super) fn as_secrets(token: &SecretText) -> Secrets {
    let mut secrets = Secrets::default();
    secrets.add(token.expose());
    secrets
}

/// What an error of authorization means for a task.
pub(super) fn failure(error: &AuthorizationError) -> ActionError {
    let failure = match error {
        AuthorizationError::EgressDenied { .. } => ActionFailure::EgressDenied,
        AuthorizationError::Configuration(_) => ActionFailure::Setting,
        AuthorizationError::Unavailable { reached, .. } => match reached {
            EndpointReached::Never => ActionFailure::Unreachable,
            EndpointReached::TooSlowly => ActionFailure::Timeout,
            EndpointReached::InPart => ActionFailure::Broken,
        },
        AuthorizationError::Refused { .. } if error.may_pass() => ActionFailure::HttpStatus,
        AuthorizationError::Metadata { .. }
        | AuthorizationError::NeedsConsent(_)
        | AuthorizationError::NoConsent(_)
        | AuthorizationError::ForgedResponse(_)
        | AuthorizationError::Refused { .. }
        | AuthorizationError::Answer { .. }
        | AuthorizationError::Machine
        | AuthorizationError::Vault(_) => ActionFailure::Token,
    };
    ActionError::new(failure, format!("authorization: {error}"))
}
