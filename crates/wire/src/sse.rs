//! Server-sent events: written, and read piece by piece.

use std::fmt::Write;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The kind; `None` reads as `message`.
    pub event: Option<String>,
    /// The id, which a client sends back to resume.
    pub id: Option<String>,
    /// The data, its lines joined by line feeds.
    pub data: String,
    /// How long a client should wait before it connects again, in milliseconds.
    pub retry: Option<u64>,
}

impl SseEvent {
    /// An event that is only data.
    #[must_use]
    pub fn data(data: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            ..Self::default()
        }
    }

    /// The event as it stands on the wire.
    ///
    /// ```
    /// use proofhouse_wire::sse::SseEvent;
    ///
    /// let event = SseEvent { id: Some("7".into()), ..SseEvent::data("one\ntwo") };
    /// assert_eq!(event.encode(), "id: 7\ndata: one\ndata: two\n\n");
    /// ```
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::with_capacity(self.data.len() + 32);
        // Line breaks would end the field, so ids and kinds are written without them.
        let one_line = |text: &str| text.replace(['\r', '\n'], " ");
        if let Some(event) = &self.event {
            let _ = writeln!(text, "event: {}", one_line(event));
        }
        if let Some(id) = &self.id {
            let _ = writeln!(text, "id: {}", one_line(id));
        }
        if let Some(retry) = self.retry {
            let _ = writeln!(text, "retry: {retry}");
        }
        for line in self.data.split('\n') {
            text.push_str("data: ");
            text.push_str(line.strip_suffix('\r').unwrap_or(line));
            text.push('\n');
        }
        text.push('\n');
        text
    }
}

/// The other end sent an event larger than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {limit} bytes")]
pub struct EventTooLarge {
    /// The most bytes an event may have.
    pub limit: usize,
}

/// Reads events out of pieces of a stream, however it is cut.
///
/// ```
/// use proofhouse_wire::sse::SseDecoder;
///
/// let mut decoder = SseDecoder::new(1 << 20);
/// let mut events = Vec::new();
/// decoder.push(b"data: hel", &mut events).unwrap();
/// decoder.push(b"lo\r\n\r\n", &mut events).unwrap();
/// assert_eq!(events[0].data, "hello");
/// ```
#[derive(Debug)]
pub struct SseDecoder {
    max_bytes: usize,
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// Bytes of the event so far.
    size: usize,
    /// The last byte was a carriage return, so a line feed belongs to it.
    after_return: bool,
    started: bool,
}

impl SseDecoder {
    /// A decoder of events of at most so many bytes.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            event: SseEvent::default(),
            has_data: false,
            size: 0,
            after_return: false,
            started: false,
        }
    }

    /// Takes the next piece and adds the events that it completes.
    ///
    /// # Errors
    ///
    /// Returns an error when an event is too large; nothing should be read after that.
    pub fn push(
        &mut self,
        mut piece: &[u8],
        events: &mut Vec<SseEvent>,
    ) -> Result<(), EventTooLarge> {
        while !piece.is_empty() {
            if self.after_return {
                self.after_return = false;
                if piece[0] == b'\n' {
                    piece = &piece[1..];
                    continue;
                }
            }
            let end = memchr::memchr2(b'\r', b'\n', piece);
            let taken = end.unwrap_or(piece.len());
            self.size += taken;
            if self.size > self.max_bytes {
                return Err(EventTooLarge {
                    limit: self.max_bytes,
                });
            }
            self.line.extend_from_slice(&piece[..taken]);
            let Some(end) = end else { break };
            self.after_return = piece[end] == b'\r';
            piece = &piece[end + 1..];
            self.end_line(events);
        }
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line = &*text;
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            self.size = 0;
            if std::mem::take(&mut self.has_data) || event.id.is_some() || event.retry.is_some() {
                events.push(event);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            "event" => self.event.event = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            // A comment, or a field that no version knows.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let (mut decoder, mut events) = (SseDecoder::new(1000), Vec::new());
        for piece in pieces {
            decoder.push(piece, &mut events).unwrap();
        }
        events
    }

    #[test]
    fn fields_comments_and_all_three_line_ends() {
        let stream = b"\xef\xbb\xbf: hello\nevent: add\r\ndata:a\rdata: b\nid: 1\nretry: 10\nodd\n\ndata\n\n: ping\n\nid: 2\ndata:\n\n";
        let expected = [
            SseEvent {
                event: Some("add".into()),
                id: Some("1".into()),
                data: "a\nb".into(),
                retry: Some(10),
            },
            SseEvent::default(),
            SseEvent {
                id: Some("2".into()),
                ..SseEvent::default()
            },
        ];
        assert_eq!(decode(&[stream]), expected);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(decode(&bytes), expected);
    }

    #[test]
    fn large_events_are_refused_whether_in_one_line_or_many() {
        let mut events = Vec::new();
        let long = [b'x'; 2000];
        assert!(SseDecoder::new(1000).push(&long, &mut events).is_err());
        let many = "data: x\n".repeat(500);
        assert!(
            SseDecoder::new(1000)
                .push(many.as_bytes(), &mut events)
                .is_err()
        );
        let separate = "data: x\n\n".repeat(500);
        assert!(
            SseDecoder::new(1000)
                .push(separate.as_bytes(), &mut events)
                .is_ok()
        );
        assert_eq!(events.len(), 500);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            data in "[^\r]{0,40}", id in proptest::option::of("[a-z0-9]{1,5}"), cut in 0usize..60,
        ) {
            let event = SseEvent { id, ..SseEvent::data(data) };
            let text = event.encode();
            let cut = cut.min(text.len());
            let (head, tail) = text.as_bytes().split_at(cut);
            prop_assert_eq!(decode(&[head, tail]), [event]);
        }
    }
}
