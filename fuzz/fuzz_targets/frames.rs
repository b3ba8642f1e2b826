//! Frames: events, lines and JSON-RPC are read as the same however the stream is cut, within their
//! limits, and what is read and written again is read as the same.
#![no_main]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use proofhouse_protocol::rpc::{self, RpcMessage};
use proofhouse_wire::sse::{SseDecoder, SseEvent, EventTooLarge};
use proofhouse_wire::{WireLine, LineReader};
use serde_json::Value;
use tokio::io::{AsyncBufRead, BufReader};

/// Small, so that it is met.
const MAX_BYTES: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    // The first byte tells how the rest is cut.
    let (cut, bytes) = match bytes.split_first() {
        Some((first, rest)) => (usize::from(*first) % 16 + 1, rest),
        None => (1, bytes),
    };
    events(bytes, cut);
    lines(bytes, cut);
    message(bytes);
});

fn decode(pieces: &[&[u8]], max_bytes: usize) -> (Vec<SseEvent>, Result<(), EventTooLarge>) {
    let (mut decoder, mut events) = (SseDecoder::new(max_bytes), Vec::new());
    let mut outcome = Ok(());
    for piece in pieces {
        outcome = outcome.and_then(|()| decoder.push(piece, &mut events));
    }
    (events, outcome)
}

fn events(bytes: &[u8], cut: usize) {
    let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
    for max_bytes in [MAX_BYTES, usize::MAX] {
        let whole = decode(&[bytes], max_bytes);
        assert_eq!(whole, decode(&pieces, max_bytes));
        for event in &whole.0 {
            // Bytes that are no text become a mark of three bytes each.
            assert!(event.data.len() <= max_bytes.saturating_mul(3));
            let text = event.encode();
            let (again, _) = decode(&[text.as_bytes()], usize::MAX);
            assert_eq!(again, [event.clone()], "{text:?}");
        }
    }
}

/// What a future that never waits comes to.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("bytes in memory are there"),
    }
}

fn read(stream: impl AsyncBufRead + Unpin) -> Vec<WireLine> {
    let mut reader = LineReader::new(stream, MAX_BYTES);
    let mut lines = Vec::new();
    while let Some(line) = now(reader.next()).expect("bytes in memory are read") {
        lines.push(line);
    }
    lines
}

fn lines(bytes: &[u8], cut: usize) {
    let lines = read(bytes);
    assert_eq!(lines, read(BufReader::with_capacity(cut, bytes)));
    let mut total = 0;
    for line in &lines {
        match line {
            WireLine::Whole(line) | WireLine::Cut(line) => {
                assert!(!line.is_empty() && line.len() <= MAX_BYTES);
                total += line.len() as u64;
            }
            WireLine::TooLong { bytes } => {
                assert!(*bytes > MAX_BYTES as u64);
                total += bytes;
            }
        }
    }
    assert!(total <= bytes.len() as u64);
}

fn message(bytes: &[u8]) {
    let given = |params: &Value| (!params.is_null()).then(|| params.clone());
    let written = match rpc::parse(bytes) {
        Ok(message) => {
            let written = match &message {
                RpcMessage::Request { id, method, params } => {
                    rpc::request(id, method, given(params).as_ref())
                }
                RpcMessage::Notification { method, params } => {
                    rpc::notification(method, given(params).as_ref())
                }
                RpcMessage::Response { id, outcome } => match outcome {
                    Ok(result) => rpc::response(id, result.clone()),
                    // Any value may stand for an error, ours are written with a code and a message.
                    Err(_) => return,
                },
            };
            assert_eq!(rpc::from_value(written.clone()).as_ref(), Ok(&message));
            written
        }
        Err(invalid) => invalid.to_response(),
    };
    assert!(rpc::from_value(written).is_ok());
}
