//! Whether acknowledged work goes on, above the list of tasks: what has waited for the longest, and whether that is too long.

use std::time::Duration;

use maud::{Markup, html};

use super::timeline::duration;
use crate::engine::EngineProgress;

/// How work goes on, for whoever may see all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownProgress {
    seen: EngineProgress,
    limit: Duration,
}

impl ShownProgress {
    pub(super) fn new(seen: EngineProgress, limit: Duration) -> Self {
        Self { seen, limit }
    }

    /// What waits for too long, if something does.
    pub(super) fn stalled(&self) -> Option<String> {
        self.seen.stalled(self.limit)
    }

    pub(super) fn shown(&self) -> Markup {
        let waits = |time: Option<Duration>| match time {
            Some(time) => duration(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)),
            None => "none".to_owned(),
        };
        let rows = [
            ("Oldest waiting event", waits(self.seen.oldest_event)),
            ("Oldest waiting command", waits(self.seen.oldest_command)),
            ("Leases without a worker", self.seen.idle_leases.to_string()),
        ];
        html! {
            @if let Some(stalled) = self.stalled() {
                p.alert.tone-bad role="alert" { "Work is stuck, and /v1/ready says so: " (stalled) "." }
            }
            dl.totals {
                @for (name, value) in rows { div { dt { (name) } dd { (value) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_told_and_too_long_is_an_alert() {
        let seen = EngineProgress {
            oldest_event: Some(Duration::from_secs(61)),
            ..EngineProgress::default()
        };
        let well = ShownProgress::new(seen, Duration::from_secs(62));
        let text = well.shown().into_string();
        assert!(!text.contains("alert"), "{text}");
        assert!(text.contains("Oldest waiting event"), "{text}");
        let stuck = ShownProgress::new(seen, Duration::from_secs(60));
        let text = stuck.shown().into_string();
        assert!(text.contains("role=\"alert\""), "{text}");
        assert!(text.contains("an acknowledged event has waited for 61 s"));
    }
}
