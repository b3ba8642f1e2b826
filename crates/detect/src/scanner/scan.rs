//! Judging one message.

use std::collections::HashMap;

use proofhouse_oatf::{
    DEFAULT_SEMANTIC_THRESHOLD, Indicator, IndicatorResult, MatchBudget, coerce_to_text,
    evaluate_condition_within, evaluate_indicator, resolve_wildcard_path,
};

use serde_json::Value;

use super::Scanner;
use super::class::{KnownClasses, MessageClass};
use super::evidence::Evidence;
use super::group::{ConditionId, RuleId};
use super::split::{SplitPieces, lane_of};
use crate::trace::{TraceMessage, reading};

/// What an indicator made of a message it looked at. Indicators that did not match are not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanFinding {
    /// The document, by its position in the scanner.
    pub document: usize,
    /// The indicator, by its position in the document.
    pub indicator: usize,
    /// What it made of the message.
    pub outcome: ScanOutcome,
}

/// What an indicator made of a message, if not nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanOutcome {
    /// It matched.
    Matched(Evidence),
    /// It could not be evaluated.
    Error(String),
}

/// What a rule made of a message; the evidence is only put together for those who want it.
pub(super) enum RuleResult<'a> {
    Matched(&'a dyn Fn() -> Evidence),
    Error(String),
}

impl RuleResult<'_> {
    pub(super) fn into_outcome(self) -> ScanOutcome {
        match self {
            Self::Matched(evidence) => ScanOutcome::Matched(evidence()),
            Self::Error(error) => ScanOutcome::Error(error),
        }
    }
}

/// Room that is used again for every message.
#[derive(Debug, Default)]
pub(super) struct ScanBuffers {
    /// Per rule, the last message it was found to match, so that it is found once per message.
    matched: Vec<u64>,
    /// Per condition, the last value it was tried on.
    tried: Vec<u64>,
    message: u64,
    value: u64,
    /// Kinds of messages seen before, without the lock that the scanner's own memory needs.
    classes: KnownClasses,
}

impl ScanBuffers {
    /// The kinds of messages that were seen.
    pub(super) fn classes(&mut self) -> &mut KnownClasses {
        &mut self.classes
    }

    /// Whether a rule has not matched in the message that was judged last.
    fn is_open(&self, rule: RuleId) -> bool {
        let matched = self.matched.get(rule as usize);
        matched.is_none_or(|last| *last != self.message)
    }

    fn begin(&mut self, rules: usize) {
        if self.matched.len() < rules {
            self.matched.resize(rules, 0);
            self.tried.resize(rules, 0);
        }
        self.message += 1;
    }
}

impl Scanner {
    /// Judges one message and tells which indicators matched or failed.
    #[must_use]
    pub fn scan(&self, message: &TraceMessage) -> Vec<ScanFinding> {
        let mut found = Vec::new();
        self.scan_into(message, &mut ScanBuffers::default(), &mut |rule, judged| {
            found.push(self.found(rule, judged.into_outcome()));
        });
        found
    }

    pub(super) fn found(&self, rule: RuleId, outcome: ScanOutcome) -> ScanFinding {
        let super::IndicatorRef {
            document,
            indicator,
        } = self.rules[rule as usize];
        ScanFinding {
            document: document as usize,
            indicator: indicator as usize,
            outcome,
        }
    }

