//! Reads one YAML document into a tree that remembers where everything stood.
//!
//! The reader accepts a deliberately small YAML: one document, string keys, no anchors, aliases,
//! merge keys or custom tags. Nothing is ever expanded, so the tree is never larger than the text.

use std::borrow::Cow;
use std::collections::HashSet;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};

use crate::diagnostic::Span;
use crate::places::PlaceIndex;
use crate::tree::{Entries, MappingEntry, NodeData, ScalarText, TreeNode};
use crate::yaml::scalar::{YamlScalar, resolve_plain};
use crate::yaml::{help, plain};

/// What the reader accepts before it refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLimits {
    /// Size of the text in bytes.
    pub max_bytes: usize,
    /// Nesting of collections.
    pub max_depth: usize,
    /// Number of nodes: scalars, sequences and mappings.
    pub max_nodes: usize,
}

impl Default for ReadLimits {
    /// 4 MiB of text, 128 levels, 500,000 nodes.
    fn default() -> Self {
        Self {
            max_bytes: 4 << 20,
            max_depth: 128,
            max_nodes: 500_000,
        }
    }
}

/// Why text was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadErrorKind {
    /// The text is larger than [`ReadLimits::max_bytes`].
    TooLarge,
    /// The text holds control characters that no YAML text may hold.
    Binary,
    /// There is no document in the text.
    Empty,
    /// There is more than one document in the text.
    SeveralDocuments,
    /// The text is not YAML.
    Syntax,
    /// Collections are nested deeper than [`ReadLimits::max_depth`].
    TooDeep,
    /// There are more nodes than [`ReadLimits::max_nodes`].
    TooManyNodes,
    /// A mapping holds the same key twice.
    DuplicateKey,
    /// A mapping key is not a string.
    KeyNotText,
    /// `&name`.
    Anchor,
    /// `*name`.
    Alias,
    /// `<<: …`.
    MergeKey,
    /// `!name`.
    CustomTag,
}

/// One reason why text was refused, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// The class of the error.
    pub kind: ReadErrorKind,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: &'static str,
    /// Where.
    pub span: Span,
}

impl ReadErrorKind {
    /// What to do about an error of this class. The parser's own errors have more to say ([`ReadError::help`]).
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Self::TooLarge => "split the document or raise the size limit",
            Self::Binary => "save the file as plain text in UTF-8",
            Self::Empty => "write the document, or name another file",
            Self::SeveralDocuments => "split the file at `---`",
            Self::Syntax => "remove the tag, or write a value of that kind",
            Self::TooDeep => "nest lists and mappings less deeply",
            Self::TooManyNodes => "split the document",
            Self::DuplicateKey => "remove one of them",
            Self::KeyNotText => "put quotes around a text that begins with `{` or `[`",
            Self::Anchor => "write the value out wherever it is used",
            Self::Alias => "write the value out",
            Self::MergeKey => "write the fields out",
            Self::CustomTag => "remove the tag, or put quotes around a text that begins with `!`",
        }
    }
}

/// Reads `text`. Errors that leave the tree whole are collected; a syntax error ends the reading.
///
/// The tree is returned beside the errors whenever there is one, so that a caller can go on and
/// find what else is wrong.
pub(crate) fn read(text: &str, limits: &ReadLimits) -> (Option<TreeNode>, Vec<ReadError>) {
    match plain::read(text, limits) {
        Some(root) => (Some(root), Vec::new()),
        None => read_fully(text, limits),
    }
}

/// Reads any text with the full parser.
pub(crate) fn read_fully(text: &str, limits: &ReadLimits) -> (Option<TreeNode>, Vec<ReadError>) {
    if text.len() > limits.max_bytes || u32::try_from(text.len()).is_err() {
        let message = format!(
            "the document is {} bytes long; the limit is {} bytes",
            text.len(),
            limits.max_bytes
        );
        return (
            None,
            vec![ReadError {
                kind: ReadErrorKind::TooLarge,
                message,
                help: ReadErrorKind::TooLarge.help(),
                span: Span {
                    offset: 0,
                    length: 0,
                    line: 1,
                    column: 1,
                },
            }],
        );
    }
    if let Some(offset) = text.bytes().position(|b| b == 0) {
        let message = "the document holds a NUL byte; this looks like a binary file".to_owned();
        return (
            None,
            vec![ReadError {
                kind: ReadErrorKind::Binary,
                message,
                help: ReadErrorKind::Binary.help(),
                span: PlaceIndex::default().span(text, offset, offset + 1),
            }],
        );
    }
    let mut builder = YamlTreeBuilder {
        text,
        places: PlaceIndex::default(),
        limits,
        nodes: 0,
        documents: 0,
        open: Vec::new(),
        root: None,
        errors: Vec::new(),
    };
    builder.run();
    let YamlTreeBuilder { root, errors, .. } = builder;
    (root, errors)
}

