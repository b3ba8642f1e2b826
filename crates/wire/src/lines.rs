//! Lines of an async byte stream, each up to a size limit.

use std::time::Instant;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line, or what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireLine {
    /// The bytes, without the line feed.
    Whole(Vec<u8>),
    /// The stream ended in the middle of it.
    Cut(Vec<u8>),
    /// It was longer than it may be, and was passed over.
    TooLong {
        /// How long it was.
        bytes: u64,
    },
}

/// Reads lines; a line that is too long is passed over without being held.
#[derive(Debug)]
pub struct LineReader<R> {
    inner: R,
    max_bytes: usize,
    /// What was read of the line so far; kept here, so that a reader that was interrupted goes on
    /// where it was.
    line: Vec<u8>,
    skipped: u64,
    heard_at: Option<Instant>,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    /// Reads lines of at most so many bytes.
    pub fn new(inner: R, max_bytes: usize) -> Self {
        Self {
            inner,
            max_bytes,
            line: Vec::new(),
            skipped: 0,
            heard_at: None,
        }
    }

    /// When the last piece came that is more than blank, whether its line has ended or not.
    pub fn heard_at(&self) -> Option<Instant> {
        self.heard_at
    }

    /// The next line; `None` at the end. Blank lines are passed over. May be dropped and called
    /// again without losing anything.
    ///
    /// # Errors
    ///
    /// Returns the error of the stream.
    pub async fn next(&mut self) -> std::io::Result<Option<WireLine>> {
        loop {
            let available = self.inner.fill_buf().await?;
            if available.is_empty() {
                let line = std::mem::take(&mut self.line);
                return Ok(match (std::mem::take(&mut self.skipped), line.is_empty()) {
                    (0, true) => None,
                    (0, false) => Some(WireLine::Cut(line)),
                    (bytes, _) => Some(WireLine::TooLong { bytes }),
                });
            }
            let end = memchr::memchr(b'\n', available);
            let piece = &available[..end.unwrap_or(available.len())];
            if !piece.trim_ascii().is_empty() {
                self.heard_at = Some(Instant::now());
            }
            if self.skipped > 0 {
                self.skipped += piece.len() as u64;
            } else if self.line.len() + piece.len() > self.max_bytes {
                self.skipped = (self.line.len() + piece.len()) as u64;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            let consumed = piece.len() + usize::from(end.is_some());
            self.inner.consume(consumed);
            if end.is_none() {
                continue;
            }
            if self.skipped > 0 {
                let bytes = std::mem::take(&mut self.skipped);
                return Ok(Some(WireLine::TooLong { bytes }));
            }
            let mut line = std::mem::take(&mut self.line);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if !line.is_empty() {
                return Ok(Some(WireLine::Whole(line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_time_is_that_of_the_piece_and_not_of_its_line() {
        use tokio::io::AsyncWriteExt;

        let (mut writer, reader) = tokio::io::duplex(64);
        let mut lines = LineReader::new(tokio::io::BufReader::new(reader), 100);
        writer.write_all(b"let me see. ").await.unwrap();
        tokio::select! {
            biased;
            line = lines.next() => panic!("the line goes on: {line:?}"),
            () = std::future::ready(()) => {}
        }
        let heard = lines.heard_at();
        assert!(heard.is_some());
        writer.write_all(b" \n").await.unwrap();
        drop(writer);
        assert!(lines.next().await.unwrap().is_some());
        assert_eq!(lines.next().await.unwrap(), None);
        assert_eq!(lines.heard_at(), heard);
    }

    #[tokio::test]
    async fn long_lines_do_not_cost_their_neighbours() {
        let text = format!("one\r\n\n{}\ntwo\nthr", "x".repeat(500));
        let mut lines =
            LineReader::new(tokio::io::BufReader::with_capacity(7, text.as_bytes()), 10);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        assert_eq!(
            read,
            [
                WireLine::Whole(b"one".to_vec()),
                WireLine::TooLong { bytes: 500 },
                WireLine::Whole(b"two".to_vec()),
                WireLine::Cut(b"thr".to_vec()),
            ]
        );
    }
}
