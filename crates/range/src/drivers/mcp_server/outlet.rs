//! Where messages of a call go: an event stream or lines, written as the delivery of the phase says.

use std::sync::Arc;
use std::time::Duration;

use proofhouse_protocol::mcp::{McpLogLevel, McpNotification};
use proofhouse_protocol::rpc;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::server::StreamWriter;
use proofhouse_wire::sse::SseEvent;
use serde_json::json;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

use super::peer::McpPeer;
use crate::DeliveryModifiers;
use crate::delivery_note::DeliveryNote;

/// The size of the pieces of a slow reply, and the most there are.
const PIECE: usize = 16;
const MAX_PIECES: usize = 1_000;

/// Where messages go.
#[derive(Debug, Clone)]
pub(super) enum MessageOutlet {
    /// A stream of a session, which can be resumed.
    Stream { peer: Arc<McpPeer>, number: u64 },
    /// A stream that ends with its connection.
    Events(StreamWriter),
    /// Lines.
    Lines(Arc<StdoutLines>),
}

/// The reader is gone, or takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutletClosed;

/// Standard output, or what stands for it.
pub(super) struct StdoutLines {
    writer: Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>,
    /// Cancelled when nothing more can be written.
    pub(super) closed: CancellationToken,
    patience: Duration,
}

impl std::fmt::Debug for StdoutLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl StdoutLines {
    pub(super) fn new(
        writer: impl AsyncWrite + Send + Unpin + 'static,
        patience: Duration,
    ) -> Self {
        Self {
            writer: Mutex::new(Some(Box::new(writer))),
            closed: CancellationToken::new(),
            patience,
        }
    }

    /// Writes pieces, nothing of others between them, with a pause after each but the last.
    async fn write(
        &self,
        pieces: &[&[u8]],
        pause: Duration,
        close: bool,
    ) -> Result<(), OutletClosed> {
        let mut writer = self.writer.lock().await;
        let mut written = Err(OutletClosed);
        if let Some(writer) = &mut *writer {
            let writing = async {
                for (position, piece) in pieces.iter().enumerate() {
                    if position > 0 && !pause.is_zero() {
                        tokio::time::sleep(pause).await;
                    }
                    writer.write_all(piece).await.map_err(|_| OutletClosed)?;
                    writer.flush().await.map_err(|_| OutletClosed)?;
                }
                Ok(())
            };
            // A slow reply may take its time; a reader that does not read may not.
            let patience = self.patience + pause * u32::try_from(pieces.len()).unwrap_or(u32::MAX);
            written = tokio::time::timeout(patience, writing)
                .await
                .unwrap_or(Err(OutletClosed));
        }
        if close || written.is_err() {
            *writer = None;
            self.closed.cancel();
        }
        written
    }
}

impl MessageOutlet {
    /// Sends a message at once and whole. What it carries, it carries to whoever reads it.
    pub(super) async fn send(
        &self,
        data: &str,
        note: &DeliveryNote,
        patience: Duration,
    ) -> Result<(), OutletClosed> {
        let (frame, writer) = self.frame(data, note);
        self.write(&frame, writer, note, patience, StreamPlace::Middle)
            .await
    }

    /// Sends the last message, at once and whole.
    pub(super) async fn send_last(
        &self,
        data: &str,
        note: &DeliveryNote,
        patience: Duration,
    ) -> Result<(), OutletClosed> {
        let (frame, writer) = self.frame(data, note);
        self.write(&frame, writer, note, patience, StreamPlace::Last)
            .await
    }

