//! One connection: its requests one after the other, and what ends it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONNECTION, EXPECT, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::body::BodyReader;
use super::connections::{ConnectionStage, ConnectionWatch};
use super::unread::UnreadWatch;
use super::{
    BodyPermit, BrokenConnection, ConnectionLoss, Handler, Reply, ReplyBody, Request,
    TrafficBudget, WireBody, large,
};
use crate::WireLimits;
use crate::slow_client::SlowClientGuard;

/// A connection, and everything its requests need.
pub(super) struct Connection<H> {
    pub(super) peer: SocketAddr,
    pub(super) watch: Arc<ConnectionWatch>,
    pub(super) handler: Arc<H>,
    pub(super) limits: Arc<WireLimits>,
    pub(super) traffic: Arc<TrafficBudget>,
    /// What was written, and may turn out to be unread.
    pub(super) unread: Arc<UnreadWatch>,
}

/// How long a client that wanted the connection closed may take to read its last reply before nobody waits to see it.
const LAST_READ: Duration = Duration::from_secs(2);
/// How long the word that a client was gone may come after its goodbye, when something was written between the two.
const LATE_RESET: Duration = Duration::from_millis(500);

impl<H: Handler> Connection<H> {
    /// Answers requests until one side has enough, or this connection has to make way.
    pub(super) async fn serve(&self, stream: TcpStream) {
        // Small events must not wait for the acknowledgement of the ones before.
        let _ = stream.set_nodelay(true);
        let stream = HeardStream {
            inner: SlowClientGuard::new(stream, self.limits.idle_timeout),
            watch: Arc::clone(&self.watch),
            unread: Arc::clone(&self.unread),
            head: Vec::new(),
            has_ended: false,
            last_write: Instant::now(),
        };
        let service = service_fn(|request| {
            Box::pin(async { Ok::<_, Infallible>(self.answer(request).await) })
        });
        let mut serving = hyper::server::conn::http1::Builder::new()
            // How long a head may take is watched here: between two requests a client may rest.
            .header_read_timeout(None)
            .max_headers(self.limits.max_headers)
            .max_buf_size(self.limits.max_header_bytes.max(8192))
            .serve_connection(TokioIo::new(stream), service);
        let served = tokio::select! {
            served = poll_fn(|context| serving.poll_without_shutdown(context)) => Ok(served),
            () = self.watch.evicted() => Err("it made way for another connection"),
            () = self.watch.overdue(&self.limits) => Err("the headers did not arrive in time"),
        };
        // What hyper holds of a request that was being answered goes with it.
        let stage = self.watch.stage();
        let mut stream = serving.into_parts().io.into_inner();
        let broken = match served {
            Ok(Ok(())) => {
                let closing = last_read(&mut stream);
                tokio::select! {
                    _ = tokio::time::timeout(LAST_READ, closing) => {}
                    () = self.watch.evicted() => {}
                }
                None
            }
            Ok(Err(error)) => Some(BrokenConnection {
                loss: loss(&error, stage, stream.brings_message()),
                reason: error.to_string(),
            }),
            Err(reason) => Some(BrokenConnection {
                loss: match stage {
                    ConnectionStage::Head if !stream.brings_message() => ConnectionLoss::Nothing,
                    ConnectionStage::Head | ConnectionStage::Body => ConnectionLoss::CutOff,
                    ConnectionStage::Silent | ConnectionStage::Idle | ConnectionStage::Busy => {
                        ConnectionLoss::Reply
                    }
                },
                reason: reason.to_owned(),
            }),
        };
        if self.unread.has_any() && stream.has_ended && !self.unread.has_failed() {
            tokio::select! {
                () = stream.late_reset() => {}
                () = self.watch.evicted() => {}
            }
        }
        self.unread.settle();
        // A request may be refused that came together with the one before, when nothing seemed to be under way.
        if let Some(broken) = broken
            && (stage.is_under_way() || broken.loss != ConnectionLoss::Reply)
        {
            self.handler.broken(self.peer, &broken);
        }
    }

