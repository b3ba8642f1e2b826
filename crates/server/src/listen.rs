//! Listening: connections with limits, with or without TLS, until the server is told to stop.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::response::IntoResponse as _;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::metrics::{Metrics, OverLimit};
use crate::problem::Problem;
use crate::received_body::ReceivedBody;
pub use proofhouse_wire::connection_limiter::ConnectionLimits;
use proofhouse_wire::connection_limiter::{
    ActiveRequest, Admission, ConnectionLimiter, ConnectionState, Permit,
};

/// How long a new connection may take until its first request is there, greeting with TLS included.
const FIRST_TIME: Duration = Duration::from_secs(10);
/// How long the headers of a later request may take, and a connection may be idle.
const HEADER_TIME: Duration = Duration::from_secs(30);
/// The most bytes of headers, with the line before them.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// How long to wait when the machine has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Idle connections that make way then.
const MAX_EVICTIONS: usize = 16;
/// What the system says when too many files are open: in the process, on the machine, and on Windows.
const TOO_MANY_FILES: [i32; 3] = [24, 23, 10_024];
/// How long a client may stop reading before its connection is closed; it can come back.
const MAX_STALL: Duration = Duration::from_secs(60);
/// How often that is looked at, for all connections of a listener at once.
const STALL_LOOK: Duration = Duration::from_secs(15);
/// How long a body may be coming until its connection makes way for another one where there is no room.
const SLOW_BODY: Duration = Duration::from_secs(5);
/// Connections beyond the limits, for what must be answered whatever others hold.
const RESERVE: ConnectionLimits = ConnectionLimits {
    all: 32,
    of_peer: 32,
};
/// Connections that are told at the same time that there is no room; more are only closed.
const MAX_REFUSALS: usize = 64;
/// How long telling may take.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// How TLS is spoken.
pub type TlsConfig = rustls::ServerConfig;

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificates or the key cannot be read.
    #[error("{what}: {why}")]
    Unreadable {
        /// Which of them.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// They do not belong together, or are of a kind that is not known.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// What a TLS server needs, from PEM texts.
///
/// # Errors
///
/// Returns an error when they cannot be read or do not belong together; none tells the key.
pub fn tls(certificates: &[u8], key: &[u8]) -> Result<Arc<TlsConfig>, TlsError> {
    let unreadable = |what| {
        move |error: rustls_pki_types::pem::Error| TlsError::Unreadable {
            what,
            why: error.to_string(),
        }
    };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(unreadable("the certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(unreadable("the key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A listener with what it serves.
pub struct Listener {
    /// Where connections come from.
    pub socket: TcpListener,
    /// With TLS, if at all.
    pub tls: Option<Arc<TlsConfig>>,
    /// What is behind it.
    pub router: Router,
    /// How many connections there may be.
    pub limits: ConnectionLimits,
    /// Whether a path is answered although there is no room for another connection: it has a few connections of its own.
    pub essential: fn(&str) -> bool,
}

/// Serves until `stop`; requests that are under way then have until `patience` is over.
pub async fn serve(
    listeners: Vec<Listener>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    patience: Duration,
) {
    let connections = TaskTracker::new();
    let abort = CancellationToken::new();
    let accepting = TaskTracker::new();
    for listener in listeners {
        let acceptor = Acceptor {
            limiter: ConnectionLimiter::new(listener.limits, SLOW_BODY),
            reserve: ConnectionLimiter::new(RESERVE, Duration::ZERO),
            essential: listener.essential,
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
            metrics: Arc::clone(&metrics),
            connections: connections.clone(),
            stop: stop.clone(),
            abort: abort.clone(),
        };
        accepting.spawn(accept(listener, acceptor));
    }
    accepting.close();
    accepting.wait().await;
    connections.close();
    if tokio::time::timeout(patience, connections.wait())
        .await
        .is_err()
    {
        abort.cancel();
        connections.wait().await;
    }
}

/// Admits the connections of a listener.
#[derive(Clone)]
struct Acceptor {
    limiter: Arc<ConnectionLimiter>,
    /// Where connections are admitted that find no room; only what is essential is answered there.
    reserve: Arc<ConnectionLimiter>,
    essential: fn(&str) -> bool,
    refusals: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    connections: TaskTracker,
    stop: CancellationToken,
    abort: CancellationToken,
}

impl Acceptor {
    /// Lets a connection in, if there is room or another one makes way.
    fn admit(&self, peer: SocketAddr) -> Option<AdmittedConnection> {
        if let Some(permit) = self.admit_at(&self.limiter, peer) {
            return Some(AdmittedConnection {
                permit,
                is_reserved: false,
            });
        }
        // It is not known yet what it will ask for.
        let Some(permit) = self.admit_at(&self.reserve, peer) else {
            self.metrics.over_limit.one(OverLimit::Refused);
            return None;
        };
        self.metrics.over_limit.one(OverLimit::Reserved);
        Some(AdmittedConnection {
            permit,
            is_reserved: true,
        })
    }

    fn admit_at(&self, limiter: &Arc<ConnectionLimiter>, peer: SocketAddr) -> Option<Permit> {
        // Every connection has a token of its own: a shared one is a lock that all of them take with every request.
        match limiter.admit(peer.ip(), self.abort.child_token()) {
            Admission::Free(permit) => Some(permit),
            Admission::Evicted(permit) => {
                self.metrics.over_limit.one(OverLimit::MadeWay);
                Some(permit)
            }
            Admission::Full => None,
        }
    }

    /// Tells a connection that there is no room. With TLS it is only closed: greeting costs more than there is.
    fn refuse(&self, stream: TcpStream, is_plain: bool) {
        let Some(permit) = Arc::clone(&self.refusals)
            .try_acquire_owned()
            .ok()
            .filter(|_| is_plain)
        else {
            return;
        };
        self.connections.spawn(async move {
            let _ = tokio::time::timeout(REFUSAL_TIME, refuse(stream)).await;
            drop(permit);
        });
    }

    /// Waits when no connection can be accepted, until that may have changed.
    async fn pause_accepting(&self, error: &io::Error) {
        let is_short = error
            .raw_os_error()
            .is_some_and(|code| TOO_MANY_FILES.contains(&code));
        if is_short {
            for _ in 0..self.limiter.evict_idle(MAX_EVICTIONS) {
                self.metrics.over_limit.one(OverLimit::MadeWay);
            }
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

fn no_room() -> Problem {
    Problem::unavailable("there is no room for another connection; try again later")
}

async fn refuse(mut stream: TcpStream) -> io::Result<()> {
    let problem = no_room();
    let wait = problem.retry_after.unwrap_or_default();
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: {wait}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // What was sent must be read: closing a connection with something unread takes the answer back.
    let mut waste = [0; 4 << 10];
    while stream.read(&mut waste).await? > 0 {}
    Ok(())
}

async fn accept(listener: Listener, acceptor: Acceptor) {
    let Listener {
        socket,
        tls,
        router,
        ..
    } = listener;
    let tls = tls.map(TlsAcceptor::from);
    let mut look = tokio::time::interval(STALL_LOOK);
    loop {
        let accepted = tokio::select! {
            () = acceptor.stop.cancelled() => return,
            _ = look.tick() => {
                acceptor.limiter.give_up_stalled(MAX_STALL);
                acceptor.reserve.give_up_stalled(MAX_STALL);
                continue;
            }
            accepted = socket.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                acceptor.pause_accepting(&error).await;
                continue;
            }
        };
        let Some(admitted) = acceptor.admit(peer) else {
            acceptor.refuse(stream, tls.is_none());
            continue;
        };
        let _ = stream.set_nodelay(true);
        let connection = ServedConnection {
            tls: tls.clone(),
            router: router.clone(),
            acceptor: acceptor.clone(),
            finish: acceptor.stop.child_token(),
            peer,
            permit: admitted.permit,
            is_reserved: admitted.is_reserved,
        };
        acceptor.connections.spawn(connection.run(stream));
    }
}

/// A connection that may be there.
struct AdmittedConnection {
    permit: Permit,
    is_reserved: bool,
}

struct ServedConnection {
    tls: Option<TlsAcceptor>,
    router: Router,
    acceptor: Acceptor,
    /// Tells it to end after the request that is under way.
    finish: CancellationToken,
    peer: SocketAddr,
    permit: Permit,
    /// There was no room: only what is essential is answered, and nothing after it.
    is_reserved: bool,
}

impl ServedConnection {
    async fn run(self, stream: TcpStream) {
        self.acceptor.metrics.connections.inc();
        if let Err(error) = self.serve(stream).await {
            tracing::debug!(%error, peer = %self.peer, "a connection broke");
        }
        self.acceptor.metrics.connections.dec();
    }

    /// Talks until one side has enough, until nothing comes at first, or until it must make way.
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let state = &self.permit.state;
        let mut serving = std::pin::pin!(self.handshake(stream));
        let mut silence = std::pin::pin!(tokio::time::sleep(FIRST_TIME));
        let mut was_heard = false;
        loop {
            tokio::select! {
                result = serving.as_mut() => return result,
                () = state.evicted() => break,
                () = silence.as_mut(), if !was_heard => {
                    if !state.was_used() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    was_heard = true;
                }
            }
        }
        if state.is_given_up() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if !state.is_busy() {
            return Ok(());
        }
        // A request came at the same moment, or its body does not come: it is answered, unless everything ends.
        self.finish.cancel();
        tokio::select! {
            result = serving => result,
            () = self.acceptor.abort.cancelled() => Ok(()),
        }
    }

    async fn handshake(&self, stream: TcpStream) -> io::Result<()> {
        let stream = WatchedStream {
            stream,
            state: Arc::clone(&self.permit.state),
        };
        match &self.tls {
            None => self.serve_http(stream).await,
            Some(tls) => self.serve_http(tls.accept(stream).await?).await,
        }
    }

    async fn serve_http(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
            let active = ActiveRequest::at(&self.permit.state);
            let mut request = request.map(|body| ReceivedBody::of(body, &self.permit.state));
            request.extensions_mut().insert(ConnectInfo(self.peer));
            let is_answered = !self.is_reserved || (self.acceptor.essential)(request.uri().path());
            let answering = is_answered.then(|| self.router.clone().oneshot(request));
            async move {
                let answer = match answering {
                    Some(answering) => answering.await?,
                    None => no_room().into_response(),
                };
                let tracked = |body| TrackedBody {
                    body,
                    _active: active,
                };
                Ok::<_, std::convert::Infallible>(answer.map(tracked))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(!self.is_reserved)
            .header_read_timeout(HEADER_TIME)
            .max_buf_size(MAX_HEADER_BYTES)
            .max_header_size(MAX_HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            result = connection.as_mut() => return result.map_err(io::Error::other),
            () = self.finish.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        connection.await.map_err(io::Error::other)
    }
}

/// A connection of which it is known whether its client makes room for what it is sent. Whoever does not is not waited for, so
/// that what is ready for it does not stay in memory.
struct WatchedStream {
    stream: TcpStream,
    state: Arc<ConnectionState>,
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.state.note_full(polled.is_pending());
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.state.note_full(polled.is_pending());
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The body of an answer; its request is under way until it was sent.
struct TrackedBody {
    body: axum::body::Body,
    _active: ActiveRequest,
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    /// Whoever stops reading is given up, and whoever reads on is not.
    #[tokio::test]
    async fn a_client_that_does_not_read_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (mut client, accepted) = (client.await.unwrap(), listener.accept().await.unwrap());
        let limiter = ConnectionLimiter::new(ConnectionLimits::default(), SLOW_BODY);
        let peer: IpAddr = "127.0.0.1".parse().unwrap();
        let Admission::Free(permit) = limiter.admit(peer, CancellationToken::new()) else {
            panic!("there is room");
        };
        let mut served = WatchedStream {
            stream: accepted.0,
            state: Arc::clone(&permit.state),
        };
        let large = vec![0; 64 << 20];
        let sent = large.len();
        let writing = tokio::spawn(async move {
            served.write_all(&large).await.unwrap();
            served
        });
        while permit.state.full_since() == 0 {
            tokio::task::yield_now().await;
        }
        let mut taken = vec![0; sent];
        client.read_exact(&mut taken).await.unwrap();
        let _served = writing.await.unwrap();
        limiter.give_up_stalled(Duration::ZERO);
        assert!(!permit.state.is_given_up(), "everything was read");
        permit.state.note_full(true);
        limiter.give_up_stalled(Duration::ZERO);
        assert!(permit.state.is_given_up());
    }
}
