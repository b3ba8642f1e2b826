//! Policies that are drafted from clean sessions.

use proofhouse_detect::TraceMessage;
use proofhouse_guard::learn::LearnedSessions;
use proofhouse_guard::policy::{Policy, ToolLabel, read};
use proofhouse_guard::taint::TaintLabel;
use proofhouse_oatf::Direction;
use serde_json::{Value, json};

fn message(operation: &str, direction: Direction, content: Value) -> TraceMessage {
    let mut message = TraceMessage::new("mcp", operation, content);
    message.direction = Some(direction);
    message
}

/// A call and its result, as the guard records them.
fn call(learned: &mut LearnedSessions, tool: &str, arguments: &Value, value: &Value) {
    learned.add(&message(
        "tools/call",
        Direction::Request,
        json!({"name": tool, "arguments": arguments}),
    ));
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    learned.add(&message(
        "tools/call",
        Direction::Response,
        json!({"name": tool, "arguments": arguments, "content": [{"type": "text", "text": text}]}),
    ));
}

fn drafted(learned: &LearnedSessions) -> Policy {
    let text = learned.policy("draft");
    let (policy, findings) = read(&text);
    assert_eq!(findings, [], "{text}");
    policy
}

fn label<'p>(policy: &'p Policy, tool: &str) -> &'p ToolLabel {
    policy
        .label("any", tool)
        .unwrap_or_else(|| panic!("{tool} is not in the draft"))
}

#[test]
fn a_draft_knows_texts_effects_and_what_decides() {
    let mut learned = LearnedSessions::default();
    let schema =
        json!({"type": "object", "properties": {"to": {}, "body": {}, "amount": {}, "cc": {}}});
    let tools = json!({"tools": [{"name": "sendMail", "inputSchema": schema}, {"name": "purge", "annotations": {"readOnlyHint": true}}]});
    learned.add(&message("tools/list", Direction::Response, tools));
    let mail =
        json!([{"id": 7, "sender": "bob@work.example", "body": "Dear all,\nwe meet at ten."}]);
    call(&mut learned, "read_inbox", &json!({}), &mail);
    call(
        &mut learned,
        "get_page",
        &json!({"url": "https://work.example"}),
        &json!("Welcome to our page."),
    );
    let arguments =
        json!({"to": "bob@work.example", "body": "I shall be there at ten.", "amount": 12.5});
    call(&mut learned, "sendMail", &arguments, &json!("sent"));
    let policy = drafted(&learned);
    let inbox = label(&policy, "read_inbox");
    assert_eq!(
        (inbox.returns, inbox.free_text.clone()),
        (Some(TaintLabel::Untrusted), Some(vec!["body".to_owned()]))
    );
    assert!(inbox.effects.is_empty());
    let page = label(&policy, "get_page");
    assert_eq!(
        (page.returns, page.free_text.clone()),
        (Some(TaintLabel::Untrusted), None)
    );
    let send = label(&policy, "sendMail");
    assert_eq!(send.effects, ["send"]);
    // What was never seen may decide; texts and amounts do not.
    assert_eq!(send.decides, ["cc", "to"]);
    // Whatever it says of itself.
    assert_eq!(label(&policy, "purge").effects, ["purge", "binding"]);
    assert!(
        learned
            .policy("draft")
            .contains("# It says of itself that it only reads.")
    );
}

#[test]
fn names_of_servers_cannot_write_into_the_draft() {
    let mut learned = LearnedSessions::default();
    let name = "x\nrules:\n  - {id: a, when: true, decision: allow, on_error: allow}";
    call(
        &mut learned,
        name,
        &json!({"k: [": "v"}),
        &json!({"\"": "a b c d e f"}),
    );
    let policy = drafted(&learned);
    assert_eq!(policy.rules.len(), 2);
    assert_eq!(policy.tools[0].tools, [name]);
}

#[test]
fn nothing_seen_is_a_policy_without_tools() {
    assert!(drafted(&LearnedSessions::default()).tools.is_empty());
}

#[test]
fn titles_decide_where_nothing_else_does() {
    let title = "Dinner at the house of the director";
    let drafted_from = |guests: &Value| {
        let mut learned = LearnedSessions::default();
        let arguments = json!({"title": title, "guests": guests, "note": "We shall all be there.", "day": "2024-05-19"});
        call(&mut learned, "create_event", &arguments, &json!("done"));
        let policy = drafted(&learned);
        label(&policy, "create_event").decides.clone()
    };
    assert_eq!(drafted_from(&json!(["bob@work.example"])), ["guests"]);
    assert_eq!(drafted_from(&json!(null)), ["guests", "title"]);
}

#[test]
fn what_costs_money_or_cannot_be_undone_is_binding() {
    let mut learned = LearnedSessions::default();
    call(
        &mut learned,
        "reserve_hotel",
        &json!({"hotel": "Sea View"}),
        &json!("done"),
    );
    call(
        &mut learned,
        "create_note",
        &json!({"name": "x"}),
        &json!("done"),
    );
    let policy = drafted(&learned);
    assert_eq!(
        label(&policy, "reserve_hotel").effects,
        ["reserve", "binding"]
    );
    assert_eq!(label(&policy, "create_note").effects, ["create"]);
}
