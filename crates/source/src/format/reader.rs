//! Reads mappings by the table of a format: fields by key, and findings about keys that are unknown, missing,
//! empty or there twice.

use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::Value;

use super::table::{FieldSpec, TypeSpec};
use crate::diagnostic::DiagnosticSeverity;
use crate::path::PathSegment;
use crate::tree::NodeRef;
use crate::walk::DocumentWalk;
use crate::yaml::scalar::YamlScalar;

/// The codes and the words of a format for what every format can find.
#[derive(Debug, Clone, Copy)]
pub struct Wording {
    /// How a message names the document as a whole.
    pub whole: &'static str,
    /// How it names a text.
    pub text: &'static str,
    /// How it names a list.
    pub list: &'static str,
    /// The code of a value of the wrong type.
    pub mismatch: &'static str,
    /// The code of an unknown key.
    pub unknown_key: &'static str,
    /// The code of a key with nothing behind it.
    pub empty: &'static str,
    /// The code of a word or a number that is none of those that may be there.
    pub refused: &'static str,
    /// Whether messages may repeat what is written. Where secrets can stand in the wrong place, they may not.
    pub shows_values: bool,
}

/// Reads documents of one format. A field that cannot be read is left out and the walk goes on, so that one
/// pass finds everything.
///
/// A format says what its codes and words are, and overrides what it reports in another way than most.
///
/// ```
/// use proofhouse_source::format::{FieldKind, FieldSpec, FormatReader, TypeSpec, Wording};
/// use proofhouse_source::{ReadLimits, Source, DocumentWalk};
///
/// static FILE: TypeSpec = TypeSpec {
///     name: "File",
///     doc: "A file.",
///     fields: &[
///         FieldSpec::required("name", FieldKind::Text, "E-4", "Its name."),
///         FieldSpec::optional("quiet", FieldKind::Flag, "Whether it says nothing."),
///     ],
///     extensions: false,
///     exactly_one: None,
/// };
///
/// struct Reader<'s>(DocumentWalk<'s>);
///
/// impl<'s> FormatReader<'s> for Reader<'s> {
///     const WORDING: Wording = Wording {
///         whole: "the file",
///         text: "a text",
///         list: "a list",
///         mismatch: "E-1",
///         unknown_key: "E-2",
///         empty: "E-3",
///         refused: "E-5",
///         shows_values: true,
///     };
///     fn walk(&mut self) -> &mut DocumentWalk<'s> {
///         &mut self.0
///     }
/// }
///
/// let source = Source::read("nmae: x\nquiet: 3\n", &ReadLimits::default()).unwrap();
/// let mut reader = Reader(DocumentWalk::new(&source));
/// let mut fields = reader.fields(source.root(), &FILE).unwrap();
/// assert_eq!((fields.text("name"), fields.flag("quiet")), (None, None));
/// let findings: Vec<String> = reader.0.into_findings().iter().map(ToString::to_string).collect();
/// assert_eq!(findings, [
///     "error[E-2] 1:1 nmae: unknown key `nmae`",
///     "error[E-1] 2:8 quiet: `quiet` must be true or false, not the number 3",
/// ]);
/// ```
pub trait FormatReader<'s>: Sized {
    /// Its codes and words.
    const WORDING: Wording;

    /// Where it is, and what it has found.
    fn walk(&mut self) -> &mut DocumentWalk<'s>;

    /// How a message names the current place.
    fn place(&mut self) -> String {
        self.walk().place(Self::WORDING.whole)
    }

    /// Reports a value of the wrong type.
    fn mismatch(&mut self, node: NodeRef<'s>, wanted: &str) {
        let place = self.place();
        let message = format!("{place} must be {wanted}, not {}", node.describe());
        let help = match node.scalar() {
            Some(
                YamlScalar::Bool(_)
                | YamlScalar::Int(_)
                | YamlScalar::UInt(_)
                | YamlScalar::Float(_),
            ) if wanted == Self::WORDING.text => node
                .raw_text()
                .filter(|text| text.len() <= 60)
                .map(|text| format!("quote it: `\"{text}\"`")),
            _ => None,
        };
        self.walk().error(Self::WORDING.mismatch, message, help);
    }

    /// What to do about an unknown key; `near` is the known one that it is like.
    fn unknown_key_help(
        &self,
        spec: &'static TypeSpec,
        key: &str,
        near: Option<&'static str>,
    ) -> Option<String> {
        let _ = (spec, key);
        near.map(|near| format!("did you mean `{near}`?"))
    }

    /// Reports that the current mapping needs a key.
    fn missing(&mut self, key: &'static str, code: &'static str, help: Option<&'static str>) {
        let place = self.place();
        let message = format!("{place} needs `{key}`");
        self.walk().error(code, message, help.map(str::to_owned));
    }

    /// Reports that there is nothing behind the current key. One that is needed is missing, which is told
    /// anyway.
    fn empty(&mut self, key: &'static str, is_required: bool) {
        if !is_required {
            let message = format!("`{key}` is empty and counts as absent");
            let help = Some("give it a value or remove the key".to_owned());
            self.walk().warn_at_key(Self::WORDING.empty, message, help);
        }
    }

    /// Reports a number that JSON cannot hold.
    fn out_of_range(&mut self, node: NodeRef<'s>) {
        let message = "this is not a number that 64 bits and JSON can hold".to_owned();
        self.walk().report(
            DiagnosticSeverity::Error,
            Self::WORDING.mismatch,
            node.span(),
            message,
            None,
        );
    }

    /// Runs `read` one step deeper.
    fn within<T>(&mut self, segment: PathSegment<'s>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.walk().enter(segment);
        let result = read(self);
        self.walk().leave();
        result
    }

    /// Opens a mapping and reports its unknown keys.
    fn fields(
        &mut self,
        node: NodeRef<'s>,
        spec: &'static TypeSpec,
    ) -> Option<Fields<'_, 's, Self>> {
        if !self.is_mapping(node) {
            return None;
        }
        for (key, _) in node.entries().into_iter().flatten() {
            if !spec.knows(key) && !self.walk().is_full() {
                let near = self.walk().near(key, spec.keys());
                let help = self.unknown_key_help(spec, key, near);
                self.walk()
                    .unknown_key(Self::WORDING.unknown_key, key, near, help);
            }
        }
        Some(self.peek(node, spec))
    }

    /// Opens a mapping whose unknown keys are not reported, for a reader that does not know yet which mapping
    /// it is.
    fn peek(&mut self, node: NodeRef<'s>, spec: &'static TypeSpec) -> Fields<'_, 's, Self> {
        Fields {
            reader: self,
            node,
            spec,
        }
    }

    /// Whether a node is a mapping, as it must be.
    fn is_mapping(&mut self, node: NodeRef<'s>) -> bool {
        let is_one = node.entries().is_some();
        if !is_one {
            self.mismatch(node, "a mapping");
        }
        is_one
    }

    /// A text.
    fn text(&mut self, node: NodeRef<'s>) -> Option<String> {
        if let Some(YamlScalar::Text(text)) = node.scalar() {
            return Some(text.to_owned());
        }
        self.mismatch(node, Self::WORDING.text);
        None
    }

    /// `true` or `false`.
    fn flag(&mut self, node: NodeRef<'s>) -> Option<bool> {
        if let Some(YamlScalar::Bool(value)) = node.scalar() {
            return Some(value);
        }
        self.mismatch(node, "true or false");
        None
    }

    /// One of some words.
    fn word(&mut self, node: NodeRef<'s>, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text(node)?;
        let found = words.iter().copied().find(|word| *word == text);
        if found.is_none() {
            self.unknown_word(&text, words);
        }
        found
    }

    /// Reports a word that is none of those that may be there.
    fn unknown_word(&mut self, text: &str, words: &[&str]) {
        let place = self.place();
        let message = if Self::WORDING.shows_values {
            let shown: String = text.chars().take(60).collect();
            format!("`{shown}` is not a value of {place}")
        } else {
            format!("{place} cannot be used")
        };
        let help = match self.walk().near(text, words.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of: {}", words.join(", ")),
        };
        self.walk()
            .error(Self::WORDING.refused, message, Some(help));
    }

    /// A whole number of 64 bits, with its sign. What it may be is found out elsewhere.
    fn integer(&mut self, node: NodeRef<'s>) -> Option<i64> {
        match node.scalar() {
            Some(YamlScalar::Int(value)) => Some(value),
            Some(YamlScalar::UInt(_) | YamlScalar::OutOfRange(_)) => {
                self.out_of_range(node);
                None
            }
            _ => {
                self.mismatch(node, "an integer");
                None
            }
        }
    }

    /// A number. What it may be is found out elsewhere.
    fn number(&mut self, node: NodeRef<'s>) -> Option<f64> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "numbers with a fraction are doubles, and others beside them are read as such"
        )]
        match node.scalar() {
            Some(YamlScalar::Int(value)) => Some(value as f64),
            Some(YamlScalar::UInt(value)) => Some(value as f64),
            Some(YamlScalar::Float(value)) => Some(value),
            Some(YamlScalar::OutOfRange(_)) => {
                self.out_of_range(node);
                None
            }
            _ => {
                self.mismatch(node, "a number");
                None
            }
        }
    }

    /// A whole number in a range.
    fn whole(&mut self, node: NodeRef<'s>, range: RangeInclusive<u64>) -> Option<u64> {
        let number = match node.scalar() {
            Some(YamlScalar::Int(number)) => u64::try_from(number).ok(),
            Some(YamlScalar::UInt(number)) => Some(number),
            Some(YamlScalar::Float(_) | YamlScalar::OutOfRange(_)) => None,
            _ => {
                self.mismatch(node, "a whole number");
                return None;
            }
        };
        let fits = number.filter(|number| range.contains(number));
        if fits.is_none() {
            let (min, max) = range.into_inner();
            let wanted = match max {
                max if max == min => min.to_string(),
                u64::MAX => format!("a whole number from {min}"),
                max => format!("a whole number from {min} to {max}"),
            };
            self.outside(&wanted);
        }
        fits
    }

    /// Reports a number that is none of those that may be there.
    fn outside(&mut self, wanted: &str) {
        let message = format!("{} must be {wanted}", self.place());
        self.walk().error(Self::WORDING.refused, message, None);
    }

    /// Any value.
    fn value(&mut self, node: NodeRef<'s>) -> Value {
        let mut odd = Vec::new();
        let value = node.to_value(&mut |node| odd.push(node));
        for node in odd {
            self.out_of_range(node);
        }
        value
    }

    /// The items of a list that can be read.
    fn list<T>(
        &mut self,
        node: NodeRef<'s>,
        mut read: impl FnMut(&mut Self, NodeRef<'s>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(items) = node.items() else {
            self.mismatch(node, Self::WORDING.list);
            return None;
        };
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.enumerate() {
            list.extend(self.within(PathSegment::Index(index), |reader| read(reader, item)));
        }
        Some(list)
    }

    /// The items of a list, or a value that stands for a list of one.
    fn one_or_more<T>(
        &mut self,
        node: NodeRef<'s>,
        mut read: impl FnMut(&mut Self, NodeRef<'s>) -> Option<T>,
    ) -> Vec<T> {
        if node.items().is_some() {
            self.list(node, read).unwrap_or_default()
        } else {
            read(self, node).into_iter().collect()
        }
    }
}

