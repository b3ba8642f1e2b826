//! Messages that come in pieces are judged whole: any way of cutting a text gives the same verdict, in a session, in a scan
//! with any number of threads, and in logs of others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, helpers included")]

use std::num::NonZero;

use proofhouse_detect::{
    IndicatorExplanation, LineErrorKind, MessageAssembler, ScanEvent, ScanOptions, Scanned,
    Scanner, TraceMessage,
};
use proofhouse_oatf::{Direction, load};
use proptest::prelude::*;
use serde_json::{Value, json};

fn scanner(indicators: &Value) -> Scanner {
    let document = json!({
        "oatf": "0.1",
        "attack": {
            "execution": {"mode": "ag_ui_client", "state": {"run_agent_input": {"threadId": "t", "runId": "r"}}},
            "indicators": indicators,
        },
    });
    let document = load(&document.to_string()).unwrap().document;
    Scanner::builder()
        .add("document", document)
        .build()
        .unwrap()
}

/// Indicators of every kind that can tell a text from its pieces.
fn texts() -> Scanner {
    scanner(&json!([
        {"surface": "text_message_content", "target": "delta", "pattern": {"contains": "canary"}},
        {"surface": "text_message_content", "target": "delta", "pattern": {"regex": "^can[a-z]+$"}},
        {"surface": "text_message_content", "target": "delta", "pattern": {"regex": "(?i)c.{1,3}y"},
            "x-proofhouse": {"canary": "CANARY-93b4aa10"}},
        {"target": "delta", "expression": {"cel": "has(message.delta) && size(message.delta) == 6"}},
        {"target": "delta", "expression": {"cel": "has(message.delta) && !message.delta.contains('not')"}},
        {"surface": "text_message_end", "target": "messageId", "pattern": {"contains": "m"}},
    ]))
}

fn event(sequence: u64, operation: &str, content: Value) -> TraceMessage {
    TraceMessage {
        sequence,
        direction: Some(Direction::Response),
        ..TraceMessage::new("ag_ui", operation, content)
    }
}

/// Streams of texts, each cut into pieces that come in turn.
fn streams(texts: &[Vec<String>], ended: &[bool]) -> Vec<TraceMessage> {
    let mut messages = Vec::new();
    let mut say = |operation: &str, content: Value| {
        let sequence = messages.len() as u64 + 1;
        messages.push(event(sequence, operation, content));
    };
    let longest = texts.iter().map(Vec::len).max().unwrap_or_default();
    for turn in 0..=longest {
        for (number, pieces) in texts.iter().enumerate() {
            let id = format!("m{number}");
            if let Some(piece) = pieces.get(turn) {
                say(
                    "text_message_content",
                    json!({"messageId": id, "delta": piece}),
                );
            } else if turn == pieces.len() && ended[number] {
                say("text_message_end", json!({"messageId": id}));
            }
        }
    }
    messages
}

fn lines(messages: &[TraceMessage]) -> String {
    let lines = messages
        .iter()
        .map(|message| serde_json::to_string(message).unwrap() + "\n");
    lines.collect()
}

fn scan<'s>(
    scanner: &'s Scanner,
    trace: &str,
    jobs: usize,
    piece_bytes: usize,
) -> (Scanned<'s>, Vec<(u64, LineErrorKind)>) {
    let options = ScanOptions {
        jobs: NonZero::new(jobs).unwrap(),
        piece_bytes,
        ..ScanOptions::default()
    };
    let mut problems = Vec::new();
    let scanned = scanner.scan_input(trace.as_bytes(), &options, |event| {
        if let ScanEvent::Problem(problem) = event {
            problems.push((problem.line, problem.kind));
        }
    });
    (scanned, problems)
}

/// Everything that verdicts say, without the time they were made at.
fn said(session: &proofhouse_detect::ScanSession<'_>) -> Value {
    let mut value = serde_json::to_value(session.verdicts()).unwrap();
    for verdict in value.as_array_mut().unwrap() {
        verdict["attack"]["timestamp"].take();
    }
    value
}

/// What each indicator came to, whatever the numbers of the messages are.
fn results(session: &proofhouse_detect::ScanSession<'_>) -> Vec<(String, u64, u64)> {
    let verdicts = session.verdicts();
    let indicators = verdicts[0].indicators.iter();
    indicators
        .map(|report| {
            (
                report.result.as_str().to_owned(),
                report.matches,
                report.errors,
            )
        })
        .collect()
}

