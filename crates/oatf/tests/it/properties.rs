//! Properties of parse, normalize, serialize, check and evaluate over arbitrary documents.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashSet;

use proofhouse_oatf::{
    Action, ActionKind, Actor, Attack, Category, CelExpression, Classification, Condition,
    Correlation, CorrelationLogic, DateOrDateTime, DefaultCelEvaluator, Direction, Document,
    DurationText, Execution, ExpressionMatch, Extensions, Extractor, ExtractorSource,
    ExtractorType, Fragment, Framework, FrameworkMapping, Impact, Indicator, IndicatorMethod,
    LogLevel, MatchCondition, MatchPredicate, Mode, PatternMatch, Phase, Protocol, ReadLimits,
    Reference, RegexPattern, Relationship, Selector, SemanticExamples, SemanticIntentClass,
    SemanticMatch, Severity, SeverityLevel, Status, Surface, Tier, Trigger, check,
    evaluate_indicator, load, normalize, parse, serialize, to_value, validate,
};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

/// Strings that YAML, templates and paths find hard.
fn odd_text() -> BoxedStrategy<String> {
    prop_oneof![
        "[a-z]{0,8}",
        "\\PC{0,12}",
        "[ \t\n\r:#a\\-|>'\"{},\\[\\]&*!%@?`~\\\\]{0,10}",
        select(vec![
            "",
            "null",
            "~",
            "true",
            "No",
            "1",
            "1e3",
            "0x1f",
            ".nan",
            "<<",
            "---",
            "- a",
            "a: b",
            "2026-01-15",
            "{{a}}",
            "{{",
            "\\{{",
            "}}",
            "\u{feff}x",
            "\u{85}",
            "\u{2028}",
            "line\nline\n",
            "\n",
            " \n a",
            "x-a",
            "é🙂",
        ])
        .prop_map(str::to_owned),
    ]
    .boxed()
}