/// The fields of one mapping that is being read.
#[derive(Debug)]
pub struct Fields<'r, 's, R> {
    /// Who reads.
    pub reader: &'r mut R,
    node: NodeRef<'s>,
    spec: &'static TypeSpec,
}

impl<'s, R: FormatReader<'s>> Fields<'_, 's, R> {
    /// Reads one field, under its key or its other word. Nothing behind a key counts as absent.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut R, NodeRef<'s>) -> Option<T>,
    ) -> Option<T> {
        let field = self.spec(key)?;
        match self.find(field) {
            Some((name, node)) if !node.is_null() => self
                .reader
                .within(PathSegment::Key(name), |reader| read(reader, node)),
            found => {
                if let Some((name, _)) = found {
                    let is_required = field.required.is_some();
                    self.reader.within(PathSegment::Key(name), |reader| {
                        reader.empty(name, is_required);
                    });
                }
                if let Some(code) = field.required {
                    self.missing(field.key, code);
                }
                None
            }
        }
    }

    /// What is there for a field, and under which word.
    fn find(&mut self, field: &FieldSpec) -> Option<(&'static str, NodeRef<'s>)> {
        let found = self.node.get(field.key);
        let Some(alias) = field.alias else {
            return found.map(|node| (field.key, node));
        };
        let other = self.node.get(alias.key);
        if found.is_some() && other.is_some() {
            self.reader.within(PathSegment::Key(alias.key), |reader| {
                let message = format!("`{}` and `{}` mean the same", field.key, alias.key);
                let help = Some("keep one of them".to_owned());
                reader.walk().error(alias.code, message, help);
            });
        }
        found
            .map(|node| (field.key, node))
            .or_else(|| other.map(|node| (alias.key, node)))
    }

    /// The row of a key.
    #[must_use]
    pub fn spec(&self, key: &str) -> Option<&'static FieldSpec> {
        let found = self.spec.field(key);
        debug_assert!(found.is_some(), "{} has no key {key}", self.spec.name);
        found
    }

    /// Reports a key that should be there, unless one was reported that was probably meant to be it.
    pub fn missing(&mut self, key: &'static str, code: &'static str) {
        if !self.reader.walk().was_misspelled(key) {
            let help = self.spec(key).and_then(|field| field.if_missing);
            self.reader.missing(key, code, help);
        }
    }

    /// Whether everything that is needed is there; what is not is reported.
    pub fn has_all_required(&mut self) -> bool {
        let required = self
            .spec
            .fields
            .iter()
            .filter(|field| field.required.is_some());
        let absent = required.filter(|field| self.read(field.key, |_, _| Some(())).is_none());
        absent.count() == 0
    }

    /// Whether something is behind a key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.node.get(key).is_some_and(|value| !value.is_null())
    }

    /// The one key that is there, where exactly one must be.
    pub fn only(&mut self) -> Option<&'static str> {
        let keys = || self.spec.fields.iter().map(|field| field.key);
        let found: Vec<&'static str> = keys().filter(|key| self.has(key)).collect();
        let message = match found.as_slice() {
            [only] => return Some(only),
            [] => format!("{} needs exactly one block", self.reader.place()),
            several => format!(
                "{} has {}; only one may be there",
                self.reader.place(),
                several.join(" and ")
            ),
        };
        let keys: Vec<&str> = keys().collect();
        let help = Some(format!("use one of: {}", keys.join(", ")));
        let code = self.spec.exactly_one.unwrap_or(R::WORDING.mismatch);
        self.reader.walk().error(code, message, help);
        None
    }

    /// A text.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, R::text)
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, R::flag)
    }

    /// One of the words that the table has for the key.
    pub fn word(&mut self, key: &'static str) -> Option<&'static str> {
        let words = self.choices(key);
        self.read(key, |reader, node| reader.word(node, words))
    }

    /// The value of a closed set that one of the words of the table stands for.
    pub fn choice<T: FromStr>(&mut self, key: &'static str) -> Option<T> {
        let value = self.word(key)?.parse().ok();
        debug_assert!(value.is_some(), "{key} has words that stand for nothing");
        value
    }

    /// Some of the words that the table has for the key: one, or a list.
    pub fn words(&mut self, key: &'static str) -> Vec<&'static str> {
        let words = self.choices(key);
        let read = self.read(key, |reader, node| {
            Some(reader.one_or_more(node, |reader, item| reader.word(item, words)))
        });
        read.unwrap_or_default()
    }

    fn choices(&self, key: &'static str) -> &'static [&'static str] {
        let words = self.spec(key).map_or(&[][..], |field| field.kind.choices());
        debug_assert!(
            !words.is_empty(),
            "{} has no words for {key}",
            self.spec.name
        );
        words
    }

    /// A whole number in the range that the table has for the key.
    pub fn whole<T: TryFrom<u64>>(&mut self, key: &'static str) -> Option<T> {
        let range = self.spec(key)?.kind.whole_range();
        debug_assert!(range.is_some(), "{} has no range for {key}", self.spec.name);
        let range = range?;
        self.read(key, |reader, node| reader.whole(node, range))
            .and_then(|number| T::try_from(number).ok())
    }

    /// A number from 0 to 1.
    pub fn share(&mut self, key: &'static str) -> Option<f64> {
        self.read(key, |reader, node| {
            let number = match node.scalar() {
                // What does not fit at all is outside as well.
                Some(YamlScalar::OutOfRange(_)) => f64::NAN,
                _ => reader.number(node)?,
            };
            let fits = (0.0..=1.0).contains(&number);
            if !fits {
                reader.outside("a number from 0 to 1");
            }
            fits.then_some(number)
        })
    }

    /// A list.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        read: impl FnMut(&mut R, NodeRef<'s>) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.read(key, |reader, node| reader.list(node, read))
    }

    /// A list of texts.
    pub fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.list(key, R::text)
    }

    /// The keys that start with `x-`, and what is behind them.
    pub fn extensions(&mut self) -> impl Iterator<Item = (&'s str, Value)> {
        self.node
            .entries()
            .into_iter()
            .flatten()
            .filter(|(key, _)| key.starts_with("x-"))
            .map(|(key, node)| {
                let value = self
                    .reader
                    .within(PathSegment::Key(key), |reader| reader.value(node));
                (key, value)
            })
    }
}
