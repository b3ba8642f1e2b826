//! Signing in with an identity provider: OpenID Connect, the authorization code flow with PKCE.

mod id_token;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Method, header};
use proofhouse_tools::operator::SignInConfig;
use proofhouse_wire::client::{Client, ClientError, Roots};
use proofhouse_wire::sync::lock;
use proofhouse_wire::{Bytes, ProxySettings, Url, WireLimits};
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::SignedInPerson;
use crate::keys::{AccessRole, NoRandomness, random_text};

/// The most that the provider may answer.
const MAX_ANSWER: usize = 1 << 20;
/// How long the provider may take.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// How long what the provider says about itself is believed.
const METADATA_AGE: Duration = Duration::from_secs(60 * 60);
/// How often its keys are asked for again because of a token with one that is not known.
const KEYS_AGE: Duration = Duration::from_secs(30);
/// The most groups of a person that are kept.
const MAX_GROUPS: usize = 200;

/// Why nobody is signed in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OidcError {
    /// The provider cannot be asked, or answers what it must not.
    #[error("the identity provider cannot be used: {0}")]
    Provider(String),
    /// Whoever comes back is not who was sent, or comes too late.
    #[error("this sign-in was not begun here, or too long ago; begin again")]
    Unknown,
    /// The provider says no.
    #[error("the identity provider refused: {0}")]
    Refused(String),
    /// The token proves nothing.
    #[error("the ID token does not hold: {0}")]
    Token(#[from] id_token::IdTokenError),
    /// The person is known, and in no group that may come in.
    #[error("you are in no group that may use this server")]
    NoGrant,
    /// The machine's source of chance fails.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

impl From<ClientError> for OidcError {
    fn from(error: ClientError) -> Self {
        Self::Provider(error.to_string())
    }
}

/// What is remembered of a sign-in between the way there and the way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignInFlow {
    state: String,
    nonce: String,
    verifier: String,
}

/// What the provider says about itself.
#[derive(Debug, Clone, Deserialize)]
struct ProviderMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
}

#[derive(Debug, Default)]
struct Known {
    metadata: Option<(ProviderMetadata, Instant)>,
    keys: Option<(Arc<Value>, Instant)>,
}

/// An identity provider.
pub struct IdentityProvider {
    config: SignInConfig,
    client: Client,
    known: Mutex<Known>,
}

impl std::fmt::Debug for IdentityProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdentityProvider")
            .field("issuer", &self.config.issuer.as_str())
            .finish_non_exhaustive()
    }
}

impl IdentityProvider {
    /// A provider that the operator names, reached through these proxies.
    ///
    /// # Errors
    ///
    /// Returns an error when there can be no client.
    pub fn new(config: SignInConfig, proxies: ProxySettings) -> Result<Self, ClientError> {
        let limits = WireLimits {
            max_message_bytes: MAX_ANSWER,
            connect_timeout: ANSWER_TIME,
            ..WireLimits::default()
        };
        Ok(Self {
            config,
            client: Client::proxied(limits, proxies, Roots::System)?,
            known: Mutex::default(),
        })
    }

