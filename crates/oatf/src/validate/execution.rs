//! Rules about forms, actors, phases, triggers and actions.

use std::collections::HashSet;

use proofhouse_source::DocPath;

use super::view::{ActorView, ValidationPass, attack_path};
use crate::model::{DurationText, Mode, Protocol};

fn execution_path<'d>() -> DocPath<'d> {
    attack_path().key("execution")
}

pub(super) fn one_form(check: &mut ValidationPass<'_>) {
    let execution = &check.document.attack.execution;
    let forms = [
        execution.state.as_ref().map(|_| "state"),
        execution.phases.as_ref().map(|_| "phases"),
        execution.actors.as_ref().map(|_| "actors"),
    ];
    let forms: Vec<&str> = forms.into_iter().flatten().collect();
    match forms.as_slice() {
        ["state"] if execution.mode.is_none() => {
            check
                .report(
                    &execution_path().key("mode"),
                    "`execution.state` needs `mode`",
                )
                .help = Some("for example `mode: mcp_server`".to_owned());
        }
        [_] => {}
        [] => {
            check.report_key(
                &execution_path(),
                "`execution` needs one of `state`, `phases` and `actors`",
            );
        }
        several => {
            let message = format!("`{}` exclude each other; use one", several.join("` and `"));
            check.report_key(&execution_path(), message);
        }
    }
}

pub(super) fn phases_not_empty(check: &mut ValidationPass<'_>) {
    check.each_actor(|check, actor| {
        if actor.has_phases && actor.phases.is_empty() {
            check.report_key(&actor.path.key("phases"), "`phases` is empty");
        }
    });
}

pub(super) fn terminal_phase_last(check: &mut ValidationPass<'_>) {
    check.each_actor(|check, actor| {
        let terminal: Vec<usize> = actor
            .phases
            .iter()
            .enumerate()
            .filter(|(_, view)| view.phase.is_some_and(|phase| phase.is_terminal()))
            .map(|(index, _)| index)
            .collect();
        match terminal.as_slice() {
            [only] if only + 1 < actor.phases.len() => {
                let message = "a phase without `trigger` never ends, so it must be the last";
                check.report(&actor.phases[*only].path, message).help =
                    Some("give it a `trigger`, or move it to the end".to_owned());
            }
            [_, _, ..] => {
                let message = format!(
                    "{} phases have no `trigger`; only the last may",
                    terminal.len()
                );
                check.report_key(&actor.path.key("phases"), message).help =
                    Some("a phase without `trigger` never ends".to_owned());
            }
            _ => {}
        }
    });
}

pub(super) fn first_phase_has_state(check: &mut ValidationPass<'_>) {
    check.each_actor(|check, actor| {
        if let Some(first) = actor.phases.first()
            && first.state.is_none()
        {
            check.report(&first.path, "the first phase needs `state`");
        }
    });
}

pub(super) fn unique_phase_names(check: &mut ValidationPass<'_>) {
    check.each_actor(|check, actor| {
        let mut seen = HashSet::new();
        for view in &actor.phases {
            if let Some(name) = view.phase.and_then(|phase| phase.name.as_deref())
                && !seen.insert(name)
            {
                let shown: String = name.chars().take(60).collect();
                check.report(
                    &view.path.key("name"),
                    format!("phase name `{shown}` is used twice"),
                );
            }
        }
    });
}

pub(super) fn trigger_needs_event(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let Some(trigger) = view.phase.and_then(|phase| phase.trigger.as_ref()) else {
            return;
        };
        if trigger.event.is_none() {
            let path = view.path.key("trigger");
            if trigger.count.is_some() {
                check.report_key(&path, "`trigger.count` counts events and needs `event`");
            }
            if trigger.r#match.is_some() {
                check.report_key(&path, "`trigger.match` looks at events and needs `event`");
            }
        }
    });
}