/// A collection whose end has not been read yet.
struct OpenCollection {
    start: u32,
    kind: OpenKind,
}

enum OpenKind {
    Seq(Vec<TreeNode>),
    Map {
        entries: Vec<MappingEntry>,
        key: Option<TreeNode>,
    },
}

struct YamlTreeBuilder<'t> {
    text: &'t str,
    places: PlaceIndex,
    limits: &'t ReadLimits,
    nodes: usize,
    documents: usize,
    open: Vec<OpenCollection>,
    root: Option<TreeNode>,
    errors: Vec<ReadError>,
}

impl<'t> YamlTreeBuilder<'t> {
    fn run(&mut self) {
        let options = granit_parser::options! {
            emit_comments: false,
            emit_unresolved_aliases: true,
            flow_nesting_limit: self.limits.max_depth,
            block_nesting_limit: self.limits.max_depth,
        };
        for event in Parser::new_from_str_with_options(self.text, options) {
            match event {
                Ok((event, span)) => {
                    let start = offset(span.start.byte_offset());
                    let end = offset(span.end.byte_offset());
                    if !self.take(event, start, end) {
                        return;
                    }
                }
                Err(error) => {
                    self.refuse_syntax(&error);
                    return;
                }
            }
        }
        if self.root.is_none() && self.errors.is_empty() {
            self.fail(ReadErrorKind::Empty, "the document is empty", 0, 0);
        }
    }

