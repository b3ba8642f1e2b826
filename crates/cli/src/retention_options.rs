//! How long the server keeps things: a flag for each kind, which wins over the operator's file.

use clap::Args;
use proofhouse_campaign::config::InvalidDuration;
use proofhouse_server::engine::EngineRetention;
use proofhouse_tools::operator::{KeepTime, RetentionConfig};

/// How long things are kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct RetentionOptions {
    /// How long a finished task may stay idle (nothing pending, no event subscriptions) before it is ended; a
    /// duration or `forever`, as for all options of this kind [default: 30d]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    end_idle_tasks: Option<KeepTime>,

    /// How long to keep events after they were delivered to all receivers; at least 7 days, during which duplicates
    /// are rejected [default: 30d]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    keep_events: Option<KeepTime>,

    /// How long to keep ended tasks and their data [default: 90d]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    keep_tasks: Option<KeepTime>,

    /// How long to keep the turns of ended tasks [default: as long as the tasks]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    keep_turns: Option<KeepTime>,

    /// How long to keep the traces of tasks [default: 90d]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    keep_traces: Option<KeepTime>,

    /// How long to keep revoked and expired keys [default: 90d]
    #[arg(long, value_name = "DURATION", value_parser = keep_time)]
    keep_keys: Option<KeepTime>,

    /// How long to keep entries of the audit log; a signed checkpoint replaces older ones [default: forever]
    #[arg(long, value_name = "DURATION", value_parser = keep_time, requires = "audit_key")]
    keep_audit: Option<KeepTime>,
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
            (self.keep_audit, file.audit, &mut retention.audit_ms),
        ] {
            if let Some(time) = flag.or(file) {
                *kept = time.milliseconds();
            }
        }
        retention
    }
}

fn keep_time(text: &str) -> Result<KeepTime, InvalidDuration> {
    KeepTime::parse(text).map_err(|_| InvalidDuration::Malformed)
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
            keep_audit: None,
        };
        let file = RetentionConfig {
            events: Some(days(20)),
            tasks: Some(days(5)),
            audit: Some(days(400)),
            ..RetentionConfig::default()
        };
        let kept = flags.retention(&file);
        let day = 86_400_000;
        assert_eq!(kept.rows.events_ms, Some(10 * day));
        assert_eq!(kept.rows.ended_tasks_ms, Some(5 * day));
        assert_eq!(kept.rows.traces_ms, None);
        assert_eq!(kept.audit_ms, Some(400 * day));
        assert_eq!(kept.idle_tasks_ms, EngineRetention::default().idle_tasks_ms);
    }
}
