//! A scan with many threads says what one session says that is fed message by message.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, helpers included")]

use std::io::{self, Read};
use std::num::NonZero;

use proofhouse_detect::{
    Format, ImportOptions, LineError, LineErrorKind, ReadSummary, ScanEvent, ScanOptions,
    ScanOutcome, ScanSession, Scanner, TraceItem, TraceMessage, TraceReadErrorKind, open,
};
use proofhouse_oatf::{CelContext, CelEvaluator, EvaluationError, load};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Two documents: patterns that match often and seldom, an expression that fails on some messages.
fn scanner() -> Scanner {
    let document = |indicators: Value| {
        let document = json!({
            "oatf": "0.1",
            "attack": {
                "execution": {"mode": "mcp_server", "state": {"tools": []}},
                "indicators": indicators,
            },
        });
        load(&document.to_string()).unwrap().document
    };
    Scanner::builder()
        .add(
            "first",
            document(json!([
                {"target": "text", "pattern": {"contains": "secret"}},
                {"surface": "tools/call", "target": "text", "pattern": {"regex": "tok[a-f]n"}},
                {"target": "size", "expression": {"cel": "message.size > 3"}},
            ])),
        )
        .add(
            "second",
            document(json!([{"target": "other", "pattern": {"exists": false}}])),
        )
        .build()
        .unwrap()
}

/// Everything a scan tells, in a form that can be compared.
#[derive(Debug, PartialEq)]
struct Told {
    verdicts: Vec<Value>,
    problems: Vec<LineError>,
    summary: ReadSummary,
    messages: u64,
    error: Option<(u64, TraceReadErrorKind, String)>,
}

/// The verdicts without the time they were made at.
fn verdicts(session: &ScanSession<'_>) -> Vec<Value> {
    let verdicts = session.verdicts().into_iter();
    verdicts
        .map(|verdict| {
            let mut value = serde_json::to_value(verdict).unwrap();
            value["attack"]["timestamp"].take();
            value
        })
        .collect()
}

fn one_by_one(scanner: &Scanner, input: impl Read + Send, format: Option<Format>) -> Told {
    let (_, mut items) = open(input, format, &ImportOptions::default());
    let mut session = scanner.session();
    let (mut problems, mut error) = (Vec::new(), None);
    for item in &mut items {
        match item {
            Ok(TraceItem::Message {
                line,
                message,
                is_reading,
            }) => {
                if is_reading {
                    session.feed_reading(line, &message);
                } else {
                    session.feed_line(line, &message);
                }
            }
            Ok(TraceItem::Problem(problem)) => problems.push(problem),
            Err(end) => error = Some((end.line, end.kind, end.message)),
        }
    }
    Told {
        verdicts: verdicts(&session),
        problems,
        summary: items.summary().clone(),
        messages: session.messages(),
        error,
    }
}

fn together(
    scanner: &Scanner,
    input: impl Read + Send,
    format: Option<Format>,
    jobs: usize,
    piece_bytes: usize,
) -> Told {
    let options = ScanOptions {
        format,
        jobs: NonZero::new(jobs).unwrap(),
        piece_bytes,
        ..ScanOptions::default()
    };
    let mut problems = Vec::new();
    let scanned = scanner.scan_input(input, &options, |event| {
        if let ScanEvent::Problem(problem) = event {
            problems.push(problem);
        }
    });
    Told {
        verdicts: verdicts(&scanned.session),
        problems,
        messages: scanned.session.messages(),
        error: scanned.error.map(|end| (end.line, end.kind, end.message)),
        summary: scanned.summary,
    }
}

