//! Sentences of the specification that were once read wrongly, one test each.

use std::collections::HashMap;
use std::time::Duration;

use proofhouse_oatf::{
    Action, ActionKind, AdvanceReason, Attack, CelContext, CelEvaluator, CelExpression, Condition,
    DateOrDateTime, DefaultCelEvaluator, Document, DurationText, EvaluationErrorKind, Execution,
    Extensions, Extractor, ExtractorSource, Fragment, Indicator, IndicatorResult, MatchBudget,
    MatchCondition, MatchPredicate, Mode, PatternMatch, Phase, ProtocolEvent, ReadLimits,
    RegexPattern, Selector, Trigger, TriggerResult, TriggerState, check, coerce_to_text,
    deep_equal, evaluate_condition, evaluate_extractor, evaluate_extractor_within,
    evaluate_indicator, evaluate_pattern, evaluate_trigger_within, interpolate_template,
    interpolate_value, load, parse, resolve_simple_path, resolve_wildcard_path, validate,
};
use serde_json::{Value, json};

const EXECUTION: &str = "  execution: {mode: mcp_server, state: {tools: []}}\n";

fn document(body: &str) -> String {
    format!("oatf: \"0.1\"\nattack:\n  id: ACME-003\n{EXECUTION}{body}")
}

fn with_cel(cel: &str, variables: &str) -> String {
    let cel = serde_json::to_string(cel).unwrap();
    document(&format!(
        "  indicators:\n    - {{target: '', expression: {{cel: {cel}, variables: {{{variables}}}}}}}\n"
    ))
}

/// The codes of everything that is wrong or doubtful.
fn codes(text: &str) -> Vec<&'static str> {
    let findings = check(text, &ReadLimits::default());
    findings.into_iter().map(|finding| finding.code).collect()
}

fn judge(text: &str, message: &Value) -> (IndicatorResult, Option<String>) {
    let loaded = load(text).unwrap();
    let indicator = &loaded.document.attack.indicators()[0];
    let verdict = evaluate_indicator(indicator, message, Some(&DefaultCelEvaluator), None);
    (verdict.result, verdict.evidence)
}

/// V-014: "every CEL expression parses". What other implementations of CEL do not parse is no CEL.
#[test]
fn expressions_are_plain_cel() {
    for cel in [
        "has(v)",
        "!has( v ) || true",
        "[1].all(x, has(x))",
        "message.`odd key` == 1",
        "message.a == 'one\ntwo'",
        "message.a == r'one\ntwo'",
        "message.a == \"one\rtwo\"",
        "__h(v)",
    ] {
        let found = codes(&with_cel(cel, "v: arguments.secret"));
        let expected: &[&str] = if cel == "__h(v)" { &[] } else { &["V-014"] };
        assert_eq!(found, expected, "{cel}");
    }
    for cel in [
        "has(message.v)",
        "message.a == '''one\ntwo'''",
        "message.a == 'x\\ny'",
    ] {
        assert_eq!(codes(&with_cel(cel, "")), [] as [&str; 0], "{cel}");
    }
}

/// §4.3 binds "the result"; vector EVAL-CEL-09 shows that there is null where nothing is at the path.
#[test]
fn a_variable_without_a_value_is_null() {
    let missing = json!({"arguments": {}});
    let text = with_cel("v == null", "v: arguments.secret");
    assert_eq!(judge(&text, &missing).0, IndicatorResult::Matched);
    let guarded = with_cel(
        "has(message.arguments.secret) && v != 'x'",
        "v: arguments.secret",
    );
    assert_eq!(judge(&guarded, &missing).0, IndicatorResult::NotMatched);
}

/// §2.6a: a name "must match `[a-z][a-z0-9_]*`", a mode the convention; the schema wants one actor at least.
#[test]
fn actors_have_names_and_modes() {
    let nameless = "{name: \"\", mode: \"\", phases: [{state: {}}]}";
    let text =
        format!("oatf: \"0.1\"\nattack:\n  execution:\n    actors: [{nameless}, {nameless}]\n");
    let found = codes(&text);
    assert!(
        found.contains(&"V-031") && found.contains(&"V-034"),
        "{found:?}"
    );
    let text = "oatf: \"0.1\"\nattack:\n  execution:\n    actors: []\n";
    assert_eq!(codes(text), ["V-031"]);
}

