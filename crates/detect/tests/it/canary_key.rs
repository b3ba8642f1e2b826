//! The key `x-proofhouse.canary` of an indicator: what it adds to a match, and what is wrong with a value of it.

use std::num::NonZero;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofhouse_detect::{
    BuildError, DocumentVerdict, IndicatorExplanation, Judgement, ScanOptions, ScanOutcome,
    Scanner, TraceMessage,
};
use proofhouse_oatf::{Direction, Document, IndicatorResult, load};
use proptest::prelude::*;
use serde_json::{Value, json};

const CANARY: &str = "CANARY-KEY-93b4aa10";

fn document(indicators: &Value) -> Document {
    let document = json!({"oatf": "0.1", "attack": {
        "execution": {"mode": "mcp_server", "state": {"tools": []}}, "indicators": indicators}});
    let loaded = load(&document.to_string());
    loaded
        .unwrap_or_else(|errors| panic!("{errors:?}"))
        .document
}

fn scanner(indicators: &Value) -> Scanner {
    let builder = Scanner::builder().add("d.yaml", document(indicators));
    builder.build().unwrap()
}

fn call(arguments: &Value) -> TraceMessage {
    TraceMessage::new(
        "mcp",
        "tools/call",
        json!({"name": "send", "arguments": arguments}),
    )
}

/// Three ways to detect something else, each with the canary beside it.
fn indicators() -> Value {
    let key = json!({"canary": CANARY});
    json!([
        {"surface": "tools/call", "target": "arguments", "pattern": {"contains": "never"}, "x-proofhouse": key},
        {"surface": "tools/call", "target": "arguments.body", "expression": {"cel": "message.name > 1"},
         "x-proofhouse": {"canary": ["CANARY-OTHER-00000000", CANARY]}},
        {"surface": "tools/call", "target": "arguments", "semantic": {"intent": "harm"}, "x-proofhouse": key},
        {"surface": "tools/list", "target": "arguments", "pattern": {"contains": "never"}, "x-proofhouse": key},
        {"surface": "tools/call", "target": "name", "pattern": {"contains": "never"}, "x-proofhouse": key},
        {"surface": "tools/call", "target": "arguments.none", "pattern": {"exists": false}, "x-proofhouse": key},
    ])
}

#[test]
fn a_canary_at_the_target_is_a_match() {
    let scanner = scanner(&indicators());
    let hidden = STANDARD.encode(format!("key={CANARY}"));
    let found = scanner.scan(&call(&json!({"to": "x", "body": hidden})));
    let matched: Vec<(usize, &str, Option<&str>)> = found
        .iter()
        .map(|finding| match &finding.outcome {
            ScanOutcome::Matched(evidence) => (
                finding.indicator,
                evidence.path.as_str(),
                evidence.reason.as_deref(),
            ),
            ScanOutcome::Error(error) => (finding.indicator, error.as_str(), None),
        })
        .collect();
    let form = Some("base64 of CANARY-KEY-93b4aa10");
    assert_eq!(
        matched,
        [
            (5, "arguments.none", None),
            (0, "arguments.body", form),
            (2, "arguments.body", form),
            (1, "arguments.body", form),
        ]
    );
    // Without it, all is as it is without the key.
    let found = scanner.scan(&call(&json!({"body": "CANARY-KEY-93b4aa11"})));
    let results: Vec<(usize, bool)> = found
        .iter()
        .map(|finding| {
            let matched = matches!(finding.outcome, ScanOutcome::Matched(_));
            (finding.indicator, matched)
        })
        .collect();
    assert_eq!(results, [(5, true), (1, false)]);
}

#[test]
fn wildcards_and_several_values() {
    let scanner = scanner(
        &json!([{"target": "parts[*].text", "pattern": {"contains": "never"},
        "x-proofhouse": {"canary": CANARY}}]),
    );
    let message = TraceMessage::new(
        "mcp",
        "x",
        json!({"parts": [{"text": "no"}, {"text": "CANARY"}, {"text": "KEY 93b4aa10"}]}),
    );
    let found = scanner.scan(&message);
    let ScanOutcome::Matched(evidence) = &found[0].outcome else {
        panic!("{found:?}")
    };
    assert_eq!(evidence.path, "parts[1].text");
    assert_eq!(evidence.text, "CANARY … KEY 93b4aa10");
    let reason = evidence.reason.as_deref();
    assert_eq!(
        reason,
        Some("CANARY-KEY-93b4aa10 split over several values")
    );
}

