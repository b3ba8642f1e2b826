//! Listening: connections with limits, with or without TLS, until the server is told to stop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::metrics::Metrics;

/// Connections at a time; more wait to be accepted.
const MAX_CONNECTIONS: usize = 1_024;
/// How long the headers of a request may take, and a connection may be idle.
const HEADER_TIME: Duration = Duration::from_secs(30);
/// How long greeting with TLS may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// The most bytes of headers.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// How long to wait when the machine has no room for another connection.
const BREATH: Duration = Duration::from_millis(50);

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
            room: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
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
    room: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    connections: TaskTracker,
    stop: CancellationToken,
    abort: CancellationToken,
}

async fn accept(door: Door, house: House) {
    let Door {
        listener,
        tls,
        router,
    } = door;
    let acceptor = tls.map(TlsAcceptor::from);
    loop {
        let next = async {
            let room = Arc::clone(&house.room).acquire_owned().await;
            (room, listener.accept().await)
        };
        let accepted = tokio::select! {
            () = house.stop.cancelled() => return,
            accepted = next => accepted,
        };
        let (Ok(room), Ok((stream, peer))) = accepted else {
            // Too many open files, for one. There will be room again.
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let connection = Connection {
            acceptor: acceptor.clone(),
            router: router.clone(),
            house: house.clone(),
            peer,
            _room: room,
        };
        house.connections.spawn(connection.run(stream));
    }
}

struct Connection {
    acceptor: Option<TlsAcceptor>,
    router: Router,
    house: House,
    peer: SocketAddr,
    _room: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        self.house.metrics.connections.inc();
        let abort = self.house.abort.clone();
        tokio::select! {
            () = abort.cancelled() => {}
            result = self.greet(stream) => if let Err(error) = result {
                tracing::debug!(%error, peer = %self.peer, "a connection broke");
            }
        }
        self.house.metrics.connections.dec();
    }

    async fn greet(&self, stream: TcpStream) -> io::Result<()> {
        let Some(acceptor) = &self.acceptor else {
            return self.talk(stream).await;
        };
        let greeting = tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream));
        let stream = greeting.await.map_err(|_| io::ErrorKind::TimedOut)??;
        self.talk(stream).await
    }

    async fn talk(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
            let mut request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(ConnectInfo(self.peer));
            self.router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_buf_size(MAX_HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            result = connection.as_mut() => return result.map_err(io::Error::other),
            () = self.house.stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        connection.await.map_err(io::Error::other)
    }
}
