//! Rules that know the protocol bindings: operations, events, dispatch lists, modes, protocols.

use super::expressions::WHEN_LISTS;
use super::{Case, actors, attack, case, execution, indent, pattern, phase, several, state};

const AT: &str = "attack.indicators[0]";

pub(super) fn cases() -> Vec<Case> {
    [
        state_enums(),
        operations(),
        dispatch_lists(),
        names(),
        own_traffic(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn state_enums() -> Vec<Case> {
    let mut cases = Vec::new();
    for good in ["accept", "decline", "cancel", "\"{{request.a}}\""] {
        cases.push(case(
            "V-005",
            "elicitation action",
            state(&format!("elicitation_responses: [{{action: {good}}}]")),
            state("elicitation_responses: [{when: {a: 1}, action: accept}, {action: »agree}]"),
            "attack.execution.state.elicitation_responses[1].action",
        ));
    }
    for good in ["form", "url", "\"{{request.a}}\""] {
        cases.push(case(
            "V-005",
            "elicitation mode",
            state(&format!("elicitations: [{{message: x, mode: {good}}}]")),
            state("elicitations: [{message: x, mode: »link}]"),
            "attack.execution.state.elicitations[0].mode",
        ));
    }
    cases
}

fn operations() -> Vec<Case> {
    let surface = |protocol: &str, surface: &str| {
        let mode = if protocol == "ag_ui" {
            "ag_ui_client".to_owned()
        } else {
            format!("{protocol}_server")
        };
        pattern(&format!("protocol: {protocol}\nsurface: {surface}")).replace("mcp_server", &mode)
    };
    let event = |mode: &str, event: &str| {
        phase(&format!("trigger: {{event: {event}}}")).replace("mcp_server", mode)
    };
    let mut cases = vec![case(
        "V-018",
        "the protocol comes from the mode",
        pattern("surface: tools/call"),
        pattern("surface: »message/send"),
        format!("{AT}.surface"),
    )];
    for (protocol, good, bad) in [
        ("mcp", "notifications/tasks/status", "tools/calls"),
        ("a2a", "task/status", "tools/call"),
        ("ag_ui", "reasoning_start", "message/send"),
        ("ag_ui", "thinking_x", "reason_x"),
        ("voice", "anything", ""),
    ] {
        if bad.is_empty() {
            cases.push(several(
                "V-018",
                "unknown protocols have no known operations",
                pattern("surface: ping"),
                surface("mcp", "»pong"),
                &[("V-018", "attack.indicators[0].surface")],
            ));
        } else {
            cases.push(case(
                "V-018",
                protocol,
                surface(protocol, good),
                surface(protocol, &format!("»{bad}")),
                format!("{AT}.surface"),
            ));
        }
    }
    for (mode, good, bad) in [
        (
            "mcp_server",
            "notifications/initialized",
            "notifications/tasks/status",
        ),
        (
            "mcp_client",
            "notifications/tasks/status",
            "notifications/initialized",
        ),
        ("a2a_server", "message/send", "task/status"),
        ("a2a_client", "task/artifact", "tools/call"),
        ("ag_ui_client", "thinking_end", "tools/call"),
    ] {
        cases.push(case(
            "V-029",
            mode,
            event(mode, good),
            event(mode, &format!("»{bad}")),
            "attack.execution.phases[0].trigger.event",
        ));
    }
    cases.push(case(
        "V-029",
        "the mode of the phase counts before that of the actor",
        phase("mode: mcp_client\ntrigger: {event: notifications/tasks/status}"),
        phase("mode: mcp_client\ntrigger: {event: »notifications/initialized}"),
        "attack.execution.phases[0].trigger.event",
    ));
    cases.push(case(
        "V-029",
        "the mode of the first phase counts where there is no other",
        execution("phases: [{mode: mcp_client, state: {}, trigger: {event: ping}}]"),
        execution(
            "phases: [{mode: mcp_client, state: {}, trigger: {event: »notifications/initialized}}]",
        ),
        "attack.execution.phases[0].trigger.event",
    ));
    cases
}

fn dispatch_lists() -> Vec<Case> {
    let mut cases = Vec::new();
    for (list, path) in WHEN_LISTS {
        let synthesize = state(&list.replace("ENTRY", "{»synthesize: {prompt: x}}"));
        if path.starts_with("elicitations") {
            continue;
        }
        let list_path = format!(
            "attack.execution.state.{}",
            path.strip_suffix("[0]").unwrap()
        );
        let key = list_path.rsplit('.').next().unwrap();
        let two = |second: &str| {
            state(&list.replace(
                "ENTRY",
                &format!("{{content: x}}, {{{second}content: y}}, {{when: {{b: 1}}, content: z}}"),
            ))
        };
        for fallback in ["", "when: null, "] {
            cases.push(case(
                "V-033",
                list,
                two("when: {a: 1}, "),
                two(fallback).replace(key, &format!("»{key}")),
                list_path.clone(),
            ));
        }
        cases.push(case(
            "W-006",
            list,
            state(&list.replace("ENTRY", "{content: x}")),
            synthesize,
            format!("attack.execution.state.{path}.synthesize"),
        ));
    }
    cases.push(case(
        "W-006",
        "run_agent_input",
        state("run_agent_input: {threadId: a}"),
        state("run_agent_input: {»synthesize: {prompt: x}}"),
        "attack.execution.state.run_agent_input.synthesize",
    ));
    cases.push(case(
        "V-033",
        "two elicitations without `when` are both sent",
        state("elicitations: [{message: x}, {message: y}]"),
        state("»tool_responses: [{content: x}, {content: y}]"),
        "attack.execution.state.tool_responses",
    ));
    cases
}

fn names() -> Vec<Case> {
    let one = "- {name: a, mode: MODE, phases: [{state: {}}]}";
    let mixed = "- {name: a, mode: mcp_server, phases: [{state: {}}]}\n- {name: b, mode: a2a_client, phases: [{state: {}}]}";
    let sees = |protocol: &str| {
        actors(mixed)
            + &indent(
                &format!(
                    "indicators: [{{target: a, protocol: {protocol}, pattern: {{contains: x}}}}]"
                ),
                2,
            )
    };
    vec![
        case(
            "W-002",
            "execution.mode",
            attack(""),
            execution("mode: »voice_server\nstate: {}"),
            "attack.execution.mode",
        ),
        case(
            "W-002",
            "actor.mode",
            actors(&one.replace("MODE", "a2a_client")),
            actors(&one.replace("MODE", "»a2a_peer_client")),
            "attack.execution.actors[0].mode",
        ),
        case(
            "W-002",
            "phase.mode where there is no other",
            execution("phases: [{mode: ag_ui_client, state: {}}]"),
            execution("phases: [{mode: »ag_ui_server, state: {}}]"),
            "attack.execution.phases[0].mode",
        ),
        case(
            "W-002",
            "phase.mode beside the actor's own is told once",
            execution("mode: mcp_server\nphases: [{mode: mcp_server, state: {}}]"),
            execution("mode: »voice_server\nphases: [{mode: voice_server, state: {}}]"),
            "attack.execution.mode",
        ),
        several(
            "W-003",
            "unknown protocol",
            pattern("protocol: mcp"),
            pattern("protocol: »voice").replace('»', "»»"),
            &[
                ("W-003", "attack.indicators[0].protocol"),
                ("W-005", "attack.indicators[0].protocol"),
            ],
        ),
        case(
            "W-005",
            "nobody speaks it",
            pattern("protocol: mcp"),
            pattern("protocol: »a2a"),
            format!("{AT}.protocol"),
        ),
        case(
            "W-005",
            "none of several actors speaks it",
            sees("a2a"),
            sees("»ag_ui"),
            format!("{AT}.protocol"),
        ),
    ]
}

fn own_traffic() -> Vec<Case> {
    let single = |mode: &str, fields: &str| pattern(fields).replace("mcp_server", mode);
    let both = |fields: &str| {
        actors(
            "- {name: server, mode: mcp_server, phases: [{state: {}}]}\n- {name: client, mode: mcp_client, phases: [{state: {}}]}\n- {name: other, mode: a2a_server, phases: [{state: {}}]}",
        ) + &indent(
            &format!(
                "indicators: [{{target: a, protocol: mcp, pattern: {{contains: x}}, {fields}}}]"
            ),
            2,
        )
    };
    let at = format!("{AT}.direction");
    vec![
        case(
            "PH-202",
            "a server's response",
            single("mcp_server", "direction: request"),
            single("mcp_server", "direction: »response"),
            &at,
        ),
        case(
            "PH-202",
            "a client's request",
            single("mcp_client", "direction: response"),
            single("mcp_client", "direction: »request"),
            &at,
        ),
        case(
            "PH-202",
            "what the tier says it is",
            single("mcp_server", "direction: response\ntier: ingested"),
            single("mcp_server", "direction: »response\ntier: local_action"),
            &at,
        ),
        case(
            "PH-202",
            "requests that the server of MCP sends",
            single(
                "mcp_server",
                "direction: response\nsurface: sampling/createMessage",
            ),
            single("mcp_server", "direction: »response\nsurface: tools/call"),
            &at,
        ),
        case(
            "PH-202",
            "both sides are ours",
            both("direction: request"),
            both("direction: »request, actor: client"),
            &at,
        ),
        case(
            "PH-202",
            "both sides are ours, seen from the other",
            both("direction: response"),
            both("direction: »response, actor: server"),
            &at,
        ),
        case(
            "PH-202",
            "the other side of one actor",
            both("direction: request, actor: server"),
            both("direction: »response, actor: server"),
            &at,
        ),
        case(
            "PH-202",
            "an actor of another protocol says nothing",
            both("direction: response, actor: other"),
            both("direction: »response, actor: server"),
            &at,
        ),
    ]
}
