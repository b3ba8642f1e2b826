//! The HTTP client: bounded bodies, streamed events, no redirects, and proxies only for who asks for them.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body::Frame;
use http_body_util::{BodyExt as _, Either, Full, StreamBody};
use hyper::body::Incoming;
use hyper_util::client::legacy::ResponseFuture;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::WireLimits;
use crate::circuit_breaker::CircuitBreaker;
use crate::connect::{ConnectTimedOut, Connections, Pieces, Reach, RequestBody, connections};
use crate::guard::{AddressDenied, AddressGuard};
use crate::proxy::ProxySettings;
use crate::sse::{EventTooLarge, SseDecoder, SseEvent};
use crate::timers::Timers;
use crate::trace;

/// What we are called, for those who look into their logs.
const NAME: HeaderValue =
    HeaderValue::from_static(concat!("proofhouse/", env!("CARGO_PKG_VERSION")));

/// Sends requests; cheap to clone, connections are shared.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Connections>,
    pub(crate) limits: WireLimits,
    pub(crate) timers: Arc<Timers>,
    circuits: Arc<CircuitBreaker>,
    guard: Option<Arc<dyn AddressGuard>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("limits", &self.limits)
            .field("guarded", &self.guard.is_some())
            .finish_non_exhaustive()
    }
}

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The client could not be made.
    #[error("the HTTP client cannot be set up: {0}")]
    Setup(String),
    /// The URL makes no sense.
    #[error("{url}: not a URL: {reason}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answers there.
    #[error("cannot connect to {url}: {reason}")]
    Connect {
        /// The URL.
        url: String,
        /// What the system said.
        reason: String,
        /// Whether the time for connecting ran out.
        timed_out: bool,
    },
    /// The guard allows no connection there.
    #[error("{0}")]
    Denied(String),
    /// No answer in time.
    #[error("no answer in time")]
    TooSlow,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The body is larger than it may be.
    #[error("the response has more than {limit} bytes")]
    TooLarge {
        /// The most bytes it may have.
        limit: u64,
    },
    /// An event is larger than it may be.
    #[error(transparent)]
    EventTooLarge(#[from] EventTooLarge),
    /// More events than there may be.
    #[error("more than {limit} events")]
    TooManyEvents {
        /// The most events there may be.
        limit: u64,
    },
}

/// Whose certificates are believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roots {
    /// Those of the authorities that come with the program.
    Bundled,
    /// Those that the machine believes, as its administrator set it up; the bundled ones if it has none.
    System,
}

impl Roots {
    fn certificates(self) -> rustls::RootCertStore {
        if self == Self::System {
            let mut own = rustls::RootCertStore::empty();
            own.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if !own.is_empty() {
                return own;
            }
        }
        rustls::RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        }
    }
}

impl Client {
    /// Makes a client.
    ///
    /// # Errors
    ///
    /// Returns an error when TLS cannot be set up.
    pub fn new(limits: WireLimits) -> Result<Self, ClientError> {
        Self::build(limits, &Reach::Anywhere, Roots::Bundled)
    }

    /// Makes a client that connects only where the guard allows it: every answer of a name is
    /// checked, and every address that stands in a URL.
    ///
    /// # Errors
    ///
    /// Returns an error when TLS cannot be set up.
    pub fn guarded(limits: WireLimits, guard: Arc<dyn AddressGuard>) -> Result<Self, ClientError> {
        Self::build(limits, &Reach::Guarded(guard), Roots::Bundled)
    }

    /// Makes a client for endpoints that the operator names: through the operator's proxies, if there
    /// are any. No guard stands before it, so it is not for addresses that come from elsewhere.
    ///
    /// # Errors
    ///
    /// Returns an error when TLS cannot be set up.
    pub fn proxied(
        limits: WireLimits,
        proxies: ProxySettings,
        roots: Roots,
    ) -> Result<Self, ClientError> {
        Self::build(limits, &Reach::Proxied(proxies), roots)
    }

