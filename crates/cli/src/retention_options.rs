//! How long the server keeps things: a flag for each kind, which wins over the operator's file.

use clap::Args;
use proofhouse_campaign::config::NotDuration;
use proofhouse_server::engine::EngineRetention;
use proofhouse_tools::operator::{KeepTime, RetentionConfig};

/// How long things are kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct RetentionOptions {
    /// How long a finished task stays idle before it ends: nothing is pending, and it listens to nothing; a duration or `forever`
    /// [default: 30d]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    end_idle_tasks: Option<KeepTime>,

    /// How long events are kept after everybody has got them; at least 7 days, for which copies of them are kept out
    /// [default: 30d]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    keep_events: Option<KeepTime>,

    /// How long ended tasks are kept, with all that is theirs [default: 90d]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    keep_tasks: Option<KeepTime>,

    /// How long the turns of ended tasks are kept [default: as long as the tasks]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    keep_turns: Option<KeepTime>,

    /// How long traces of tasks are kept [default: 90d]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    keep_traces: Option<KeepTime>,

    /// How long keys are kept that were revoked or have expired [default: 90d]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    keep_keys: Option<KeepTime>,
}

impl RetentionOptions {
    /// How long things are kept, where the operator's file says this.
    pub(crate) fn retention(&self, file: &RetentionConfig) -> EngineRetention {
        let mut retention = EngineRetention::default();
        let rows = &mut retention.rows;
        for (flag, file, kept) in [
            (
                self.end_idle_tasks,
                file.idle_tasks,
                &mut retention.idle_tasks_ms,
            ),
            (self.keep_events, file.events, &mut rows.events_ms),
            (self.keep_tasks, file.tasks, &mut rows.ended_tasks_ms),
            (self.keep_turns, file.turns, &mut rows.turns_ms),
            (self.keep_traces, file.traces, &mut rows.traces_ms),
            (self.keep_keys, file.keys, &mut rows.keys_ms),
        ] {
            if let Some(time) = flag.or(file) {
                *kept = time.milliseconds();
            }
        }
        retention
    }
}

fn keep_time(text: &str) -> Result<KeepTime, NotDuration> {
    KeepTime::parse(text).map_err(|_| NotDuration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn flags_win_over_the_file() {
        let days = |days: u64| KeepTime::For(Duration::from_secs(days * 86_400));
        let flags = RetentionOptions {
            end_idle_tasks: None,
            keep_events: Some(days(10)),
            keep_tasks: None,
            keep_turns: None,
            keep_traces: Some(KeepTime::Forever),
            keep_keys: None,
        };
        let file = RetentionConfig {
            events: Some(days(20)),
            tasks: Some(days(5)),
            ..RetentionConfig::default()
        };
        let kept = flags.retention(&file);
        let day = 86_400_000;
        assert_eq!(kept.rows.events_ms, Some(10 * day));
        assert_eq!(kept.rows.ended_tasks_ms, Some(5 * day));
        assert_eq!(kept.rows.traces_ms, None);
        assert_eq!(kept.idle_tasks_ms, EngineRetention::default().idle_tasks_ms);
    }
}
