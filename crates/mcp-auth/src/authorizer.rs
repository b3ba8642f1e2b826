//! The token of one MCP server: got when the server asks for one, renewed, kept, and got anew when it is not enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proofhouse_wire::HeaderMap;
use proofhouse_wire::client::Client;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use url::Url;

use crate::challenge::BearerChallenge;
use crate::client::{AuthorizationConfig, AuthorizationGrant, CrossAppAccess, KnownClient};
use crate::consent::Consent;
use crate::discovery::{Discovered, discover};
use crate::error::AuthorizationError;
use crate::metadata::shown;
use crate::pkce::Pkce;
use crate::scopes;
use crate::secret::{SecretText, exposed};
use crate::token::{GrantedToken, JWT_BEARER, TokenForm, TokenHttp, host};
use crate::vault::TokenVault;

/// The time in seconds since 1970.
pub type UnixSeconds = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A token is renewed so many seconds before its end.
const MARGIN: u64 = 30;
/// How often more scopes are asked for.
const MAX_STEP_UPS: u32 = 3;
/// After a token that was never accepted, no other is asked for during so many seconds.
const PAUSE: u64 = 60;
/// The scope of refresh tokens.
const OFFLINE: &str = "offline_access";

/// Authorizes the requests to one MCP server.
#[derive(Clone)]
pub struct Authorizer {
    inner: Arc<Shared>,
}

struct Shared {
    http: TokenHttp,
    /// The MCP server.
    mcp: Url,
    config: AuthorizationConfig,
    consent: Arc<dyn Consent>,
    /// Where tokens are kept, and under which name.
    vault: Option<(Arc<TokenVault>, String)>,
    clock: UnixSeconds,
    state: Mutex<AuthorizationState>,
    /// The token was accepted at least once.
    is_proven: AtomicBool,
}

#[derive(Default)]
struct AuthorizationState {
    /// What was kept was looked for.
    is_loaded: bool,
    held: Option<HeldGrant>,
    step_ups: u32,
    /// When the last token was got.
    got_at: Option<u64>,
}

/// A token and everything that renews it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct HeldGrant {
    client: KnownClient,
    token_endpoint: String,
    resource: Option<String>,
    /// The scopes that were asked for so far.
    scopes: Vec<String>,
    #[serde(with = "exposed")]
    token: Option<SecretText>,
    #[serde(with = "exposed")]
    refresh_token: Option<SecretText>,
    expires_at: Option<u64>,
}

impl std::fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authorizer({})", shown(&self.inner.mcp))
    }
}

impl Authorizer {
    /// Authorizes requests to the MCP server at `mcp`. All requests for it go through `client`.
    #[must_use]
    pub fn new(
        client: Client,
        mcp: &Url,
        config: AuthorizationConfig,
        consent: Arc<dyn Consent>,
        clock: UnixSeconds,
    ) -> Self {
        Self {
            inner: Arc::new(Shared {
                http: TokenHttp {
                    client,
                    outage: Duration::ZERO,
                },
                mcp: mcp.clone(),
                config,
                consent,
                vault: None,
                clock,
                state: Mutex::default(),
                is_proven: AtomicBool::new(false),
            }),
        }
    }

