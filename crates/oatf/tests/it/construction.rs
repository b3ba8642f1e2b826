//! Documents that a program builds: with few words, and nothing that means something else once it is written.

use proofhouse_oatf::{
    Action, ActionKind, Attack, Condition, DateOrDateTime, Document, DurationError, Durations,
    Execution, Indicator, IndicatorResult, IndicatorVerdict, MatchCondition, MatchPredicate, Mode,
    PathSegment, Phase, Severity, SeverityLevel, Trigger, validate,
};
use serde_json::{Value, json};

#[test]
fn parts_are_made_of_what_they_need() {
    let opening = Phase {
        state: Some(json!({"tools": []})),
        on_enter: Some(vec![
            Action::send("notifications/tools/list_changed", None),
            Action::log("the server has changed its tools"),
        ]),
        trigger: Some(Trigger {
            count: Some(2),
            ..Trigger::event("tools/call")
        }),
        ..Phase::default()
    };
    let waiting = Phase {
        trigger: Some(Trigger::after("30s")),
        ..Phase::default()
    };
    let document = Document::new(Attack {
        severity: Some(SeverityLevel::High.into()),
        created: "2026-01-15".parse().ok(),
        execution: Execution {
            mode: Some(Mode::McpServer),
            phases: Some(vec![opening, waiting, Phase::default()]),
            ..Execution::default()
        },
        indicators: Some(vec![Indicator::semantic("arguments", "sends a password")]),
        ..Attack::default()
    });
    let result = validate(&document);
    assert!(result.is_valid(), "{:?}", result.errors);
    let attack = &document.attack;
    assert_eq!(
        attack.severity.as_ref().and_then(|one| one.confidence),
        None
    );
    assert!(attack.created.is_some());
    assert!("today".parse::<DateOrDateTime>().is_err());
    let kind = Action::send("x", Some(json!({"a": 1}))).kind().cloned();
    assert!(matches!(
        kind,
        Some(ActionKind::Send {
            params: Some(_),
            ..
        })
    ));
    let verdict = IndicatorVerdict::new("a", IndicatorResult::Skipped);
    assert_eq!(
        (verdict.indicator_id.as_str(), verdict.evidence),
        ("a", None)
    );
    assert_eq!(Condition::from(3), Condition::Equals(json!(3)));
    assert_eq!(
        Condition::from(u64::MAX),
        Condition::Equals(json!(u64::MAX))
    );
    let severity = Severity::from(SeverityLevel::Low);
    assert_eq!(severity.level, SeverityLevel::Low);
    // What the public API takes and returns has a name here.
    assert_eq!(Durations::POSITIVE.parse("0s"), Err(DurationError::Zero));
    assert_ne!(PathSegment::Index(0), PathSegment::Key("a"));
}

/// Written into a document, such a mapping would be read as operators.
#[test]
fn a_value_that_would_be_read_as_operators_is_found() {
    let found = |condition: Condition| {
        let phase = Phase {
            state: Some(json!({})),
            trigger: Some(Trigger {
                r#match: Some(MatchPredicate::from_iter([(
                    "a".to_owned(),
                    condition.clone(),
                )])),
                ..Trigger::event("tools/call")
            }),
            ..Phase::default()
        };
        let document = Document::new(Attack {
            execution: Execution {
                mode: Some(Mode::McpServer),
                phases: Some(vec![phase, Phase::default()]),
                ..Execution::default()
            },
            indicators: Some(vec![Indicator::matching("a", condition)]),
            ..Attack::default()
        });
        let errors = validate(&document).errors;
        let told = errors.into_iter().map(|error| (error.rule, error.path));
        told.collect::<Vec<_>>()
    };
    for value in [json!({"contains": "x"}), json!({"gt": 1, "other": 2})] {
        let told = found(Condition::Equals(value));
        let places = [
            "attack.execution.phases[0].trigger.match.a",
            "attack.indicators[0].pattern.condition",
        ];
        let expected = places.map(|place| ("PH-104", place.to_owned()));
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(expected.iter().all(|one| told.contains(one)), "{told:?}");
    }
    assert_eq!(found(json!({"kind": {"contains": "x"}}).into()), []);
    assert_eq!(found(Value::Null.into()), []);
    assert_eq!(found(MatchCondition::contains("x").into()), []);
}