    /// Takes one event; `false` ends the reading.
    fn take(&mut self, event: Event<'t>, start: u32, end: u32) -> bool {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.fail(
                        ReadErrorKind::SeveralDocuments,
                        "the text holds more than one YAML document; one file is one document",
                        start,
                        end,
                    );
                    return false;
                }
                true
            }
            Event::Scalar(value, style, anchor, tag) => {
                self.note_properties(anchor, tag.as_deref(), start, end);
                let meant = tag.as_deref().and_then(scalar_tag);
                let plain = match meant {
                    Some(ScalarTag::Text) => false,
                    Some(ScalarTag::Other(_)) => true,
                    None => style == ScalarStyle::Plain,
                };
                if let Some(ScalarTag::Other(name)) = meant
                    && !fits(name, resolve_plain(&value))
                {
                    let message = format!("the value is not what its tag `!!{name}` says");
                    self.fail(ReadErrorKind::Syntax, message, start, end);
                }
                let text = self.text_of(value, start, end);
                self.add(TreeNode {
                    start,
                    end,
                    data: NodeData::Scalar { text, plain },
                })
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.note_properties(anchor, tag.as_deref(), start, end);
                self.note_collection_tag(tag.as_deref(), "seq", start);
                self.descend(OpenCollection {
                    start,
                    kind: OpenKind::Seq(Vec::new()),
                })
            }
            Event::MappingStart(_, anchor, tag) => {
                self.note_properties(anchor, tag.as_deref(), start, end);
                self.note_collection_tag(tag.as_deref(), "map", start);
                self.descend(OpenCollection {
                    start,
                    kind: OpenKind::Map {
                        entries: Vec::new(),
                        key: None,
                    },
                })
            }
            Event::SequenceEnd | Event::MappingEnd => self.ascend(end),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                let name = shorten(&self.text[start as usize..end as usize]);
                let message = format!("alias `{name}` is not allowed");
                self.fail(ReadErrorKind::Alias, message, start, end);
                // Something stands here, so it is a text rather than nothing.
                let text = ScalarText::Owned("".into());
                self.add(TreeNode {
                    start,
                    end,
                    data: NodeData::Scalar { text, plain: false },
                })
            }
            _ => true,
        }
    }

    /// Adds a finished node to the collection it stands in.
    fn add(&mut self, node: TreeNode) -> bool {
        self.nodes += 1;
        if self.nodes > self.limits.max_nodes {
            let message = format!("more than {} nodes", self.limits.max_nodes);
            self.fail(ReadErrorKind::TooManyNodes, message, node.start, node.end);
            return false;
        }
        match self.open.last_mut().map(|open| &mut open.kind) {
            None => self.root = Some(node),
            Some(OpenKind::Seq(items)) => items.push(node),
            Some(OpenKind::Map { entries, key }) => match key.take() {
                None => *key = Some(node),
                Some(key) => entries.push(MappingEntry { key, value: node }),
            },
        }
        true
    }

    fn descend(&mut self, open: OpenCollection) -> bool {
        // The parser enforces the same limit per notation; this one holds for any mixture.
        if self.open.len() >= self.limits.max_depth {
            self.refuse_depth(open.start);
            return false;
        }
        self.open.push(open);
        true
    }

    fn ascend(&mut self, end: u32) -> bool {
        let Some(OpenCollection { start, kind }) = self.open.pop() else {
            return false;
        };
        let data = match kind {
            OpenKind::Seq(items) => NodeData::Seq(items),
            OpenKind::Map { entries, .. } => {
                NodeData::Map(Entries::new(self.check_keys(entries), self.text))
            }
        };
        self.add(TreeNode {
            start,
            end: end.max(start),
            data,
        })
    }

    /// Reports keys that are no strings, merge keys and repeated keys, and drops their entries.
    fn check_keys(&mut self, entries: Vec<MappingEntry>) -> Vec<MappingEntry> {
        // Most mappings have a handful of keys, where looking back beats hashing.
        let mut seen = (entries.len() > 16).then(HashSet::new);
        let mut kept: Vec<MappingEntry> = Vec::with_capacity(entries.len());
        for entry in entries {
            let problem = match &entry.key.data {
                NodeData::Scalar { text, plain } => {
                    let name = text.get(self.text);
                    let repeated = match &mut seen {
                        Some(seen) => !seen.insert(name.to_owned()),
                        None => kept.iter().any(|e| e.key.text(self.text) == name),
                    };
                    if *plain && name == "<<" {
                        Some((
                            ReadErrorKind::MergeKey,
                            "merge key `<<` is not allowed".to_owned(),
                        ))
                    } else if repeated {
                        let name = shorten(name);
                        Some((
                            ReadErrorKind::DuplicateKey,
                            format!("key `{name}` appears twice in this mapping"),
                        ))
                    } else {
                        None
                    }
                }
                _ => Some((
                    ReadErrorKind::KeyNotText,
                    "a mapping key must be a string".to_owned(),
                )),
            };
            match problem {
                Some((kind, message)) => {
                    self.fail(kind, message, entry.key.start, entry.key.end);
                }
                None => kept.push(entry),
            }
        }
        kept
    }

    fn note_properties(&mut self, anchor: usize, tag: Option<&Tag>, start: u32, end: u32) {
        if anchor != 0 {
            let (from, to) = self.before(start, '&').unwrap_or((start, end));
            self.fail(ReadErrorKind::Anchor, "anchors are not allowed", from, to);
        }
        if let Some(tag) = tag
            && !is_core(tag)
        {
            let (from, to) = self.before(start, '!').unwrap_or((start, end));
            let name = shorten(&self.text[from as usize..to as usize]);
            let message = format!("custom tag `{name}` is not allowed");
            self.fail(ReadErrorKind::CustomTag, message, from, to);
        }
    }

    /// A collection may be called what it is, and nothing else.
    fn note_collection_tag(&mut self, tag: Option<&Tag>, kind: &str, start: u32) {
        if let Some(tag) = tag
            && is_core(tag)
            && !tag.suffix().is_empty()
            && tag.suffix() != kind
        {
            let message = format!("the value is not what its tag `!!{}` says", tag.suffix());
            self.fail(ReadErrorKind::Syntax, message, start, start);
        }
    }

    /// The word beginning with `mark` that stands before `start`, such as `&name`.
    fn before(&self, start: u32, mark: char) -> Option<(u32, u32)> {
        let head = &self.text[..start as usize];
        let from = head.rfind(mark)?;
        let length = head[from..]
            .find(char::is_whitespace)
            .unwrap_or(head.len() - from);
        Some((
            u32::try_from(from).ok()?,
            u32::try_from(from + length).ok()?,
        ))
    }

    /// Refers to the source where the value stands there as it is, and copies it otherwise.
    fn text_of(&self, value: Cow<'t, str>, start: u32, end: u32) -> ScalarText {
        for (from, to) in [(start, end), (start + 1, end.saturating_sub(1))] {
            if self.text.get(from as usize..to as usize) == Some(&*value) {
                return ScalarText::Source(from, to);
            }
        }
        ScalarText::Owned(value.into())
    }

    fn refuse_syntax(&mut self, error: &ScanError) {
        let at = error.marker().byte_offset().unwrap_or(0);
        let message = error.info();
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            self.refuse_depth(offset(Some(at)));
        } else {
            let message = format!("this is not valid YAML: {message}");
            let (start, end) = (offset(Some(at)), offset(Some(at + 1)));
            let help = help::for_syntax(error.kind());
            self.fail_with(ReadErrorKind::Syntax, message, help, start, end);
        }
        // What was read before a syntax error is not the document.
        self.root = None;
    }

    fn refuse_depth(&mut self, start: u32) {
        let message = format!("nested deeper than {} levels", self.limits.max_depth);
        self.fail(ReadErrorKind::TooDeep, message, start, start + 1);
    }

    fn fail(&mut self, kind: ReadErrorKind, message: impl Into<String>, start: u32, end: u32) {
        self.fail_with(kind, message, kind.help(), start, end);
    }

    fn fail_with(
        &mut self,
        kind: ReadErrorKind,
        message: impl Into<String>,
        help: &'static str,
        start: u32,
        end: u32,
    ) {
        // A hostile text may break a rule a million times; a person reads the first hundred.
        if self.errors.len() < 100 {
            self.errors.push(ReadError {
                kind,
                message: message.into(),
                help,
                span: self.places.span(self.text, start as usize, end as usize),
            });
        }
    }
}