    /// The same, with so much patience for servers that cannot be connected to. To be said before it is shared.
    #[must_use]
    pub fn waiting(mut self, outage: Duration) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.http.outage = outage;
        }
        self
    }

    /// The same, with tokens kept in a vault for `owner`, such as the name of a tool. Nothing is kept without one.
    #[must_use]
    pub fn kept_in(self, vault: Arc<TokenVault>, owner: &str) -> Self {
        let name = format!("{owner} {}", shown(&self.inner.mcp));
        let old = &self.inner;
        Self {
            inner: Arc::new(Shared {
                http: old.http.clone(),
                mcp: old.mcp.clone(),
                config: old.config.clone(),
                consent: Arc::clone(&old.consent),
                vault: Some((vault, name)),
                clock: Arc::clone(&old.clock),
                state: Mutex::default(),
                is_proven: AtomicBool::new(false),
            }),
        }
    }

    /// The token to send, if there is one; renewed when it is about to end.
    ///
    /// # Errors
    ///
    /// Returns an error when what was kept cannot be opened.
    pub async fn token(&self) -> Result<Option<SecretText>, AuthorizationError> {
        let shared = &*self.inner;
        let mut state = shared.state.lock().await;
        shared.load(&mut state)?;
        let Some(held) = &state.held else {
            return Ok(None);
        };
        let is_ending = held
            .expires_at
            .is_some_and(|end| end <= (shared.clock)().saturating_add(MARGIN));
        if !is_ending {
            return Ok(held.token.clone());
        }
        match shared.renew(&mut state).await {
            Ok(true) => {}
            // A token that still counts is better than none.
            Err(error) if error.may_pass() => {}
            // Without a refresh token, the server says what it wants when the old one does not do any more.
            Ok(false) | Err(AuthorizationError::Refused { .. }) => {
                let held = state.held.as_mut();
                let now = (shared.clock)();
                if let Some(held) =
                    held.filter(|held| held.expires_at.is_some_and(|end| end <= now))
                {
                    held.token = None;
                }
            }
            Err(error) => return Err(error),
        }
        Ok(state.held.as_ref().and_then(|held| held.token.clone()))
    }

    /// Shows a response that is not a refusal: the token does.
    pub fn accepted(&self) {
        self.inner.is_proven.store(true, Ordering::Relaxed);
    }

    /// Shows a response of 401 or 403; whether the request is worth sending again, with another token.
    /// `used` is the token that it was sent with.
    ///
    /// # Errors
    ///
    /// Returns an error when the server wants a token and there is no way to get one.
    pub async fn challenged(
        &self,
        status: u16,
        headers: &HeaderMap,
        used: Option<&SecretText>,
    ) -> Result<bool, AuthorizationError> {
        let challenge = BearerChallenge::of(headers);
        let wants_more = challenge.error.as_deref() == Some("insufficient_scope");
        if status != 401 && !(status == 403 && wants_more) {
            return Ok(false);
        }
        let shared = &*self.inner;
        let mut state = shared.state.lock().await;
        shared.load(&mut state)?;
        let current = state.held.as_ref().and_then(|held| held.token.clone());
        if current.is_some() && current.as_ref() != used {
            // Somebody else got another one meanwhile.
            return Ok(true);
        }
        if status == 403 {
            return shared.step_up(&mut state, &challenge).await;
        }
        if current.is_some() && shared.is_futile(&state) {
            return Ok(false);
        }
        if current.is_some() {
            match shared.renew(&mut state).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                // Whoever is busy will renew it later; a person need not be asked again.
                Err(error @ AuthorizationError::Refused { .. }) if !error.may_pass() => {}
                Err(error) => return Err(error),
            }
        }
        shared.authorize(&mut state, &challenge).await?;
        Ok(true)
    }

    /// Gets a token whether the server asks for one or not, as for a person who logs in.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no way to get one.
    pub async fn log_in(&self, headers: &HeaderMap) -> Result<(), AuthorizationError> {
        let mut state = self.inner.state.lock().await;
        self.inner.load(&mut state)?;
        let challenge = BearerChallenge::of(headers);
        self.inner.authorize(&mut state, &challenge).await
    }

    /// Forgets the token, here and where it is kept; whether there was one.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be removed.
    pub async fn log_out(&self) -> Result<bool, AuthorizationError> {
        let mut state = self.inner.state.lock().await;
        let was_held = state.held.take().is_some();
        let was_kept = match &self.inner.vault {
            Some((vault, name)) => vault.forget(name)?,
            None => false,
        };
        Ok(was_held || was_kept)
    }
}

impl Shared {
    fn load(&self, state: &mut AuthorizationState) -> Result<(), AuthorizationError> {
        if state.is_loaded {
            return Ok(());
        }
        if let Some((vault, name)) = &self.vault
            && let Some(kept) = vault.open(name)?
        {
            // What another version wrote is asked for anew.
            state.held = serde_json::from_slice(&kept).ok();
        }
        state.is_loaded = true;
        Ok(())
    }

    fn keep(&self, held: &HeldGrant) -> Result<(), AuthorizationError> {
        if let Some((vault, name)) = &self.vault {
            let text = serde_json::to_vec(held).map_err(|_| AuthorizationError::Machine)?;
            vault.keep(name, &text)?;
        }
        Ok(())
    }

