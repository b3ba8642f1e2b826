//! Whether the indicators of a document can match at all: a typo in a surface, a state or a target makes an attack that
//! nobody can fail, and a green that means nothing.

mod roots;

use proofhouse_detect::EXTENSION_FIELD;
use proofhouse_oatf::{
    Actor, Condition, Diagnostic, DiagnosticSeverity, Document, Indicator, Mode, Phase, Protocol,
    parse,
};
use proofhouse_source::{PathSegment, did_you_mean};
use serde_json::Value;

use crate::canaries::{asked_by, is_slip, listed, unplanted};

/// What is wrong with an indicator or a state.
struct Unmatchable {
    diagnostic: Diagnostic,
    /// The indicator looks where no message of its protocol has anything, and there is no plausible slip.
    blind: bool,
}

/// Why the indicators of a document can never match, with places: unknown surfaces, unknown keys of states, and targets
/// that no message has. Only what the bound protocols define is known; extensions (`x-`) are never refused. Where others
/// of a document can match, one that looks elsewhere on purpose is left: see [`blind`].
#[must_use]
pub fn refusals(document: &Document) -> Vec<Diagnostic> {
    let found = indicators(document);
    let all_blind = found.len() == document.attack.indicators().len()
        && found.iter().all(Option::is_some)
        && !found.is_empty();
    let indicators = found
        .into_iter()
        .flatten()
        .filter(|one| all_blind || !one.blind)
        .map(|one| one.diagnostic);
    let mut refusals = states(document);
    refusals.extend(indicators);
    refusals.sort_by_key(|one| one.span.map(|span| (span.line, span.column)));
    refusals
}

/// The ids of indicators that can never match.
#[must_use]
pub fn blind(document: &Document) -> Vec<String> {
    let indicators = document.attack.indicators().iter();
    let found = self::indicators(document);
    indicators
        .zip(found)
        .filter(|(indicator, found)| {
            found.is_some()
                || waits_in_vain(document, indicator)
                || names_no_canary(document, indicator)
        })
        .map(|(indicator, _)| indicator.id.clone().unwrap_or_default())
        .collect()
}

/// Whether an indicator waits for nothing but canaries that nobody plants. Those of a twin are planted by its attack.
fn waits_in_vain(document: &Document, indicator: &Indicator) -> bool {
    let canaries = asked_by(indicator);
    let ours = document.attack.extensions.get(EXTENSION_FIELD);
    let is_twin = ours.is_some_and(|ours| ours.get("twin_of").is_some());
    !is_twin && !canaries.is_empty() && unplanted(document, &canaries).len() == canaries.len()
}

/// Whether an indicator looks for a text that begins like a canary of the document and goes on like none: a slip, which
/// nobody can give away.
fn names_no_canary(document: &Document, indicator: &Indicator) -> bool {
    let Some(Condition::Operators(operators)) = indicator
        .pattern
        .as_ref()
        .and_then(|pattern| pattern.condition.as_ref())
    else {
        return false;
    };
    let texts = [
        &operators.contains,
        &operators.starts_with,
        &operators.ends_with,
    ];
    let Ok(canaries) = listed(document) else {
        return false;
    };
    texts.into_iter().flatten().any(|text| {
        canaries.iter().any(|canary| is_slip(text, canary))
            && unplanted(document, std::slice::from_ref(text)).len() == 1
    })
}

/// What is wrong with each indicator, in their order.
fn indicators(document: &Document) -> Vec<Option<Unmatchable>> {
    let all = document.attack.indicators().iter().enumerate();
    all.map(|(index, indicator)| one(document, index, indicator))
        .collect()
}

fn one(document: &Document, index: usize, indicator: &Indicator) -> Option<Unmatchable> {
    let protocol = indicator.protocol.as_ref()?;
    let actors = document.attack.execution.actors();
    // Whoever brings a mode of their own may bring messages of their own.
    let is_extended = |actor: &Actor| !actor.mode.is_known() && actor.mode.protocol() == *protocol;
    if actors.iter().any(is_extended) {
        return None;
    }
    let surface = indicator.surface.as_ref().map(|surface| surface.as_str());
    if let Some(surface) = surface {
        let known = roots::surfaces(protocol)?;
        let is_known = known.contains(&surface)
            || surface.starts_with("x-")
            || roots::is_of_family(protocol, surface);
        if !is_known {
            let near = did_you_mean(surface, known);
            return Some(Unmatchable {
                blind: false,
                diagnostic: Diagnostic {
                    severity: DiagnosticSeverity::Error,
                    code: "XP-003",
                    path: Some(format!("attack.indicators[{index}].surface")),
                    span: document.indicator_field_span(index, &["surface"]),
                    message: format!(
                        "`{}` is not an operation of {protocol}, so the indicator can never match",
                        short(surface)
                    ),
                    help: Some(help(near)),
                },
            });
        }
    }
    target(document, index, indicator, protocol, surface)
}