fn offset(byte: Option<usize>) -> u32 {
    byte.and_then(|b| u32::try_from(b).ok()).unwrap_or(u32::MAX)
}

/// The tags of the core schema.
const CORE_TAGS: [&str; 7] = ["str", "null", "bool", "int", "float", "seq", "map"];

fn is_core(tag: &Tag) -> bool {
    (tag.is_yaml_core_schema() && CORE_TAGS.contains(&tag.suffix()))
        || (tag.handle() == "!" && tag.suffix().is_empty())
}

/// What a tag says of a scalar.
#[derive(Clone, Copy)]
enum ScalarTag {
    /// `!!str` and the bare `!`: a string, however it is written.
    Text,
    /// Another tag of the core schema: what the text means without quotes, which must be of that kind.
    Other(&'static str),
}

fn scalar_tag(tag: &Tag) -> Option<ScalarTag> {
    if !is_core(tag) {
        return None;
    }
    let known = CORE_TAGS.into_iter().find(|name| *name == tag.suffix());
    Some(match known {
        None | Some("str") => ScalarTag::Text,
        Some(name) => ScalarTag::Other(name),
    })
}

/// Whether a scalar is of the kind that a tag names.
fn fits(tag: &str, scalar: YamlScalar<'_>) -> bool {
    match scalar {
        YamlScalar::Null => tag == "null",
        YamlScalar::Bool(_) => tag == "bool",
        YamlScalar::Int(_) | YamlScalar::UInt(_) => matches!(tag, "int" | "float"),
        YamlScalar::Float(_) => tag == "float",
        // Whether the number is of use is for others to say.
        YamlScalar::OutOfRange(_) => matches!(tag, "int" | "float"),
        YamlScalar::Text(_) => false,
    }
}

fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(60) {
        Some((cut, _)) => Cow::Owned(format!("{}…", &text[..cut])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<ReadErrorKind> {
        read(text, &ReadLimits::default())
            .1
            .into_iter()
            .map(|e| e.kind)
            .collect()
    }

    #[test]
    fn refuses_what_it_should_and_says_where() {
        use ReadErrorKind::{
            Alias, Anchor, Binary, CustomTag, DuplicateKey, Empty, KeyNotText, MergeKey,
            SeveralDocuments, Syntax,
        };
        for (text, expected, line, column) in [
            ("", Empty, 1, 1),
            ("# only a comment\n", Empty, 1, 1),
            ("a: 1\n---\nb: 2\n", SeveralDocuments, 2, 1),
            ("a: [1, 2\n", Syntax, 1, 4),
            ("a: 1\nb: 2\na: 3\n", DuplicateKey, 3, 1),
            ("\"a\": 1\na: 3\n", DuplicateKey, 2, 1),
            ("[a, b]: 1\n", KeyNotText, 1, 1),
            ("a: &x 1\n", Anchor, 1, 4),
            ("a: *x\n", Alias, 1, 4),
            ("b:\n  <<: {a: 1}\n", MergeKey, 2, 3),
            ("a: !include x.yaml\n", CustomTag, 1, 4),
            ("a: \0\n", Binary, 1, 4),
        ] {
            let (_, errors) = read(text, &ReadLimits::default());
            assert_eq!(errors.len(), 1, "{text:?}: {errors:?}");
            assert_eq!(errors[0].kind, expected, "{text:?}");
            assert_eq!(
                (errors[0].span.line, errors[0].span.column),
                (line, column),
                "{text:?}"
            );
        }
    }

    #[test]
    fn accepts_core_tags_bom_crlf_and_quoted_merge_marks() {
        assert_eq!(
            kinds("a: !!str 12\nb: !!int 3\nc: !!int \"3\"\nd: !!seq []\ne: !!map {}\n"),
            []
        );
        for wrong in [
            "!!int x", "!!bool 1", "!!seq {}", "!!str []", "!!map x", "!!null 0",
        ] {
            assert_eq!(
                kinds(&format!("a: {wrong}\n")),
                [ReadErrorKind::Syntax],
                "{wrong}"
            );
        }
        assert_eq!(kinds("a: !!binary eA==\n"), [ReadErrorKind::CustomTag]);
        assert_eq!(kinds("\u{feff}a: 1\r\nb: 2\r\n"), []);
        assert_eq!(kinds("\"<<\": 1\n"), []);
        assert_eq!(kinds("---\na: 1\n...\n"), []);
    }

    #[test]
    fn collects_every_error_that_leaves_the_tree_whole() {
        assert_eq!(
            kinds("a: &x 1\nb: *x\na: 2\n"),
            [
                ReadErrorKind::Anchor,
                ReadErrorKind::Alias,
                ReadErrorKind::DuplicateKey
            ]
        );
    }

    #[test]
    fn refuses_depth_size_and_count_within_bounds() {
        let deep = format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(kinds(&deep), [ReadErrorKind::TooDeep]);
        let blocks: String = (0..2_000)
            .map(|i| format!("{}a:\n", " ".repeat(i)))
            .collect();
        assert_eq!(kinds(&blocks), [ReadErrorKind::TooDeep]);
        let mixed = format!("{}{}{}", "- ".repeat(100), "[".repeat(100), "]".repeat(100));
        assert_eq!(kinds(&mixed), [ReadErrorKind::TooDeep]);
        let limits = ReadLimits {
            max_nodes: 3,
            ..ReadLimits::default()
        };
        assert_eq!(
            read("[1, 2, 3, 4]", &limits).1[0].kind,
            ReadErrorKind::TooManyNodes
        );
        let limits = ReadLimits {
            max_bytes: 3,
            ..ReadLimits::default()
        };
        assert_eq!(read("a: 1", &limits).1[0].kind, ReadErrorKind::TooLarge);
    }

    #[test]
    fn a_million_repeated_keys_and_anchors_stay_cheap() {
        let repeated = "a: 1\n".repeat(100_000);
        assert_eq!(kinds(&repeated).len(), 100);
        let anchors: String = (0..50_000).map(|i| format!("k{i}: &a 1\n")).collect();
        assert_eq!(kinds(&anchors).len(), 100);
    }
}
