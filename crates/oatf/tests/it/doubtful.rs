//! Sentences of the format that can be read in two ways, one test for each decision of
//! `docs/decisions/0026-doubtful-sentences.md`, in its order.

use std::collections::HashMap;
use std::path::Path;

use proofhouse_oatf::{
    Attack, Condition, DefaultCelEvaluator, Document, Execution, Extractor, ExtractorSource,
    Fragment, Indicator, IndicatorResult, MatchBudget, MatchPredicate, Mode, ReadLimits,
    ResponseEntry, check, deep_equal, evaluate_extractor, evaluate_extractor_within,
    evaluate_indicator, evaluate_predicate, interpolate_template, load, normalize, select_response,
    validate,
};
use serde_json::{Value, json};

const EXECUTION: &str = "  execution: {mode: mcp_server, state: {tools: []}}\n";

fn document(body: &str) -> String {
    format!("oatf: \"0.1\"\nattack:\n  id: ACME-003\n{EXECUTION}{body}")
}

fn indicator(rest: &str) -> String {
    document(&format!("  indicators: [{{target: '', {rest}}}]\n"))
}

fn codes(text: &str) -> Vec<&'static str> {
    let findings = check(text, &ReadLimits::default());
    findings.into_iter().map(|finding| finding.code).collect()
}

fn judged(text: &str, message: &Value) -> IndicatorResult {
    let loaded = load(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    let indicator = &loaded.document.attack.indicators()[0];
    evaluate_indicator(indicator, message, Some(&DefaultCelEvaluator), None).result
}

fn holds(pattern: &str, message: &Value) -> bool {
    let text = indicator(&format!("pattern: {pattern}"));
    judged(&text, message) == IndicatorResult::Matched
}

fn document_with_selector(selector: &str) -> String {
    format!(
        "oatf: \"0.1\"\nattack:\n  execution:\n    mode: mcp_server\n    phases:\n      - state: {{}}\n        \
         extractors: [{{name: a, source: request, type: json_path, selector: \"{selector}\"}}]\n"
    )
}

/// A decision without a test, or a test without a decision, is noticed here.
#[test]
fn every_decision_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = root.join("docs/decisions/0026-doubtful-sentences.md");
    #[expect(clippy::disallowed_methods, reason = "a file of this repository")]
    let Ok(page) = std::fs::read_to_string(page) else {
        // The package has no pages of the repository.
        return;
    };
    let decisions = page.split("## Decision").nth(1).unwrap();
    let decisions = decisions.split("## Consequences").next().unwrap();
    let count = decisions.lines().filter(|line| line.starts_with("- **"));
    let tests = include_str!("doubtful.rs").matches("\n#[test]\nfn ");
    // One test is this one.
    assert_eq!(count.count() + 1, tests.count());
}

#[test]
fn names_in_templates_are_not_trimmed() {
    let known = HashMap::from([("a".to_owned(), "x".to_owned())]);
    let filled = |template: &str| interpolate_template(template, &known, None, None).0;
    assert_eq!(filled("{{a}}|{{ a }}"), "x|");
    let text = "oatf: \"0.1\"\nattack:\n  execution:\n    mode: mcp_server\n    phases:\n      - state: {instructions: \
                \"TEMPLATE\"}\n        extractors: [{name: a, source: request, type: json_path, selector: $.a}]\n";
    assert_eq!(codes(&text.replace("TEMPLATE", "{{ a }}")), ["W-004"]);
    assert_eq!(codes(&text.replace("TEMPLATE", "{{a}}")), [] as [&str; 0]);
}

#[test]
fn numbers_compare_by_their_mathematical_value() {
    let (odd, even) = (
        json!(9_007_199_254_740_993_u64),
        json!(9_007_199_254_740_992.0),
    );
    assert!(!deep_equal(&odd, &even));
    assert!(!holds("{condition: 9007199254740993}", &even));
    assert!(holds("{condition: 9007199254740993}", &odd));
    // The operand is a float, and 9007199254740993 is none: it is rounded when it is read.
    assert!(holds("{gt: 9007199254740993}", &odd));
    assert!(!holds(
        "{gt: 9007199254740993}",
        &json!(9_007_199_254_740_992_u64)
    ));
}

#[test]
fn a_synthesize_block_that_is_null_is_none() {
    let entry = ResponseEntry::from_value(&json!({"content": 1, "synthesize": null})).unwrap();
    assert_eq!(entry.synthesize, None);
    let codes_of = |block: &str| {
        let text = format!(
            "oatf: \"0.1\"\nattack:\n  execution:\n    mode: mcp_server\n    state:\n      tools:\n        \
             - name: a\n          responses: [{{content: 1, synthesize: {block}}}]\n"
        );
        let findings = proofhouse_oatf::check(&text, &proofhouse_oatf::ReadLimits::default());
        let codes = findings.into_iter().map(|finding| finding.code);
        codes.collect::<Vec<_>>()
    };
    assert!(codes_of("{prompt: x}").contains(&"W-006"));
    assert!(!codes_of("null").contains(&"W-006"));
}