    async fn answer(&self, request: hyper::Request<Incoming>) -> hyper::Response<WireBody> {
        self.watch.enter(ConnectionStage::Busy);
        // Who asks again has read the reply before.
        self.unread.asked_again();
        let (parts, body) = request.into_parts();
        if let Some(name) = repeated(&parts.headers) {
            let reason = format!("a request has two `{name}` headers");
            let loss = if body.is_end_stream() {
                ConnectionLoss::Nothing
            } else {
                ConnectionLoss::CutOff
            };
            let broken = BrokenConnection {
                loss,
                reason: reason.clone(),
            };
            self.handler.broken(self.peer, &broken);
            let refusal = Reply::empty(StatusCode::BAD_REQUEST)
                .with_header("connection", "close")
                .with_body(ReplyBody::Whole(reason.into()));
            return self.respond(refusal, BodyPermit::default());
        }
        let lane = self.handler.lane(&parts.headers, self.peer);
        let reader = BodyReader {
            limits: &self.limits,
            traffic: &self.traffic,
            watch: &self.watch,
            lane: &lane,
        };
        let awaits_leave = parts.headers.contains_key(EXPECT);
        let (body, permit) = reader.read(body, awaits_leave).await;
        self.watch.enter(ConnectionStage::Busy);
        let length = body.as_ref().map_or(0, bytes::Bytes::len);
        let is_lost = body.is_err();
        let request = Request {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            headers: parts.headers,
            body,
            peer: self.peer,
            permit: permit.clone(),
        };
        let mut reply = if length > self.limits.large_message_bytes {
            let handler = Arc::clone(&self.handler);
            let answering = async move { handler.handle(request).await };
            let answered = large::run(&self.traffic.work, &lane, length as u64, answering).await;
            answered.unwrap_or_else(Reply::cut)
        } else {
            self.handler.handle(request).await
        };
        if is_lost {
            // What is left of the body would be taken for the next request.
            reply
                .headers
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.respond(reply, permit)
    }

    fn respond(&self, reply: Reply, permit: BodyPermit) -> hyper::Response<WireBody> {
        let at_end = match &reply.body {
            // Hyper may never ask for the body if it is empty.
            ReplyBody::Whole(_) => {
                self.unread.writes(reply.unread);
                None
            }
            ReplyBody::Stream(_) => Some(reply.unread),
            // Nobody ever reads it.
            ReplyBody::Cut => None,
        };
        let mut response = hyper::Response::new(WireBody {
            body: Some(reply.body),
            at_end,
            unread: Arc::clone(&self.unread),
            _guard: reply.guard,
            _held: (permit, AnswerEnd(Arc::clone(&self.watch))),
        });
        *response.status_mut() = reply.status;
        *response.headers_mut() = reply.headers;
        response
    }
}

/// What is lost with a connection that ended with this error while it did this.
fn loss(error: &hyper::Error, stage: ConnectionStage, brings_message: bool) -> ConnectionLoss {
    if error.is_parse() {
        return match (brings_message, error.is_parse_too_large()) {
            (false, _) => ConnectionLoss::Nothing,
            (true, true) => ConnectionLoss::TooLong,
            (true, false) => ConnectionLoss::CutOff,
        };
    }
    match stage {
        ConnectionStage::Body => ConnectionLoss::CutOff,
        ConnectionStage::Head if brings_message => ConnectionLoss::CutOff,
        ConnectionStage::Head
        | ConnectionStage::Silent
        | ConnectionStage::Idle
        | ConnectionStage::Busy => ConnectionLoss::Reply,
    }
}

/// The header among those that decide who may ask of which there are two, so that one reader may believe the first and
/// another the second.
fn repeated(headers: &HeaderMap) -> Option<http::HeaderName> {
    let is_repeated = |name: &http::HeaderName| headers.get_all(name).iter().nth(1).is_some();
    [HOST, ORIGIN].into_iter().find(is_repeated)
}

/// Tells that an answer was sent, or never will be, when it is dropped.
pub(super) struct AnswerEnd(Arc<ConnectionWatch>);

impl Drop for AnswerEnd {
    fn drop(&mut self) {
        self.0.enter(ConnectionStage::Idle);
    }
}

/// Ends our side of a connection and waits for the other to end its own: a client that had not read everything resets it.
async fn last_read(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut rest = [0; 1024];
    while let Ok(1..) = stream.read(&mut rest).await {}
}

/// A stream that tells when something is read from it, and when the other side has thrown away what was sent.
struct HeardStream {
    inner: SlowClientGuard<TcpStream>,
    watch: Arc<ConnectionWatch>,
    unread: Arc<UnreadWatch>,
    /// How the last request began that came when none was under way: its method, and what follows.
    head: Vec<u8>,
    /// The other side sends nothing more.
    has_ended: bool,
    last_write: Instant,
}

/// Bytes that say which method a request has.
const METHOD_BYTES: usize = 24;

impl HeardStream {
    /// Keeps how a request begins.
    fn note_head(&mut self, bytes: &[u8]) {
        if !self.watch.stage().is_under_way() {
            self.head.clear();
        }
        if self.head.is_empty() {
            // Empty lines before a request are passed over.
            self.head.extend(bytes.trim_ascii_start());
        } else if self.head.len() < METHOD_BYTES {
            self.head.extend(bytes);
        }
        self.head.truncate(METHOD_BYTES);
    }