    /// Sends a message that belongs to no call, without waiting for a slow reader of a stream: it
    /// must not hold up the others.
    pub(super) async fn tell(
        &self,
        data: &str,
        note: &DeliveryNote,
        patience: Duration,
    ) -> Result<(), OutletClosed> {
        let (frame, writer) = self.frame(data, note);
        match (self, writer) {
            (Self::Lines(_), writer) => {
                self.write(&frame, writer, note, patience, StreamPlace::Middle)
                    .await
            }
            (Self::Events(_), Some(writer)) => writer
                .try_write_watched(frame, note.handed_over())
                .map_err(|_| OutletClosed),
            (Self::Events(_), None) => Err(OutletClosed),
            // Nobody listens: the message is kept for when someone comes.
            (Self::Stream { .. }, None) => Ok(()),
            (Self::Stream { peer, number }, Some(writer)) => {
                let written = writer.try_write_watched(frame, note.handed_over());
                if written.is_err() {
                    peer.streams().missed(*number);
                }
                Ok(())
            }
        }
    }

    /// Sends a reply as the delivery says.
    pub(super) async fn reply(
        &self,
        data: &str,
        note: &DeliveryNote,
        delivery: &DeliveryModifiers,
        patience: Duration,
    ) -> Result<(), OutletClosed> {
        let nothing = DeliveryNote::default();
        for number in 0..delivery.notification_flood.unwrap_or(0) {
            self.send(&flood(number), &nothing, patience).await?;
        }
        if delivery.abrupt_close {
            // Half of a message carries nothing; the stream that is resumed has the whole one.
            let (frame, writer) = self.frame(data, note);
            return self.cut(&frame[..half(&frame)], writer, patience).await;
        }
        if delivery.duplicate_ids {
            let place = StreamPlace::Middle;
            self.reply_once(data, &nothing, delivery.slow_stream, patience, place)
                .await?;
        }
        let place = StreamPlace::Last;
        self.reply_once(data, note, delivery.slow_stream, patience, place)
            .await
    }

    async fn reply_once(
        &self,
        data: &str,
        note: &DeliveryNote,
        slow: Option<Duration>,
        patience: Duration,
        place: StreamPlace,
    ) -> Result<(), OutletClosed> {
        let (frame, writer) = self.frame(data, note);
        match slow {
            None => self.write(&frame, writer, note, patience, place).await,
            Some(pause) => {
                self.write_slowly(&frame, writer, note, pause, patience, place)
                    .await
            }
        }
    }

    /// Ends the response before there is a reply, where that can be.
    pub(super) fn detach(&self) {
        if let Self::Stream { peer, number } = self {
            peer.streams().detach(*number);
        }
    }

    /// There is nothing more to send.
    pub(super) fn end(&self) {
        if let Self::Stream { peer, number } = self {
            peer.streams().end(*number);
        }
    }

    /// Waits until the reader is gone, where that means that it does not want the reply.
    pub(super) async fn abandoned(&self) {
        match self {
            // A disconnect is not a cancel where a stream can be resumed.
            Self::Stream { .. } => std::future::pending().await,
            Self::Events(writer) => writer.closed().await,
            Self::Lines(lines) => lines.closed.cancelled().await,
        }
    }

    /// The message as it stands on the wire, and the stream that it is for.
    fn frame(&self, data: &str, note: &DeliveryNote) -> (String, Option<StreamWriter>) {
        match self {
            Self::Stream { peer, number } => peer.streams().push(*number, data, note),
            Self::Events(writer) => (SseEvent::data(data).encode(), Some(writer.clone())),
            Self::Lines(_) => (format!("{data}\n"), None),
        }
    }

    async fn write(
        &self,
        frame: &str,
        writer: Option<StreamWriter>,
        note: &DeliveryNote,
        patience: Duration,
        place: StreamPlace,
    ) -> Result<(), OutletClosed> {
        match self {
            Self::Lines(lines) => {
                let bytes = [frame.as_bytes()];
                lines.write(&bytes, Duration::ZERO, false).await?;
                note.handed_over().was_read();
                Ok(())
            }
            Self::Events(_) => match writer {
                Some(writer) => write(&writer, frame.as_bytes(), note, patience, place).await,
                None => Err(OutletClosed),
            },
            Self::Stream { peer, number } => {
                // Nobody listens: the message is kept for when someone comes back.
                let Some(writer) = writer else { return Ok(()) };
                let written = write(&writer, frame.as_bytes(), note, patience, place).await;
                if written.is_err() {
                    peer.streams().missed(*number);
                }
                Ok(())
            }
        }
    }

