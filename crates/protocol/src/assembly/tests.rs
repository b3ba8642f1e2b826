//! Any way of cutting a text gives the same message, and nothing that a sender does makes it be lost or held forever.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

type Whole = AssembledMessage<&'static str, u64>;

/// Takes messages of an agent; those that are judged by themselves are left out.
fn assemble(limits: AssemblyLimits, protocol: &str, messages: &[(&str, Value)]) -> Vec<Whole> {
    let mut assembler = Assembler::new(limits);
    let mut whole = Vec::new();
    for ((operation, content), number) in messages.iter().zip(1..) {
        let message = WireMessage {
            protocol,
            operation,
            is_request: false,
            content,
        };
        if let Some(role) = StreamRole::of(&message) {
            assembler.take(&"lane", &message, role, &number, &mut |message| {
                whole.push(message);
            });
        }
    }
    assembler.finish(&mut |message| whole.push(message));
    assert_eq!((assembler.bytes, assembler.open.len()), (0, 0));
    whole
}

fn contents(protocol: &str, messages: &[(&str, Value)]) -> Vec<Value> {
    let whole = assemble(AssemblyLimits::default(), protocol, messages);
    whole.into_iter().map(|message| message.content).collect()
}

fn text(id: &str, delta: &str) -> (&'static str, Value) {
    let content = json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta});
    ("text_message_content", content)
}

fn deltas(found: &[Value]) -> Vec<&str> {
    found
        .iter()
        .map(|content| content["delta"].as_str().unwrap())
        .collect()
}

#[test]
fn messages_are_told_apart_by_their_ids() {
    let found = contents(
        "ag_ui",
        &[
            ("run_started", json!({})),
            text("a", "on"),
            text("b", "tw"),
            text("a", "e"),
            (
                "state_delta",
                json!({"delta": [{"op": "add", "path": "/x", "value": 1}]}),
            ),
            text("b", "o"),
            ("text_message_end", json!({"messageId": "b"})),
            (
                "state_delta",
                json!({"delta": [{"op": "remove", "path": "/x"}]}),
            ),
            ("run_finished", json!({})),
        ],
    );
    assert_eq!(deltas(&found[..2]), ["two", "one"]);
    assert_eq!(found[2]["delta"].as_array().unwrap().len(), 2);
    assert_eq!(found.len(), 3);
}

#[test]
fn a_text_goes_on_after_its_end_and_a_call_begins_anew() {
    let end = ("text_message_end", json!({"messageId": "a"}));
    let again = contents(
        "ag_ui",
        &[text("a", "CANA"), end.clone(), text("a", "RY"), end.clone()],
    );
    assert_eq!(deltas(&again), ["CANA", "CANARY"]);
    let next_run = ("run_started", json!({}));
    let other = contents(
        "ag_ui",
        &[
            text("a", "CANA"),
            end.clone(),
            next_run,
            text("a", "RY"),
            end,
        ],
    );
    assert_eq!(deltas(&other), ["CANA", "RY"]);

    let start = |name: &str| {
        (
            "tool_call_start",
            json!({"toolCallId": "c", "toolCallName": name}),
        )
    };
    let args = |name: &str, delta: &str| {
        (
            "tool_call_args",
            json!({"toolCallId": "c", "toolCallName": name, "delta": delta}),
        )
    };
    let calls = contents(
        "ag_ui",
        &[
            start("one"),
            args("one", "{"),
            args("one", "}"),
            start("two"),
            args("two", "[]"),
        ],
    );
    assert_eq!(deltas(&calls), ["{}", "[]"]);
    assert_eq!(calls[1]["toolCallName"], "two");
}

