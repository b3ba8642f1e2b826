//! What the reader refuses before any rule is looked at.

use super::{Case, actors, attack, case, document, indicator, pattern, phase, several};

const AT: &str = "attack.indicators[0]";

pub(super) fn cases() -> Vec<Case> {
    let deep = |levels: usize| {
        attack(&format!(
            "x-deep: {}{}",
            "[".repeat(levels),
            "]".repeat(levels)
        ))
    };
    let mut cases = vec![
        case(
            "PH-001",
            "a NUL byte",
            attack("name: x"),
            attack("name: »\0"),
            "",
        ),
        case(
            "PH-002",
            "larger than 4 MiB",
            attack(&format!("name: {}", "x".repeat(1000))),
            format!("»{}", attack(&format!("name: {}", "x".repeat(4 << 20)))),
            "",
        ),
        case("PH-003", "nothing", attack(""), "»", ""),
        case(
            "PH-003",
            "a comment",
            attack("# nothing else"),
            "»# nothing else\n",
            "",
        ),
        case(
            "PH-004",
            "two documents",
            format!("---\n{}...\n", attack("")),
            format!("{}»---\n{}", attack(""), attack("")),
            "",
        ),
        case(
            "PH-005",
            "an open bracket",
            attack("x-a: [1]"),
            attack("x-a: »[1"),
            "",
        ),
        case(
            "PH-006",
            "too deep",
            deep(126),
            deep(127)
                .replace("[]", "[»[]")
                .replacen('[', "", 1)
                .replace("]\n", "]]\n"),
            "",
        ),
        case(
            "PH-006",
            "an id of more than a kilobyte",
            attack(&format!("id: A{}-001", "A".repeat(1019))),
            attack(&format!("id: »A{}-001", "A".repeat(1020))),
            "attack.id",
        ),
        case(
            "PH-006",
            "a mode of more than a kilobyte",
            attack(""),
            document(&format!(
                "execution: {{mode: »{}_server, state: {{}}}}",
                "a".repeat(1018)
            )),
            "attack.execution.mode",
        ),
        case("PH-007", "a sequence", attack(""), "»- a\n", ""),
        case("PH-007", "a text", attack(""), "»just words\n", ""),
        case(
            "PH-008",
            "a key twice",
            attack("name: x"),
            attack("name: x\n»name: y"),
            "",
        ),
        case(
            "PH-013",
            "a sequence as a key",
            attack("x-a: {\"[1]\": 2}"),
            attack("x-a: {»[1]: 2}"),
            "",
        ),
        case(
            "PH-014",
            "no such day",
            attack("created: 2026-02-28"),
            attack("created: »2026-02-30"),
            "attack.created",
        ),
        case(
            "PH-014",
            "no time zone",
            attack("modified: 2026-01-15T10:30:00Z"),
            attack("modified: »2026-01-15T10:30:00"),
            "attack.modified",
        ),
        case(
            "PH-015",
            "condition and operators",
            indicator("pattern: {condition: {contains: x}}"),
            indicator("»pattern: {condition: {contains: x}, contains: y}"),
            format!("{AT}.pattern"),
        ),
    ];
    cases.extend(unknown_keys());
    cases.extend(wrong_types());
    cases.extend(missing_fields());
    cases.extend(numbers());
    cases.extend(dispatch_lists());
    cases
}

