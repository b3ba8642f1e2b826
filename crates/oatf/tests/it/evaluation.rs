//! Evaluating indicators: patterns, expressions, meaning, evidence and errors, through the public API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Mutex;

use proofhouse_oatf::{
    Attack, CelContext, CelEvaluator, CelExpression, DEFAULT_SEMANTIC_THRESHOLD,
    DefaultCelEvaluator, Diagnostic, Document, EvaluationError, EvaluationErrorKind, Fragment,
    GenerationError, GenerationErrorKind, Indicator, IndicatorResult, IndicatorVerdict, Mode,
    OatfError, Phase, ReadLimits, ResponseEntry, SemanticEvaluator, SemanticExamples,
    SemanticIntentClass, evaluate_expression, evaluate_indicator, evaluate_pattern, load,
    normalize, parse,
};
use serde_json::{Value, json};

/// A normalized indicator.
fn indicator(fields: &Value) -> Indicator {
    let indicator = Indicator::from_value(fields).unwrap();
    let attack = Attack {
        indicators: Some(vec![indicator]),
        ..Attack::default()
    };
    normalize(Document::new(attack))
        .attack
        .indicators
        .unwrap()
        .remove(0)
}

fn evaluate(fields: &Value, message: &Value) -> IndicatorVerdict {
    evaluate_indicator(
        &indicator(fields),
        message,
        Some(&DefaultCelEvaluator),
        None,
    )
}

fn outcome(verdict: &IndicatorVerdict) -> (&str, Option<&str>) {
    (verdict.result.as_str(), verdict.evidence.as_deref())
}

#[test]
fn patterns_look_at_every_value_the_target_reaches() {
    let message =
        json!({"tools": [{"d": "one"}, {"d": "two"}, {}], "n": null, "o": {"b": 1, "a": "x"}});
    for (target, pattern, expected) in [
        (
            "tools[*].d",
            json!({"contains": "w"}),
            ("matched", Some("two")),
        ),
        (
            "tools[*].d",
            json!({"contains": "z"}),
            ("not_matched", None),
        ),
        (
            "tools[*].d",
            json!({"condition": "one"}),
            ("matched", Some("one")),
        ),
        (
            "tools[*].d",
            json!({"exists": true}),
            ("matched", Some("one")),
        ),
        (
            "tools[*].d",
            json!({"exists": false}),
            ("not_matched", None),
        ),
        (
            "tools[*].e",
            json!({"exists": false}),
            ("matched", Some("absent")),
        ),
        ("tools[*].e", json!({"exists": true}), ("not_matched", None)),
        (
            "tools[*].e",
            json!({"exists": false, "contains": "x"}),
            ("not_matched", None),
        ),
        (
            "tools[*].d",
            json!({"exists": false, "contains": "o"}),
            ("not_matched", None),
        ),
        (
            "tools[*].d",
            json!({"exists": true, "contains": "o"}),
            ("matched", Some("one")),
        ),
        ("n", json!({"condition": null}), ("matched", Some("null"))),
        ("missing", json!({"condition": null}), ("not_matched", None)),
        (
            "o",
            json!({"contains": "\"a\":\"x\""}),
            ("matched", Some("{\"a\":\"x\",\"b\":1}")),
        ),
        (
            "",
            json!({"target": "o.b", "gte": 1}),
            ("matched", Some("1")),
        ),
    ] {
        let verdict = evaluate(&json!({"target": target, "pattern": pattern}), &message);
        assert_eq!(outcome(&verdict), expected, "{target} {pattern}");
        assert!(verdict.timestamp.is_some());
        let indicator = indicator(&json!({"target": target, "pattern": pattern}));
        let matched = evaluate_pattern(indicator.pattern.as_ref().unwrap(), &message).unwrap();
        assert_eq!(matched, expected.0 == "matched");
    }
}

#[test]
fn evidence_is_clipped_at_characters() {
    let pattern = json!({"target": "a", "pattern": {"contains": "é"}});
    let exact = evaluate(&pattern, &json!({"a": "é".repeat(200)}));
    assert_eq!(exact.evidence.unwrap().chars().count(), 200);
    let longer = evaluate(&pattern, &json!({"a": "é".repeat(201)}))
        .evidence
        .unwrap();
    assert_eq!(longer.chars().count(), 201);
    assert!(longer.ends_with("é…"));
}