#[test]
fn chunks_without_ids_go_on_and_keep_the_name_of_the_tool() {
    let found = contents(
        "ag_ui",
        &[
            (
                "tool_call_chunk",
                json!({"toolCallId": "c", "toolCallName": "pay", "delta": "{"}),
            ),
            (
                "tool_call_start",
                json!({"toolCallId": "c", "toolCallName": "pay"}),
            ),
            ("tool_call_args", json!({"toolCallId": "c", "delta": "{"})),
            ("tool_call_chunk", json!({"delta": "}"})),
            ("tool_call_args", json!({"toolCallId": "c", "delta": "}"})),
            ("tool_call_end", json!({"toolCallId": "c"})),
            ("thinking_text_message_content", json!({"delta": "hm"})),
            ("thinking_text_message_content", json!({"delta": "m"})),
            ("thinking_text_message_end", json!({})),
            (
                "thinking_text_message_content",
                json!({"delta": "no text", "messageId": 7}),
            ),
            (
                "text_message_content",
                json!({"messageId": "m", "delta": {"not": "a text"}}),
            ),
        ],
    );
    assert_eq!(deltas(&found), ["{}", "{}", "hmm", "no text"]);
    assert_eq!(
        found[1]["toolCallName"], "pay",
        "it stands in the first chunk only"
    );
}

fn artifact(id: &str, text: &str, append: bool, last: bool) -> (&'static str, Value) {
    let parts = json!([{"kind": "text", "text": text}]);
    let content = json!({"kind": "artifact-update", "taskId": "t", "artifact": {"artifactId": id, "parts": parts},
        "append": append, "lastChunk": last});
    ("task/artifact", content)
}

fn status(state: &str, id: &str, text: &str) -> (&'static str, Value) {
    let message =
        json!({"messageId": id, "role": "agent", "parts": [{"kind": "text", "text": text}]});
    let content = json!({"kind": "status-update", "taskId": "t", "status": {"state": state, "message": message}});
    ("message/stream", content)
}

#[test]
fn artifacts_and_status_messages_of_a2a() {
    let mut named = artifact("a", "CA", false, false);
    named.1["artifact"]["name"] = "report".into();
    let found = contents(
        "a2a",
        &[
            named,
            artifact("b", "other", false, false),
            artifact("a", "NA", true, false),
            status("working", "m", "look"),
            artifact("a", "RY", true, true),
            artifact("b", "replaced", false, false),
            status("completed", "m", "ing"),
        ],
    );
    let texts: Vec<&Value> = found
        .iter()
        .map(|content| {
            let parts = content
                .pointer("/artifact/parts")
                .or(content.pointer("/status/message/parts"));
            &parts.unwrap()[0]["text"]
        })
        .collect();
    // The state changed within one message, so it is judged as it was before, too.
    assert_eq!(texts, ["CANARY", "other", "look", "looking", "replaced"]);
    assert_eq!(found[0]["artifact"]["name"], "report");
    assert_eq!(found[0]["lastChunk"], true);
    let parts = found[0]["artifact"]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 1);
}

#[test]
fn parts_of_other_kinds_stay_where_they_are() {
    let mut data = artifact("a", "", true, false);
    data.1["artifact"]["parts"] =
        json!([{"kind": "data", "data": {"n": 1}}, {"kind": "text", "text": "c"}]);
    let found = contents(
        "a2a",
        &[
            artifact("a", "a", false, false),
            artifact("a", "b", true, false),
            data,
            artifact("a", "d", true, true),
        ],
    );
    let parts = json!([{"kind": "text", "text": "ab"}, {"kind": "data", "data": {"n": 1}}, {"kind": "text", "text": "cd"}]);
    assert_eq!(found[0]["artifact"]["parts"], parts);
}

