//! The pattern indicators that look at the same place, compiled together.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use proofhouse_oatf::{Condition, MatchCondition, Protocol};
use serde_json::Value;

use super::literals::{FOLDS_TO_ASCII, required};

/// An indicator's number within its scanner.
pub(super) type RuleId = u32;

/// A condition's number within its scanner: indicators that look at the same place for the same
/// thing share one, and it is evaluated once.
pub(super) type ConditionId = u32;

/// Patterns with one protocol and one target.
#[derive(Debug, Default)]
pub(super) struct PatternGroup {
    /// Without one, of every protocol.
    pub(super) protocol: Option<Protocol>,
    pub(super) target: String,
    /// Every rule of the group.
    pub(super) rules: Vec<RuleId>,
    /// Conditions by a literal that must be there.
    literals: Vec<(Vec<u8>, Vec<ConditionId>)>,
    automaton: Option<AhoCorasick>,
    /// Conditions that want one of these exact texts.
    exact: HashMap<String, Vec<ConditionId>>,
    /// Conditions that only ask whether the place exists.
    pub(super) existence: Vec<(ConditionId, bool)>,
    /// Conditions that have to look at every value.
    pub(super) always: Vec<ConditionId>,
}

impl PatternGroup {
    pub(super) fn new(protocol: Option<Protocol>, target: String) -> Self {
        Self {
            protocol,
            target,
            ..Self::default()
        }
    }

    /// Adds a condition by whatever narrows it down most.
    pub(super) fn add(
        &mut self,
        id: ConditionId,
        condition: &Condition,
        by_literal: &mut HashMap<Vec<u8>, usize>,
    ) {
        match condition {
            Condition::Equals(Value::String(text)) => self.add_exact(id, text),
            Condition::Equals(_) => self.always.push(id),
            Condition::Operators(operators) => self.add_operators(id, operators, by_literal),
        }
    }

    fn add_operators(
        &mut self,
        id: ConditionId,
        operators: &MatchCondition,
        by_literal: &mut HashMap<Vec<u8>, usize>,
    ) {
        if let Some(exists) = operators.exists.filter(|_| operators.only_exists()) {
            self.existence.push((id, exists));
            return;
        }
        if operators.exists == Some(false) {
            // Absent and with a value at once: it never matches.
            return;
        }
        let texts = [
            &operators.contains,
            &operators.starts_with,
            &operators.ends_with,
        ];
        let longest = texts.into_iter().flatten().max_by_key(|text| text.len());
        let literals = match longest.filter(|text| !text.is_empty()) {
            Some(text) => Some(vec![text.to_ascii_lowercase().into_bytes()]),
            None => operators
                .regex
                .as_ref()
                .and_then(|regex| required(&regex.engine_pattern().ok()?)),
        };
        if let Some(literals) = literals {
            for literal in literals {
                let position = *by_literal.entry(literal.clone()).or_insert_with(|| {
                    self.literals.push((literal, Vec::new()));
                    self.literals.len() - 1
                });
                self.literals[position].1.push(id);
            }
            return;
        }
        match &operators.any_of {
            Some(options) if options.iter().all(Value::is_string) => {
                for option in options.iter().filter_map(Value::as_str) {
                    self.add_exact(id, option);
                }
            }
            _ => self.always.push(id),
        }
    }

    fn add_exact(&mut self, id: ConditionId, text: &str) {
        let ids = self.exact.entry(text.to_owned()).or_default();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }

    /// Builds the automaton once all rules are there.
    pub(super) fn finish(&mut self) -> Result<(), aho_corasick::BuildError> {
        if !self.literals.is_empty() {
            let automaton = AhoCorasickBuilder::new()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::Standard)
                .build(self.literals.iter().map(|(literal, _)| literal))?;
            self.automaton = Some(automaton);
        }
        Ok(())
    }

    /// Calls `candidate` for every condition that may hold for a value: with some more than once,
    /// never with too few.
    pub(super) fn candidates(
        &self,
        value: &Value,
        text: &str,
        mut candidate: impl FnMut(ConditionId),
    ) {
        if let Some(automaton) = &self.automaton {
            if !text.is_ascii() && FOLDS_TO_ASCII.iter().any(|odd| text.contains(odd)) {
                self.literals
                    .iter()
                    .flat_map(|(_, ids)| ids)
                    .for_each(|id| candidate(*id));
            } else {
                for hit in automaton.find_overlapping_iter(text) {
                    self.literals[hit.pattern().as_usize()]
                        .1
                        .iter()
                        .for_each(|id| candidate(*id));
                }
            }
        }
        if let Value::String(text) = value
            && let Some(ids) = self.exact.get(text)
        {
            ids.iter().for_each(|id| candidate(*id));
        }
    }

    /// Bytes the compiled form holds.
    pub(super) fn memory(&self) -> usize {
        let literals: usize = self
            .literals
            .iter()
            .map(|(literal, ids)| literal.len() + 4 * ids.len() + 48)
            .sum();
        let exact: usize = self
            .exact
            .iter()
            .map(|(text, ids)| text.len() + 4 * ids.len() + 48)
            .sum();
        literals + exact + self.automaton.as_ref().map_or(0, AhoCorasick::memory_usage)
    }
}
