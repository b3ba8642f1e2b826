//! What a guard changes: the same attacks and control tasks on the same subject, without it and with it, side by side.

use std::collections::BTreeSet;

use proofhouse_subjects::is_guardable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::result::{CampaignResult, DocumentInfo, RunRecord};
use crate::summary::{CampaignSummary, RunGroup};

/// A subject without and with the guard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuardEffect {
    /// The name of the subject without the guard.
    pub subject: String,
    /// Its name with the guard.
    pub guarded: String,
    /// The policy: `stock`, or its file.
    pub policy: String,
    /// The documents that were run with the guard. Only these are counted here, on both sides.
    pub documents: Vec<String>,
    /// Documents that have no server that the guard can stand in front of. Nothing is known of them with the guard.
    pub not_guarded: Vec<String>,
    /// What they came to without it.
    pub without: RunGroup,
    /// What they came to with it.
    pub with: RunGroup,
    /// What the guard did in the attack runs.
    pub in_attacks: GuardWork,
    /// What the guard did in the control runs, which have no attack: each is a mistake of the policy.
    pub in_controls: GuardWork,
}

/// What a guard did in several runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuardWork {
    /// Runs of which it is known.
    pub runs: u64,
    /// Runs in which it asked about, did not let pass or took out something.
    pub disturbed: u64,
    /// Calls that it asked about. Nobody answers in a campaign, so each was denied.
    pub asked: u64,
    /// Other messages and definitions that it did not let pass.
    pub blocked: u64,
    /// Messages that it took something out of.
    pub redacted: u64,
}

impl GuardWork {
    fn of<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> Self {
        let mut work = Self::default();
        for counts in runs.filter_map(|run| run.guard.as_ref()) {
            work.runs += 1;
            work.disturbed += u64::from(counts.stopped() > 0);
            work.asked += counts.asked;
            work.blocked += counts.blocked;
            work.redacted += counts.redacted;
        }
        work
    }
}

impl GuardEffect {
    /// The effects of the guards of a campaign; none where no subject has one.
    #[must_use]
    pub fn of(result: &CampaignResult) -> Vec<Self> {
        let guarded = result.subjects.iter();
        let guarded = guarded.filter_map(|subject| Some((subject, subject.guard.as_ref()?)));
        let effects = guarded.map(|(subject, guard)| {
            let of_guarded = |run: &&RunRecord| run.subject == subject.name;
            let documents: BTreeSet<&str> = result
                .runs
                .iter()
                .filter(of_guarded)
                .map(|run| run.document.as_str())
                .collect();
            let side = |name: &str| {
                let runs = result.runs.iter();
                let of_side = |run: &&RunRecord| {
                    run.subject == name && documents.contains(run.document.as_str())
                };
                let part = CampaignResult {
                    subjects: result
                        .subjects
                        .iter()
                        .filter(|subject| subject.name == name)
                        .cloned()
                        .collect(),
                    runs: runs.filter(of_side).cloned().collect(),
                    probes: Vec::new(),
                    ..result.clone()
                };
                let group = CampaignSummary::counted(&part).subjects.into_iter().next();
                group.unwrap_or_default()
            };
            let of_kind = |twin: bool| {
                let runs = result.runs.iter().filter(of_guarded);
                GuardWork::of(runs.filter(move |run| run.twin == twin))
            };
            let ids = |fits: &dyn Fn(&DocumentInfo) -> bool| {
                let fitting = result.documents.iter().filter(|document| fits(document));
                fitting.map(|document| document.id.clone()).collect()
            };
            Self {
                subject: guard.subject.clone(),
                guarded: subject.name.clone(),
                policy: guard.policy.clone(),
                documents: ids(&|document| documents.contains(document.id.as_str())),
                not_guarded: ids(&|document| !document.is_guardable()),
                without: side(&guard.subject),
                with: side(&subject.name),
                in_attacks: of_kind(false),
                in_controls: of_kind(true),
            }
        });
        effects.collect()
    }
}