pub(super) fn trigger_not_empty(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        if let Some(trigger) = view.phase.and_then(|phase| phase.trigger.as_ref())
            && trigger.event.is_none()
            && trigger.after.is_none()
        {
            check.report_key(
                &view.path.key("trigger"),
                "a trigger needs `event` or `after`",
            );
        }
    });
}

pub(super) fn trigger_after(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let trigger = view.phase.and_then(|phase| phase.trigger.as_ref());
        let after = trigger.and_then(|trigger| trigger.after.as_ref());
        if let Some(after) = after.filter(|after| after.duration().is_none()) {
            report_duration(check, &view.path.key("trigger").key("after"), after);
        }
    });
}

pub(super) fn report_duration<'d>(
    check: &mut ValidationPass<'d>,
    path: &DocPath<'d>,
    text: &DurationText,
) {
    let shown: String = text.as_str().chars().take(40).collect();
    check
        .report(path, format!("`{shown}` is not a duration"))
        .help = Some("write `30s`, `5m`, `1h`, `2d`, or ISO 8601 such as `PT1M30S`".to_owned());
}

pub(super) fn explicit_modes(check: &mut ValidationPass<'_>) {
    let document = check.document;
    let execution = &document.attack.execution;
    if execution.mode.is_some() {
        return;
    }
    if execution.actors.is_none() && execution.phases.is_some() {
        check.each_actor(|check, actor| {
            if !actor.has_phases {
                return;
            }
            let modes: Vec<Option<&Mode>> = actor
                .phases
                .iter()
                .map(|view| view.phase.and_then(|phase| phase.mode.as_ref()))
                .collect();
            for (view, mode) in actor.phases.iter().zip(&modes) {
                if mode.is_none() {
                    check.report(
                        &view.path.key("mode"),
                        "without `execution.mode` every phase needs `mode`",
                    );
                }
            }
            let written: HashSet<&Mode> = modes.into_iter().flatten().collect();
            if written.len() > 1 {
                check
                    .report_key(&actor.path.key("phases"), "the phases have different modes")
                    .help = Some("use `actors`, one for each mode".to_owned());
            }
        });
    }
    check.each_indicator(|check, view| {
        if view.indicator.protocol.is_none() {
            check.report(
                &view.path.key("protocol"),
                "without `execution.mode` every indicator needs `protocol`",
            );
        }
    });
}

pub(super) fn actors(check: &mut ValidationPass<'_>) {
    let written = &check.document.attack.execution.actors;
    if written.as_ref().is_some_and(Vec::is_empty) {
        check.report_key(&execution_path().key("actors"), "`actors` is empty");
    }
    let mut seen = HashSet::new();
    check.each_actor(|check, actor| {
        if !actor.explicit {
            return;
        }
        let path = actor.path.key("name");
        let shown: String = actor.name.chars().take(60).collect();
        if !is_identifier(actor.name) {
            check
                .report(&path, format!("`{shown}` is not an actor name"))
                .help = Some(
                "start with a lower-case letter; then lower-case letters, digits and `_`"
                    .to_owned(),
            );
        }
        if !seen.insert(actor.name) {
            check.report(&path, format!("actor name `{shown}` is used twice"));
        }
        if actor.phases.is_empty() {
            check.report(
                &actor.path,
                format!("actor `{shown}` needs at least one phase"),
            );
        }
    });
}

pub(super) fn mode_format(check: &mut ValidationPass<'_>) {
    let execution = &check.document.attack.execution;
    if let Some(mode) = execution.mode.as_ref() {
        check_mode(check, &execution_path().key("mode"), mode);
    }
    check.each_actor(|check, actor| {
        if let (true, Some(mode)) = (actor.explicit, actor.mode) {
            check_mode(check, &actor.path.key("mode"), mode);
        }
        check_phase_modes(check, actor);
    });
    check.each_indicator(|check, view| {
        if let Some(protocol) = view.indicator.protocol.as_ref().map(Protocol::as_str)
            && !is_identifier(protocol)
        {
            let shown: String = protocol.chars().take(60).collect();
            check.report(
                &view.path.key("protocol"),
                format!("`{shown}` is not a protocol name"),
            );
        }
    });
}

