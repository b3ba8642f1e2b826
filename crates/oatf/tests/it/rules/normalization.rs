//! The steps of normalization: what a document becomes, and that it then stays.

use proofhouse_oatf::{normalize, parse, to_value};

use super::{attack, document};

/// One step at work: a document, and the same document after it.
pub(super) struct Step {
    pub(super) code: &'static str,
    before: &'static str,
    after: &'static str,
}

/// The attack's fields before and after; `E` is an execution of one actor that stays as it is.
const STEPS: &[(&str, &str, &str)] = &[
    ("N-001", "E", "name: Untitled\nversion: 1\nstatus: draft\nE"),
    (
        "N-001",
        "name: x\nversion: 2\nstatus: stable\nE",
        "name: x\nversion: 2\nstatus: stable\nE",
    ),
    (
        "N-001",
        "H\nseverity: {level: low}\nE",
        "H\nseverity: {level: low, confidence: 50}\nE",
    ),
    (
        "N-001",
        "H\nclassification: {mappings: [{framework: a, id: b}, {framework: a, id: c, relationship: related}]}\nE",
        "H\nclassification: {mappings: [{framework: a, id: b, relationship: primary}, {framework: a, id: c, relationship: related}]}\nE",
    ),
    (
        "N-001",
        "H\nE\nindicators: []\ncorrelation: {}",
        "H\nE\nindicators: []\ncorrelation: {logic: any}",
    ),
    (
        "N-001",
        "H\nE\nindicators: []\ncorrelation: {logic: all}",
        "H\nE\nindicators: []\ncorrelation: {logic: all}",
    ),
    (
        "N-001",
        "H\nexecution: {actors: [{name: a, mode: mcp_server, phases: [{trigger: {event: x}}, {name: phase-3}, {trigger: {event: x, count: 5}}, {trigger: {after: 1s}}]}]}",
        "H\nexecution: {actors: [{name: a, mode: mcp_server, phases: [{name: phase-1, trigger: {event: x, count: 1}}, {name: phase-3}, {name: phase-3-2, trigger: {event: x, count: 5}}, {name: phase-4, trigger: {after: 1s}}]}]}",
    ),
    (
        "N-001",
        "H\nexecution: {actors: [{name: a, mode: mcp_server, phases: [{name: phase-2}, {}, {name: phase-2-2}]}]}",
        "H\nexecution: {actors: [{name: a, mode: mcp_server, phases: [{name: phase-2}, {name: phase-2-3}, {name: phase-2-2}]}]}",
    ),
    (
        "N-002",
        "H\nseverity: high\nE",
        "H\nseverity: {level: high, confidence: 50}\nE",
    ),
    (
        "N-002",
        "H\nseverity: {level: high, confidence: 0}\nE",
        "H\nseverity: {level: high, confidence: 0}\nE",
    ),
    (
        "N-003",
        "H\nid: A-001\nE\nC\nindicators: [{target: a, expression: {cel: x}}, {id: other, target: a, expression: {cel: x}}, {target: a, expression: {cel: x}}]",
        "H\nid: A-001\nE\nC\nindicators: [{id: A-001-01, target: a, expression: {cel: x}}, {id: other, target: a, expression: {cel: x}}, {id: A-001-03, target: a, expression: {cel: x}}]",
    ),
    (
        "N-003",
        "H\nE\nC\nindicators: [{target: a, expression: {cel: x}}, {id: indicator-01, target: a, expression: {cel: x}}, {id: indicator-03, target: a, expression: {cel: x}}]",
        "H\nE\nC\nindicators: [{id: indicator-04, target: a, expression: {cel: x}}, {id: indicator-01, target: a, expression: {cel: x}}, {id: indicator-03, target: a, expression: {cel: x}}]",
    ),
    (
        "N-004",
        "H\nexecution: {mode: ag_ui_client, state: {}}\nC\nindicators: [{id: i, target: a, pattern: {condition: 1}}, {id: j, target: b, protocol: mcp, semantic: {intent: x}}]",
        "H\nexecution: {actors: [{name: default, mode: ag_ui_client, phases: [{name: phase-1, state: {}}]}]}\nC\nindicators: [{id: i, protocol: ag_ui, target: a, pattern: {target: a, condition: 1}}, {id: j, target: b, protocol: mcp, semantic: {target: b, intent: x}}]",
    ),
    (
        "N-004",
        "H\nE\nC\nindicators: [{id: i, target: a, pattern: {target: p, condition: 1}}, {id: j, target: b, semantic: {target: s, intent: x}}]",
        "H\nE\nC\nindicators: [{id: i, target: a, pattern: {target: p, condition: 1}}, {id: j, target: b, semantic: {target: s, intent: x}}]",
    ),
    (
        "N-005",
        "H\nE\nC\nindicators: [{id: i, target: a, pattern: {target: a, contains: x, gt: 1}}]",
        "H\nE\nC\nindicators: [{id: i, target: a, pattern: {target: a, condition: {contains: x, gt: 1}}}]",
    ),
    (
        "N-006",
        "H\nexecution: {mode: mcp_server, state: {a: 1}, x-keep: 1}",
        "H\nexecution: {actors: [{name: default, mode: mcp_server, phases: [{name: phase-1, state: {a: 1}}]}], x-keep: 1}",
    ),
    (
        "N-007",
        "H\nexecution: {mode: mcp_client, phases: [{state: {}}, {mode: mcp_client}]}",
        "H\nexecution: {actors: [{name: default, mode: mcp_client, phases: [{name: phase-1, state: {}}, {name: phase-2, mode: mcp_client}]}]}",
    ),
    (
        "N-007",
        "H\nexecution: {phases: [{mode: a2a_server, state: {}}]}",
        "H\nexecution: {actors: [{name: default, mode: a2a_server, phases: [{name: phase-1, mode: a2a_server, state: {}}]}]}",
    ),
    (
        "N-007",
        "H\nexecution: {mode: mcp_client, phases: [{mode: a2a_server, state: {}}]}",
        "H\nexecution: {actors: [{name: default, mode: mcp_client, phases: [{name: phase-1, mode: a2a_server, state: {}}]}]}",
    ),
    (
        "N-008",
        "H\nclassification: {tags: [Prompt_Injection, A B, é-É]}\nE",
        "H\nclassification: {tags: [prompt-injection, a-b, é-é]}\nE",
    ),
];