    fn build(limits: WireLimits, reach: &Reach, roots: Roots) -> Result<Self, ClientError> {
        let setup = |error: &dyn std::fmt::Display| ClientError::Setup(error.to_string());
        let mut believed = roots.certificates();
        if let Reach::Guarded(guard) = reach {
            believed.add_parsable_certificates(guard.authorities().iter().cloned());
        }
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| setup(&error))?
            .with_root_certificates(believed)
            .with_no_client_auth();
        let inner = Arc::new(connections(tls, reach, limits.connect_timeout));
        let guard = match reach {
            Reach::Guarded(guard) => Some(Arc::clone(guard)),
            Reach::Anywhere | Reach::Proxied(_) => None,
        };
        Ok(Self {
            inner,
            limits,
            timers: Arc::default(),
            circuits: Arc::default(),
            guard,
        })
    }

    /// Which hosts nobody answers at, for those who want to wait for them.
    #[must_use]
    pub fn circuits(&self) -> &CircuitBreaker {
        &self.circuits
    }

    /// Addresses in a URL are never looked up, so the resolver does not see them.
    fn check_literal(&self, url: &Url) -> Result<(), ClientError> {
        let (Some(guard), Some(host)) = (&self.guard, url.host_str()) else {
            return Ok(());
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        match host.parse() {
            Ok(address) => guard
                .check(address)
                .map_err(|AddressDenied(reason)| ClientError::Denied(reason)),
            Err(_) => Ok(()),
        }
    }

    /// Tells whether anybody listens at a URL: opens a connection and closes it again.
    ///
    /// # Errors
    ///
    /// Returns an error when the URL makes no sense or nobody listens.
    pub async fn reach(&self, url: &str) -> Result<(), ClientError> {
        let parsed = parse_url(url)?;
        let connect = |reason: String, timed_out| ClientError::Connect {
            url: url.to_owned(),
            reason,
            timed_out,
        };
        let (Some(host), Some(port)) = (parsed.host_str(), parsed.port_or_known_default()) else {
            return Err(ClientError::Url {
                url: url.to_owned(),
                reason: "it names no host".to_owned(),
            });
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let connecting = async {
            let found: Vec<_> = tokio::net::lookup_host((host, port)).await?.collect();
            if let Some(guard) = &self.guard {
                for address in &found {
                    let checked = guard.check(address.ip());
                    checked.map_err(std::io::Error::other)?;
                }
            }
            tokio::net::TcpStream::connect(found.as_slice()).await
        };
        match tokio::time::timeout(self.limits.connect_timeout, connecting).await {
            Err(_) => Err(connect(ConnectTimedOut.to_string(), true)),
            Ok(Err(error)) => Err(connect(error.to_string(), false)),
            Ok(Ok(_)) => Ok(()),
        }
    }

    /// Sends a request and waits for the response to begin.
    ///
    /// # Errors
    ///
    /// Returns an error when nobody answers in time.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<StreamedResponse, ClientError> {
        let body = Either::Left(Full::new(body));
        self.send_body(method, url, headers, body).await
    }

    /// Sends a request whose body comes in pieces; an error among them cuts the connection.
    ///
    /// # Errors
    ///
    /// Returns an error when nobody answers in time, counted from the start.
    pub async fn send_pieces(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        pieces: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<StreamedResponse, ClientError> {
        let pieces: Pieces = pieces.map(|piece| piece.map(Frame::data)).boxed();
        let body = Either::Right(StreamBody::new(pieces));
        self.send_body(method, url, headers, body).await
    }

    async fn send_body(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: RequestBody,
    ) -> Result<StreamedResponse, ClientError> {
        let parsed = parse_url(url)?;
        let sending = self.respond(method, &parsed, headers, body);
        let (parts, body) = tokio::time::timeout(self.limits.response_timeout, sending)
            .await
            .map_err(|_| ClientError::TooSlow)??
            .into_parts();
        Ok(StreamedResponse {
            status: parts.status,
            headers: parts.headers,
            body,
            limits: self.limits.clone(),
        })
    }

    /// Sends a request and waits for the response to begin, as long as it takes.
    pub(crate) async fn respond(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: RequestBody,
    ) -> Result<http::Response<Incoming>, ClientError> {
        self.check_literal(url)?;
        headers.entry(USER_AGENT).or_insert(NAME);
        headers
            .entry(ACCEPT)
            .or_insert(HeaderValue::from_static("*/*"));
        if let Some(credentials) = credentials(url) {
            headers.entry(AUTHORIZATION).or_insert(credentials);
        }
        trace::inject(&mut headers);
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = address(url)?;
        *request.headers_mut() = headers;
        let response = begin(&self.inner, request).await;
        response.map_err(|error| failure(&error, url.as_str()))
    }
}

/// Begins a request. This is no `async fn` because the body of one is compiled again in each crate that waits for
/// it, and with it here everything that makes a connection.
#[inline(never)]
fn begin(connections: &Connections, request: Request<RequestBody>) -> ResponseFuture {
    connections.request(request)
}

/// A URL as it is sent.
fn address(url: &Url) -> Result<Uri, ClientError> {
    let wrong = |reason: String| ClientError::Url {
        url: url.to_string(),
        reason,
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("only http and https are spoken".to_owned()));
    }
    Uri::try_from(url.as_str()).map_err(|error| wrong(error.to_string()))
}

