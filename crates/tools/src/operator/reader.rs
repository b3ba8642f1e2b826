//! Reads the nodes of a configuration: fields, texts with variables, and findings that show no value.

use proofhouse_source::{Diagnostic, NodeRef, Scalar, Segment, Source, Walk};
use serde_json::{Map, Value};

use super::variables::{self, MAX_BYTES, Problem};

/// How many bytes the variables of a file may put in together.
const MAX_FILLED: usize = 16 << 20;

/// Walks a configuration.
pub(super) struct Reader<'s, 'l> {
    walk: Walk<'s>,
    lookup: &'l dyn Fn(&str) -> Option<String>,
    filled: usize,
}

impl<'s, 'l> Reader<'s, 'l> {
    pub(super) fn new(source: &'s Source, lookup: &'l dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            walk: Walk::new(source),
            lookup,
            filled: 0,
        }
    }

    pub(super) fn into_findings(self) -> Vec<Diagnostic> {
        self.walk.into_findings()
    }

    /// How many there are so far.
    pub(super) fn findings(&self) -> usize {
        self.walk.findings().len()
    }

    pub(super) fn within<T>(
        &mut self,
        segment: Segment<'s>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.walk.enter(segment);
        let result = read(self);
        self.walk.leave();
        result
    }

    pub(super) fn error(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.walk.error(code, message, help);
    }

    pub(super) fn warn(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.walk.warn(code, message, help);
    }

    pub(super) fn warn_at_key(
        &mut self,
        code: &'static str,
        message: String,
        help: Option<String>,
    ) {
        self.walk.warn_at_key(code, message, help);
    }

    pub(super) fn unknown_key(&mut self, key: &'s str, help: String) {
        self.walk.unknown_key("OC-003", key, Some(help));
    }

    pub(super) fn missing(&mut self, key: &str) {
        let place = self.place();
        self.error("OC-004", format!("{place} needs `{key}`"), None);
    }

    /// Says what kind of value is there, and never the value: it may be a secret in the wrong place.
    pub(super) fn mismatch(&mut self, node: NodeRef<'s>, wanted: &str) {
        let found = node.kind();
        let place = self.place();
        let help = (self.walk.path().segments().len() == 1 && node.scalar().is_some()).then(|| {
            "a setting of that name stands below `settings`, as soon as the file has one of its keys"
                .to_owned()
        });
        self.error(
            "OC-002",
            format!("{place} must be {wanted}, not {found}"),
            help,
        );
    }

    fn place(&self) -> String {
        self.walk.place("the file")
    }

    pub(super) fn is_mapping(&mut self, node: NodeRef<'s>) -> bool {
        let is_one = node.entries().is_some();
        if !is_one {
            self.mismatch(node, "a mapping");
        }
        is_one
    }

    /// Whether a node is a mapping; its keys are checked.
    pub(super) fn mapping(&mut self, node: NodeRef<'s>, known: &[&'static str]) -> bool {
        if node.entries().is_none() {
            self.mismatch(node, "a mapping");
            return false;
        }
        self.walk.unknown_keys("OC-003", node, known, |_, near| {
            Some(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys are: {}", known.join(", ")),
            })
        });
        true
    }

    /// A field that is there. Nothing behind a key counts as absent, and is told.
    pub(super) fn field(&mut self, node: NodeRef<'s>, key: &'static str) -> Option<NodeRef<'s>> {
        let value = node.get(key)?;
        if value.is_null() {
            self.within(Segment::Key(key), |reader| {
                let message = format!("`{key}` is empty and counts as absent");
                reader.warn_at_key("OC-010", message, None);
            });
            return None;
        }
        Some(value)
    }

    /// A text with its variables in place.
    pub(super) fn text(&mut self, node: NodeRef<'s>) -> Option<String> {
        match node.scalar() {
            Some(Scalar::Text(text)) => self.fill(text),
            _ => {
                self.mismatch(node, "a text");
                None
            }
        }
    }

    /// A text, or a number as it is written.
    pub(super) fn text_or_number(&mut self, node: NodeRef<'s>) -> Option<String> {
        match node.scalar() {
            Some(Scalar::Int(number)) => Some(number.to_string()),
            Some(Scalar::UInt(number)) => Some(number.to_string()),
            _ => self.text(node),
        }
    }

    /// The texts of a list, with their positions.
    pub(super) fn texts(&mut self, node: NodeRef<'s>) -> Vec<(String, usize)> {
        let Some(items) = node.items() else {
            self.mismatch(node, "a list");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (index, item) in items.enumerate() {
            let text = self.within(Segment::Index(index), |reader| reader.text(item));
            texts.extend(text.map(|text| (text, index)));
        }
        texts
    }

    /// Any value, with the variables of its texts in place.
    pub(super) fn value(&mut self, node: NodeRef<'s>) -> Value {
        if let Some(entries) = node.entries() {
            let mut map = Map::new();
            for (key, item) in entries {
                let value = self.within(Segment::Key(key), |reader| reader.value(item));
                map.insert(key.to_owned(), value);
            }
            return Value::Object(map);
        }
        if let Some(items) = node.items() {
            let mut list = Vec::new();
            for (index, item) in items.enumerate() {
                list.push(self.within(Segment::Index(index), |reader| reader.value(item)));
            }
            return Value::Array(list);
        }
        if let Some(Scalar::Text(text)) = node.scalar() {
            return self.fill(text).map_or(Value::Null, Value::String);
        }
        let mut odd = false;
        let value = node.to_value(&mut |_| odd = true);
        if odd {
            let message = "this is not a number that 64 bits and JSON can hold".to_owned();
            self.error("OC-002", message, None);
        }
        value
    }

    fn fill(&mut self, text: &str) -> Option<String> {
        let filled = variables::fill(text, self.lookup).and_then(|filled| {
            self.filled = self.filled.saturating_add(filled.len());
            match self.filled > MAX_FILLED {
                true => Err(Problem::TooLong),
                false => Ok(filled),
            }
        });
        match filled {
            Ok(filled) => Some(filled),
            Err(Problem::NotSet(name)) => {
                self.not_set(&name);
                None
            }
            Err(Problem::Malformed) => {
                self.error(
                    "OC-007",
                    "`${` must start a variable, such as `${NAME}`".to_owned(),
                    Some("write `$${` for the text `${`".to_owned()),
                );
                None
            }
            Err(Problem::TooLong) => {
                let message = format!(
                    "with its variables, a text may have {MAX_BYTES} bytes, and all texts {MAX_FILLED}"
                );
                self.error("OC-005", message, None);
                None
            }
        }
    }

    /// A variable that must be set.
    pub(super) fn variable(&mut self, name: &str) -> Option<String> {
        let found = (self.lookup)(name);
        if found.is_none() {
            self.not_set(name);
        }
        found
    }

    fn not_set(&mut self, name: &str) {
        let message = format!("the environment variable `{name}` is not set");
        self.error("OC-006", message, None);
    }
}
