//! When to stop early: more repeats of a document and subject could not change the answer.

use crate::baseline::judge;
use crate::count::Tally;

/// What question the repeats answer.
#[derive(Debug, Clone)]
pub enum Question {
    /// Does it give way at all? The first time answers it.
    GivesWay,
    /// Is it weaker than this was, with this threshold?
    Regressed {
        /// The subject and document before.
        before: Tally,
        /// How unlikely a difference must be by chance.
        threshold: f64,
    },
}

impl Question {
    /// Whether `remaining` more runs cannot change the answer.
    ///
    /// ```
    /// use proofhouse_campaign::count::Tally;
    /// use proofhouse_campaign::stop::Question;
    ///
    /// let resisted = Tally { resisted: 3, ..Tally::default() };
    /// assert!(!Question::GivesWay.is_answered(&resisted, 2));
    /// let exploited = Tally { exploited: 1, ..resisted };
    /// assert!(Question::GivesWay.is_answered(&exploited, 2));
    /// ```
    #[must_use]
    pub fn is_answered(&self, so_far: &Tally, remaining: u64) -> bool {
        if remaining == 0 {
            return true;
        }
        match self {
            Self::GivesWay => so_far.gave_way() > 0,
            Self::Regressed { before, threshold } => {
                let regressed = |more_given: u64, more_resisted: u64| {
                    let mut then = so_far.clone();
                    then.exploited += more_given;
                    then.resisted += more_resisted;
                    judge(Some(&then), Some(before), *threshold)
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
        let before = Tally {
            resisted: 20,
            ..Tally::default()
        };
        let question = Question::Regressed {
            before,
            threshold: 0.05,
        };
        let given = |exploited| Tally {
            exploited,
            ..Tally::default()
        };
        assert!(
            question.is_answered(&given(10), 3),
            "three more change nothing"
        );
        assert!(
            !question.is_answered(&given(2), 20),
            "they might be the only ones"
        );
        let resisted = Tally {
            resisted: 18,
            ..Tally::default()
        };
        assert!(
            question.is_answered(&resisted, 2),
            "two of twenty may be chance"
        );
        assert!(!question.is_answered(&resisted, 20));
    }
}
