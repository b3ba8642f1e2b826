//! Which channels a subject's model reads, as far as channel probes have shown.

use std::collections::BTreeMap;

use proofhouse_range::CarrierKind;

/// What channel probes have shown: for each subject and kind of carrier, whether the subject's model reads it.
#[derive(Debug, Clone, Default)]
pub struct ProvenChannels(BTreeMap<(String, CarrierKind), bool>);

impl ProvenChannels {
    /// Notes what a probe has shown.
    pub fn note(&mut self, subject: &str, kind: CarrierKind, is_read: bool) {
        self.0.insert((subject.to_owned(), kind), is_read);
    }

    /// Whether the model of a subject reads what comes in this kind of carrier; `None` where nobody has tried.
    #[must_use]
    pub fn is_read(&self, subject: &str, kind: CarrierKind) -> Option<bool> {
        self.0.get(&(subject.to_owned(), kind)).copied()
    }
}
