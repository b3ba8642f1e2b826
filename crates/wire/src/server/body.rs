//! Reads the body of a request: never more than there is room for, and not before there is.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, interval, timeout};

use super::connections::{ConnectionStage, ConnectionWatch};
use super::fair_gate::{GatePermit, RequestLane};
use super::{BodyPermit, BodyProblem, TrafficBudget};
use crate::WireLimits;

/// Where a large body is read while others wait for room, one of the largest size must come in this part of the time
/// that it has otherwise.
const HURRY: u32 = 10;

/// Reads bodies of one connection.
pub(super) struct BodyReader<'c> {
    pub(super) limits: &'c WireLimits,
    pub(super) traffic: &'c TrafficBudget,
    pub(super) watch: &'c ConnectionWatch,
    pub(super) lane: &'c RequestLane,
}

impl BodyReader<'_> {
    /// Reads all of it. `awaits_leave` tells that the client sends nothing before it is told to.
    pub(super) async fn read(
        &self,
        body: Incoming,
        awaits_leave: bool,
    ) -> (Result<Bytes, BodyProblem>, BodyPermit) {
        if body.is_end_stream() {
            return (Ok(Bytes::new()), BodyPermit::default());
        }
        let limit = self.limits.max_message_bytes;
        let announced = body.size_hint().exact();
        if announced.is_some_and(|length| length > limit as u64) {
            if !awaits_leave {
                self.discard(body).await;
            }
            return (Err(BodyProblem::TooLarge { limit }), BodyPermit::default());
        }
        let announced = announced.and_then(|length| usize::try_from(length).ok());
        match self.collect(body, announced).await {
            Ok((bytes, permit)) => (Ok(bytes), BodyPermit::new(permit)),
            Err(problem) => (Err(problem), BodyPermit::default()),
        }
    }

    async fn collect(
        &self,
        mut body: Incoming,
        announced: Option<usize>,
    ) -> Result<(Bytes, Option<GatePermit>), BodyProblem> {
        let (limit, large) = (
            self.limits.max_message_bytes,
            self.limits.large_message_bytes,
        );
        let mut permit = match announced {
            Some(length) if length > large => Some(self.wait_for_room(length).await?),
            _ => None,
        };
        let mut bytes = BytesMut::with_capacity(announced.unwrap_or_default().min(large));
        self.watch.enter(ConnectionStage::Body);
        let mut began = Instant::now();
        let mut last_piece = began;
        let mut look = interval(self.limits.stall_timeout.max(Duration::from_millis(1)));
        loop {
            let elapsed = began.elapsed();
            if elapsed >= self.limits.body_timeout
                || (permit.is_some()
                    && self.is_late(bytes.len(), elapsed, last_piece.elapsed())
                    && self.traffic.bytes.is_contended())
            {
                return Err(BodyProblem::TooSlow);
            }
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = tokio::time::sleep(self.limits.body_timeout.saturating_sub(elapsed)) => continue,
                _ = look.tick() => continue,
            };
            let piece = match frame {
                None => break,
                Some(Err(error)) => return Err(BodyProblem::Broken(error.to_string())),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => piece,
                    Err(_) => continue,
                },
            };
            let length = bytes.len() + piece.len();
            if length > limit {
                return Err(BodyProblem::TooLarge { limit });
            }
            if length > large && permit.is_none() {
                // Nobody knows how long it will be, so there must be room for the longest.
                let waited = Instant::now();
                permit = Some(self.wait_for_room(limit).await?);
                began += waited.elapsed();
            }
            bytes.extend_from_slice(&piece);
            last_piece = Instant::now();
            self.watch.enter(ConnectionStage::Body);
        }
        self.watch.enter(ConnectionStage::Busy);
        if let Some(permit) = &mut permit {
            permit.shrink_to(bytes.len());
        }
        Ok((bytes.freeze(), permit))
    }

    async fn wait_for_room(&self, length: usize) -> Result<GatePermit, BodyProblem> {
        self.watch.enter(ConnectionStage::Busy);
        let entering = self.traffic.bytes.enter(self.lane, length, length as u64);
        let entered = timeout(self.limits.body_timeout, entering).await;
        self.watch.enter(ConnectionStage::Body);
        entered.map_err(|_| BodyProblem::NoRoom)
    }

    /// Whether a body comes too slowly to be waited for while others wait for the room that it takes: it stands still,
    /// or it trickles.
    fn is_late(&self, received: usize, elapsed: Duration, silent: Duration) -> bool {
        let stall = self.limits.stall_timeout;
        let hurry = (self.limits.body_timeout / HURRY).as_secs_f64();
        let due = elapsed.saturating_sub(stall).as_secs_f64() / hurry.max(1e-3);
        silent >= stall || (received as f64) < self.limits.max_message_bytes as f64 * due
    }

    /// Reads a body that is too large, as much of it as a whole one may have, and keeps nothing: who is still
    /// sending when the connection is closed may never read the answer.
    async fn discard(&self, mut body: Incoming) {
        let reading = async {
            let mut rest = self.limits.max_message_bytes;
            while let Some(Ok(frame)) = body.frame().await {
                let length = frame.data_ref().map_or(0, Bytes::len);
                rest = rest.saturating_sub(length);
                if rest == 0 {
                    return;
                }
                self.watch.enter(ConnectionStage::Body);
            }
        };
        self.watch.enter(ConnectionStage::Body);
        let _ = timeout(self.limits.body_timeout, reading).await;
    }
}