#[test]
fn a_text_in_pieces_is_found_and_evidence_names_them() {
    let scanner = texts();
    let pieces = ["my ca", "na", "ry is"].map(str::to_owned).to_vec();
    let messages = streams(&[pieces], &[true]);
    let mut session = scanner.session();
    for (message, line) in messages.iter().zip(11..) {
        session.feed_line(line, message);
    }
    let verdicts = session.verdicts();
    let evidence = &verdicts[0].indicators[0].evidence[0];
    assert_eq!(
        (evidence.path.as_str(), evidence.text.as_str()),
        ("delta", "canary")
    );
    assert_eq!((evidence.sequence, evidence.line), (1, Some(11)));
    let pieces = evidence.pieces.unwrap();
    assert_eq!(
        (pieces.count, pieces.last_sequence, pieces.last_line),
        (3, 3, Some(13))
    );
    assert_eq!(evidence.messages(), "messages 1 to 3");
    assert_eq!(session.messages(), 4, "what is on the wire is counted");
}

#[test]
fn what_was_cut_off_is_judged_and_goes_on() {
    let scanner = texts();
    let mut session = scanner.session();
    let piece = |n, delta| {
        event(
            n,
            "text_message_content",
            json!({"messageId": "m", "delta": delta}),
        )
    };
    assert_eq!(session.feed_and_tell(&piece(1, "a cana")).len(), 0);
    assert_eq!(results(&session)[0].0, "not_matched");
    assert_eq!(session.feed_and_tell(&piece(2, "ry")).len(), 0);
    assert_eq!(results(&session)[0], ("matched".to_owned(), 1, 0));
    assert_eq!(
        results(&session)[0],
        ("matched".to_owned(), 1, 0),
        "asking changes nothing"
    );
    let found = session.feed_and_tell(&event(3, "run_finished", json!({})));
    assert!(
        found.iter().any(|found| found.indicator == 0),
        "it ends with the run"
    );
    assert_eq!(results(&session)[0], ("matched".to_owned(), 1, 0));
    session.feed(&piece(4, "canary"));
    let found = session.finish();
    assert!(found.iter().any(|found| found.indicator == 0));
    assert_eq!(results(&session)[0], ("matched".to_owned(), 2, 0));
}

#[test]
fn an_explanation_says_what_the_session_says() {
    let scanner = texts();
    let pieces = ["cana", "ry"].map(str::to_owned).to_vec();
    let mut explanation = IndicatorExplanation::new(&scanner, 0, 0, 5).unwrap();
    let mut assembler = MessageAssembler::default();
    let mut explain = |whole: proofhouse_detect::WholeMessage<'_>| {
        explanation.feed_line(whole.line.unwrap(), whole.message);
    };
    for message in streams(&[pieces], &[false]) {
        assembler.feed(Some(message.sequence), &message, &mut explain);
    }
    assembler.finish(&mut explain);
    assert_eq!(explanation.reason(), "1 of 1 kept message matched");
}

#[test]
fn another_reading_of_a_piece_is_judged_by_itself() {
    let scanner = texts();
    let trace = r#"{"seq":1,"protocol":"ag_ui","operation":"text_message_content","direction":"response","content":{"messageId":"m","delta":"a canary","delta":"ca"}}
{"seq":2,"protocol":"ag_ui","operation":"text_message_content","direction":"response","content":{"messageId":"m","delta":"nary"}}
"#;
    for jobs in [1, 2] {
        let (scanned, problems) = scan(&scanner, trace, jobs, 1);
        assert_eq!(problems, [(1, LineErrorKind::DuplicateKey)]);
        assert_eq!(
            results(&scanned.session)[0],
            ("matched".to_owned(), 2, 0),
            "{jobs}"
        );
    }
}