#[test]
fn progress_and_sampling_of_mcp() {
    let progress = |token: Value, n: u64, message: &str| {
        let content =
            json!({"progressToken": token, "progress": n, "total": 2, "message": message});
        ("notifications/progress", content)
    };
    let found = contents(
        "mcp",
        &[
            progress(json!(7), 1, "CANA"),
            progress(json!("7b"), 1, "x"),
            progress(json!(7), 2, "RY"),
        ],
    );
    let texts: Vec<&Value> = found.iter().map(|content| &content["message"]).collect();
    assert_eq!(texts, ["CANARY", "x"]);

    let sampled = |content: Value| {
        let message = WireMessage {
            protocol: "mcp",
            operation: "sampling/createMessage",
            is_request: false,
            content: &content,
        };
        StreamRole::of(&message).map(|role| match role {
            StreamRole::Joined(content) => content,
            other => panic!("{other:?}"),
        })
    };
    let block = |text: &str| json!({"type": "text", "text": text});
    let cut = json!({"role": "assistant", "content": [block("CANA"), block("RY"), {"type": "image"}, block("x")]});
    let whole =
        json!({"role": "assistant", "content": [block("CANARY"), {"type": "image"}, block("x")]});
    assert_eq!(sampled(cut.clone()), Some(whole.clone()));
    assert_eq!(
        sampled(json!({"messages": [cut]})),
        Some(json!({"messages": [whole]}))
    );
    assert_eq!(sampled(json!({"content": block("whole")})), None);
}

#[test]
fn what_pieces_say_besides_their_text_is_not_lost() {
    let with = |delta: &str, tag: &str| {
        (
            "text_message_content",
            json!({"messageId": "m", "delta": delta, "tag": tag, "timestamp": delta}),
        )
    };
    let found = contents(
        "ag_ui",
        &[with("a", "CANARY"), with("b", "CANARY"), with("c", "other")],
    );
    assert_eq!(deltas(&found), ["ab", "abc"]);
    assert_eq!(found[0]["tag"], "CANARY");
    let many: Vec<_> = (0..100).map(|n| with("x", &n.to_string())).collect();
    let found = contents("ag_ui", &many);
    assert!(found.len() <= MAX_HAND_OUTS as usize + 1, "{}", found.len());
    assert_eq!(found.last().unwrap()["delta"], "x".repeat(100));
}

#[test]
fn a_message_that_is_too_long_is_handed_out_in_parts_that_overlap() {
    let limits = AssemblyLimits {
        max_message_bytes: 4_000,
        overlap_bytes: 100,
        ..AssemblyLimits::default()
    };
    let long: String = (0..5_000).map(|n| format!("{n:04} ")).collect();
    let pieces: Vec<_> = long
        .as_bytes()
        .chunks(7)
        .map(|piece| text("m", std::str::from_utf8(piece).unwrap()))
        .collect();
    let found = assemble(limits, "ag_ui", &pieces);
    assert!(found.len() > 5 && found[0].is_part && !found.last().unwrap().is_part);
    for n in 0..5_000 {
        let word = format!("{n:04} ");
        let has = |message: &Whole| message.content["delta"].as_str().unwrap().contains(&word);
        assert!(found.iter().any(has), "{word}");
    }
    let handed_out: usize = found
        .iter()
        .map(|m| m.content["delta"].as_str().unwrap().len())
        .sum();
    assert!(handed_out < 2 * long.len(), "{handed_out}");
}

#[test]
fn many_open_messages_are_handed_out_before_they_are_let_go() {
    let limits = AssemblyLimits {
        max_messages: 100,
        max_bytes: 100_000,
        ..AssemblyLimits::default()
    };
    let mut messages: Vec<_> = (0..1_000).map(|n| text(&n.to_string(), "x")).collect();
    messages.extend((0..50).map(|n| text(&format!("long {n}"), &"y".repeat(5_000))));
    let found = assemble(limits, "ag_ui", &messages);
    assert_eq!(found.len(), 1_050, "each once");
    assert!(found.iter().any(|message| message.is_part));
}

