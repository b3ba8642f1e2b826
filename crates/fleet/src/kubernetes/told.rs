//! What people are told while workers work: how far the campaign is, and each trouble once.

use std::collections::BTreeSet;
use std::time::Duration;

use proofhouse_store::Store;

use super::view::JobView;

/// How many troubles are told; a cluster with more has one cause.
const MAX_TROUBLES: usize = 20;

/// How long nothing is told of the runs at most.
const SILENCE: Duration = Duration::from_secs(60);

/// How far a campaign is, as its store says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CampaignStanding {
    /// Runs that are done.
    pub done: u64,
    /// Runs that it has.
    pub total: u64,
    /// Whether nobody works on it any more.
    pub is_over: bool,
}

impl CampaignStanding {
    /// How far a campaign is, if the store answers.
    pub async fn read(store: &Store, campaign: i64) -> Option<Self> {
        let pulse = store.campaign_pulse(campaign).await.ok()?;
        Some(Self {
            done: u64::try_from(pulse.done).unwrap_or_default(),
            total: u64::try_from(pulse.total).unwrap_or_default(),
            is_over: pulse.state.is_over(),
        })
    }
}

/// Remembers what was told.
#[derive(Debug, Default)]
pub struct ProgressTeller {
    troubles: BTreeSet<(String, String)>,
    left_out: bool,
    tenth: u64,
    most_ready: u64,
    /// When the runs were told of last, and how many were done then.
    runs_told: Option<(Duration, u64)>,
}

impl ProgressTeller {
    /// What is new, so long after the workers were started.
    pub fn hear(
        &mut self,
        view: &JobView,
        standing: Option<CampaignStanding>,
        at: Duration,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        for trouble in &view.troubles {
            let key = (trouble.object.clone(), trouble.reason.clone());
            if self.troubles.contains(&key) {
                continue;
            }
            if self.troubles.len() < MAX_TROUBLES {
                let (object, reason) = (&trouble.object, &trouble.reason);
                lines.push(format!("warning: {object}: {reason}: {}", trouble.message));
                self.troubles.insert(key);
            } else if !std::mem::replace(&mut self.left_out, true) {
                lines.push(
                    "warning: there are more troubles; `kubectl get events` has them".to_owned(),
                );
            }
        }
        if view.ready > self.most_ready {
            self.most_ready = view.ready;
            lines.push(format!("Workers running: {}", view.ready));
        }
        if let Some(standing) = standing.filter(|standing| standing.total > 0) {
            let CampaignStanding { done, total, .. } = standing;
            let tenth = done.saturating_mul(10) / total;
            let (since, before) = *self.runs_told.get_or_insert((at, done));
            let silent = at.saturating_sub(since);
            if tenth > self.tenth {
                self.tenth = tenth;
                self.runs_told = Some((at, done));
                lines.push(format!("{}%: {done} of {total} runs", tenth * 10));
            } else if silent >= SILENCE {
                self.runs_told = Some((at, done));
                let rate = done.saturating_sub(before).saturating_mul(60) / silent.as_secs().max(1);
                lines.push(format!("{done} of {total} runs, {rate} per minute"));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::PodTrouble;

    #[test]
    fn everything_is_told_once() {
        let trouble = |object: &str, message: &str| PodTrouble {
            object: object.to_owned(),
            reason: "ErrImagePull".to_owned(),
            message: message.to_owned(),
        };
        let view = |troubles, ready| JobView {
            ready,
            troubles,
            ..JobView::default()
        };
        let standing = |done| {
            Some(CampaignStanding {
                done,
                total: 30,
                is_over: false,
            })
        };
        let at = Duration::from_secs;
        let mut teller = ProgressTeller::default();
        let first = teller.hear(&view(vec![trouble("Pod a", "x")], 0), standing(0), at(0));
        assert_eq!(first, ["warning: Pod a: ErrImagePull: x"]);
        // What comes and goes is the same trouble.
        let again = vec![trouble("Pod a", "y"), trouble("Pod b", "x")];
        let second = teller.hear(&view(again, 2), standing(7), at(1));
        assert_eq!(
            second,
            [
                "warning: Pod b: ErrImagePull: x",
                "Workers running: 2",
                "20%: 7 of 30 runs"
            ]
        );
        let quiet = teller.hear(&view(vec![], 1), standing(8), at(60));
        assert!(quiet.is_empty(), "{quiet:?}");
        // Nobody waits for longer than a minute.
        let minute = teller.hear(&view(vec![], 1), standing(8), at(61));
        assert_eq!(minute, ["8 of 30 runs, 1 per minute"]);
        let stuck = teller.hear(&view(vec![], 1), standing(8), at(200));
        assert_eq!(stuck, ["8 of 30 runs, 0 per minute"]);
        let many = (0..100).map(|n| trouble(&format!("Pod {n}"), "x"));
        let told = teller.hear(&view(many.collect(), 2), None, at(300));
        assert_eq!(told.len(), MAX_TROUBLES - 2 + 1);
        let done = teller.hear(&view(vec![], 2), standing(30), at(301));
        assert_eq!(done, ["100%: 30 of 30 runs"]);
    }
}