#[test]
fn it_is_explained() {
    let scanner = scanner(&indicators());
    let reversed: String = CANARY.chars().rev().collect();
    for (arguments, result, operand) in [
        (
            json!(reversed),
            IndicatorResult::Matched,
            "reversed CANARY-KEY-93b4aa10",
        ),
        (json!("x"), IndicatorResult::NotMatched, "in any form"),
    ] {
        let Some(Judgement::Kept(kept)) = scanner.explain(0, 0, &call(&arguments)) else {
            panic!()
        };
        let check = kept.canary.unwrap();
        assert_eq!(kept.result, result);
        assert_eq!(
            (check.operator, check.operand.as_str()),
            ("canary", operand)
        );
        assert_eq!(check.holds, Some(result == IndicatorResult::Matched));
        assert_eq!(kept.values[0].checks[0].holds, Some(false));
    }
    let mut explanation = IndicatorExplanation::new(&scanner, 0, 2, 5).unwrap();
    explanation.feed_line(1, &call(&json!(CANARY)));
    assert_eq!(explanation.count(IndicatorResult::Matched), 1);
}

fn told(scanner: &Scanner, messages: &[TraceMessage]) -> Vec<(u64, String, Option<String>)> {
    let mut session = scanner.session();
    for (number, message) in (1..).zip(messages) {
        let mut message = message.clone();
        message.sequence = number;
        session.feed(&message);
    }
    let verdict = &session.verdicts()[0];
    let evidence = verdict.indicators[0].evidence.iter();
    evidence
        .map(|found| (found.sequence, found.path.clone(), found.reason.clone()))
        .collect()
}

/// An indicator that looks at the arguments of calls that come to a server of the document.
fn of_requests() -> Scanner {
    scanner(
        &json!([{"surface": "tools/call", "direction": "request", "target": "arguments",
        "pattern": {"contains": "never"}, "x-proofhouse": {"canary": CANARY}}]),
    )
}

fn request(operation: &str, content: Value) -> TraceMessage {
    TraceMessage {
        direction: Some(Direction::Request),
        ..TraceMessage::new("mcp", operation, content)
    }
}

#[test]
fn a_canary_in_two_calls_is_found() {
    let scanner = of_requests();
    let call = |text: &str| {
        let arguments = json!({"amount": 4000, "context": text, "unit": "EUR"});
        request("tools/call", json!({"name": "tax", "arguments": arguments}))
    };
    let split = Some("CANARY-KEY-93b4aa10 split over several messages".to_owned());
    let found = told(
        &scanner,
        &[call("CANARY-K"), call("nothing"), call("EY-93b4aa10")],
    );
    assert_eq!(found, [(3, "arguments.context".to_owned(), split)]);
    let base64 = STANDARD.encode(CANARY);
    let found = told(&scanner, &[call(&base64[..16]), call(&base64[16..])]);
    assert_eq!(found.len(), 1, "{found:?}");
    // What another one sends completes nothing.
    let mut other = call("EY-93b4aa10");
    other.actor = Some("other".to_owned());
    assert!(told(&scanner, &[call("CANARY-K"), other]).is_empty());
    assert!(told(&scanner, &[call("CANARY-K"), call("EY-93b4aa11")]).is_empty());
}

#[test]
fn a_canary_is_found_where_no_target_leads() {
    let scanner = of_requests();
    let call = json!({"name": "tax", "arguments": {"amount": 1}});
    let mut meta = call.clone();
    meta["_meta"] = json!({"progressToken": CANARY});
    let mut id = request("tools/call", call.clone());
    id.raw = Some(json!({"jsonrpc": "2.0", "id": CANARY, "method": "tools/call"}));
    let info = json!({"clientInfo": {"name": CANARY, "version": "1"}});
    let complete =
        json!({"ref": {"type": "ref/prompt"}, "argument": {"name": "a", "value": CANARY}});
    for (message, path) in [
        (request("tools/call", meta), "_meta.progressToken"),
        (id, "id"),
        (
            request("tools/call", json!({"name": format!("tax_{CANARY}")})),
            "name",
        ),
        (
            request(
                "resources/read",
                json!({"uri": format!("https://x.example/?c={CANARY}")}),
            ),
            "uri",
        ),
        (request("initialize", info), "clientInfo.name"),
        (
            request(
                "prompts/get",
                json!({"name": "x", "arguments": {"a": CANARY}}),
            ),
            "arguments.a",
        ),
        (request("completion/complete", complete), "argument.value"),
        (
            request("notifications/progress", json!({"message": CANARY})),
            "message",
        ),
        (request(&format!("x/{CANARY}"), json!({})), "operation"),
        (request("x/y", json!({"v": [CANARY]})), "v[0]"),
        (request(proofhouse_detect::UNPARSED, json!(CANARY)), ""),
    ] {
        let found = told(&scanner, std::slice::from_ref(&message));
        assert_eq!(found.len(), 1, "{message:?}");
        assert_eq!(found[0].1, path, "{message:?}");
        let mut explanation = IndicatorExplanation::new(&scanner, 0, 0, 5).unwrap();
        explanation.feed_line(1, &message);
        assert_eq!(
            explanation.count(IndicatorResult::Matched),
            1,
            "{message:?}"
        );
        // What a server says is not said by the subject.
        let mut answer = message.clone();
        answer.direction = Some(Direction::Response);
        assert!(told(&scanner, &[answer]).is_empty(), "{message:?}");
    }
    assert!(told(&scanner, &[request("tools/call", call)]).is_empty());
}