/// What is wrong with where an indicator looks.
fn target(
    document: &Document,
    index: usize,
    indicator: &Indicator,
    protocol: &Protocol,
    surface: Option<&str>,
) -> Option<Unmatchable> {
    let (own, place): (_, &[&str]) = match (&indicator.pattern, &indicator.semantic) {
        (Some(pattern), _) if wants_nothing(pattern.condition.as_ref()) => return None,
        (Some(pattern), _) => (pattern.target.as_deref(), &["pattern", "target"]),
        (None, Some(semantic)) => (semantic.target.as_deref(), &["semantic", "target"]),
        // An expression says by itself where it looks.
        (None, None) => return None,
    };
    let path = own.unwrap_or(&indicator.target);
    let root = path.split(['.', '[']).next().unwrap_or_default();
    if root.is_empty() || root == "*" || root.starts_with("x-") || root.starts_with('_') {
        return None;
    }
    let known = roots::roots(protocol, surface, indicator.direction)?;
    if known.contains(&root) {
        return None;
    }
    let near = did_you_mean(root, known);
    // Normalization fills in the target of the method.
    let place = if own.is_some_and(|own| own != indicator.target) {
        place
    } else {
        &["target"]
    };
    let of = surface.unwrap_or(protocol.as_str());
    Some(Unmatchable {
        blind: near.is_none(),
        diagnostic: Diagnostic {
            severity: DiagnosticSeverity::Error,
            code: "XP-005",
            path: Some(format!("attack.indicators[{index}].{}", place.join("."))),
            span: document.indicator_field_span(index, place),
            message: format!(
                "no message of {of} has `{}`, so the indicator can never match",
                short(root)
            ),
            help: Some(help(near)),
        },
    })
}

/// Whether a condition asks for a field that is not there, which is true of one that cannot be.
fn wants_nothing(condition: Option<&Condition>) -> bool {
    match condition {
        Some(Condition::Operators(operators)) => {
            operators.only_exists() && operators.exists == Some(false)
        }
        Some(Condition::Equals(_)) | None => false,
    }
}