/// A name and a password that stand in a URL, as a header.
fn credentials(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Why there was no response.
fn failure(error: &hyper_util::client::legacy::Error, url: &str) -> ClientError {
    if let Some(AddressDenied(reason)) = cause(error) {
        ClientError::Denied(reason.clone())
    } else if error.is_connect() {
        ClientError::Connect {
            url: url.to_owned(),
            reason: root_cause(error),
            timed_out: cause::<ConnectTimedOut>(error).is_some(),
        }
    } else {
        ClientError::Broken(root_cause(error))
    }
}

/// Why a connection ended early.
fn broken(error: &hyper::Error) -> ClientError {
    ClientError::Broken(root_cause(error))
}

/// An error of this type, if it is behind another one.
fn cause<'e, E: std::error::Error + 'static>(
    error: &'e (dyn std::error::Error + 'static),
) -> Option<&'e E> {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref() {
            return Some(found);
        }
        cause = inner.source();
    }
    None
}

fn parse_url(url: &str) -> Result<Url, ClientError> {
    Url::parse(url).map_err(|error| ClientError::Url {
        url: url.to_owned(),
        reason: error.to_string(),
    })
}

/// The innermost reason, which is the one that tells something.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// A response whose body is still to be read.
pub struct StreamedResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: Incoming,
    limits: WireLimits,
}

impl StreamedResponse {
    /// A header's text, if it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the body is a stream of events.
    #[must_use]
    pub fn is_event_stream(&self) -> bool {
        self.header("content-type")
            .is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
    }

    /// The whole body.
    ///
    /// # Errors
    ///
    /// Returns an error when it is too large, too slow or breaks off.
    pub async fn bytes(mut self) -> Result<Bytes, ClientError> {
        let limit = self.limits.max_message_bytes;
        let mut whole = Vec::new();
        while let Some(piece) = next_piece(&mut self.body, &self.limits).await? {
            if whole.len() + piece.len() > limit {
                return Err(ClientError::TooLarge {
                    limit: limit as u64,
                });
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.into())
    }

    /// The first bytes of the body, at most `limit` of them: as many as come within `time` before the
    /// connection breaks.
    pub async fn beginning(mut self, limit: usize, time: Duration) -> Bytes {
        let mut start = Vec::new();
        let reading = async {
            while start.len() < limit {
                let Ok(Some(piece)) = piece_of(&mut self.body).await else {
                    return;
                };
                start.extend_from_slice(&piece);
            }
        };
        // What was read until then counts.
        let _ = tokio::time::timeout(time, reading).await;
        start.truncate(limit);
        start.into()
    }

    /// The next bytes of the body as they come; `None` at its end. May be dropped and called again.
    ///
    /// # Errors
    ///
    /// Returns an error when the body breaks off or falls silent for too long.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, ClientError> {
        next_piece(&mut self.body, &self.limits).await
    }

    /// The body as events.
    #[must_use]
    pub fn events(self) -> SseEvents {
        SseEvents {
            decoder: SseDecoder::new(self.limits.max_message_bytes),
            ready: Vec::new().into_iter(),
            body: self.body,
            bytes: 0,
            events: 0,
            limits: self.limits,
        }
    }
}

