//! What a session learns for the guards of other servers, and from them.

use super::GuardSession;
use super::listings::DEFINITION;
use crate::finding::{FindingCode, GuardDecision};
use crate::share::SharedFact;
use crate::taint::TaintLabel;

/// Where a value came from: the server, and the tool or the method. No tool can pass for a definition by its name.
pub(super) fn origin_of(server: &str, item: &str) -> String {
    format!("{server}/{}", item.replace(DEFINITION, "definition-of"))
}

/// The tool that a text of this origin is the definition of.
fn defined_by(origin: &str) -> Option<&str> {
    let (_, after) = origin.split_once('/')?;
    after.strip_prefix(DEFINITION).map(str::trim_start)
}

impl GuardSession {
    /// From now on, what is learned is kept for partners.
    pub(crate) fn share(&mut self) {
        self.facts.get_or_insert_default();
    }

    /// Something was learned.
    pub(super) fn fact(&mut self, fact: impl FnOnce() -> SharedFact) {
        if let Some(facts) = &mut self.facts {
            facts.push(fact());
        }
    }

    /// Takes in what a session beside this one learned, and keeps it for partners.
    pub(crate) fn relay(&mut self, facts: Vec<SharedFact>) {
        self.learn(&facts);
        if let Some(kept) = &mut self.facts {
            kept.extend(facts);
        }
    }

    /// What was learned since this was asked last.
    pub(crate) fn take_facts(&mut self) -> Vec<SharedFact> {
        self.facts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Everything that is known, for a partner that joins.
    pub(crate) fn all_facts(&self) -> Vec<SharedFact> {
        let mut facts = self.taint.facts();
        let names = self.mentions.names().map(str::to_owned).collect();
        facts.insert(0, SharedFact::Tools { names });
        facts
    }

    /// Takes in what a partner learned.
    pub(crate) fn learn(&mut self, facts: &[SharedFact]) {
        for fact in facts {
            match fact {
                SharedFact::Tools { names } => {
                    names.iter().for_each(|name| self.mentions.know_lower(name));
                }
                SharedFact::Texts {
                    label: TaintLabel::Untrusted,
                    origin,
                    texts,
                } => {
                    for text in texts {
                        self.mentions.read_text(origin, text, defined_by(origin));
                    }
                }
                SharedFact::Texts { .. }
                | SharedFact::Values { .. }
                | SharedFact::Named { .. }
                | SharedFact::Approved { .. } => {}
            }
            self.taint.learn(fact);
        }
    }

    /// Tells of something that is about no message.
    pub(crate) fn note(&mut self, code: FindingCode, decision: GuardDecision, message: &str) {
        self.sequence = 0;
        self.tell(self.finding(code, decision, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tool_passes_for_a_definition() {
        let origin = origin_of("web", "definition of send_mail");
        assert_eq!(defined_by(&origin), None, "{origin}");
        assert_eq!(defined_by("web/definition of send_mail"), Some("send_mail"));
    }
}