#[test]
fn expressions_see_the_message_and_their_variables() {
    let message = json!({"a": {"b": 3}, "list": ["x"]});
    for (cel, expected) in [
        ("message.a.b == 3", ("matched", Some("message.a.b == 3"))),
        ("v == 3", ("matched", Some("v == 3"))),
        ("message.a.b > 3", ("not_matched", None)),
    ] {
        let fields = json!({"target": "", "expression": {"cel": cel, "variables": {"v": "a.b", "missing": "no.way"}}});
        assert_eq!(outcome(&evaluate(&fields, &message)), expected, "{cel}");
    }
    for (cel, reason) in [
        ("message.a.b", "type_error: "),
        ("message.a", "type_error: "),
        ("message.list", "type_error: "),
        ("message.list[0]", "type_error: "),
        ("null", "type_error: "),
        ("message.", "cel_error: "),
        ("unbound == 1", "cel_error: "),
        ("odd(message)", "unsupported_method: "),
        ("1 + 'a' == 2", "type_error: "),
    ] {
        let verdict = evaluate(&json!({"target": "", "expression": {"cel": cel}}), &message);
        assert_eq!(verdict.result, IndicatorResult::Error, "{cel}");
        let evidence = verdict.evidence.unwrap();
        assert!(evidence.starts_with(reason), "{cel}: {evidence}");
    }
}

#[test]
fn without_an_evaluator_there_is_no_answer() {
    let expression = indicator(&json!({"id": "i", "target": "", "expression": {"cel": "true"}}));
    let verdict = evaluate_indicator(&expression, &json!({}), None, None);
    assert_eq!(
        outcome(&verdict),
        ("skipped", Some("CEL evaluation is not available"))
    );
    assert_eq!(verdict.indicator_id, "i");
    let error = evaluate_expression(expression.expression.as_ref().unwrap(), &json!({}), None);
    assert_eq!(
        error.unwrap_err().kind,
        EvaluationErrorKind::UnsupportedMethod
    );
    let semantic = indicator(&json!({"target": "", "semantic": {"intent": "x"}}));
    let verdict = evaluate_indicator(&semantic, &json!({}), None, None);
    assert_eq!(
        outcome(&verdict),
        ("skipped", Some("semantic evaluation is not available"))
    );
}

#[test]
fn indicators_that_cannot_be_used_are_errors() {
    for (fields, reason) in [
        (json!({"target": "a"}), "no way of detection"),
        (
            json!({"target": "a", "pattern": {"target": "a"}}),
            "no condition",
        ),
        (
            json!({"target": "a", "pattern": {"regex": "("}}),
            "cannot be used",
        ),
        (
            json!({"target": "a", "pattern": {"regex": "(", "exists": true}}),
            "cannot be used",
        ),
    ] {
        let verdict = evaluate(&fields, &json!({"a": "x"}));
        assert_eq!(verdict.result, IndicatorResult::Error, "{fields}");
        let evidence = verdict.evidence.unwrap();
        assert!(evidence.contains(reason), "{fields}: {evidence}");
    }
}

/// Gives scores from a list, and remembers what it was asked.
struct Scores(Mutex<Vec<Result<f64, EvaluationError>>>, Mutex<Vec<String>>);

impl Scores {
    fn new(scores: impl IntoIterator<Item = f64>) -> Self {
        let mut scores: Vec<_> = scores.into_iter().map(Ok).collect();
        scores.reverse();
        Self(Mutex::new(scores), Mutex::default())
    }
}

impl SemanticEvaluator for Scores {
    fn evaluate(
        &self,
        text: &str,
        intent: &str,
        intent_class: Option<SemanticIntentClass>,
        threshold: Option<f64>,
        examples: Option<&SemanticExamples>,
    ) -> Result<f64, EvaluationError> {
        let asked = format!(
            "{text} {intent} {intent_class:?} {threshold:?} {}",
            examples.is_some()
        );
        self.1.lock().unwrap().push(asked);
        self.0.lock().unwrap().pop().unwrap()
    }
}