fn regex_indicator(regex: &str) -> Indicator {
    let condition = MatchCondition {
        regex: Some(RegexPattern::new(regex)),
        ..MatchCondition::default()
    };
    Indicator {
        id: Some("x".to_owned()),
        pattern: Some(PatternMatch {
            target: Some(String::new()),
            condition: Some(Condition::Operators(Box::new(condition))),
            ..PatternMatch::default()
        }),
        ..Indicator::default()
    }
}

/// §4.2: "If a regex condition exceeds the tool's match time limit, return `regex_timeout`."
#[test]
fn a_slow_regex_times_out() {
    let mut bits = 1_u64;
    let text: String = (0..700_000)
        .map(|_| {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            if bits & 1 == 0 { '0' } else { '1' }
        })
        .collect();
    let indicator = regex_indicator("1[01]{900}2");
    let pattern = indicator.pattern.as_ref().unwrap();
    let error = evaluate_pattern(pattern, &json!(text)).unwrap_err();
    assert_eq!(error.kind, EvaluationErrorKind::RegexTimeout);
    let verdict = evaluate_indicator(&indicator, &json!(text), None, None);
    assert_eq!(verdict.result, IndicatorResult::Error);
    // Many values have one limit together.
    let parts: Vec<&str> = (0..700).map(|n| &text[n * 1000..][..1000]).collect();
    let mut many = indicator.pattern.clone().unwrap();
    many.target = Some("parts[*]".to_owned());
    let error = evaluate_pattern(&many, &json!({"parts": parts})).unwrap_err();
    assert_eq!(error.kind, EvaluationErrorKind::RegexTimeout);
}

/// §5.3: "Patterns MUST be compiled with RE2 semantics", those of CEL's `matches` too.
#[test]
fn matches_is_re2() {
    for (cel, expected) in [
        ("'٣'.matches('\\\\d')", false),
        ("'é'.matches('\\\\w')", false),
        ("'café'.matches('\\\\bcaf\\\\b')", true),
        ("'[a'.matches('[[]a')", true),
        ("'a.b'.matches('\\\\Qa.b\\\\E')", true),
        ("'a'.matches('\\\\p{^Lu}')", true),
        ("'aéa'.matches('\\\\B')", false),
        ("'éé'.matches('\\\\B')", true),
    ] {
        let result = DefaultCelEvaluator.evaluate(cel, &CelContext::new());
        assert_eq!(result, Ok(json!(expected)), "{cel}");
    }
    for (regex, text, expected) in [
        (r"\p{^Lu}", "A", false),
        (r"\P{^Lu}", "A", true),
        (r"[\p{^Lu}]", "a", true),
        (r"x\B", "x1", true),
        (r"\B", "aéa", false),
    ] {
        let pattern = regex_indicator(regex).pattern.unwrap();
        assert_eq!(
            evaluate_pattern(&pattern, &json!(text)),
            Ok(expected),
            "{regex}"
        );
    }
}

/// V-013 covers the patterns of expressions; what is over our own limits is told, under our own code.
#[test]
fn patterns_of_expressions_are_checked() {
    for (cel, code) in [
        ("message.a.matches('(?=a)')", "V-013"),
        ("message.a.matches('a++')", "V-013"),
        ("message.a.matches('\\\\p{Alphabetic}')", "V-013"),
        ("message.a.matches('(\\\\pL{400})')", "PH-105"),
    ] {
        assert_eq!(codes(&with_cel(cel, "")), [code], "{cel}");
    }
}

/// The words of a long text beyond ASCII are found within the time limit.
#[test]
fn word_boundaries_are_quick_beyond_ascii() {
    let text = json!("zażółć gęślą jaźń ".repeat(10_000));
    let mut context = CelContext::new();
    context.bind("message", &text);
    let cel = r"message.matches(r'(?i)\b(not|none|denied|refus\w*|declin\w*|reject\w*)\b')";
    assert_eq!(
        DefaultCelEvaluator.evaluate(cel, &context),
        Ok(json!(false))
    );
}

/// §6.1: "The evaluator MUST return a type error (not crash) when the expression produces a non-boolean".
#[test]
fn the_evaluator_itself_refuses_what_is_not_a_boolean() {
    let error = DefaultCelEvaluator
        .evaluate("1 + 1", &CelContext::new())
        .unwrap_err();
    assert_eq!(error.kind, EvaluationErrorKind::TypeError);
}

