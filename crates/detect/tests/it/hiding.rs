//! Nothing hides behind JSON that strict parsers refuse, or that they read in one of several ways.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proofhouse_detect::{
    Format, ImportOptions, LineErrorKind, ScanEvent, ScanOptions, Scanner, TraceItem, open,
};
use std::num::NonZero;

/// One message of each format whose content, or attribute, is this JSON.
fn in_every_format(content: &str) -> [(Format, Vec<u8>); 4] {
    let rpc = format!(r#"{{"jsonrpc":"2.0","method":"x","params":{content}}}"#);
    let span = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"name":"execute_tool a","odd":0,"attributes":[{{"key":"gen_ai.tool.call.arguments","value":{{"any":{content}}}}}]}},{{"name":"execute_tool after"}}]}}]}}]}}"#
    );
    let trace = format!(r#"{{"protocol":"mcp","operation":"x","content":{content}}}"#);
    [
        (Format::Trace, trace.into_bytes()),
        (Format::JsonRpc, rpc.clone().into_bytes()),
        (
            Format::JsonRpc,
            format!("2026-01-02T03:04:05Z --> {rpc} (2 ms)").into_bytes(),
        ),
        (Format::Otlp, span.into_bytes()),
    ]
}

/// All contents as one text, and the kinds of the problems.
fn read(format: Format, input: &[u8]) -> (String, Vec<LineErrorKind>) {
    let (told, mut source) = open(input, None, &ImportOptions::default());
    assert_eq!(told, format, "{}", String::from_utf8_lossy(input));
    let (mut text, mut kinds) = (String::new(), Vec::new());
    for item in source.by_ref() {
        match item.unwrap() {
            TraceItem::Message { message, .. } => text.push_str(&message.content.to_string()),
            TraceItem::Problem(problem) => kinds.push(problem.kind),
        }
    }
    assert_eq!(source.summary().skipped(), 0, "{kinds:?}");
    (text, kinds)
}

#[test]
fn odd_json_is_mended_and_told() {
    let deep = format!(
        "[{}{{\"k\":\"CANARY\"}}{}]",
        "[".repeat(400),
        "]".repeat(400)
    );
    for content in [
        r#"{"a":"CANARY","b":"\ud83d"}"#,
        r#"{"a":"\ude00CANARY\ud83d\ud83d"}"#,
        r#"{"a":"CANARY","b":1e400}"#,
        r#"{"a":"CANARY","b":[-1e400,NaN,-Infinity]}"#,
        "{\"a\":\"CANARY\t\"}",
        r#"{"a":"CANARY\x"}"#,
        &deep,
    ] {
        for (format, input) in in_every_format(content) {
            let (text, kinds) = read(format, &input);
            assert!(text.contains("CANARY"), "{format} {content}: {text}");
            assert_eq!(kinds, [LineErrorKind::Repaired], "{format} {content}");
            // What comes after it in the same document is not lost either.
            assert_eq!(text.contains("after"), format == Format::Otlp);
        }
    }
    for (format, mut input) in in_every_format(r#"{"a":"CANARY@"}"#) {
        let at = input.iter().position(|byte| *byte == b'@').unwrap();
        input[at] = 0xff;
        let (text, kinds) = read(format, &input);
        assert!(text.contains("CANARY\u{fffd}"), "{format}: {text}");
        assert_eq!(kinds, [LineErrorKind::Repaired], "{format}");
    }
}

#[test]
fn a_key_that_comes_twice_hides_nothing() {
    for content in [
        r#"{"a":"CANARY","a":"fine"}"#,
        r#"{"a":"fine","a":"CANARY"}"#,
        r#"{"a":"fine","a":"CANARY","a":"fine"}"#,
        r#"{"b":[{"a":{"c":"fine","c":"CANARY"},"a":7}]}"#,
    ] {
        for (format, input) in in_every_format(content) {
            let (text, kinds) = read(format, &input);
            assert!(text.contains("CANARY"), "{format} {content}: {text}");
            assert_eq!(kinds, [LineErrorKind::DuplicateKey], "{format} {content}");
        }
    }
    // In the envelope and the wrapper of a log, and in the list of attributes of a span.
    for (input, format) in [
        (
            r#"{"jsonrpc":"2.0","method":"x","params":{"a":"CANARY"},"params":{}}"#,
            Format::JsonRpc,
        ),
        (
            r#"{"msg":{"method":"x","params":{"a":"CANARY"}},"msg":{"method":"x"}}"#,
            Format::JsonRpc,
        ),
        (
            r#"{"msg":"{\"method\":\"x\",\"params\":[\"CANARY\"],\"params\":[]}"}"#,
            Format::JsonRpc,
        ),
        (
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"execute_tool a","attributes":[{"key":"gen_ai.tool.call.arguments","value":{"stringValue":"CANARY"}},{"key":"gen_ai.tool.call.arguments","value":{"stringValue":"fine"}}]}]}]}]}"#,
            Format::Otlp,
        ),
        (
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"execute_tool a","attributes":[{"key":"gen_ai.tool.call.arguments","value":{"stringValue":"{\"a\":\"CANARY\",\"a\":1}"}}]}]}]}]}"#,
            Format::Otlp,
        ),
        (
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"chat","attributes":[{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"parts\":[{\"type\":\"tool_call\",\"name\":\"x\",\"arguments\":\"{\\\"a\\\":\\\"CANARY\\\",\\\"a\\\":1}\"}]}]"}}]}]}]}]}"#,
            Format::Otlp,
        ),
    ] {
        let (text, kinds) = read(format, input.as_bytes());
        assert!(text.contains("CANARY"), "{input}: {text}");
        assert_eq!(kinds, [LineErrorKind::DuplicateKey], "{input}");
    }
}