#[test]
fn the_highest_score_counts() {
    let message = json!({"a": ["x", {"k": 1}]});
    for (threshold, scores, expected) in [
        (Some(0.5), [0.2, 0.5], ("matched", Some("score 0.5"))),
        (Some(0.5), [0.5, 0.2], ("matched", Some("score 0.5"))),
        (Some(0.5), [0.4, 0.49], ("not_matched", Some("score 0.49"))),
        (
            None,
            [0.0, DEFAULT_SEMANTIC_THRESHOLD],
            ("matched", Some("score 0.7")),
        ),
        (None, [0.0, 0.69], ("not_matched", Some("score 0.69"))),
        (Some(0.0), [0.0, 0.0], ("matched", Some("score 0"))),
        (Some(1.0), [1.0, 0.0], ("matched", Some("score 1"))),
    ] {
        let mut semantic = json!({"intent": "steal", "intent_class": "data_exfiltration", "examples": {"positive": ["p"]}});
        if let Some(threshold) = threshold {
            semantic["threshold"] = json!(threshold);
        }
        let indicator = indicator(&json!({"target": "a[*]", "semantic": semantic}));
        let evaluator = Scores::new(scores);
        let verdict = evaluate_indicator(&indicator, &message, None, Some(&evaluator));
        assert_eq!(outcome(&verdict), expected, "{threshold:?} {scores:?}");
        let asked = evaluator.1.into_inner().unwrap();
        assert_eq!(
            asked[0],
            format!("x steal Some(DataExfiltration) {threshold:?} true")
        );
        assert!(asked[1].starts_with("{\"k\":1} steal"));
    }
}

#[test]
fn scores_out_of_range_and_failures_are_errors() {
    let semantic = indicator(&json!({"target": "a", "semantic": {"intent": "x"}}));
    let message = json!({"a": "x"});
    for score in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let verdict = evaluate_indicator(&semantic, &message, None, Some(&Scores::new([score])));
        assert_eq!(verdict.result, IndicatorResult::Error, "{score}");
        assert!(verdict.evidence.unwrap().starts_with("semantic_error: "));
    }
    let failing = Scores::new([]);
    failing.0.lock().unwrap().push(Err(EvaluationError::new(
        EvaluationErrorKind::SemanticError,
        "down",
    )));
    let verdict = evaluate_indicator(&semantic, &message, None, Some(&failing));
    assert_eq!(outcome(&verdict), ("error", Some("semantic_error: down")));
    let nothing = evaluate_indicator(&semantic, &json!({}), None, Some(&Scores::new([])));
    assert_eq!(outcome(&nothing), ("not_matched", None));
}

/// An evaluator that compiles nothing.
struct Always(Value);

impl CelEvaluator for Always {
    fn evaluate(&self, _: &str, _: &CelContext<'_>) -> Result<Value, EvaluationError> {
        Ok(self.0.clone())
    }
}

#[test]
fn evaluators_share_an_expression_without_sharing_what_they_keep() {
    let expression = indicator(&json!({"target": "", "expression": {"cel": "false"}}));
    let verdict = evaluate_indicator(&expression, &json!({}), Some(&Always(json!(true))), None);
    assert_eq!(verdict.result, IndicatorResult::Matched);
    let cel = &expression.expression.as_ref().unwrap().cel;
    assert_eq!(cel.compiled_with(str::len), Some(&5));
    let verdict = evaluate_indicator(&expression, &json!({}), Some(&DefaultCelEvaluator), None);
    assert_eq!(verdict.result, IndicatorResult::NotMatched);
    assert_eq!(
        format!("{:?}", CelExpression::new("a")),
        "CelExpression(\"a\")"
    );
}

#[test]
fn errors_say_where_and_what() {
    let errors =
        load("oatf: \"0.1\"\nattack: {version: one, execution: {mode: mcp_server, state: {}}}\n")
            .unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "error[PH-010] 2:19 attack.version: `version` must be an integer, not the string \"one\""
    );
    assert!(
        matches!(&errors[0], OatfError::Parse(error) if (error.line(), error.column()) == (Some(2), Some(19)))
    );
    let errors =
        load("oatf: \"9\"\nattack: {execution: {mode: mcp_server, state: {}}}\n").unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "error[V-001] 1:7 oatf: version `9` is not supported"
    );
    let diagnostic = Diagnostic::from(errors[0].clone());
    assert_eq!(
        (diagnostic.code, diagnostic.path.as_deref()),
        ("V-001", Some("oatf"))
    );
    assert_eq!(
        serde_json::to_value(&errors[0]).unwrap()["stage"],
        "validation"
    );

    let mut error = EvaluationError::new(EvaluationErrorKind::CelError, "bad");
    error.indicator_id = Some("A-001-01".into());
    assert_eq!(error.to_string(), "A-001-01: cel_error: bad");
    let mut error =
        GenerationError::new(GenerationErrorKind::ContentPolicy, "no", &"é".repeat(300));
    assert_eq!(
        error.prompt_preview.as_deref().map(|p| p.chars().count()),
        Some(200)
    );
    error.phase_name = Some("lure".into());
    assert_eq!(error.to_string(), "phase lure: content_policy: no");
}

