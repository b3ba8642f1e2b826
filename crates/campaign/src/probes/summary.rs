//! What people read of the probes: a line per subject.

use super::{ChannelState, ProbeRecord, channel_name};

/// What the probes of each subject have shown, in the order in which the subjects come:
/// `Channels read by mine: tool descriptions, tool results; not read: AG-UI context`.
#[must_use]
pub fn channel_lines(probes: &[ProbeRecord]) -> Vec<String> {
    let mut subjects: Vec<&str> = Vec::new();
    for probe in probes {
        if !subjects.contains(&probe.subject.as_str()) {
            subjects.push(&probe.subject);
        }
    }
    let line = |subject: &&str| {
        let (mut read, mut not_read, mut not_tried) = (Vec::new(), Vec::new(), Vec::new());
        for probe in probes.iter().filter(|probe| probe.subject == **subject) {
            let list = match &probe.state {
                ChannelState::Read { .. } => &mut read,
                ChannelState::NotRead { .. } => &mut not_read,
                ChannelState::NotTried { .. } => &mut not_tried,
            };
            list.push(channel_name(Some(&probe.mode), probe.kind));
        }
        let none = || "none".to_owned();
        let mut text = format!(
            "Channels read by {subject}: {}",
            if read.is_empty() {
                none()
            } else {
                read.join(", ")
            }
        );
        for (label, list) in [("not read", not_read), ("not tried", not_tried)] {
            if !list.is_empty() {
                text.push_str(&format!("; {label}: {}", list.join(", ")));
            }
        }
        text
    };
    subjects.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_oatf::Mode;
    use proofhouse_range::CarrierKind;

    #[test]
    fn a_line_per_subject() {
        let probe = |subject: &str, mode: Mode, kind, state| ProbeRecord {
            subject: subject.to_owned(),
            mode,
            kind,
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
        assert_eq!(
            channel_lines(&probes),
            [
                "Channels read by a: tool descriptions, tool results; not read: AG-UI context",
                "Channels read by b: none; not read: tool descriptions"
            ]
        );
    }
}
