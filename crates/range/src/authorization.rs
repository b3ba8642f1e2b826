//! How clients of attacks are authorized with MCP servers.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use proofhouse_mcp_auth::{AuthorizationConfig, Authorizer, Consent};
use proofhouse_wire::Url;
use proofhouse_wire::client::Client;

/// Who a client is to authorization servers, and who agrees for it.
#[derive(Debug, Clone)]
pub struct ClientAuthorization {
    /// Who it is, and how it gets tokens.
    pub config: AuthorizationConfig,
    /// Who agrees.
    pub consent: Arc<dyn Consent>,
}

impl ClientAuthorization {
    /// What authorizes the requests to one server.
    pub(crate) fn authorizer(&self, client: &Client, mcp: &Url) -> Authorizer {
        let clock = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.map_or(0, |now| now.as_secs())
        };
        Authorizer::new(
            client.clone(),
            mcp,
            self.config.clone(),
            Arc::clone(&self.consent),
            Arc::new(clock),
        )
    }
}