/// §6.1: "`unsupported_method` when an expression calls an unsupported function".
#[test]
fn functions_of_other_libraries_are_unsupported() {
    for cel in [
        "sets.contains([1, 2], [1])",
        "sets.equivalent([1], [1])",
        "math.greatest(1, 2) > 1",
    ] {
        let error = DefaultCelEvaluator
            .evaluate(cel, &CelContext::new())
            .unwrap_err();
        assert_eq!(error.kind, EvaluationErrorKind::UnsupportedMethod, "{cel}");
    }
}

/// §2.20: `Protocol`, `Mode`, `Surface` and `Framework` are open: they have types of their own, and unknown names are kept.
/// §2.10: a predicate is a map from paths to conditions, "without introducing an intermediate `entries` key".
#[test]
fn open_enumerations_and_predicates_have_types_of_their_own() {
    fn round_trip<T: std::str::FromStr + std::fmt::Display>(names: [&str; 2]) {
        for name in names {
            let value: T = name.parse().unwrap_or_else(|_| panic!("{name}"));
            assert_eq!(value.to_string(), name);
        }
    }
    round_trip::<proofhouse_oatf::Protocol>(["mcp", "acp"]);
    round_trip::<proofhouse_oatf::Mode>(["mcp_server", "acp_client"]);
    round_trip::<proofhouse_oatf::Surface>(["tools/call", "tools/none"]);
    round_trip::<proofhouse_oatf::Framework>(["atlas", "house_rules"]);
    let predicate: proofhouse_oatf::MatchPredicate = [(
        "name".to_owned(),
        proofhouse_oatf::MatchEntry::Equals(json!("calc")),
    )]
    .into_iter()
    .collect();
    assert_eq!(
        serde_json::to_value(&predicate).unwrap(),
        json!({"name": "calc"})
    );
}

/// V-024: the part before the final `-NN` equals `attack.id`.
#[test]
fn indicator_ids_extend_their_attack_exactly() {
    for (id, valid) in [
        ("ACME-003-02", true),
        ("ACME-003-001-02", false),
        ("ACME-0031-02", false),
    ] {
        let text = document(&format!(
            "  indicators: [{{id: {id}, target: a, pattern: {{contains: x}}}}]\n"
        ));
        let expected: &[&str] = if valid { &[] } else { &["V-024"] };
        assert_eq!(codes(&text), expected, "{id}");
    }
}

/// §2.1: "An ISO 8601 date (YYYY-MM-DD)"; the last day of the calendar is one.
#[test]
fn the_last_day_is_a_date() {
    for date in [
        "9999-12-31",
        "9999-12-31T23:59:59Z",
        "9999-12-31T00:00:00-12:00",
        "0001-01-01",
    ] {
        assert!(DateOrDateTime::parse(date).is_some(), "{date}");
        assert!(
            load(&document(&format!("  created: \"{date}\"\n"))).is_ok(),
            "{date}"
        );
    }
    assert!(DateOrDateTime::parse("9999-12-32").is_none());
}

/// §2.20: "unknown values MUST be rejected during parsing (`unknown_variant`)".
#[test]
fn elicitation_modes_are_a_closed_enumeration() {
    let text = "oatf: \"0.1\"\nattack:\n  execution:\n    mode: mcp_server\n    state:\n      elicitations:\n        \
                - {message: m, mode: forn}\n";
    let errors = parse(text).unwrap_err();
    assert_eq!(errors[0].kind.as_str(), "unknown_variant");
    assert_eq!(
        errors[0].path.as_deref(),
        Some("attack.execution.state.elicitations[0].mode")
    );
    assert_eq!(codes(text), ["V-005"]);
    assert!(parse(&text.replace("forn", "'{{kind}}'")).is_ok());
    assert!(parse(&text.replace("mcp_server", "voice_server")).is_ok());
    // What is no text at all is no member either.
    for odd in ["5", "[form]", "{form: 1}", "true"] {
        assert_eq!(codes(&text.replace("forn", odd)), ["PH-010"], "{odd}");
    }
    assert_eq!(codes(&text.replace("forn", "null")), [] as [&str; 0]);
}

/// What a list of another mode means is not ours to say.
#[test]
fn dispatch_lists_are_read_where_their_mode_has_them() {
    let text = |mode: &str, state: &str| {
        format!("oatf: \"0.1\"\nattack:\n  execution: {{mode: {mode}, state: {{{state}}}}}\n")
    };
    let odd = "task_responses: {x: 1}, tools: [{name: a, responses: [{when: x}]}]";
    assert_eq!(codes(&text("mcp_server", odd)), ["PH-010"]);
    assert_eq!(codes(&text("a2a_server", odd)), ["PH-010"]);
    for mode in ["voice_server", "mcp_client"] {
        let errors = parse(&text(mode, odd));
        assert!(errors.is_ok(), "{mode}: {errors:?}");
    }
    let absent = "tools: [{name: a, responses: null}, null, 5], prompts: {a: 1}";
    assert!(parse(&text("mcp_server", absent)).is_ok());
}

