//! Who the client is to authorization servers: what is configured, and what a server made of it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::error::AuthorizationError;
use crate::metadata::ServerMetadata;
use crate::secret::{SecretText, exposed};
use crate::signing_key::SigningKey;
use crate::token::{TokenForm, TokenHttp};

/// How long the id or the secret of a client may be.
const MAX_CREDENTIAL: usize = 8 << 10;

/// How a client is authorized at one MCP server.
#[derive(Debug, Clone)]
pub struct AuthorizationConfig {
    /// What people read when they are asked to agree.
    pub client_name: String,
    /// The id of a client that was registered beforehand.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<SecretText>,
    /// The key it signs with instead (`private_key_jwt`).
    pub key: Option<SigningKey>,
    /// Where a document about this client is, which servers may take for its id.
    pub client_metadata_url: Option<Url>,
    /// The one authorization server that may be used. Whatever an MCP server names otherwise.
    pub issuer: Option<String>,
    /// The scopes to ask for, whatever servers offer.
    pub scopes: Vec<String>,
    /// How tokens are got.
    pub grant: AuthorizationGrant,
}

impl Default for AuthorizationConfig {
    fn default() -> Self {
        Self {
            client_name: "Proofhouse".to_owned(),
            client_id: None,
            client_secret: None,
            key: None,
            client_metadata_url: None,
            issuer: None,
            scopes: Vec::new(),
            grant: AuthorizationGrant::AuthorizationCode,
        }
    }
}

/// How tokens are got.
#[derive(Debug, Clone)]
pub enum AuthorizationGrant {
    /// A person agrees in a browser.
    AuthorizationCode,
    /// The client stands for itself.
    ClientCredentials,
    /// Somebody whom the authorization server trusts says who the client is (RFC 7523).
    JwtBearer {
        /// What they say.
        assertion: SecretText,
    },
    /// The person's employer agrees for them: a token of theirs is exchanged for an assertion.
    CrossApp(CrossAppAccess),
}

/// The identity provider of a company, and what it knows the person by.
#[derive(Debug, Clone)]
pub struct CrossAppAccess {
    /// Where it exchanges tokens.
    pub token_endpoint: Url,
    /// Which client it knows us as.
    pub client_id: String,
    /// The identity token of the person.
    pub id_token: SecretText,
}

/// How a client shows a token endpoint who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndpointAuth {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

impl EndpointAuth {
    const ALL: [Self; 4] = [
        Self::PrivateKeyJwt,
        Self::ClientSecretBasic,
        Self::ClientSecretPost,
        Self::None,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == text)
    }
}

/// A client that an authorization server knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KnownClient {
    /// Who knows it. Nobody else is shown its credentials.
    pub(crate) issuer: String,
    pub(crate) id: String,
    #[serde(with = "exposed")]
    pub(crate) secret: Option<SecretText>,
    pub(crate) auth: EndpointAuth,
    /// Where it may be sent back to.
    pub(crate) redirect_uri: Option<String>,
    /// It registered itself, and would do so again.
    pub(crate) is_dynamic: bool,
}

impl KnownClient {
    /// The client for an authorization server: the one that is configured, one that a document describes, or one that
    /// registers now.
    pub(crate) async fn establish(
        config: &AuthorizationConfig,
        server: &ServerMetadata,
        redirect_uri: Option<&str>,
        http: &TokenHttp,
    ) -> Result<Self, AuthorizationError> {
        let known = |id: &str, auth: EndpointAuth| Self {
            issuer: server.issuer.clone(),
            id: id.to_owned(),
            secret: config.client_secret.clone(),
            auth,
            redirect_uri: redirect_uri.map(str::to_owned),
            is_dynamic: false,
        };
        if let Some(id) = &config.client_id {
            let auth = choose(server, config.client_secret.is_some(), config.key.is_some());
            return Ok(known(id, auth?));
        }
        if let Some(url) = &config.client_metadata_url
            && server.takes_client_documents
        {
            let auth = if config.key.is_some() {
                EndpointAuth::PrivateKeyJwt
            } else {
                EndpointAuth::None
            };
            return Ok(Self {
                secret: None,
                ..known(url.as_str(), auth)
            });
        }
        let Some(endpoint) = &server.registration_endpoint else {
            return Err(AuthorizationError::Configuration(format!(
                "{} registers no clients by itself; configure the `client_id` of one that is registered there",
                server.issuer
            )));
        };
        Self::register(config, server, endpoint, redirect_uri, http).await
    }