#[test]
fn a_regex_sees_sorted_keys_and_a_json_path_the_order_of_the_message() {
    let message = json!({"v": {"b": 1, "a": 2}});
    for (kind, selector, expected) in [
        ("regex", r"(\\{.*\\})", r#"{"v":{"a":2,"b":1}}"#),
        ("json_path", "$.v", r#"{"b":1,"a":2}"#),
    ] {
        let text = format!(
            "oatf: \"0.1\"\nattack:\n  execution:\n    mode: mcp_server\n    phases:\n      - state: {{}}\n        \
             extractors: [{{name: a, source: request, type: {kind}, selector: \"{selector}\"}}]\n"
        );
        let loaded = load(&text).unwrap();
        let actors = loaded.document.attack.execution.actors.as_ref().unwrap();
        let extractor = &actors[0].phases[0].extractors.as_ref().unwrap()[0];
        let found = evaluate_extractor(extractor, &message, ExtractorSource::Request);
        assert_eq!(found.as_deref(), Some(expected), "{kind}");
    }
    let filled = interpolate_template("{{request.v}}", &HashMap::new(), Some(&message), None).0;
    assert_eq!(filled, r#"{"b":1,"a":2}"#);
}

#[test]
fn integers_beyond_64_bits_are_refused_in_state() {
    let state = |number: &str| {
        format!(
            "oatf: \"0.1\"\nattack:\n  execution: {{mode: mcp_server, state: {{tools: [{{name: a, inputSchema: {{maximum: \
             {number}}}}}]}}}}\n"
        )
    };
    for fits in [
        "18446744073709551615",
        "-9223372036854775808",
        "\"18446744073709551616\"",
    ] {
        assert_eq!(codes(&state(fits)), [] as [&str; 0], "{fits}");
    }
    for beyond in ["18446744073709551616", "-9223372036854775809"] {
        assert_eq!(codes(&state(beyond)), ["PH-012"], "{beyond}");
    }
}

#[test]
fn our_own_limits_have_a_code_of_their_own() {
    // It parses, and is larger than is accepted.
    let large = indicator("pattern: {regex: \"(\\\\pL{400})\"}");
    assert_eq!(codes(&large), ["PH-105"]);
    let expression = indicator("expression: {cel: \"message.a.matches('(\\\\\\\\pL{400})')\"}");
    assert_eq!(codes(&expression), ["PH-105"]);
    assert_eq!(codes(&indicator("pattern: {regex: \"(\"}")), ["V-013"]);
}

#[test]
fn what_parses_and_is_not_supported_is_over_a_limit() {
    let message = indicator("expression: {cel: \"a.b.C{x: 1} == message\"}");
    assert_eq!(codes(&message), ["PH-105"]);
    for selector in ["$[?match(@.a, 'x')]", "$[?search(@.a, 'x') && @.b == 1]"] {
        assert_eq!(
            codes(&document_with_selector(selector)),
            ["PH-105"],
            "{selector}"
        );
    }
    let text = "$['match(a)', ?@.match == 'search(' && count(@.search) == 1]";
    assert_eq!(codes(&document_with_selector(text)), [] as [&str; 0]);
}

#[test]
fn paths_of_more_than_64_segments_are_refused() {
    let target = |count: usize| {
        let path = vec!["a"; count].join(".");
        document(&format!(
            "  indicators: [{{target: x, pattern: {{target: {path}, exists: false}}}}]\n"
        ))
    };
    assert_eq!(codes(&target(64)), [] as [&str; 0]);
    assert_eq!(codes(&target(65)), ["PH-105"]);
    // One that is built by a program is an error, and no match.
    let mut loaded = load(&target(64)).unwrap();
    let indicators = loaded.document.attack.indicators.as_mut().unwrap();
    indicators[0].pattern.as_mut().unwrap().target = Some(vec!["a"; 65].join("."));
    let verdict = evaluate_indicator(&indicators[0], &json!({}), None, None);
    assert_eq!(verdict.result, IndicatorResult::Error);
}

#[test]
fn an_empty_list_of_examples_provides_nothing() {
    let examples = |examples: &str| {
        let rest = format!("semantic: {{intent: x, examples: {examples}}}");
        codes(&indicator(&rest))
    };
    // That it is semantic is told of every such indicator.
    assert_eq!(examples("{positive: [a], negative: [b]}"), ["W-007"]);
    for empty in [
        "{positive: []}",
        "{negative: []}",
        "{positive: [], negative: []}",
    ] {
        assert!(examples(empty).contains(&"PH-103"), "{empty}");
    }
    assert!(examples("{positive: [], negative: [b]}").contains(&"PH-103"));
}

#[test]
fn a_protocol_that_no_actor_speaks_is_told_whatever_it_is() {
    let found = |protocol: &str| {
        let text = indicator(&format!("protocol: {protocol}, pattern: {{contains: x}}"));
        codes(&text)
    };
    assert_eq!(found("mcp"), [] as [&str; 0]);
    assert_eq!(found("a2a"), ["W-005"]);
    assert_eq!(found("voice"), ["W-003", "W-005"]);
}

#[test]
fn generated_ids_never_collide() {
    let pattern = "target: a, pattern: {contains: x}";
    let text = document(&format!(
        "  indicators: [{{{pattern}}}, {{id: ACME-003-01, {pattern}}}, {{id: ACME-003-03, {pattern}}}, {{{pattern}}}]\n"
    ));
    let document = normalize(load(&text).unwrap().document);
    let ids = document.attack.indicators().iter();
    let mut ids: Vec<String> = ids.map(|indicator| indicator.id.clone().unwrap()).collect();
    assert_eq!(ids[1..3], ["ACME-003-01", "ACME-003-03"]);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4, "{ids:?}");
}

#[test]
fn a_variable_whose_path_does_not_resolve_is_null() {
    let cel = |cel: &str| {
        let rest = format!("expression: {{cel: \"{cel}\", variables: {{v: a.b}}}}");
        judged(&indicator(&rest), &json!({"a": {}}))
    };
    assert_eq!(cel("v == null"), IndicatorResult::Matched);
    assert_eq!(cel("has(message.a.b)"), IndicatorResult::NotMatched);
    let rest = "expression: {cel: has(v), variables: {v: a.b}}";
    assert_eq!(codes(&indicator(rest)), ["V-014"]);
}

#[test]
fn an_empty_list_of_actors_breaks_the_rule_about_actors() {
    let text = "oatf: \"0.1\"\nattack:\n  execution:\n    actors: []\n";
    assert_eq!(codes(text), ["V-031"]);
}

#[test]
fn a_condition_without_operators_is_equality() {
    assert!(holds("{condition: {}}", &json!({})));
    assert!(!holds("{condition: {}}", &json!({"a": 1})));
    assert!(!holds("{condition: {}}", &json!("x")));
    let null = indicator("pattern: {condition: {contains: null}}");
    assert_eq!(codes(&null), ["PH-010"]);
    assert_eq!(codes(&indicator("pattern: {}")), ["PH-104"]);
}

#[test]
fn a_match_predicate_is_a_mapping() {
    let entries = [("b", "x"), ("a", "y")];
    let entries = entries.map(|(path, value)| (path.to_owned(), Condition::from(value)));
    let predicate: MatchPredicate = entries.into_iter().collect();
    assert_eq!(predicate.get_index_of("a"), Some(1));
    assert!(evaluate_predicate(&predicate, &json!({"a": "y", "b": "x"})));
}

#[test]
fn a_group_that_took_no_part_extracts_nothing() {
    let extractor = Extractor::regex("x", ExtractorSource::Request, "key(x)?=");
    let found = evaluate_extractor(&extractor, &json!("key="), ExtractorSource::Request);
    assert_eq!(found, None);
}

#[test]
fn a_when_that_cannot_be_evaluated_gives_no_entry() {
    let entries = [
        json!({"when": {"a": {"regex": "["}}, "content": 1}),
        json!({"content": 2}),
    ];
    let entries = entries.map(|entry| ResponseEntry::from_value(&entry).unwrap());
    assert_eq!(select_response(&entries, &json!({"a": "x"})), None);
}

#[test]
fn in_cel_an_int_equals_the_same_double() {
    let holds = |cel: &str| {
        let indicator = Indicator::expression(cel);
        let message = json!({"n": 1, "f": 1.0});
        evaluate_indicator(&indicator, &message, Some(&DefaultCelEvaluator), None).result
    };
    for cel in [
        "message.n == 1.0",
        "message.f == 1",
        "message.n == message.f",
    ] {
        assert_eq!(holds(cel), IndicatorResult::Matched, "{cel}");
    }
}

#[test]
fn a_when_is_a_mapping() {
    let errors = ResponseEntry::from_value(&json!({"when": "x"})).unwrap_err();
    assert_eq!(errors[0].code, "PH-010");
    let default = ResponseEntry::from_value(&json!({"when": null})).unwrap();
    assert_eq!(default.when, None);
}

#[test]
fn a_json_path_that_may_visit_too_much_is_not_run() {
    let extractor = Extractor::json_path("x", ExtractorSource::Request, "$..*[?count($..*) == 1]");
    let budget = &mut MatchBudget::default();
    let message = json!({"a": vec![1; 10_000]});
    let found = evaluate_extractor_within(&extractor, &message, ExtractorSource::Request, budget);
    assert_eq!(found.unwrap_err().kind.as_str(), "path_resolution");
}

#[test]
fn equality_with_operators_is_found() {
    let condition = Condition::Equals(json!({"contains": "x"}));
    let document = Document::new(Attack {
        execution: Execution::single(Mode::McpServer, json!({})),
        indicators: Some(vec![Indicator::matching("a", condition)]),
        ..Attack::default()
    });
    let errors = validate(&document).errors;
    assert_eq!(errors[0].rule, "PH-104");
}
