//! An HTTP server for drivers: whole requests in, whole or streamed replies out.

mod body;
mod connection;
mod connections;
mod fair_gate;
mod large;
mod traffic;
mod unread;

use std::any::Any;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::connection::Connection;
use self::connections::ConnectionSeats;
use self::unread::UnreadWatch;
use crate::WireLimits;

pub use self::fair_gate::RequestLane;
pub use self::traffic::{BodyPermit, TrafficBudget};
pub use self::unread::UnreadHook;

/// Pieces of a stream that wait for a slow reader.
const STREAM_QUEUE: usize = 64;

/// A request that arrived.
#[derive(Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path, as it was sent.
    pub path: String,
    /// What follows the question mark.
    pub query: Option<String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, or why there is none.
    pub body: Result<Bytes, BodyProblem>,
    /// Who sent it.
    pub peer: SocketAddr,
    /// The room that the body takes. It is given back once the answer was sent; who keeps the body for longer keeps a
    /// copy of this.
    pub permit: BodyPermit,
}

impl Request {
    /// A header's text, if it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Why a body could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyProblem {
    /// It is larger than a message may be.
    #[error("the body has more than {limit} bytes")]
    TooLarge {
        /// The most bytes it may have.
        limit: usize,
    },
    /// It did not arrive in time.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// Others hold so much that it could not be read.
    #[error("there is no room for the body: too many large ones are under way")]
    NoRoom,
    /// The connection broke.
    #[error("the body broke off: {0}")]
    Broken(String),
}

impl BodyProblem {
    /// The status to answer with.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// What a server answers.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: ReplyBody,
    /// Dropped once the reply was written, or could not be.
    pub guard: Guard,
    /// Called when it turns out that the client never read it.
    pub unread: UnreadHook,
}

/// Something that waits for a [`Reply`] to be on its way, and happens when it is dropped.
#[derive(Default)]
pub struct Guard(Option<Box<dyn Any + Send>>);

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Guard").field(&self.0.is_some()).finish()
    }
}

/// The body of a [`Reply`].
#[derive(Debug)]
pub enum ReplyBody {
    /// All of it.
    Whole(Bytes),
    /// Pieces, as a [`StreamWriter`] sends them.
    Stream(StreamBody),
    /// None: the connection is cut.
    Cut,
}

impl Reply {
    /// A reply without a body.
    #[must_use]
    pub fn empty(status: StatusCode) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            body: ReplyBody::Whole(Bytes::new()),
            guard: Guard::default(),
            unread: UnreadHook::default(),
        }
    }

    /// A reply of JSON that is written already.
    #[must_use]
    pub fn json(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self::empty(status)
            .with_header("content-type", "application/json")
            .with_body(ReplyBody::Whole(text.into()))
    }

    /// A stream of server-sent events, and the end to write it from.
    #[must_use]
    pub fn events() -> (Self, StreamWriter) {
        let (writer, body) = stream();
        let reply = Self::empty(StatusCode::OK)
            .with_header("content-type", "text/event-stream")
            .with_header("cache-control", "no-store")
            .with_body(ReplyBody::Stream(body));
        (reply, writer)
    }

    /// A reply that cuts the connection instead.
    #[must_use]
    pub fn cut() -> Self {
        Self::empty(StatusCode::OK).with_body(ReplyBody::Cut)
    }

    /// With a header; one that HTTP does not allow is left out.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            self.headers.insert(name, value);
        }
        self
    }

    /// With something that is dropped once the reply was written, or could not be: what must not
    /// overtake the reply is held in it.
    #[must_use]
    pub fn with_guard(mut self, guard: impl Any + Send) -> Self {
        self.guard = Guard(Some(Box::new(guard)));
        self
    }

    /// With something to do when it turns out that the client never read the reply: it closed the connection before it
    /// had taken all bytes.
    #[must_use]
    pub fn if_unread(mut self, then: impl FnOnce() + Send + 'static) -> Self {
        self.unread = UnreadHook::new(then);
        self
    }

    /// The same, with a hook that is there already.
    #[must_use]
    pub fn with_unread(mut self, unread: UnreadHook) -> Self {
        self.unread = unread;
        self
    }

    /// With a body.
    #[must_use]
    pub fn with_body(mut self, body: ReplyBody) -> Self {
        self.body = body;
        self
    }
}

