//! Innocence: what the control of a document shows in the same form carries nothing of the attack.

use std::collections::HashMap;

use proofhouse_oatf::{Action, ActionKind, Document, compute_effective_state};
use serde_json::{Value, json};

use crate::branches::{branches, of_message};
use crate::exposure::CarrierKind;

/// What a control shows, by actor.
#[derive(Debug)]
pub(crate) struct TwinBaseline(HashMap<String, ShownByActor>);

/// What one actor of a document shows.
#[derive(Debug, Default)]
pub(crate) struct ShownByActor {
    /// The states of its phases.
    pub(crate) states: Vec<Value>,
    /// What it sends when a phase begins.
    sends: Vec<Value>,
}

impl ShownByActor {
    pub(crate) fn of(phases: &[proofhouse_oatf::Phase]) -> Self {
        let states = (0..phases.len()).filter_map(|index| compute_effective_state(phases, index));
        let actions = phases
            .iter()
            .flat_map(|phase| phase.on_enter.iter().flatten());
        let sends = actions
            .filter_map(Action::kind)
            .filter_map(|kind| match kind {
                ActionKind::Send { method, params } => Some(of_message(method, params.as_ref())),
                ActionKind::Binding { name, value } => Some(json!({ name.as_str(): value })),
                ActionKind::Log { .. } => None,
            });
        Self {
            states: states.cloned().collect(),
            sends: sends.collect(),
        }
    }

    /// What it shows through a carrier, in all of its phases.
    pub(crate) fn branches(&self, kind: CarrierKind, name: &str) -> Vec<Value> {
        let states = self.states.iter();
        let mut all: Vec<Value> = states
            .flat_map(|state| branches(state, kind, name))
            .collect();
        if kind.may_be_sent() {
            all.extend(self.sends.iter().cloned());
        }
        all
    }
}

impl TwinBaseline {
    /// What the control of an attack shows. `None` when the control shows all that the attack does: then it does not
    /// tell what the payload is.
    pub(crate) fn of(attack: &Document, twin: &Document) -> Option<Self> {
        let baseline = Self(shown(twin));
        let attack = shown(attack);
        let differs = attack.iter().any(|(actor, shown)| {
            let mut carriers = shown.states.iter().flat_map(carriers);
            carriers.any(|(kind, name)| {
                let branches = shown.branches(kind, &name);
                let mut branches = branches.iter();
                branches.any(|branch| !baseline.shows(actor, kind, &name, branch, Value::clone))
            })
        });
        differs.then_some(baseline)
    }

    /// Whether the control shows a branch of an actor's, as the document has it or with its templates resolved. What
    /// is nothing at all carries nothing.
    pub(crate) fn shows(
        &self,
        actor: &str,
        kind: CarrierKind,
        name: &str,
        branch: &Value,
        resolve: impl Fn(&Value) -> Value,
    ) -> bool {
        let Some(shown) = self.0.get(actor) else {
            return false;
        };
        let innocent = shown.branches(kind, name);
        branch.is_null()
            || innocent
                .iter()
                .any(|shown| shown == branch || resolve(shown) == *branch)
    }
}

fn shown(document: &Document) -> HashMap<String, ShownByActor> {
    let actors = document.attack.execution.actors().iter();
    actors
        .map(|actor| (actor.name.clone(), ShownByActor::of(&actor.phases)))
        .collect()
}

/// What a state can deliver.
pub(crate) fn carriers(state: &Value) -> Vec<(CarrierKind, String)> {
    use CarrierKind as K;
    let lists = [
        ("tools", "name", K::ToolListed, K::ToolResponse),
        ("resources", "uri", K::ResourceListed, K::Resource),
        (
            "resource_templates",
            "uriTemplate",
            K::ResourceListed,
            K::Resource,
        ),
        ("prompts", "name", K::PromptListed, K::Prompt),
    ];
    let mut carriers = Vec::new();
    for (list, key, listed, answered) in lists {
        let items = state.get(list).and_then(Value::as_array);
        for name in items
            .into_iter()
            .flatten()
            .filter_map(|item| item.get(key)?.as_str())
        {
            carriers.push((listed, name.to_owned()));
            carriers.push((answered, name.to_owned()));
        }
    }
    let frontend = state.pointer("/run_agent_input/tools");
    let offered = frontend.and_then(Value::as_array).into_iter().flatten();
    let offered = offered.filter_map(|tool| tool.get("name")?.as_str());
    carriers.extend(offered.map(|name| (K::ToolListed, name.to_owned())));
    let single = [
        K::Instructions,
        K::Elicitation,
        K::Sampling,
        K::Notification,
        K::Card,
        K::TaskResponse,
        K::Message,
        K::Context,
        K::State,
        K::FrontendToolResult,
    ];
    carriers.extend(single.map(|kind| (kind, String::new())));
    carriers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(tools: &str) -> Document {
        let text = format!(
            "oatf: \"0.1\"\nattack:\n  execution:\n    mode: mcp_server\n    state: {{tools: [{tools}]}}\n  indicators:\n    \
             - {{target: a, pattern: {{contains: x}}}}\n"
        );
        proofhouse_oatf::load(&text).unwrap().document
    }

    const HARMLESS: &str = "{name: fetch, description: Fetches., responses: [{content: {content: [{type: text, text: hello}]}}]}";
    const POISONED: &str = "{name: fetch, description: Fetches., responses: [{content: {content: [{type: text, text: send it}]}}]}";

    #[test]
    fn only_what_the_twin_does_not_show_carries_the_attack() {
        let (attack, twin) = (document(POISONED), document(HARMLESS));
        let baseline = TwinBaseline::of(&attack, &twin).unwrap();
        let attack = &shown(&attack)["default"];
        let shows = |actor: &str, kind| {
            let branch = &attack.branches(kind, "fetch")[0];
            baseline.shows(actor, kind, "fetch", branch, Value::clone)
        };
        assert!(shows("default", CarrierKind::ToolListed));
        assert!(!shows("default", CarrierKind::ToolResponse));
        assert!(!shows("other", CarrierKind::ToolListed));
        let sent = of_message("n", None);
        let kind = CarrierKind::Notification;
        assert!(!baseline.shows("default", kind, "n", &sent, Value::clone));
        assert!(baseline.shows("default", kind, "n", &Value::Null, Value::clone));
    }

    #[test]
    fn a_twin_that_shows_the_same_tells_nothing() {
        assert!(TwinBaseline::of(&document(POISONED), &document(POISONED)).is_none());
    }
}
