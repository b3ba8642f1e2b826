//! How replies leave: at once and whole, or as the phase's delivery asks.

use std::time::Duration;

use proofhouse_wire::server::{self, ReaderGone, Reply, ReplyBody, StreamWriter};
use proofhouse_wire::{CancellationToken, StatusCode};

use crate::actor::Advance;
use crate::delivery::DeliveryModifiers;
use crate::delivery_note::DeliveryNote;

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
        let place = if delivery.abrupt_close {
            TextPlace::Cut
        } else {
            TextPlace::Last
        };
        let nothing = DeliveryNote::default();
        let _ = write(&writer, &delivery, &text, &nothing, place, &over).await;
        if delivery.abrupt_close {
            writer.cut().await;
        }
        drop(advance);
    };
    (reply, Some(Box::pin(rest)))
}

/// Where a text stands in its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPlace {
    /// More follows.
    Middle,
    /// The body ends with it.
    Last,
    /// Only half of it is written, and then the connection is cut.
    Cut,
}

/// Writes a text, slowly if asked for. What it carries is handed over with the end of it.
pub(super) async fn write(
    writer: &StreamWriter,
    delivery: &DeliveryModifiers,
    text: &str,
    note: &DeliveryNote,
    place: TextPlace,
    over: &CancellationToken,
) -> Result<(), ReaderGone> {
    let bytes = text.as_bytes();
    let mut rest = match place {
        TextPlace::Middle | TextPlace::Last => bytes,
        TextPlace::Cut => &bytes[..bytes.len() / 2],
    };
    let Some(slow) = delivery.slow_stream else {
        return write_end(writer, rest, note, place).await;
    };
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
    write_end(writer, rest, note, place).await
}

async fn write_end(
    writer: &StreamWriter,
    bytes: &[u8],
    note: &DeliveryNote,
    place: TextPlace,
) -> Result<(), ReaderGone> {
    let bytes = bytes.to_vec();
    match place {
        TextPlace::Middle => writer.write_watched(bytes, note.handed_over()).await,
        TextPlace::Last => writer.finish(bytes, note.handed_over()).await,
        TextPlace::Cut => writer.write(bytes).await,
    }
}
