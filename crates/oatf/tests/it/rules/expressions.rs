//! Regular expressions, CEL, JSONPath and dot-paths, wherever they may stand.

use super::{Case, case, indicator, pattern, phase, several, state};

const AT: &str = "attack.indicators[0]";
const PHASE: &str = "attack.execution.phases[0]";

/// Every place of protocol state where `when` stands: the text around an entry, and its path.
pub(super) const WHEN_LISTS: &[(&str, &str)] = &[
    ("sampling_responses: [ENTRY]", "sampling_responses[0]"),
    ("elicitation_responses: [ENTRY]", "elicitation_responses[0]"),
    ("task_responses: [ENTRY]", "task_responses[0]"),
    ("tool_responses: [ENTRY]", "tool_responses[0]"),
    (
        "tools: [{name: t, responses: [ENTRY]}]",
        "tools[0].responses[0]",
    ),
    (
        "prompts: [{name: p, responses: [ENTRY]}]",
        "prompts[0].responses[0]",
    ),
    ("elicitations: [ENTRY]", "elicitations[0]"),
];

pub(super) fn cases() -> Vec<Case> {
    [regexes(), cel(), json_paths(), targets(), predicates()]
        .into_iter()
        .flatten()
        .collect()
}

fn regexes() -> Vec<Case> {
    let extractor = |selector: &str| {
        phase(&format!(
            "extractors: [{{name: a, source: request, type: regex, selector: {selector}}}]"
        ))
    };
    let mut cases = vec![
        case(
            "V-013",
            "pattern in shorthand",
            indicator("pattern: {regex: a(b)}"),
            indicator("pattern: {regex: a»(?=b)}"),
            format!("{AT}.pattern.regex"),
        ),
        case(
            "V-013",
            "pattern with condition",
            indicator("pattern: {condition: {regex: \"a+\"}}"),
            indicator("pattern: {condition: {regex: \"a+»+\"}}"),
            format!("{AT}.pattern.condition.regex"),
        ),
        case(
            "V-013",
            "trigger.match",
            phase("trigger: {event: tools/call, match: {name: {regex: (a)1}}}"),
            phase("trigger: {event: tools/call, match: {name: {regex: (a)»\\1}}}"),
            format!("{PHASE}.trigger.match.name.regex"),
        ),
        case(
            "V-013",
            "an extractor",
            extractor("(a)b"),
            extractor("(a)»(?!b)"),
            format!("{PHASE}.extractors[0].selector"),
        ),
        case(
            "V-013",
            "what grows too large is shown whole",
            indicator("pattern: {regex: \"a{1000}\"}"),
            indicator("pattern: {regex: \"»(a{1000}){1000}\"}"),
            format!("{AT}.pattern.regex"),
        ),
        case(
            "V-042",
            "no capture group",
            extractor("key=(\\w+)"),
            extractor("»key=\\w+"),
            format!("{PHASE}.extractors[0].selector"),
        ),
        case(
            "V-042",
            "only a group that does not capture",
            extractor("(?P<n>a)"),
            extractor("»(?:a)"),
            format!("{PHASE}.extractors[0].selector"),
        ),
    ];
    for (list, path) in WHEN_LISTS {
        let when = |regex: &str| {
            state(&list.replace(
                "ENTRY",
                &format!("{{when: {{name: {{regex: {regex}}}}}, content: x}}"),
            ))
        };
        cases.push(case(
            "V-013",
            list,
            when("a"),
            when("a»(?<=b)"),
            format!("attack.execution.state.{path}.when.name.regex"),
        ));
    }
    cases
}

