//! Server-sent events as they are on the wire, cut at their ends, so that what passes is what was sent.

use proofhouse_wire::sse::{EventTooLarge, SseDecoder, SseEvent};

/// An event with its bytes; comments have no event.
#[derive(Debug, PartialEq)]
pub(super) struct RawEvent {
    pub(super) bytes: Vec<u8>,
    pub(super) event: Option<SseEvent>,
}

/// Ends of lines for readers who split at more than the specification has; in JSON they stand only in texts.
const ENDS_FOR_SOME: [char; 8] = [
    '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}',
];

impl RawEvent {
    /// What reads alike for everybody: the bytes as they are, or else the event written anew without what some readers take for
    /// other lines. Nothing where nothing is left.
    pub(super) fn unequivocal(self) -> Option<Self> {
        if !self.is_equivocal() {
            return Some(self);
        }
        let mut event = self.event?;
        let is_plain = |text: &String| !text.contains(ENDS_FOR_SOME);
        event.id = event.id.filter(is_plain);
        if event.data.is_empty() && event.id.is_none() && event.retry.is_none() {
            return None;
        }
        // Only one of no name has data that passes.
        event.event = event.event.filter(is_plain);
        Some(Self {
            bytes: event.encode().into_bytes(),
            event: Some(event),
        })
    }

    fn is_equivocal(&self) -> bool {
        let Ok(text) = str::from_utf8(&self.bytes) else {
            // Who reads another encoding reads other lines.
            return true;
        };
        let mut lines = text.split(['\r', '\n']);
        lines.any(|line| !line.starts_with("data:") && line.contains(ENDS_FOR_SOME))
    }
}

/// Cuts a stream into events.
#[derive(Debug)]
pub(super) struct RawEvents {
    buffer: Vec<u8>,
    /// What was looked through.
    searched: usize,
    /// Whether nothing stands in the line so far.
    is_blank: bool,
    max_bytes: usize,
}

impl RawEvents {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            searched: 0,
            is_blank: true,
            max_bytes,
        }
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// The next whole event.
    pub(super) fn next(&mut self) -> Result<Option<RawEvent>, EventTooLarge> {
        while let Some(byte) = self.buffer.get(self.searched).copied() {
            let length = match byte {
                b'\n' => 1,
                b'\r' => match self.buffer.get(self.searched + 1) {
                    Some(b'\n') => 2,
                    Some(_) => 1,
                    // A line feed may still belong to it.
                    None => break,
                },
                _ => {
                    self.is_blank = false;
                    self.searched += 1;
                    continue;
                }
            };
            self.searched += length;
            if std::mem::replace(&mut self.is_blank, true) {
                let rest = self.buffer.split_off(self.searched);
                let bytes = std::mem::replace(&mut self.buffer, rest);
                self.searched = 0;
                return self.event(bytes).map(Some);
            }
        }
        if self.buffer.len() > self.max_bytes {
            return Err(EventTooLarge {
                limit: self.max_bytes,
            });
        }
        Ok(None)
    }

    fn event(&self, bytes: Vec<u8>) -> Result<RawEvent, EventTooLarge> {
        let mut events = Vec::new();
        SseDecoder::new(self.max_bytes).push(&bytes, &mut events)?;
        Ok(RawEvent {
            bytes,
            event: events.pop(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_is_lost_however_the_stream_is_cut() {
        let stream = b": hello\n\nid: 1\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n\ndata: x\r\rdata: cut";
        for size in 1..stream.len() {
            let mut events = RawEvents::new(100);
            let (mut bytes, mut data) = (Vec::new(), Vec::new());
            for piece in stream.chunks(size) {
                events.push(piece);
                while let Some(raw) = events.next().unwrap() {
                    bytes.extend_from_slice(&raw.bytes);
                    data.extend(raw.event.map(|event| event.data));
                }
            }
            bytes.extend_from_slice(&events.buffer);
            assert_eq!(bytes, stream, "pieces of {size}");
            assert_eq!(data, ["{\"a\":\n1}", "x"], "pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_an_end_is_not_held_for_ever() {
        let mut events = RawEvents::new(100);
        events.push(&[b'x'; 101]);
        assert_eq!(events.next(), Err(EventTooLarge { limit: 100 }));
    }
}
