//! Rules that know the protocol bindings: operations, events, dispatch lists.

use std::collections::HashSet;

use serde_json::Value;

use super::execution::{is_identifier, is_mode};
use super::view::{ValidationPass, attack_path};
use crate::model::{ElicitationMode, Mode, Protocol};
use crate::registry;

const ELICITATION_ACTIONS: &[&str] = &["accept", "decline", "cancel"];

pub(super) fn state_enums(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        // `elicitations[].mode` is checked when a document is parsed; here for those that never were.
        let elicitations = match check.document.source {
            Some(_) => None,
            None => view.elicitations(),
        };
        for list in view.dispatch_lists().into_iter().chain(elicitations) {
            let (key, members) = match list.key {
                "elicitation_responses" => ("action", ELICITATION_ACTIONS),
                "elicitations" => ("mode", ElicitationMode::NAMES),
                _ => continue,
            };
            for (index, entry) in list.entries.iter().enumerate() {
                let found = match entry.get(key) {
                    None | Some(Value::Null) => continue,
                    Some(Value::String(found)) => found,
                    Some(_) => {
                        let path = list.path.index(index).key(key);
                        check.report(&path, format!("`{key}` must be a string"));
                        continue;
                    }
                };
                if !members.contains(&found.as_str()) && !found.contains("{{") {
                    let shown: String = found.chars().take(60).collect();
                    let near = check.near(found, members.iter().copied());
                    check
                        .report(
                            &list.path.index(index).key(key),
                            format!("`{shown}` is not a value of `{key}`"),
                        )
                        .help = Some(match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("use one of: {}", members.join(", ")),
                    });
                }
            }
        }
    });
}

pub(super) fn surfaces(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        let (Some(protocol), Some(surface)) = (&view.protocol, &view.indicator.surface) else {
            return;
        };
        if registry::is_known_surface(protocol, surface) == Some(false) {
            let near = registry::known_surfaces(protocol)
                .and_then(|known| check.near(surface.as_str(), known));
            let shown: String = surface.as_str().chars().take(60).collect();
            let message = format!("`{shown}` is not a known operation of {protocol}");
            check.report(&view.path.key("surface"), message).help =
                near.map(|near| format!("did you mean `{near}`?"));
        }
    });
}

pub(super) fn events(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, actor, view| {
        let Some(phase) = view.phase else { return };
        let mode = phase.mode.as_ref().or(actor.mode);
        let event = phase
            .trigger
            .as_ref()
            .and_then(|trigger| trigger.event.as_deref());
        let (Some(mode), Some(event)) = (mode, event) else {
            return;
        };
        if registry::is_known_event(mode, event) == Some(false) {
            let near = registry::known_events(mode).and_then(|known| check.near(event, known));
            let shown: String = event.chars().take(60).collect();
            let message = format!("`{shown}` is not an event that {mode} is known to see");
            check
                .report(&view.path.key("trigger").key("event"), message)
                .help = near.map(|near| format!("did you mean `{near}`?"));
        }
    });
}

pub(super) fn one_fallback(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        for list in view.dispatch_lists() {
            let fallbacks = list
                .entries
                .iter()
                .filter(|entry| entry.is_object() && entry.get("when").is_none_or(Value::is_null))
                .count();
            if fallbacks > 1 {
                let message =
                    format!("{fallbacks} entries have no `when`; only one can be the fallback");
                check.report_key(&list.path, message);
            }
        }
    });
}

pub(super) fn unknown_modes(check: &mut ValidationPass<'_>) {
    let unknown = |mode: &Mode| !mode.is_known() && is_mode(mode);
    let describe = |mode: &Mode| {
        let shown: String = mode.as_str().chars().take(60).collect();
        format!(
            "mode `{shown}` is not bound by version {}",
            crate::SUPPORTED_VERSION
        )
    };
    let help = |check: &ValidationPass<'_>, mode: &Mode| {
        check
            .near(mode.as_str(), crate::known_modes().iter().copied())
            .map(|near| format!("did you mean `{near}`?"))
    };
    let document = check.document;
    if let Some(mode) = document
        .attack
        .execution
        .mode
        .as_ref()
        .filter(|mode| unknown(mode))
    {
        let path = attack_path().key("execution").key("mode");
        let near = help(check, mode);
        check.report(&path, describe(mode)).help = near;
    }
    check.each_actor(|check, actor| {
        if let Some(mode) = actor.mode.filter(|mode| actor.explicit && unknown(mode)) {
            let near = help(check, mode);
            check.report(&actor.path.key("mode"), describe(mode)).help = near;
        }
        if actor.explicit || document.attack.execution.mode.is_some() {
            return;
        }
        for view in &actor.phases {
            let mode = view.phase.and_then(|phase| phase.mode.as_ref());
            if let Some(mode) = mode.filter(|mode| unknown(mode)) {
                let near = help(check, mode);
                check.report(&view.path.key("mode"), describe(mode)).help = near;
            }
        }
    });
}

pub(super) fn unknown_protocols(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        if let Some(protocol) = &view.indicator.protocol
            && !protocol.is_known()
            && is_identifier(protocol.as_str())
        {
            let shown: String = protocol.as_str().chars().take(60).collect();
            let near = check.near(protocol.as_str(), crate::known_protocols().iter().copied());
            let message = format!(
                "protocol `{shown}` is not bound by version {}",
                crate::SUPPORTED_VERSION
            );
            check.report(&view.path.key("protocol"), message).help =
                near.map(|near| format!("did you mean `{near}`?"));
        }
    });
}

pub(super) fn protocols_spoken(check: &mut ValidationPass<'_>) {
    let spoken: HashSet<Protocol> = check
        .actors
        .iter()
        .filter_map(|actor| actor.mode)
        .map(Mode::protocol)
        .collect();
    check.each_indicator(|check, view| {
        if let Some(protocol) = &view.indicator.protocol
            && is_identifier(protocol.as_str())
            && !spoken.is_empty()
            && !spoken.contains(protocol)
        {
            check.report(
                &view.path.key("protocol"),
                format!("no actor speaks {protocol}, so this indicator never matches"),
            );
        }
    });
}

pub(super) fn synthesize(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let mut places = Vec::new();
        for list in view.dispatch_lists() {
            for (index, entry) in list.entries.iter().enumerate() {
                if entry
                    .get("synthesize")
                    .is_some_and(|block| !block.is_null())
                {
                    places.push(list.path.index(index).key("synthesize"));
                }
            }
        }
        let input = view.state.and_then(|state| state.get("run_agent_input"));
        if input.is_some_and(|input| input.get("synthesize").is_some()) {
            places.push(view.state_path().key("run_agent_input").key("synthesize"));
        }
        for path in places {
            check.report_key(
                &path,
                "`synthesize` is reserved and needs a generation provider",
            );
        }
    });
}
