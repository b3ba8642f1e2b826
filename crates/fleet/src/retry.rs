//! Which runs are made again, how often and after how long: one row per cause.

use std::time::Duration;

use proofhouse_campaign::outcome::InconclusiveReason;
use proofhouse_campaign::result::RunRecord;

/// Workers that may be lost with a run in their hands. A run that takes one more with it counts as failed.
pub const MAX_LOSSES: i64 = 3;

/// How often a run is made again that came to nothing for a reason, and the first pause before it. Each further one is four
/// times as long.
const fn again(reason: InconclusiveReason) -> Option<(i64, Duration)> {
    match reason {
        // Providers that are overloaded, agents that did not come up.
        InconclusiveReason::SubjectFailed => Some((2, Duration::from_secs(5))),
        // Our own side: a port that was taken, a connection that broke.
        InconclusiveReason::AttackFailed => Some((2, Duration::from_secs(1))),
        // It had its time. Once more may help on a machine that was busy.
        InconclusiveReason::TimedOut => Some((1, Duration::from_secs(30))),
        InconclusiveReason::NotDelivered
        | InconclusiveReason::ChannelNotRead
        | InconclusiveReason::ChannelNotProved
        | InconclusiveReason::NoAnswer
        | InconclusiveReason::NoControl
        | InconclusiveReason::ControlNotRun
        | InconclusiveReason::ControlFailed
        | InconclusiveReason::MessageLost
        | InconclusiveReason::NotTheProtocol
        | InconclusiveReason::IndicatorSkipped
        | InconclusiveReason::IndicatorCannotMatch
        | InconclusiveReason::ErrorVerdict
        | InconclusiveReason::Interrupted => None,
    }
}

/// How long to wait before a run is made again; `None` when what it came to stays.
#[must_use]
pub fn pause(record: &RunRecord, retries: i64) -> Option<Duration> {
    // A verdict is one, whatever went wrong beside it.
    if record.outcome.counts() {
        return None;
    }
    let (most, first) = again(record.broken_by?)?;
    if retries >= most {
        return None;
    }
    let factor = 4_u32.saturating_pow(u32::try_from(retries).unwrap_or(0));
    Some(first.saturating_mul(factor))
}
