//! `--oauth`: how the clients of attacks get tokens, from an operator's file.

use std::path::Path;
use std::sync::Arc;

use proofhouse_mcp_auth::{AutomaticConsent, Consent, LoopbackConsent};
use proofhouse_range::ClientAuthorization;
use proofhouse_wire::WireLimits;
use proofhouse_wire::client::Client;

use crate::output::{CommandError, shown_path, talk};
use crate::tools::options::read_settings;

/// Reads the one entry of a file.
pub(crate) fn authorization(path: &Path) -> Result<ClientAuthorization, CommandError> {
    let config = read_settings("--oauth", path)?;
    let entries: Vec<_> = config.mcp_oauth.tools.into_values().collect();
    let [entry] = <[_; 1]>::try_from(entries).map_err(|entries| {
        CommandError::usage(format!(
            "--oauth {}: one entry below `mcp.oauth` is needed, and there are {}",
            shown_path(path),
            entries.len()
        ))
    })?;
    let cannot = |error: &dyn std::fmt::Display| CommandError::cannot_run(error.to_string());
    let consent: Arc<dyn Consent> = if entry.is_automatic {
        let client = Client::new(WireLimits::default()).map_err(|error| cannot(&error))?;
        Arc::new(AutomaticConsent::new(client))
    } else {
        let listening = LoopbackConsent::listen(entry.redirect_port, |url| {
            talk(&format!("open this address in a browser and agree:\n{url}"));
        });
        Arc::new(listening.map_err(|error| cannot(&error))?)
    };
    Ok(ClientAuthorization {
        config: entry.authorization,
        consent,
    })
}
