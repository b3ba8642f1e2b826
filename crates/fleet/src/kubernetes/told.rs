//! What people are told while workers work: how far the campaign is, and each trouble once.

use std::collections::BTreeSet;

use super::view::JobView;

/// How many troubles are told; a cluster with more has one cause.
const MAX_TROUBLES: usize = 20;

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

/// Remembers what was told.
#[derive(Debug, Default)]
pub struct ProgressTeller {
    troubles: BTreeSet<(String, String)>,
    left_out: bool,
    tenth: u64,
    most_ready: u64,
}

impl ProgressTeller {
    /// What is new.
    pub fn hear(&mut self, view: &JobView, standing: Option<CampaignStanding>) -> Vec<String> {
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
            if tenth > self.tenth {
                self.tenth = tenth;
                lines.push(format!("{}%: {done} of {total} runs", tenth * 10));
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
        let mut teller = ProgressTeller::default();
        let first = teller.hear(&view(vec![trouble("Pod a", "x")], 0), standing(0));
        assert_eq!(first, ["warning: Pod a: ErrImagePull: x"]);
        // What comes and goes is the same trouble.
        let again = vec![trouble("Pod a", "y"), trouble("Pod b", "x")];
        let second = teller.hear(&view(again, 2), standing(7));
        assert_eq!(
            second,
            [
                "warning: Pod b: ErrImagePull: x",
                "Workers running: 2",
                "20%: 7 of 30 runs"
            ]
        );
        assert!(teller.hear(&view(vec![], 1), standing(8)).is_empty());
        let many = (0..100).map(|n| trouble(&format!("Pod {n}"), "x"));
        let told = teller.hear(&view(many.collect(), 2), None);
        assert_eq!(told.len(), MAX_TROUBLES - 2 + 1);
        let done = teller.hear(&view(vec![], 2), standing(30));
        assert_eq!(done, ["100%: 30 of 30 runs"]);
    }
}
