//! Our own checks: what the specification implies but gives no code, and what is doubtful.

use std::collections::HashMap;

use proofhouse_source::DocPath;
use serde_json::Value;

use super::expressions::state_operators;
use super::view::{ValidationPass, attack_path};
use crate::model::{Condition, Direction, MatchCondition, Protocol, Tier};
use crate::parse::state_errors;
use crate::registry::MCP_SERVER_INITIATED;

pub(super) fn state_is_mapping(check: &mut ValidationPass<'_>) {
    // What is read of a state was read when a document was parsed; here for those that never were.
    let is_built = check.document.source.is_none();
    check.each_phase(|check, actor, view| {
        let Some(state) = view.state else { return };
        if !state.is_object() {
            check.report(&view.state_path(), "`state` must be a mapping");
        } else if is_built {
            let mode = view.phase.and_then(|phase| phase.mode.as_ref());
            for error in state_errors(state, mode.or(actor.mode)) {
                if error.code == "PH-006" {
                    check.report_too_large(&view.state_path(), error.message);
                    continue;
                }
                let place = error.path.unwrap_or_default();
                let message = format!("`{place}` cannot be read: {}", error.message);
                check.report(&view.state_path(), message);
            }
        }
    });
}

pub(super) fn count_positive(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let trigger = view.phase.and_then(|phase| phase.trigger.as_ref());
        if let Some(count) = trigger
            .and_then(|trigger| trigger.count)
            .filter(|count| *count < 1)
        {
            check.report(
                &view.path.key("trigger").key("count"),
                format!("`count` is {count}; it starts at 1"),
            );
        }
    });
}

pub(super) fn not_empty(check: &mut ValidationPass<'_>) {
    if check
        .document
        .attack
        .impact
        .as_ref()
        .is_some_and(Vec::is_empty)
    {
        check.report_key(&attack_path().key("impact"), "`impact` is empty");
    }
    check.each_phase(|check, _, view| {
        let trigger = view.phase.and_then(|phase| phase.trigger.as_ref());
        let predicate = trigger.and_then(|trigger| trigger.r#match.as_ref());
        for (field, entry) in predicate.into_iter().flatten() {
            if has_empty_options(entry) {
                let path = view
                    .path
                    .key("trigger")
                    .key("match")
                    .key(field)
                    .key("any_of");
                check.report_key(&path, "`any_of` is empty and matches nothing");
            }
        }
        for (path, when) in view.when_predicates() {
            for (field, condition) in when {
                let options = state_operators(condition).and_then(|map| map.get("any_of"));
                if options.and_then(Value::as_array).is_some_and(Vec::is_empty) {
                    let path = path.key(field).key("any_of");
                    check.report_key(&path, "`any_of` is empty and matches nothing");
                }
            }
        }
    });
    check.each_indicator(|check, view| {
        if let Some(pattern) = &view.indicator.pattern
            && pattern.condition.as_ref().is_some_and(has_empty_options)
        {
            let path = view.path.key("pattern");
            let path = if pattern.shorthand {
                path
            } else {
                path.key("condition")
            };
            check.report_key(&path.key("any_of"), "`any_of` is empty and matches nothing");
        }
        let examples = view
            .indicator
            .semantic
            .as_ref()
            .and_then(|s| s.examples.as_ref());
        let Some(examples) = examples else { return };
        let path = view.path.key("semantic").key("examples");
        if examples.positive.is_none() && examples.negative.is_none() {
            check.report_key(&path, "`examples` needs `positive` or `negative`");
        }
        for (key, texts) in [
            ("positive", &examples.positive),
            ("negative", &examples.negative),
        ] {
            if texts.as_ref().is_some_and(Vec::is_empty) {
                check.report_key(&path.key(key), format!("`{key}` is empty"));
            }
        }
    });
}

fn has_empty_options(condition: &Condition) -> bool {
    matches!(condition, Condition::Operators(operators)
        if operators.any_of.as_ref().is_some_and(Vec::is_empty))
}

pub(super) fn pattern_has_condition(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        let Some(pattern) = &view.indicator.pattern else {
            return;
        };
        let path = view.path.key("pattern");
        match &pattern.condition {
            None => no_operator(check, &path, "a pattern needs a condition"),
            Some(condition) if is_without_operators(condition) => {
                no_operator(
                    check,
                    &path,
                    "the condition has no operator, so nothing is asked",
                );
            }
            Some(condition) if reads_as_operators(condition) => {
                ambiguous_equality(check, &path.key("condition"));
            }
            Some(_) => {}
        }
    });
    check.each_phase(|check, _, view| {
        const MESSAGE: &str = "the condition has no operator, so nothing is asked";
        let trigger = view.phase.and_then(|phase| phase.trigger.as_ref());
        let predicate = trigger.and_then(|trigger| trigger.r#match.as_ref());
        for (field, entry) in predicate.into_iter().flatten() {
            if is_without_operators(entry) {
                let path = view.path.key("trigger").key("match").key(field);
                no_operator(check, &path, MESSAGE);
            } else if reads_as_operators(entry) {
                let path = view.path.key("trigger").key("match").key(field);
                ambiguous_equality(check, &path);
            }
        }
        for (path, when) in view.when_predicates() {
            for (field, condition) in when {
                let empty = state_operators(condition)
                    .is_some_and(|operators| operators.values().all(Value::is_null));
                if empty {
                    no_operator(check, &path.key(field), MESSAGE);
                }
            }
        }
    });
}

