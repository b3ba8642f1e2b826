//! Messages that two readers could read in two ways do not pass.

use proofhouse_guard::FindingCode;
use proofhouse_guard::engine::{GuardAction, MessageFrom, Passage};
use serde_json::{Value, json};

use crate::support::{Tried, only_to_client, policy};

#[test]
fn a_key_that_comes_twice_does_not_pass() {
    let mut tried = Tried::new(policy("policy: 1\n"), None);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(tried.client_says(&list), Passage::Pass);
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"POISON","description":"clean"}]}}"#;
    let judged = tried.session.judge(MessageFrom::Server, answer.as_bytes());
    assert!(!format!("{judged:?}").contains("POISON"), "{judged:?}");
    assert!(matches!(judged, Passage::Instead(_)), "{judged:?}");
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"bad","n\u0061me":"good"}}"#;
    let judged = tried.session.judge(MessageFrom::Client, call.as_bytes());
    assert!(matches!(judged, Passage::Instead(_)), "{judged:?}");
    assert_eq!(tried.codes(), [FindingCode::Malformed; 2]);
}

#[test]
fn members_in_other_letters_do_not_pass() {
    let mut tried = Tried::new(policy("policy: 1\n"), None);
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "Method": "tools/call"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "PARAMS": {}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "good", "Name": "bad"}}),
        json!([{"jsonrpc": "2.0", "id": 1, "method": "ping", "ID": 2}]),
    ] {
        let judged = tried.client_says(&message);
        assert!(matches!(judged, Passage::Instead(_)), "{message}");
        assert_eq!(tried.codes(), [FindingCode::Malformed], "{message}");
    }
    // Arguments are the tool's own.
    let own = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": {"Name": 1, "name": 2}}});
    assert_eq!(tried.client_says(&own), Passage::Pass);
}

#[test]
fn a_request_without_an_id_does_not_pass() {
    let mut tried = Tried::new(policy("policy: 1\n"), None);
    let call = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "delete_all"}});
    assert_eq!(tried.client_says(&call), Passage::Instead(Vec::new()));
    let ask = json!({"jsonrpc": "2.0", "method": "sampling/createMessage", "params": {}});
    assert_eq!(tried.server_says(&ask), Passage::Instead(Vec::new()));
    assert_eq!(tried.codes(), [FindingCode::Malformed; 2]);
    for method in ["notifications/initialized", "notifications/own"] {
        let message = json!({"jsonrpc": "2.0", "method": method});
        assert_eq!(tried.client_says(&message), Passage::Pass);
    }
}

#[test]
fn a_batch_is_answered_with_a_batch() {
    let text = "policy: 1\nrules:\n  - {id: no, when: 'call.tool == \"bad\"', decision: block, on_error: block}\n";
    let mut tried = Tried::new(policy(text), None);
    let call = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "bad"}});
    let Passage::Instead(actions) = tried.client_says(&json!([call(1), call(2)])) else {
        panic!("it passed");
    };
    let [GuardAction::ToClient(text)] = actions.as_slice() else {
        panic!("{actions:?}");
    };
    let answers: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        (&answers[0]["id"], &answers[1]["id"]),
        (&json!(1), &json!(2))
    );
}

/// Has an open `tools/list` with the id 1.
fn listing() -> Tried {
    let mut tried = Tried::new(policy("policy: 1\n"), None);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(tried.client_says(&list), Passage::Pass);
    tried
}

#[test]
fn an_answer_that_looks_like_a_request_does_not_pass() {
    let poison = json!({"tools": [{"name": "a", "description": "POISON"}]});
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "result": poison}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "error": null}),
        json!([{"jsonrpc": "2.0", "id": 1, "method": "ping", "result": poison}]),
        json!({"jsonrpc": "2.0", "method": "notifications/message", "result": poison}),
    ] {
        let mut tried = listing();
        let judged = tried.server_says(&message);
        assert!(!format!("{judged:?}").contains("POISON"), "{judged:?}");
        assert!(matches!(judged, Passage::Instead(_)), "{message}");
        assert_eq!(tried.codes(), [FindingCode::Malformed], "{message}");
    }
    let mut tried = listing();
    let both = json!({"jsonrpc": "2.0", "id": 2, "method": "ping", "result": {}});
    assert!(matches!(tried.client_says(&both), Passage::Instead(_)));
}

#[test]
fn what_cannot_be_read_is_an_error_for_the_request_that_it_answers() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    for answer in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]},"error":null}"#,
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#,
        &deep,
    ] {
        let mut tried = listing();
        let judged = tried.session.judge(MessageFrom::Server, answer.as_bytes());
        let Passage::Instead(actions) = judged else {
            panic!("it passed: {answer}");
        };
        let error = only_to_client(&actions);
        assert_eq!(
            (&error["id"], &error["error"]["code"]),
            (&json!(1), &json!(-32010)),
            "{answer}"
        );
        assert_eq!(tried.codes(), [FindingCode::Malformed], "{answer}");
    }
    // A batch that is too large has an answer for each that waits.
    let mut tried = listing();
    let many: Vec<Value> = (1..=200)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "result": {}}))
        .collect();
    let Passage::Instead(actions) = tried.server_says(&Value::Array(many)) else {
        panic!("it passed");
    };
    assert_eq!(only_to_client(&actions)["id"], 1);
    // What the client wrote is told to it with its id, unless another request has it.
    let mut tried = listing();
    for (id, told) in [(2, json!(2)), (1, json!(null))] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x","params":{{"n":NaN}}}}"#);
        let Passage::Instead(actions) = tried.session.judge(MessageFrom::Client, text.as_bytes())
        else {
            panic!("it passed");
        };
        assert_eq!(only_to_client(&actions)["id"], told);
    }
}

#[test]
fn half_a_character_passes_as_it_was_sent_and_is_judged() {
    let text = "policy: 1\nrules:\n  - {id: no, on: result, pattern: 'POISON', decision: block, on_error: block}\n";
    for (said, passes) in [("cut \\ud83d", true), ("cut \\uDE00 POISON", false)] {
        let mut tried = Tried::new(policy(text), None);
        assert_eq!(tried.call("read", &json!({})), Passage::Pass);
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{said} \\ud83d \ud83d\ude00"}}]}}}}"#
        );
        let judged = tried.session.judge(MessageFrom::Server, answer.as_bytes());
        assert_eq!(judged == Passage::Pass, passes, "{said}: {judged:?}");
    }
    // Where something is taken out, the rest is still JSON.
    let mut tried = Tried::new(
        policy(&text.replace("block, on_error", "redact, on_error")),
        None,
    );
    assert_eq!(tried.call("read", &json!({})), Passage::Pass);
    let answer =
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\ud83d POISON"}]}}"#;
    let Passage::Instead(actions) = tried.session.judge(MessageFrom::Server, answer.as_bytes())
    else {
        panic!("it passed");
    };
    let text = only_to_client(&actions)["result"]["content"][0]["text"].take();
    assert_eq!(text, "\u{fffd} [redacted]");
}