fn check_phase_modes<'d>(check: &mut ValidationPass<'d>, actor: &ActorView<'d>) {
    for view in &actor.phases {
        if let Some(mode) = view.phase.and_then(|phase| phase.mode.as_ref()) {
            check_mode(check, &view.path.key("mode"), mode);
        }
    }
}

fn check_mode<'d>(check: &mut ValidationPass<'d>, path: &DocPath<'d>, mode: &Mode) {
    if !is_mode(mode) {
        let shown: String = mode.as_str().chars().take(60).collect();
        let near = check.near(mode.as_str(), crate::known_modes().iter().copied());
        check.report(path, format!("`{shown}` is not a mode")).help = Some(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "a mode is a protocol and a role, such as `mcp_server`".to_owned(),
        });
    }
}

pub(super) fn extractor_names(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let extractors = view.phase.and_then(|phase| phase.extractors.as_deref());
        for (index, extractor) in extractors.unwrap_or_default().iter().enumerate() {
            if !is_identifier(&extractor.name) {
                let shown: String = extractor.name.chars().take(60).collect();
                check
                    .report(
                        &view.path.key("extractors").index(index).key("name"),
                        format!("`{shown}` is not an extractor name"),
                    )
                    .help = Some(
                    "start with a lower-case letter; then lower-case letters, digits and `_`"
                        .to_owned(),
                );
            }
        }
    });
}

pub(super) fn extractors_not_empty(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let extractors = view.phase.and_then(|phase| phase.extractors.as_deref());
        if extractors.is_some_and(<[_]>::is_empty) {
            check.report_key(&view.path.key("extractors"), "`extractors` is empty");
        }
    });
}

pub(super) fn on_enter_not_empty(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let actions = view.phase.and_then(|phase| phase.on_enter.as_deref());
        if actions.is_some_and(<[_]>::is_empty) {
            check.report_key(&view.path.key("on_enter"), "`on_enter` is empty");
        }
    });
}

pub(super) fn one_action(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let actions = view.phase.and_then(|phase| phase.on_enter.as_deref());
        for (index, action) in actions.unwrap_or_default().iter().enumerate() {
            let keys: Vec<&str> = action.kinds.iter().map(|kind| kind.key()).collect();
            let path = view.path.key("on_enter").index(index);
            match keys.as_slice() {
                [_] => {}
                [] => {
                    check.report(&path, "an action needs a key such as `send` or `log`");
                }
                _ => {
                    let listed: String = keys.join("`, `").chars().take(80).collect();
                    check
                        .report(
                            &path,
                            format!("an action does one thing, not several: `{listed}`"),
                        )
                        .help = Some("write one action for each".to_owned());
                }
            }
        }
    });
}

pub(super) fn phase_mode_matches(check: &mut ValidationPass<'_>) {
    check.each_actor(|check, actor| {
        if !actor.explicit {
            return;
        }
        for view in &actor.phases {
            if let Some(mode) = view.phase.and_then(|phase| phase.mode.as_ref())
                && Some(mode) != actor.mode
            {
                let shown: String = actor
                    .mode
                    .iter()
                    .flat_map(|m| m.as_str().chars())
                    .take(60)
                    .collect();
                let message = format!("the phase's mode differs from its actor's, `{shown}`");
                check.report(&view.path.key("mode"), message).help =
                    Some("use another actor for another mode".to_owned());
            }
        }
    });
}

/// `^[a-z][a-z0-9_]*$`
pub(super) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// `^[a-z][a-z0-9_]*_(server|client)$`
pub(super) fn is_mode(mode: &Mode) -> bool {
    let protocol = mode.protocol_text();
    protocol.len() < mode.as_str().len() && is_identifier(protocol)
}
