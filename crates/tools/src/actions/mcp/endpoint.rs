//! Endpoints: an MCP server's address, with the headers of the manifest and one new token on 401.

use std::sync::{Arc, Mutex};

use proofhouse_mcp_auth::{Authorizer, SecretText};
use proofhouse_wire::client::{Client, ClientError, StreamedResponse};
use proofhouse_wire::retry::{RetryCause, RetryOn};
use proofhouse_wire::sync::lock;
use proofhouse_wire::{Bytes, HeaderMap, HeaderValue, Method};
use tokio::time::Instant;
use url::Url;

use super::authorization::{self, McpAuthorization};
use super::failure::LinkError;
use super::known_secrets::KnownSecrets;
use super::sieve::Sieve;
use crate::runtime::{ActionCall, ActionError, ActionFailure, Environment, ToolLimits};
use proofhouse_manifest::Mcp;
use proofhouse_manifest::interpolate::{Root, Sealed};

const AUTHORIZATION: &str = "authorization";

/// How much of the body of an error is read.
pub(super) const MAX_ERROR_BODY: usize = 4096;

/// The address of a server. Cheap to clone.
#[derive(Clone)]
pub(super) struct Endpoint {
    inner: Arc<EndpointShared>,
}

struct EndpointShared {
    client: Client,
    url: Sealed<Url>,
    headers: Mutex<Sealed<HeaderMap>>,
    block: Mcp,
    /// What the headers are filled in for, each time that they are.
    call: ActionCall,
    environment: Environment,
    secrets: KnownSecrets,
    limits: ToolLimits,
    sieve: Arc<Sieve>,
    /// Gets tokens, where the operator configured that for the tool.
    authorizer: Option<Authorizer>,
}

/// How often a request is sent again because another token was got for it.
const MAX_CHALLENGES: usize = 3;