fn is_without_operators(condition: &Condition) -> bool {
    matches!(condition, Condition::Operators(operators) if operators.is_empty())
}

/// Whether a value to be equal to would be read as operators once it is written.
fn reads_as_operators(condition: &Condition) -> bool {
    matches!(condition, Condition::Equals(Value::Object(map))
        if MatchCondition::OPERATORS.iter().any(|operator| map.contains_key(*operator)))
}

fn ambiguous_equality<'d>(check: &mut ValidationPass<'d>, path: &DocPath<'d>) {
    let message = "a mapping with the name of an operator in it cannot be compared for equality";
    check.report(path, message).help =
        Some("use `Condition::Operators`, or look at its fields one by one".to_owned());
}

fn no_operator<'d>(check: &mut ValidationPass<'d>, path: &DocPath<'d>, message: &str) {
    check.report_key(path, message).help =
        Some("for example `contains: …` or `regex: …`".to_owned());
}

/// The sides of a protocol that actors play.
#[derive(Default)]
struct Sides {
    server: bool,
    client: bool,
}

pub(super) fn matches_own_traffic(check: &mut ValidationPass<'_>) {
    // Which sides are played, by protocol, and by protocol and actor.
    let mut sides: HashMap<(Protocol, Option<&str>), Sides> = HashMap::new();
    for actor in &check.actors {
        let Some(mode) = actor.mode else { continue };
        let protocol = mode.protocol();
        for name in [None, Some(actor.name)] {
            let sides = sides.entry((protocol.clone(), name)).or_default();
            sides.server |= mode.is_server();
            sides.client |= mode.is_client();
        }
    }
    check.each_indicator(|check, view| {
        let indicator = view.indicator;
        let (Some(direction), Some(protocol)) = (indicator.direction, view.protocol.clone()) else {
            return;
        };
        let server_initiated = indicator
            .surface
            .as_ref()
            .is_some_and(|surface| MCP_SERVER_INITIATED.contains(surface));
        if indicator.tier == Some(Tier::Ingested) || server_initiated {
            return;
        }
        let sides = sides.get(&(protocol, indicator.actor.as_deref()));
        let only_ours = sides.is_some_and(|sides| match direction {
            Direction::Response => sides.server && !sides.client,
            Direction::Request => sides.client && !sides.server,
        });
        if only_ours {
            check
                .report(
                    &view.path.key("direction"),
                    "this side is what the document itself sends, whatever the agent does",
                )
                .help = Some(
                "look at the other side; `tier: ingested` says that delivery is meant, but under \
                 `any` it alone makes the verdict `exploited`"
                    .to_owned(),
            );
        }
    });
}

pub(super) fn mode_beside_actors(check: &mut ValidationPass<'_>) {
    let execution = &check.document.attack.execution;
    if execution.mode.is_some() && execution.actors.is_some() {
        check.report_key(
            &attack_path().key("execution").key("mode"),
            "`execution.mode` has no effect beside `actors`",
        );
    }
}