#[test]
fn messages_name_the_place_and_offer_help() {
    let findings = |text: &str| -> Vec<(String, Option<String>)> {
        proofhouse_oatf::check(text, &ReadLimits::default())
            .into_iter()
            .map(|finding| (finding.message, finding.help))
            .collect()
    };
    let execution = "execution: {mode: mcp_server, state: {}}";
    for (attack, message, help) in [
        (
            "name: 1",
            "`name` must be a string, not the number 1",
            Some("quote it: `\"1\"`"),
        ),
        (
            "name: true",
            "`name` must be a string, not the boolean true",
            Some("quote it: `\"true\"`"),
        ),
        ("name: []", "`name` must be a string, not a sequence", None),
        (
            "impact: [3]",
            "an item of `impact` must be a string, not the number 3",
            Some("quote it: `\"3\"`"),
        ),
        (
            "status: drft",
            "`drft` is not a value of `status`",
            Some("did you mean `draft`?"),
        ),
        (
            "status: x",
            "`x` is not a value of `status`",
            Some("use one of: draft, experimental, stable, deprecated"),
        ),
        ("nme: x", "unknown key `nme`", Some("did you mean `name`?")),
        (
            "zebra: x",
            "unknown key `zebra`",
            Some("a field of your own must start with `x-`"),
        ),
        (
            "severity: {zebra: x, level: low}",
            "unknown key `zebra`",
            None,
        ),
        (
            "version: 9223372036854775808",
            "`9223372036854775808` is not a number that 64 bits and JSON can hold",
            Some("quote it if it is text"),
        ),
        (
            "created: soon",
            "`soon` is neither a date nor a date-time with a time zone",
            Some("write `2026-01-15` or `2026-01-15T10:30:00Z`"),
        ),
        (
            "indicators: [{target: a}]",
            "an indicator needs one of `pattern`, `expression` and `semantic`",
            None,
        ),
        (
            "indicators: [{target: a, pattern: {gt: 1}, expression: {cel: \"true\"}}]",
            "an indicator has one way of detection, not several: `pattern`, `expression`",
            Some("write one indicator for each"),
        ),
        (
            "indicators: [{target: a, actor: defalt, pattern: {gt: 1}}]",
            "there is no actor `defalt`",
            Some("did you mean `default`?"),
        ),
        (
            "indicators: [{target: a, actor: zebra, pattern: {gt: 1}}]",
            "there is no actor `zebra`",
            None,
        ),
        (
            "indicators: [{target: \"a[0]\", pattern: {gt: 1}}]",
            "`a[0]` is not a wildcard dot-path",
            Some("use `[*]` for all items; for one item use a CEL expression"),
        ),
        (
            "indicators: [{target: a b, pattern: {gt: 1}}]",
            "`a b` is not a wildcard dot-path",
            Some("join names of letters, digits, `_` and `-` with dots"),
        ),
        (
            "indicators: [{target: a, surface: tools/cal, pattern: {gt: 1}}]",
            "`tools/cal` is not a known operation of mcp",
            Some("did you mean `tools/call`?"),
        ),
    ] {
        let text = format!("oatf: \"0.1\"\nattack:\n  {execution}\n  {attack}\n");
        assert_eq!(
            findings(&text),
            [(message.to_owned(), help.map(str::to_owned))],
            "{attack}"
        );
    }
    for (execution, message, help) in [
        (
            "{mode: mcp_serve, state: {}}",
            "`mcp_serve` is not a mode",
            Some("did you mean `mcp_server`?"),
        ),
        (
            "{mode: x, state: {}}",
            "`x` is not a mode",
            Some("a mode is a protocol and a role, such as `mcp_server`"),
        ),
        (
            "{mode: mpc_server, state: {}}",
            "mode `mpc_server` is not bound by version 0.1",
            Some("did you mean `mcp_server`?"),
        ),
        (
            "{state: {}}",
            "`execution.state` needs `mode`",
            Some("for example `mode: mcp_server`"),
        ),
        (
            "{mode: mcp_server}",
            "`execution` needs one of `state`, `phases` and `actors`",
            None,
        ),
        (
            "{mode: mcp_server, state: {}, phases: [{state: {}}]}",
            "`state` and `phases` exclude each other; use one",
            None,
        ),
        (
            "{mode: mcp_server, phases: [{state: {}, on_enter: [{x-note: 1}]}]}",
            "an action needs a key such as `send` or `log`",
            None,
        ),
        (
            "{mode: mcp_server, phases: [{state: {}, on_enter: [{wait: 1, log: {message: x}}]}]}",
            "an action does one thing, not several: `wait`, `log`",
            Some("write one action for each"),
        ),
        (
            "{mode: mcp_server, phases: [{state: {}}, {}]}",
            "2 phases have no `trigger`; only the last may",
            Some("a phase without `trigger` never ends"),
        ),
        (
            "{mode: mcp_server, phases: [{state: {}, trigger: {after: soon}}]}",
            "`soon` is not a duration",
            Some("write `30s`, `5m`, `1h`, `2d`, or ISO 8601 such as `PT1M30S`"),
        ),
        (
            "{mode: mcp_server, state: {elicitations: [{mode: frm}]}}",
            "`frm` is not a value of `mode`",
            Some("did you mean `form`?"),
        ),
        (
            "{mode: mcp_server, state: {elicitations: [{mode: x}]}}",
            "`x` is not a value of `mode`",
            Some("use one of: form, url"),
        ),
        (
            "{mode: mcp_server, phases: [{state: {}, trigger: {event: tool/call}}]}",
            "`tool/call` is not an event that mcp_server is known to see",
            Some("did you mean `tools/call`?"),
        ),
        (
            "{mode: mcp_server, state: {a: \"{{b.c}}\"}}",
            "there is no actor `b`",
            Some("write `\\{{` (`\\\\{{` in double quotes) if this is not a template"),
        ),
        (
            "{actors: [{name: alice, mode: mcp_server, phases: [{state: {a: \"{{alise.c}}\"}}]}]}",
            "there is no actor `alise`",
            Some("did you mean `alice`?"),
        ),
        (
            "{mode: mcp_server, state: {a: \"{{b}}\"}}",
            "actor `default` declares no extractor `b`",
            Some("`{{b}}` becomes the empty string at run time"),
        ),
    ] {
        let text = format!("oatf: \"0.1\"\nattack:\n  execution: {execution}\n");
        assert_eq!(
            findings(&text),
            [(message.to_owned(), help.map(str::to_owned))],
            "{execution}"
        );
    }
}