/// A body that is written piece by piece.
#[derive(Debug)]
pub struct StreamBody {
    pieces: mpsc::Receiver<BodyPiece>,
    /// The connection is to be cut as soon as what was written before is sent.
    cutting: bool,
}

#[derive(Debug)]
enum BodyPiece {
    Data(Bytes, UnreadHook),
    /// The end of the stream. It is written together with its end, so that who has read it has read everything.
    Last(Bytes, UnreadHook),
    Cut,
}

/// Writes a [`StreamBody`]; the stream ends when the last writer is gone.
#[derive(Debug, Clone)]
pub struct StreamWriter(mpsc::Sender<BodyPiece>);

/// The reader of a stream is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reader of the stream is gone")]
pub struct ReaderGone;

/// A body, and the end to write it from.
#[must_use]
pub fn stream() -> (StreamWriter, StreamBody) {
    let (sender, receiver) = mpsc::channel(STREAM_QUEUE);
    let body = StreamBody {
        pieces: receiver,
        cutting: false,
    };
    (StreamWriter(sender), body)
}

impl StreamWriter {
    /// Writes a piece, waiting for a slow reader.
    ///
    /// # Errors
    ///
    /// Returns an error when the reader is gone.
    pub async fn write(&self, piece: impl Into<Bytes>) -> Result<(), ReaderGone> {
        self.write_watched(piece, UnreadHook::default()).await
    }

    /// Writes a piece, with something to do when it turns out that the reader never read it.
    ///
    /// # Errors
    ///
    /// Returns an error when the reader is gone; the hook has happened then.
    pub async fn write_watched(
        &self,
        piece: impl Into<Bytes>,
        unread: UnreadHook,
    ) -> Result<(), ReaderGone> {
        let piece = BodyPiece::Data(piece.into(), unread);
        self.0.send(piece).await.map_err(|_| ReaderGone)
    }

    /// Writes the last piece: the stream ends with it, whoever else could write.
    ///
    /// # Errors
    ///
    /// Returns an error when the reader is gone; the hook has happened then.
    pub async fn finish(
        &self,
        piece: impl Into<Bytes>,
        unread: UnreadHook,
    ) -> Result<(), ReaderGone> {
        let piece = BodyPiece::Last(piece.into(), unread);
        self.0.send(piece).await.map_err(|_| ReaderGone)
    }

    /// Writes a piece if there is room for it.
    ///
    /// # Errors
    ///
    /// Returns an error when the reader is gone or too slow.
    pub fn try_write(&self, piece: impl Into<Bytes>) -> Result<(), ReaderGone> {
        self.try_write_watched(piece, UnreadHook::default())
    }

    /// The same, with something to do when it turns out that the reader never read it.
    ///
    /// # Errors
    ///
    /// Returns an error when the reader is gone or too slow; the hook has happened then.
    pub fn try_write_watched(
        &self,
        piece: impl Into<Bytes>,
        unread: UnreadHook,
    ) -> Result<(), ReaderGone> {
        let piece = BodyPiece::Data(piece.into(), unread);
        self.0.try_send(piece).map_err(|_| ReaderGone)
    }

    /// Cuts the connection in the middle of the stream.
    pub async fn cut(self) {
        let _ = self.0.send(BodyPiece::Cut).await;
    }

    /// Waits until the reader is gone.
    pub async fn closed(&self) {
        self.0.closed().await;
    }

    /// Whether the reader is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// What answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request.
    fn handle(&self, request: Request) -> impl Future<Output = Reply> + Send;

    /// Who a request belongs to: where there is not enough room for everybody, each has a share. By default every
    /// connection is on its own.
    fn lane(&self, headers: &HeaderMap, peer: SocketAddr) -> RequestLane {
        let _ = headers;
        RequestLane::new(peer.to_string())
    }

    /// Hears of a connection that did not speak HTTP or broke in the middle of something. One that is closed while
    /// nothing is under way is not broken.
    fn broken(&self, peer: SocketAddr, broken: &BrokenConnection) {
        let _ = (peer, broken);
    }
}

/// How a connection broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenConnection {
    /// What was lost with it.
    pub loss: ConnectionLoss,
    /// Why it broke, for people.
    pub reason: String,
}

/// What is lost with a connection that breaks. A request that [`Handler::handle`] has heard of is not lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionLoss {
    /// A request whose head is larger than it may be.
    TooLong,
    /// A request that was refused, or broke off, before all of it was read.
    CutOff,
    /// A part of a reply, or the beginning of a request that has no body: the client went, or was left on purpose.
    Reply,
    /// Nothing: what came is no request, or one that has no body.
    Nothing,
}

