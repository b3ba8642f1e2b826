//! The document and the attack envelope.

use super::{Case, attack, case, document, pattern, several};

const MINIMAL: &str = "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {}}\n";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case(
            "V-001",
            "a version that is not supported",
            MINIMAL,
            "oatf: »\"0.2\"\nattack: {execution: {mode: mcp_server, state: {}}}\n",
            "oatf",
        ),
        case(
            "V-001",
            "no version",
            MINIMAL,
            "»attack: {execution: {mode: mcp_server, state: {}}}\n",
            "oatf",
        ),
        case(
            "V-001",
            "a version without quotes is a number",
            MINIMAL,
            "oatf: »0.1\nattack: {execution: {mode: mcp_server, state: {}}}\n",
            "oatf",
        ),
        several(
            "V-002",
            "`oatf` after `attack`",
            MINIMAL,
            "attack: {execution: {mode: mcp_server, state: {}}}\n»oatf: \"0.1\"\n",
            &[("W-001", "oatf")],
        ),
        case(
            "W-001",
            "`oatf` after `$schema`",
            "oatf: \"0.1\"\n$schema: x\nattack: {execution: {mode: mcp_server, state: {}}}\n",
            "$schema: x\n»oatf: \"0.1\"\nattack: {execution: {mode: mcp_server, state: {}}}\n",
            "oatf",
        ),
        case("V-003", "no attack", MINIMAL, "»oatf: \"0.1\"\n", "attack"),
        case(
            "V-003",
            "an empty attack",
            MINIMAL,
            "oatf: \"0.1\"\n»attack:\n",
            "attack",
        ),
        case(
            "V-003",
            "several attacks",
            MINIMAL,
            "oatf: \"0.1\"\n»attack:\n  - execution: {mode: mcp_server, state: {}}\n",
            "attack",
        ),
        case(
            "V-004",
            "no execution",
            MINIMAL,
            "oatf: \"0.1\"\n»attack:\n  name: x\n",
            "attack.execution",
        ),
        case(
            "V-004",
            "an empty execution",
            MINIMAL,
            "oatf: \"0.1\"\nattack:\n  »execution:\n",
            "attack.execution",
        ),
        several(
            "V-020",
            "anchors and aliases",
            attack("name: x\nauthor: x"),
            attack("name: »&n x\nauthor: »*n"),
            &[("V-020", ""), ("V-020", "")],
        ),
        several(
            "V-020",
            "merge keys",
            attack("classification: {tags: []}"),
            attack("classification: {»<<: {tags: []}}"),
            &[("V-020", "")],
        ),
        case(
            "V-020",
            "custom tags",
            attack("name: !!str x"),
            attack("name: »!mine x"),
            "",
        ),
        case(
            "V-023",
            "an id that ends in two digits",
            attack("id: ACME-001"),
            attack("id: »ACME-01"),
            "attack.id",
        ),
    ];
    for (member, bad, path) in [
        ("status: draft", "status: »done", "attack.status"),
        ("severity: high", "severity: »huge", "attack.severity"),
        (
            "severity: {level: low}",
            "severity: {level: »huge}",
            "attack.severity.level",
        ),
        (
            "impact: [data_tampering]",
            "impact: [»harm]",
            "attack.impact[0]",
        ),
        (
            "classification: {category: oversight_bypass}",
            "classification: {category: »other}",
            "attack.classification.category",
        ),
        (
            "classification: {mappings: [{framework: cwe, id: x, relationship: related}]}",
            "classification: {mappings: [{framework: cwe, id: x, relationship: »cousin}]}",
            "attack.classification.mappings[0].relationship",
        ),
    ] {
        cases.push(case("V-005", bad, attack(member), attack(bad), path));
    }
    cases.push(case(
        "V-005",
        "correlation logic",
        pattern("").replace(
            "  indicators:",
            "  correlation: {logic: all}\n  indicators:",
        ),
        pattern("").replace(
            "  indicators:",
            "  correlation: {logic: »most}\n  indicators:",
        ),
        "attack.correlation.logic",
    ));
    // What `^[A-Z][A-Z0-9-]*-[0-9]{3,}$` accepts and refuses.
    for id in ["A-000", "A--001", "A9-B-0001", "ACME-X-123456"] {
        for bad in [
            "-001", "9A-001", "a-001", "Ac-001", "A_B-001", "A-001x", "A001", "A-00é", "É-001",
        ] {
            cases.push(case(
                "V-023",
                bad,
                attack(&format!("id: {id}")),
                attack(&format!("id: »\"{bad}\"")),
                "attack.id",
            ));
        }
    }
    for (good, bad) in [("0", "-1"), ("100", "101"), ("50", "9223372036854775807")] {
        cases.push(case(
            "V-017",
            bad,
            attack(&format!("severity: {{level: low, confidence: {good}}}")),
            attack(&format!("severity: {{level: low, confidence: »{bad}}}")),
            "attack.severity.confidence",
        ));
    }
    for (good, bad) in [("1", "0"), ("9223372036854775807", "-1")] {
        cases.push(case(
            "V-035",
            bad,
            attack(&format!("version: {good}")),
            attack(&format!("version: »{bad}")),
            "attack.version",
        ));
    }
    cases.push(case(
        "V-045",
        "the same impact twice",
        attack("impact: [data_tampering, data_exfiltration]"),
        attack("»impact: [data_tampering, data_exfiltration, data_tampering]"),
        "attack.impact",
    ));
    for (good, bad) in [("30s", "soon"), ("PT1M30S", "P1W"), ("2d", "1.5h")] {
        cases.push(case(
            "V-046",
            bad,
            attack(&format!("grace_period: {good}")),
            attack(&format!("grace_period: »{bad}")),
            "attack.grace_period",
        ));
    }
    cases.push(case(
        "V-047",
        "correlation of nothing",
        pattern("").replace(
            "  indicators:",
            "  correlation: {logic: any}\n  indicators:",
        ),
        attack("»correlation: {logic: any}"),
        "attack.correlation",
    ));
    cases.push(case(
        "V-047",
        "not even the default is correlated with nothing",
        document("execution: {mode: mcp_server, state: {}}"),
        attack("»correlation: {}"),
        "attack.correlation",
    ));
    cases
}
