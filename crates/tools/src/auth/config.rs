//! What an operator says of each provider.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use url::Url;

use proofhouse_manifest::interpolate::{Sealed, Secrets, TokenHosts};
use proofhouse_mcp_auth::SigningKey;

/// The providers by name.
#[derive(Debug, Clone, Default)]
pub struct AuthConfig {
    providers: BTreeMap<String, (ProviderConfig, ProviderBinding)>,
}

/// To whom the tokens of a provider belong: the tools that may use them, and where those may send them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderBinding {
    /// The tools, each as `namespace/name`, `namespace/*` or `*`.
    pub tools: Vec<String>,
    /// The hosts.
    pub hosts: TokenHosts,
}

impl ProviderBinding {
    /// Every tool and every host, for programs that see to it themselves.
    #[must_use]
    pub fn everywhere() -> Self {
        Self {
            tools: vec!["*".to_owned()],
            hosts: TokenHosts::any(),
        }
    }

    /// Whether a tool may use the tokens.
    #[must_use]
    pub fn is_for(&self, namespace: &str, name: &str) -> bool {
        self.tools
            .iter()
            .any(|pattern| match pattern.split_once('/') {
                Some((of, "*")) => of == namespace,
                Some(exact) => exact == (namespace, name),
                None => pattern == "*",
            })
    }
}

impl AuthConfig {
    /// Adds a provider, in place of an earlier one of its name.
    pub fn insert(
        &mut self,
        name: impl Into<String>,
        provider: ProviderConfig,
        binding: ProviderBinding,
    ) {
        self.providers.insert(name.into(), (provider, binding));
    }

    /// A provider.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ProviderConfig> {
        self.providers.get(name).map(|(provider, _)| provider)
    }

    /// The names, the providers and to whom they belong, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ProviderConfig, &ProviderBinding)> {
        let providers = self.providers.iter();
        providers.map(|(name, (provider, binding))| (name.as_str(), provider, binding))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.providers.is_empty()
    }
}

/// One provider. What is secret of it is sealed.
#[derive(Debug, Clone)]
pub enum ProviderConfig {
    /// A token that is known from the start.
    Fixed(Sealed<String>),
    /// OAuth 2.0 client credentials.
    ClientCredentials(ClientCredentials),
    /// An OAuth 2.0 refresh token.
    RefreshToken(RefreshToken),
    /// An installation of a GitHub App.
    GithubApp(GithubApp),
}

impl ProviderConfig {
    /// What must never be shown of it. The tokens it gives are not among it.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        match self {
            Self::Fixed(token) => secrets.add(token.expose()),
            Self::ClientCredentials(grant) => grant.client.add_secrets(&mut secrets),
            Self::RefreshToken(grant) => {
                grant.client.add_secrets(&mut secrets);
                secrets.add(grant.refresh_token.expose());
            }
            Self::GithubApp(app) => secrets.add(app.key.pem().expose()),
        }
        secrets
    }
}

/// How a client says who it is (RFC 6749, section 2.3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// In the `Authorization` header.
    #[default]
    Basic,
    /// In the body.
    Post,
}

/// A client that is known to an OAuth 2.0 token endpoint.
#[derive(Debug, Clone)]
pub struct OauthClient {
    /// The token endpoint.
    pub token_url: Url,
    /// The client.
    pub id: String,
    /// Its secret; a public client has none.
    pub secret: Option<Sealed<String>>,
    /// How it says who it is, if it has a secret.
    pub authentication: ClientAuthentication,
    /// What the token is to be good for.
    pub scope: Option<String>,
    /// More that is sent, such as `audience`.
    pub parameters: Vec<(String, Sealed<String>)>,
}

impl OauthClient {
    fn add_secrets(&self, secrets: &mut Secrets) {
        if let Some(secret) = &self.secret {
            secrets.add(secret.expose());
            // As it travels.
            secrets.add(&proofhouse_mcp_auth::basic_credentials(
                &self.id,
                secret.expose(),
            ));
        }
    }
}

/// Tokens for the client itself (RFC 6749, section 4.4).
#[derive(Debug, Clone)]
pub struct ClientCredentials {
    /// The client.
    pub client: OauthClient,
}

/// Tokens for someone who once agreed (RFC 6749, section 6).
#[derive(Debug, Clone)]
pub struct RefreshToken {
    /// The client.
    pub client: OauthClient,
    /// The refresh token to begin with. One that an answer brings takes its place, for as long as the
    /// providers live.
    pub refresh_token: Sealed<String>,
}

/// Tokens for an installation of a GitHub App, or of anything that does as GitHub does.
#[derive(Debug, Clone)]
pub struct GithubApp {
    /// Where the API is.
    pub api_url: Url,
    /// The app: its number or its client ID.
    pub app_id: String,
    /// The number of the installation.
    pub installation_id: u64,
    /// The key that the app signs with.
    pub key: SigningKey,
    /// The repositories that the token is good for; all of the installation, if there are none.
    pub repositories: Vec<String>,
    /// What the token is good for; all that the app may do, if there is nothing.
    pub permissions: Map<String, Value>,
}
