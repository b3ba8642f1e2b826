//! Every value of a document that may hold anything, with its place.

use proofhouse_source::{DocPath, PathSegment};
use serde_json::Value;

use super::{Action, ActionKind, Condition, Document, Extensions, Phase};

/// Values and where they stand.
type PlacedValues<'d> = Vec<(DocPath<'d>, &'d Value)>;

impl Document {
    /// Every value of the document that may hold anything: state, parameters, what conditions compare with, `x-` fields.
    pub(crate) fn values(&self) -> PlacedValues<'_> {
        let mut found = Vec::new();
        let mut attack = DocPath::default();
        attack.push(PathSegment::Key("attack"));
        let execution = attack.key("execution");
        if let Some(state) = &self.attack.execution.state {
            found.push((execution.key("state"), state));
        }
        let phases = self.attack.execution.phases.as_deref();
        phases_of(&mut found, &execution, phases.unwrap_or_default());
        for (index, actor) in self.attack.execution.actors().iter().enumerate() {
            let path = execution.key("actors").index(index);
            phases_of(&mut found, &path, &actor.phases);
            extensions_of(&mut found, &path, &actor.extensions);
        }
        extensions_of(&mut found, &execution, &self.attack.execution.extensions);
        for (index, indicator) in self.attack.indicators().iter().enumerate() {
            let path = attack.key("indicators").index(index);
            let pattern = indicator.pattern.as_ref();
            if let Some((pattern, condition)) =
                pattern.and_then(|pattern| Some((pattern, pattern.condition.as_ref()?)))
            {
                let path = path.key("pattern");
                let written = if pattern.shorthand {
                    path
                } else {
                    path.key("condition")
                };
                condition_values(&mut found, &written, condition);
            }
            extensions_of(&mut found, &path, &indicator.extensions);
        }
        extensions_of(&mut found, &attack, &self.attack.extensions);
        found
    }
}

fn extensions_of<'d>(
    found: &mut PlacedValues<'d>,
    owner: &DocPath<'d>,
    extensions: &'d Extensions,
) {
    let values = extensions.iter();
    found.extend(values.map(|(key, value)| (owner.key(key), value)));
}

fn condition_values<'d>(
    found: &mut PlacedValues<'d>,
    path: &DocPath<'d>,
    condition: &'d Condition,
) {
    match condition {
        Condition::Equals(value) => found.push((path.clone(), value)),
        Condition::Operators(operators) => {
            let values = operators.any_of.iter().flatten();
            found.extend(values.map(|value| (path.key("any_of"), value)));
        }
    }
}

fn phases_of<'d>(found: &mut PlacedValues<'d>, owner: &DocPath<'d>, phases: &'d [Phase]) {
    for (index, phase) in phases.iter().enumerate() {
        let path = owner.key("phases").index(index);
        if let Some(state) = &phase.state {
            found.push((path.key("state"), state));
        }
        for (index, action) in phase.on_enter.iter().flatten().enumerate() {
            action_values(found, &path.key("on_enter").index(index), action);
        }
        let trigger = phase.trigger.as_ref();
        let predicate = trigger.and_then(|trigger| trigger.r#match.as_ref());
        for (field, condition) in predicate.into_iter().flatten() {
            let path = path.key("trigger").key("match").key(field);
            condition_values(found, &path, condition);
        }
        extensions_of(found, &path, &phase.extensions);
    }
}

fn action_values<'d>(found: &mut PlacedValues<'d>, path: &DocPath<'d>, action: &'d Action) {
    for kind in &action.kinds {
        match kind {
            ActionKind::Send { params, .. } => {
                let params = params.iter();
                found.extend(params.map(|params| (path.key("send").key("params"), params)));
            }
            ActionKind::Binding { name, value } => found.push((path.key(name), value)),
            ActionKind::Log { .. } => {}
        }
    }
    extensions_of(found, path, &action.extensions);
}
