//! Rules about `{{…}}` templates in protocol state and entry actions.

use std::collections::HashSet;

use proofhouse_source::{DocPath, PathSegment};
use serde_json::Value;

use super::view::{ActorView, CheckedPhase, ValidationPass};
use crate::model::ActionKind;
use crate::primitives::{TemplatePart, template_parts};

pub(super) fn closed(check: &mut ValidationPass<'_>) {
    each_template(check, &mut |check, _, path, text| {
        for part in template_parts(text) {
            if let TemplatePart::Unclosed { at, .. } = part {
                check
                    .report_within(path, at..at + 2, "`{{` is never closed")
                    .help =
                    Some(
                    "close it with `}}`, or write `\\{{` for two plain braces (`\\\\{{` in double quotes)"
                        .to_owned(),
                );
            }
        }
    });
}

pub(super) fn actors_exist(check: &mut ValidationPass<'_>) {
    each_reference(check, &mut |check, _, path, name, at| {
        let Some((actor, _)) = split_qualified(name) else {
            return;
        };
        if !check.has_actor(actor) {
            let near = check.near(actor, check.written_actors());
            let shown: String = actor.chars().take(60).collect();
            let range = at..at + name.len() + 4;
            check
                .report_within(path, range, format!("there is no actor `{shown}`"))
                .help = Some(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "write `\\{{` (`\\\\{{` in double quotes) if this is not a template".to_owned()
                }
            });
        }
    });
}

pub(super) fn extractors_declared(check: &mut ValidationPass<'_>) {
    let declared = declared_extractors(check);
    each_reference(check, &mut |check, actor, path, name, at| {
        let (owner, extractor) = match split_qualified(name) {
            Some((owner, extractor)) if check.has_actor(owner) => (owner, extractor),
            // V-032 reports it.
            Some(_) => return,
            None if is_exchange(name) => return,
            None => (actor.name, name),
        };
        if !declared.contains(&(owner, extractor)) {
            let shown: String = name.chars().take(60).collect();
            let range = at..at + name.len() + 4;
            let owner: String = owner.chars().take(60).collect();
            let extractor: String = extractor.chars().take(60).collect();
            let message = format!("actor `{owner}` declares no extractor `{extractor}`");
            check.report_within(path, range, message).help = Some(format!(
                "`{{{{{shown}}}}}` becomes the empty string at run time"
            ));
        }
    });
}

/// `request.…` and `response.…` read the current exchange.
fn is_exchange(name: &str) -> bool {
    name.starts_with("request.") || name.starts_with("response.")
}

/// Splits `actor.extractor`.
fn split_qualified(name: &str) -> Option<(&str, &str)> {
    if is_exchange(name) {
        None
    } else {
        name.split_once('.')
    }
}

/// Every extractor with the actor that declares it in any of its phases.
fn declared_extractors<'d>(check: &ValidationPass<'d>) -> HashSet<(&'d str, &'d str)> {
    let mut declared = HashSet::new();
    for actor in &check.actors {
        for phase in actor.phases.iter().filter_map(|view| view.phase) {
            let extractors = phase.extractors.iter().flatten();
            declared.extend(extractors.map(|extractor| (actor.name, extractor.name.as_str())));
        }
    }
    declared
}

/// A string that holds `{{`.
pub(super) struct FoundTemplate<'d> {
    /// The actor it belongs to, by position.
    actor: usize,
    path: DocPath<'d>,
    text: &'d str,
}

type VisitReference<'v, 'd> =
    dyn FnMut(&mut ValidationPass<'d>, &ActorView<'d>, &DocPath<'d>, &'d str, usize) + 'v;

fn each_reference<'d>(check: &mut ValidationPass<'d>, visit: &mut VisitReference<'_, 'd>) {
    each_template(check, &mut |check, actor, path, text| {
        for part in template_parts(text) {
            if let TemplatePart::Reference { name, at } = part {
                visit(check, actor, path, name, at);
            }
        }
    });
}

type VisitTemplate<'v, 'd> =
    dyn FnMut(&mut ValidationPass<'d>, &ActorView<'d>, &DocPath<'d>, &'d str) + 'v;

/// Visits every template. The document is searched for them once, by the first rule that asks.
fn each_template<'d>(check: &mut ValidationPass<'d>, visit: &mut VisitTemplate<'_, 'd>) {
    let templates = match check.templates.take() {
        Some(templates) => templates,
        None => find_templates(check),
    };
    let actors = std::mem::take(&mut check.actors);
    for template in &templates {
        if let Some(actor) = actors.get(template.actor) {
            visit(check, actor, &template.path, template.text);
        }
    }
    check.actors = actors;
    check.templates = Some(templates);
}

/// Every string that holds `{{` in protocol state and entry actions.
fn find_templates<'d>(check: &ValidationPass<'d>) -> Vec<FoundTemplate<'d>> {
    let mut found = Vec::new();
    for (position, actor) in check.actors.iter().enumerate() {
        for view in &actor.phases {
            let mut keep = |path: &DocPath<'d>, text: &'d str| {
                found.push(FoundTemplate {
                    actor: position,
                    path: path.clone(),
                    text,
                });
            };
            if let Some(state) = view.state {
                walk(&mut view.state_path(), state, &mut keep);
            }
            visit_actions(view, &mut keep);
        }
    }
    found
}

type Keep<'v, 'd> = dyn FnMut(&DocPath<'d>, &'d str) + 'v;

fn visit_actions<'d>(view: &CheckedPhase<'d>, keep: &mut Keep<'_, 'd>) {
    let actions = view.phase.and_then(|phase| phase.on_enter.as_deref());
    for (index, action) in actions.unwrap_or_default().iter().enumerate() {
        for kind in &action.kinds {
            let mut path = view.path.key("on_enter").index(index).key(kind.key());
            match kind {
                ActionKind::Send { params, .. } => {
                    if let Some(params) = params {
                        walk(&mut path.key("params"), params, keep);
                    }
                }
                ActionKind::Log { message, .. } => {
                    if message.contains("{{") {
                        keep(&path.key("message"), message);
                    }
                }
                ActionKind::Binding { value, .. } => walk(&mut path, value, keep),
            }
        }
    }
}

fn walk<'d>(path: &mut DocPath<'d>, value: &'d Value, keep: &mut Keep<'_, 'd>) {
    match value {
        Value::String(text) if text.contains("{{") => keep(path, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(PathSegment::Index(index));
                walk(path, item, keep);
                path.pop();
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                path.push(PathSegment::Key(key));
                walk(path, value, keep);
                path.pop();
            }
        }
        _ => {}
    }
}