fn check(input: &[u8], format: Option<Format>) {
    let scanner = scanner();
    let expected = one_by_one(&scanner, input, format);
    for (jobs, piece_bytes) in [(1, 64), (2, 1), (3, 100), (4, 1000), (2, 1 << 20)] {
        let found = together(&scanner, input, format, jobs, piece_bytes);
        assert_eq!(
            found, expected,
            "{jobs} jobs, pieces of {piece_bytes} bytes"
        );
    }
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let entry = (
        prop::option::weighted(0.8, 0u64..30),
        prop_oneof![Just("tools/call"), Just("tools/list")],
        prop_oneof![
            Just(json!({"text": "a secret"})),
            Just(json!({"text": "tokan", "size": 4})),
            Just(json!({"size": "many", "other": 1})),
            Just(json!({"text": "nothing", "size": 1, "other": null})),
        ],
    )
        .prop_map(|(sequence, operation, content)| {
            let mut entry =
                json!({"protocol": "mcp", "operation": operation, "content": content, "own": 1});
            if let Some(sequence) = sequence {
                entry["seq"] = json!(sequence);
            }
            entry.to_string().into_bytes()
        });
    prop_oneof![
        12 => entry,
        1 => Just(b"".to_vec()),
        1 => Just(b"{\"seq\": 1, \"prot".to_vec()),
        1 => Just(b"\xff\xfe".to_vec()),
        1 => Just(b"[1]".to_vec()),
        1 => Just(br#"{"proofhouse_trace": 1}"#.to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn threads_change_nothing(
        lines in prop::collection::vec(line(), 0..60),
        unknown_version in prop::option::weighted(0.2, 0usize..60),
        cut in 0usize..40,
    ) {
        let mut lines = lines;
        if let Some(at) = unknown_version.filter(|at| *at < lines.len()) {
            lines[at] = br#"{"proofhouse_trace": 9}"#.to_vec();
        }
        let mut input = lines.join(&b'\n');
        input.truncate(input.len().saturating_sub(cut));
        check(&input, Some(Format::Trace));
    }
}

#[test]
fn other_formats_are_scanned_alike() {
    let log: String = (0..200)
        .map(|n| match n % 5 {
            0 => "not json\n".to_owned(),
            1 => format!("{}\n", json!({"id": n, "result": {"text": "secret"}})),
            2 => format!(
                "[{0},{0}]\n",
                json!({"method": "tools/call", "params": {"text": "token"}})
            ),
            _ => format!(
                "{}\n",
                json!({"id": n, "method": "tools/call", "params": {"text": "secret", "size": n}})
            ),
        })
        .collect();
    check(log.as_bytes(), Some(Format::JsonRpc));
    check(log.as_bytes(), None);

    let span = |n: usize| {
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [
            {"name": "other"},
            {"attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
                {"key": "gen_ai.tool.name", "value": {"stringValue": format!("tool {n}")}},
                {"key": "gen_ai.tool.call.result", "value": {"stringValue": "secret"}},
            ]},
        ]}]}]})
    };
    let export: String = (0..100)
        .map(|n| match n % 7 {
            3 => "{}\n".to_owned(),
            _ => format!("{}\n", span(n)),
        })
        .collect();
    check(export.as_bytes(), None);
}

#[test]
fn what_ends_the_reading_costs_nothing_before_it() {
    use std::io::Write;
    let trace: String = (1..=5000)
        .map(|n| format!("{}\n", json!({"seq": n, "protocol": "mcp", "operation": "x", "content": {"text": "secret", "n": n * 7919}})))
        .collect();
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zip.write_all(trace.as_bytes()).unwrap();
    let whole = zip.finish().unwrap();
    check(&whole, None);
    let half = &whole[..whole.len() / 2];
    check(half, None);
    let told = together(&scanner(), half, None, 2, 4096);
    assert_eq!(told.error.unwrap().1, TraceReadErrorKind::Compression);
    assert!(told.messages > 1000, "{}", told.messages);
}

/// An input that fails after its first bytes.
struct Failing(&'static [u8]);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the cable was pulled"));
        }
        self.0.read(buffer)
    }
}

#[test]
fn an_input_that_fails_at_once_is_judged_as_far_as_it_goes() {
    const START: &[u8] =
        b"{\"protocol\":\"mcp\",\"operation\":\"x\",\"content\":{\"text\":\"secret\"}}\n";
    let scanner = scanner();
    // Also when the format could not be told before the failure.
    for start in [START, b"hello\n"] {
        let expected = one_by_one(&scanner, Failing(start), None);
        assert_eq!(together(&scanner, Failing(start), None, 2, 10), expected);
        let (line, kind, message) = expected.error.unwrap();
        assert_eq!((line, kind), (1, TraceReadErrorKind::Io));
        assert!(message.contains("the cable was pulled"));
        assert_eq!(expected.summary.lines, 1);
    }
}