fn cel() -> Vec<Case> {
    let expression = |cel: &str| indicator(&format!("expression: {{cel: {cel}}}"));
    let variables = |name: &str, path: &str| {
        indicator(&format!(
            "expression: {{cel: \"true\", variables: {{{name}: {path}}}}}"
        ))
    };
    let mut cases = vec![
        case(
            "V-014",
            "an operator without its right side",
            expression("\"1 + 1 == 2\""),
            expression("\"1 == 1 &&»\""),
            format!("{AT}.expression.cel"),
        ),
        case(
            "V-014",
            "empty",
            expression("\"true\""),
            expression("\"»\""),
            format!("{AT}.expression.cel"),
        ),
    ];
    for bad in ["a[0]", "a..b", "a[*]", ".a", "a b"] {
        cases.push(case(
            "V-026",
            bad,
            variables("v", "a.b-c_d"),
            variables("v", &format!("»\"{bad}\"")),
            format!("{AT}.expression.variables.v"),
        ));
    }
    for bad in ["1a", "a-b", "a.b", "é", ""] {
        cases.push(case(
            "V-039",
            bad,
            variables("_a1", "a"),
            variables(&format!("»\"{bad}\""), "a"),
            format!("{AT}.expression.variables.{bad}"),
        ));
    }
    for good in ["_", "A", "z9_"] {
        cases.push(case(
            "V-039",
            good,
            variables(good, "a"),
            variables("»9", "a"),
            format!("{AT}.expression.variables.9"),
        ));
    }
    cases
}

fn json_paths() -> Vec<Case> {
    let extractor = |selector: &str| {
        phase(&format!(
            "extractors: [{{name: a, source: response, type: json_path, selector: {selector}}}]"
        ))
    };
    let refused = |code: &'static str, bad: &str| {
        case(
            code,
            bad,
            extractor("\"$.a[0]..b[?@.c == 1 && @.d != 'match(' && length(@.e) > 1]\""),
            extractor(&format!("»{bad}")),
            format!("{PHASE}.extractors[0].selector"),
        )
    };
    let broken = ["\"$.a[\"", "a.b", "\"$[?(\"", "\"\""];
    // They have a dialect and a time of their own, so a pattern in them is never looked at.
    let regexes = [
        "\"$[?match(@.a, '(?=x)')]\"",
        "\"$[?@.b == 1 && !(search(@.a, '['))]\"",
    ];
    let broken = broken.iter().map(|bad| refused("V-015", bad));
    broken
        .chain(regexes.iter().map(|bad| refused("PH-105", bad)))
        .collect()
}

fn targets() -> Vec<Case> {
    let mut cases = Vec::new();
    for (good, bad) in [
        ("\"\"", "\"tools[0]\""),
        ("a", "tools..name"),
        ("a[*].b[*]", "\"tools[*.x\""),
        ("a-b", ".a"),
        ("a_1", "\"[*]\""),
        ("x", "\"a b\""),
    ] {
        cases.push(case(
            "V-021",
            &format!("indicator {bad}"),
            pattern("").replace(
                "target: a",
                &format!("target: \"{}\"", good.trim_matches('"')),
            ),
            pattern("").replace("target: a", &format!("target: »{bad}")),
            format!("{AT}.target"),
        ));
        cases.push(case(
            "V-021",
            &format!("pattern {bad}"),
            indicator(&format!(
                "pattern: {{target: \"{}\", contains: x}}",
                good.trim_matches('"')
            )),
            indicator(&format!("pattern: {{target: »{bad}, contains: x}}")),
            format!("{AT}.pattern.target"),
        ));
        cases.push(several(
            "V-021",
            &format!("semantic {bad}"),
            indicator(&format!(
                "semantic: {{target: \"{}\", intent: x}}",
                good.trim_matches('"')
            )),
            indicator(&format!("»semantic: {{target: »{bad}, intent: x}}")),
            &[
                ("W-007", "attack.indicators[0].semantic"),
                ("V-021", "attack.indicators[0].semantic.target"),
            ],
        ));
    }
    cases
}

fn predicates() -> Vec<Case> {
    let mut cases = Vec::new();
    for bad in ["a[0]", "a[*]", "a..b", "a b"] {
        cases.push(case(
            "V-027",
            &format!("trigger.match {bad}"),
            phase("trigger: {event: tools/call, match: {a.b-c: 1, \"\": {exists: true}}}"),
            phase(&format!(
                "trigger: {{event: tools/call, match: {{»\"{bad}\": 1}}}}"
            )),
            format!("{PHASE}.trigger.match.{bad}"),
        ));
        for (list, path) in WHEN_LISTS {
            let when = |key: &str| {
                state(&list.replace("ENTRY", &format!("{{when: {{{key}: 1}}, content: x}}")))
            };
            cases.push(case(
                "V-027",
                &format!("{list} {bad}"),
                when("a.b"),
                when(&format!("»\"{bad}\"")),
                format!("attack.execution.state.{path}.when.{bad}"),
            ));
        }
    }
    cases
}
