//! Names of events: the protocol's constants in lower case, and the older names for reasoning.

use std::collections::HashSet;

use proofhouse_oatf::{Document, Surface};
use proofhouse_protocol::ag_ui::{THINKING_ALIASES, operation_of};

/// Names events so that the document finds them: whichever of two names it uses, it means both.
#[derive(Debug, Default)]
pub(super) struct EventNames {
    /// Older names that the document uses.
    older: HashSet<&'static str>,
}

impl EventNames {
    pub(super) fn of(document: &Document) -> Self {
        let attack = &document.attack;
        let phases = attack.execution.actors().iter().flat_map(|a| &a.phases);
        let events = phases.filter_map(|phase| phase.trigger.as_ref()?.event.as_deref());
        let surfaces = attack
            .indicators()
            .iter()
            .filter_map(|i| i.surface.as_ref().map(Surface::as_str));
        let used: HashSet<&str> = events.chain(surfaces).collect();
        let older = THINKING_ALIASES.iter().map(|(older, _)| *older);
        Self {
            older: older.filter(|older| used.contains(older)).collect(),
        }
    }

    /// The operation of an event of this type.
    pub(super) fn operation(&self, kind: &str) -> String {
        let name = operation_of(kind);
        let Some((older, newer)) = THINKING_ALIASES
            .iter()
            .find(|(a, b)| *a == name || *b == name)
        else {
            return name;
        };
        let chosen = if self.older.contains(older) {
            older
        } else {
            newer
        };
        (*chosen).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_means_both() {
        let plain = EventNames::default();
        assert_eq!(plain.operation("TOOL_CALL_START"), "tool_call_start");
        assert_eq!(plain.operation("THINKING_START"), "reasoning_start");
        let text = r#"
oatf: "0.1"
attack:
  execution: {mode: ag_ui_client, state: {run_agent_input: {threadId: t, runId: r}}}
  indicators: [{surface: thinking_start, target: "", pattern: {contains: x}}]
"#;
        let document = proofhouse_oatf::load(text).unwrap().document;
        let names = EventNames::of(&document);
        assert_eq!(names.operation("REASONING_START"), "thinking_start");
        assert_eq!(names.operation("THINKING_END"), "reasoning_end");
        assert_eq!(plain.operation(&"X".repeat(1000)).len(), 100);
    }
}