    /// A token that was just got and never accepted: another one would fare no better.
    fn is_futile(&self, state: &AuthorizationState) -> bool {
        let is_new = state
            .got_at
            .is_some_and(|got| (self.clock)() < got.saturating_add(PAUSE));
        is_new && !self.is_proven.load(Ordering::Relaxed)
    }

    /// Asks for the scopes of a challenge beside those that were asked for already.
    async fn step_up(
        &self,
        state: &mut AuthorizationState,
        challenge: &BearerChallenge,
    ) -> Result<bool, AuthorizationError> {
        let asked = state.held.as_ref().map(|held| held.scopes.clone());
        let asked = asked.unwrap_or_default();
        let wanted = scopes::union(&asked, &challenge.scopes);
        // Who was asked for all of it and gave less would do so again.
        if wanted == asked || state.step_ups >= MAX_STEP_UPS {
            return Ok(false);
        }
        state.step_ups += 1;
        let challenge = BearerChallenge {
            scopes: wanted,
            ..challenge.clone()
        };
        self.authorize(state, &challenge).await?;
        Ok(true)
    }

    /// Renews the token with its refresh token; whether there was one.
    async fn renew(&self, state: &mut AuthorizationState) -> Result<bool, AuthorizationError> {
        let Some(held) = &mut state.held else {
            return Ok(false);
        };
        let Some(refresh_token) = &held.refresh_token else {
            return Ok(false);
        };
        let Ok(endpoint) = Url::parse(&held.token_endpoint) else {
            return Ok(false);
        };
        let now = (self.clock)();
        let mut form = TokenForm::grant("refresh_token");
        form.add_secret("refresh_token", refresh_token);
        if let Some(resource) = &held.resource {
            form.add("resource", resource);
        }
        held.client
            .identify(&mut form, self.config.key.as_ref(), now)?;
        let asked = self.http.ask(&endpoint, form).await;
        if let Err(error @ AuthorizationError::Refused { .. }) = &asked
            && !error.may_pass()
        {
            // It is used up; the next authorization brings another.
            held.refresh_token = None;
        }
        let granted = self.http.granted(&endpoint, &asked?, now)?;
        held.token = Some(granted.token);
        held.expires_at = granted.expires_at;
        if granted.refresh_token.is_some() {
            held.refresh_token = granted.refresh_token;
        }
        let held = held.clone();
        state.got_at = Some(now);
        self.is_proven.store(false, Ordering::Relaxed);
        self.keep(&held)?;
        Ok(true)
    }

