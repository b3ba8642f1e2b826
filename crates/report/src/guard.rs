//! What guards changed, as rows that every report shows: the same attacks without the guard and with it.

use super::text::{interval, of, percent, plural};
use proofhouse_campaign::guard_effect::{GuardEffect, GuardWork};
use proofhouse_campaign::summary::RunGroup;

/// The headings of the rows.
pub(crate) const HEADINGS: [&str; 8] = [
    "Agent",
    "Guard",
    "Attacks that got through",
    "Attack success",
    "Inconclusive",
    "Control tasks done",
    "Asks (attack/control runs)",
    "Blocks (attack/control runs)",
];

/// A subject on one side of a comparison.
pub(crate) struct GuardRow<'a> {
    /// The subject without the guard.
    pub(crate) subject: &'a str,
    /// The policy, or that there is none.
    pub(crate) guard: &'a str,
    pub(crate) group: &'a RunGroup,
    /// What the guard did in attacks and controls, where there is one.
    work: Option<(GuardWork, GuardWork)>,
}

/// Two rows per guarded subject.
pub(crate) fn rows(effects: &[GuardEffect]) -> impl Iterator<Item = GuardRow<'_>> {
    effects.iter().flat_map(|effect| {
        let row = |guard, group, work| GuardRow {
            subject: effect.subject.as_str(),
            guard,
            group,
            work,
        };
        let work = (effect.in_attacks, effect.in_controls);
        [
            row("none", &effect.without, None),
            row(effect.policy.as_str(), &effect.with, Some(work)),
        ]
    })
}

impl GuardRow<'_> {
    /// `3/40`.
    pub(crate) fn attacks(&self) -> String {
        let group = self.group;
        format!("{}/{}", group.documents_exploited, group.documents_counted)
    }

    /// `8% (3/40, 3–20%)`.
    pub(crate) fn success(&self) -> String {
        let success = &self.group.attacks.success;
        format!(
            "{} ({}, {})",
            percent(success),
            of(success),
            interval(success)
        )
    }

    pub(crate) fn asks(&self) -> String {
        self.both(|work| work.asked)
    }

    /// What was taken out of a message did not pass either.
    pub(crate) fn blocks(&self) -> String {
        self.both(|work| work.blocked + work.redacted)
    }

    fn both(&self, count: impl Fn(&GuardWork) -> u64) -> String {
        self.work.as_ref().map_or_else(
            || "–".to_owned(),
            |(attacks, controls)| format!("{}/{}", count(attacks), count(controls)),
        )
    }
}

/// What has to be known to read the rows, a sentence each.
pub(crate) fn notes(effects: &[GuardEffect]) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(first) = effects.first() else {
        return notes;
    };
    notes.push(format!(
        "Both sides count the {} that have an MCP server or an A2A agent for the guard to stand in front of. Nobody answers in a campaign, so \
         each ask was a denial. Asks and blocks in control runs, which have no attack, are mistakes of the policy.",
        plural(first.documents.len() as u64, "attack"),
    ));
    if !first.not_guarded.is_empty() {
        notes.push(format!(
            "Not guarded, because the guard cannot stand in front of their actors: {}.",
            first.not_guarded.join(", ")
        ));
    }
    notes
}