fn any_json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300f64..1e300).prop_map(Value::from),
        odd_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((odd_text(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Mappings that hold what the rules look for in protocol state.
fn any_state() -> BoxedStrategy<Value> {
    // What cannot be read is not parsed, so it cannot be read back.
    let when = predicate().prop_map(|when| serde_json::to_value(when).unwrap());
    let when = prop_oneof![when, Just(Value::Null)];
    let entry =
        (option(when), option(any_json()), odd_text()).prop_map(|(when, content, action)| {
            let mut entry = Map::new();
            entry.extend(when.map(|when| ("when".to_owned(), when)));
            entry.extend(content.map(|content| ("content".to_owned(), content)));
            entry.insert("action".to_owned(), action.into());
            Value::Object(entry)
        });
    let list = prop::collection::vec(entry, 0..3).prop_map(Value::from);
    let lists = select(vec![
        "tool_responses",
        "elicitation_responses",
        "elicitations",
    ]);
    let others = select(vec!["tools", "prompts", "run_agent_input", "other"]);
    let field = prop_oneof![
        (lists, list.clone()),
        (others, prop_oneof![list, any_json()])
    ];
    prop::collection::vec(field, 0..4)
        .prop_map(|entries| {
            Value::Object(
                entries
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect(),
            )
        })
        .boxed()
}

fn option<T: Clone + std::fmt::Debug + 'static>(
    of: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Option<T>> {
    prop::option::of(of).boxed()
}

fn list<T: Clone + std::fmt::Debug + 'static>(
    of: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Option<Vec<T>>> {
    prop::option::of(prop::collection::vec(of, 0..3)).boxed()
}

fn extensions() -> BoxedStrategy<Extensions> {
    prop::collection::vec(("x-[a-z]{0,4}", any_json()), 0..2)
        .prop_map(|entries| entries.into_iter().collect())
        .boxed()
}

fn member<T: Clone + Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> BoxedStrategy<T> {
    select(all).boxed()
}

fn mode() -> BoxedStrategy<Mode> {
    prop_oneof![
        4 => select(vec!["mcp_server", "mcp_client", "a2a_server", "ag_ui_client", "voice_server"]).prop_map(Mode::from),
        1 => odd_text().prop_map(Mode::from),
    ].boxed()
}

fn condition() -> BoxedStrategy<Condition> {
    let equals = any_json().prop_filter("operators are read as operators", |value| {
        !value.as_object().is_some_and(|map| {
            MatchCondition::OPERATORS
                .iter()
                .any(|o| map.contains_key(*o))
        })
    });
    prop_oneof![
        equals.prop_map(Condition::Equals),
        operators().prop_map(|operators| Condition::Operators(Box::new(operators))),
    ]
    .boxed()
}

fn operators() -> BoxedStrategy<MatchCondition> {
    let number = || {
        option(prop_oneof![
            -1e9f64..1e9,
            any::<i32>().prop_map(f64::from),
            Just(1e300)
        ])
    };
    (
        (
            option(odd_text()),
            option(odd_text()),
            option(odd_text()),
            option(odd_text()),
        ),
        list(any_json()),
        (number(), number(), number(), number()),
        option(any::<bool>()),
    )
        .prop_map(
            |((contains, starts_with, ends_with, regex), any_of, (gt, lt, gte, lte), exists)| {
                MatchCondition {
                    contains,
                    starts_with,
                    ends_with,
                    regex: regex.map(RegexPattern::new),
                    any_of,
                    gt,
                    lt,
                    gte,
                    lte,
                    exists,
                }
            },
        )
        .prop_filter("a mapping without operators is a value", |operators| {
            !operators.is_empty()
        })
        .boxed()
}

fn predicate() -> BoxedStrategy<MatchPredicate> {
    prop::collection::vec((odd_text(), condition()), 0..3)
        .prop_map(MatchPredicate::from_iter)
        .boxed()
}

fn trigger() -> BoxedStrategy<Trigger> {
    (
        option(odd_text()),
        option(any::<i64>()),
        option(predicate()),
        option(duration()),
    )
        .prop_map(|(event, count, r#match, after)| Trigger {
            event,
            count,
            r#match,
            after,
        })
        .boxed()
}

fn duration() -> BoxedStrategy<DurationText> {
    prop_oneof!["[0-9]{1,3}[smhd]", "PT[0-9]{1,3}S", odd_text()]
        .prop_map(DurationText::new)
        .boxed()
}

fn extractor() -> BoxedStrategy<Extractor> {
    (
        odd_text(),
        member(ExtractorSource::ALL),
        member(ExtractorType::ALL),
        odd_text(),
    )
        .prop_map(|(name, source, r#type, selector)| Extractor {
            name,
            source,
            r#type,
            selector: Selector::new(selector),
        })
        .boxed()
}

fn action() -> BoxedStrategy<Action> {
    let kind = prop_oneof![
        (odd_text(), option(present_json()))
            .prop_map(|(method, params)| ActionKind::Send { method, params }),
        (odd_text(), option(member(LogLevel::ALL)))
            .prop_map(|(message, level)| ActionKind::Log { message, level }),
        ("[a-w][a-z_]{0,6}", any_json())
            .prop_map(|(name, value)| ActionKind::Binding { name, value }),
    ];
    (prop::collection::vec(kind, 0..3), extensions())
        .prop_map(|(kinds, extensions)| {
            let mut seen = HashSet::new();
            let kinds = kinds
                .into_iter()
                .filter(|kind| seen.insert(kind.key().to_owned()))
                .collect();
            Action { kinds, extensions }
        })
        .boxed()
}

/// Anything but null, which counts as absent.
fn present_json() -> BoxedStrategy<Value> {
    any_json()
        .prop_filter("null counts as absent", |value| !value.is_null())
        .boxed()
}

fn phase() -> BoxedStrategy<Phase> {
    (
        (option(odd_text()), option(odd_text()), option(mode())),
        option(prop_oneof![any_state(), present_json()]),
        (list(extractor()), list(action()), option(trigger())),
        extensions(),
    )
        .prop_map(
            |((name, description, mode), state, (extractors, on_enter, trigger), extensions)| {
                Phase {
                    name,
                    description,
                    mode,
                    state,
                    extractors,
                    on_enter,
                    trigger,
                    extensions,
                }
            },
        )
        .boxed()
}

fn execution() -> BoxedStrategy<Execution> {
    let actor = (
        odd_text(),
        mode(),
        prop::collection::vec(phase(), 0..3),
        extensions(),
    )
        .prop_map(|(name, mode, phases, extensions)| Actor {
            name,
            mode,
            phases,
            extensions,
        });
    let forms = prop_oneof![
        any_state().prop_map(|state| (Some(state), None, None)),
        prop::collection::vec(phase(), 0..3).prop_map(|phases| (None, Some(phases), None)),
        prop::collection::vec(actor, 0..3).prop_map(|actors| (None, None, Some(actors))),
    ];
    (option(mode()), forms, extensions())
        .prop_map(|(mode, (state, phases, actors), extensions)| Execution {
            mode,
            state,
            phases,
            actors,
            extensions,
        })
        .boxed()
}

fn indicator() -> BoxedStrategy<Indicator> {
    let pattern = (option(odd_text()), condition(), any::<bool>()).prop_map(
        |(target, condition, shorthand)| {
            let shorthand = shorthand && matches!(condition, Condition::Operators(_));
            PatternMatch {
                target,
                condition: Some(condition),
                shorthand,
            }
        },
    );
    let expression = (
        odd_text(),
        option(prop::collection::vec((odd_text(), odd_text()), 0..3)),
    )
        .prop_map(|(cel, variables)| {
            let mut seen = HashSet::new();
            let variables = variables.map(|v| {
                v.into_iter()
                    .filter(|(name, _)| seen.insert(name.clone()))
                    .collect()
            });
            ExpressionMatch {
                cel: CelExpression::new(cel),
                variables,
            }
        });
    let examples = (list(odd_text()), list(odd_text()))
        .prop_map(|(positive, negative)| SemanticExamples { positive, negative });
    let semantic = (
        odd_text(),
        option(odd_text()),
        option(member(SemanticIntentClass::ALL)),
        option(-1.0f64..2.0),
        option(examples),
    )
        .prop_map(
            |(intent, target, intent_class, threshold, examples)| SemanticMatch {
                target,
                intent,
                intent_class,
                threshold,
                examples,
            },
        );
    (
        (
            option(odd_text()),
            option(odd_text()),
            option(odd_text()),
            odd_text(),
            option(odd_text()),
        ),
        (
            option(member(Direction::ALL)),
            option(member(IndicatorMethod::ALL)),
            option(odd_text()),
        ),
        (option(pattern), option(expression), option(semantic)),
        (
            option(any::<i64>()),
            option(member(Tier::ALL)),
            option(member(SeverityLevel::ALL)),
            list(odd_text()),
        ),
        extensions(),
    )
        .prop_map(|(a, b, c, d, extensions)| Indicator {
            id: a.0,
            protocol: a.1.map(Protocol::from),
            surface: a.2.map(Surface::from),
            target: a.3,
            actor: a.4,
            direction: b.0,
            method: b.1,
            description: b.2,
            pattern: c.0,
            expression: c.1,
            semantic: c.2,
            confidence: d.0,
            tier: d.1,
            severity: d.2,
            false_positives: d.3,
            extensions,
        })
        .boxed()
}

fn attack() -> BoxedStrategy<Attack> {
    let date = select(vec![
        "2026-01-15",
        "2026-01-15T10:30:00Z",
        "2026-01-15T10:30:00.5+02:00",
    ])
    .prop_map(|text| DateOrDateTime::parse(text).unwrap());
    let severity = (member(SeverityLevel::ALL), option(any::<i64>()))
        .prop_map(|(level, confidence)| Severity { level, confidence });
    let mapping = (
        odd_text(),
        odd_text(),
        option(odd_text()),
        option(odd_text()),
        option(member(Relationship::ALL)),
    )
        .prop_map(
            |(framework, id, name, url, relationship)| FrameworkMapping {
                framework: Framework::from(framework),
                id,
                name,
                url,
                relationship,
            },
        );
    let classification = (
        option(member(Category::ALL)),
        list(mapping),
        list(odd_text()),
    )
        .prop_map(|(category, mappings, tags)| Classification {
            category,
            mappings,
            tags,
        });
    let reference = (odd_text(), option(odd_text()), option(odd_text())).prop_map(
        |(url, title, description)| Reference {
            url,
            title,
            description,
        },
    );
    let correlation = option(member(CorrelationLogic::ALL)).prop_map(|logic| Correlation { logic });
    (
        (
            option(odd_text()),
            option(odd_text()),
            option(any::<i64>()),
            option(member(Status::ALL)),
        ),
        (
            option(date.clone()),
            option(date),
            option(odd_text()),
            option(odd_text()),
            option(duration()),
        ),
        (
            option(severity),
            list(member(Impact::ALL)),
            option(classification),
            list(reference),
        ),
        (
            execution(),
            list(indicator()),
            option(correlation),
            extensions(),
        ),
    )
        .prop_map(|(a, b, c, d)| Attack {
            id: a.0,
            name: a.1,
            version: a.2,
            status: a.3,
            created: b.0,
            modified: b.1,
            author: b.2,
            description: b.3,
            grace_period: b.4,
            severity: c.0,
            impact: c.1,
            classification: c.2,
            references: c.3,
            execution: d.0,
            indicators: d.1,
            correlation: d.2,
            extensions: d.3,
        })
        .boxed()
}

fn document() -> BoxedStrategy<Document> {
    (
        prop_oneof![9 => Just("0.1".to_owned()), 1 => odd_text()],
        option(odd_text()),
        attack(),
    )
        .prop_map(|(oatf, schema, attack)| {
            let mut document = Document::new(attack);
            document.oatf = oatf;
            document.schema = schema;
            document
        })
        .boxed()
}

/// Every finding points into the text, at whole characters, and at the line and column it says.
fn places_hold(text: &str) -> Result<(), TestCaseError> {
    for finding in check(text, &ReadLimits::default()) {
        let span = finding.span.unwrap();
        prop_assert!(
            text.get(span.range()).is_some(),
            "{finding} {span:?}\n{text}"
        );
        let before = &text[..span.offset];
        prop_assert_eq!(span.line, before.matches('\n').count() + 1);
        let line = before.rsplit('\n').next().unwrap_or_default();
        prop_assert_eq!(
            span.column,
            line.trim_start_matches('\u{feff}').chars().count() + 1
        );
        prop_assert!(
            proofhouse_oatf::explain(finding.code).is_some(),
            "{finding}"
        );
    }
    Ok(())
}

const EXAMPLE: &str = r#"oatf: "0.1"
attack:
  id: ACME-001
  severity: {level: high, confidence: 80}
  impact: [data_exfiltration]
  execution:
    mode: mcp_server
    phases:
      - name: lure
        state:
          tools:
            - name: calc
              responses:
                - when: {arguments.a: {regex: "^[0-9]+$"}}
                  content: '{{seen}} \{{ {{request.x}}'
        extractors:
          - {name: seen, source: request, type: json_path, selector: "$.a"}
        on_enter:
          - log: {message: "é {{seen}}", level: warn}
        trigger: {event: tools/call, count: 2, match: {name: calc}, after: 30s}
      - description: end
  indicators:
    - target: arguments[*].x
      pattern: {contains: "key"}
    - target: ""
      expression: {cel: "message.a == v", variables: {v: b.c}}
"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn what_is_written_is_read_back(document in document()) {
        let normal = normalize(document.clone());
        let text = serialize(&document);
        let read = parse(&text).map_err(|errors| TestCaseError::fail(format!("{errors:#?}\n{text}")))?;
        prop_assert_eq!(to_value(&read), to_value(&normal), "{}", text);
        prop_assert_eq!(&normalize(read.clone()), &normal, "{}", text);
        prop_assert_eq!(serialize(&read), text);
        prop_assert_eq!(&normalize(normal.clone()), &normal);
    }

    #[test]
    fn short_forms_are_read_back_as_they_are(document in document()) {
        let text = proofhouse_source::to_yaml(&to_value(&document));
        let read = parse(&text).map_err(|errors| TestCaseError::fail(format!("{errors:#?}\n{text}")))?;
        prop_assert_eq!(read, document, "{}", text);
    }

    #[test]
    fn validity_survives_the_canonical_form(document in document()) {
        let before: HashSet<&str> = validate(&document).errors.iter().map(|error| error.rule).collect();
        let text = serialize(&document);
        let after = validate(&parse(&text).unwrap());
        // The canonical form may mend a document (it fills in what V-028 misses), never break it.
        if before.is_empty() {
            prop_assert!(after.is_valid(), "{:?}\n{}", after.errors, text);
            prop_assert!(load(&text).is_ok());
        }
        places_hold(&text)?;
    }

    #[test]
    fn evaluating_never_panics(indicator in indicator(), message in any_json()) {
        let mut attack = Attack { indicators: Some(vec![indicator]), ..Attack::default() };
        for _ in 0..2 {
            let verdict = evaluate_indicator(&attack.indicators()[0], &message, Some(&DefaultCelEvaluator), None);
            let verdicts = [(verdict.indicator_id.clone(), verdict)].into();
            let _ = proofhouse_oatf::compute_verdict(&attack, &verdicts);
            attack = normalize(Document::new(attack)).attack;
        }
    }

    #[test]
    fn fragments_never_panic(value in any_json()) {
        let _ = Indicator::from_value(&value);
        let _ = Phase::from_value(&value);
        let _ = Trigger::from_value(&value);
        let _ = Condition::from_value(&value);
        let _ = Attack::from_value(&value);
    }

    #[test]
    fn any_text_is_answered(text in "\\PC*|[ \t\n:#a\\-|>'\"{},\\[\\]&*!%@?`~]{0,60}|(oatf|attack|: |\n|  |- |execution|mode|state|\"0.1\"|\\{\\{|[\\[\\]{}]){0,40}") {
        places_hold(&text)?;
        let _ = parse(&text);
    }

    #[test]
    fn mutated_documents_are_answered(
        cuts in prop::collection::vec((0usize..EXAMPLE.len(), 0usize..12, odd_text()), 1..5),
    ) {
        let mut text = EXAMPLE.to_owned();
        for (at, length, with) in cuts {
            let mut start = at.min(text.len());
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            let mut end = (start + length).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(start..end, &with);
        }
        places_hold(&text)?;
        if let Ok(document) = parse(&text) {
            let canonical = serialize(&document);
            prop_assert_eq!(serialize(&parse(&canonical).unwrap()), canonical);
        }
    }
}

#[test]
fn the_example_is_valid() {
    assert_eq!(check(EXAMPLE, &ReadLimits::default()), []);
}