#[test]
fn the_usual_reading_is_the_one_that_is_answered() {
    let log = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}
{"jsonrpc":"2.0","id":1,"result":{"x":1},"result":{"x":2}}
"#;
    let (text, kinds) = read(Format::JsonRpc, log);
    assert_eq!(
        text,
        r#"{"name":"a"}{"name":"b"}{"x":1,"name":"b"}{"x":2,"name":"b"}"#
    );
    assert_eq!(kinds, [LineErrorKind::DuplicateKey; 2]);
}

#[test]
fn a_message_that_is_two_is_judged_as_both() {
    for log in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{"a":"CANARY"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":["CANARY"],"error":{}}"#,
        r#"{"jsonrpc":"2.0","method":"ping","error":{"message":"CANARY"}}"#,
    ] {
        let (text, kinds) = read(Format::JsonRpc, log.as_bytes());
        assert!(text.contains("CANARY"), "{log}: {text}");
        assert!(kinds.is_empty(), "{log}: {kinds:?}");
    }
    // A null is only how some say that there is none.
    for (log, expected) in [
        (r#"{"id":1,"result":{"a":1},"error":null}"#, r#"{"a":1}"#),
        (
            r#"{"id":1,"result":null,"error":{"code":1}}"#,
            r#"{"code":1}"#,
        ),
        (r#"{"id":1,"result":null}"#, "null"),
        (r#"{"id":1,"method":"x","params":[1],"result":null}"#, "[1]"),
    ] {
        assert_eq!(read(Format::JsonRpc, log.as_bytes()).0, expected, "{log}");
    }
}

#[test]
fn more_readings_than_can_be_judged_are_not_silent() {
    let many = format!(r#"{{{}}}"#, vec![r#""a":1"#; 20].join(","));
    for (_, input) in in_every_format(&many) {
        let (_, source) = open(&input[..], None, &ImportOptions::default());
        let kinds: Vec<_> = source
            .filter_map(|item| match item.unwrap() {
                TraceItem::Problem(problem) => Some(problem.kind),
                TraceItem::Message { .. } => None,
            })
            .collect();
        assert_eq!(
            kinds,
            [LineErrorKind::DuplicateKey, LineErrorKind::NotAMessage]
        );
    }
}

#[test]
fn threads_find_the_same() {
    let document = proofhouse_oatf::load(
        "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {tools: []}}\n  indicators: [{target: a, pattern: {contains: CANARY}}]\n",
    );
    let scanner = Scanner::builder().add("canary", document.unwrap().document);
    let scanner = scanner.build().unwrap();
    let lines: Vec<Vec<u8>> = [
        r#"{"a":"CANARY\ud83d"}"#,
        r#"{"a":"CANARY","a":"fine"}"#,
        r#"{"a":"fine"}"#,
        r#"{"a":"CANARY","b":1e400,"b":2}"#,
    ]
    .into_iter()
    .map(|content| in_every_format(content)[0].1.clone())
    .collect();
    let input = lines.join(&b'\n');
    let found: Vec<_> = [1, 3]
        .map(|jobs| {
            let options = ScanOptions {
                jobs: NonZero::new(jobs).unwrap(),
                piece_bytes: 64,
                ..ScanOptions::default()
            };
            let mut problems = Vec::new();
            let scanned = scanner.scan_input(&input[..], &options, |event| {
                if let ScanEvent::Problem(problem) = event {
                    problems.push(problem);
                }
            });
            let lines: Vec<_> = scanned.session.verdicts()[0].indicators[0]
                .evidence
                .iter()
                .map(|evidence| evidence.line)
                .collect();
            (problems, scanned.summary, lines)
        })
        .into();
    assert_eq!(found[0], found[1]);
    let (problems, summary, lines) = &found[0];
    assert_eq!(*lines, [Some(1), Some(2), Some(4), Some(4)]);
    assert_eq!((summary.messages, summary.warnings()), (6, 4));
    assert_eq!(problems.len(), 4);
}
