//! The trace format from outside: what is written can be read, whatever stands beside it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{Cursor, Read, Write};

use proofhouse_detect::{
    LineErrorKind, MessageSource, REDACTED, Redactor, TraceItem, TraceMessage, TraceReadError,
    TraceReadErrorKind, TraceReadLimits, TraceReader, TraceWriter,
};
use proofhouse_oatf::Direction;
use proptest::prelude::*;
use serde_json::{Value, json};

fn entry(sequence: u64) -> String {
    format!(
        r#"{{"seq":{sequence},"protocol":"mcp","operation":"tools/call","content":{{"n":{sequence}}}}}"#
    )
}

type Read3 = (
    Vec<(u64, TraceMessage)>,
    Vec<(u64, LineErrorKind)>,
    Option<TraceReadError>,
);

/// Reads everything: messages with their lines, problems with theirs, the error at the end.
fn read(input: impl Read, limits: &TraceReadLimits) -> Read3 {
    let mut reader = TraceReader::with_limits(input, limits);
    let (mut messages, mut problems, mut end) = (Vec::new(), Vec::new(), None);
    for item in &mut reader {
        match item {
            Ok(TraceItem::Message { line, message, .. }) => messages.push((line, message)),
            Ok(TraceItem::Problem(error)) => {
                assert!(error.message.len() < 200, "{error}");
                problems.push((error.line, error.kind));
            }
            Err(error) => end = Some(error),
        }
    }
    assert!(reader.next().is_none());
    assert_eq!(reader.summary().messages, messages.len() as u64);
    (messages, problems, end)
}

fn lines_of(messages: &[(u64, TraceMessage)]) -> Vec<u64> {
    messages.iter().map(|(line, _)| *line).collect()
}

#[test]
fn bad_lines_are_reported_and_their_neighbours_are_kept() {
    for (bad, kind) in [
        (b"not json".to_vec(), LineErrorKind::NotJson),
        (b"{\"seq\":1,\"pro".to_vec(), LineErrorKind::NotJson),
        (b"{\"seq\":\"one\",\"pro".to_vec(), LineErrorKind::NotJson),
        (b"{\"seq\":\"one\"}".to_vec(), LineErrorKind::NotAMessage),
        (b"[1,2]".to_vec(), LineErrorKind::NotAMessage),
        (b"\xff\xfe".to_vec(), LineErrorKind::NotUtf8),
        (b"{\"protocol\":\"\xc3\"}".to_vec(), LineErrorKind::NotUtf8),
        (vec![b'x'; 2000], LineErrorKind::TooLong),
        (vec![b'x'; 200_000], LineErrorKind::TooLong),
        (b"{\"content\":1e999}".to_vec(), LineErrorKind::NotJson),
        (
            b"{\"protocol\":\"a\",\"operation\":\"b\",\"content\":1,\"content\":2}".to_vec(),
            LineErrorKind::NotAMessage,
        ),
    ] {
        let limits = TraceReadLimits {
            max_line_bytes: 1500,
            ..TraceReadLimits::default()
        };
        let input = [entry(1).as_bytes(), &bad, entry(2).as_bytes(), b""].join(&b'\n');
        let (messages, problems, end) = read(&input[..], &limits);
        let shown = String::from_utf8_lossy(&bad[..bad.len().min(40)]).into_owned();
        assert_eq!(lines_of(&messages), [1, 3], "{shown}");
        assert_eq!(problems, [(2, kind)], "{shown}");
        assert!(end.is_none());
    }
}

#[test]
fn blank_lines_headers_and_line_ends() {
    let input = format!(
        "\u{feff}{{\"proofhouse_trace\":1,\"seq\":\"own\"}}\r\n\r\n  \n{}\r\n{}\n{{\"proofhouse_trace\":1}}\n{}",
        entry(5),
        entry(6),
        entry(1),
    );
    let mut reader = TraceReader::new(input.as_bytes());
    let found: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    let problems: Vec<_> = found
        .iter()
        .filter_map(|item| match item {
            TraceItem::Message { .. } => None,
            TraceItem::Problem(problem) => Some((problem.line, problem.kind)),
        })
        .collect();
    assert_eq!(
        problems,
        [(4, LineErrorKind::Gap), (6, LineErrorKind::Joined)]
    );
    assert_eq!(found.len(), 5);
    assert_eq!(reader.summary().lines, 7);
    assert_eq!(reader.summary().bytes, input.len() as u64);

    let (messages, _, end) = read(
        format!("{{\"proofhouse_trace\":2}}\n{}\n", entry(1)).as_bytes(),
        &TraceReadLimits::default(),
    );
    assert!(messages.is_empty());
    assert_eq!(end.unwrap().kind, TraceReadErrorKind::UnsupportedVersion);
}