#[test]
fn logs_of_json_rpc_are_put_together() {
    let scanner = {
        let document = json!({
            "oatf": "0.1",
            "attack": {
                "execution": {"mode": "a2a_client", "state": {"actions": []}},
                "indicators": [
                    {"surface": "task/artifact", "target": "artifact.parts[*].text", "pattern": {"contains": "canary"}},
                    {"surface": "message/stream", "target": "artifact.parts[*].text", "pattern": {"contains": "canary"}},
                    {"surface": "task/status", "target": "status.message.parts[*].text", "pattern": {"contains": "parrot"}},
                    {"protocol": "mcp", "surface": "notifications/progress", "target": "message", "pattern": {"contains": "canary"}},
                    {"protocol": "mcp", "surface": "sampling/createMessage", "target": "content[*].text", "pattern": {"contains": "canary"}},
                ],
            },
        });
        let document = load(&document.to_string()).unwrap().document;
        Scanner::builder()
            .add("document", document)
            .build()
            .unwrap()
    };
    let answer = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let artifact = |text: &str, append: bool| {
        answer(
            json!({"artifactUpdate": {"taskId": "t", "append": append, "artifact": {"artifactId": "a", "parts": [{"text": text}]}}}),
        )
    };
    let status = |state: &str, text: &str| {
        answer(
            json!({"statusUpdate": {"taskId": "t", "status": {"state": state,
            "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]}}}}),
        )
    };
    let progress = |n: u64, text: &str| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": n, "message": text}});
    let sampled = json!([{"type": "text", "text": "can"}, {"type": "text", "text": "ary"}]);
    let log = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": {}}}),
        artifact("a can", false),
        status("TASK_STATE_WORKING", "a par"),
        artifact("ary", true),
        status("TASK_STATE_WORKING", "rot"),
        progress(1, "can"),
        progress(2, "ary"),
        json!({"jsonrpc": "2.0", "id": 2, "method": "sampling/createMessage", "params": {"messages": []}}),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"role": "assistant", "content": sampled}}),
    ];
    let log: String = log.iter().map(|line| line.to_string() + "\n").collect();
    for jobs in [1, 3] {
        let (scanned, _) = scan(&scanner, &log, jobs, 1);
        let found: Vec<_> = results(&scanned.session)
            .into_iter()
            .map(|(_, matches, _)| matches)
            .collect();
        assert_eq!(found, [1; 5], "{jobs}");
    }
}

#[test]
fn a_text_without_end_is_judged_in_parts_and_said_so() {
    let scanner = scanner(&json!([{"target": "delta", "pattern": {"contains": "canary"}}]));
    let mut messages: Vec<TraceMessage> = (1..=20)
        .map(|n| {
            event(
                n,
                "text_message_content",
                json!({"messageId": "m", "delta": "x".repeat(1 << 20) + "can"}),
            )
        })
        .collect();
    messages.push(event(
        21,
        "text_message_content",
        json!({"messageId": "m", "delta": "ary"}),
    ));
    let trace = lines(&messages);
    let (one, problems) = scan(&scanner, &trace, 1, 1 << 20);
    let in_parts = (8, LineErrorKind::InParts);
    assert_eq!(problems[0], in_parts);
    assert!(problems.len() < 5, "{problems:?}");
    assert_eq!(
        one.summary.count(LineErrorKind::InParts),
        problems.len() as u64
    );
    assert_eq!((one.summary.skipped(), results(&one.session)[0].1), (0, 1));
    let (several, told) = scan(&scanner, &trace, 3, 1 << 20);
    assert_eq!(
        (told, said(&several.session)),
        (problems, said(&one.session))
    );
    assert_eq!(several.summary, one.summary);
}

/// The pieces of a text that is cut at these places.
fn cut(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut at: Vec<usize> = cuts
        .iter()
        .map(|cut| text.floor_char_boundary(cut % (text.len() + 1)))
        .collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2)
        .map(|ends| text[ends[0]..ends[1]].to_owned())
        .collect()
}

fn a_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[canry ]{0,12}",
        Just("canary".to_owned()),
        Just("this is not a canary".to_owned()),
        Just("see CANARY-93b4aa10".to_owned()),
        Just("é🦀 Q0FOQVJZLTkzYjRhYTEw".to_owned()),
    ]
}

