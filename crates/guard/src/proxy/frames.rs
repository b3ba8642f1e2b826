//! Lines as they are on the wire, with their ends, so that what passes is what was sent.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::engine::IdFinder;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// How much is read before anybody wants it: more than a pipe holds, so that the end behind it is seen.
const AHEAD: usize = 256 << 10;

/// A line, or what became of it.
#[derive(Debug, PartialEq)]
pub(crate) enum GuardLine {
    /// The bytes, with the line feed.
    Whole(Vec<u8>),
    /// The stream ended in the middle of it.
    Cut(Vec<u8>),
    /// It was longer than what is judged, and was passed over.
    TooLong {
        bytes: u64,
        /// The id of the message, where it could be told.
        id: Option<Value>,
    },
}

/// Reads lines without losing a byte of them.
pub(crate) struct GuardLines<R> {
    inner: R,
    max_bytes: usize,
    buffer: Vec<u8>,
    /// What was looked through for a line feed.
    searched: usize,
    skipping: Option<(u64, IdFinder)>,
    has_ended: bool,
}

impl<R: AsyncRead + Unpin> GuardLines<R> {
    pub(crate) fn new(inner: R, max_bytes: usize) -> Self {
        Self {
            inner,
            max_bytes,
            buffer: Vec::new(),
            searched: 0,
            skipping: None,
            has_ended: false,
        }
    }

    /// The next line; `None` at the end. May be dropped and called again without losing anything.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<GuardLine>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + at + 1;
                let rest = self.buffer.split_off(end);
                let line = std::mem::replace(&mut self.buffer, rest);
                self.searched = 0;
                return Ok(Some(self.line(line)));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > self.max_bytes {
                let (bytes, finder) = self.skipping.get_or_insert_default();
                *bytes += self.buffer.len() as u64;
                finder.feed(&self.buffer);
                self.buffer = Vec::new();
                self.searched = 0;
            }
            if !self.read_more().await? {
                let line = std::mem::take(&mut self.buffer);
                self.searched = 0;
                return Ok(match (self.skipping.is_some(), line.is_empty()) {
                    (true, _) => Some(self.line(line)),
                    (false, true) => None,
                    (false, false) => Some(GuardLine::Cut(line)),
                });
            }
        }
    }

    /// Reads on while nobody wants a line, and returns when the stream has ended. May be dropped without losing anything.
    pub(crate) async fn ended(&mut self) {
        while self.buffer.len() < AHEAD {
            match self.read_more().await {
                Ok(true) => {}
                Ok(false) | Err(_) => return,
            }
        }
        std::future::pending::<()>().await;
    }

    /// Returns whether there was more.
    async fn read_more(&mut self) -> std::io::Result<bool> {
        if !self.has_ended {
            self.buffer.reserve(CHUNK);
            self.has_ended = self.inner.read_buf(&mut self.buffer).await? == 0;
        }
        Ok(!self.has_ended)
    }

    fn line(&mut self, line: Vec<u8>) -> GuardLine {
        let (before, mut finder) = match self.skipping.take() {
            Some(skipping) => skipping,
            None if line.len() > self.max_bytes => Default::default(),
            None => return GuardLine::Whole(line),
        };
        finder.feed(&line);
        GuardLine::TooLong {
            bytes: before + line.len() as u64,
            id: finder.id(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn read(text: &[u8], max_bytes: usize) -> Vec<GuardLine> {
        let mut lines = GuardLines::new(text, max_bytes);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        read
    }

    #[tokio::test]
    async fn nothing_of_a_line_is_lost() {
        let text = b"{\"a\":1}\r\n\n  x\ncut";
        let lines = read(text, 100).await;
        assert_eq!(
            lines,
            [
                GuardLine::Whole(b"{\"a\":1}\r\n".to_vec()),
                GuardLine::Whole(b"\n".to_vec()),
                GuardLine::Whole(b"  x\n".to_vec()),
                GuardLine::Cut(b"cut".to_vec()),
            ]
        );
    }

    #[tokio::test]
    async fn the_id_of_a_long_line_is_found_wherever_it_stands() {
        let long = "x".repeat(300_000);
        for (text, id) in [
            (
                format!(r#"{{"id":7,"result":{{"text":"{long}"}}}}"#),
                Some(json!(7)),
            ),
            (
                format!(r#"{{"result":{{"id":1,"text":"\"id\":2,{long}"}},"id" : "a\"b" }}"#),
                Some(json!("a\"b")),
            ),
            (format!(r#"{{"result":"{long}"}}"#), None),
            (format!(r#"[{{"id":1,"text":"{long}"}}]"#), None),
        ] {
            let lines = read(format!("{text}\nnext\n").as_bytes(), 1000).await;
            let expected = GuardLine::TooLong {
                bytes: text.len() as u64 + 1,
                id,
            };
            assert_eq!(lines, [expected, GuardLine::Whole(b"next\n".to_vec())]);
        }
    }
}