    /// Whether what came last begins as a request that has a body: it is no other protocol, and nobody asks for a page.
    fn brings_message(&self) -> bool {
        let mut words = self.head.splitn(2, |byte| *byte == b' ');
        match (words.next(), words.next()) {
            (Some(method), Some(_)) => {
                !matches!(method, b"" | b"GET" | b"HEAD" | b"OPTIONS")
                    && method.iter().all(u8::is_ascii_alphabetic)
            }
            _ => false,
        }
    }

    /// Looks at what came of writing.
    fn note<T>(&mut self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.unread.set_blocked(polled.is_pending());
        self.watch.set_blocked(polled.is_pending());
        self.last_write = Instant::now();
        if let Poll::Ready(Err(error)) = &polled {
            self.unread.set_failed();
            self.note_reset(error);
        }
        polled
    }

    /// Looks at an error of the connection. After a goodbye of the other side the system calls a reset a broken pipe.
    fn note_reset(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionReset && !self.has_ended {
            self.unread.set_discarded();
        }
    }

    /// Waits for the word that what was written came after the other side had closed the connection.
    async fn late_reset(&self) {
        let stream = self.inner.get_ref();
        let end = self.last_write + LATE_RESET;
        let ready = tokio::time::timeout_at(end, stream.ready(Interest::ERROR)).await;
        if matches!(stream.take_error(), Ok(Some(_)) | Err(_)) || matches!(ready, Ok(Err(_))) {
            self.unread.set_failed();
        }
    }
}

impl AsyncRead for HeardStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.note_head(&buffer.filled()[before..]);
            self.watch.heard();
        } else if matches!(polled, Poll::Ready(Ok(()))) && buffer.remaining() > 0 {
            self.has_ended = true;
        }
        if let Poll::Ready(Err(error)) = &polled
            && let io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted = error.kind()
        {
            self.unread.set_failed();
            self.note_reset(error);
        }
        polled
    }
}

/// A server that ends may not have looked at what became of its last answer.
impl Drop for HeardStream {
    fn drop(&mut self) {
        if let Ok(Some(error)) = self.inner.get_ref().take_error() {
            self.note_reset(&error);
        }
    }
}

impl AsyncWrite for HeardStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.note(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, pieces);
        self.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