fn unknown_keys() -> Vec<Case> {
    let mut cases = vec![
        case(
            "PH-009",
            "beside attack",
            attack(""),
            format!("{}»atack: 1\n", attack("")),
            "atack",
        ),
        case(
            "PH-009",
            "no extensions beside attack",
            attack(""),
            format!("{}»x-a: 1\n", attack("")),
            "x-a",
        ),
        case(
            "PH-009",
            "in attack",
            attack("x-nme: x"),
            attack("»nme: x"),
            "attack.nme",
        ),
        case(
            "PH-009",
            "in execution",
            attack(""),
            document("execution: {mode: mcp_server, state: {}, »stat: 1}"),
            "attack.execution.stat",
        ),
        case(
            "PH-009",
            "in an actor",
            actors("- {name: a, mode: mcp_server, phases: [{state: {}}], x-a: 1}"),
            actors("- {name: a, mode: mcp_server, phases: [{state: {}}], »a: 1}"),
            "attack.execution.actors[0].a",
        ),
    ];
    for (good, bad, path) in [
        (
            "severity: {level: low}",
            "severity: {level: low, »x-a: 1}",
            "attack.severity.x-a",
        ),
        (
            "classification: {tags: []}",
            "classification: {»tag: []}",
            "attack.classification.tag",
        ),
        (
            "classification: {mappings: [{framework: a, id: b}]}",
            "classification: {mappings: [{framework: a, id: b, »ids: c}]}",
            "attack.classification.mappings[0].ids",
        ),
        (
            "references: [{url: a}]",
            "references: [{url: a, »uri: b}]",
            "attack.references[0].uri",
        ),
    ] {
        cases.push(case("PH-009", bad, attack(good), attack(bad), path));
    }
    for (good, bad, path) in [
        ("x-a: 1", "»a: 1", "a"),
        (
            "trigger: {after: 1s}",
            "trigger: {after: 1s, »afer: 2s}",
            "trigger.afer",
        ),
        (
            "on_enter: [{send: {method: x}}]",
            "on_enter: [{send: {method: x, »param: 1}}]",
            "on_enter[0].send.param",
        ),
        (
            "on_enter: [{log: {message: x}}]",
            "on_enter: [{log: {message: x, »x-a: 1}}]",
            "on_enter[0].log.x-a",
        ),
        (
            "extractors: [{name: a, source: request, type: json_path, selector: $.a}]",
            "extractors: [{name: a, source: request, type: json_path, selector: $.a, »select: 1}]",
            "extractors[0].select",
        ),
        (
            "trigger: {event: ping, match: {a: {contains: x}}}",
            "trigger: {event: ping, match: {a: {contains: x, »start_with: y}}}",
            "trigger.match.a.start_with",
        ),
    ] {
        cases.push(case(
            "PH-009",
            bad,
            phase(good),
            phase(bad),
            format!("attack.execution.phases[0].{path}"),
        ));
    }
    for (good, bad, path) in [
        (
            "pattern: {contains: x}",
            "pattern: {contains: x, »contain: y}",
            "pattern.contain",
        ),
        (
            "pattern: {condition: {gt: 1}}",
            "pattern: {condition: {gt: 1, »gtt: 1}}",
            "pattern.condition.gtt",
        ),
        (
            "expression: {cel: \"true\"}",
            "expression: {cel: \"true\", »vars: {}}",
            "expression.vars",
        ),
        (
            "pattern: {contains: x}\nx-a: 1",
            "pattern: {contains: x}\n»targt: b",
            "targt",
        ),
    ] {
        cases.push(case(
            "PH-009",
            bad,
            indicator(good),
            indicator(bad),
            format!("{AT}.{path}"),
        ));
    }
    cases
}