    /// Registers (RFC 7591).
    async fn register(
        config: &AuthorizationConfig,
        server: &ServerMetadata,
        endpoint: &Url,
        redirect_uri: Option<&str>,
        http: &TokenHttp,
    ) -> Result<Self, AuthorizationError> {
        let supports = |auth: EndpointAuth| server.supports(auth);
        let wanted = if supports(EndpointAuth::None) {
            EndpointAuth::None
        } else if supports(EndpointAuth::ClientSecretBasic) {
            EndpointAuth::ClientSecretBasic
        } else {
            EndpointAuth::ClientSecretPost
        };
        let grants = match &config.grant {
            AuthorizationGrant::AuthorizationCode => json!(["authorization_code", "refresh_token"]),
            AuthorizationGrant::ClientCredentials => json!(["client_credentials"]),
            AuthorizationGrant::JwtBearer { .. } | AuthorizationGrant::CrossApp(_) => {
                json!([crate::token::JWT_BEARER])
            }
        };
        let mut body = json!({
            "client_name": config.client_name,
            "redirect_uris": redirect_uri.into_iter().collect::<Vec<_>>(),
            "grant_types": grants,
            "response_types": ["code"],
            "token_endpoint_auth_method": wanted.as_str(),
            // It runs on somebody's machine and is sent back to the loopback.
            "application_type": "native",
        });
        if !config.scopes.is_empty() {
            body["scope"] = config.scopes.join(" ").into();
        }
        let answer = http.post_json(endpoint, &body).await?;
        let text = |key: &str| {
            let text = answer.get(key).and_then(Value::as_str);
            text.filter(|text| !text.is_empty() && text.len() <= MAX_CREDENTIAL)
        };
        let Some(id) = text("client_id") else {
            return Err(http.unusable(endpoint, "it holds no `client_id`"));
        };
        let secret = text("client_secret").map(SecretText::new);
        let given = text("token_endpoint_auth_method").and_then(EndpointAuth::parse);
        let auth = match given {
            Some(given) if server.supports(given) => given,
            _ => choose(server, secret.is_some(), false)?,
        };
        Ok(Self {
            issuer: server.issuer.clone(),
            id: id.to_owned(),
            secret,
            auth,
            redirect_uri: redirect_uri.map(str::to_owned),
            is_dynamic: true,
        })
    }

    /// Adds what shows a token endpoint who the client is.
    pub(crate) fn identify(
        &self,
        form: &mut TokenForm,
        key: Option<&SigningKey>,
        now: u64,
    ) -> Result<(), AuthorizationError> {
        match (self.auth, &self.secret) {
            (EndpointAuth::ClientSecretBasic, Some(secret)) => {
                form.basic = Some((self.id.clone(), secret.clone()));
            }
            (EndpointAuth::ClientSecretPost, Some(secret)) => {
                form.add("client_id", &self.id);
                form.add_secret("client_secret", secret);
            }
            (EndpointAuth::PrivateKeyJwt, _) => {
                let key = key.ok_or_else(|| {
                    let message = "the authorization server wants a signed assertion; configure `private_key`";
                    AuthorizationError::Configuration(message.to_owned())
                })?;
                // The audience is the issuer: one that a token endpoint chooses could be somebody else's.
                let claims = json!({
                    "iss": self.id, "sub": self.id, "aud": self.issuer,
                    "jti": crate::pkce::random_text()?, "iat": now, "exp": now + ASSERTION_LIFE,
                });
                let assertion = key.sign(&claims).ok_or(AuthorizationError::Machine)?;
                form.add("client_id", &self.id);
                form.add(
                    "client_assertion_type",
                    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                );
                form.add_secret("client_assertion", &assertion);
            }
            (EndpointAuth::None, _)
            | (EndpointAuth::ClientSecretBasic | EndpointAuth::ClientSecretPost, None) => {
                form.add("client_id", &self.id);
            }
        }
        Ok(())
    }
}

/// How long an assertion of who we are is good for, in seconds.
const ASSERTION_LIFE: u64 = 300;

/// The best way that both sides know.
fn choose(
    server: &ServerMetadata,
    has_secret: bool,
    has_key: bool,
) -> Result<EndpointAuth, AuthorizationError> {
    let mut ways = EndpointAuth::ALL.into_iter().filter(|way| match way {
        EndpointAuth::PrivateKeyJwt => has_key,
        EndpointAuth::ClientSecretBasic | EndpointAuth::ClientSecretPost => has_secret,
        EndpointAuth::None => true,
    });
    ways.find(|way| server.supports(*way)).ok_or_else(|| {
        AuthorizationError::Configuration(format!(
            "{} wants clients to show who they are in a way that is not configured: {}",
            server.issuer,
            server
                .auth_methods
                .as_deref()
                .unwrap_or_default()
                .join(", ")
        ))
    })
}
