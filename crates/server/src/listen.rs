//! Listening: connections with limits, with or without TLS, until the server is told to stop.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::metrics::{Metrics, OverLimit};
use crate::problem::Problem;
pub use crate::room::Limits;
use crate::room::{Asking, Entry, Place, Room};

/// How long a new connection may take until its first request is there, greeting with TLS included.
const FIRST_TIME: Duration = Duration::from_secs(10);
/// How long the headers of a later request may take, and a connection may be idle.
const HEADER_TIME: Duration = Duration::from_secs(30);
/// The most bytes of headers, with the line before them.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// How long to wait when the machine has no room for another connection.
const BREATH: Duration = Duration::from_millis(50);
/// Idle connections that make way then.
const MAKING_WAY: usize = 16;
/// What the system says when too many files are open: in the process, on the machine, and on Windows.
const TOO_MANY_FILES: [i32; 3] = [24, 23, 10_024];
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
pub struct Door {
    /// Where connections come from.
    pub listener: TcpListener,
    /// With TLS, if at all.
    pub tls: Option<Arc<TlsConfig>>,
    /// What is behind it.
    pub router: Router,
    /// How many connections there may be.
    pub limits: Limits,
}

/// Serves until `stop`; requests that are under way then have until `patience` is over.
pub async fn serve(
    doors: Vec<Door>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    patience: Duration,
) {
    let connections = TaskTracker::new();
    let abort = CancellationToken::new();
    let accepting = TaskTracker::new();
    for door in doors {
        let house = House {
            room: Room::new(door.limits),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
            metrics: Arc::clone(&metrics),
            connections: connections.clone(),
            stop: stop.clone(),
            abort: abort.clone(),
        };
        accepting.spawn(accept(door, house));
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

#[derive(Clone)]
struct House {
    room: Arc<Room>,
    refusals: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    connections: TaskTracker,
    stop: CancellationToken,
    abort: CancellationToken,
}

impl House {
    /// Lets a connection in, if there is room or an idle one makes way.
    fn admit(&self, peer: SocketAddr) -> Option<Place> {
        // Every connection has a token of its own: a shared one is a lock that all of them take with every request.
        match self.room.enter(peer.ip(), self.abort.child_token()) {
            Entry::Free(place) => Some(place),
            Entry::MadeWay(place) => {
                self.metrics.over_limit.one(OverLimit::MadeWay);
                Some(place)
            }
            Entry::Full => {
                self.metrics.over_limit.one(OverLimit::Refused);
                None
            }
        }
    }

    /// Tells a connection that there is no room. With TLS it is only closed: greeting costs more than there is.
    fn turn_away(&self, stream: TcpStream, is_plain: bool) {
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
    async fn breathe(&self, error: &io::Error) {
        let is_short = error
            .raw_os_error()
            .is_some_and(|code| TOO_MANY_FILES.contains(&code));
        if is_short {
            for _ in 0..self.room.clear(MAKING_WAY) {
                self.metrics.over_limit.one(OverLimit::MadeWay);
            }
        }
        tokio::time::sleep(BREATH).await;
    }
}

async fn refuse(mut stream: TcpStream) -> io::Result<()> {
    let problem = Problem::unavailable("there is no room for another connection; try again later");
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

async fn accept(door: Door, house: House) {
    let Door {
        listener,
        tls,
        router,
        ..
    } = door;
    let acceptor = tls.map(TlsAcceptor::from);
    loop {
        let accepted = tokio::select! {
            () = house.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                house.breathe(&error).await;
                continue;
            }
        };
        let Some(place) = house.admit(peer) else {
            house.turn_away(stream, acceptor.is_none());
            continue;
        };
        let _ = stream.set_nodelay(true);
        let connection = Connection {
            acceptor: acceptor.clone(),
            router: router.clone(),
            house: house.clone(),
            finish: house.stop.child_token(),
            peer,
            place,
        };
        house.connections.spawn(connection.run(stream));
    }
}

struct Connection {
    acceptor: Option<TlsAcceptor>,
    router: Router,
    house: House,
    /// Tells it to end after the request that is under way.
    finish: CancellationToken,
    peer: SocketAddr,
    place: Place,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        self.house.metrics.connections.inc();
        if let Err(error) = self.until_it_leaves(stream).await {
            tracing::debug!(%error, peer = %self.peer, "a connection broke");
        }
        self.house.metrics.connections.dec();
    }

    /// Talks until one side has enough, until nothing comes at first, or until it must make way.
    async fn until_it_leaves(&self, stream: TcpStream) -> io::Result<()> {
        let seat = &self.place.seat;
        let mut talking = std::pin::pin!(self.greet(stream));
        let mut silence = std::pin::pin!(tokio::time::sleep(FIRST_TIME));
        let mut was_heard = false;
        loop {
            tokio::select! {
                result = talking.as_mut() => return result,
                () = seat.is_wanted() => break,
                () = silence.as_mut(), if !was_heard => {
                    if !seat.was_used() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    was_heard = true;
                }
            }
        }
        if !seat.is_busy() {
            return Ok(());
        }
        // A request came at the same moment. It is answered, unless everything ends.
        self.finish.cancel();
        tokio::select! {
            result = talking => result,
            () = self.house.abort.cancelled() => Ok(()),
        }
    }

    async fn greet(&self, stream: TcpStream) -> io::Result<()> {
        match &self.acceptor {
            None => self.talk(stream).await,
            Some(acceptor) => self.talk(acceptor.accept(stream).await?).await,
        }
    }

    async fn talk(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
            let asking = Asking::at(&self.place.seat);
            let mut request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(ConnectInfo(self.peer));
            let answering = self.router.clone().oneshot(request);
            async move {
                let answer = answering.await?;
                Ok::<_, std::convert::Infallible>(answer.map(|body| Answer {
                    body,
                    _asking: asking,
                }))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
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

/// The body of an answer; its request is under way until it was sent.
struct Answer {
    body: axum::body::Body,
    _asking: Asking,
}

impl Body for Answer {
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
