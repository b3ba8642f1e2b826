//! How replies leave: at once and whole, or as the phase's delivery asks.

use std::time::Duration;

use proofhouse_wire::server::{self, ReaderGone, Reply, ReplyBody, StreamWriter};
use proofhouse_wire::{CancellationToken, StatusCode};

use crate::actor::Advance;
use crate::delivery::DeliveryModifiers;

/// The size and number of the pieces of a slow reply.
const PIECE_BYTES: usize = 16;
const MAX_PIECES: usize = 1_000;

/// Waits as the phase asks before a reply; `false` when the run is over.
pub(super) async fn delay(delivery: &DeliveryModifiers, over: &CancellationToken) -> bool {
    match delivery.delay {
        Some(delay) => pause(delay, over).await,
        None => true,
    }
}

async fn pause(duration: Duration, over: &CancellationToken) -> bool {
    tokio::select! {
        () = over.cancelled() => false,
        () = tokio::time::sleep(duration) => true,
    }
}

/// Work that goes on after the reply began.
pub(super) type Rest = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// A reply of JSON, with what is left to do for it if it does not leave whole. The next phase
/// begins when it has left.
pub(super) fn json(
    delivery: &DeliveryModifiers,
    text: String,
    advance: Advance,
    over: &CancellationToken,
) -> (Reply, Option<Rest>) {
    let mut text = delivery.shape(text);
    if delivery.duplicate_ids {
        // The body is the only place there is for a second answer.
        text = format!("{text}\n{text}");
    }
    if delivery.slow_stream.is_none() && !delivery.abrupt_close {
        return (Reply::json(StatusCode::OK, text).with_guard(advance), None);
    }
    let (writer, body) = server::stream();
    let reply = Reply::empty(StatusCode::OK)
        .with_header("content-type", "application/json")
        .with_body(ReplyBody::Stream(body));
    let (delivery, over) = (delivery.clone(), over.clone());
    let rest = async move {
        let _ = write(&writer, &delivery, &text, delivery.abrupt_close, &over).await;
        if delivery.abrupt_close {
            writer.cut().await;
        }
        drop(advance);
    };
    (reply, Some(Box::pin(rest)))
}

/// Writes a text, slowly if asked for, and only half of it when `half`.
pub(super) async fn write(
    writer: &StreamWriter,
    delivery: &DeliveryModifiers,
    text: &str,
    half: bool,
    over: &CancellationToken,
) -> Result<(), ReaderGone> {
    let bytes = text.as_bytes();
    let bytes = if half {
        &bytes[..bytes.len() / 2]
    } else {
        bytes
    };
    let Some(slow) = delivery.slow_stream else {
        return writer.write(bytes.to_vec()).await;
    };
    let mut rest = bytes;
    for _ in 0..MAX_PIECES {
        if rest.len() <= PIECE_BYTES {
            break;
        }
        let (piece, after) = rest.split_at(PIECE_BYTES);
        writer.write(piece.to_vec()).await?;
        rest = after;
        tokio::select! {
            () = writer.closed() => return Err(ReaderGone),
            ended = pause(slow, over) => if !ended { return Err(ReaderGone) },
        }
    }
    writer.write(rest.to_vec()).await
}