    /// Gets a token from whoever authorizes for the server now.
    async fn authorize(
        &self,
        state: &mut AuthorizationState,
        challenge: &BearerChallenge,
    ) -> Result<(), AuthorizationError> {
        let config = &self.config;
        let found = discover(&self.http, &self.mcp, challenge, config).await?;
        let before = state.held.as_ref();
        // Credentials are for the server that gave them, and for no other.
        let before = before.filter(|held| held.client.issuer == found.server.issuer);
        let scopes = self.scopes(challenge, &found, before);
        let redirect_uri = match &config.grant {
            AuthorizationGrant::AuthorizationCode => {
                if !self.consent.can_ask() {
                    return Err(AuthorizationError::NeedsConsent(self.mcp_host()));
                }
                Some(self.consent.redirect_uri())
            }
            AuthorizationGrant::ClientCredentials
            | AuthorizationGrant::JwtBearer { .. }
            | AuthorizationGrant::CrossApp(_) => None,
        };
        let is_known =
            |client: &&KnownClient| client.is_dynamic && client.redirect_uri == redirect_uri;
        let client = match before.map(|held| &held.client).filter(is_known) {
            Some(client) => client.clone(),
            None => {
                let redirect_uri = redirect_uri.as_deref();
                KnownClient::establish(config, &found.server, redirect_uri, &self.http).await?
            }
        };
        let granted = match &config.grant {
            AuthorizationGrant::AuthorizationCode => {
                self.by_code(&found, &client, &scopes, &redirect_uri.unwrap_or_default())
                    .await?
            }
            AuthorizationGrant::ClientCredentials => {
                let form = TokenForm::grant("client_credentials");
                self.by_form(form, &found, &client, &scopes).await?
            }
            AuthorizationGrant::JwtBearer { assertion } => {
                let mut form = TokenForm::grant(JWT_BEARER);
                form.add_secret("assertion", assertion);
                self.by_form(form, &found, &client, &scopes).await?
            }
            AuthorizationGrant::CrossApp(access) => {
                let assertion = self.exchange(access, &found, &scopes).await?;
                let mut form = TokenForm::grant(JWT_BEARER);
                form.add_secret("assertion", &assertion);
                self.by_form(form, &found, &client, &scopes).await?
            }
        };
        let asked = match &granted.scopes {
            Some(given) => scopes::union(&scopes, given),
            None => scopes,
        };
        let held = HeldGrant {
            client,
            token_endpoint: found.server.token_endpoint.into(),
            resource: found.resource,
            scopes: asked,
            token: Some(granted.token),
            refresh_token: granted.refresh_token,
            expires_at: granted.expires_at,
        };
        self.keep(&held)?;
        state.held = Some(held);
        state.got_at = Some((self.clock)());
        self.is_proven.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// What to ask for: what is configured, else what the challenge names, else all that the server has; and what was
    /// asked for before, so that nothing is lost.
    fn scopes(
        &self,
        challenge: &BearerChallenge,
        found: &Discovered,
        before: Option<&HeldGrant>,
    ) -> Vec<String> {
        let config = &self.config;
        let wanted = if !config.scopes.is_empty() {
            scopes::union(&config.scopes, &challenge.scopes)
        } else if challenge.scopes.is_empty() {
            found.scopes.clone()
        } else {
            challenge.scopes.clone()
        };
        let asked = before
            .map(|held| held.scopes.as_slice())
            .unwrap_or_default();
        let mut all = scopes::union(asked, &wanted);
        let is_offered = found.server.scopes.iter().any(|scope| scope == OFFLINE);
        if is_offered && matches!(config.grant, AuthorizationGrant::AuthorizationCode) {
            all = scopes::union(&all, &[OFFLINE.to_owned()]);
        }
        all
    }

    /// Sends a person to the authorization endpoint and exchanges the code that they come back with.
    async fn by_code(
        &self,
        found: &Discovered,
        client: &KnownClient,
        scopes: &[String],
        redirect_uri: &str,
    ) -> Result<GrantedToken, AuthorizationError> {
        let server = &found.server;
        let lacks = |what: &str| AuthorizationError::Metadata {
            place: server.issuer.clone(),
            reason: what.to_owned(),
        };
        let endpoint = server.authorization_endpoint.as_ref();
        let endpoint = endpoint.ok_or_else(|| lacks("it has no `authorization_endpoint`"))?;
        if !server.has_pkce {
            return Err(lacks(
                "it does not say that it holds clients to PKCE (`code_challenge_methods_supported` without `S256`), \
                 so a stolen code could be used",
            ));
        }
        let pkce = Pkce::new()?;
        let mut url = endpoint.clone();
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", redirect_uri)
                .append_pair("state", &pkce.state)
                .append_pair("code_challenge", &pkce.challenge)
                .append_pair("code_challenge_method", "S256");
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
            if scopes.iter().any(|scope| scope == OFFLINE) {
                // OpenID Connect gives refresh tokens to those who agreed to them.
                query.append_pair("prompt", "consent");
            }
            if let Some(resource) = &found.resource {
                query.append_pair("resource", resource);
            }
        }
        let back = self.consent.ask(&url).await?;
        let code = code_of(&back, &pkce.state, server.says_issuer, &server.issuer)?;
        let mut form = TokenForm::grant("authorization_code");
        form.add_secret("code", &code);
        form.add("redirect_uri", redirect_uri);
        form.add_secret("code_verifier", &SecretText::new(pkce.verifier));
        if let Some(resource) = &found.resource {
            form.add("resource", resource);
        }
        self.request(form, found, client).await
    }

    /// A grant that needs no person.
    async fn by_form(
        &self,
        mut form: TokenForm,
        found: &Discovered,
        client: &KnownClient,
        scopes: &[String],
    ) -> Result<GrantedToken, AuthorizationError> {
        form.add_scopes(scopes);
        if let Some(resource) = &found.resource {
            form.add("resource", resource);
        }
        self.request(form, found, client).await
    }

