//! Notes: texts with numbers, kept until the service ends.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{MAX_KEPT, MAX_NOTE_BYTES};

/// All notes.
#[derive(Debug, Default)]
pub(super) struct DemoNotes {
    texts: BTreeMap<u64, String>,
    last: u64,
}

impl DemoNotes {
    /// Notes that hold a word.
    pub(super) fn find(&self, word: &str) -> Value {
        let found = self.texts.iter().filter(|(_, text)| text.contains(word));
        found
            .map(|(id, text)| json!({"id": id, "text": text}))
            .collect()
    }

    pub(super) fn get(&self, id: u64) -> Option<Value> {
        let text = self.texts.get(&id)?;
        Some(json!({"id": id, "text": text}))
    }

    /// Adds a note; nothing if it is too long or there are too many.
    pub(super) fn add(&mut self, text: &str) -> Option<Value> {
        if text.len() > MAX_NOTE_BYTES || self.texts.len() >= MAX_KEPT {
            return None;
        }
        self.last += 1;
        self.texts.insert(self.last, text.to_owned());
        self.get(self.last)
    }

    pub(super) fn remove(&mut self, id: u64) -> bool {
        self.texts.remove(&id).is_some()
    }
}
