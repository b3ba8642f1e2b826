//! Paths into a document, built while walking it and rendered only when a finding needs one.

use std::fmt;

/// How many characters of a key are shown.
const MAX_KEY: usize = 100;

/// One step of a [`DocPath`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathSegment<'a> {
    /// A field of a mapping.
    Key(&'a str),
    /// An item of a sequence.
    Index(usize),
}

/// A path such as `attack.indicators[0].pattern.regex`.
///
/// It is a stack that a walker pushes to and pops from, so that walking a document without
/// findings allocates nothing per field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocPath<'a> {
    segments: Vec<PathSegment<'a>>,
}

impl<'a> DocPath<'a> {
    /// The steps from the root.
    #[must_use]
    pub fn segments(&self) -> &[PathSegment<'a>] {
        &self.segments
    }

    /// Steps into a field or an item.
    pub fn push(&mut self, segment: PathSegment<'a>) {
        self.segments.push(segment);
    }

    /// Steps back out.
    pub fn pop(&mut self) {
        self.segments.pop();
    }

    /// This path with one more key, for a finding about a field of the current node.
    #[must_use]
    pub fn key(&self, key: &'a str) -> Self {
        self.with(PathSegment::Key(key))
    }

    /// This path with one more index.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(PathSegment::Index(index))
    }

    fn with(&self, segment: PathSegment<'a>) -> Self {
        let mut segments = Vec::with_capacity(self.segments.len() + 1);
        segments.extend_from_slice(&self.segments);
        segments.push(segment);
        Self { segments }
    }
}

impl fmt::Display for DocPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.segments.iter().enumerate() {
            match segment {
                PathSegment::Key(key) => {
                    if position > 0 {
                        f.write_str(".")?;
                    }
                    // A hostile document may hold a key of a megabyte and a finding for each of
                    // the thousand things below it.
                    match key.char_indices().nth(MAX_KEY) {
                        Some((cut, _)) => write!(f, "{}…", &key[..cut])?,
                        None => f.write_str(key)?,
                    }
                }
                PathSegment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_keys_and_indices() {
        let mut path = DocPath::default();
        assert_eq!(path.to_string(), "");
        path.push(PathSegment::Key("attack"));
        path.push(PathSegment::Key("impact"));
        path.push(PathSegment::Index(2));
        assert_eq!(path.to_string(), "attack.impact[2]");
        assert_eq!(path.key("x.y").to_string(), "attack.impact[2].x.y");
        assert_eq!(path.index(0).to_string(), "attack.impact[2][0]");
        path.pop();
        assert_eq!(path.to_string(), "attack.impact");
        let long = "é".repeat(101);
        assert_eq!(path.key(&long[2..]).to_string().chars().count(), 14 + 100);
        let shown = path.key(&long).to_string();
        assert!(shown.ends_with("é…") && shown.chars().count() == 14 + 101);
    }
}
