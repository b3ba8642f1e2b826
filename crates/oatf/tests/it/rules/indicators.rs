//! Indicators and how they combine.

use super::{Case, actors, attack, case, document, indicator, pattern, several};

const AT: &str = "attack.indicators[0]";

pub(super) fn cases() -> Vec<Case> {
    let with_id = |attack_id: &str, id: &str| {
        attack(&format!(
            "id: {attack_id}\nindicators:\n  - id: {id}\n    target: a\n    pattern: {{contains: x}}"
        ))
    };
    let two_ids = |first: &str, second: &str| {
        attack(&format!(
            "indicators:\n  - {{id: {first}, target: a, pattern: {{contains: x}}}}\n  - {{id: {second}, target: a, pattern: {{contains: x}}}}"
        ))
    };
    let mut cases = vec![
        case(
            "V-006",
            "no indicators",
            attack(""),
            attack("»indicators: []"),
            "attack.indicators",
        ),
        case(
            "V-010",
            "the same id twice",
            two_ids("one", "two"),
            two_ids("one", "»one"),
            "attack.indicators[1].id",
        ),
        case(
            "V-012",
            "no way of detection",
            pattern(""),
            attack("indicators: [{»target: a}]"),
            AT,
        ),
        case(
            "V-012",
            "pattern and expression",
            indicator("expression: {cel: \"true\"}"),
            attack(
                "indicators:\n  - »target: a\n    pattern: {contains: x}\n    expression: {cel: \"true\"}",
            ),
            AT,
        ),
        several(
            "V-012",
            "all three",
            indicator("semantic: {intent: x}"),
            attack(
                "indicators:\n  - »target: a\n    pattern: {contains: x}\n    expression: {cel: \"true\"}\n    »semantic: {intent: x}",
            ),
            &[("V-012", AT), ("W-007", "attack.indicators[0].semantic")],
        ),
        case(
            "W-007",
            "a semantic indicator",
            pattern(""),
            indicator("»semantic: {intent: x}"),
            format!("{AT}.semantic"),
        ),
        case(
            "V-048",
            "no such actor in the short forms",
            pattern("actor: default"),
            pattern("actor: »main"),
            format!("{AT}.actor"),
        ),
        case(
            "V-048",
            "no such actor among several",
            with_actors("one"),
            with_actors("»default"),
            format!("{AT}.actor"),
        ),
    ];
    for (good, bad) in [("0", "-1"), ("100", "101")] {
        cases.push(case(
            "V-025",
            bad,
            pattern(&format!("confidence: {good}")),
            pattern(&format!("confidence: »{bad}")),
            format!("{AT}.confidence"),
        ));
    }
    for (good, bad) in [("0", "-0.1"), ("1.0", "1.1"), ("0.0", "2"), ("1", "-1")] {
        cases.push(several(
            "V-022",
            bad,
            indicator(&format!("semantic: {{intent: x, threshold: {good}}}")),
            indicator(&format!("»semantic: {{intent: x, threshold: »{bad}}}")),
            &[
                ("W-007", "attack.indicators[0].semantic"),
                ("V-022", "attack.indicators[0].semantic.threshold"),
            ],
        ));
    }
    for bad in [
        "ACME-002-01",
        "ACME-001-1",
        "ACME-001",
        "ACME-0011-01",
        "ACME-001-x1",
        "ACME-001-01-",
        "acme-001-01",
        "other",
    ] {
        cases.push(case(
            "V-024",
            bad,
            with_id("ACME-001", "ACME-001-01"),
            with_id("ACME-001", &format!("»{bad}")),
            format!("{AT}.id"),
        ));
    }
    cases.push(case(
        "V-024",
        "without an attack id any id will do",
        two_ids("one", "two"),
        with_id("ACME-001", "»one"),
        format!("{AT}.id"),
    ));
    cases.push(several(
        "V-024",
        "an id that extends a malformed attack id",
        with_id("AC-ME-001", "AC-ME-001-123"),
        with_id("»ACME-1", "»ACME-1-01"),
        &[("V-023", "attack.id"), ("V-024", "attack.indicators[0].id")],
    ));
    for (detection, method) in [
        ("pattern: {contains: x}", "pattern"),
        ("expression: {cel: \"true\"}", "expression"),
    ] {
        for other in ["pattern", "expression", "semantic"] {
            if other != method {
                cases.push(case(
                    "V-049",
                    &format!("{other} beside {method}"),
                    indicator(&format!("method: {method}\n{detection}")),
                    indicator(&format!("method: »{other}\n{detection}")),
                    format!("{AT}.method"),
                ));
            }
        }
    }
    cases.push(several(
        "V-049",
        "pattern beside semantic",
        indicator("method: semantic\nsemantic: {intent: x}"),
        indicator("method: »pattern\n»semantic: {intent: x}"),
        &[
            ("V-049", "attack.indicators[0].method"),
            ("W-007", "attack.indicators[0].semantic"),
        ],
    ));
    for (good, bad, path) in [
        ("direction: request", "direction: »up", "direction"),
        ("method: pattern", "method: »guess", "method"),
        ("tier: ingested", "tier: »far", "tier"),
        ("severity: low", "severity: »huge", "severity"),
    ] {
        cases.push(case(
            "V-005",
            bad,
            pattern(good),
            pattern(bad),
            format!("{AT}.{path}"),
        ));
    }
    cases.push(case(
        "V-005",
        "intent class",
        indicator("semantic: {intent: x, intent_class: prompt_injection}"),
        indicator("semantic: {intent: x, intent_class: »odd}"),
        format!("{AT}.semantic.intent_class"),
    ));
    cases
}

fn with_actors(actor: &str) -> String {
    let indicators = format!(
        "  indicators: [{{target: a, protocol: mcp, actor: {actor}, pattern: {{contains: x}}}}]\n"
    );
    actors(
        "- {name: one, mode: mcp_server, phases: [{state: {}}]}\n- {name: two, mode: mcp_client, phases: [{state: {}}]}",
    ) + &indicators
}

#[test]
fn the_helpers_make_valid_documents() {
    for text in [
        document("execution: {mode: mcp_server, state: {}}"),
        pattern(""),
        with_actors("two"),
    ] {
        proofhouse_oatf::load(&text).unwrap();
    }
}
