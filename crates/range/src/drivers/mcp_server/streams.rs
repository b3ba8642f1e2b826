//! The event streams of one session, each with a bounded memory, so that a client can come back for
//! what it missed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use proofhouse_wire::server::StreamWriter;
use proofhouse_wire::sse::SseEvent;
use proofhouse_wire::sync::lock;

use crate::delivery_note::DeliveryNote;

/// The stream that a client opens with GET, for what belongs to no call.
pub(super) const STANDALONE: u64 = 0;

/// Events that are kept of one stream. What is replayed must fit into the queue of a writer.
const MAX_EVENTS: usize = 48;
/// Streams that a session keeps; the oldest ended ones go first.
const MAX_STREAMS: usize = 16;
/// Bytes that a session keeps of all its streams: there may be a thousand sessions.
const MAX_BYTES: usize = 256 << 10;
/// How soon a client should come back, in milliseconds.
const RETRY: u64 = 500;

/// The streams of a session.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<StreamTable>);

#[derive(Debug, Default)]
struct StreamTable {
    last: u64,
    bytes: usize,
    all: BTreeMap<u64, ServerStream>,
}

#[derive(Debug, Default)]
struct ServerStream {
    /// The number of the last event.
    last: u64,
    /// The number of the last event that was written to someone.
    written: u64,
    kept: VecDeque<KeptEvent>,
    writer: Option<StreamWriter>,
    ended: bool,
}

/// An event that a client may still want.
#[derive(Debug)]
struct KeptEvent {
    number: u64,
    text: String,
    /// What it carries.
    note: DeliveryNote,
}

impl Streams {
    /// A stream for a call. `prime` sends an empty event first, from which the client can resume.
    pub(super) fn open(&self, writer: StreamWriter, prime: bool) -> u64 {
        let mut inner = self.lock();
        inner.last += 1;
        let number = inner.last;
        inner.make_room();
        if prime {
            let _ = writer.try_write(priming(number));
        }
        let stream = inner.all.entry(number).or_default();
        stream.writer = Some(writer);
        number
    }

    /// A client listens to a stream from now on, and first gets what it missed: what follows the
    /// event `after`, or what was never written. `false` when there is no such stream.
    pub(super) fn attach(
        &self,
        number: u64,
        after: Option<u64>,
        writer: StreamWriter,
        prime: bool,
    ) -> bool {
        let mut inner = self.lock();
        if number == STANDALONE {
            inner.all.entry(number).or_default();
        }
        let Some(stream) = inner.all.get_mut(&number) else {
            return false;
        };
        if prime && after.is_none() {
            let _ = writer.try_write(priming(number));
        }
        let after = after.unwrap_or(stream.written);
        for KeptEvent { number, text, note } in &stream.kept {
            if *number > after
                && writer
                    .try_write_watched(text.clone(), note.handed_over())
                    .is_ok()
            {
                stream.written = stream.written.max(*number);
            }
        }
        // The writer of an ended stream is dropped here, which ends the response.
        stream.writer = (!stream.ended).then_some(writer);
        true
    }

    /// Adds an event. Returns its text, and who it is to be written to, if anyone listens.
    pub(super) fn push(
        &self,
        number: u64,
        data: &str,
        note: &DeliveryNote,
    ) -> (String, Option<StreamWriter>) {
        let mut inner = self.lock();
        let stream = inner.all.entry(number).or_default();
        stream.last += 1;
        let event = SseEvent {
            id: Some(format!("{number}-{}", stream.last)),
            ..SseEvent::data(data)
        };
        let text = event.encode();
        if stream.writer.as_ref().is_some_and(StreamWriter::is_closed) {
            stream.writer = None;
        }
        let writer = stream.writer.clone();
        if writer.is_some() {
            stream.written = stream.last;
        }
        let last = stream.last;
        stream.kept.push_back(KeptEvent {
            number: last,
            text: text.clone(),
            note: note.clone(),
        });
        inner.bytes += text.len();
        inner.forget(number);
        (text, writer)
    }

    /// What was handed to a writer did not reach it.
    pub(super) fn missed(&self, number: u64) {
        if let Some(stream) = self.lock().all.get_mut(&number) {
            stream.written = stream.written.saturating_sub(1);
            stream.writer = None;
        }
    }

    /// Ends the response that carries a stream; the stream goes on and can be resumed.
    pub(super) fn detach(&self, number: u64) {
        if let Some(stream) = self.lock().all.get_mut(&number) {
            stream.writer = None;
        }
    }

    /// The stream is complete.
    pub(super) fn end(&self, number: u64) {
        if let Some(stream) = self.lock().all.get_mut(&number) {
            stream.ended = true;
            stream.writer = None;
        }
    }

    /// Ends every response, because the session ends.
    pub(super) fn end_all(&self) {
        for stream in self.lock().all.values_mut() {
            stream.ended = true;
            stream.writer = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, StreamTable> {
        lock(&self.0)
    }
}

impl StreamTable {
    /// Forgets old streams, so that there is room for one more.
    fn make_room(&mut self) {
        while self.all.len() >= MAX_STREAMS {
            let calls = || self.all.iter().filter(|(number, _)| **number != STANDALONE);
            let oldest = calls().find(|(_, stream)| stream.ended).or(calls().next());
            let Some((&number, _)) = oldest else { return };
            if let Some(stream) = self.all.remove(&number) {
                let texts = stream.kept.iter().map(|event| event.text.len());
                self.bytes -= texts.sum::<usize>();
            }
        }
    }

    /// Forgets old events: of this stream when it has too many, of any when they are too large.
    fn forget(&mut self, number: u64) {
        if let Some(stream) = self.all.get_mut(&number)
            && stream.kept.len() > MAX_EVENTS
            && let Some(event) = stream.kept.pop_front()
        {
            self.bytes -= event.text.len();
        }
        while self.bytes > MAX_BYTES {
            let oldest = self.all.values_mut().find(|stream| !stream.kept.is_empty());
            let Some(event) = oldest.and_then(|stream| stream.kept.pop_front()) else {
                return;
            };
            self.bytes -= event.text.len();
        }
    }
}

/// The stream and event that an id names.
pub(super) fn parse_id(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.trim().split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

fn priming(number: u64) -> String {
    let event = SseEvent {
        id: Some(format!("{number}-0")),
        retry: Some(RETRY),
        ..SseEvent::default()
    };
    event.encode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_wire::server::stream;

    #[test]
    fn memory_is_bounded_however_much_is_sent() {
        let streams = Streams::default();
        for _ in 0..100 {
            let (writer, _body) = stream();
            let number = streams.open(writer, true);
            for _ in 0..100 {
                streams.push(number, &"x".repeat(1000), &DeliveryNote::default());
            }
            let large = "x".repeat(MAX_BYTES + 1);
            streams.push(number, &large, &DeliveryNote::default());
        }
        let inner = streams.lock();
        assert!(inner.all.len() <= MAX_STREAMS && inner.bytes <= MAX_BYTES);
        let kept = inner.all.values().flat_map(|stream| &stream.kept);
        assert_eq!(
            inner.bytes,
            kept.map(|event| event.text.len()).sum::<usize>()
        );
    }

    #[test]
    fn ids_name_a_stream_and_an_event() {
        assert_eq!(parse_id("3-17"), Some((3, 17)));
        for wrong in ["", "3", "3-", "-1", "a-b", "99999999999999999999-1"] {
            assert_eq!(parse_id(wrong), None, "{wrong}");
        }
    }
}
