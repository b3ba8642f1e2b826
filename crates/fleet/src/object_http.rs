//! The way to an object store: its requests over our own HTTP client.

use std::time::Duration;

use async_trait::async_trait;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use proofhouse_wire::client::{Client, ClientError, Roots};
use proofhouse_wire::{Bytes, ProxySettings, Url, WireLimits, is_this_machine};

use crate::traces::MAX_TRACE;

/// How long one request may take, with its body.
const REQUEST_TIME: Duration = Duration::from_secs(120);

/// How long it may take to reach the service of a cloud that gives its machines credentials. It is near, or not there.
const NEAR: Duration = Duration::from_secs(2);

/// Why a request is not sent.
#[derive(Debug, thiserror::Error)]
enum Unsent {
    #[error(
        "{0} is not encrypted; use https, or allow it (AWS_ALLOW_HTTP or AZURE_ALLOW_HTTP is `true`)"
    )]
    Plain(String),
    #[error("not an address: {0}")]
    Address(String),
    #[error("cannot connect to {host}: {reason}")]
    Connect { host: String, reason: String },
}

/// Makes connections for object stores.
#[derive(Debug, Clone)]
pub(crate) struct ObjectHttp {
    stores: Client,
    metadata: Client,
}

impl ObjectHttp {
    /// Requests to stores go through these proxies. The machine's own certificates count: a store is often inside.
    pub(crate) fn new(proxies: ProxySettings) -> Result<Self, ClientError> {
        let max_message_bytes = usize::try_from(MAX_TRACE).unwrap_or(usize::MAX);
        let limits = WireLimits {
            max_message_bytes,
            ..WireLimits::default()
        };
        let near = WireLimits {
            connect_timeout: NEAR,
            ..WireLimits::default()
        };
        Ok(Self {
            stores: Client::proxied(limits, proxies, Roots::System)?,
            metadata: Client::proxied(near, ProxySettings::default(), Roots::System)?,
        })
    }
}

impl HttpConnector for ObjectHttp {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allowed = options.get_config_value(&ClientConfigKey::AllowHttp);
        Ok(HttpClient::new(ObjectRequests {
            clients: self.clone(),
            allows_plain: allowed.as_deref() == Some("true"),
        }))
    }
}

/// Sends the requests of one store.
#[derive(Debug)]
struct ObjectRequests {
    clients: ObjectHttp,
    allows_plain: bool,
}

/// Whether a host is the service of a cloud that gives its machines credentials: never behind a proxy.
fn is_metadata(host: &str) -> bool {
    let address = host.parse::<std::net::Ipv4Addr>();
    address.is_ok_and(|address| address.is_link_local())
        || host.eq_ignore_ascii_case("metadata.google.internal")
        || host.eq_ignore_ascii_case("metadata")
}

/// The bytes of a body, which is in memory already.
fn bytes_of(body: HttpRequestBody) -> impl Future<Output = Result<Bytes, HttpError>> {
    HttpResponseBody::new(body).bytes()
}

#[async_trait]
impl HttpService for ObjectRequests {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let unsent = |unsent: Unsent| HttpError::new(HttpErrorKind::Unknown, unsent);
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string())
            .map_err(|error| unsent(Unsent::Address(error.to_string())))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_metadata = is_metadata(&host);
        if url.scheme() != "https" && !self.allows_plain && !is_metadata && !is_this_machine(&host)
        {
            return Err(unsent(Unsent::Plain(host)));
        }
        let client = if is_metadata {
            &self.clients.metadata
        } else {
            &self.clients.stores
        };
        let body = bytes_of(body).await?;
        let sent = client.exchange(head.method, &url, head.headers, body, REQUEST_TIME);
        let answer = sent.await.map_err(|error| failure(host, error))?;
        let mut response = HttpResponse::new(answer.body.into());
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

/// What came of a request that was not answered. Its URL is left out, since there may be a signature in it.
fn failure(host: String, error: ClientError) -> HttpError {
    match error {
        ClientError::Connect { reason, .. } => {
            HttpError::new(HttpErrorKind::Connect, Unsent::Connect { host, reason })
        }
        ClientError::TooSlow => HttpError::new(HttpErrorKind::Timeout, error),
        // What is written is named by its digest, so to write it twice changes nothing.
        ClientError::Broken(_) => HttpError::new(HttpErrorKind::Request, error),
        ClientError::TooLarge { .. } => HttpError::new(HttpErrorKind::Decode, error),
        ClientError::Url { reason, .. } => {
            HttpError::new(HttpErrorKind::Unknown, Unsent::Address(reason))
        }
        other => HttpError::new(HttpErrorKind::Unknown, other),
    }
}
