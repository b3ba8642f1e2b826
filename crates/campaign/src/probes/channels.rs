//! What the probes of a campaign have proved, as outcomes ask for it.

use std::collections::BTreeMap;

use proofhouse_oatf::Mode;
use proofhouse_range::CarrierKind;

use super::{ChannelState, ProbeRecord};

/// Which channels the models of subjects read, as far as probes have shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvenChannels(BTreeMap<String, BTreeMap<(CarrierKind, Mode), ChannelState>>);

impl ProvenChannels {
    /// What these probes have shown.
    #[must_use]
    pub fn new(probes: &[ProbeRecord]) -> Self {
        let mut proven = Self::default();
        for probe in probes {
            proven.note(&probe.subject, &probe.mode, probe.kind, probe.state.clone());
        }
        proven
    }

    /// Notes what a probe has shown.
    pub fn note(&mut self, subject: &str, mode: &Mode, kind: CarrierKind, state: ChannelState) {
        let channels = self.0.entry(subject.to_owned()).or_default();
        channels.insert((kind, mode.clone()), state);
    }

    /// What is known of a kind of carrier that actors of a mode send. A message over AG-UI and one over A2A are two
    /// channels.
    #[must_use]
    pub fn over(&self, subject: &str, mode: &Mode, kind: CarrierKind) -> Option<&ChannelState> {
        self.0.get(subject)?.get(&(kind, mode.clone()))
    }

    /// What is known of a kind of carrier, whoever sends it: of several modes, the one that is proved least.
    #[must_use]
    pub fn of(&self, subject: &str, kind: CarrierKind) -> Option<&ChannelState> {
        let channels = self.0.get(subject)?.iter();
        let states = channels.filter(|((other, _), _)| *other == kind);
        states
            .map(|(_, state)| state)
            .min_by_key(|state| match state {
                ChannelState::NotTried { .. } | ChannelState::NotProved { .. } => 0,
                ChannelState::NotRead { .. } => 1,
                ChannelState::Read { .. } => 2,
            })
    }

    /// Whether the model of a subject reads a kind of carrier; `None` where nobody knows.
    #[must_use]
    pub fn is_read(&self, subject: &str, kind: CarrierKind) -> Option<bool> {
        self.of(subject, kind).and_then(ChannelState::is_read)
    }
}

impl ChannelState {
    /// Whether the channel is read; `None` where nobody knows.
    #[must_use]
    pub fn is_read(&self) -> Option<bool> {
        match self {
            Self::Read { .. } => Some(true),
            Self::NotRead { .. } => Some(false),
            Self::NotTried { .. } | Self::NotProved { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_of_one_protocol_proves_nothing_of_another() {
        let mut proven = ProvenChannels::default();
        let kind = CarrierKind::Message;
        assert_eq!(proven.is_read("s", kind), None);
        let read = ChannelState::Read {
            form: String::new(),
        };
        proven.note("s", &Mode::A2aClient, kind, read.clone());
        assert_eq!(proven.is_read("s", kind), Some(true));
        assert_eq!(proven.over("s", &Mode::AgUiClient, kind), None);
        let not_read = ChannelState::NotRead { why: String::new() };
        proven.note("s", &Mode::AgUiClient, kind, not_read);
        assert_eq!(proven.is_read("s", kind), Some(false));
        assert_eq!(proven.over("s", &Mode::A2aClient, kind), Some(&read));
        let not_tried = ChannelState::NotTried { why: String::new() };
        proven.note("s", &Mode::McpClient, kind, not_tried);
        assert_eq!(proven.is_read("s", kind), None);
        assert_eq!(proven.is_read("other", kind), None);
    }
}
