//! Our own rules: what the specification implies, and what is doubtful.

use super::expressions::WHEN_LISTS;
use super::{Case, attack, case, execution, indicator, phase, phases, several, state};

const AT: &str = "attack.indicators[0]";
const PHASE: &str = "attack.execution.phases[0]";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case(
            "PH-101",
            "a list",
            attack(""),
            execution("mode: mcp_server\n»state: []"),
            "attack.execution.state",
        ),
        case(
            "PH-101",
            "a text",
            phase(""),
            phases("- state: »x"),
            format!("{PHASE}.state"),
        ),
        case(
            "PH-102",
            "zero",
            phase("trigger: {event: ping, count: 1}"),
            phase("trigger: {event: ping, count: »0}"),
            format!("{PHASE}.trigger.count"),
        ),
        case(
            "PH-102",
            "negative",
            phase("trigger: {event: ping, count: 1}"),
            phase("trigger: {event: ping, count: »-1}"),
            format!("{PHASE}.trigger.count"),
        ),
        case(
            "PH-103",
            "impact",
            attack("impact: [data_tampering]"),
            attack("»impact: []"),
            "attack.impact",
        ),
        case(
            "PH-103",
            "any_of in shorthand",
            indicator("pattern: {any_of: [1]}"),
            indicator("pattern: {»any_of: []}"),
            format!("{AT}.pattern.any_of"),
        ),
        case(
            "PH-103",
            "any_of in a condition",
            indicator("pattern: {condition: {any_of: [null]}}"),
            indicator("pattern: {condition: {»any_of: []}}"),
            format!("{AT}.pattern.condition.any_of"),
        ),
        case(
            "PH-103",
            "any_of in trigger.match",
            phase("trigger: {event: ping, match: {a: {any_of: [1]}}}"),
            phase("trigger: {event: ping, match: {a: {»any_of: []}}}"),
            format!("{PHASE}.trigger.match.a.any_of"),
        ),
        several(
            "PH-103",
            "examples",
            indicator("semantic: {intent: x, examples: {negative: [y]}}"),
            indicator("»semantic: {intent: x, »examples: {}}"),
            &[
                ("W-007", "attack.indicators[0].semantic"),
                ("PH-103", "attack.indicators[0].semantic.examples"),
            ],
        ),
        case(
            "PH-104",
            "a pattern with nothing in it",
            indicator("pattern: {condition: 1}"),
            indicator("»pattern: {}"),
            format!("{AT}.pattern"),
        ),
        case(
            "PH-105",
            "a target that resolution gives up on",
            indicator(&format!(
                "pattern: {{gt: 1, target: {}}}",
                ["a"; 64].join(".")
            )),
            indicator(&format!(
                "pattern: {{gt: 1, target: »{}}}",
                ["a"; 65].join(".")
            )),
            format!("{AT}.pattern.target"),
        ),
        case(
            "PH-104",
            "a pattern with only a target",
            indicator("pattern: {target: a, exists: true}"),
            indicator("»pattern: {target: a}"),
            format!("{AT}.pattern"),
        ),
        case(
            "PH-201",
            "an empty name",
            attack("name: \"\""),
            attack("»name:"),
            "attack.name",
        ),
        case(
            "PH-201",
            "an empty trigger",
            phase("trigger: {after: 1s}"),
            phase("»trigger:"),
            format!("{PHASE}.trigger"),
        ),
        case(
            "PH-201",
            "a null in words",
            attack("author: nobody"),
            attack("»author: ~"),
            "attack.author",
        ),
        case(
            "PH-204",
            "a mistyped operator in a pattern",
            indicator("pattern: {condition: {contains: x}}"),
            indicator("pattern: {condition: {»contain: x}}"),
            format!("{AT}.pattern.condition.contain"),
        ),
        case(
            "PH-204",
            "a mistyped operator in trigger.match",
            phase("trigger: {event: ping, match: {a: {zebra: 1}}}"),
            phase("trigger: {event: ping, match: {a: {»regexp: x}}}"),
            format!("{PHASE}.trigger.match.a.regexp"),
        ),
    ];
    for (list, path) in WHEN_LISTS {
        let when = |any_of: &str| {
            state(&list.replace(
                "ENTRY",
                &format!("{{when: {{a: {{{any_of}}}}}, content: x}}"),
            ))
        };
        cases.push(case(
            "PH-103",
            list,
            when("any_of: [1]"),
            when("»any_of: []"),
            format!("attack.execution.state.{path}.when.a.any_of"),
        ));
    }
    cases
}
