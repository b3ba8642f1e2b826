//! Logging tools in to the MCP servers they use, with the consent of a person.

use std::sync::Arc;

use proofhouse_mcp_auth::LoopbackConsent;
use proofhouse_tools::runtime::ActionError;
use proofhouse_wire::Url;

use crate::operator::Operator;
use crate::tool_manifests::Located;

/// Why a tool is not logged in.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// There is no place for tokens.
    #[error(
        "the tokens would be lost at once; name a directory for them in `mcp.tokens` of the operator's file (--settings)"
    )]
    NotKept,
    /// None of the tools is configured.
    #[error("the operator's file (--settings) has none of these tools below `mcp.oauth`")]
    NotConfigured,
    /// The port that browsers come back to cannot be used.
    #[error("the port that a browser would come back to: {0}")]
    Port(#[from] std::io::Error),
    /// There is no token to be had.
    #[error(transparent)]
    Refused(#[from] ActionError),
}

/// Tells a person where to agree: the name of the tool, and the address.
pub type AnnounceLogin = Arc<dyn Fn(&str, &Url) + Send + Sync>;

/// Those of the tools that can be logged in.
///
/// # Errors
///
/// Returns an error when there are none, or their tokens would be lost.
pub fn configured<'t>(
    operator: &Operator,
    tools: &'t [Located],
) -> Result<Vec<&'t Located>, LoginError> {
    let authorization = operator.authorization();
    if !authorization.keeps() {
        return Err(LoginError::NotKept);
    }
    let tools = tools.iter();
    let found: Vec<_> = tools
        .filter(|located| authorization.of(&located.tool).is_some())
        .collect();
    if found.is_empty() {
        return Err(LoginError::NotConfigured);
    }
    Ok(found)
}

/// Logs in one tool after the other; each with its server, or why it is not logged in.
pub async fn log_in(
    operator: &Operator,
    tools: &[&Located],
    announce: &AnnounceLogin,
) -> Vec<(String, Result<String, LoginError>)> {
    let mut done = Vec::new();
    for located in tools {
        let name = format!("{}/{}", located.tool.namespace, located.tool.name);
        let result = log_in_one(operator, located, &name, announce).await;
        done.push((name, result));
    }
    done
}

async fn log_in_one(
    operator: &Operator,
    located: &Located,
    name: &str,
    announce: &AnnounceLogin,
) -> Result<String, LoginError> {
    let configured = operator.authorization().of(&located.tool);
    let port = configured.map_or(0, |configured| configured.redirect_port);
    let (shown, announce) = (name.to_owned(), Arc::clone(announce));
    let consent = LoopbackConsent::listen(port, move |url| announce(&shown, url))?;
    Ok(operator.log_in(located, Arc::new(consent)).await?)
}