#[test]
fn a_line_that_is_too_long_never_costs_its_neighbours() {
    let entry = |n: u64, text: &str| {
        json!({"seq": n, "protocol": "mcp", "operation": "x", "content": {"text": text}})
            .to_string()
    };
    let input = format!(
        "{}\n{}\n{}\n",
        entry(1, "secret"),
        entry(2, &"x".repeat(100_000)),
        entry(3, "secret")
    );
    let scanner = scanner();
    for jobs in [1, 2, 4] {
        let mut options = ScanOptions {
            jobs: NonZero::new(jobs).unwrap(),
            piece_bytes: 1,
            ..ScanOptions::default()
        };
        options.import.limits.max_line_bytes = 1000;
        let mut kinds = Vec::new();
        let scanned = scanner.scan_input(input.as_bytes(), &options, |event| {
            if let ScanEvent::Problem(problem) = event {
                kinds.push((problem.line, problem.kind));
            }
        });
        assert_eq!(kinds, [(2, LineErrorKind::TooLong)]);
        let evidence = &scanned.session.verdicts()[0].indicators[0].evidence;
        let lines: Vec<_> = evidence.iter().map(|evidence| evidence.line).collect();
        assert_eq!(lines, [Some(1), Some(3)]);
    }
}

#[test]
fn sessions_merge_as_if_they_were_one() {
    let scanner = scanner();
    let messages: Vec<TraceMessage> = (1..=40)
        .map(|n| {
            let content = match n % 3 {
                0 => json!({"text": format!("secret {n}"), "size": 9}),
                1 => json!({"size": "many"}),
                _ => json!({"text": "token", "other": n}),
            };
            TraceMessage {
                sequence: n,
                ..TraceMessage::new("mcp", "tools/call", content)
            }
        })
        .collect();
    let mut whole = scanner.session();
    messages.iter().for_each(|message| whole.feed(message));
    for parts in 1..6 {
        let mut sessions: Vec<_> = (0..parts).map(|_| scanner.session()).collect();
        for (n, message) in messages.iter().enumerate() {
            sessions[n % parts].feed(message);
        }
        // The order in which they are merged does not matter.
        let mut merged = sessions.pop().unwrap();
        sessions
            .into_iter()
            .for_each(|session| merged.merge(session));
        assert_eq!(verdicts(&merged), verdicts(&whole), "{parts}");
        assert_eq!(merged.messages(), 40);
    }
}

#[test]
fn feeding_can_tell_what_was_found() {
    let scanner = scanner();
    let message = TraceMessage::new(
        "mcp",
        "tools/call",
        json!({"text": "a secret tokan", "size": "many", "other": 1}),
    );
    let mut telling = scanner.session();
    let found = telling.feed_and_tell(&message);
    let mut told: Vec<_> = found
        .iter()
        .map(|found| {
            let matched = matches!(found.outcome, ScanOutcome::Matched(_));
            (found.document, found.indicator, matched)
        })
        .collect();
    told.sort_unstable();
    assert_eq!(told, [(0, 0, true), (0, 1, true), (0, 2, false)]);
    let other = TraceMessage::new("mcp", "tools/call", json!({"size": 1}));
    let told: Vec<_> = telling.feed_and_tell(&other);
    assert!(
        matches!(told.as_slice(), [found] if (found.document, found.indicator) == (1, 0)),
        "{told:?}"
    );

    let mut silent = scanner.session();
    silent.feed(&message);
    silent.feed(&other);
    assert_eq!(verdicts(&telling), verdicts(&silent));
    assert_eq!(telling.messages(), 2);
}

/// An evaluator that breaks its promise.
struct Panicking;

impl CelEvaluator for Panicking {
    fn evaluate(&self, _: &str, _: &CelContext<'_>) -> Result<Value, EvaluationError> {
        panic!("as the test asks");
    }
}

#[test]
fn a_worker_that_panics_does_not_leave_the_others_waiting() {
    let document = load(
        r#"{"oatf": "0.1", "attack": {"execution": {"mode": "mcp_server", "state": {}},
        "indicators": [{"target": "x", "expression": {"cel": "true"}}]}}"#,
    )
    .unwrap()
    .document;
    let scanner = Scanner::builder()
        .add("x", document)
        .cel(std::sync::Arc::new(Panicking))
        .build()
        .unwrap();
    let line = r#"{"protocol":"mcp","operation":"x","content":{}}"#;
    let input = format!("{line}\n").repeat(10_000);
    let options = ScanOptions {
        jobs: NonZero::new(3).unwrap(),
        piece_bytes: 100,
        ..ScanOptions::default()
    };
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        scanner.scan_input(input.as_bytes(), &options, |_| {});
    }));
    assert!(ended.is_err());
}
