//! Finds who authorizes for an MCP server: from its challenge, and from the places that the protocol names.

use url::Url;

use crate::challenge::BearerChallenge;
use crate::client::AuthorizationConfig;
use crate::error::AuthorizationError;
use crate::metadata::{ResourceMetadata, ServerMetadata, is_safe, shown};
use crate::token::TokenHttp;

/// Who authorizes for a server, and for what.
#[derive(Debug)]
pub(crate) struct Discovered {
    /// What tokens are for; nothing, where the server is older than that.
    pub(crate) resource: Option<String>,
    /// The scopes that the server has.
    pub(crate) scopes: Vec<String>,
    pub(crate) server: ServerMetadata,
}

pub(crate) async fn discover(
    http: &TokenHttp,
    mcp: &Url,
    challenge: &BearerChallenge,
    config: &AuthorizationConfig,
) -> Result<Discovered, AuthorizationError> {
    let Some(resource) = resource(http, mcp, challenge).await? else {
        return of_older_server(http, mcp, config).await;
    };
    let named = &resource.authorization_servers;
    let issuer = match &config.issuer {
        None => named.first(),
        Some(wanted) => named.iter().find(|issuer| *issuer == wanted),
    };
    let Some(issuer) = issuer else {
        return Err(AuthorizationError::Configuration(format!(
            "the server does not name the configured `issuer` among those who authorize for it: {}",
            named.join(", ")
        )));
    };
    let Some(server) = server(http, issuer).await? else {
        return Err(AuthorizationError::Metadata {
            place: issuer.clone(),
            reason: "the authorization server does not describe itself in any of the places for it"
                .to_owned(),
        });
    };
    Ok(Discovered {
        resource: Some(resource.resource),
        scopes: resource.scopes,
        server,
    })
}

/// What the server says about itself: where its challenge points, or in the two places of RFC 9728.
async fn resource(
    http: &TokenHttp,
    mcp: &Url,
    challenge: &BearerChallenge,
) -> Result<Option<ResourceMetadata>, AuthorizationError> {
    if let Some(text) = &challenge.resource_metadata {
        let wrong = |reason: &str| AuthorizationError::Metadata {
            place: "`resource_metadata` of the challenge".to_owned(),
            reason: reason.to_owned(),
        };
        let place = mcp.join(text).map_err(|_| wrong("it is not a URL"))?;
        let is_own = place.origin() == mcp.origin();
        if !is_own && !is_safe(&place) {
            return Err(wrong("it is not an address with https"));
        }
        let json = http.get_json(&place).await?;
        let json = json.ok_or_else(|| wrong("nothing is there"))?;
        return ResourceMetadata::read(&place, &json, mcp).map(Some);
    }
    let path = mcp.path().trim_end_matches('/');
    let mut paths = vec![format!("/.well-known/oauth-protected-resource{path}")];
    if !path.is_empty() {
        paths.push("/.well-known/oauth-protected-resource".to_owned());
    }
    for path in paths {
        let place = at(mcp, &path);
        if let Some(json) = http.get_json(&place).await? {
            return ResourceMetadata::read(&place, &json, mcp).map(Some);
        }
    }
    Ok(None)
}

/// What an authorization server says about itself, in the places of RFC 8414 and of OpenID Connect.
async fn server(
    http: &TokenHttp,
    issuer: &str,
) -> Result<Option<ServerMetadata>, AuthorizationError> {
    let unusable = || AuthorizationError::Metadata {
        place: issuer.chars().take(200).collect(),
        reason: "this is no issuer: an address with https, without a query".to_owned(),
    };
    let base = Url::parse(issuer).map_err(|_| unusable())?;
    if !is_safe(&base) || base.query().is_some() || base.fragment().is_some() {
        return Err(unusable());
    }
    let path = base.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    for path in paths {
        let place = at(&base, &path);
        if let Some(json) = http.get_json(&place).await? {
            return ServerMetadata::read(&place, &json, issuer).map(Some);
        }
    }
    Ok(None)
}

/// A server of MCP 2025-03-26 authorizes by itself, at its own origin.
async fn of_older_server(
    http: &TokenHttp,
    mcp: &Url,
    config: &AuthorizationConfig,
) -> Result<Discovered, AuthorizationError> {
    let issuer = mcp.origin().ascii_serialization();
    if config
        .issuer
        .as_ref()
        .is_some_and(|wanted| *wanted != issuer)
    {
        return Err(AuthorizationError::Metadata {
            place: shown(mcp),
            reason: "the server does not say who authorizes for it, so it is not the configured `issuer`"
                .to_owned(),
        });
    }
    let origin = at(mcp, "/");
    let told = if is_safe(&origin) {
        server(http, &issuer).await?
    } else {
        None
    };
    let server = told
        .or_else(|| ServerMetadata::assumed(&issuer, &origin).filter(|_| is_safe(&origin)))
        .ok_or_else(|| AuthorizationError::Metadata {
            place: shown(mcp),
            reason: "nobody says who authorizes for it".to_owned(),
        })?;
    Ok(Discovered {
        resource: None,
        scopes: Vec::new(),
        server,
    })
}

/// Another path of the same server.
fn at(server: &Url, path: &str) -> Url {
    let mut url = server.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}
