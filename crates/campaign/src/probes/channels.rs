//! What the probes of a campaign have proved, as outcomes ask for it.

use std::collections::BTreeMap;

use proofhouse_oatf::Mode;
use proofhouse_range::{CarrierKind, PayloadField};

use super::{ChannelState, ProbeRecord};

/// A channel: what carries something, in which field, to whom.
type ChannelKey = (CarrierKind, PayloadField, Mode);

/// Which channels the models of subjects read, as far as probes have shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvenChannels(BTreeMap<String, BTreeMap<ChannelKey, ChannelState>>);

impl ProvenChannels {
    /// What these probes have shown.
    #[must_use]
    pub fn new(probes: &[ProbeRecord]) -> Self {
        let mut proven = Self::default();
        for probe in probes {
            let place = (probe.kind, probe.field);
            proven.note(&probe.subject, &probe.mode, place, probe.state.clone());
        }
        proven
    }

    /// Notes what a probe has shown.
    pub fn note(
        &mut self,
        subject: &str,
        mode: &Mode,
        (kind, field): (CarrierKind, PayloadField),
        state: ChannelState,
    ) {
        let channels = self.0.entry(subject.to_owned()).or_default();
        channels.insert((kind, field, mode.clone()), state);
    }

    /// What is known of a field of a kind of carrier that actors of a mode send. A message over AG-UI and one over A2A
    /// are two channels, and so are the description of a tool and its schema.
    #[must_use]
    pub fn over(
        &self,
        subject: &str,
        mode: &Mode,
        (kind, field): (CarrierKind, PayloadField),
    ) -> Option<&ChannelState> {
        self.0.get(subject)?.get(&(kind, field, mode.clone()))
    }

    /// What is known of a field of a kind of carrier, whoever sends it: of several modes, the one that is proved least.
    #[must_use]
    pub fn of(
        &self,
        subject: &str,
        (kind, field): (CarrierKind, PayloadField),
    ) -> Option<&ChannelState> {
        let channels = self.0.get(subject)?.iter();
        let states = channels.filter(|((other, at, _), _)| (*other, *at) == (kind, field));
        states
            .map(|(_, state)| state)
            .min_by_key(|state| match state {
                ChannelState::NotTried { .. } | ChannelState::NotProved { .. } => 0,
                ChannelState::NotRead { .. } => 1,
                ChannelState::Read { .. } => 2,
            })
    }

    /// Whether the model of a subject reads a field of a kind of carrier; `None` where nobody knows.
    #[must_use]
    pub fn is_read(&self, subject: &str, place: (CarrierKind, PayloadField)) -> Option<bool> {
        self.of(subject, place).and_then(ChannelState::is_read)
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
        let kind = (CarrierKind::Message, PayloadField::Text);
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

    #[test]
    fn a_field_proves_nothing_of_another() {
        let mut proven = ProvenChannels::default();
        let read = ChannelState::Read {
            form: String::new(),
        };
        let tools = |field| (CarrierKind::ToolListed, field);
        proven.note("s", &Mode::McpServer, tools(PayloadField::Text), read);
        assert_eq!(proven.is_read("s", tools(PayloadField::Text)), Some(true));
        for other in [
            PayloadField::InputSchema,
            PayloadField::Meta,
            PayloadField::Annotations,
            PayloadField::Title,
        ] {
            assert_eq!(proven.over("s", &Mode::McpServer, tools(other)), None);
        }
    }
}
