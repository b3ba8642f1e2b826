//! Our own standard input, read by a thread of its own.
//!
//! A read of standard input cannot be interrupted. In the pool of the runtime it would hold up the
//! end of the program until the client sends something more; this thread holds up nothing.

use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// Pieces that wait to be taken; the thread waits for room, and with it the client.
const QUEUE: usize = 4;
const PIECE: usize = 64 << 10;

/// Standard input.
#[derive(Debug)]
pub(super) struct StdinInput {
    pieces: mpsc::Receiver<std::io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    taken: usize,
}

impl StdinInput {
    /// Starts to read standard input.
    pub(super) fn new() -> Self {
        Self::reading(std::io::stdin())
    }

    fn reading(mut source: impl Read + Send + 'static) -> Self {
        let (sender, pieces) = mpsc::channel(QUEUE);
        std::thread::spawn(move || {
            loop {
                let mut piece = vec![0; PIECE];
                let read = match source.read(&mut piece) {
                    Ok(0) => return,
                    Ok(count) => {
                        piece.truncate(count);
                        Ok(piece)
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = read.is_err();
                if sender.blocking_send(read).is_err() || failed {
                    return;
                }
            }
        });
        Self {
            pieces,
            piece: Vec::new(),
            taken: 0,
        }
    }
}

impl AsyncRead for StdinInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        while self.taken == self.piece.len() {
            match ready!(self.pieces.poll_recv(context)) {
                Some(piece) => {
                    self.piece = piece?;
                    self.taken = 0;
                }
                None => return Poll::Ready(Ok(())),
            }
        }
        let left = &self.piece[self.taken..];
        let count = left.len().min(buffer.remaining());
        buffer.put_slice(&left[..count]);
        self.taken += count;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn everything_arrives_in_order_and_then_the_end() {
        let text: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        let mut input = StdinInput::reading(std::io::Cursor::new(text.clone()));
        let mut read = Vec::new();
        input.read_to_end(&mut read).await.unwrap();
        assert!(read == text);
    }
}
