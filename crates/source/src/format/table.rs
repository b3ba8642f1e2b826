//! The table of a format: its mappings, their keys, what each may hold and what it is for.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::Durations;

/// A mapping with known keys.
#[derive(Debug)]
pub struct TypeSpec {
    /// What its definition is called in the schema and its section in the reference.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub doc: &'static str,
    /// Its keys, in the order in which people should write them.
    pub fields: &'static [FieldSpec],
    /// Whether keys that start with `x-` are allowed beside them.
    pub extensions: bool,
    /// The code to report unless exactly one of the keys is there.
    pub exactly_one: Option<&'static str>,
}

impl TypeSpec {
    /// The keys, with their other words.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        let words =
            |field: &'static FieldSpec| [Some(field.key), field.alias.map(|alias| alias.key)];
        self.fields.iter().flat_map(words).flatten()
    }

    /// Whether a key may be there.
    #[must_use]
    pub fn knows(&self, key: &str) -> bool {
        self.fields.iter().any(|field| field.is_called(key))
            || (self.extensions && key.starts_with("x-"))
    }

    /// The row of a key.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|field| field.key == key)
    }
}

/// One key of a mapping.
#[derive(Debug, Clone, Copy)]
pub struct FieldSpec {
    /// The key.
    pub key: &'static str,
    /// Another word for the same key.
    pub alias: Option<Alias>,
    /// What it may hold.
    pub kind: FieldKind,
    /// The code to report when the key is missing, if it is needed.
    pub required: Option<&'static str>,
    /// What to do when it is missing, where that is not obvious.
    pub if_missing: Option<&'static str>,
    /// What it is for, in a sentence.
    pub doc: &'static str,
}

/// Another word for a key.
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    /// The word.
    pub key: &'static str,
    /// The code to report when both words are there.
    pub code: &'static str,
}

impl FieldSpec {
    /// A key that may be absent.
    #[must_use]
    pub const fn optional(key: &'static str, kind: FieldKind, doc: &'static str) -> Self {
        Self {
            key,
            alias: None,
            kind,
            required: None,
            if_missing: None,
            doc,
        }
    }

    /// A key that must be there; `code` is reported when it is not.
    #[must_use]
    pub const fn required(
        key: &'static str,
        kind: FieldKind,
        code: &'static str,
        doc: &'static str,
    ) -> Self {
        let mut field = Self::optional(key, kind, doc);
        field.required = Some(code);
        field
    }

    /// The same with another word for the key; `code` is reported when both are there.
    #[must_use]
    pub const fn or(mut self, key: &'static str, code: &'static str) -> Self {
        self.alias = Some(Alias { key, code });
        self
    }

    /// The same with what to do when it is missing.
    #[must_use]
    pub const fn if_missing(mut self, help: &'static str) -> Self {
        self.if_missing = Some(help);
        self
    }

    fn is_called(&self, key: &str) -> bool {
        self.key == key || self.alias.is_some_and(|alias| alias.key == key)
    }
}

/// What a key may hold. What a schema cannot say about it, the reader says.
#[derive(Debug, Clone, Copy)]
pub enum FieldKind {
    /// Any value.
    Any,
    /// `true` or `false`.
    Flag,
    /// A text.
    Text,
    /// A text that has something in it.
    SomeText,
    /// A text that a pattern describes.
    Matching(&'static str),
    /// A scalar of one of these types of JSON Schema; it counts as the text that is written.
    Scalar(&'static [&'static str]),
    /// A whole number.
    Integer {
        /// The least.
        min: i64,
        /// The greatest.
        max: Option<u64>,
    },
    /// A number.
    Number {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
    },
    /// A number from 0 to 1.
    Share,
    /// This number, such as the version of a format.
    Exactly(u64),
    /// A duration.
    Duration(Durations),
    /// A date, or a date-time with its time zone.
    Date,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A mapping whose keys are not ours.
    Object,
    /// A mapping of names to values of one kind.
    Map {
        /// A pattern for the names.
        names: Option<&'static str>,
        /// What each holds.
        values: &'static FieldKind,
    },
    /// A list.
    List {
        /// What each item is.
        of: &'static FieldKind,
        /// How many there must be at least.
        min: u64,
        /// Whether all must differ.
        unique: bool,
    },
    /// A value, or a list of them.
    OneOrMore(&'static FieldKind),
    /// Any of these kinds.
    AnyOf(&'static [FieldKind]),
    /// A mapping with known keys.
    Type(&'static TypeSpec),
    /// The kind, and what people call it.
    Called(&'static str, &'static FieldKind),
    /// A shape with a definition of this name, which the format writes for its schema.
    Shape(&'static str),
    /// A shape that the format writes where it stands: what it is called, and its schema.
    Written(&'static str, fn() -> Value),
}

impl FieldKind {
    /// A list of any length.
    #[must_use]
    pub const fn list(of: &'static Self) -> Self {
        Self::List {
            of,
            min: 0,
            unique: false,
        }
    }

    /// Names to values of one kind.
    #[must_use]
    pub const fn map(values: &'static Self) -> Self {
        Self::Map {
            names: None,
            values,
        }
    }

    /// The words that may be chosen from, here or in each item.
    #[must_use]
    pub fn choices(&self) -> &'static [&'static str] {
        match self {
            Self::Choice(words) => words,
            Self::OneOrMore(of) | Self::List { of, .. } | Self::Called(_, of) => of.choices(),
            Self::AnyOf(kinds) => {
                let words = kinds.iter().map(Self::choices);
                words.max_by_key(|words| words.len()).unwrap_or_default()
            }
            Self::Any
            | Self::Flag
            | Self::Text
            | Self::SomeText
            | Self::Matching(_)
            | Self::Scalar(_)
            | Self::Integer { .. }
            | Self::Number { .. }
            | Self::Share
            | Self::Exactly(_)
            | Self::Duration(_)
            | Self::Date
            | Self::Object
            | Self::Map { .. }
            | Self::Type(_)
            | Self::Shape(_)
            | Self::Written(..) => &[],
        }
    }

    /// The whole numbers that may be there.
    #[must_use]
    pub fn whole_range(&self) -> Option<RangeInclusive<u64>> {
        match self {
            Self::Integer { min, max } => {
                Some(u64::try_from(*min).unwrap_or(0)..=max.unwrap_or(u64::MAX))
            }
            Self::Exactly(number) => Some(*number..=*number),
            Self::Called(_, of) => of.whole_range(),
            Self::AnyOf(kinds) => kinds.iter().find_map(Self::whole_range),
            Self::Any
            | Self::Flag
            | Self::Text
            | Self::SomeText
            | Self::Matching(_)
            | Self::Scalar(_)
            | Self::Number { .. }
            | Self::Share
            | Self::Duration(_)
            | Self::Date
            | Self::Choice(_)
            | Self::Object
            | Self::Map { .. }
            | Self::List { .. }
            | Self::OneOrMore(_)
            | Self::Type(_)
            | Self::Shape(_)
            | Self::Written(..) => None,
        }
    }
}