#[test]
fn documents_know_their_source() {
    let text = "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {}}\n  indicators:\n    - {target: a, pattern: {gt: 1}}\n    - target: b\n      pattern: {gt: 1}\n";
    let document = load(text).unwrap().document;
    assert_eq!(document.source_text(), Some(text));
    let places: Vec<_> = (0..2)
        .map(|index| document.indicator_span(index).unwrap())
        .map(|span| (span.line, span.column))
        .collect();
    assert_eq!(places, [(5, 8), (6, 7)]);
    let made = Document::new(Attack::default());
    assert_eq!((made.source_text(), made.indicator_span(0)), (None, None));
    let actor = &document.attack.execution.actors()[0];
    assert_eq!(*actor.phases[0].mode_in(actor), Mode::McpServer);
    let other = Phase {
        mode: Some("a2a_client".into()),
        ..Phase::default()
    };
    assert_eq!(*other.mode_in(actor), Mode::A2aClient);
}

#[test]
fn response_entries_keep_what_the_binding_defines() {
    let entry = ResponseEntry::from_value(&json!({
        "when": {"name": "x"}, "content": {"a": 1}, "action": "accept", "synthesize": {"prompt": "write"},
    }))
    .unwrap();
    assert_eq!(entry.when.unwrap().len(), 1);
    assert_eq!(entry.content, Some(json!({"a": 1})));
    assert_eq!(entry.fields["action"], "accept");
    assert_eq!(entry.synthesize.unwrap().prompt.as_deref(), Some("write"));
    let entry = ResponseEntry::from_value(&json!({"when": null, "synthesize": {}})).unwrap();
    assert!(entry.when.is_none() && entry.synthesize.unwrap().prompt.is_none());
    for bad in [
        json!([]),
        json!({"when": 1}),
        json!({"synthesize": {"prompt": 1}}),
    ] {
        assert!(ResponseEntry::from_value(&bad).is_err(), "{bad}");
    }
}

