//! The body of a request, of which its connection knows whether it still comes: whoever sends it too slowly makes way for others.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio_util::sync::WaitForCancellationFutureOwned;

use proofhouse_wire::connection_limiter::ConnectionState;

/// The rest of a body is not waited for: others need its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body came too slowly, and others need the connection")]
pub(crate) struct MadeWay;

/// A body that comes over a connection.
pub(crate) struct ReceivedBody<B> {
    body: B,
    state: Arc<ConnectionState>,
    /// Until the connection has to make way; it is there once the body was waited for.
    eviction: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl<B> ReceivedBody<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    /// The body of a request of this connection.
    pub(crate) fn of(body: B, state: &Arc<ConnectionState>) -> axum::body::Body {
        if body.is_end_stream() {
            return axum::body::Body::empty();
        }
        state.note_receiving(true);
        axum::body::Body::new(Self {
            body,
            state: Arc::clone(state),
            eviction: None,
        })
    }
}

impl<B> Drop for ReceivedBody<B> {
    fn drop(&mut self) {
        self.state.note_receiving(false);
    }
}

impl<B> Body for ReceivedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            if frame.is_none() || this.body.is_end_stream() {
                this.state.note_receiving(false);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let state = &this.state;
        let eviction = this
            .eviction
            .get_or_insert_with(|| Box::pin(state.eviction()));
        eviction
            .as_mut()
            .poll(context)
            .map(|()| Some(Err(MadeWay.into())))
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
    use std::time::Duration;

    use http::HeaderMap;
    use http_body_util::StreamBody;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::api::whole;
    use proofhouse_wire::connection_limiter::{
        ActiveRequest, Admission, ConnectionLimiter, ConnectionLimits,
    };

    type Piece = Result<Frame<Bytes>, BoxError>;

    /// A body of the pieces that are sent to it, on this connection.
    fn body_on(state: &Arc<ConnectionState>) -> (mpsc::Sender<Piece>, axum::body::Body) {
        let (sender, mut pieces) = mpsc::channel(1);
        let pieces = futures_util::stream::poll_fn(move |context| pieces.poll_recv(context));
        (sender, ReceivedBody::of(StreamBody::new(pieces), state))
    }

    /// Whoever reads a body that does not come is told when the connection has to make way, and answers so.
    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for_when_others_need_the_room() {
        let limits = ConnectionLimits { all: 1, of_peer: 1 };
        let limiter = ConnectionLimiter::new(limits, Duration::ZERO);
        let admit = || {
            let address = "192.0.2.1".parse().unwrap();
            match limiter.admit(address, CancellationToken::new()) {
                Admission::Free(permit) | Admission::Evicted(permit) => Some(permit),
                Admission::Full => None,
            }
        };
        let first = admit().unwrap();
        let _request = ActiveRequest::at(&first.state);
        let (sender, body) = body_on(&first.state);
        sender.send(Ok(Frame::data("half".into()))).await.unwrap();
        let headers = HeaderMap::new();
        let reading = whole(&headers, body, 100);
        let making_room = async {
            // The first piece was taken.
            let _free = sender.reserve().await.unwrap();
            assert!(admit().is_some());
        };
        let (read, ()) = tokio::join!(reading, making_room);
        let problem = read.unwrap_err();
        assert_eq!(problem.status, 503);
        assert!(problem.detail.contains("too slowly"), "{problem:?}");
        // A body that has come, or that nobody reads, leaves the connection as it was.
        let second = admit().unwrap();
        let _request = ActiveRequest::at(&second.state);
        drop(body_on(&second.state));
        assert!(admit().is_none());
    }
}
