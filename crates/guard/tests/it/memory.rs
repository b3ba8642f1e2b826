//! What a session holds stays flat, however many calls there are. Entries and bytes are counted, not time.

use proofhouse_guard::engine::Passage;
use proofhouse_guard::taint::{TaintFootprint, TaintLabel, TaintLimits, TaintTracker};
use serde_json::json;

use crate::support::{Tried, policy};

/// That of the policy.
const BUDGET: usize = 4096;

const POLICY: &str = "
policy: 1
taint: {budget: 4096, min_value: 2}
tools:
  - {tool: 'read_*', returns: untrusted, free_text: [body]}
  - {tool: list, returns: trusted}
  - {tool: vault, returns: secret}
  - {tool: 'send*', effects: [send]}
rules:
  - {id: a, when: 'size(call.effects) > 0 && taint.untrusted.exists(t, t.decides)', decision: block, on_error: block}
";

/// A call whose names, arguments and result nobody has seen before.
fn exchange(tried: &mut Tried, number: usize) {
    let tool = match number % 4 {
        0 => format!("read_{number}"),
        1 => "list".to_owned(),
        2 => "vault".to_owned(),
        _ => format!("send{number}"),
    };
    let arguments = json!({"query": format!("question number {number}"), "n": number});
    let fields = json!({"id": number, "body": format!("the text of message {number} for you")});
    let result = json!({"content": [{"type": "text", "text": fields.to_string()}]});
    tried.exchange(
        "tools/call",
        &json!({"name": tool, "arguments": arguments}),
        &result,
    );
    tried.findings();
}

/// How many calls a session has. The budget is spent after a few hundred; `PROOFHOUSE_LONG` asks for a hundred thousand.
fn calls() -> usize {
    let is_long = std::env::var_os("PROOFHOUSE_LONG").is_some();
    if is_long { 100_000 } else { 10_000 }
}

#[test]
fn many_calls_hold_no_more_than_the_budget() {
    // Without documents that watch: what they keep is bounded by their scanner, and they take most of the time.
    let mut tried = Tried::new(policy(POLICY), None);
    let mut most = TaintFootprint::default();
    for number in 0..calls() {
        exchange(&mut tried, number);
        let now = tried.session.footprint();
        let TaintFootprint {
            bytes,
            texts,
            places,
            values,
        } = now.taint;
        // Three labels of texts, each in three forms, and three sets of values.
        assert!(bytes <= 12 * BUDGET + 1000, "call {number}: {now:?}");
        assert!(
            texts <= bytes / 160 && values <= bytes / 48,
            "call {number}: {now:?}"
        );
        assert!(places <= bytes / 4 + 3 * 1024, "call {number}: {now:?}");
        assert!(
            now.tools <= 1000 && now.open == 0 && now.asks == 0,
            "call {number}: {now:?}"
        );
        most.bytes = most.bytes.max(bytes);
        most.values = most.values.max(values);
    }
    assert!(most.bytes > BUDGET && most.values > 0, "{most:?}");
}

#[test]
fn calls_that_nobody_answers_are_bounded() {
    let mut tried = Tried::new(policy("policy: 1\n"), None);
    let passed = (0..20_000).filter(|_| tried.call("read", &json!({})) == Passage::Pass);
    assert_eq!(
        (passed.count(), tried.session.footprint().open),
        (10_000, 10_000)
    );
}

#[test]
fn many_small_values_are_charged_for_what_they_take_up() {
    let mut tracker = TaintTracker::new(TaintLimits::default());
    let numbers: Vec<u32> = (0..200_000).collect();
    tracker.remember(TaintLabel::Untrusted, "web", &json!(numbers));
    tracker.remember_fields(TaintLabel::Untrusted, "web", &json!(numbers), &|_| false);
    let footprint = tracker.footprint();
    assert!(
        footprint.texts < 30_000 && footprint.values < 30_000,
        "{footprint:?}"
    );
    // They are still followed, the newest first.
    assert_eq!(
        tracker.look(&json!({"id": 199_999})).named,
        Vec::<String>::new()
    );
}