#[test]
fn actions_have_one_kind_or_none() {
    let kinds = |on_enter: Value| {
        let phase = Phase::from_value(&json!({"on_enter": [on_enter]})).unwrap();
        phase.on_enter.unwrap()[0]
            .kind()
            .map(|kind| kind.key().to_owned())
    };
    assert_eq!(
        kinds(json!({"send": {"method": "ping"}})).as_deref(),
        Some("send")
    );
    assert_eq!(kinds(json!({"wait": 1, "x-a": 1})).as_deref(), Some("wait"));
    assert_eq!(kinds(json!({"wait": 1, "log": {"message": "x"}})), None);
    assert_eq!(kinds(json!({})), None);
}

#[test]
fn parse_keeps_no_warning_to_itself() {
    let document =
        parse("attack: {execution: {mode: mcp_server, state: {}}, name: }\noatf: \"0.1\"\n")
            .unwrap();
    let codes: Vec<_> = proofhouse_oatf::validate(&document)
        .warnings
        .iter()
        .map(|w| w.code)
        .collect();
    assert_eq!(codes, ["PH-201", "W-001"]);
}

#[test]
fn findings_and_suggestions_are_bounded() {
    let head = "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {}}\n";
    let count = |text: &str, code: &str| {
        let findings = proofhouse_oatf::check(text, &ReadLimits::default());
        let of_code: Vec<_> = findings.into_iter().filter(|f| f.code == code).collect();
        let helped = of_code.iter().filter(|f| {
            f.help
                .as_ref()
                .is_some_and(|help| help.starts_with("did you mean"))
        });
        (helped.count(), of_code.len())
    };
    let surfaces = "  - {surface: tools/cal, target: a, pattern: {gt: 1}}\n";
    let text = format!("{head}  indicators:\n{}", surfaces.repeat(1_100));
    assert_eq!(count(&text, "V-018"), (1_000, 1_100));
    let text = head.replace(
        "state: {}",
        &format!("state: {{a: \"{}\"}}", "{{x}}".repeat(10_100)),
    );
    assert_eq!(count(&text, "W-004"), (0, 10_000));
    // The limit is that of a rule: others have their own.
    let text = text.replace("attack:\n", "attack:\n  version: 0\n");
    assert_eq!(count(&text, "V-035"), (0, 1));
    let unknown: String = (0..10_100)
        .map(|n| format!("  descriptio{n}: x\n"))
        .collect();
    assert_eq!(
        count(&format!("{head}{unknown}"), "PH-009"),
        (1_000, 10_000)
    );
    let references = "    - {url: a, title: }\n".repeat(10_100);
    assert_eq!(
        count(&format!("{head}  references:\n{references}"), "PH-201"),
        (0, 10_000)
    );
    let wrong = "    - 1\n".repeat(10_100);
    assert_eq!(
        count(&format!("{head}  impact:\n{wrong}"), "PH-010"),
        (0, 10_000)
    );
}

#[test]
fn yaml_mistakes_come_with_a_hint() {
    for (line, hint) in [
        ("name: Get: weather", "holds `: `"),
        ("name: @x", "put quotes around"),
        ("name: `x`", "put quotes around"),
        ("name: \"\\d+\"", "single quotes"),
        ("description: {{city}}", "begins with `{`"),
    ] {
        let text = format!("oatf: \"0.1\"\nattack:\n  {line}\n");
        let errors = proofhouse_oatf::parse(&text).unwrap_err();
        let found = errors.iter().filter_map(|error| error.help.as_deref());
        assert!(
            found.clone().any(|help| help.contains(hint)),
            "{line}: {errors:?}"
        );
    }
}

#[test]
fn a_mistake_in_an_expression_is_underlined_where_it_is() {
    let text = "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {}}\n  indicators:\n    \
        - {target: a, expression: {cel: \"message.a == == 1\"}}\n";
    let findings = proofhouse_oatf::check(text, &ReadLimits::default());
    let span = findings[0].span.unwrap();
    assert_eq!(
        (findings[0].code, span.length),
        ("V-014", 1),
        "{findings:?}"
    );
    assert_eq!(&text[span.range()], "=");
}