impl Endpoint {
    /// Fills in the address and the headers.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is another part of one connection, and there is one caller"
    )]
    pub(super) async fn new(
        client: Client,
        block: &Mcp,
        call: &ActionCall,
        environment: &Environment,
        secrets: KnownSecrets,
        limits: &ToolLimits,
        sieve: Arc<Sieve>,
        authorization: Option<(&McpAuthorization, &Client)>,
    ) -> Result<Self, ActionError> {
        let template = block
            .url
            .as_ref()
            .ok_or_else(|| ActionError::new(ActionFailure::Manifest, "the block has no `url`"))?;
        let references = template.template().references();
        let scope = environment.scope(call, references, false).await?;
        secrets.learn(scope.secrets());
        let url = template.render(&scope)?;
        scope.check_hosts(url.expose())?;
        // A manifest that sends credentials of its own gets no others.
        let has_own = block
            .headers
            .iter()
            .any(|header| header.name == AUTHORIZATION);
        let authorizer = authorization.filter(|_| !has_own);
        let authorizer = authorizer.and_then(|(authorization, client)| {
            authorization.authorizer(&call.tool, url.expose(), client)
        });
        let endpoint = Self {
            inner: Arc::new(EndpointShared {
                authorizer,
                client,
                url,
                headers: Mutex::new(Sealed::new(HeaderMap::new())),
                block: block.clone(),
                call: call.clone(),
                environment: environment.clone(),
                secrets,
                limits: limits.clone(),
                sieve,
            }),
        };
        endpoint.fill_in(false).await?;
        Ok(endpoint)
    }

    pub(super) fn url(&self) -> &Url {
        self.inner.url.expose()
    }

    pub(super) fn sieve(&self) -> &Arc<Sieve> {
        &self.inner.sieve
    }

    /// Fills in the headers of the manifest, with new tokens if the old ones were refused.
    async fn fill_in(&self, fresh: bool) -> Result<(), ActionError> {
        let inner = &self.inner;
        let templates = &inner.block.headers;
        let references = templates
            .iter()
            .flat_map(|header| header.value.references());
        let references: Vec<_> = references.collect();
        let scope = inner
            .environment
            .scope(&inner.call, references.into_iter(), fresh)
            .await?;
        scope.check_hosts(inner.url.expose())?;
        inner.secrets.learn(scope.secrets());
        let mut headers = HeaderMap::new();
        for header in templates {
            headers.insert(header.name.clone(), header.render(&scope)?.into_exposed());
        }
        let mut kept = lock(&inner.headers);
        *kept = Sealed::new(headers);
        Ok(())
    }

    fn uses_token(&self) -> bool {
        let mut headers = self.inner.block.headers.iter();
        headers.any(|header| {
            let mut references = header.value.references();
            references.any(|reference| reference.root == Root::Auth)
        })
    }

    /// Sends a request to this address or to another one of the same server. `headers` are those of
    /// the protocol; those of the manifest do not replace them.
    ///
    /// A request is repeated if no connection could be made, and once if a token was refused.
    pub(super) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<StreamedResponse, LinkError> {
        let inner = &self.inner;
        let retry = &inner.limits.retry;
        let (mut attempt, mut fresh, mut challenges) = (1, false, 0);
        let patience = Instant::now() + inner.limits.outage;
        loop {
            let mut all = lock(&inner.headers).expose().clone();
            for (name, value) in headers {
                all.insert(name.clone(), value.clone());
            }
            let token = self.token(&mut all).await?;
            let pass = inner.client.circuits().enter(url, patience).await;
            let pass = pass.map_err(|open| self.unreachable(&open.reason))?;
            let sent = inner
                .client
                .send(method.clone(), url.as_str(), all, body.clone());
            let sent = sent.await;
            pass.note(&sent);
            match sent {
                Ok(response) if response.status == 401 && !fresh && self.uses_token() => {
                    fresh = true;
                    self.fill_in(true).await.map_err(LinkError)?;
                }
                Ok(response)
                    if matches!(response.status.as_u16(), 401 | 403)
                        && challenges < MAX_CHALLENGES =>
                {
                    challenges += 1;
                    if !self.challenged(&response, token.as_ref()).await? {
                        return Ok(response);
                    }
                }
                Ok(response) => {
                    if let (Some(authorizer), Some(_)) = (&inner.authorizer, &token)
                        && !matches!(response.status.as_u16(), 401 | 403)
                    {
                        authorizer.accepted();
                    }
                    return Ok(response);
                }
                Err(ClientError::Connect { .. })
                    if attempt >= retry.attempts && Instant::now() < patience =>
                {
                    attempt += 1;
                }
                Err(ClientError::Connect { reason, .. }) if attempt >= retry.attempts => {
                    return Err(self.unreachable(&reason));
                }
                Err(error) => {
                    // Half of the longest wait: there is one client per task, so nothing herds.
                    let cause = RetryCause::from(&error);
                    let Some(wait) = retry.next_wait(RetryOn::NotSent, cause, attempt, 0.5) else {
                        return Err(self.failure(&error));
                    };
                    tokio::time::sleep(wait).await;
                    attempt += 1;
                }
            }
        }
    }

    /// Adds the token that there is.
    async fn token(&self, headers: &mut HeaderMap) -> Result<Option<SecretText>, LinkError> {
        let Some(authorizer) = &self.inner.authorizer else {
            return Ok(None);
        };
        let token = authorizer.token().await;
        let token = token.map_err(|error| LinkError(authorization::failure(&error)))?;
        if let Some(token) = &token {
            self.inner.secrets.learn(&authorization::as_secrets(token));
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let mut value = value.map_err(|_| {
                LinkError::new(ActionFailure::Token, "the token cannot stand in a header")
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(token)
    }

    /// Shows a refusal to who gets tokens; whether there is another one.
    async fn challenged(
        &self,
        response: &StreamedResponse,
        used: Option<&SecretText>,
    ) -> Result<bool, LinkError> {
        let Some(authorizer) = &self.inner.authorizer else {
            return Ok(false);
        };
        let status = response.status.as_u16();
        let challenged = authorizer.challenged(status, &response.headers, used).await;
        challenged.map_err(|error| {
            let error = authorization::failure(&error);
            LinkError(error.redacted(&self.inner.secrets.all()))
        })
    }

    /// The error of a host that nobody answers at.
    fn unreachable(&self, reason: &str) -> LinkError {
        let host = self.url().host_str().unwrap_or("the host");
        LinkError(ActionError::unreachable(
            host,
            reason,
            self.inner.limits.outage,
        ))
    }

    /// What an error of the connection means.
    pub(super) fn failure(&self, error: &ClientError) -> LinkError {
        let host = self.url().host_str().unwrap_or("the host");
        let outage = self.inner.limits.outage;
        LinkError(ActionError::of_client(error, host, outage, false))
    }

    /// A response that is an error.
    pub(super) fn status_error(&self, status: u16, body: &[u8]) -> LinkError {
        let mut error = ActionError::new(
            ActionFailure::HttpStatus,
            match status {
                300..=399 => format!("HTTP {status}; redirects of MCP servers are not followed"),
                _ => format!("HTTP {status}"),
            },
        );
        error.detail.insert("status".to_owned(), status.into());
        let text = String::from_utf8_lossy(body);
        if !text.trim().is_empty() {
            let text = self.inner.secrets.all().redact(&text);
            let text = super::failure::head(&text, MAX_ERROR_BODY);
            error.detail.insert("body".to_owned(), text.into());
        }
        LinkError(error)
    }
}