proptest! {
    #[test]
    fn any_way_of_cutting_gives_the_same_verdict(
        texts_and_cuts in prop::collection::vec((a_text(), prop::collection::vec(0_usize..40, 0..10), prop::bool::ANY), 1..5),
        jobs in 2_usize..5,
        piece_bytes in 1_usize..600,
    ) {
        let scanner = texts();
        let ended: Vec<bool> = texts_and_cuts.iter().map(|(.., ended)| *ended).collect();
        let whole: Vec<_> = texts_and_cuts.iter().map(|(text, ..)| vec![text.clone()]).collect();
        let pieces: Vec<_> = texts_and_cuts.iter().map(|(text, cuts, _)| cut(text, cuts)).collect();
        let judged = |messages: &[TraceMessage]| {
            let mut session = scanner.session();
            messages.iter().zip(1..).for_each(|(message, line)| session.feed_line(line, message));
            (results(&session), said(&session))
        };
        let (expected, _) = judged(&streams(&whole, &ended));
        let messages = streams(&pieces, &ended);
        let (found, said_of_pieces) = judged(&messages);
        prop_assert_eq!(&found, &expected);
        // Threads change nothing, wherever the input is cut.
        let trace = lines(&messages);
        for jobs in [1, jobs] {
            let (scanned, _) = scan(&scanner, &trace, jobs, piece_bytes);
            prop_assert_eq!(said(&scanned.session), said_of_pieces.clone());
        }
    }
}

#[test]
fn arguments_are_judged_as_what_they_mean() {
    let scanner = scanner(&json!([
        {"surface": "tool_call_args", "target": "delta", "pattern": {"contains": "collector.example"}},
        {"surface": "tool_call_args", "target": "delta",
            "expression": {"cel": "message.delta.matches('collector[.]example')"}},
        {"surface": "tool_call_args", "target": "delta", "pattern": {"contains": "u002e"}},
        {"surface": "tool_call_args", "target": "delta", "pattern": {"exists": true}},
    ]));
    let mut session = scanner.session();
    let escaped = r#"{"url": "https://collector\u002eexample/"}"#;
    for (number, piece) in (1..).zip([&escaped[..30], &escaped[30..]]) {
        let content = json!({"toolCallId": "c", "toolCallName": "open_link", "delta": piece});
        session.feed(&event(number, "tool_call_args", content));
    }
    session.feed(&event(3, "tool_call_end", json!({"toolCallId": "c"})));
    let matches: Vec<u64> = session.verdicts()[0]
        .indicators
        .iter()
        .map(|report| report.matches)
        .collect();
    assert_eq!(
        matches,
        [1, 1, 1, 1],
        "each once, as it came or as it is read"
    );
}

#[test]
fn a2a_parts_of_every_kind_are_judged() {
    let cel = "(has(message.parts) ? message.parts : message.artifacts[0].parts)\
        .exists(part, has(part.text) && part.text.contains('list_cities'))";
    let document = json!({"oatf": "0.1", "attack": {
        "execution": {"mode": "a2a_client", "state": {"actions": []}},
        "indicators": [{"surface": "message/send", "direction": "response", "target": "", "expression": {"cel": cel}}]}});
    let document = load(&document.to_string()).unwrap().document;
    let scanner = Scanner::builder().add("d", document).build().unwrap();
    for (content, expected) in [
        (
            json!({"parts": [{"kind": "text", "text": "Mild."}]}),
            "not_exploited",
        ),
        (
            json!({"parts": [{"kind": "data", "data": {"tools": ["list_cities"]}}]}),
            "exploited",
        ),
        // Base64 of `Tools: list_cities`.
        (
            json!({"parts": [{"kind": "file", "file": {"bytes": "VG9vbHM6IGxpc3RfY2l0aWVz"}}]}),
            "exploited",
        ),
        (
            json!({"parts": [{"kind": "file", "file": {"uri": "https://x.example/list_cities"}}]}),
            "exploited",
        ),
        (
            json!({"artifacts": [{"name": "list_cities", "parts": [{"kind": "text", "text": "Mild."}]}]}),
            "exploited",
        ),
        (
            json!({"artifacts": [{"description": "list_cities", "parts": [{"kind": "text", "text": "Mild."}]}]}),
            "exploited",
        ),
    ] {
        let mut message = TraceMessage::new("a2a", "message/send", content.clone());
        message.direction = Some(Direction::Response);
        let mut session = scanner.session();
        session.feed(&message);
        let verdicts = session.verdicts();
        assert_eq!(verdicts[0].attack.result.as_str(), expected, "{content}");
    }
}