fn wrong_types() -> Vec<Case> {
    let mut cases = vec![
        case(
            "PH-010",
            "attack is a text",
            attack(""),
            "oatf: \"0.1\"\nattack: »x\n",
            "attack",
        ),
        case(
            "PH-010",
            "execution is a text",
            attack(""),
            document("execution: »x"),
            "attack.execution",
        ),
        case(
            "PH-010",
            "an action is a text",
            phase("on_enter: [{wait: 1}]"),
            phase("on_enter: [»wait]"),
            "attack.execution.phases[0].on_enter[0]",
        ),
        case(
            "PH-010",
            "match is a list",
            phase("trigger: {event: ping, match: {}}"),
            phase("trigger: {event: ping, »match: []}"),
            "attack.execution.phases[0].trigger.match",
        ),
    ];
    for (good, bad, path) in [
        ("name: \"1\"", "name: »1", "attack.name"),
        ("name: \"true\"", "name: »true", "attack.name"),
        ("name: x", "»name: [x]", "attack.name"),
        ("version: 1", "version: »1.5", "attack.version"),
        ("version: 1", "version: »one", "attack.version"),
        ("status: draft", "status: »1", "attack.status"),
        (
            "impact: [data_tampering]",
            "impact: »data_tampering",
            "attack.impact",
        ),
        (
            "created: 2026-01-15",
            "created: »20260115",
            "attack.created",
        ),
        (
            "classification: {tags: [a]}",
            "classification: {tags: [»1]}",
            "attack.classification.tags[0]",
        ),
        ("references: []", "»references: {}", "attack.references"),
    ] {
        cases.push(case("PH-010", bad, attack(good), attack(bad), path));
    }
    for (good, bad, path) in [
        ("pattern: {contains: x}", "pattern: »x", "pattern"),
        (
            "pattern: {contains: \"1\"}",
            "pattern: {contains: »1}",
            "pattern.contains",
        ),
        (
            "pattern: {starts_with: a}",
            "pattern: {starts_with: »1}",
            "pattern.starts_with",
        ),
        (
            "pattern: {ends_with: a}",
            "pattern: {ends_with: »1}",
            "pattern.ends_with",
        ),
        (
            "pattern: {regex: a}",
            "pattern: {regex: »1}",
            "pattern.regex",
        ),
        (
            "pattern: {any_of: [1]}",
            "pattern: {any_of: »1}",
            "pattern.any_of",
        ),
        ("pattern: {gt: 1.5}", "pattern: {gt: »x}", "pattern.gt"),
        ("pattern: {lt: 1}", "pattern: {lt: »x}", "pattern.lt"),
        (
            "pattern: {gte: 18446744073709551615}",
            "pattern: {gte: »x}",
            "pattern.gte",
        ),
        ("pattern: {lte: -1}", "pattern: {lte: »x}", "pattern.lte"),
        (
            "pattern: {exists: false}",
            "pattern: {exists: »1}",
            "pattern.exists",
        ),
        (
            "pattern: {target: a, contains: x}",
            "pattern: {target: »1, contains: x}",
            "pattern.target",
        ),
        (
            "pattern: {target: null, contains: x}",
            "pattern: {»target: [], contains: x}",
            "pattern.target",
        ),
        (
            "expression: {cel: \"true\", variables: {a: b}}",
            "expression: {cel: \"true\", variables: {a: »1}}",
            "expression.variables.a",
        ),
        (
            "expression: {cel: \"true\", variables: {}}",
            "expression: {cel: \"true\", »variables: []}",
            "expression.variables",
        ),
        (
            "pattern: {contains: x}\nfalse_positives: []",
            "pattern: {contains: x}\nfalse_positives: »x",
            "false_positives",
        ),
    ] {
        cases.push(case(
            "PH-010",
            bad,
            indicator(good),
            indicator(bad),
            format!("{AT}.{path}"),
        ));
    }
    cases
}

fn missing_fields() -> Vec<Case> {
    let mut cases = vec![
        case(
            "PH-011",
            "target",
            pattern(""),
            attack("indicators:\n  - »pattern: {contains: x}"),
            format!("{AT}.target"),
        ),
        case(
            "PH-011",
            "level",
            attack("severity: {level: low}"),
            attack("»severity: {confidence: 1}"),
            "attack.severity.level",
        ),
        case(
            "PH-011",
            "url",
            attack("references: [{url: a}]"),
            attack("references: [{»title: a}]"),
            "attack.references[0].url",
        ),
        case(
            "PH-011",
            "cel",
            indicator("expression: {cel: \"true\"}"),
            indicator("»expression: {variables: {}}"),
            format!("{AT}.expression.cel"),
        ),
        case(
            "PH-011",
            "intent",
            indicator("semantic: {intent: a}"),
            indicator("»semantic: {target: a}"),
            format!("{AT}.semantic.intent"),
        ),
        several(
            "PH-011",
            "framework and id",
            attack("classification: {mappings: [{framework: a, id: b}]}"),
            attack("classification: {mappings: [{»»name: a}]}"),
            &[
                ("PH-011", "attack.classification.mappings[0].framework"),
                ("PH-011", "attack.classification.mappings[0].id"),
            ],
        ),
        case(
            "PH-011",
            "method",
            phase("on_enter: [{send: {method: a}}]"),
            phase("on_enter: [{»send: {params: {}}}]"),
            "attack.execution.phases[0].on_enter[0].send.method",
        ),
        case(
            "PH-011",
            "message",
            phase("on_enter: [{log: {message: a}}]"),
            phase("on_enter: [{»log: {level: info}}]"),
            "attack.execution.phases[0].on_enter[0].log.message",
        ),
    ];
    for missing in [
        "name: a",
        "source: request",
        "type: json_path",
        "selector: $.a",
    ] {
        let all = [
            "name: a",
            "source: request",
            "type: json_path",
            "selector: $.a",
        ];
        let rest: Vec<&str> = all.into_iter().filter(|field| *field != missing).collect();
        let key = missing.split(':').next().unwrap();
        cases.push(case(
            "PH-011",
            missing,
            phase(&format!("extractors: [{{{}}}]", all.join(", "))),
            phase(&format!("extractors: [{{»{}}}]", rest.join(", "))),
            format!("attack.execution.phases[0].extractors[0].{key}"),
        ));
    }
    cases
}