#[test]
fn sequence_numbers_are_watched_and_filled_in() {
    let bare = r#"{"protocol":"mcp","operation":"x","content":0,"later":1}"#;
    let input = [
        &*entry(1),
        &entry(1),
        &entry(5),
        &entry(3),
        &entry(4),
        bare,
        &entry(5),
    ]
    .join("\n");
    let mut reader = TraceReader::new(input.as_bytes());
    let items: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    let shown: Vec<_> = items
        .iter()
        .map(|item| match item {
            TraceItem::Message { message, .. } => format!("{}", message.sequence),
            TraceItem::Problem(error) => format!("{error}"),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "1",
            "line 2: sequence number 1 comes after 1",
            "1",
            "line 3: sequence number 5 comes after 1: 3 missing",
            "5",
            "line 4: sequence number 3 comes after 5",
            "3",
            "4",
            "6",
            "5",
        ],
    );
    let summary = reader.summary();
    assert_eq!(
        (
            summary.warnings(),
            summary.skipped(),
            summary.unknown_fields
        ),
        (3, 0, 1)
    );
    assert_eq!(summary.count(LineErrorKind::OutOfOrder), 2);
    assert_eq!(summary.count(LineErrorKind::Gap), 1);
}

#[test]
fn a_last_line_may_lack_its_end_but_not_its_rest() {
    let limits = TraceReadLimits::default();
    let whole = format!("{}\n{}", entry(1), entry(2));
    let (messages, problems, _) = read(whole.as_bytes(), &limits);
    assert_eq!((messages.len(), problems.len()), (2, 0));
    for cut in [1, 5, 20] {
        let (messages, problems, _) = read(&whole.as_bytes()[..whole.len() - cut], &limits);
        assert_eq!(lines_of(&messages), [1]);
        assert_eq!(problems, [(2, LineErrorKind::Truncated)]);
    }
    let (_, problems, _) = read(&b"{\"a\":\"\xc3"[..], &limits);
    assert_eq!(problems, [(1, LineErrorKind::Truncated)]);
}

/// Gives 100 MB of one line between two entries, without ever holding them.
struct LongLine {
    start: Cursor<Vec<u8>>,
    middle: std::io::Take<std::io::Repeat>,
    end: Cursor<Vec<u8>>,
    largest: usize,
}

impl Read for LongLine {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.largest = self.largest.max(buffer.len());
        // The reader asks for a chunk at a time; if it collected the line, it would ask for more.
        assert!(self.largest <= 64 << 10);
        match self.start.read(buffer)? {
            0 => match self.middle.read(buffer)? {
                0 => self.end.read(buffer),
                count => Ok(count),
            },
            count => Ok(count),
        }
    }
}

