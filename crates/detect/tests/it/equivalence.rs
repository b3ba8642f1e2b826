//! The scanner says what `evaluate_indicator` says, indicator by indicator, message by message.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests, helpers included"
)]

use std::sync::Arc;

use proofhouse_detect::{ScanFinding, ScanOutcome, Scanner, TraceMessage, dropped_by};
use proofhouse_oatf::{
    Attack, DefaultCelEvaluator, Direction, Document, EvaluationError, EvaluationErrorKind,
    Indicator, IndicatorResult, MatchCondition, PatternMatch, Protocol, SemanticEvaluator,
    SemanticExamples, SemanticIntentClass, SemanticMatch, evaluate_indicator, load, normalize,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn document(indicators: &[Value]) -> Document {
    let document = json!({
        "oatf": "0.1",
        "attack": {
            "execution": {"mode": "mcp_server", "state": {"tools": []}},
            "indicators": indicators,
        },
    });
    load(&document.to_string())
        .unwrap_or_else(|errors| panic!("{errors:?}"))
        .document
}

/// Meaning without a model: the share of the intent's letters that the text has. Digits in a text
/// are a failure, or a score that no evaluator may give.
struct Letters;

impl SemanticEvaluator for Letters {
    fn evaluate(
        &self,
        text: &str,
        intent: &str,
        _: Option<SemanticIntentClass>,
        _: Option<f64>,
        _: Option<&SemanticExamples>,
    ) -> Result<f64, EvaluationError> {
        match text.bytes().find(u8::is_ascii_digit) {
            Some(b'0') => Ok(f64::NAN),
            Some(b'1') => Ok(1.5),
            Some(_) => Err(EvaluationError::new(
                EvaluationErrorKind::SemanticError,
                "on purpose",
            )),
            None => {
                let shared = intent.chars().filter(|letter| text.contains(*letter));
                Ok(shared.count() as f64 / intent.chars().count() as f64)
            }
        }
    }
}

/// Compares both ways of judging a message, with and without a semantic evaluator.
fn check(documents: &[Document], message: &TraceMessage) {
    check_with(documents, message, None);
    let letters: Arc<dyn SemanticEvaluator> = Arc::new(Letters);
    check_with(documents, message, Some(&letters));
}

fn check_with(
    documents: &[Document],
    message: &TraceMessage,
    semantic: Option<&Arc<dyn SemanticEvaluator>>,
) {
    let mut builder = Scanner::builder();
    if let Some(semantic) = semantic {
        builder = builder.semantic(Arc::clone(semantic));
    }
    for (n, document) in documents.iter().enumerate() {
        builder = builder.add(format!("document {n}"), document.clone());
    }
    let scanner = builder.build().unwrap();
    let found = scanner.scan(message);
    for (d, document) in documents.iter().enumerate() {
        for (i, indicator) in document.attack.indicators().iter().enumerate() {
            let expected = match dropped_by(indicator, message) {
                Some(_) => IndicatorResult::NotMatched,
                None => {
                    evaluate_indicator(
                        indicator,
                        &message.content,
                        Some(&DefaultCelEvaluator),
                        semantic.map(Arc::as_ref),
                    )
                    .result
                }
            };
            let ours: Vec<&ScanFinding> = found
                .iter()
                .filter(|f| f.document == d && f.indicator == i)
                .collect();
            let result = match ours.as_slice() {
                [] => IndicatorResult::NotMatched,
                [
                    ScanFinding {
                        outcome: ScanOutcome::Matched(_),
                        ..
                    },
                ] => IndicatorResult::Matched,
                [
                    ScanFinding {
                        outcome: ScanOutcome::Error(_),
                        ..
                    },
                ] => IndicatorResult::Error,
                several => panic!("reported {} times", several.len()),
            };
            let expected = if expected == IndicatorResult::Skipped {
                IndicatorResult::NotMatched
            } else {
                expected
            };
            assert_eq!(result, expected, "{indicator:?}\n{message:?}");
        }
    }
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("secret".to_owned()),
        Just("SECRET".to_owned()),
        Just("pass\u{17f}word".to_owned()),
        Just("to\u{212a}en".to_owned()),
        Just("token".to_owned()),
        Just("é secret".to_owned()),
        "[a-c]{0,3}",
        "[a-zA-Z0-9 _.]{0,12}",
        "\\PC{0,6}",
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        word().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        (-3.0f64..3.0).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ]
}