fn help(near: Option<&str>) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`? Run it anyway with --allow-unknown"),
        None => "--allow-unknown runs it all the same".to_owned(),
    }
}

/// The beginning of a word from outside.
fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The keys of states that nobody reads.
fn states(document: &Document) -> Vec<Diagnostic> {
    // As it was written, so that places are known; what was made by a program has none.
    let written = document.source_text().and_then(|text| parse(text).ok());
    let document = written.as_ref().unwrap_or(document);
    let execution = &document.attack.execution;
    let mut found = Vec::new();
    let top = [PathSegment::Key("execution")];
    if let (Some(mode), Some(state)) = (&execution.mode, &execution.state) {
        keys(document, mode, state, &top, &mut found);
    }
    let phases = execution.phases.as_deref().unwrap_or_default();
    of_phases(document, execution.mode.as_ref(), phases, &top, &mut found);
    for (index, actor) in execution.actors().iter().enumerate() {
        let place = [
            PathSegment::Key("execution"),
            PathSegment::Key("actors"),
            PathSegment::Index(index),
        ];
        of_phases(
            document,
            Some(&actor.mode),
            &actor.phases,
            &place,
            &mut found,
        );
    }
    found
}

fn of_phases(
    document: &Document,
    mode: Option<&Mode>,
    phases: &[Phase],
    place: &[PathSegment<'_>],
    found: &mut Vec<Diagnostic>,
) {
    for (index, phase) in phases.iter().enumerate() {
        if let (Some(mode), Some(state)) = (phase.mode.as_ref().or(mode), &phase.state) {
            let mut place = place.to_vec();
            place.extend([PathSegment::Key("phases"), PathSegment::Index(index)]);
            keys(document, mode, state, &place, found);
        }
    }
}

fn keys(
    document: &Document,
    mode: &Mode,
    state: &Value,
    place: &[PathSegment<'_>],
    found: &mut Vec<Diagnostic>,
) {
    let (Some(known), Some(state)) = (roots::state_keys(mode), state.as_object()) else {
        return;
    };
    for key in state.keys() {
        if known.contains(&key.as_str()) || key.starts_with("x-") {
            continue;
        }
        let mut place = place.to_vec();
        place.extend([PathSegment::Key("state"), PathSegment::Key(key)]);
        let near = did_you_mean(key, known.iter().copied());
        found.push(Diagnostic {
            severity: DiagnosticSeverity::Error,
            code: "XP-004",
            path: Some(written(&place)),
            span: document.attack_path_span(&place),
            message: format!(
                "the state of {mode} has no `{}`, so nothing is played of it",
                short(key)
            ),
            help: Some(help(near)),
        });
    }
}

/// A path for people.
fn written(place: &[PathSegment<'_>]) -> String {
    let mut path = "attack".to_owned();
    for segment in place {
        match segment {
            PathSegment::Key(key) => path.push_str(&format!(".{}", short(key))),
            PathSegment::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_oatf::load;

    fn document(state: &str, indicators: &str) -> Document {
        let text = format!(
            "oatf: \"0.1\"\nattack:\n  execution:\n    mode: mcp_server\n    state: {state}\n  indicators:\n{indicators}"
        );
        load(&text).unwrap().document
    }

    fn indicator(surface: &str, target: &str) -> String {
        format!(
            "    - {{surface: {surface}, direction: request, target: {target}, pattern: {{contains: x}}}}\n"
        )
    }

    fn codes(document: &Document) -> Vec<(&'static str, usize)> {
        let found = refusals(document).into_iter();
        found
            .map(|one| (one.code, one.span.map_or(0, |span| span.line)))
            .collect()
    }

    #[test]
    fn slips_are_refused_with_their_place() {
        let fine = indicator("tools/call", "arguments.note");
        for (state, indicators, expected) in [
            ("{tools: []}", fine.clone(), &[][..]),
            ("{tool: []}", fine.clone(), &[("XP-004", 5)]),
            ("{x-own: []}", fine.clone(), &[]),
            (
                "{tools: []}",
                indicator("tools/cal", "arguments"),
                &[("XP-003", 7)],
            ),
            (
                "{tools: []}",
                indicator("tools/call", "argumnts.note"),
                &[("XP-005", 7)],
            ),
            ("{tools: []}", indicator("tools/call", "x-mine"), &[]),
            ("{tools: []}", indicator("tools/call", "\"\""), &[]),
            (
                "{tools: []}",
                indicator("tools/call", "arguments.anything.at_all"),
                &[],
            ),
            // The others of the document can match, so it is not refused for one that cannot.
            (
                "{tools: []}",
                fine.clone() + &indicator("tools/call", "response.content"),
                &[],
            ),
            (
                "{tools: []}",
                fine + &indicator("tools/call", "argument.x"),
                &[("XP-005", 8)],
            ),
            (
                "{tools: []}",
                indicator("tools/call", "response.content"),
                &[("XP-005", 7)],
            ),
        ] {
            assert_eq!(
                codes(&document(state, &indicators)),
                expected,
                "{state} {indicators}"
            );
        }
    }

    #[test]
    fn a_slip_in_the_state_of_a_frontend_is_refused() {
        let text = "oatf: \"0.1\"\nattack:\n  execution:\n    mode: ag_ui_client\n    state: {run_agent_inputt: {messages: []}}\n  \
                    indicators:\n    - {surface: tool_call_args, direction: response, target: delta, pattern: {contains: x}}\n";
        let document = load(text).unwrap().document;
        assert_eq!(codes(&document), [("XP-004", 5)]);
        let help = refusals(&document)[0].help.clone().unwrap();
        assert!(help.contains("`run_agent_input`"), "{help}");
    }

    #[test]
    fn who_waits_for_a_canary_that_nobody_plants_is_known() {
        let with = |canary: &str| {
            let indicator = format!(
                "    - {{surface: tools/call, direction: request, target: arguments, pattern: {{contains: x}}, \
                 x-proofhouse: {{canary: {canary}}}}}\n"
            );
            document(
                "{tools: [{name: read, description: The key is CANARY-KEY-93b4aa10.}]}",
                &indicator,
            )
        };
        assert!(blind(&with("CANARY-KEY-93b4aa10")).is_empty());
        assert_eq!(blind(&with("CANARY-LOST-00000000")).len(), 1);
        assert!(blind(&with("[CANARY-LOST-00000000, CANARY-KEY-93b4aa10]")).is_empty());
    }

    #[test]
    fn who_looks_elsewhere_is_known() {
        let both = indicator("tools/call", "arguments.note")
            + &indicator("tools/call", "response.content");
        assert_eq!(blind(&document("{tools: []}", &both)).len(), 1);
        assert!(blind(&document("{tools: []}", &indicator("tools/call", "name"))).is_empty());
        let absent = "    - {target: response, pattern: {exists: false}}\n";
        assert!(blind(&document("{tools: []}", absent)).is_empty());
    }
}
