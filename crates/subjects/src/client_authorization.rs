//! How the clients of an attack get tokens: one entry of an operator's file.

use std::sync::Arc;

use proofhouse_mcp_auth::{AutomaticConsent, Consent, LoopbackConsent};
use proofhouse_range::ClientAuthorization;
use proofhouse_tools::operator::OperatorConfig;
use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::{Url, WireLimits};

/// Why a file does not say how clients get tokens.
#[derive(Debug, thiserror::Error)]
pub enum NoAuthorization {
    /// It has no entry, or several.
    #[error("one entry below `mcp.oauth` is needed, and there are {0}")]
    NotOne(usize),
    /// There is no client to ask with.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The port that browsers come back to cannot be used.
    #[error("the port that a browser would come back to: {0}")]
    Port(#[from] std::io::Error),
}

/// Takes the one entry of a file. `announce` tells a person where to agree.
///
/// # Errors
///
/// Returns an error when there is not one entry, or nobody could be asked.
pub fn client_authorization(
    config: OperatorConfig,
    announce: impl Fn(&Url) + Send + Sync + 'static,
) -> Result<ClientAuthorization, NoAuthorization> {
    let entries: Vec<_> = config.mcp_oauth.tools.into_values().collect();
    let [entry] =
        <[_; 1]>::try_from(entries).map_err(|entries| NoAuthorization::NotOne(entries.len()))?;
    let consent: Arc<dyn Consent> = if entry.is_automatic {
        let client = Client::new(WireLimits::default())?;
        Arc::new(AutomaticConsent::new(client))
    } else {
        Arc::new(LoopbackConsent::listen(entry.redirect_port, announce)?)
    };
    Ok(ClientAuthorization {
        config: entry.authorization,
        consent,
    })
}