/// A program can put anything into a state; what cannot be read back is told.
#[test]
fn states_that_programs_build_are_held_to_the_same() {
    let found = |mode: &str, state: Value| {
        let mut attack = Attack::default();
        attack.execution.mode = Some(mode.into());
        attack.execution.state = Some(state);
        let errors = validate(&Document::new(attack)).errors;
        let errors = errors.into_iter().map(|error| (error.rule, error.message));
        errors.collect::<Vec<_>>()
    };
    let odd = json!({"tools": [{"name": "a", "responses": [{"when": "x"}]}]});
    let told = found("mcp_server", odd.clone());
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "PH-101");
    assert!(told[0].1.contains("tools[0].responses[0].when"), "{told:?}");
    assert_eq!(found("voice_server", odd), []);
    let mode = json!({"elicitations": [{"message": "m", "mode": 5}]});
    assert!(!found("mcp_server", mode).is_empty());
}

/// Types of the API that are others' are named here, and owned texts become what they are the source of.
#[test]
fn parts_are_made_of_what_programs_have() {
    let text = || "a".to_owned();
    assert_eq!(RegexPattern::from(text()), RegexPattern::from("a"));
    assert_eq!(CelExpression::from(text()).as_str(), "a");
    assert_eq!(Selector::from(text()).as_str(), "a");
    assert_eq!(DurationText::from(text()).as_str(), "a");
    let (one, two) = (json!(1), json!(2));
    let context: CelContext<'_> = [("a", &one), ("a", &two)].into_iter().collect();
    assert_eq!(context.iter().collect::<Vec<_>>(), [("a", &two)]);
    let path: Option<&proofhouse_oatf::JsonPath> = None;
    assert!(path.is_none() && proofhouse_oatf::Timestamp::UNIX_EPOCH.as_second() == 0);
}

/// V-020 forbids custom tags; those of the core schema mean what YAML says.
#[test]
fn core_tags_are_obeyed_or_refused() {
    let version = |text: &str| {
        let text = document(&format!("  version: {text}\n"));
        parse(&text).map(|document| document.attack.version)
    };
    assert_eq!(version("!!int \"7\"").unwrap(), Some(7));
    assert!(version("!!str 7").is_err());
    assert!(version("!!int \"seven\"").is_err());
    assert!(version("!!bool 7").is_err());
}

/// §5.5: every `\{{` is replaced first, and restored to `{{` at the end.
#[test]
fn escapes_hold_in_what_is_never_closed() {
    let text = |template| interpolate_template(template, &HashMap::new(), None, None).0;
    assert_eq!(text(r"{{a\{{b"), "{{a{{b");
    assert_eq!(text(r"\{{a\{{b"), "{{a{{b");
}

/// §5.1: segments are `[a-zA-Z0-9_-]+`; "numeric indexing is not supported".
#[test]
fn resolvers_know_no_other_segments() {
    let value = json!({"tools[0]": 1, "[*]": [2], "": [3], "a b": 4, "tools[*]": 5, "é": 6});
    for path in ["tools[0]", "[*]", "a b", ".", "tools[*]", "é"] {
        assert_eq!(resolve_simple_path(path, &value), None, "{path}");
        assert_eq!(
            resolve_wildcard_path(path, &value),
            [] as [&Value; 0],
            "{path}"
        );
    }
}

/// §2.11: "At least one operator MUST be present."
#[test]
fn a_condition_without_operators_holds_for_nothing() {
    let empty = Condition::Operators(Box::default());
    assert!(!evaluate_condition(&empty, &json!("x")));
    let pattern = PatternMatch {
        target: Some(String::new()),
        condition: Some(empty),
        ..PatternMatch::default()
    };
    assert!(evaluate_pattern(&pattern, &json!("x")).is_err());
    for pattern in ["{contains: }", "{condition: {contains: null}}"] {
        let text = document(&format!(
            "  indicators: [{{target: a, pattern: {pattern}}}]\n"
        ));
        assert!(load(&text).is_err(), "{pattern}: {:?}", codes(&text));
    }
    let text = "oatf: \"0.1\"\nattack:\n  execution:\n    mode: mcp_server\n    phases:\n      \
                - {state: {}, trigger: {event: tools/call, match: {name: {contains: }}}}\n      - {}\n";
    assert!(load(text).is_err(), "{:?}", codes(text));
}

