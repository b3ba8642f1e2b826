//! After the storm: what it did not meet, for want of time or luck, is met alone.
//!
//! With everything going on at once it is chance which cap is met first, and slow machines do less in
//! the same time. So the caps that are missing are met one by one, with nobody else there.

use std::time::{Duration, Instant};

use crate::server::trace_limits;
use crate::{Attack, Targets, rough};

/// Nothing disturbs an attack that is alone; another try is for what is left of those before it.
const TRIES: usize = 3;
/// How long the warnings of the server may be on their way.
const WARNED: Duration = Duration::from_secs(2);

/// Does those attacks again whose cap was not met; the caps that were met by it, as one word.
pub(crate) async fn meet_missing(
    targets: &Targets,
    attacks: impl Iterator<Item = &Attack>,
) -> String {
    let mut met = Vec::new();
    for attack in attacks {
        let Some(cap) = attack.cap.filter(|cap| !targets.tally.has_met(cap)) else {
            continue;
        };
        for _ in 0..TRIES {
            (attack.run)(targets).await;
            let patience = Instant::now() + WARNED;
            while !targets.tally.has_met(cap) && Instant::now() < patience {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if targets.tally.has_met(cap) {
                met.push(cap);
                break;
            }
        }
    }
    if met.is_empty() {
        "none".to_owned()
    } else {
        met.join(",")
    }
}

/// Makes the server warn more often than it keeps warnings, which tells only when it ends.
pub(crate) async fn provoke_warnings(targets: &Targets) {
    let enough = trace_limits().max_warnings as u64 + 1;
    for _ in 0..enough {
        if targets.tally.warnings() >= enough {
            return;
        }
        rough::garbage(targets).await;
    }
}
