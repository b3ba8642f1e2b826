//! Finds the id of a message that is too long to be held, or that cannot be read.

use serde_json::Value;

/// Reads a message byte by byte for the member `id` of the outermost object.
#[derive(Debug, Default)]
pub(crate) struct IdFinder {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// Whether a key of the outermost object comes next.
    wants_key: bool,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    is_done: bool,
}

/// No id is longer.
const MAX_ID: usize = 256;

impl IdFinder {
    /// The id in a text.
    pub(super) fn in_text(text: &[u8]) -> Option<Value> {
        let mut finder = Self::default();
        finder.feed(text);
        finder.id()
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.is_done {
                return;
            }
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        let ends_value = !self.in_string && self.depth == 1 && matches!(byte, b',' | b'}');
        if let Some(value) = &mut self.value {
            if ends_value {
                self.is_done = true;
                return;
            }
            value.push(byte);
            if value.len() > MAX_ID {
                self.value = None;
                self.is_done = true;
                return;
            }
        }
        if self.in_string {
            if self.is_escaped {
                self.is_escaped = false;
            } else if byte == b'\\' {
                self.is_escaped = true;
            } else if byte == b'"' {
                self.in_string = false;
                return;
            }
            if self.depth == 1 && self.wants_key && self.key.len() < 8 {
                self.key.push(byte);
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.wants_key {
                    self.key.clear();
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.wants_key = self.depth == 1 && byte == b'{';
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' if self.depth == 1 => self.wants_key = true,
            b':' if self.depth == 1 && self.wants_key => {
                self.wants_key = false;
                if self.key == b"id" {
                    self.value = Some(Vec::new());
                }
            }
            _ => {}
        }
    }

    pub(crate) fn id(&self) -> Option<Value> {
        let value = self.value.as_ref().filter(|_| self.is_done)?;
        let value: Value = serde_json::from_slice(value).ok()?;
        (value.is_string() || value.is_number()).then_some(value)
    }
}
