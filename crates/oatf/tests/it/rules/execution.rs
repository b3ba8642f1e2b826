//! Forms, actors, phases, triggers and actions.

use super::{
    Case, actors, attack, case, document, execution, indent, pattern, phase, phases, several,
};

pub(super) fn cases() -> Vec<Case> {
    [
        forms(),
        phase_rules(),
        modes(),
        actor_rules(),
        trigger_rules(),
        action_rules(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const ACTOR: &str = "- {name: a, mode: mcp_server, phases: [{state: {}}]}";

fn forms() -> Vec<Case> {
    let passing = [
        attack(""),
        phases("- state: {}"),
        actors(ACTOR),
        execution("mode: mcp_server\nactors: [{name: a, mode: mcp_server, phases: [{state: {}}]}]"),
    ];
    let mut cases = Vec::new();
    for (about, failing) in [
        ("no form", document("»execution: {mode: mcp_server}")),
        (
            "state and phases",
            document("»execution:\n  mode: mcp_server\n  state: {}\n  phases: [{state: {}}]"),
        ),
    ] {
        for passing in &passing {
            cases.push(case("V-030", about, passing, &failing, "attack.execution"));
        }
    }
    cases.push(several(
        "V-030",
        "state and actors",
        passing[0].clone(),
        document(&format!(
            "»execution:\n  »mode: mcp_server\n  state: {{}}\n  actors:\n{}",
            indent(ACTOR, 4)
        )),
        &[
            ("V-030", "attack.execution"),
            ("PH-203", "attack.execution.mode"),
        ],
    ));
    cases.push(several(
        "V-030",
        "phases and actors",
        passing[1].clone(),
        document(&format!(
            "»execution:\n  phases: [{{state: {{}}}}]\n  actors:\n{}",
            indent(ACTOR, 4)
        )),
        &[("V-030", "attack.execution")],
    ));
    cases.push(case(
        "V-030",
        "state without mode",
        attack(""),
        document("»execution:\n  state: {}"),
        "attack.execution.mode",
    ));
    cases.push(case(
        "PH-203",
        "a mode beside actors",
        actors(ACTOR),
        execution(&format!("»mode: mcp_server\nactors:\n{}", indent(ACTOR, 2))),
        "attack.execution.mode",
    ));
    cases
}

fn phase_rules() -> Vec<Case> {
    let ends = "trigger: {after: 1s}";
    vec![
        case(
            "V-007",
            "no phases",
            phases("- state: {}"),
            execution("mode: mcp_server\n»phases: []"),
            "attack.execution.phases",
        ),
        several(
            "V-007",
            "an actor without phases",
            actors(ACTOR),
            actors("- »name: a\n  mode: mcp_server\n  »phases: []"),
            &[
                ("V-031", "attack.execution.actors[0]"),
                ("V-007", "attack.execution.actors[0].phases"),
            ],
        ),
        case(
            "V-008",
            "the terminal phase is not the last",
            phases(&format!("- state: {{}}\n  {ends}\n- description: end")),
            phases(&format!("- »state: {{}}\n- {ends}")),
            "attack.execution.phases[0]",
        ),
        case(
            "V-008",
            "the terminal phase is in the middle",
            phases(&format!(
                "- state: {{}}\n  {ends}\n- {ends}\n- description: end"
            )),
            phases(&format!(
                "- state: {{}}\n  {ends}\n- »description: stuck\n- {ends}"
            )),
            "attack.execution.phases[1]",
        ),
        case(
            "V-008",
            "two terminal phases",
            phases(&format!("- state: {{}}\n  {ends}")),
            execution("mode: mcp_server\n»phases:\n  - state: {}\n  - description: end"),
            "attack.execution.phases",
        ),
        case(
            "V-008",
            "two terminal phases of an actor",
            actors(&format!(
                "- name: a\n  mode: mcp_server\n  phases:\n    - state: {{}}\n      {ends}\n    - description: end"
            )),
            actors(&format!(
                "- name: a\n  mode: mcp_server\n  »phases:\n    - state: {{}}\n    - {ends}\n    - description: end"
            )),
            "attack.execution.actors[0].phases",
        ),
        case(
            "V-009",
            "a first phase without state",
            phases(&format!("- state: {{}}\n  {ends}\n- description: inherits")),
            phases(&format!(
                "- »description: nothing to inherit\n  {ends}\n- state: {{}}"
            )),
            "attack.execution.phases[0]",
        ),
        case(
            "V-009",
            "a first phase of an actor without state",
            actors(ACTOR),
            actors("- name: a\n  mode: mcp_server\n  phases:\n    - »name: one"),
            "attack.execution.actors[0].phases[0]",
        ),
        case(
            "V-011",
            "a phase name twice",
            phases(&format!(
                "- name: one\n  state: {{}}\n  {ends}\n- name: two"
            )),
            phases(&format!(
                "- name: one\n  state: {{}}\n  {ends}\n- name: »one"
            )),
            "attack.execution.phases[1].name",
        ),
        case(
            "V-011",
            "the same phase name in two actors is fine, twice in one is not",
            actors(
                "- {name: a, mode: mcp_server, phases: [{name: one, state: {}}]}\n- {name: b, mode: mcp_server, phases: [{name: one, state: {}}]}",
            ),
            actors(
                "- {name: a, mode: mcp_server, phases: [{name: one, state: {}, trigger: {after: 1s}}, {name: »one}]}",
            ),
            "attack.execution.actors[0].phases[1].name",
        ),
        case(
            "V-037",
            "an extractor name with a capital",
            phase("extractors: [{name: a_1, source: request, type: json_path, selector: $.a}]"),
            phase("extractors: [{name: »Abc, source: request, type: json_path, selector: $.a}]"),
            "attack.execution.phases[0].extractors[0].name",
        ),
        case(
            "V-037",
            "an extractor name that starts with a digit",
            phase("extractors: [{name: a1, source: request, type: json_path, selector: $.a}]"),
            phase("extractors: [{name: »1a, source: request, type: json_path, selector: $.a}]"),
            "attack.execution.phases[0].extractors[0].name",
        ),
        case(
            "V-038",
            "an empty list of extractors",
            phase("description: none"),
            phase("»extractors: []"),
            "attack.execution.phases[0].extractors",
        ),
        case(
            "V-043",
            "an empty list of actions",
            phase("description: none"),
            phase("»on_enter: []"),
            "attack.execution.phases[0].on_enter",
        ),
    ]
}

fn modes() -> Vec<Case> {
    let modeless = |first: &str, second: &str| {
        execution(&format!(
            "phases:\n  - state: {{}}\n    trigger: {{after: 1s}}\n{first}  - description: end\n{second}"
        ))
    };
    let mut cases = vec![
        case(
            "V-028",
            "a phase without a mode",
            modeless("    mode: mcp_server\n", "    mode: mcp_server\n"),
            modeless("    mode: mcp_server\n", "").replace("- description", "- »description"),
            "attack.execution.phases[1].mode",
        ),
        case(
            "V-028",
            "the first phase without a mode",
            modeless("    mode: mcp_server\n", "    mode: mcp_server\n"),
            modeless("", "    mode: mcp_server\n").replace("- state", "- »state"),
            "attack.execution.phases[0].mode",
        ),
        case(
            "V-028",
            "phases of different modes",
            modeless("    mode: mcp_server\n", "    mode: mcp_server\n"),
            modeless("    mode: mcp_server\n", "    mode: mcp_client\n")
                .replace("phases", "»phases"),
            "attack.execution.phases",
        ),
        case(
            "V-028",
            "an indicator without a protocol in multi-phase form",
            document(
                "execution: {phases: [{state: {}, mode: mcp_server}]}\nindicators: [{target: a, protocol: mcp, pattern: {contains: x}}]",
            ),
            document(
                "execution: {phases: [{state: {}, mode: mcp_server}]}\nindicators: [{»target: a, pattern: {contains: x}}]",
            ),
            "attack.indicators[0].protocol",
        ),
        case(
            "V-028",
            "an indicator without a protocol in multi-actor form",
            document(&format!(
                "execution:\n  actors:\n{}indicators: [{{target: a, protocol: mcp, pattern: {{contains: x}}}}]",
                indent(ACTOR, 4)
            )),
            document(&format!(
                "execution:\n  actors:\n{}indicators: [{{»target: a, pattern: {{contains: x}}}}]",
                indent(ACTOR, 4)
            )),
            "attack.indicators[0].protocol",
        ),
        case(
            "V-028",
            "with a mode neither phases nor indicators need theirs",
            phases("- state: {}\n  trigger: {after: 1s}\n- mode: mcp_server").replace(
                "attack:",
                "attack:\n  indicators: [{target: a, pattern: {contains: x}}]",
            ),
            modeless("", "    mode: mcp_server\n").replace("- state", "- »state"),
            "attack.execution.phases[0].mode",
        ),
        case(
            "V-044",
            "a phase of another mode than its actor's",
            actors("- {name: a, mode: mcp_server, phases: [{mode: mcp_server, state: {}}]}"),
            actors("- {name: a, mode: mcp_server, phases: [{mode: »mcp_client, state: {}}]}"),
            "attack.execution.actors[0].phases[0].mode",
        ),
        case(
            "V-034",
            "the protocol of an indicator",
            pattern("protocol: mcp"),
            pattern("protocol: »Mcp"),
            "attack.indicators[0].protocol",
        ),
    ];
    for bad in [
        "mcp",
        "_server",
        "Mcp_server",
        "mcp_Server",
        "1mcp_server",
        "mcp-x_server",
        "mcp_serverx",
        "server",
        "é_server",
    ] {
        cases.push(case(
            "V-034",
            &format!("execution.mode {bad}"),
            attack(""),
            execution(&format!("mode: »{bad}\nstate: {{}}")),
            "attack.execution.mode",
        ));
        cases.push(case(
            "V-034",
            &format!("actor.mode {bad}"),
            actors(ACTOR),
            actors(&format!(
                "- {{name: a, mode: »{bad}, phases: [{{state: {{}}}}]}}"
            )),
            "attack.execution.actors[0].mode",
        ));
        cases.push(case(
            "V-034",
            &format!("phase.mode {bad}"),
            phase("mode: mcp_server"),
            phase(&format!("mode: »{bad}")),
            "attack.execution.phases[0].mode",
        ));
    }
    cases
}

fn actor_rules() -> Vec<Case> {
    let named =
        |name: &str| format!("- {{name: {name}, mode: mcp_server, phases: [{{state: {{}}}}]}}");
    let mut cases = vec![
        case(
            "V-031",
            "the same name twice",
            actors(&format!("{}\n{}", named("a"), named("b"))),
            actors(&format!("{}\n{}", named("a"), named("»a"))),
            "attack.execution.actors[1].name",
        ),
        several(
            "V-031",
            "no phases",
            actors(ACTOR),
            actors("- {»name: a, mode: mcp_server, »phases: []}"),
            &[
                ("V-031", "attack.execution.actors[0]"),
                ("V-007", "attack.execution.actors[0].phases"),
            ],
        ),
    ];
    cases.push(several(
        "V-031",
        "no mode and no phases",
        actors(ACTOR),
        actors("- {»»name: a}"),
        &[
            ("V-031", "attack.execution.actors[0].mode"),
            ("V-031", "attack.execution.actors[0].phases"),
        ],
    ));
    for bad in ["A", "1a", "a-b", "_a", "\"a b\"", "é"] {
        cases.push(case(
            "V-031",
            bad,
            actors(&named("a_1")),
            actors(&named(&format!("»{bad}"))),
            "attack.execution.actors[0].name",
        ));
    }
    cases
}

fn trigger_rules() -> Vec<Case> {
    let path = "attack.execution.phases[0].trigger";
    let mut cases = vec![
        case(
            "V-019",
            "a count without an event",
            phase("trigger: {event: tools/call, count: 2}"),
            phase("»trigger: {count: 2, after: 1s}"),
            path,
        ),
        case(
            "V-019",
            "a match without an event",
            phase("trigger: {event: tools/call, match: {a: 1}}"),
            phase("»trigger: {match: {a: 1}, after: 1s}"),
            path,
        ),
        several(
            "V-019",
            "count and match without an event",
            phase("trigger: {event: tools/call, count: 1, match: {a: 1}, after: 1s}"),
            phase("»»trigger: {match: {a: 1}, count: 1, after: 1s}"),
            &[("V-019", path), ("V-019", path)],
        ),
        case(
            "V-040",
            "an empty trigger",
            phase("trigger: {after: 1s}"),
            phase("»trigger: {}"),
            path,
        ),
        several(
            "V-040",
            "a trigger with only a count",
            phase("trigger: {event: tools/call}"),
            phase("»»trigger: {count: 1}"),
            &[("V-019", path), ("V-040", path)],
        ),
    ];
    for (good, bad) in [
        ("1s", "1"),
        ("5m", "5 m"),
        ("P1DT2H", "P1H"),
        ("0s", "-1s"),
        ("1d", "PT"),
    ] {
        cases.push(case(
            "V-036",
            bad,
            phase(&format!("trigger: {{after: {good}}}")),
            phase(&format!("trigger: {{after: »\"{bad}\"}}")),
            format!("{path}.after"),
        ));
    }
    cases
}

fn action_rules() -> Vec<Case> {
    let path = "attack.execution.phases[0].on_enter[0]";
    vec![
        case(
            "V-041",
            "two known keys",
            phase(
                "on_enter: [{send: {method: x}}, {log: {message: x}}, {send_push_notification: {}}]",
            ),
            phase("on_enter: [{»send: {method: x}, log: {message: x}}]"),
            path,
        ),
        case(
            "V-041",
            "a known key and one of a binding",
            phase("on_enter: [{log: {message: x}, x-note: 1}]"),
            phase("on_enter: [{»log: {message: x}, other: 1}]"),
            path,
        ),
        case(
            "V-041",
            "only an extension",
            phase("on_enter: [{x-note: 1, wait: 1}]"),
            phase("on_enter: [{»x-note: 1}]"),
            path,
        ),
        case(
            "V-041",
            "nothing at all",
            phase("on_enter: [{wait: null}]"),
            phase("on_enter: [»{}]"),
            path,
        ),
        case(
            "V-005",
            "log level",
            phase("on_enter: [{log: {message: x, level: warn}}]"),
            phase("on_enter: [{log: {message: x, level: »loud}}]"),
            format!("{path}.log.level"),
        ),
        case(
            "V-005",
            "extractor source",
            phase("extractors: [{name: a, source: response, type: json_path, selector: $.a}]"),
            phase("extractors: [{name: a, source: »reply, type: json_path, selector: $.a}]"),
            "attack.execution.phases[0].extractors[0].source",
        ),
        case(
            "V-005",
            "extractor type",
            phase("extractors: [{name: a, source: request, type: regex, selector: (a)}]"),
            phase("extractors: [{name: a, source: request, type: »xpath, selector: (a)}]"),
            "attack.execution.phases[0].extractors[0].type",
        ),
    ]
}