    /// Judges one message; `report` hears of every rule that matched or failed, once each.
    pub(super) fn scan_into(
        &self,
        message: &TraceMessage,
        scratch: &mut ScanBuffers,
        report: &mut dyn FnMut(RuleId, RuleResult<'_>),
    ) {
        scratch.begin(self.rules.len());
        let class = self.class_of(message, &mut scratch.classes);
        self.scan_reading(message, &class, scratch, report);
        if let Some(other) = reading::other(message) {
            // Whoever failed has said so, and whoever matched is not asked again.
            self.scan_reading(&other, &class, scratch, &mut |rule, judged| match judged {
                RuleResult::Matched(_) => report(rule, judged),
                RuleResult::Error(_) => {}
            });
        }
    }

    /// Judges one reading of a message.
    fn scan_reading(
        &self,
        message: &TraceMessage,
        class: &MessageClass,
        scratch: &mut ScanBuffers,
        report: &mut dyn FnMut(RuleId, RuleResult<'_>),
    ) {
        // Every condition has its time on all values of a message together.
        let mut budgets: HashMap<ConditionId, MatchBudget> = HashMap::new();
        for group_class in &class.groups {
            let group = &self.groups[group_class.group as usize];
            let values = resolve_wildcard_path(&group.target, &message.content);
            for (id, exists) in &group_class.existence {
                if values.is_empty() != *exists {
                    let evidence = || match values.first() {
                        Some(value) => Evidence::of_value(message, &group.target, value),
                        None => Evidence::of_absence(message, &group.target),
                    };
                    let rules = &self.conditions[*id as usize];
                    for rule in rules.iter().filter(|rule| class.applies(**rule)) {
                        let matched = &mut scratch.matched[*rule as usize];
                        if *matched != scratch.message {
                            *matched = scratch.message;
                            report(*rule, RuleResult::Matched(&evidence));
                        }
                    }
                }
            }
            for value in values {
                let text = coerce_to_text(value);
                scratch.value += 1;
                let mut try_condition = |id: ConditionId| {
                    let tried = &mut scratch.tried[id as usize];
                    if *tried == scratch.value {
                        return;
                    }
                    *tried = scratch.value;
                    let rules = &self.conditions[id as usize];
                    let (matched, this) = (&mut scratch.matched, scratch.message);
                    let open = |rule: RuleId, matched: &[u64]| {
                        matched[rule as usize] != this && class.applies(rule)
                    };
                    if !rules.iter().any(|rule| open(*rule, matched)) {
                        return;
                    }
                    let pattern = self.indicator(rules[0]).pattern.as_ref();
                    let Some(condition) = pattern.and_then(|pattern| pattern.condition.as_ref())
                    else {
                        return;
                    };
                    let budget = budgets.entry(id).or_default();
                    let judged = evaluate_condition_within(condition, value, budget);
                    if let Err(error) = &judged {
                        for rule in rules.iter().copied() {
                            if open(rule, matched) {
                                // Nothing more is asked of it here.
                                matched[rule as usize] = this;
                                report(rule, RuleResult::Error(error.to_string()));
                            }
                        }
                    }
                    if judged == Ok(true) {
                        let evidence = || {
                            Evidence::of_condition(message, &group.target, value, &text, condition)
                        };
                        for rule in rules.iter().copied() {
                            if !open(rule, matched) {
                                continue;
                            }
                            let checksum = self.checksums.get(&rule);
                            let checked = checksum.map(|sum| sum.find(condition, &text));
                            match checked {
                                // Another value may still have one that is right.
                                Some(None) => {}
                                Some(Some(words)) => {
                                    matched[rule as usize] = this;
                                    let words = &text[words];
                                    let evidence =
                                        || Evidence::of_words(message, &group.target, value, words);
                                    report(rule, RuleResult::Matched(&evidence));
                                }
                                None => {
                                    matched[rule as usize] = this;
                                    report(rule, RuleResult::Matched(&evidence));
                                }
                            }
                        }
                    }
                };
                group.candidates(value, &text, &mut try_condition);
                group_class.always.iter().for_each(|id| try_condition(*id));
            }
        }
        for index in &class.canaries {
            let group = &self.canaries[*index as usize];
            let (matched, this) = (&mut scratch.matched, scratch.message);
            let open = |rule: RuleId, matched: &[u64]| {
                matched[rule as usize] != this && class.applies(rule)
            };
            if !group.rules().any(|rule| open(rule, matched)) {
                continue;
            }
            group.find(message, |rule, at| {
                if open(rule, matched) {
                    matched[rule as usize] = this;
                    report(
                        rule,
                        RuleResult::Matched(&|| Evidence::of_canary(message, at)),
                    );
                }
            });
        }
        for (index, rules) in &class.asides {
            let (matched, this) = (&mut scratch.matched, scratch.message);
            let open = |rule: RuleId, matched: &[u64]| {
                matched[rule as usize] != this && rules.contains(&rule)
            };
            if !rules.iter().any(|rule| open(*rule, matched)) {
                continue;
            }
            self.canaries[*index as usize].find(message, |rule, at| {
                if open(rule, matched) {
                    matched[rule as usize] = this;
                    report(
                        rule,
                        RuleResult::Matched(&|| Evidence::of_canary(message, at)),
                    );
                }
            });
        }
        for rule in class.expressions.iter().chain(&class.semantics).copied() {
            // One whose canary was found has matched, whatever else it asks.
            if scratch.matched[rule as usize] != scratch.message
                && self.evaluate(rule, message, report)
            {
                scratch.matched[rule as usize] = scratch.message;
            }
        }
    }

    /// What a message that was just judged has of canaries that may be in pieces.
    pub(super) fn split_pieces(
        &self,
        message: &TraceMessage,
        scratch: &mut ScanBuffers,
    ) -> Vec<SplitPieces> {
        let mut split = Vec::new();
        if self.canaries.is_empty() {
            return split;
        }
        let class = self.class_of(message, &mut scratch.classes);
        for index in &class.canaries {
            let group = &self.canaries[*index as usize];
            let mut rules: Vec<(RuleId, bool)> = group
                .rules()
                .filter(|rule| class.applies(*rule))
                .map(|rule| (rule, scratch.is_open(rule)))
                .collect();
            rules.sort_unstable();
            rules.dedup();
            let pieces = group.pieces(message).into_iter();
            let pieces = pieces.map(|at| {
                let evidence = Evidence::of_piece(message, &at);
                (at.piece, evidence)
            });
            let pieces: Vec<_> = pieces.collect();
            if !pieces.is_empty() {
                split.push(SplitPieces {
                    group: *index,
                    lane: lane_of(message),
                    rules,
                    pieces,
                });
            }
        }
        split
    }

    /// The value that an expression or a semantic indicator is about, and the path to it.
    fn judged<'m>(
        &self,
        indicator: &'m Indicator,
        message: &'m TraceMessage,
    ) -> (&'m str, Option<&'m Value>) {
        let semantic = indicator.semantic.as_ref();
        let target = semantic.and_then(|semantic| semantic.target.as_deref());
        let target = target.unwrap_or(&indicator.target);
        let values = resolve_wildcard_path(target, &message.content);
        // Of several texts, the one that was close enough. Those were all scored a moment ago, and
        // are remembered.
        let close = |value: &&Value| {
            let (Some(semantic), Some(evaluator)) = (semantic, self.semantic.as_deref()) else {
                return false;
            };
            let score = evaluator.evaluate(
                &coerce_to_text(value),
                &semantic.intent,
                semantic.intent_class,
                semantic.threshold,
                semantic.examples.as_ref(),
            );
            let threshold = semantic.threshold.unwrap_or(DEFAULT_SEMANTIC_THRESHOLD);
            score.is_ok_and(|score| score >= threshold)
        };
        let found = match values.as_slice() {
            [] | [_] => None,
            several => several.iter().copied().find(close),
        };
        (target, found.or(values.first().copied()))
    }

    /// Evaluates a rule that nothing narrows down, and tells whether it matched.
    fn evaluate(
        &self,
        rule: RuleId,
        message: &TraceMessage,
        report: &mut dyn FnMut(RuleId, RuleResult<'_>),
    ) -> bool {
        let indicator = self.indicator(rule);
        let verdict = evaluate_indicator(
            indicator,
            &message.content,
            self.cel.as_deref(),
            self.semantic.as_deref(),
        );
        match verdict.result {
            IndicatorResult::Matched => {
                let reason = verdict.evidence.unwrap_or_default();
                let evidence = || {
                    let (target, value) = self.judged(indicator, message);
                    Evidence::of_judgement(message, target, value, &reason)
                };
                report(rule, RuleResult::Matched(&evidence));
            }
            IndicatorResult::Error => {
                report(
                    rule,
                    RuleResult::Error(verdict.evidence.unwrap_or_default()),
                );
            }
            IndicatorResult::NotMatched | IndicatorResult::Skipped => {}
        }
        verdict.result == IndicatorResult::Matched
    }
}