/// A value that is nested that deep.
fn deep(levels: usize) -> Value {
    let mut value = json!("end");
    for level in 0..levels {
        // The macro would copy it, by recursion.
        value = if level % 2 == 0 {
            Value::Array(vec![value])
        } else {
            Value::Object(std::iter::once(("a".to_owned(), value)).collect())
        };
    }
    value
}

/// Drops a value without recursion.
fn bury(mut value: Value) {
    loop {
        value = match value {
            Value::Array(mut items) => items.pop().unwrap_or_default(),
            Value::Object(map) => map
                .into_iter()
                .next()
                .map(|(_, value)| value)
                .unwrap_or_default(),
            _ => return,
        };
    }
}

/// A value built in a program may be nested deeper than any stack is.
#[test]
fn deep_values_do_not_exhaust_the_stack() {
    let (one, two) = (deep(30_000), deep(30_000));
    assert!(deep_equal(&one, &two));
    assert!(coerce_to_text(&one).contains("[\"end\"]"));
    let pattern = PatternMatch::default();
    assert!(evaluate_pattern(&pattern, &one).is_err());
    assert_eq!(
        evaluate_pattern(&regex_indicator("end").pattern.unwrap(), &one),
        Ok(true)
    );
    let (filled, _) = interpolate_value(&one, &HashMap::new(), None, None);
    assert!(deep_equal(&filled, &one));
    for selector in ["$..a", "$[0].a"] {
        let extractor = proofhouse_oatf::Extractor::from_value(&json!({
            "name": "x", "source": "request", "type": "json_path", "selector": selector,
        }))
        .unwrap();
        let _ = evaluate_extractor(&extractor, &one, ExtractorSource::Request);
    }
    let mut context = CelContext::new();
    context.bind("message", &one);
    let _ = DefaultCelEvaluator.evaluate("message == message", &context);
    for value in [one, two, filled] {
        bury(value);
    }
}

/// So may one that stands in a document, wherever it stands there.
#[test]
fn deep_documents_are_refused_and_can_be_written() {
    type Put = fn(&mut Attack, Value);
    fn phase(attack: &mut Attack) -> &mut Phase {
        attack.execution = Execution::single(Mode::McpServer, json!({}));
        attack.execution.state = None;
        let phases = attack.execution.phases.get_or_insert_default();
        phases.push(Phase {
            state: Some(json!({})),
            ..Phase::default()
        });
        &mut phases[0]
    }
    let places: [(&str, Put); 9] = [
        ("attack.execution.state", |attack, value| {
            attack.execution.state = Some(value);
        }),
        ("attack.execution.phases[0].state", |attack, value| {
            phase(attack).state = Some(value);
        }),
        (
            "attack.execution.phases[0].on_enter[0].send.params",
            |attack, value| {
                let kinds = vec![ActionKind::Send {
                    method: "x".into(),
                    params: Some(value),
                }];
                phase(attack).on_enter = Some(vec![Action {
                    kinds,
                    extensions: Extensions::new(),
                }]);
            },
        ),
        (
            "attack.execution.phases[0].on_enter[0].wave",
            |attack, value| {
                let kinds = vec![ActionKind::Binding {
                    name: "wave".into(),
                    value,
                }];
                phase(attack).on_enter = Some(vec![Action {
                    kinds,
                    extensions: Extensions::new(),
                }]);
            },
        ),
        (
            "attack.execution.phases[0].trigger.match.a",
            |attack, value| {
                phase(attack).trigger = Some(Trigger {
                    event: Some("tools/call".into()),
                    r#match: Some(MatchPredicate::from_iter([("a".into(), value.into())])),
                    ..Trigger::default()
                });
            },
        ),
        ("attack.execution.x-e", |attack, value| {
            attack.execution.extensions.insert("x-e".into(), value);
        }),
        ("attack.x-e", |attack, value| {
            attack.extensions.insert("x-e".into(), value);
        }),
        ("attack.indicators[0].x-e", |attack, value| {
            let mut indicator = regex_indicator("x");
            indicator.extensions.insert("x-e".into(), value);
            attack.indicators = Some(vec![indicator]);
        }),
        (
            "attack.indicators[0].pattern.condition.any_of",
            |attack, value| {
                let any_of = MatchCondition {
                    any_of: Some(vec![value]),
                    ..MatchCondition::default()
                };
                attack.indicators = Some(vec![Indicator::matching("a", any_of)]);
            },
        ),
    ];
    for (place, put) in places {
        // At the limit of the reader, beyond it, and beyond what any stack holds.
        for levels in [40, 129, 30_000] {
            let mut attack = Attack {
                execution: Execution::single(Mode::McpServer, json!({})),
                ..Attack::default()
            };
            put(&mut attack, deep(levels));
            let document = Document::new(attack);
            let found = validate(&document).errors;
            let told: Vec<_> = found
                .iter()
                .filter(|error| error.rule == "PH-006")
                .map(|error| error.path.as_str())
                .collect();
            if levels == 40 {
                assert!(told.is_empty(), "{place}: {found:?}");
            } else {
                assert_eq!((told.as_slice(), found.len()), (&[place][..], 1), "{place}");
            }
            let written = proofhouse_oatf::to_value(&document);
            assert_eq!(written["oatf"], "0.1");
            let text = proofhouse_oatf::serialize(&document);
            assert!(text.starts_with("oatf:"), "{place}");
            // Whoever builds a value that deep has to take it apart.
            std::mem::forget(document);
        }
    }
}

