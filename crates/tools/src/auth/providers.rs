//! The providers of a program, as the source of tokens of its tasks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use proofhouse_source::did_you_mean;
use proofhouse_wire::sync::lock;

use super::answer::MAX_ANSWER_BYTES;
use super::cache::{Fetched, TokenCache, TokenDemand, UnixClock};
use super::config::{AuthConfig, ProviderBinding, ProviderConfig};
use super::error::AuthError;
use super::{github, oauth};
use crate::http::{EgressPolicy, HttpClient};
use crate::runtime::{ActionError, ActionFailure, TokenError, TokenSource, ToolLimits};
use proofhouse_manifest::Tool;
use proofhouse_manifest::interpolate::{Sealed, Secrets, TokenHosts};

/// Gives tokens, and keeps them. Share one among all tasks, so that they share its tokens.
pub struct Providers {
    table: BTreeMap<String, Arc<Provider>>,
    client: Arc<HttpClient>,
    clock: UnixClock,
}

struct Provider {
    config: ProviderConfig,
    binding: ProviderBinding,
    secrets: Mutex<Secrets>,
    cache: TokenCache,
    /// The refresh token to use next.
    refresh_token: Mutex<Option<Sealed<String>>>,
}

impl Providers {
    /// Makes the providers ready; nothing is fetched before the first token is wanted. The clock tells
    /// the seconds since 1970.
    ///
    /// # Errors
    ///
    /// Returns an error when the HTTP client cannot be set up.
    pub fn new(
        config: &AuthConfig,
        limits: &ToolLimits,
        egress: EgressPolicy,
        clock: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Self, ActionError> {
        let limits = ToolLimits {
            max_response_bytes: limits.max_response_bytes.min(MAX_ANSWER_BYTES),
            ..limits.clone()
        };
        let clock: UnixClock = Arc::new(clock);
        let table = config.iter().map(|(name, config, binding)| {
            let refresh_token = match config {
                ProviderConfig::RefreshToken(grant) => Some(grant.refresh_token.clone()),
                _ => None,
            };
            let provider = Provider {
                config: config.clone(),
                binding: binding.clone(),
                secrets: Mutex::new(config.secrets()),
                cache: TokenCache::new(Arc::clone(&clock)),
                refresh_token: Mutex::new(refresh_token),
            };
            (name.to_owned(), Arc::new(provider))
        });
        Ok(Self {
            table: table.collect(),
            client: Arc::new(HttpClient::new(&limits, egress)?),
            clock,
        })
    }

    /// The token of a provider.
    ///
    /// # Errors
    ///
    /// Returns why there is none.
    pub async fn get(&self, name: &str) -> Result<Sealed<String>, AuthError> {
        self.fetch(name, TokenDemand::Any).await
    }

    /// The token of a provider after a server refused one. Those who were refused with the same token
    /// share one request.
    ///
    /// # Errors
    ///
    /// Returns why there is none.
    pub async fn get_instead_of(
        &self,
        name: &str,
        refused: &str,
    ) -> Result<Sealed<String>, AuthError> {
        self.fetch(name, TokenDemand::Not(refused)).await
    }

    async fn fetch(
        &self,
        name: &str,
        wanted: TokenDemand<'_>,
    ) -> Result<Sealed<String>, AuthError> {
        let Some(provider) = self.table.get(name) else {
            let near = did_you_mean(name, self.table.keys().map(String::as_str));
            return Err(AuthError::Unknown {
                near: near.map(str::to_owned),
            });
        };
        if let ProviderConfig::Fixed(token) = &provider.config {
            return Ok(token.clone());
        }
        let fetch = || {
            let (provider, client) = (Arc::clone(provider), Arc::clone(&self.client));
            let now = (self.clock)();
            async move { provider.fetch(&client, now).await }
        };
        provider.cache.get(wanted, fetch).await
    }
}

impl Provider {
    async fn fetch(&self, client: &HttpClient, now: u64) -> Result<Fetched, AuthError> {
        let secrets = self.secrets();
        match &self.config {
            ProviderConfig::Fixed(token) => Ok(Fetched {
                token: token.clone(),
                expires_at: None,
            }),
            ProviderConfig::ClientCredentials(grant) => {
                let granted = oauth::grant(client, &grant.client, None, now, &secrets).await;
                granted.map(|(fetched, _)| fetched)
            }
            ProviderConfig::RefreshToken(grant) => {
                let kept = lock(&self.refresh_token).clone();
                let with = kept.as_ref().unwrap_or(&grant.refresh_token).expose();
                let (fetched, next) =
                    oauth::grant(client, &grant.client, Some(with), now, &secrets).await?;
                if let Some(next) = next {
                    // The one that is used up may still be good somewhere; those before it are not kept.
                    let mut secrets = self.config.secrets();
                    secrets.add(with);
                    secrets.add(next.expose());
                    *lock(&self.secrets) = secrets;
                    *lock(&self.refresh_token) = Some(next);
                }
                Ok(fetched)
            }
            ProviderConfig::GithubApp(app) => {
                github::installation(client, app, now, &secrets).await
            }
        }
    }

    fn secrets(&self) -> Secrets {
        lock(&self.secrets).clone()
    }
}

impl TokenSource for Providers {
    fn granted(&self, provider: &str, tool: &Tool) -> Result<TokenHosts, TokenError> {
        let (namespace, name) = (&tool.namespace, &tool.name);
        match self.table.get(provider) {
            Some(found) if !found.binding.is_for(namespace, name) => Err(TokenError {
                provider: provider.to_owned(),
                reason: format!(
                    "`{namespace}/{name}` is not among its tools in the operator's file: auth.{provider}.tools"
                ),
                failure: ActionFailure::Token,
            }),
            Some(found) => Ok(found.binding.hosts.clone()),
            // That there is none is said when a token is asked for, with a name like it.
            None => Ok(TokenHosts::any()),
        }
    }

    fn token<'a>(
        &'a self,
        provider: &'a str,
        fresh: bool,
    ) -> BoxFuture<'a, Result<String, TokenError>> {
        let wanted = if fresh {
            TokenDemand::Fresh
        } else {
            TokenDemand::Any
        };
        Box::pin(async move { told(provider, self.fetch(provider, wanted).await) })
    }

    fn token_instead_of<'a>(
        &'a self,
        provider: &'a str,
        refused: &'a str,
    ) -> BoxFuture<'a, Result<String, TokenError>> {
        Box::pin(async move { told(provider, self.get_instead_of(provider, refused).await) })
    }

    fn secrets(&self, provider: &str) -> Secrets {
        let found = self.table.get(provider);
        found.map(|provider| provider.secrets()).unwrap_or_default()
    }
}

fn told(provider: &str, result: Result<Sealed<String>, AuthError>) -> Result<String, TokenError> {
    match result {
        Ok(token) => Ok(token.into_exposed()),
        Err(error) => Err(TokenError {
            provider: provider.to_owned(),
            reason: error.to_string(),
            failure: error.failure(),
        }),
    }
}

impl std::fmt::Debug for Providers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.table.keys()).finish()
    }
}
