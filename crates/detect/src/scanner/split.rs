//! Canaries that come in pieces: what one message begins, a later one of the same sender completes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use hashbrown::HashMap;

use super::Scanner;
use super::evidence::Evidence;
use super::group::RuleId;
use crate::canary::{CanaryPiece, CanaryTrail};
use crate::trace::{TraceMessage, WholeMessage};

/// Trails that are told apart; in a hostile trace every message may have a sender of its own.
const MAX_TRAILS: usize = 65_536;

/// What a message may have of canaries that are in pieces.
#[derive(Debug)]
pub(super) struct SplitPieces {
    /// The group of canaries.
    pub(super) group: u32,
    /// Who sent it, as a hash.
    pub(super) lane: u64,
    /// The rules that look at the message, and whether each may still match in it.
    pub(super) rules: Vec<(RuleId, bool)>,
    /// The pieces in their order, each with what is shown if a canary is complete with it.
    pub(super) pieces: Vec<(CanaryPiece, Evidence)>,
}

impl SplitPieces {
    /// Points at the lines and pieces of the message.
    pub(super) fn stand_in(&mut self, whole: &WholeMessage<'_>) {
        for (_, evidence) in &mut self.pieces {
            evidence.stands_in(whole);
        }
    }
}

/// What was begun so far, by the rule and the sender.
#[derive(Debug, Clone, Default)]
pub(super) struct CanaryTrails(HashMap<(RuleId, u64), CanaryTrail>);

/// Whose message it is.
pub(super) fn lane_of(message: &TraceMessage) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.actor.hash(&mut hasher);
    message.direction.hash(&mut hasher);
    message.protocol.hash(&mut hasher);
    hasher.finish()
}

impl CanaryTrails {
    /// Takes the pieces of the next message, and tells which rules match with it, each once.
    pub(super) fn follow(
        &mut self,
        scanner: &Scanner,
        split: &SplitPieces,
    ) -> Vec<(RuleId, Evidence)> {
        let group = &scanner.canaries[split.group as usize];
        let mut matched: Vec<(RuleId, Evidence)> = Vec::new();
        for (rule, is_open) in &split.rules {
            let is_known = self.0.len() < MAX_TRAILS || self.0.contains_key(&(*rule, split.lane));
            let lane = if is_known { split.lane } else { 0 };
            let trail = self.0.entry((*rule, lane)).or_default();
            let mut found: Option<Evidence> = None;
            for (piece, evidence) in &split.pieces {
                let complete = trail.follow(group.matcher(), piece).into_iter();
                let mut asked = complete.filter(|(canary, _)| group.asks(*canary, *rule));
                if let Some((canary, form)) = asked.next() {
                    found.get_or_insert_with(|| {
                        let canary = &group.matcher().canaries()[canary];
                        evidence.clone().because(&form.describe(canary))
                    });
                }
            }
            let found = found.filter(|_| *is_open);
            matched.extend(found.map(|evidence| (*rule, evidence)));
        }
        matched
    }
}