impl DocumentInfo {
    /// Whether it has a server that the guard can stand in front of.
    #[must_use]
    pub fn is_guardable(&self) -> bool {
        self.modes.iter().any(is_guardable)
    }
}

impl CampaignResult {
    /// Whether a run only shows what would happen without the guard: the same attack was run with it, and that counts.
    #[must_use]
    pub fn is_without_guard(&self, run: &RunRecord) -> bool {
        let documents = self.documents.iter();
        let mut guardable = documents.filter(|document| document.is_guardable());
        self.is_guarded_elsewhere(&run.subject)
            && guardable.any(|document| document.id == run.document)
    }

    /// Whether the campaign has this subject with a guard, too.
    #[must_use]
    pub fn is_guarded_elsewhere(&self, subject: &str) -> bool {
        let mut guards = self.subjects.iter().filter_map(|one| one.guard.as_ref());
        guards.any(|guard| guard.subject == subject)
    }
}

#[cfg(test)]
mod tests {
    use proofhouse_oatf::Mode;

    use super::*;
    use crate::gates::{FailOn, Gate, gate};
    use crate::outcome::RunOutcome;
    use crate::result::{GuardCounts, GuardInfo};
    use crate::store::tests::{result, run};

    /// A campaign with one document that can be guarded and one that cannot.
    fn guarded(without: RunOutcome, with: RunOutcome, other: RunOutcome) -> CampaignResult {
        let mut made = run("A", "s+guard", 1, with);
        made.guard = Some(GuardCounts {
            asked: 2,
            blocked: 1,
            ..GuardCounts::default()
        });
        let mut result = result(vec![
            run("A", "s", 1, without),
            made,
            run("B", "s", 1, other),
        ]);
        let mut behind = result.subjects[0].clone();
        "s".clone_into(&mut result.subjects[0].name);
        "s+guard".clone_into(&mut behind.name);
        behind.guard = Some(GuardInfo {
            subject: "s".to_owned(),
            policy: "stock".to_owned(),
            digest: String::new(),
            approves_controls: true,
        });
        result.subjects = vec![result.subjects[0].clone(), behind];
        let document = |id: &str, mode: Mode| DocumentInfo {
            id: id.to_owned(),
            modes: vec![mode],
            ..DocumentInfo::default()
        };
        result.documents = vec![
            document("A", Mode::McpServer),
            document("B", Mode::AgUiClient),
        ];
        result
    }

    #[test]
    fn both_sides_count_the_documents_that_were_guarded() {
        use RunOutcome::{Exploited, Resisted};
        let effects = GuardEffect::of(&guarded(Exploited, Resisted, Exploited));
        let [effect] = effects.as_slice() else {
            panic!("{effects:?}");
        };
        assert_eq!(effect.documents, ["A"]);
        assert_eq!(effect.not_guarded, ["B"]);
        assert_eq!(effect.without.attacks.success.some, 1);
        assert_eq!(effect.without.attacks.runs, 1, "B is on no side");
        assert_eq!(effect.with.attacks.success.some, 0);
        let work = effect.in_attacks;
        assert_eq!(
            (work.runs, work.disturbed, work.asked, work.blocked),
            (1, 1, 2, 1)
        );
        assert_eq!(effect.in_controls, GuardWork::default());
    }

    #[test]
    fn what_gets_through_without_the_guard_fails_only_where_there_is_none() {
        use RunOutcome::{Exploited, Resisted};
        let decide = |without, with, other| {
            gate(&guarded(without, with, other), &[FailOn::Partial], None).gate
        };
        assert_eq!(decide(Exploited, Resisted, Resisted), Gate::Passed);
        assert_eq!(decide(Exploited, Exploited, Resisted), Gate::Failed);
        assert_eq!(
            decide(Exploited, Resisted, Exploited),
            Gate::Failed,
            "B is not guarded"
        );
    }
}
