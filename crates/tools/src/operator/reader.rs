//! Reads the nodes of a configuration: fields, texts with variables, and findings that show no value.

use proofhouse_source::format::{self, FormatReader, TypeSpec, Wording};
use proofhouse_source::{Diagnostic, DocumentWalk, NodeRef, PathSegment, Source, YamlScalar};
use serde_json::{Map, Value};

use super::fields::OPERATOR;
use super::variables::{self, MAX_BYTES, VariableProblem};

/// How many bytes the variables of a file may put in together.
const MAX_FILLED: usize = 16 << 20;

/// Walks a configuration.
pub(super) struct OperatorReader<'s, 'l> {
    walk: DocumentWalk<'s>,
    lookup: &'l dyn Fn(&str) -> Option<String>,
    filled: usize,
}

/// The fields of one mapping that is being read.
pub(super) type OperatorFields<'r, 's, 'l> = format::Fields<'r, 's, OperatorReader<'s, 'l>>;

impl<'s> FormatReader<'s> for OperatorReader<'s, '_> {
    const WORDING: Wording = Wording {
        whole: "the file",
        text: "a text",
        list: "a list",
        mismatch: "OC-002",
        unknown_key: "OC-003",
        empty: "OC-010",
        refused: "OC-005",
        shows_values: false,
    };

    fn walk(&mut self) -> &mut DocumentWalk<'s> {
        &mut self.walk
    }

    /// Says what kind of value is there, and never the value: it may be a secret in the wrong place.
    fn mismatch(&mut self, node: NodeRef<'s>, wanted: &str) {
        let found = node.kind();
        let place = self.place();
        let help = (self.walk.path().segments().len() == 1 && node.scalar().is_some()).then(|| {
            "a setting of that name stands below `settings`, as soon as the file has one of its keys"
                .to_owned()
        });
        let message = format!("{place} must be {wanted}, not {found}");
        self.error(Self::WORDING.mismatch, message, help);
    }

    fn unknown_key_help(
        &self,
        spec: &'static TypeSpec,
        _key: &str,
        near: Option<&'static str>,
    ) -> Option<String> {
        Some(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if spec.name == OPERATOR.name => "a setting stands below `settings`".to_owned(),
            None => {
                let keys: Vec<&str> = spec.keys().collect();
                format!("the keys are: {}", keys.join(", "))
            }
        })
    }

    fn empty(&mut self, key: &'static str, _is_required: bool) {
        let message = format!("`{key}` is empty and counts as absent");
        self.walk.warn_at_key(Self::WORDING.empty, message, None);
    }

    /// A text with its variables in place.
    fn text(&mut self, node: NodeRef<'s>) -> Option<String> {
        if let Some(YamlScalar::Text(text)) = node.scalar() {
            return self.fill(text);
        }
        self.mismatch(node, Self::WORDING.text);
        None
    }

    /// Any value, with the variables of its texts in place.
    fn value(&mut self, node: NodeRef<'s>) -> Value {
        if let Some(entries) = node.entries() {
            let mut map = Map::new();
            for (key, item) in entries {
                let value = self.within(PathSegment::Key(key), |reader| reader.value(item));
                map.insert(key.to_owned(), value);
            }
            return Value::Object(map);
        }
        if let Some(items) = node.items() {
            let mut list = Vec::new();
            for (index, item) in items.enumerate() {
                list.push(self.within(PathSegment::Index(index), |reader| reader.value(item)));
            }
            return Value::Array(list);
        }
        if let Some(YamlScalar::Text(text)) = node.scalar() {
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
}

impl<'s, 'l> OperatorReader<'s, 'l> {
    pub(super) fn new(source: &'s Source, lookup: &'l dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            walk: DocumentWalk::new(source),
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

    /// The texts of a list, with their positions.
    pub(super) fn texts(&mut self, node: NodeRef<'s>) -> Vec<(String, usize)> {
        let Some(items) = node.items() else {
            self.mismatch(node, "a list");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (index, item) in items.enumerate() {
            let text = self.within(PathSegment::Index(index), |reader| reader.text(item));
            texts.extend(text.map(|text| (text, index)));
        }
        texts
    }

    pub(super) fn error(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.walk.error(code, message, help);
    }

    pub(super) fn warn(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.walk.warn(code, message, help);
    }

    /// A text, or a number as it is written.
    pub(super) fn text_or_number(&mut self, node: NodeRef<'s>) -> Option<String> {
        match node.scalar() {
            Some(YamlScalar::Int(number)) => Some(number.to_string()),
            Some(YamlScalar::UInt(number)) => Some(number.to_string()),
            _ => self.text(node),
        }
    }

    fn fill(&mut self, text: &str) -> Option<String> {
        let filled = variables::fill(text, self.lookup).and_then(|filled| {
            self.filled = self.filled.saturating_add(filled.len());
            if self.filled > MAX_FILLED {
                Err(VariableProblem::TooLong)
            } else {
                Ok(filled)
            }
        });
        match filled {
            Ok(filled) => Some(filled),
            Err(VariableProblem::NotSet(name)) => {
                self.not_set(&name);
                None
            }
            Err(VariableProblem::Malformed) => {
                self.error(
                    "OC-007",
                    "`${` must start a variable, such as `${NAME}`".to_owned(),
                    Some("write `$${` for the text `${`".to_owned()),
                );
                None
            }
            Err(VariableProblem::TooLong) => {
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
        self.error(super::NOT_SET, message, None);
    }
}