impl std::fmt::Debug for StreamedResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Events of a response, as they come.
pub struct SseEvents {
    body: Incoming,
    decoder: SseDecoder,
    ready: std::vec::IntoIter<SseEvent>,
    bytes: u64,
    events: u64,
    limits: WireLimits,
}

impl SseEvents {
    /// The next event; `None` when the stream ended. May be dropped and called again.
    ///
    /// # Errors
    ///
    /// Returns an error when the stream breaks, falls silent for too long or is too large.
    pub async fn next(&mut self) -> Result<Option<SseEvent>, ClientError> {
        loop {
            if let Some(event) = self.ready.next() {
                self.events += 1;
                if self.events > self.limits.max_events {
                    return Err(ClientError::TooManyEvents {
                        limit: self.limits.max_events,
                    });
                }
                return Ok(Some(event));
            }
            let Some(piece) = next_piece(&mut self.body, &self.limits).await? else {
                return Ok(None);
            };
            self.bytes += piece.len() as u64;
            if self.bytes > self.limits.max_stream_bytes {
                return Err(ClientError::TooLarge {
                    limit: self.limits.max_stream_bytes,
                });
            }
            let mut events = Vec::new();
            self.decoder.push(&piece, &mut events)?;
            self.ready = events.into_iter();
        }
    }
}

async fn next_piece(
    body: &mut Incoming,
    limits: &WireLimits,
) -> Result<Option<Bytes>, ClientError> {
    let piece = tokio::time::timeout(limits.idle_timeout, piece_of(body)).await;
    piece.map_err(|_| ClientError::TooSlow)?
}

/// The next piece of a body; `None` at its end.
pub(crate) async fn piece_of(body: &mut Incoming) -> Result<Option<Bytes>, ClientError> {
    while let Some(frame) = body.frame().await {
        // What comes after the body is not asked for.
        if let Ok(piece) = frame.map_err(|error| broken(&error))?.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    async fn ask(url: &str) -> Result<StreamedResponse, ClientError> {
        let client = Client::new(WireLimits::default())?;
        client
            .send(Method::GET, url, HeaderMap::new(), Bytes::new())
            .await
    }

    #[tokio::test]
    async fn credentials_of_a_url_are_a_header_and_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let count = stream.read(&mut head).await.unwrap();
            let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            String::from_utf8_lossy(&head[..count]).to_lowercase()
        });
        let url = format!("http://ada:p%40ss@{address}/notes?a=b#part");
        assert_eq!(ask(&url).await.unwrap().status, StatusCode::NO_CONTENT);
        let head = served.await.unwrap();
        assert!(head.starts_with("get /notes?a=b http/1.1\r\n"), "{head}");
        // `ada:p@ss`, in lower case.
        assert!(
            head.contains("\r\nauthorization: basic ywrhonbac3m="),
            "{head}"
        );
        assert!(head.contains(&format!("\r\nhost: {address}\r\n")), "{head}");
        assert!(head.contains("\r\nuser-agent: proofhouse/"), "{head}");
        assert!(head.contains("\r\naccept: */*\r\n"), "{head}");
        assert!(!head.contains("ada:p"), "{head}");
    }

    #[tokio::test]
    async fn https_begins_with_tls_and_nothing_in_clear() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut first = [0; 2];
            stream.read_exact(&mut first).await.unwrap();
            first
        });
        let url = format!("https://{address}/");
        let refused = ask(&url).await;
        assert!(
            matches!(refused, Err(ClientError::Connect { .. })),
            "{refused:?}"
        );
        assert_eq!(
            served.await.unwrap(),
            [0x16, 0x03],
            "a record of a handshake"
        );
    }

    #[test]
    fn somebody_is_always_believed() {
        for roots in [Roots::Bundled, Roots::System] {
            assert!(!roots.certificates().is_empty(), "{roots:?}");
        }
    }

    #[tokio::test]
    async fn other_schemes_are_not_spoken() {
        for url in ["ftp://127.0.0.1/", "file:///etc/passwd", "nothing"] {
            let refused = ask(url).await;
            assert!(
                matches!(refused, Err(ClientError::Url { .. })),
                "{url}: {refused:?}"
            );
        }
    }
}
