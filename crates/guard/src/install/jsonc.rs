//! JSON with comments and trailing commas, as clients keep their configuration: where everything stands, so that an edit
//! changes nothing else.

use std::ops::Range;

use serde_json::Value;

/// How deep a configuration may nest.
const MAX_DEPTH: usize = 64;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonNode {
    pub(super) span: Range<usize>,
    pub(super) kind: JsonKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonKind {
    Object(Vec<(String, JsonNode)>),
    Array(Vec<JsonNode>),
    Scalar(Value),
}

/// Why a text is no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ConfigSyntax {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: &'static str,
}

impl JsonNode {
    /// The last member of this name: the one that clients use.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let members = self.members()?.iter().rev();
        members
            .into_iter()
            .find(|(name, _)| name == key)
            .map(|(_, node)| node)
    }

    pub(super) fn members(&self) -> Option<&[(String, Self)]> {
        match &self.kind {
            JsonKind::Object(members) => Some(members),
            JsonKind::Array(_) | JsonKind::Scalar(_) => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            JsonKind::Scalar(value) => value.as_str(),
            JsonKind::Object(_) | JsonKind::Array(_) => None,
        }
    }

    /// The texts of a list; `None` where something else is in it.
    pub(super) fn texts(&self) -> Option<Vec<String>> {
        match &self.kind {
            JsonKind::Array(items) => items
                .iter()
                .map(|item| item.text().map(str::to_owned))
                .collect(),
            JsonKind::Object(_) | JsonKind::Scalar(_) => None,
        }
    }
}

/// Reads a configuration.
pub(super) fn parse(text: &str) -> Result<JsonNode, ConfigSyntax> {
    let mut parser = JsonParser { text, at: 0 };
    if text.starts_with('\u{feff}') {
        parser.at = '\u{feff}'.len_utf8();
    }
    let node = parser.value(0)?;
    parser.space()?;
    if parser.at < text.len() {
        return Err(parser.wrong("there is more after the end"));
    }
    Ok(node)
}

struct JsonParser<'t> {
    text: &'t str,
    at: usize,
}

impl JsonParser<'_> {
    fn wrong(&self, reason: &'static str) -> ConfigSyntax {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        ConfigSyntax {
            line: before.matches('\n').count() + 1,
            reason,
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips blanks and comments.
    fn space(&mut self) -> Result<(), ConfigSyntax> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            let comment = &rest[blank..];
            let length = if comment.starts_with("//") {
                comment.find('\n').unwrap_or(comment.len())
            } else if let Some(inside) = comment.strip_prefix("/*") {
                match inside.find("*/") {
                    Some(end) => end + 4,
                    None => return Err(self.wrong("a comment does not end")),
                }
            } else {
                self.at += blank;
                return Ok(());
            };
            self.at += blank + length;
        }
    }

    fn value(&mut self, depth: usize) -> Result<JsonNode, ConfigSyntax> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("it nests too deeply"));
        }
        self.space()?;
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => {
                let mut members = Vec::new();
                self.list(b'}', |parser| {
                    let key = parser.string()?;
                    parser.space()?;
                    if parser.peek() != Some(b':') {
                        return Err(parser.wrong("a colon is missing"));
                    }
                    parser.at += 1;
                    members.push((key, parser.value(depth + 1)?));
                    Ok(())
                })?;
                JsonKind::Object(members)
            }
            Some(b'[') => {
                let mut items = Vec::new();
                self.list(b']', |parser| {
                    items.push(parser.value(depth + 1)?);
                    Ok(())
                })?;
                JsonKind::Array(items)
            }
            Some(b'"') => JsonKind::Scalar(Value::String(self.string()?)),
            Some(_) => {
                let rest = self.rest();
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
                let word = &rest[..end.unwrap_or(rest.len())];
                let value =
                    serde_json::from_str(word).map_err(|_| self.wrong("this is no value"))?;
                self.at += word.len();
                JsonKind::Scalar(value)
            }
            None => return Err(self.wrong("it ends in the middle")),
        };
        Ok(JsonNode {
            span: start..self.at,
            kind,
        })
    }

    /// What stands between brackets, with commas between and maybe after.
    fn list(
        &mut self,
        close: u8,
        mut each: impl FnMut(&mut Self) -> Result<(), ConfigSyntax>,
    ) -> Result<(), ConfigSyntax> {
        self.at += 1;
        loop {
            self.space()?;
            if self.peek() == Some(close) {
                self.at += 1;
                return Ok(());
            }
            each(self)?;
            self.space()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => {}
                _ => return Err(self.wrong("a comma or a closing bracket is missing")),
            }
        }
    }

    fn string(&mut self) -> Result<String, ConfigSyntax> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a text in quotes is missing"));
        }
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'\\') => end += 2,
                Some(b'"') => break,
                Some(_) => end += 1,
                None => return Err(self.wrong("a text does not end")),
            }
        }
        let written = self.text.get(start..=end).unwrap_or_default();
        let text = serde_json::from_str(written).map_err(|_| self.wrong("this is no text"))?;
        self.at = end + 1;
        Ok(text)
    }
}