    async fn request(
        &self,
        mut form: TokenForm,
        found: &Discovered,
        client: &KnownClient,
    ) -> Result<GrantedToken, AuthorizationError> {
        let now = (self.clock)();
        let endpoint = &found.server.token_endpoint;
        client.identify(&mut form, self.config.key.as_ref(), now)?;
        let answer = self.http.ask(endpoint, form).await?;
        self.http.granted(endpoint, &answer, now)
    }

    /// Exchanges the identity token of a person for an assertion to the authorization server (RFC 8693).
    async fn exchange(
        &self,
        access: &CrossAppAccess,
        found: &Discovered,
        scopes: &[String],
    ) -> Result<SecretText, AuthorizationError> {
        let mut form = TokenForm::grant("urn:ietf:params:oauth:grant-type:token-exchange");
        form.add(
            "requested_token_type",
            "urn:ietf:params:oauth:token-type:id-jag",
        );
        form.add("audience", &found.server.issuer);
        if let Some(resource) = &found.resource {
            form.add("resource", resource);
        }
        form.add_secret("subject_token", &access.id_token);
        form.add(
            "subject_token_type",
            "urn:ietf:params:oauth:token-type:id_token",
        );
        form.add("client_id", &access.client_id);
        form.add_scopes(scopes);
        let endpoint = &access.token_endpoint;
        let answer = self.http.ask(endpoint, form).await?;
        let assertion = answer["access_token"].as_str();
        let assertion = assertion.filter(|text| crate::token::is_token(text));
        let assertion =
            assertion.ok_or_else(|| self.http.unusable(endpoint, "it holds no assertion"))?;
        Ok(SecretText::new(assertion))
    }

    fn mcp_host(&self) -> String {
        host(&self.mcp)
    }
}

/// The code that a person came back with, if it is ours and comes from the server that was asked (RFC 9207).
fn code_of(
    back: &Url,
    state: &str,
    says_issuer: bool,
    issuer: &str,
) -> Result<SecretText, AuthorizationError> {
    let value = |name: &str| {
        let mut pairs = back.query_pairs();
        pairs.find(|(key, _)| key == name).map(|(_, value)| value)
    };
    if value("state").as_deref() != Some(state) {
        return Err(AuthorizationError::ForgedResponse(
            "its `state` is not the one that was sent",
        ));
    }
    match value("iss") {
        Some(said) if said != issuer => {
            return Err(AuthorizationError::ForgedResponse(
                "its `iss` is not the authorization server that was asked",
            ));
        }
        None if says_issuer => {
            return Err(AuthorizationError::ForgedResponse(
                "it has no `iss`, and the authorization server says that it sends one",
            ));
        }
        Some(_) | None => {}
    }
    if let Some(error) = value("error") {
        let error: String = error
            .chars()
            .filter(char::is_ascii_graphic)
            .take(60)
            .collect();
        return Err(AuthorizationError::NoConsent(error));
    }
    match value("code") {
        Some(code) if !code.is_empty() => Ok(SecretText::new(code)),
        _ => Err(AuthorizationError::ForgedResponse("it holds no code")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_others_are_refused() {
        let read = |query: &str, says_issuer| {
            let back = Url::parse(&format!("http://127.0.0.1:1/callback?{query}")).unwrap();
            let code = code_of(&back, "s", says_issuer, "https://a.test");
            code.map(|code| code.expose().to_owned())
                .map_err(|error| error.to_string())
        };
        assert_eq!(read("code=c&state=s", false).as_deref(), Ok("c"));
        assert_eq!(
            read("code=c&state=s&iss=https://a.test", true).as_deref(),
            Ok("c")
        );
        for (query, says_issuer, reason) in [
            ("code=c", false, "state"),
            ("code=c&state=t", false, "state"),
            ("code=c&state=s", true, "no `iss`"),
            ("code=c&state=s&iss=https://a.test/", true, "`iss` is not"),
            (
                "code=c&state=s&iss=https://evil.test",
                false,
                "`iss` is not",
            ),
            ("error=access_denied&state=s", false, "access_denied"),
            ("state=s", false, "no code"),
        ] {
            let error = read(query, says_issuer).unwrap_err();
            assert!(error.contains(reason), "{query}: {error}");
        }
    }
}
