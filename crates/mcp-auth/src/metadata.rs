//! What MCP servers and authorization servers say about themselves, and what of it can be used.

use proofhouse_wire::is_this_machine;
use serde_json::Value;
use url::Url;

use crate::client::EndpointAuth;
use crate::error::AuthorizationError;
use crate::scopes;

/// How many entries of a list are looked at.
const MAX_ENTRIES: usize = 100;

/// What an MCP server says about who authorizes (RFC 9728).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceMetadata {
    /// What tokens are for.
    pub(crate) resource: String,
    pub(crate) authorization_servers: Vec<String>,
    pub(crate) scopes: Vec<String>,
}

impl ResourceMetadata {
    /// Reads a document; what tokens would be for must be the server that is spoken to.
    pub(crate) fn read(
        place: &Url,
        json: &Value,
        server: &Url,
    ) -> Result<Self, AuthorizationError> {
        let wrong = |reason: String| AuthorizationError::Metadata {
            place: shown(place),
            reason,
        };
        let resource = json["resource"].as_str().unwrap_or_default();
        let is_meant = Url::parse(resource).is_ok_and(|resource| covers(&resource, server));
        if !is_meant {
            return Err(wrong(
                "`resource` is another server than the one that is spoken to; tokens for it are not asked for"
                    .to_owned(),
            ));
        }
        let authorization_servers = texts(&json["authorization_servers"]);
        if authorization_servers.is_empty() {
            return Err(wrong("it names no authorization server".to_owned()));
        }
        Ok(Self {
            resource: resource.to_owned(),
            authorization_servers,
            scopes: scopes::gather(texts(&json["scopes_supported"]).into_iter()),
        })
    }
}

/// Whether a token for a resource is one for a server: the same origin, and a path above it.
fn covers(resource: &Url, server: &Url) -> bool {
    let folder = |url: &Url| format!("{}/", url.path().trim_end_matches('/'));
    resource.origin() == server.origin() && folder(server).starts_with(&folder(resource))
}

/// What an authorization server says about itself (RFC 8414, OpenID Connect Discovery).
#[derive(Debug, Clone)]
pub(crate) struct ServerMetadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Option<Url>,
    pub(crate) token_endpoint: Url,
    pub(crate) registration_endpoint: Option<Url>,
    pub(crate) scopes: Vec<String>,
    pub(crate) auth_methods: Option<Vec<String>>,
    /// Whether it says who it is when it sends people back (RFC 9207).
    pub(crate) says_issuer: bool,
    pub(crate) takes_client_documents: bool,
    /// Whether it holds clients to PKCE with SHA-256.
    pub(crate) has_pkce: bool,
}

impl ServerMetadata {
    /// Reads a document that was found for an issuer.
    pub(crate) fn read(
        place: &Url,
        json: &Value,
        issuer: &str,
    ) -> Result<Self, AuthorizationError> {
        let wrong = |reason: String| AuthorizationError::Metadata {
            place: shown(place),
            reason,
        };
        if json["issuer"].as_str() != Some(issuer) {
            return Err(wrong(
                "`issuer` is not the authorization server that it was asked for".to_owned(),
            ));
        }
        let endpoint = |key: &str| -> Result<Option<Url>, AuthorizationError> {
            let Some(text) = json[key].as_str() else {
                return Ok(None);
            };
            let url = Url::parse(text).ok().filter(is_safe);
            let url = url.ok_or_else(|| {
                wrong(format!(
                    "`{key}` is not an address with https (or on this machine)"
                ))
            });
            url.map(Some)
        };
        let pkce = texts(&json["code_challenge_methods_supported"]);
        let methods = &json["token_endpoint_auth_methods_supported"];
        Ok(Self {
            issuer: issuer.to_owned(),
            authorization_endpoint: endpoint("authorization_endpoint")?,
            token_endpoint: endpoint("token_endpoint")?
                .ok_or_else(|| wrong("it has no `token_endpoint`".to_owned()))?,
            registration_endpoint: endpoint("registration_endpoint")?,
            scopes: texts(&json["scopes_supported"]),
            auth_methods: methods.is_array().then(|| texts(methods)),
            says_issuer: json["authorization_response_iss_parameter_supported"] == true,
            takes_client_documents: json["client_id_metadata_document_supported"] == true,
            has_pkce: pkce.iter().any(|method| method == "S256"),
        })
    }

    /// What MCP 2025-03-26 assumes of a server that says nothing.
    pub(crate) fn assumed(issuer: &str, origin: &Url) -> Option<Self> {
        let at = |path: &str| origin.join(path).ok();
        Some(Self {
            issuer: issuer.to_owned(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token")?,
            registration_endpoint: at("/register"),
            scopes: Vec::new(),
            auth_methods: None,
            says_issuer: false,
            takes_client_documents: false,
            has_pkce: true,
        })
    }

    /// Whether the token endpoint knows a way of showing who a client is.
    pub(crate) fn supports(&self, auth: EndpointAuth) -> bool {
        match &self.auth_methods {
            Some(methods) => methods.iter().any(|method| method == auth.as_str()),
            // The default of RFC 8414; clients without a secret are what MCP clients mostly are.
            None => matches!(auth, EndpointAuth::ClientSecretBasic | EndpointAuth::None),
        }
    }
}

/// Whether secrets may be sent to an address: encrypted, or not leaving this machine.
pub(crate) fn is_safe(url: &Url) -> bool {
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    let is_local = url.host_str().is_some_and(is_this_machine);
    let is_encrypted = url.scheme() == "https" || (url.scheme() == "http" && is_local);
    has_host && is_encrypted && url.username().is_empty() && url.password().is_none()
}

/// A URL without what may be secret in it.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = items.iter().take(MAX_ENTRIES).filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn tokens_are_for_the_server_that_is_spoken_to() {
        let server = url("https://h.test/mcp");
        for (resource, is_meant) in [
            ("https://h.test/mcp", true),
            ("https://h.test/mcp/", true),
            ("https://h.test", true),
            ("https://h.test/mc", false),
            ("https://h.test/mcp/more", false),
            ("https://evil.test/mcp", false),
            ("http://h.test/mcp", false),
            ("https://h.test:8443/mcp", false),
            ("mcp", false),
        ] {
            let json = json!({"resource": resource, "authorization_servers": ["https://a.test"]});
            let read = ResourceMetadata::read(&server, &json, &server);
            assert_eq!(read.is_ok(), is_meant, "{resource}");
        }
        let nobody = json!({"resource": "https://h.test/mcp", "authorization_servers": []});
        assert!(ResourceMetadata::read(&server, &nobody, &server).is_err());
    }

    #[test]
    fn an_issuer_speaks_for_itself_and_over_tls() {
        let place = url("https://a.test/.well-known/oauth-authorization-server");
        let whole = json!({"issuer": "https://a.test", "token_endpoint": "https://a.test/token"});
        let read = |key: &str, value: &str| {
            let mut json = whole.clone();
            json[key] = value.into();
            ServerMetadata::read(&place, &json, "https://a.test").is_ok()
        };
        assert!(read("issuer", "https://a.test"));
        assert!(!read("issuer", "https://a.test/"));
        assert!(!read("issuer", "https://evil.test"));
        assert!(!read("token_endpoint", "http://a.test/token"));
        assert!(!read("token_endpoint", "file:///etc/passwd"));
        assert!(!read("authorization_endpoint", "javascript:alert(1)"));
        assert!(!read("token_endpoint", "https://u:p@a.test/token"));
        assert!(read("token_endpoint", "http://127.0.0.1:9/token"));
        assert!(read("token_endpoint", "http://localhost:9/token"));
    }
}