#[test]
fn a_line_of_100_megabytes_is_passed_over() {
    let input = LongLine {
        start: Cursor::new(format!("{}\n", entry(1)).into_bytes()),
        middle: std::io::repeat(b'x').take(100 << 20),
        end: Cursor::new(format!("\n{}\n", entry(2)).into_bytes()),
        largest: 0,
    };
    let limits = TraceReadLimits {
        max_line_bytes: 1 << 20,
        ..TraceReadLimits::default()
    };
    let (messages, problems, end) = read(input, &limits);
    assert_eq!(lines_of(&messages), [1, 3]);
    assert_eq!(problems, [(2, LineErrorKind::TooLong)]);
    assert!(end.is_none());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn many(count: u64) -> Vec<u8> {
    (1..=count)
        .map(|sequence| entry(sequence) + "\n")
        .collect::<String>()
        .into_bytes()
}

#[test]
fn compressed_traces_are_read_like_plain_ones() {
    let plain = many(3000);
    let limits = TraceReadLimits::default();
    let (expected, ..) = read(&plain[..], &limits);
    // Two members or frames, one after the other, are one stream.
    let (left, right) = plain.split_at(plain.len() / 3);
    let skippable = [
        &0x184D_2A50_u32.to_le_bytes()[..],
        &3_u32.to_le_bytes(),
        b"abc",
    ]
    .concat();
    for packed in [
        gzip(&plain),
        zstd(&plain),
        [gzip(left), gzip(right)].concat(),
        [zstd(left), skippable, zstd(right)].concat(),
    ] {
        let (messages, problems, end) = read(&packed[..], &limits);
        assert!(end.is_none(), "{end:?}");
        assert!(problems.is_empty());
        assert_eq!(messages, expected);
    }
}

#[test]
fn damaged_compression_ends_the_reading_after_what_was_whole() {
    let plain = many(3000);
    for packed in [gzip(&plain), zstd(&plain)] {
        let half = &packed[..packed.len() / 2];
        let (messages, problems, end) = read(half, &TraceReadLimits::default());
        let end = end.unwrap();
        assert_eq!(end.kind, TraceReadErrorKind::Compression, "{end}");
        assert!(end.to_string().len() < 80, "{end}");
        assert_eq!(end.line, messages.len() as u64);
        assert!(problems.is_empty());
        let mut flipped = packed.clone();
        let last = flipped.len() - 3;
        flipped[last] ^= 0x55;
        let (messages, _, end) = read(&flipped[..], &TraceReadLimits::default());
        assert!(end.is_some());
        assert_eq!(messages.len(), 3000);
    }
}

#[test]
fn bombs_stop_at_the_limit() {
    let bomb = gzip(&vec![b' '; 4 << 20]);
    assert!(bomb.len() < 40_000);
    let limits = TraceReadLimits {
        max_bytes: Some(1 << 20),
        ..TraceReadLimits::default()
    };
    let (.., end) = read(&bomb[..], &limits);
    assert_eq!(end.unwrap().kind, TraceReadErrorKind::TooLarge);
    // A window larger than allowed is refused before it is taken.
    let limits = TraceReadLimits {
        max_zstd_window_bytes: 1 << 10,
        ..TraceReadLimits::default()
    };
    let (.., end) = read(&zstd(&many(3000))[..], &limits);
    let end = end.unwrap();
    assert_eq!(end.kind, TraceReadErrorKind::Compression);
    assert!(end.to_string().contains("a window of"), "{end}");
    // Errors are words, not the insides of the decoder.
    let (.., end) = read(
        &b"\x28\xb5\x2f\xfd\x00garbage garbage"[..],
        &TraceReadLimits::default(),
    );
    let end = end.unwrap().to_string();
    assert_eq!(
        end,
        "cannot decompress: the zstd stream is damaged (after line 0)"
    );
}

#[test]
fn an_error_of_the_input_comes_after_the_lines_before_it() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("unplugged"))
        }
    }
    let input = Cursor::new(many(2)).chain(Broken);
    let (messages, _, end) = read(input, &TraceReadLimits::default());
    assert_eq!(messages.len(), 2);
    let end = end.unwrap();
    assert_eq!((end.kind, end.line), (TraceReadErrorKind::Io, 2));
    assert_eq!(end.to_string(), "cannot read: unplugged (after line 2)");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| json!(f64::from(number) / 8.0)),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn message() -> impl Strategy<Value = TraceMessage> {
    let text = || prop::option::of(".{0,8}");
    let direction = prop::option::of(prop::sample::select(Direction::ALL));
    let fields = (
        any::<u64>(),
        text(),
        text(),
        text(),
        ".{0,8}",
        ".{0,8}",
        direction,
        value(),
        prop::option::of(value()),
    );
    fields.prop_map(
        |(sequence, time, actor, phase, protocol, operation, direction, content, raw)| {
            TraceMessage {
                sequence,
                time,
                actor,
                phase,
                protocol: protocol.into(),
                operation,
                direction,
                content,
                raw,
            }
        },
    )
}

/// The secrets and everything they are hidden in are drawn from these, so that they overlap often.
/// There are no words of the format among them, and no quotes, which would match across texts.
const LETTERS: &[&str] = &[
    "Q",
    "x7",
    "\\",
    "\n",
    " ",
    "/",
    "\u{e4}",
    "%",
    "+",
    "[re",
    "ted]",
    "\u{1F600}",
];

fn secret() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(LETTERS), 4..8)
        .prop_map(|parts| format!("Z{}", parts.concat()))
}