pub(super) fn cases() -> impl Iterator<Item = Step> {
    STEPS.iter().map(|(code, before, after)| Step {
        code,
        before,
        after,
    })
}

fn fields(short: &str) -> String {
    let execution =
        "execution: {actors: [{name: one, mode: mcp_server, phases: [{name: first, state: {}}]}]}";
    let lines: Vec<&str> = short
        .lines()
        .map(|line| match line {
            "E" => execution,
            "H" => "{name: x, version: 1, status: draft}",
            "C" => "correlation: {logic: any}",
            line => line,
        })
        .collect();
    let text = lines.join("\n");
    document(&text.replace(
        "{name: x, version: 1, status: draft}",
        "name: x\nversion: 1\nstatus: draft",
    ))
}

#[test]
fn each_step_changes_what_it_should_and_then_nothing() {
    for Step {
        code,
        before,
        after,
    } in cases()
    {
        let before = parse(&fields(before)).unwrap_or_else(|e| panic!("{code} {before}: {e:?}"));
        let after = parse(&fields(after)).unwrap_or_else(|e| panic!("{code} {after}: {e:?}"));
        assert_eq!(to_value(&normalize(before)), to_value(&after), "{code}");
        assert_eq!(
            to_value(&normalize(after.clone())),
            to_value(&after),
            "{code}, again"
        );
    }
}

#[test]
fn documents_of_several_forms_keep_what_does_not_count() {
    // Invalid (V-030), but normalization must not lose anything either.
    let text = document(
        "execution: {mode: mcp_server, state: {a: 1}, actors: [{name: a, mode: mcp_server, phases: []}]}",
    );
    let value = to_value(&normalize(parse(&text).unwrap()));
    assert_eq!(value["attack"]["execution"]["state"]["a"], 1);
    assert_eq!(value["attack"]["execution"]["mode"], "mcp_server");
    let text = document("execution: {mode: mcp_server, state: {a: 1}, phases: [{state: {}}]}");
    let value = to_value(&normalize(parse(&text).unwrap()));
    assert_eq!(value["attack"]["execution"]["state"]["a"], 1);
    let value = to_value(&normalize(parse(&attack("")).unwrap()));
    assert!(value["attack"]["execution"].get("mode").is_none());
}
