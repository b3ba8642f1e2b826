//! How far a campaign is, in lines: one for each run, one for each tenth of the way, and one that is drawn again and again.

use std::time::Duration;

use proofhouse_campaign::engine::CampaignProgress;
use proofhouse_campaign::result::RunRecord;
use proofhouse_source::printable_line;

use crate::text::plural;

/// Whether a run is an attack that got through.
#[must_use]
pub fn got_through(run: &RunRecord) -> bool {
    !run.twin && run.outcome.gave_way()
}

/// The line for a tenth of the way: how many attacks got through until now, and, at the end, how many runs were attacks and
/// controls.
#[must_use]
pub fn tenth_line(
    progress: &CampaignProgress<'_>,
    got_through: usize,
    (attacks, controls): (usize, usize),
) -> String {
    let is_last = progress.done == progress.total;
    let left = progress.left.filter(|_| !is_last);
    let left = left.map(|left| format!(", {} left", clock(left)));
    let kinds = format!(
        " ({}, {})",
        plural(attacks as u64, "attack"),
        plural(controls as u64, "control")
    );
    format!(
        "{:>3}%  {} of {} runs{}, {got_through} got through{}",
        progress.done * 100 / progress.total.max(1),
        progress.done,
        progress.total,
        if is_last { kinds.as_str() } else { "" },
        left.unwrap_or_default(),
    )
}

/// The line that is drawn on a terminal after this run.
#[must_use]
pub fn live_line(progress: &CampaignProgress<'_>, run: &RunRecord) -> String {
    let left = progress.left.map(|left| format!(", {} left", clock(left)));
    format!(
        "{}/{} runs{}  {}",
        progress.done,
        progress.total,
        left.unwrap_or_default(),
        printable_line(&run.id)
    )
}

/// What came of a run.
#[must_use]
pub fn run_line(run: &RunRecord) -> String {
    let what = match (&run.error, run.reason) {
        (Some(error), _) if run.has_failed() => format!("inconclusive: {error}"),
        _ if run.twin && run.outcome.gave_way() => "false alarm".to_owned(),
        _ if run.is_waiting_for_control() => {
            "ended; the result depends on its control run, which is not done yet".to_owned()
        }
        (_, Some(reason)) if run.twin => format!("control: {}", reason.code()),
        _ if run.twin => "control: task done".to_owned(),
        (_, Some(reason)) => format!("{}: {}", run.outcome.word(), reason.code()),
        (_, None) => run.outcome.word().to_owned(),
    };
    format!("{}: {what}", run.id)
}

fn clock(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        seconds => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_called_inconclusive_only_when_it_is() {
        let mut run: RunRecord = serde_json::from_value(serde_json::json!({
            "id": "A-001/mine/1", "document": "A-001", "subject": "mine", "repeat": 1, "twin": false,
            "outcome": "inconclusive", "reason": "control_not_run", "reached": true, "carriers": [1, 1],
            "indicators": [], "warnings": [], "milliseconds": 1, "messages": 1,
        }))
        .unwrap();
        let waiting = run_line(&run);
        assert!(waiting.contains("depends on its control run"), "{waiting}");
        assert!(!waiting.contains("inconclusive"), "{waiting}");
        run.reason = Some(proofhouse_campaign::outcome::InconclusiveReason::ControlFailed);
        assert_eq!(run_line(&run), "A-001/mine/1: inconclusive: control_failed");
    }

    #[test]
    fn times() {
        for (seconds, shown) in [(5, "5 s"), (65, "1:05 min"), (3700, "1:01 h")] {
            assert_eq!(clock(Duration::from_secs(seconds)), shown);
        }
    }
}