/// Entries of dispatch lists are read when they are answered from, and must be readable before.
fn dispatch_lists() -> Vec<Case> {
    let lists = [
        (
            "mcp_server",
            "tools: [{name: a, responses: LIST}]",
            "tools[0].responses",
        ),
        (
            "mcp_server",
            "prompts: [{name: a, responses: LIST}]",
            "prompts[0].responses",
        ),
        ("mcp_server", "elicitations: LIST", "elicitations"),
        (
            "mcp_client",
            "sampling_responses: LIST",
            "sampling_responses",
        ),
        (
            "mcp_client",
            "elicitation_responses: LIST",
            "elicitation_responses",
        ),
        ("a2a_server", "task_responses: LIST", "task_responses"),
        ("ag_ui_client", "tool_responses: LIST", "tool_responses"),
    ];
    let entries = [
        ("PH-010", "[{when: »\"x\"}]", "[0].when"),
        (
            "PH-010",
            "[{content: y}, {when: {c: {regex: »1}}}]",
            "[1].when.c.regex",
        ),
        (
            "PH-010",
            "[{when: {c: {contains: »5}}}]",
            "[0].when.c.contains",
        ),
        (
            "PH-009",
            "[{when: {c: {contains: x, »like: y}}}]",
            "[0].when.c.like",
        ),
        (
            "PH-012",
            "[{when: {c: {gt: »99999999999999999999}}}]",
            "[0].when.c.gt",
        ),
        (
            "PH-010",
            "[{synthesize: {prompt: »5}}]",
            "[0].synthesize.prompt",
        ),
        ("PH-010", "[»x]", "[0]"),
        ("PH-010", "»{x: 1}", ""),
    ];
    let mut cases = Vec::new();
    for (mode, state, path) in lists {
        for (code, bad, within) in entries {
            let text = |list: &str| {
                let state = state.replace("LIST", list);
                document(&format!("execution: {{mode: {mode}, state: {{{state}}}}}"))
            };
            let whole = format!("attack.execution.state.{path}{within}");
            let good = "[{when: {c: {regex: x}, d: 5, e: {f: 1}}, content: 1}, {messages: [1]}]";
            let about = format!("{path}: {bad}");
            // What is no list is told at its key.
            let key = path.rsplit('.').next().unwrap_or_default();
            let failing = text(bad).replace(&format!("{key}: »"), &format!("»{key}: "));
            cases.push(case(code, &about, text(good), failing, whole));
        }
    }
    cases
}

fn numbers() -> Vec<Case> {
    let mut cases = vec![
        case(
            "PH-012",
            "an integer beyond 64 bits",
            attack("version: 9223372036854775807"),
            attack("version: »9223372036854775808"),
            "attack.version",
        ),
        case(
            "PH-012",
            "a comparison with infinity",
            indicator("pattern: {gt: 1e308}"),
            indicator("pattern: {gt: ».inf}"),
            format!("{AT}.pattern.gt"),
        ),
    ];
    for bad in [
        "18446744073709551616",
        "-9223372036854775809",
        "1e999",
        ".nan",
        "-.inf",
    ] {
        cases.push(case(
            "PH-012",
            bad,
            attack("x-a: {b: [18446744073709551615, -9223372036854775808, \".nan\"]}"),
            attack(&format!("x-a: {{b: [»{bad}]}}")),
            "attack.x-a",
        ));
    }
    cases
}