/// The forms in which a secret travels, written independently of the crate.
fn forms(secret: &str) -> Vec<String> {
    let percent = |upper: bool| -> String {
        secret
            .bytes()
            .map(|byte| match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => char::from(byte).to_string(),
                _ if upper => format!("%{byte:02X}"),
                _ => format!("%{byte:02x}"),
            })
            .collect()
    };
    let base64 = |alphabet: &[u8]| -> String {
        let bits: Vec<u8> = secret
            .bytes()
            .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
            .collect();
        bits.chunks(6)
            .map(|six| {
                (0..6).fold(0, |sum, bit| {
                    sum * 2 + usize::from(six.get(bit).copied().unwrap_or(0))
                })
            })
            .map(|index| char::from(alphabet[index]))
            .collect()
    };
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let escaped = Value::from(secret).to_string();
    let standard = base64(&[&letters[..], b"+/"].concat());
    let padding = "=".repeat((4 - standard.len() % 4) % 4);
    vec![
        secret.to_owned(),
        percent(true),
        percent(false),
        escaped[1..escaped.len() - 1].to_owned(),
        format!("{standard}{padding}"),
        base64(&[&letters[..], b"-_"].concat()),
        standard,
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(messages in prop::collection::vec(message(), 0..5)) {
        let mut writer = TraceWriter::new(Vec::new());
        writer.write_header(json!({"tool": "test", "proofhouse_trace": 9}).as_object().unwrap()).unwrap();
        for message in &messages {
            writer.write(message).unwrap();
        }
        let written = writer.finish().unwrap();
        let (found, problems, end) = read(&written[..], &TraceReadLimits::default());
        prop_assert!(end.is_none());
        prop_assert!(problems.iter().all(|(_, kind)| matches!(kind, LineErrorKind::OutOfOrder | LineErrorKind::Gap)));
        let found: Vec<_> = found.into_iter().map(|(_, message)| message).collect();
        prop_assert_eq!(found, messages);
    }

    #[test]
    fn any_bytes_are_read_without_panic_and_with_every_line(bytes in prop::collection::vec(any::<u8>(), 0..400), small in any::<bool>()) {
        let limits = TraceReadLimits { max_line_bytes: if small { 7 } else { 1000 }, ..TraceReadLimits::default() };
        let mut reader = TraceReader::with_limits(&bytes[..], &limits);
        let compressed = bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let fatal = reader.by_ref().any(|item| item.is_err());
        prop_assert!(!fatal || compressed);
        if !compressed {
            let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
            let open = bytes.last().is_some_and(|byte| *byte != b'\n');
            prop_assert_eq!(reader.summary().lines, (ends + usize::from(open)) as u64);
        }
    }

    #[test]
    fn good_lines_among_bad_ones_are_all_seen(
        bad in prop::collection::vec(prop::collection::vec(any::<u8>().prop_filter("a line", |byte| *byte != b'\n'), 0..80), 1..12),
    ) {
        // The first line is good, so that no bytes are taken for compression.
        let mut input = entry(1).into_bytes();
        for (index, bad) in bad.iter().enumerate() {
            input.push(b'\n');
            input.extend(bad);
            input.push(b'\n');
            input.extend(entry(index as u64 + 2).bytes());
        }
        let (messages, _, end) = read(&input[..], &TraceReadLimits { max_line_bytes: 75, ..TraceReadLimits::default() });
        prop_assert!(end.is_none());
        let seen: Vec<_> = messages.iter().filter(|(line, _)| line % 2 == 1).map(|(_, message)| message.sequence).collect();
        prop_assert_eq!(seen, (1..=bad.len() as u64 + 1).collect::<Vec<_>>());
    }

    #[test]
    fn no_line_shows_a_secret(
        secrets in prop::collection::vec(secret(), 1..4),
        pieces in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::collection::vec(prop::sample::select(LETTERS), 0..3)), 1..6),
    ) {
        let redactor = Redactor::new(&secrets).unwrap();
        let forms: Vec<Vec<String>> = secrets.iter().map(|secret| forms(secret)).collect();
        let mut text = String::new();
        for (secret, form, filler) in &pieces {
            let forms: &Vec<String> = secret.get(&forms);
            let form: &String = form.get(forms);
            text.push_str(form);
            text.push_str(&filler.concat());
        }
        let mut message = TraceMessage::new("mcp", text.clone(), json!({text.clone(): [text.clone(), {"a": text.clone()}]}));
        message.actor = Some(text.clone());
        message.raw = Some(json!([text]));
        let mut writer = TraceWriter::new(Vec::new()).with_redactor(redactor);
        writer.write_header(json!({"about": text}).as_object().unwrap()).unwrap();
        writer.write(&message).unwrap();
        let written = String::from_utf8(writer.finish().unwrap()).unwrap();
        prop_assert!(written.contains(REDACTED));
        for form in forms.iter().flatten() {
            prop_assert!(!written.contains(form.as_str()), "{form:?} in {written}");
        }
        // And it is still a trace.
        let (messages, problems, end) = read(written.as_bytes(), &TraceReadLimits::default());
        prop_assert!(end.is_none() && problems.is_empty() && messages.len() == 1);
    }
}
