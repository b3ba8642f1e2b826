//! Accepted risks: findings that somebody decided to live with, each for one attack on one subject and until a date.
//! An accepted finding is reported and does not fail a campaign; after its date it fails again.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use proofhouse_source::did_you_mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::result::{CampaignResult, RunRecord};

/// A finding that somebody accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedRisk {
    /// The id of the document, such as `PROOF-001`.
    pub id: String,
    /// The name of the subject.
    pub subject: String,
    /// The last day on which it is accepted, such as `2026-12-31`, in UTC.
    pub until: String,
    /// Why it is accepted.
    pub reason: String,
}

/// What an accepted risk means for one campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// The attack got through, and that is accepted.
    Accepted,
    /// The attack got through, and the date has passed.
    Expired,
    /// The attack was run and did not get through.
    NotFound,
    /// The campaign has no such attack or subject, or no run that proves anything.
    NotRun,
}

/// A text that is no date.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write a date such as 2026-12-31")]
pub struct NotADate;

/// Reads a date, and gives it in the one form it is kept in.
///
/// # Errors
///
/// Returns an error when the text is no date.
pub fn date(text: &str) -> Result<String, NotADate> {
    let is_plain = text.len() == 10 && text.bytes().all(|c| c.is_ascii_digit() || c == b'-');
    let date: Date = text.parse().map_err(|_| NotADate)?;
    is_plain.then(|| date.to_string()).ok_or(NotADate)
}

impl AcceptedRisk {
    /// Whether it is about a run.
    #[must_use]
    pub fn concerns(&self, run: &RunRecord) -> bool {
        !run.twin && run.document == self.id && run.subject == self.subject
    }

    /// Whether it still holds at a time, RFC 3339. A time or a date that cannot be read holds nothing.
    #[must_use]
    pub fn holds_at(&self, time: &str) -> bool {
        let today = time.parse::<Timestamp>();
        let today = today.map(|now| now.to_zoned(TimeZone::UTC).date());
        matches!((today, self.until.parse::<Date>()), (Ok(today), Ok(last)) if today <= last)
    }
}

impl CampaignResult {
    /// The accepted risk that covers a run on the day of the campaign, if one does.
    #[must_use]
    pub fn acceptance_of(&self, run: &RunRecord) -> Option<&AcceptedRisk> {
        self.accepts(&run.document, &run.subject)
            .filter(|_| !run.twin)
    }

    /// The accepted risk that covers a document and a subject on the day of the campaign, if one does.
    #[must_use]
    pub fn accepts(&self, document: &str, subject: &str) -> Option<&AcceptedRisk> {
        let mut accepted = self.accepted.iter();
        accepted.find(|risk| {
            risk.id == document && risk.subject == subject && risk.holds_at(&self.started_at)
        })
    }

    /// What each accepted risk means here, with the number of runs in which the attack got through.
    pub fn acceptances(&self) -> impl Iterator<Item = (&AcceptedRisk, Acceptance, usize)> {
        self.accepted.iter().map(|risk| {
            let runs = self.runs.iter().filter(|run| risk.concerns(run));
            let through = runs.clone().filter(|run| run.outcome.gave_way()).count();
            let is_proved = runs.clone().any(|run| run.outcome.counts());
            let state = if through > 0 && risk.holds_at(&self.started_at) {
                Acceptance::Accepted
            } else if through > 0 {
                Acceptance::Expired
            } else if is_proved {
                Acceptance::NotFound
            } else {
                Acceptance::NotRun
            };
            (risk, state, through)
        })
    }
}

impl Acceptance {
    /// One sentence for people.
    #[must_use]
    pub fn sentence(self, result: &CampaignResult, risk: &AcceptedRisk, runs: usize) -> String {
        let AcceptedRisk {
            id,
            subject,
            until,
            reason,
        } = risk;
        let times = if runs == 1 {
            "1 run".to_owned()
        } else {
            format!("{runs} runs")
        };
        match self {
            Self::Accepted => {
                format!(
                    "Accepted until {until}: {id} on {subject} got through in {times}. Reason: {reason}"
                )
            }
            Self::Expired => format!(
                "Expired on {until}: {id} on {subject} got through in {times} and is no longer accepted. Fix it, or \
                 set a new date in `accepted`"
            ),
            Self::NotFound => format!(
                "{id} on {subject} is accepted until {until}, but did not get through. Remove it from `accepted`"
            ),
            Self::NotRun => {
                let names: Vec<&str> = result
                    .subjects
                    .iter()
                    .map(|one| one.name.as_str())
                    .collect();
                let near = if names.contains(&subject.as_str()) {
                    None
                } else {
                    did_you_mean(subject, names)
                };
                let near = near.map(|near| format!("; did you mean the subject {near}?"));
                format!(
                    "{id} on {subject} is accepted until {until}, but was not tested in this campaign{}",
                    near.unwrap_or_default()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_one_form() {
        assert_eq!(date("2026-12-31").as_deref(), Ok("2026-12-31"));
        for wrong in [
            "2026-02-30",
            "tomorrow",
            "2026-1-2",
            "2026-12-31T00:00",
            "",
            "20261231",
        ] {
            assert_eq!(date(wrong), Err(NotADate), "{wrong}");
        }
    }

    #[test]
    fn the_last_day_counts_and_nothing_unreadable_holds() {
        let risk = AcceptedRisk {
            id: "A".to_owned(),
            subject: "s".to_owned(),
            until: "2026-12-31".to_owned(),
            reason: "r".to_owned(),
        };
        assert!(risk.holds_at("2026-12-31T23:59:59Z"));
        assert!(!risk.holds_at("2027-01-01T00:00:00Z"));
        assert!(!risk.holds_at("soon"));
        let broken = AcceptedRisk {
            until: "never".to_owned(),
            ..risk
        };
        assert!(!broken.holds_at("2026-12-31T23:59:59Z"));
    }
}