    /// Whether browsers reach this server over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.config.public_url.scheme() == "https"
    }

    fn callback(&self) -> String {
        let root = self.config.public_url.as_str().trim_end_matches('/');
        format!("{root}/dashboard/oidc/callback")
    }

    async fn get(&self, url: &str) -> Result<Value, OidcError> {
        let url = checked(url)?;
        let sent = self.client.exchange(
            Method::GET,
            &url,
            HeaderMap::new(),
            Bytes::new(),
            ANSWER_TIME,
        );
        let answer = sent.await?;
        if !answer.status.is_success() {
            let status = answer.status.as_u16();
            return Err(OidcError::Provider(format!("it answers {status}")));
        }
        serde_json::from_slice(&answer.body)
            .map_err(|_| OidcError::Provider("its answer is not JSON".to_owned()))
    }

    async fn metadata(&self) -> Result<ProviderMetadata, OidcError> {
        if let Some((metadata, at)) = &lock(&self.known).metadata
            && at.elapsed() < METADATA_AGE
        {
            return Ok(metadata.clone());
        }
        let issuer = self.config.issuer.as_str().trim_end_matches('/');
        let found = self
            .get(&format!("{issuer}/.well-known/openid-configuration"))
            .await?;
        let metadata: ProviderMetadata = serde_json::from_value(found)
            .map_err(|error| OidcError::Provider(format!("its configuration: {error}")))?;
        if metadata.issuer.trim_end_matches('/') != issuer {
            return Err(OidcError::Provider(
                "it says that it is another issuer".to_owned(),
            ));
        }
        lock(&self.known).metadata = Some((metadata.clone(), Instant::now()));
        Ok(metadata)
    }

    /// The keys of the provider; asked for again if they are older than this.
    async fn keys(
        &self,
        metadata: &ProviderMetadata,
        age: Duration,
    ) -> Result<Arc<Value>, OidcError> {
        if let Some((keys, at)) = &lock(&self.known).keys
            && at.elapsed() < age
        {
            return Ok(Arc::clone(keys));
        }
        let keys = Arc::new(self.get(&metadata.jwks_uri).await?);
        lock(&self.known).keys = Some((Arc::clone(&keys), Instant::now()));
        Ok(keys)
    }

    /// Where a browser is sent to sign in, and what is remembered of that.
    pub(crate) async fn begin(&self) -> Result<(String, SignInFlow), OidcError> {
        let metadata = self.metadata().await?;
        let flow = SignInFlow {
            state: random_text()?,
            nonce: random_text()?,
            verifier: random_text()?,
        };
        let challenge = digest::digest(&digest::SHA256, flow.verifier.as_bytes());
        let mut scopes = vec!["openid"];
        scopes.extend(self.config.scopes.iter().map(String::as_str));
        let mut url = checked(&metadata.authorization_endpoint)?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.config.client_id)
            .append_pair("redirect_uri", &self.callback())
            .append_pair("scope", &scopes.join(" "))
            .append_pair("state", &flow.state)
            .append_pair("nonce", &flow.nonce)
            .append_pair("code_challenge_method", "S256")
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(challenge));
        Ok((url.into(), flow))
    }

    /// Who came back from the provider with this query.
    pub(crate) async fn finish(
        &self,
        flow: &SignInFlow,
        query: &str,
        now: i64,
    ) -> Result<SignedInPerson, OidcError> {
        let pair = |wanted: &str| {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            pairs.find_map(|(name, value)| (name == wanted).then(|| value.into_owned()))
        };
        // The state was good for once and is gone from the store, so that timing tells nothing that can be used.
        if pair("state").as_deref() != Some(flow.state.as_str()) {
            return Err(OidcError::Unknown);
        }
        if let Some(error) = pair("error") {
            let said: String = error
                .chars()
                .filter(|c| !c.is_control())
                .take(100)
                .collect();
            return Err(OidcError::Refused(said));
        }
        let metadata = self.metadata().await?;
        // RFC 9207: who sends a code says who it is, if it can.
        if pair("iss").is_some_and(|issuer| issuer != metadata.issuer) {
            return Err(OidcError::Unknown);
        }
        let code = pair("code").ok_or(OidcError::Unknown)?;
        let token = self.token(&metadata, &code, &flow.verifier).await?;
        let wanted = id_token::Expected {
            issuer: &metadata.issuer,
            client_id: &self.config.client_id,
            nonce: &flow.nonce,
            now,
        };
        let keys = self.keys(&metadata, METADATA_AGE).await?;
        let claims = match id_token::verify(&token, &keys, &wanted) {
            // The provider may have new keys since.
            Err(id_token::IdTokenError::UnknownKey) => {
                let keys = self.keys(&metadata, KEYS_AGE).await?;
                id_token::verify(&token, &keys, &wanted)?
            }
            claims => claims?,
        };
        self.person(&claims)
    }

    /// The form and the headers that ask for an ID token.
    fn token_request(&self, code: &str, verifier: &str) -> Result<(HeaderMap, Bytes), OidcError> {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &self.callback())
            .append_pair("code_verifier", verifier);
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, kind);
        match &self.config.client_secret {
            None => {
                form.append_pair("client_id", &self.config.client_id);
            }
            Some(secret) => {
                let encoded = |text: &str| -> String {
                    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                let pair = format!(
                    "{}:{}",
                    encoded(&self.config.client_id),
                    encoded(secret.expose())
                );
                let value = format!("Basic {}", STANDARD.encode(pair));
                let mut value = HeaderValue::from_str(&value).map_err(|_| {
                    OidcError::Provider("the client cannot be named in a header".to_owned())
                })?;
                value.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, value);
            }
        }
        Ok((headers, Bytes::from(form.finish())))
    }

    /// Exchanges a code for an ID token.
    async fn token(
        &self,
        metadata: &ProviderMetadata,
        code: &str,
        verifier: &str,
    ) -> Result<String, OidcError> {
        let (headers, body) = self.token_request(code, verifier)?;
        let url = checked(&metadata.token_endpoint)?;
        let sent = self
            .client
            .exchange(Method::POST, &url, headers, body, ANSWER_TIME);
        let answer = sent.await?;
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if !answer.status.is_success() {
            let error = said["error"].as_str().unwrap_or("no reason").chars();
            let error: String = error.filter(|c| !c.is_control()).take(100).collect();
            return Err(OidcError::Refused(error));
        }
        let token = said["id_token"].as_str().map(str::to_owned);
        token.ok_or_else(|| OidcError::Provider("its answer holds no ID token".to_owned()))
    }

    /// The person of an ID token, with what their groups allow.
    fn person(&self, claims: &Value) -> Result<SignedInPerson, OidcError> {
        let text = |name: &str| claims[name].as_str().filter(|text| !text.is_empty());
        let subject = text("sub").ok_or(id_token::IdTokenError::Claim("sub"))?;
        let groups = match &claims[self.config.groups_claim.as_str()] {
            Value::String(group) => vec![group.clone()],
            Value::Array(groups) => groups
                .iter()
                .filter_map(|group| group.as_str().map(str::to_owned))
                .take(MAX_GROUPS)
                .collect(),
            _ => Vec::new(),
        };
        let granted: Vec<_> = self
            .config
            .grants
            .iter()
            .filter(|grant| groups.contains(&grant.group))
            .collect();
        if granted.is_empty() {
            return Err(OidcError::NoGrant);
        }
        // A role holds in its namespaces only, so that roles in different namespaces cannot be put together: the first grant
        // decides which namespaces, and those for the same ones add to it.
        let namespaces = &granted[0].namespaces;
        let mut scopes: Vec<String> = granted
            .iter()
            .filter(|grant| grant.namespaces == *namespaces)
            .filter_map(|grant| grant.role.parse::<AccessRole>().ok())
            .flat_map(|role| role.scopes().iter().map(ToString::to_string))
            .collect();
        scopes.sort_unstable();
        scopes.dedup();
        let is_verified = claims["email_verified"] == true;
        let email = text("email").filter(|_| is_verified).map(str::to_owned);
        let name = text("name").or(text("preferred_username"));
        Ok(SignedInPerson {
            principal: format!("oidc:{subject}"),
            name: name.or(email.as_deref()).unwrap_or(subject).to_owned(),
            email,
            groups,
            scopes,
            namespaces: namespaces.clone(),
        })
    }
}

