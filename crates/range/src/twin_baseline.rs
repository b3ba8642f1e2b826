//! Innocence: what the benign twin of a document shows in the same form carries nothing of the attack.

use std::collections::HashMap;

use proofhouse_oatf::{Document, compute_effective_state};
use serde_json::Value;

use crate::exposure::{CarrierKind, part};

/// What a benign twin shows, by actor.
#[derive(Debug)]
pub(crate) struct TwinBaseline {
    states: HashMap<String, Vec<Value>>,
}

impl TwinBaseline {
    /// What the twin of an attack shows. `None` when the twin shows all that the attack does: then it does not
    /// tell what the payload is.
    pub(crate) fn of(attack: &Document, twin: &Document) -> Option<Self> {
        let baseline = Self {
            states: states(twin),
        };
        let attacks = states(attack);
        let mut carriers = attacks.iter().flat_map(|(actor, states)| {
            let carriers = states.iter().flat_map(|state| {
                let carriers = carriers(state).into_iter();
                carriers.map(move |(kind, name)| (state, kind, name))
            });
            carriers.map(move |(state, kind, name)| (actor, state, kind, name))
        });
        let differs =
            carriers.any(|(actor, state, kind, name)| !baseline.shows(actor, state, kind, &name));
        differs.then_some(baseline)
    }

    /// Whether the twin shows what this state of an actor does.
    pub(crate) fn shows(&self, actor: &str, state: &Value, kind: CarrierKind, name: &str) -> bool {
        let Some(shown) = part(state, kind, name) else {
            return false;
        };
        let states = self.states.get(actor).map(Vec::as_slice);
        let mut innocent = states.unwrap_or_default().iter();
        innocent.any(|state| part(state, kind, name).as_ref() == Some(&shown))
    }
}

pub(crate) fn states(document: &Document) -> HashMap<String, Vec<Value>> {
    let actors = document.attack.execution.actors().iter();
    let of_actor = |phases: &[proofhouse_oatf::Phase]| {
        let states = (0..phases.len()).filter_map(|index| compute_effective_state(phases, index));
        states.cloned().collect()
    };
    actors
        .map(|actor| (actor.name.clone(), of_actor(&actor.phases)))
        .collect()
}

/// What a state can deliver.
pub(crate) fn carriers(state: &Value) -> Vec<(CarrierKind, String)> {
    use CarrierKind as K;
    let lists = [
        ("tools", "name", K::ToolListed, K::ToolResponse),
        ("resources", "uri", K::ResourceListed, K::Resource),
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
        K::Card,
        K::TaskResponse,
        K::Message,
        K::Context,
        K::State,
        K::FrontendToolResult,
    ];
    carriers.extend(single.map(|kind| (kind, String::new())));
    carriers.retain(|(kind, name)| part(state, *kind, name).is_some());
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
        let state = &states(&attack)["default"][0];
        assert!(baseline.shows("default", state, CarrierKind::ToolListed, "fetch"));
        assert!(!baseline.shows("default", state, CarrierKind::ToolResponse, "fetch"));
        assert!(!baseline.shows("other", state, CarrierKind::ToolListed, "fetch"));
        assert!(!baseline.shows("default", state, CarrierKind::Notification, "n"));
    }

    #[test]
    fn a_twin_that_shows_the_same_tells_nothing() {
        assert!(TwinBaseline::of(&document(POISONED), &document(POISONED)).is_none());
    }
}