fn content() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop_oneof![Just("a"), Just("b"), Just("c")], inner), 0..4)
                .prop_map(|entries| {
                    Value::Object(
                        entries
                            .into_iter()
                            .map(|(k, v)| (k.to_owned(), v))
                            .collect(),
                    )
                }),
        ]
    })
}

fn condition() -> impl Strategy<Value = Value> {
    let operator = prop_oneof![
        word().prop_map(|w| ("contains", json!(w))),
        word().prop_map(|w| ("starts_with", json!(w))),
        word().prop_map(|w| ("ends_with", json!(w))),
        prop_oneof![
            Just("secret|token"),
            Just("(?i)password"),
            Just("(?i)TOKEN"),
            Just("[a-c]+"),
            Just("^a.*b$"),
            Just("[a&&a]x?"),
            Just("(se|to)(cret|ken)"),
            Just("\\d"),
            Just(""),
        ]
        .prop_map(|r| ("regex", json!(r))),
        prop::collection::vec(leaf(), 1..3).prop_map(|v| ("any_of", json!(v))),
        (-2i64..2).prop_map(|n| ("gt", json!(n))),
        (-2i64..2).prop_map(|n| ("lte", json!(n))),
        any::<bool>().prop_map(|b| ("exists", json!(b))),
    ];
    prop_oneof![
        leaf(),
        prop::collection::vec(operator, 1..3).prop_map(|entries| {
            Value::Object(
                entries
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect(),
            )
        }),
    ]
}

fn semantic() -> impl Strategy<Value = Value> {
    (
        prop_oneof![Just("abc"), Just("secret"), Just("token")],
        prop::option::of(prop_oneof![Just(0.0), Just(0.5), Just(1.0)]),
        prop::option::of(prop_oneof![Just("a"), Just("b[*]")]),
    )
        .prop_map(|(intent, threshold, target)| {
            let mut semantic = json!({"intent": intent});
            if let Some(threshold) = threshold {
                semantic["threshold"] = json!(threshold);
            }
            if let Some(target) = target {
                semantic["target"] = json!(target);
            }
            semantic
        })
}

fn indicator() -> impl Strategy<Value = Value> {
    let target = prop_oneof![
        Just(""),
        Just("a"),
        Just("a.b"),
        Just("a[*]"),
        Just("a[*].b"),
        Just("b[*].c[*]"),
    ];
    let detection = prop_oneof![
        4 => condition().prop_map(|c| ("pattern", json!({"condition": c}))),
        1 => prop_oneof![
            Just("has(message.a)"),
            Just("message.a == 'secret'"),
            Just("message.a.exists(x, x == 1)"),
            Just("size(message.b) > 1"),
        ].prop_map(|c| ("expression", json!({"cel": c}))),
        1 => semantic().prop_map(|s| ("semantic", s)),
    ];
    (
        target,
        detection,
        prop::option::of(prop_oneof![Just("tools/call"), Just("tools/list")]),
        prop::option::of(prop_oneof![Just("request"), Just("response")]),
        prop::option::of(Just("default")),
        prop_oneof![3 => Just("mcp"), 1 => Just("a2a")],
    )
        .prop_map(
            |(target, (key, detection), surface, direction, actor, protocol)| {
                let mut indicator = json!({"target": target, "protocol": protocol, key: detection});
                for (key, value) in [
                    ("surface", surface),
                    ("direction", direction),
                    ("actor", actor),
                ] {
                    if let Some(value) = value {
                        indicator[key] = json!(value);
                    }
                }
                indicator
            },
        )
}

