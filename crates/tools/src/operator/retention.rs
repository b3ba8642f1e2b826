//! The `retention` block: how long a server keeps each kind of thing.

use std::time::Duration;

use proofhouse_source::NodeRef;
use proofhouse_source::format::{DurationError, Durations, FormatReader};

use super::fields::RETENTION;
use super::reader::OperatorReader;

/// What stands for no end.
const FOREVER: &str = "forever";

/// How long something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepTime {
    /// This long.
    For(Duration),
    /// Without an end.
    Forever,
}

impl KeepTime {
    /// Reads a duration or `forever`.
    ///
    /// # Errors
    ///
    /// Returns an error when it is neither.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        if text == FOREVER {
            return Ok(Self::Forever);
        }
        Durations::WHOLE_SECONDS.parse(text).map(Self::For)
    }

    /// The milliseconds, unless there is no end.
    #[must_use]
    pub fn milliseconds(self) -> Option<i64> {
        match self {
            Self::For(time) => Some(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)),
            Self::Forever => None,
        }
    }
}

/// How long things are kept, as far as the operator says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionConfig {
    /// Finished tasks, until they end.
    pub idle_tasks: Option<KeepTime>,
    /// Events that everybody has got.
    pub events: Option<KeepTime>,
    /// Ended tasks.
    pub tasks: Option<KeepTime>,
    /// Turns of ended tasks.
    pub turns: Option<KeepTime>,
    /// Traces.
    pub traces: Option<KeepTime>,
    /// Keys that do not work any more.
    pub keys: Option<KeepTime>,
    /// Entries of the audit log.
    pub audit: Option<KeepTime>,
}

/// Reads the block.
pub(super) fn read<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> RetentionConfig {
    let Some(mut fields) = reader.fields(node, &RETENTION) else {
        return RetentionConfig::default();
    };
    let mut time = |key| fields.read(key, |reader, node| keep_time(node, reader));
    RetentionConfig {
        idle_tasks: time("idle_tasks"),
        events: time("events"),
        tasks: time("tasks"),
        turns: time("turns"),
        traces: time("traces"),
        keys: time("keys"),
        audit: time("audit"),
    }
}

fn keep_time<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> Option<KeepTime> {
    let text = reader.text(node)?;
    match KeepTime::parse(&text) {
        Ok(time) => Some(time),
        Err(_) => {
            reader.error(
                "OC-005",
                "this is not a time".to_owned(),
                Some("write it as `30d` or `12h`, or write `forever`".to_owned()),
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::OperatorConfig;

    #[test]
    fn each_kind_has_its_time() {
        let text = "retention: {events: 30d, tasks: 12h, turns: forever, audit: 400d}\n";
        let (config, findings) = OperatorConfig::read(text, &|_| None);
        assert_eq!(findings, []);
        let day = Duration::from_secs(86_400);
        let wanted = RetentionConfig {
            events: Some(KeepTime::For(30 * day)),
            tasks: Some(KeepTime::For(day / 2)),
            turns: Some(KeepTime::Forever),
            audit: Some(KeepTime::For(400 * day)),
            ..RetentionConfig::default()
        };
        assert_eq!(config.retention, wanted);
        assert_eq!(KeepTime::For(day).milliseconds(), Some(86_400_000));
        for wrong in ["retention: {events: soon}", "retention: {event: 30d}"] {
            let (_, findings) = OperatorConfig::read(wrong, &|_| None);
            assert_eq!(findings.len(), 1, "{wrong}");
        }
    }
}
