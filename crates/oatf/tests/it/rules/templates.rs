//! `{{…}}` templates in protocol state and entry actions.

use super::{Case, actors, case, phase, state};

pub(super) fn cases() -> Vec<Case> {
    let extractors =
        "extractors: [{name: known, source: request, type: json_path, selector: $.a}]\n";
    let enter = |action: &str| phase(&format!("{extractors}on_enter: [{action}]"));
    let mut cases = Vec::new();
    // The text around a template, and the path of the string that holds it.
    for (around, path) in [
        (
            "{send: {method: x, params: {a: [\"T\"]}}}",
            "send.params.a[0]",
        ),
        ("{log: {message: \"T\"}}", "log.message"),
        (
            "{send_push_notification: {url: \"T\"}}",
            "send_push_notification.url",
        ),
        ("{announce: \"T\"}", "announce"),
    ] {
        let path = format!("attack.execution.phases[0].on_enter[0].{path}");
        let text = |template: &str| enter(&around.replace('T', template));
        cases.extend(at(&text, &path));
    }
    let in_phase = |template: &str| {
        phase(extractors).replace(
            "state: {}",
            &format!("state: {{a: {{b: [1, \"{template}\"]}}}}"),
        )
    };
    cases.extend(at(&in_phase, "attack.execution.phases[0].state.a.b[1]"));
    let in_state = |template: &str| {
        state(&format!("a: \"{template}\""))
            .replace("{{known}}", "")
            .replace("{{default.known}}", "")
    };
    cases.extend(at(&in_state, "attack.execution.state.a"));
    cases.extend(across_actors());
    cases
}

/// What may go wrong in one string, whatever surrounds it.
fn at(text: &dyn Fn(&str) -> String, path: &str) -> Vec<Case> {
    vec![
        case(
            "V-016",
            path,
            text("é {{known}} \\\\{{ {"),
            text("é »{{known"),
            path,
        ),
        case(
            "V-016",
            path,
            text("{{known}}{{request.a}}"),
            text("{{request.b}} »{{"),
            path,
        ),
        case(
            "V-032",
            path,
            text("{{default.known}}"),
            text("é »{{other.known}}"),
            path,
        ),
        case(
            "V-032",
            path,
            text("{{response.x.y}} {{request.x.y}}"),
            text("»{{responses.x}}"),
            path,
        ),
        case(
            "W-004",
            path,
            text("{{known}}"),
            text("x »{{unknown}} x"),
            path,
        ),
        case(
            "W-004",
            path,
            text("{{known}}"),
            text("x »{{default.unknown}}"),
            path,
        ),
        case(
            "W-004",
            path,
            text("{{request.a}}"),
            text("»{{request}}"),
            path,
        ),
    ]
}

fn across_actors() -> Vec<Case> {
    let two = |template: &str| {
        actors(&format!(
            "- name: one\n  mode: mcp_server\n  phases:\n    - state: {{a: \"{template}\"}}\n- name: two\n  mode: mcp_client\n  phases:\n    - state: {{}}\n      trigger: {{after: 1s}}\n    - extractors: [{{name: late, source: request, type: json_path, selector: $.a}}]"
        ))
    };
    let path = "attack.execution.actors[0].phases[0].state.a";
    vec![
        case(
            "V-032",
            "another actor",
            two("{{two.late}}"),
            two("»{{three.late}}"),
            path,
        ),
        case(
            "V-032",
            "there is no default actor",
            two("{{two.late}}"),
            two("»{{default.late}}"),
            path,
        ),
        case(
            "W-004",
            "another actor's extractor",
            two("{{two.late}}"),
            two("»{{two.early}}"),
            path,
        ),
        case(
            "W-004",
            "another actor's extractor without its name",
            two("{{two.late}}"),
            two("»{{late}}"),
            path,
        ),
        case(
            "W-004",
            "an extractor of this actor, not of that",
            two("{{two.late}}"),
            two("»{{one.late}}"),
            path,
        ),
    ]
}