/// A server that is bound and not yet serving: connections wait until it does.
#[derive(Debug)]
pub struct BoundServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl BoundServer {
    /// Binds to an address; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, such as that the port is in use.
    pub async fn new(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until it is cancelled; then every connection is closed.
    pub async fn serve<H: Handler>(
        self,
        handler: Arc<H>,
        limits: WireLimits,
        cancelled: CancellationToken,
    ) {
        let traffic = TrafficBudget::new(&limits);
        self.serve_within(handler, limits, traffic, cancelled).await;
    }

    /// The same with a budget that it has in common with other servers.
    pub async fn serve_within<H: Handler>(
        self,
        handler: Arc<H>,
        limits: WireLimits,
        traffic: Arc<TrafficBudget>,
        cancelled: CancellationToken,
    ) {
        let seats = ConnectionSeats::new(&limits);
        let limits = Arc::new(limits);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = cancelled.cancelled() => break,
                accepted = self.listener.accept() => accepted,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            };
            let Ok((stream, peer)) = accepted else {
                // Out of file descriptors, most likely: others must finish first.
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                continue;
            };
            let seat = tokio::select! {
                () = cancelled.cancelled() => break,
                seat = seats.admit() => seat,
            };
            let connection = Connection {
                peer,
                watch: Arc::clone(&seat.0),
                handler: Arc::clone(&handler),
                limits: Arc::clone(&limits),
                traffic: Arc::clone(&traffic),
                unread: Arc::default(),
            };
            connections.spawn(async move {
                connection.serve(stream).await;
                drop(seat);
            });
        }
        connections.shutdown().await;
    }
}

/// A [`Reply`]'s body as hyper asks for it.
struct WireBody {
    body: Option<ReplyBody>,
    /// What to do if the end of the body is never read.
    at_end: Option<UnreadHook>,
    unread: Arc<UnreadWatch>,
    _guard: Guard,
    /// What the request holds until it is answered.
    _held: (BodyPermit, connection::AnswerEnd),
}

impl WireBody {
    /// All of the body is on its way.
    fn ended(&mut self) {
        self.body = None;
        if let Some(unread) = self.at_end.take() {
            self.unread.writes_piece(unread);
        }
    }
}

/// Makes hyper close the connection.
#[derive(Debug, thiserror::Error)]
#[error("cut on purpose")]
struct CutOnPurpose;

impl HttpBody for WireBody {
    type Data = Bytes;
    type Error = CutOnPurpose;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOnPurpose>>> {
        match &mut self.body {
            Some(ReplyBody::Stream(stream)) if stream.cutting => {
                Poll::Ready(Some(Err(CutOnPurpose)))
            }
            Some(ReplyBody::Stream(stream)) => match stream.pieces.poll_recv(context) {
                Poll::Ready(Some(BodyPiece::Data(data, unread))) => {
                    self.unread.writes_piece(unread);
                    Poll::Ready(Some(Ok(Frame::data(data))))
                }
                Poll::Ready(Some(BodyPiece::Last(data, unread))) => {
                    self.unread.writes_piece(unread);
                    self.ended();
                    Poll::Ready(Some(Ok(Frame::data(data))))
                }
                Poll::Ready(Some(BodyPiece::Cut)) => {
                    // An error now would take along what is buffered; hyper flushes while it waits.
                    stream.cutting = true;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                Poll::Ready(None) => {
                    self.ended();
                    Poll::Ready(None)
                }
                Poll::Pending => Poll::Pending,
            },
            _ => match self.body.take() {
                Some(ReplyBody::Whole(bytes)) if !bytes.is_empty() => {
                    Poll::Ready(Some(Ok(Frame::data(bytes))))
                }
                Some(ReplyBody::Cut) => Poll::Ready(Some(Err(CutOnPurpose))),
                _ => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            None => true,
            Some(ReplyBody::Whole(bytes)) => bytes.is_empty(),
            Some(ReplyBody::Stream(_) | ReplyBody::Cut) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            None => SizeHint::with_exact(0),
            Some(ReplyBody::Whole(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            Some(ReplyBody::Stream(_) | ReplyBody::Cut) => SizeHint::default(),
        }
    }
}