#[test]
fn going_on_forever_does_not_cost_forever() {
    let mut messages = vec![text("m", &"long ".repeat(2_000))];
    for _ in 0..1_000 {
        messages.push(("text_message_end", json!({"messageId": "m"})));
        messages.push(text("m", "x"));
    }
    let found = contents("ag_ui", &messages);
    let bytes: usize = deltas(&found).iter().map(|delta| delta.len()).sum();
    assert!(bytes < 10 * 10_000 + 10_000, "{bytes}");
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

proptest! {
    #[test]
    fn any_way_of_cutting_gives_the_same(whole in ".{0,60}", cuts in prop::collection::vec(0_usize..100, 0..8), form in 0..6) {
        let piece = |text: &str, first: bool, last: bool| match form {
            0 => ("ag_ui", "text_message_content", json!({"messageId": "m", "delta": text})),
            1 => ("ag_ui", "tool_call_args", json!({"toolCallId": "m", "toolCallName": "t", "delta": text})),
            2 => ("ag_ui", "reasoning_message_chunk", json!({"messageId": "m", "delta": text})),
            3 => ("mcp", "notifications/progress", json!({"progressToken": 1, "message": text})),
            4 => ("a2a", "task/artifact", artifact("a", text, !first, last).1),
            _ => ("a2a", "message/stream", status("working", "m", text).1),
        };
        let of = |pieces: &[String]| {
            let last = pieces.len() - 1;
            let messages: Vec<_> = pieces.iter().enumerate().map(|(n, text)| piece(text, n == 0, n == last)).collect();
            let protocol = messages[0].0;
            let messages: Vec<_> = messages.into_iter().map(|(_, operation, content)| (operation, content)).collect();
            let mut found = contents(protocol, &messages);
            for content in &mut found {
                // Whether a piece is the first of several is told of the piece, not of the text.
                if let Some(map) = content.as_object_mut() {
                    map.remove("append");
                }
            }
            found
        };
        prop_assert_eq!(of(&cut(&whole, &cuts)), of(&[whole]));
    }

    #[test]
    fn nothing_panics_or_is_held(
        events in prop::collection::vec((0..17_usize, 0..4_usize, 0..40_usize, prop::bool::ANY), 0..60),
        limit in 50..2_000_usize,
    ) {
        const OPERATIONS: [(&str, &str); 17] = [
            ("ag_ui", "text_message_start"), ("ag_ui", "text_message_content"), ("ag_ui", "text_message_end"),
            ("ag_ui", "text_message_chunk"), ("ag_ui", "tool_call_start"), ("ag_ui", "tool_call_args"),
            ("ag_ui", "tool_call_end"), ("ag_ui", "tool_call_chunk"), ("ag_ui", "state_delta"),
            ("ag_ui", "run_started"), ("ag_ui", "run_finished"), ("ag_ui", "thinking_text_message_content"),
            ("a2a", "message/stream"), ("a2a", "task/artifact"), ("a2a", "task/status"),
            ("mcp", "notifications/progress"), ("mcp", "sampling/createMessage"),
        ];
        let mut assembler = Assembler::new(AssemblyLimits {
            max_message_bytes: limit,
            max_bytes: 4 * limit,
            max_messages: 5,
            overlap_bytes: 10,
        });
        let mut brought = 0;
        let mut handed_out = 0;
        for (operation, id, length, flag) in events {
            let (protocol, operation) = OPERATIONS[operation];
            let text = "é".repeat(length);
            let id = ["", "a", "b", "c"][id];
            let parts = json!([{"text": text}]);
            let content = json!({
                "messageId": id, "toolCallId": id, "taskId": id, "progressToken": id, "delta": text, "message": text,
                "append": flag, "lastChunk": flag, "final": flag, "artifact": {"artifactId": id, "parts": parts},
                "status": {"state": if flag { "completed" } else { "working" }, "message": {"messageId": id, "parts": parts}},
            });
            let message = WireMessage { protocol, operation, is_request: false, content: &content };
            if let Some(role) = StreamRole::of(&message) {
                if let StreamRole::Piece(_) = role {
                    brought += 1;
                }
                assembler.take(&protocol, &message, role, &0, &mut |_| handed_out += 1);
            }
            let held: usize = assembler.open.values().map(|open| open.bytes).sum();
            prop_assert_eq!(held, assembler.bytes);
            let exact = |open: &OpenMessage<i32>| open.text.bytes() + join::weight(&open.around);
            prop_assert!(assembler.open.values().all(|open| open.bytes >= exact(open)));
            prop_assert!(assembler.open.len() <= 5 && assembler.bytes <= 4 * limit);
        }
        assembler.finish(&mut |_| handed_out += 1);
        prop_assert!(brought == 0 || handed_out > 0);
    }
}