    async fn write_slowly(
        &self,
        frame: &str,
        writer: Option<StreamWriter>,
        note: &DeliveryNote,
        pause: Duration,
        patience: Duration,
        place: StreamPlace,
    ) -> Result<(), OutletClosed> {
        let pieces = pieces(frame.as_bytes());
        if let Self::Lines(lines) = self {
            lines.write(&pieces, pause, false).await?;
            note.handed_over().was_read();
            return Ok(());
        }
        let Some(writer) = writer else { return Ok(()) };
        write_pieces(&writer, &pieces, note, pause, patience, place).await
    }

    async fn cut(
        &self,
        part: &str,
        writer: Option<StreamWriter>,
        patience: Duration,
    ) -> Result<(), OutletClosed> {
        if let Self::Lines(lines) = self {
            return lines.write(&[part.as_bytes()], Duration::ZERO, true).await;
        }
        let Some(writer) = writer else { return Ok(()) };
        let nothing = DeliveryNote::default();
        let place = StreamPlace::Middle;
        write(&writer, part.as_bytes(), &nothing, patience, place).await?;
        writer.cut().await;
        Ok(())
    }
}

/// Whether more follows a message on its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamPlace {
    Middle,
    Last,
}

/// Writes a body that is no event stream as the delivery says.
pub(super) async fn write_body(
    writer: StreamWriter,
    text: &str,
    note: &DeliveryNote,
    delivery: &DeliveryModifiers,
    patience: Duration,
) -> Result<(), OutletClosed> {
    if delivery.abrupt_close {
        // Half of a message carries nothing.
        let (part, nothing) = (&text[..half(text)], DeliveryNote::default());
        let place = StreamPlace::Middle;
        write(&writer, part.as_bytes(), &nothing, patience, place).await?;
        writer.cut().await;
        return Ok(());
    }
    let pause = delivery.slow_stream.unwrap_or_default();
    let (pieces, place) = (pieces(text.as_bytes()), StreamPlace::Last);
    write_pieces(&writer, &pieces, note, pause, patience, place).await
}

async fn write(
    writer: &StreamWriter,
    bytes: &[u8],
    note: &DeliveryNote,
    patience: Duration,
    place: StreamPlace,
) -> Result<(), OutletClosed> {
    let (bytes, unread) = (bytes.to_vec(), note.handed_over());
    let writing = async {
        match place {
            StreamPlace::Middle => writer.write_watched(bytes, unread).await,
            StreamPlace::Last => writer.finish(bytes, unread).await,
        }
    };
    match tokio::time::timeout(patience, writing).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(OutletClosed),
    }
}

/// Writes pieces with a pause between them. The message is handed over with the last one.
async fn write_pieces(
    writer: &StreamWriter,
    pieces: &[&[u8]],
    note: &DeliveryNote,
    pause: Duration,
    patience: Duration,
    place: StreamPlace,
) -> Result<(), OutletClosed> {
    let Some((last, before)) = pieces.split_last() else {
        return Ok(());
    };
    let (nothing, middle) = (DeliveryNote::default(), StreamPlace::Middle);
    for piece in before {
        write(writer, piece, &nothing, patience, middle).await?;
        tokio::time::sleep(pause).await;
    }
    write(writer, last, note, patience, place).await
}

fn pieces(bytes: &[u8]) -> Vec<&[u8]> {
    let (slow, rest) = bytes.split_at(bytes.len().min(PIECE * MAX_PIECES));
    let mut pieces: Vec<&[u8]> = slow.chunks(PIECE).collect();
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

fn half(text: &str) -> usize {
    text.floor_char_boundary(text.len() / 2)
}

/// One of many notifications that nobody asked for.
fn flood(number: usize) -> String {
    let params = json!({
        "level": McpLogLevel::Info.as_str(), "data": format!("notice {}", number + 1),
    });
    rpc::notification(McpNotification::Message.as_str(), Some(&params)).to_string()
}
