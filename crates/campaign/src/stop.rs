//! When to stop early: more repeats of a document and subject could not change the answer.

use std::collections::HashMap;

use crate::baseline::judge;
use crate::plan::Plan;
use crate::result::{CampaignResult, SubjectInfo};
use crate::statistics::Rate;
use crate::summary::CampaignSummary;

/// What question the repeats answer.
#[derive(Debug, Clone)]
pub enum StopQuestion {
    /// Does it give way at all? The first time answers it.
    GivesWay,
    /// Is it weaker than this was, with this threshold?
    Regressed {
        /// How often it gave way before.
        before: Rate,
        /// How unlikely a difference must be by chance.
        threshold: f64,
    },
}

/// What the repeats of each document (by its id) and subject (by its name) are to answer. Where only regressions count,
/// that is whether it is weaker than in the earlier result, with the threshold beside it; otherwise, and where that
/// does not have it, whether it gives way at all.
#[must_use]
pub fn questions(
    plan: &Plan,
    subjects: &[SubjectInfo],
    regressions: Option<(&CampaignResult, f64)>,
) -> HashMap<(String, String), StopQuestion> {
    let before = regressions.map(|(before, threshold)| (CampaignSummary::of(before), threshold));
    let mut questions = HashMap::new();
    for document in &plan.documents {
        for subject in subjects {
            let id = document.info.id.as_str();
            let before = before.as_ref().and_then(|(before, threshold)| {
                let cell = before.cell(id, &subject.name)?;
                Some((cell.attacks.success, *threshold))
            });
            let question = match before {
                Some((before, threshold)) => StopQuestion::Regressed { before, threshold },
                None => StopQuestion::GivesWay,
            };
            questions.insert((id.to_owned(), subject.name.clone()), question);
        }
    }
    questions
}

impl StopQuestion {
    /// Whether `remaining` more runs cannot change the answer, when it gave way `gave_way` times so far and
    /// resisted `resisted` times.
    ///
    /// ```
    /// use proofhouse_campaign::stop::StopQuestion;
    ///
    /// assert!(!StopQuestion::GivesWay.is_answered(0, 3, 2));
    /// assert!(StopQuestion::GivesWay.is_answered(1, 3, 2));
    /// ```
    #[must_use]
    pub fn is_answered(&self, gave_way: u64, resisted: u64, remaining: u64) -> bool {
        if remaining == 0 {
            return true;
        }
        match self {
            Self::GivesWay => gave_way > 0,
            Self::Regressed { before, threshold } => {
                let regressed = |more_given: u64, more_resisted: u64| {
                    let some = gave_way + more_given;
                    let then = Rate::new(some, some + resisted + more_resisted);
                    judge(Some(then), Some(*before), *threshold)
                        .0
                        .is_regression()
                };
                let now = regressed(0, 0);
                // Runs may also come to nothing, so every smaller number of them is looked at, too.
                (1..=remaining)
                    .all(|made| (0..=made).all(|given| regressed(given, made - given) == now))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regression_is_settled_when_nothing_can_undo_it() {
        let question = StopQuestion::Regressed {
            before: Rate::new(0, 20),
            threshold: 0.05,
        };
        assert!(question.is_answered(10, 0, 3), "three more change nothing");
        assert!(
            !question.is_answered(2, 0, 20),
            "they might be the only ones"
        );
        assert!(
            question.is_answered(0, 18, 2),
            "two of twenty may be chance"
        );
        assert!(!question.is_answered(0, 18, 20));
    }
}