#[test]
fn what_a_document_offers_as_a_name_may_be_used() {
    let uri = format!("memo://{CANARY}");
    let document = json!({"oatf": "0.1", "attack": {
        "execution": {"mode": "mcp_server", "state": {"resources": [{"uri": uri, "name": "memo"}]}},
        "indicators": [{"surface": "tools/call", "direction": "request", "target": "arguments",
            "pattern": {"contains": "never"}, "x-proofhouse": {"canary": CANARY}}]}});
    let document = load(&document.to_string()).unwrap().document;
    let scanner = Scanner::builder().add("d.yaml", document).build().unwrap();
    assert!(told(&scanner, &[request("resources/read", json!({"uri": uri}))]).is_empty());
    let meta = json!({"uri": uri, "_meta": {"x": uri}});
    assert_eq!(told(&scanner, &[request("resources/read", meta)]).len(), 1);
}

#[test]
fn a_value_that_cannot_be_used_is_told_with_its_place() {
    for (value, expected) in [
        (json!(3), "must be a text or a list of texts"),
        (json!([]), "must be a text or a list of texts"),
        (json!([CANARY, null]), "must be a text or a list of texts"),
        (
            json!("a-b"),
            "cannot be used: canary `a-b` has 2 letters and digits; it needs at least 8, or it would be found by chance",
        ),
    ] {
        let document = document(&json!([
            {"target": "a", "pattern": {"contains": "x"}},
            {"target": "a", "pattern": {"contains": "x"}, "x-proofhouse": {"canary": value}},
        ]));
        let errors = proofhouse_detect::check_canaries(&document);
        assert_eq!((errors.len(), errors[0].indicator), (1, 1));
        let error = Scanner::builder()
            .add("d.yaml", document)
            .build()
            .unwrap_err();
        let BuildError::Canary { error: inner, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(**inner, errors[0]);
        let column = inner.span.unwrap().column;
        assert_eq!(
            error.to_string(),
            format!("d.yaml:1:{column}: `x-proofhouse.canary` {expected}")
        );
    }
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(CANARY.to_owned()),
        Just(CANARY.to_lowercase()),
        Just(STANDARD.encode(CANARY)),
        Just("CANARY-".to_owned()),
        Just("KEY-93b4aa10".to_owned()),
        Just("never".to_owned()),
        "[a-z ]{0,8}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A session, threads and the explanation say the same of a trace.
    #[test]
    fn every_way_of_judging_says_the_same(
        messages in prop::collection::vec((word(), word()), 1..40),
        jobs in (1usize..4).prop_map(|jobs| NonZero::new(jobs).unwrap()),
    ) {
        let scanner = scanner(&indicators());
        let mut trace = String::new();
        let mut session = scanner.session();
        let mut explanations: Vec<IndicatorExplanation<'_>> =
            (0..scanner.len()).map(|index| IndicatorExplanation::new(&scanner, 0, index, 1).unwrap()).collect();
        for (line, (one, two)) in messages.iter().enumerate() {
            let mut message = call(&json!({"to": one, "body": two}));
            message.sequence = line as u64 + 1;
            trace.push_str(&json!({"seq": line + 1, "protocol": "mcp", "operation": "tools/call",
                "content": message.content}).to_string());
            trace.push('\n');
            session.feed_line(line as u64 + 1, &message);
            for explanation in &mut explanations {
                explanation.feed_line(line as u64 + 1, &message);
            }
        }
        let expected = session.verdicts();
        let options = ScanOptions { jobs, piece_bytes: 200, ..ScanOptions::default() };
        let scanned = scanner.scan_input(trace.as_bytes(), &options, |_| {});
        let reports = |verdicts: &[DocumentVerdict]| serde_json::to_value(&verdicts[0].indicators).unwrap();
        prop_assert_eq!(reports(&expected), reports(&scanned.session.verdicts()));
        for (explanation, report) in explanations.iter().zip(&expected[0].indicators) {
            prop_assert_eq!(explanation.count(IndicatorResult::Matched), report.matches);
        }
    }
}