/// A document that was built in a program is held to the same rules.
#[test]
fn rules_hold_without_a_source() {
    let mut attack = Attack {
        indicators: Some(vec![regex_indicator("x")]),
        ..Attack::default()
    };
    attack.execution.mode = Some("mcp_server".into());
    attack.execution.actors = Some(Vec::new());
    let result = validate(&Document::new(attack));
    assert!(result.errors.iter().any(|error| error.rule == "V-031"));
}

/// §5.6 and §5.8 within no time at all: what needs a search is an error, and what needs none is done as ever.
#[test]
fn extractors_and_triggers_stop_when_their_time_is_over() {
    let message = json!({"key": "key=abc"});
    let extract = |extractor: &Extractor, budget: &mut MatchBudget| {
        evaluate_extractor_within(extractor, &message, ExtractorSource::Request, budget)
            .map_err(|error| error.kind)
    };
    let none = || MatchBudget::new(Duration::ZERO);
    let regex = Extractor::regex("x", ExtractorSource::Request, "key=([a-z]+)");
    let timeout = EvaluationErrorKind::RegexTimeout;
    assert_eq!(extract(&regex, &mut none()), Err(timeout));
    assert_eq!(
        extract(&regex, &mut MatchBudget::default()),
        Ok(Some("abc".into()))
    );
    let other_side = Extractor::regex("x", ExtractorSource::Response, "key=([a-z]+)");
    assert_eq!(extract(&other_side, &mut none()), Ok(None));
    let path = Extractor::json_path("x", ExtractorSource::Request, "$.key");
    assert_eq!(extract(&path, &mut none()), Ok(Some("key=abc".into())));

    let condition = MatchCondition::regex("a+bc");
    let trigger = Trigger {
        count: Some(2),
        after: Some("30s".into()),
        r#match: Some(MatchPredicate::from_iter([(
            "key".to_owned(),
            condition.into(),
        )])),
        ..Trigger::event("tools/call")
    };
    let mut state = TriggerState::default();
    let mut happens = |event_type: &str, elapsed: u64, budget: &mut MatchBudget| {
        let event = ProtocolEvent {
            event_type: event_type.to_owned(),
            content: message.clone(),
        };
        let elapsed = Duration::from_secs(elapsed);
        let result = evaluate_trigger_within(&trigger, Some(&event), elapsed, &mut state, budget);
        (result.map_err(|error| error.kind), state.event_count)
    };
    let stay = TriggerResult::NotAdvanced;
    let advanced = |reason| Ok(TriggerResult::Advanced { reason });
    assert_eq!(happens("tools/call", 0, &mut none()), (Err(timeout), 0));
    assert_eq!(happens("tools/list", 0, &mut none()), (Ok(stay), 0));
    let budget = &mut MatchBudget::default();
    assert_eq!(happens("tools/call", 0, budget), (Ok(stay), 1));
    assert_eq!(happens("tools/call", 0, &mut none()), (Err(timeout), 1));
    let matched = advanced(AdvanceReason::EventMatched);
    assert_eq!(happens("tools/call", 0, budget), (matched, 2));
    let over = advanced(AdvanceReason::Timeout);
    assert_eq!(happens("tools/call", 30, &mut none()), (over, 2));
}
