//! What people read of the probes: a line per subject.

use super::{ChannelState, ProbeRecord, channel_name};

/// What the probes of one subject have shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelLine {
    /// The name of the subject.
    pub subject: String,
    /// Its channels, in words of ours: `tool descriptions, tool results; not read: AG-UI context`.
    pub channels: String,
}

impl std::fmt::Display for ChannelLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Channels read by {}: {}", self.subject, self.channels)
    }
}

/// What the probes have shown, a line per subject, in the order in which they come.
#[must_use]
pub fn channel_lines(probes: &[ProbeRecord]) -> Vec<ChannelLine> {
    let mut subjects: Vec<&str> = Vec::new();
    for probe in probes {
        if !subjects.contains(&probe.subject.as_str()) {
            subjects.push(&probe.subject);
        }
    }
    let line = |subject: &str| {
        let (mut read, mut not_read) = (Vec::new(), Vec::new());
        let (mut not_proved, mut not_tried) = (Vec::new(), Vec::new());
        for probe in probes.iter().filter(|probe| probe.subject == subject) {
            let list = match &probe.state {
                ChannelState::Read { .. } => &mut read,
                ChannelState::NotRead { .. } => &mut not_read,
                ChannelState::NotProved { .. } => &mut not_proved,
                ChannelState::NotTried { .. } => &mut not_tried,
            };
            list.push(channel_name(Some(&probe.mode), probe.kind, probe.field));
        }
        if read.is_empty() {
            read.push("none".to_owned());
        }
        let mut channels = read.join(", ");
        let rest = [
            ("not read", not_read),
            ("not proved", not_proved),
            ("not tried", not_tried),
        ];
        for (label, list) in rest {
            if !list.is_empty() {
                channels.push_str(&format!("; {label}: {}", list.join(", ")));
            }
        }
        ChannelLine {
            subject: subject.to_owned(),
            channels,
        }
    };
    subjects.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_oatf::Mode;
    use proofhouse_range::CarrierKind;

    #[test]
    fn a_line_per_subject() {
        let probe = |subject: &str, mode: Mode, kind, state| ProbeRecord {
            depth: 0,
            subject: subject.to_owned(),
            mode,
            kind,
            field: proofhouse_range::PayloadField::Text,
            state,
            attempts: 1,
            milliseconds: 1,
            tokens: None,
            traces: Vec::new(),
        };
        let read = || ChannelState::Read {
            form: String::new(),
        };
        let not_read = || ChannelState::NotRead { why: String::new() };
        let probes = [
            probe("a", Mode::McpServer, CarrierKind::ToolListed, read()),
            probe("b", Mode::McpServer, CarrierKind::ToolListed, not_read()),
            probe("a", Mode::McpServer, CarrierKind::ToolResponse, read()),
            probe("a", Mode::AgUiClient, CarrierKind::Context, not_read()),
        ];
        let lines = channel_lines(&probes);
        assert_eq!(
            lines.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "Channels read by a: tool descriptions, tool results; not read: AG-UI context",
                "Channels read by b: none; not read: tool descriptions"
            ]
        );
    }
}