fn message() -> impl Strategy<Value = TraceMessage> {
    (
        content(),
        prop_oneof![Just("tools/call"), Just("tools/list")],
        prop::option::of(prop_oneof![
            Just(Direction::Request),
            Just(Direction::Response)
        ]),
        prop::option::of(prop_oneof![Just("default"), Just("other")]),
    )
        .prop_map(|(content, operation, direction, actor)| TraceMessage {
            direction,
            actor: actor.map(str::to_owned),
            ..TraceMessage::new("mcp", operation, content)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(768))]
    #[test]
    fn same_answers(
        first in prop::collection::vec(indicator(), 1..12),
        second in prop::collection::vec(indicator(), 1..6),
        messages in prop::collection::vec(message(), 1..4),
    ) {
        let documents = [document(&first), document(&second)];
        for message in &messages {
            check(&documents, message);
        }
    }
}

/// What a program builds need not be valid, nor normalized.
#[test]
fn built_documents_are_judged_alike() {
    let built = |id: &str, indicator: Indicator| Indicator {
        id: Some(id.to_owned()),
        ..indicator
    };
    let semantic = || {
        Some(SemanticMatch {
            intent: "secret".to_owned(),
            threshold: Some(0.5),
            ..SemanticMatch::default()
        })
    };
    let regex_and_text = MatchCondition {
        contains: Some("nowhere".to_owned()),
        ..MatchCondition::regex("[")
    };
    let too_long = vec!["a"; 65].join(".");
    let indicators = vec![
        built(
            "long",
            Indicator::matching(&*too_long, MatchCondition::exists(false)),
        ),
        built("none", Indicator::matching("a", MatchCondition::default())),
        built(
            "no condition",
            Indicator {
                target: "a".to_owned(),
                pattern: Some(PatternMatch::default()),
                ..Indicator::default()
            },
        ),
        built(
            "two",
            Indicator {
                semantic: semantic(),
                ..Indicator::expression("message.a == 'secret'")
            },
        ),
        built(
            "two more",
            Indicator {
                semantic: semantic(),
                ..Indicator::matching("a", "secret")
            },
        ),
        built("nothing", Indicator::default()),
        built(
            "its target",
            Indicator::matching("a", MatchCondition::contains("secret")),
        ),
        built(
            "a target",
            Indicator {
                target: "a".to_owned(),
                semantic: semantic(),
                ..Indicator::default()
            },
        ),
        built(
            "no regex",
            Indicator::matching("nowhere", MatchCondition::regex("[")),
        ),
        built("no regex either", Indicator::matching("a", regex_and_text)),
        built(
            "no path",
            Indicator::matching("a[0]", MatchCondition::exists(false)),
        ),
    ];
    let document = |protocol: Option<Protocol>| {
        let indicators = indicators.iter().map(|indicator| Indicator {
            protocol: protocol.clone(),
            ..indicator.clone()
        });
        Document::new(Attack {
            indicators: Some(indicators.collect()),
            ..Attack::default()
        })
    };
    for content in [
        json!({"a": "secret"}),
        json!({"a": ["x"]}),
        json!({"b": 1}),
        json!(null),
    ] {
        let message = TraceMessage::new("mcp", "tools/call", content);
        for protocol in [None, Some(Protocol::Mcp), Some(Protocol::A2a)] {
            let document = document(protocol);
            check(&[document.clone(), normalize(document)], &message);
        }
    }
    let two = document(Some(Protocol::Mcp));
    let scanner = Scanner::builder()
        .without_cel()
        .add("two", two)
        .build()
        .unwrap();
    let mut session = scanner.session();
    session.feed(&TraceMessage::new(
        "mcp",
        "tools/call",
        json!({"a": "secret"}),
    ));
    assert_eq!(
        session.verdicts()[0].indicators[3].result,
        IndicatorResult::Skipped
    );
}
