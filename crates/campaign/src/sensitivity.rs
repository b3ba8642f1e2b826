//! What the gate on regressions can find with so many repeats, and how many it takes to find more.

use crate::config::MAX_REPEATS;
use crate::plan::Plan;
use crate::result::{CampaignResult, SubjectInfo};
use crate::statistics::{ComparisonDesign, USUAL_POWER};
use crate::summary::CampaignSummary;

/// The rate that is assumed before where no baseline says it.
const ASSUMED_RATE: f64 = 0.05;

/// A comparison with a baseline, before it is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensitivity {
    /// Documents that are compared.
    pub documents: u64,
    /// Subjects, which share the error.
    pub subjects: u64,
    /// Runs of each document now.
    pub repeats: u64,
    /// Runs of each document in the baseline; as many as now where there is none yet.
    pub before: u64,
    /// The attack success rate of the baseline, or what is assumed of it.
    pub rate: f64,
    /// Documents of which runs of the baseline disagree. Each of them could raise a false alarm, and so makes it harder to be
    /// sure of another.
    pub flaky: u64,
    /// How likely a false alarm of the whole gate may be.
    pub threshold: f64,
}

impl Sensitivity {
    /// The comparison that a plan leads to, with a baseline or with one that is made by the same plan.
    #[must_use]
    pub fn of(
        plan: &Plan,
        subjects: &[SubjectInfo],
        before: Option<&CampaignResult>,
        threshold: f64,
    ) -> Self {
        let alone = Self {
            documents: plan.documents.len() as u64,
            subjects: subjects.len() as u64,
            repeats: u64::from(plan.repeats),
            before: u64::from(plan.repeats),
            rate: ASSUMED_RATE,
            flaky: 0,
            threshold,
        };
        let Some(result) = before else {
            return alone;
        };
        let is_planned = |id: &str| plan.documents.iter().any(|one| one.info.id == id);
        let is_shared = |name: &str| subjects.iter().any(|one| one.name == name);
        let summary = CampaignSummary::of(result);
        let shared = summary.cells.iter().filter(|cell| {
            let runs = cell.attacks.success.all;
            runs > 0 && is_planned(&cell.document) && is_shared(&cell.subject)
        });
        let mut per_subject: Vec<(&str, u64, u64)> = Vec::new();
        let (mut some, mut all, mut cells) = (0, 0, 0);
        for cell in shared {
            some += cell.attacks.success.some;
            all += cell.attacks.success.all;
            cells += 1;
            let place = per_subject
                .iter()
                .position(|(name, _, _)| *name == cell.subject.as_str());
            let place = place.unwrap_or_else(|| {
                per_subject.push((&cell.subject, 0, 0));
                per_subject.len() - 1
            });
            per_subject[place].1 += 1;
            per_subject[place].2 += u64::from(cell.flaky);
        }
        let fewest = per_subject.iter().map(|(_, documents, _)| *documents).min();
        let flaky = per_subject.iter().map(|(_, _, flaky)| *flaky).max();
        Self {
            documents: fewest.unwrap_or(0),
            subjects: per_subject.len() as u64,
            // Some runs may have come to nothing, so it is the mean that counts.
            before: all.checked_div(cells).unwrap_or(0),
            rate: if all == 0 {
                ASSUMED_RATE
            } else {
                some as f64 / all as f64
            },
            flaky: flaky.unwrap_or(0),
            ..alone
        }
    }

    /// The least rate to which the rise of a single document is found, if any is.
    #[must_use]
    pub fn least_of_one(&self) -> Option<f64> {
        self.one().least_found(self.rate, USUAL_POWER)
    }

    /// The least rate to which the rise of all documents is found, if any is.
    #[must_use]
    pub fn least_of_all(&self) -> Option<f64> {
        self.all().least_found(self.rate, USUAL_POWER)
    }

    /// The repeats, in both campaigns, that find a rise by so much in a single document, if that is possible.
    #[must_use]
    pub fn repeats_for_one(&self, rise: f64) -> Option<u64> {
        let to = self.rate + rise;
        let one = self.one();
        one.repeats_to_find(self.rate, to, USUAL_POWER, MAX_REPEATS)
    }

    /// The repeats, in both campaigns, that find a rise by so much in all documents, if that is possible.
    #[must_use]
    pub fn repeats_for_all(&self, rise: f64) -> Option<u64> {
        let to = self.rate + rise;
        let all = self.all();
        all.repeats_to_find(self.rate, to, USUAL_POWER, MAX_REPEATS)
    }

    fn one(&self) -> ComparisonDesign {
        let all = self.all();
        ComparisonDesign {
            documents: self.documents.min(1),
            level: all.level / (1 + self.flaky) as f64,
            ..all
        }
    }

    fn all(&self) -> ComparisonDesign {
        ComparisonDesign {
            documents: self.documents,
            now: self.repeats,
            before: self.before,
            // The other half is for the documents one by one; subjects share both.
            level: self.threshold / 2.0 / self.subjects.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: Sensitivity = Sensitivity {
        documents: 59,
        subjects: 1,
        repeats: 5,
        before: 5,
        rate: 0.05,
        flaky: 0,
        threshold: 0.05,
    };

    #[test]
    fn more_repeats_find_less() {
        let with = |repeats| Sensitivity {
            repeats,
            before: repeats,
            ..LIBRARY
        };
        assert_eq!(with(1).least_of_one(), None, "one run says nothing");
        let found = [5, 10, 50].map(|repeats| with(repeats).least_of_one().unwrap());
        assert!(found.is_sorted_by(|one, next| one > next), "{found:?}");
        let found = [1, 5, 50].map(|repeats| with(repeats).least_of_all().unwrap());
        assert!(found.is_sorted_by(|one, next| one > next), "{found:?}");
    }

    #[test]
    fn the_repeats_it_names_are_enough() {
        for rise in [0.1, 0.2, 0.5, 0.9] {
            let repeats = LIBRARY.repeats_for_one(rise).unwrap();
            let then = Sensitivity {
                repeats,
                before: repeats,
                ..LIBRARY
            };
            assert!(then.least_of_one().unwrap() <= 0.05 + rise + 1e-6);
            assert!(LIBRARY.repeats_for_all(rise).unwrap() <= repeats);
        }
        assert_eq!(LIBRARY.repeats_for_one(0.0001), None);
    }

    #[test]
    fn what_cannot_be_compared_finds_nothing() {
        let nothing = Sensitivity {
            documents: 0,
            before: 0,
            ..LIBRARY
        };
        assert_eq!(nothing.least_of_one(), None);
        assert_eq!(nothing.least_of_all(), None);
        assert_eq!(nothing.repeats_for_one(0.5), None);
    }

    #[test]
    fn others_that_waver_make_it_harder() {
        let wavering = Sensitivity {
            flaky: 20,
            repeats: 10,
            before: 10,
            ..LIBRARY
        };
        let steady = Sensitivity {
            flaky: 0,
            ..wavering
        };
        assert!(wavering.least_of_one() > steady.least_of_one());
    }
}