/// An address of the provider, which must be as safe as the operator's.
fn checked(text: &str) -> Result<Url, OidcError> {
    let found = Url::parse(text).ok().filter(|url| {
        let is_here = url.host_str().is_some_and(proofhouse_wire::is_this_machine);
        url.scheme() == "https" || url.scheme() == "http" && is_here
    });
    found.ok_or_else(|| OidcError::Provider("it names an address without TLS".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_tools::operator::{ACCESS_ROLES, OperatorConfig};
    use serde_json::json;

    const SETTINGS: &str = r#"
sign_in:
  issuer: https://id.example.com
  client_id: proofhouse
  public_url: https://agents.example.com
  grants:
    - {group: shop-approvers, role: approver, namespaces: [shop]}
    - {group: shop-ops, role: operator, namespaces: [shop]}
    - {group: admins, role: admin}
"#;

    fn provider() -> IdentityProvider {
        let (config, findings) = OperatorConfig::read(SETTINGS, &|_| None);
        assert!(findings.is_empty(), "{findings:?}");
        IdentityProvider::new(config.sign_in.unwrap(), ProxySettings::default()).unwrap()
    }

    #[test]
    fn roles_have_the_same_names_in_the_file_and_in_the_api() {
        let names: Vec<&str> = AccessRole::names().collect();
        assert_eq!(names, ACCESS_ROLES);
    }

    #[test]
    fn groups_decide_what_a_person_may() {
        let provider = provider();
        let claims = |groups: Value| json!({"sub": "u1", "email": "ann@example.com", "email_verified": true, "groups": groups});
        let ann = provider.person(&claims(json!(["shop-approvers"]))).unwrap();
        assert_eq!(ann.namespaces, Some(vec!["shop".to_owned()]));
        assert!(ann.scopes.contains(&"tasks:approve".to_owned()));
        assert!(!ann.scopes.contains(&"tasks:begin".to_owned()));
        assert_eq!(ann.email.as_deref(), Some("ann@example.com"));
        let both = provider
            .person(&claims(json!(["shop-ops", "shop-approvers"])))
            .unwrap();
        assert!(both.scopes.contains(&"tasks:begin".to_owned()));
        // Approving in one namespace does not become approving in all.
        let mixed = provider
            .person(&claims(json!(["shop-approvers", "admins"])))
            .unwrap();
        assert_eq!(mixed.namespaces, Some(vec!["shop".to_owned()]));
        assert!(!mixed.scopes.contains(&"admin".to_owned()));
        for nobody in [json!([]), json!(null), json!("shop"), json!({"admins": 1})] {
            let refused = provider.person(&claims(nobody)).unwrap_err();
            assert!(matches!(refused, OidcError::NoGrant), "{refused}");
        }
    }

    #[test]
    fn an_address_of_the_provider_is_as_safe_as_the_operators() {
        assert!(checked("http://id.example.com/token").is_err());
        assert!(checked("file:///etc/passwd").is_err());
        assert!(checked("http://127.0.0.1:9/token").is_ok());
    }

    #[test]
    fn an_address_that_is_not_verified_names_nobody() {
        let claims = json!({"sub": "u1", "email": "root@example.com", "groups": ["admins"]});
        let person = provider().person(&claims).unwrap();
        assert_eq!(person.email, None);
        assert_eq!(person.principal, "oidc:u1");
    }
}
