//! The rule that a value in the path of a URL stays in its segment.
//!
//! Whoever writes a path passes its pieces here, the fixed texts and the values, in their order. A segment
//! that holds a value may neither be empty nor lead elsewhere: `.` and `..` do, however they are written.

use percent_encoding::percent_decode_str;

/// Whether a value would climb out of its place, also for a server that decodes twice.
pub fn climbs(value: &str) -> bool {
    let once = percent_decode_str(value).decode_utf8_lossy();
    let twice = percent_decode_str(&once).decode_utf8_lossy();
    [value, &*once, &*twice]
        .iter()
        .any(|text| text.split(['/', '\\']).any(|piece| piece == ".."))
}

/// Watches the segments of a path that is being written. `V` stands for a value, so that a refusal can name it.
#[derive(Debug)]
pub struct PathCheck<V> {
    segment: String,
    value: Option<V>,
}

/// Why a value cannot stand where it would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRefusal<V> {
    /// The last value of the segment.
    pub value: V,
    /// What is wrong with it, for people.
    pub reason: &'static str,
}

impl<V> Default for PathCheck<V> {
    fn default() -> Self {
        Self {
            segment: String::new(),
            value: None,
        }
    }
}

impl<V> PathCheck<V> {
    /// A text that the author of the path wrote.
    ///
    /// # Errors
    ///
    /// Returns an error when it ends a segment whose value cannot stand there.
    pub fn text(&mut self, text: &str) -> Result<(), PathRefusal<V>> {
        let mut pieces = text.split(['/', '\\']);
        self.segment.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            self.end()?;
            self.segment.push_str(piece);
        }
        Ok(())
    }

    /// A value as it is written into the path.
    pub fn value(&mut self, value: V, written: &str) {
        self.segment.push_str(written);
        self.value = Some(value);
    }

    /// The end of a segment, or of the path.
    ///
    /// # Errors
    ///
    /// Returns an error when the segment has a value that cannot stand there.
    pub fn end(&mut self) -> Result<(), PathRefusal<V>> {
        let segment = std::mem::take(&mut self.segment);
        let Some(value) = self.value.take() else {
            return Ok(());
        };
        // As a URL reads it: without tabs and line breaks, and with `%2e` for a dot.
        let segment = segment
            .replace(['\t', '\r', '\n'], "")
            .to_ascii_lowercase()
            .replace("%2e", ".");
        let reason = match segment.as_str() {
            "" => "it is empty, which names another path",
            // Pieces that are harmless alone can climb together.
            whole if whole == "." || climbs(whole) => "it makes a `.` or `..` segment",
            _ => return Ok(()),
        };
        Err(PathRefusal { value, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_in_their_segments() {
        // Texts and values take turns, beginning with a text.
        for (pieces, reason) in [
            (vec!["/a/", "b"], None),
            (vec!["/a/", "b", "/c"], None),
            (vec!["/a/..b", "c"], None),
            (vec!["/a/../b"], None),
            (vec!["/a/", ""], Some("empty")),
            (vec!["/a/", "", "/b"], Some("empty")),
            (vec!["/a/", "."], Some("segment")),
            (vec!["/a/", "..", "/b"], Some("segment")),
            (vec!["/a/.", "."], Some("segment")),
            (vec!["/a/%2e", "."], Some("segment")),
            (vec!["/a/%2E", "", "%2e"], Some("segment")),
            (vec!["/a/", ".", "", "."], Some("segment")),
            (vec!["\\a\\", "..", "\\b"], Some("segment")),
        ] {
            let mut check = PathCheck::default();
            let mut passed = Ok(());
            for (number, piece) in pieces.iter().enumerate() {
                if number % 2 == 0 {
                    passed = passed.and_then(|()| check.text(piece));
                } else {
                    check.value(number, piece);
                }
            }
            let refused = passed.and_then(|()| check.end()).err();
            let told = refused.map(|refusal| refusal.reason);
            assert_eq!(told.is_some(), reason.is_some(), "{pieces:?}");
            assert!(
                told.unwrap_or_default()
                    .contains(reason.unwrap_or_default()),
                "{pieces:?} {told:?}"
            );
        }
    }
}
