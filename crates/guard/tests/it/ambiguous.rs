//! Messages that two readers could read in two ways do not pass.

use proofhouse_guard::FindingCode;
use proofhouse_guard::engine::{GuardAction, MessageFrom, Passage};
use serde_json::{Value, json};

use crate::support::{Tried, policy};

#[test]
fn a_key_that_comes_twice_does_not_pass() {
    let mut tried = Tried::new(policy("policy: 1\n"), None);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(tried.client_says(&list), Passage::Pass);
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"POISON","description":"clean"}]}}"#;
    let judged = tried.session.judge(MessageFrom::Server, answer.as_bytes());
    assert_eq!(judged, Passage::Instead(Vec::new()));
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
