//! The node tree of a document, tied to the text it was read from.

use serde_json::{Map, Number, Value};

use crate::diagnostic::Span;
use crate::path::{DocPath, PathSegment};
use crate::places::PlaceIndex;
use crate::yaml::read::{ReadError, ReadLimits, read};
use crate::yaml::scalar::{YamlScalar, resolve_plain};

/// A text and the tree of nodes read from it.
///
/// Nodes refer to the text instead of copying it where they can, so keeping the tree is cheap; the
/// line and column of a node are worked out only when somebody asks.
#[derive(Debug)]
pub struct Source {
    text: Box<str>,
    places: PlaceIndex,
    root: TreeNode,
}

/// One node of a [`Source`].
#[derive(Debug, Clone, Copy)]
pub struct NodeRef<'s> {
    source: &'s Source,
    node: &'s TreeNode,
}

#[derive(Debug)]
pub(crate) struct TreeNode {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) data: NodeData,
}

#[derive(Debug)]
pub(crate) enum NodeData {
    Scalar { text: ScalarText, plain: bool },
    Seq(Vec<TreeNode>),
    Map(Entries),
}

/// The entries of a mapping in source order.
#[derive(Debug)]
pub(crate) struct Entries {
    list: Vec<MappingEntry>,
    /// Positions sorted by key, so that a large mapping is not searched from its start; empty for
    /// the small ones.
    sorted: Box<[u32]>,
}

impl Entries {
    pub(crate) fn new(list: Vec<MappingEntry>, source: &str) -> Self {
        let mut sorted: Vec<u32> = Vec::new();
        if let (true, Ok(count)) = (list.len() > 16, u32::try_from(list.len())) {
            sorted.extend(0..count);
            sorted.sort_unstable_by_key(|position| list[*position as usize].key.text(source));
        }
        Self {
            list,
            sorted: sorted.into(),
        }
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, MappingEntry> {
        self.list.iter()
    }

    fn get(&self, key: &str, source: &str) -> Option<&MappingEntry> {
        if self.sorted.is_empty() {
            return self.list.iter().find(|entry| entry.key.text(source) == key);
        }
        let found = self
            .sorted
            .binary_search_by_key(&key, |position| {
                self.list[*position as usize].key.text(source)
            })
            .ok()?;
        self.list.get(self.sorted[found] as usize)
    }
}

#[derive(Debug)]
pub(crate) struct MappingEntry {
    pub(crate) key: TreeNode,
    pub(crate) value: TreeNode,
}

/// The text of a scalar: a part of the source, or its own where escapes or folding changed it.
#[derive(Debug)]
pub(crate) enum ScalarText {
    Source(u32, u32),
    Owned(Box<str>),
}

impl ScalarText {
    pub(crate) fn get<'a>(&'a self, source: &'a str) -> &'a str {
        match self {
            Self::Source(start, end) => &source[*start as usize..*end as usize],
            Self::Owned(text) => text,
        }
    }
}

impl TreeNode {
    /// The text of a scalar; empty for collections.
    pub(crate) fn text<'a>(&'a self, source: &'a str) -> &'a str {
        match &self.data {
            NodeData::Scalar { text, .. } => text.get(source),
            _ => "",
        }
    }
}

impl Source {
    /// Reads one YAML document.
    ///
    /// # Errors
    ///
    /// Returns every reason why the text was refused.
    pub fn read(text: &str, limits: &ReadLimits) -> Result<Self, Vec<ReadError>> {
        match Self::read_leniently(text, limits) {
            (Some(source), errors) if errors.is_empty() => Ok(source),
            (_, errors) => Err(errors),
        }
    }

    /// Reads one YAML document and keeps what could be read beside the errors.
    ///
    /// ```
    /// use proofhouse_source::{ReadLimits, Source};
    /// let (source, errors) = Source::read_leniently("a: 1\na: 2\n", &ReadLimits::default());
    /// assert!(source.is_some());
    /// assert_eq!(errors.len(), 1);
    /// ```
    #[must_use]
    pub fn read_leniently(text: &str, limits: &ReadLimits) -> (Option<Self>, Vec<ReadError>) {
        let (root, errors) = read(text, limits);
        (
            root.map(|root| Self {
                text: text.into(),
                places: PlaceIndex::default(),
                root,
            }),
            errors,
        )
    }

    /// A tree that was not read from text.
    pub(crate) fn without_text(root: TreeNode) -> Self {
        Self {
            text: "".into(),
            places: PlaceIndex::default(),
            root,
        }
    }

    /// The text the document was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The outermost node.
    #[must_use]
    pub fn root(&self) -> NodeRef<'_> {
        NodeRef {
            source: self,
            node: &self.root,
        }
    }

    /// The span of the node at `path`, or of its nearest ancestor that exists.
    ///
    /// A scalar is shown whole. A collection is shown by its key, because underlining a block of
    /// fifty lines helps nobody.
    #[must_use]
    pub fn span_of(&self, path: &DocPath<'_>) -> Span {
        let mut node = &self.root;
        let mut shown = (node.start, node.start);
        for segment in path.segments() {
            match (segment, &node.data) {
                (PathSegment::Key(key), NodeData::Map(entries)) => {
                    let Some(entry) = entries.get(key, &self.text) else {
                        break;
                    };
                    node = &entry.value;
                    shown = (entry.key.start, entry.key.end);
                }
                (PathSegment::Index(index), NodeData::Seq(items)) => {
                    let Some(item) = items.get(*index) else { break };
                    node = item;
                    shown = match &item.data {
                        NodeData::Map(entries) => entries
                            .list
                            .first()
                            .map_or((item.start, item.end), |e| (e.key.start, e.key.end)),
                        _ => (item.start, item.end),
                    };
                }
                _ => break,
            }
            if matches!(node.data, NodeData::Scalar { .. }) && node.end > node.start {
                shown = (node.start, node.end);
            }
        }
        self.span_at(shown.0 as usize, shown.1 as usize)
    }

    /// The span of the key at the end of `path`, falling back like [`Source::span_of`].
    #[must_use]
    pub fn key_span_of(&self, path: &DocPath<'_>) -> Span {
        if let Some((PathSegment::Key(last), parent)) = path.segments().split_last()
            && let Some(NodeData::Map(entries)) = self.node_at(parent).map(|n| &n.data)
            && let Some(entry) = entries.get(last, &self.text)
        {
            return self.span_at(entry.key.start as usize, entry.key.end as usize);
        }
        self.span_of(path)
    }

    /// The span of bytes `start..end` of the scalar at `path`, when the scalar stands in the text
    /// as it is; the whole scalar otherwise.
    ///
    /// This is how a finding inside a regular expression points into it.
    #[must_use]
    pub fn span_within(&self, path: &DocPath<'_>, start: usize, end: usize) -> Span {
        if let Some(NodeData::Scalar {
            text: ScalarText::Source(from, to),
            ..
        }) = self.node_at(path.segments()).map(|n| &n.data)
            && start <= end
            && end <= (*to - *from) as usize
        {
            let from = *from as usize;
            return self.span_at(from + start, from + end.max(start + 1));
        }
        self.span_of(path)
    }

    fn span_at(&self, start: usize, end: usize) -> Span {
        self.places.span(&self.text, start, end)
    }

    fn node_at(&self, segments: &[PathSegment<'_>]) -> Option<&TreeNode> {
        segments
            .iter()
            .try_fold(&self.root, |node, segment| match (segment, &node.data) {
                (PathSegment::Key(key), NodeData::Map(entries)) => {
                    entries.get(key, &self.text).map(|e| &e.value)
                }
                (PathSegment::Index(index), NodeData::Seq(items)) => items.get(*index),
                _ => None,
            })
    }
}

impl<'s> NodeRef<'s> {
    /// The value of a scalar node.
    #[must_use]
    pub fn scalar(self) -> Option<YamlScalar<'s>> {
        match &self.node.data {
            NodeData::Scalar { text, plain: true } => {
                Some(resolve_plain(text.get(&self.source.text)))
            }
            NodeData::Scalar { text, plain: false } => {
                Some(YamlScalar::Text(text.get(&self.source.text)))
            }
            _ => None,
        }
    }

    /// The text of a scalar node as written, whatever it would resolve to.
    #[must_use]
    pub fn raw_text(self) -> Option<&'s str> {
        match &self.node.data {
            NodeData::Scalar { text, .. } => Some(text.get(&self.source.text)),
            _ => None,
        }
    }

    /// Whether the node is `null`, `~` or nothing.
    #[must_use]
    pub fn is_null(self) -> bool {
        matches!(self.scalar(), Some(YamlScalar::Null))
    }

    /// The items of a sequence node.
    #[must_use]
    pub fn items(self) -> Option<impl ExactSizeIterator<Item = NodeRef<'s>>> {
        match &self.node.data {
            NodeData::Seq(items) => Some(items.iter().map(move |node| NodeRef {
                source: self.source,
                node,
            })),
            _ => None,
        }
    }

    /// The entries of a mapping node in source order.
    #[must_use]
    pub fn entries(self) -> Option<impl ExactSizeIterator<Item = (&'s str, NodeRef<'s>)>> {
        match &self.node.data {
            NodeData::Map(entries) => Some(entries.list.iter().map(move |entry| {
                let key = entry.key.text(&self.source.text);
                (
                    key,
                    NodeRef {
                        source: self.source,
                        node: &entry.value,
                    },
                )
            })),
            _ => None,
        }
    }

    /// The value at `key` of a mapping node.
    #[must_use]
    pub fn get(self, key: &str) -> Option<NodeRef<'s>> {
        match &self.node.data {
            NodeData::Map(entries) => entries.get(key, &self.source.text).map(|entry| NodeRef {
                source: self.source,
                node: &entry.value,
            }),
            _ => None,
        }
    }

    /// What the node is, for a message: "a mapping", "the string `x`".
    #[must_use]
    pub fn describe(self) -> String {
        match (&self.node.data, self.scalar()) {
            (NodeData::Seq(_), _) => "a sequence".to_owned(),
            (NodeData::Map(_), _) => "a mapping".to_owned(),
            (_, Some(YamlScalar::Null)) => "nothing".to_owned(),
            (_, Some(YamlScalar::Bool(value))) => format!("the boolean {value}"),
            (_, Some(YamlScalar::Int(_) | YamlScalar::UInt(_) | YamlScalar::Float(_))) => {
                format!("the number {}", clip(self.raw_text().unwrap_or_default()))
            }
            (_, Some(YamlScalar::OutOfRange(text))) => format!("the number {}", clip(text)),
            (_, Some(YamlScalar::Text(text))) => format!("the string \"{}\"", clip(text)),
            (NodeData::Scalar { .. }, None) => "a scalar".to_owned(),
        }
    }

    /// What kind of value the node is, for a message that must not show it because it may be a secret.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match (&self.node.data, self.scalar()) {
            (NodeData::Seq(_), _) => "a list",
            (NodeData::Map(_), _) => "a mapping",
            (_, Some(YamlScalar::Null)) => "nothing",
            (_, Some(YamlScalar::Bool(_))) => "a truth value",
            (_, Some(YamlScalar::Text(_))) | (NodeData::Scalar { .. }, None) => "a text",
            (_, Some(_)) => "a number",
        }
    }

    /// The node as JSON. Numbers that JSON cannot hold are passed to `out_of_range`, with the path
    /// of their place below this node left to the caller, and become `null`.
    #[must_use]
    pub fn to_value(self, out_of_range: &mut dyn FnMut(NodeRef<'s>)) -> Value {
        match &self.node.data {
            NodeData::Scalar { .. } => match self.scalar() {
                Some(YamlScalar::Bool(value)) => Value::Bool(value),
                Some(YamlScalar::Int(value)) => Value::from(value),
                Some(YamlScalar::UInt(value)) => Value::from(value),
                Some(YamlScalar::Float(value)) => {
                    Number::from_f64(value).map_or(Value::Null, Value::Number)
                }
                Some(YamlScalar::Text(text)) => Value::String(text.to_owned()),
                Some(YamlScalar::OutOfRange(_)) => {
                    out_of_range(self);
                    Value::Null
                }
                Some(YamlScalar::Null) | None => Value::Null,
            },
            NodeData::Seq(items) => Value::Array(
                items
                    .iter()
                    .map(|node| {
                        NodeRef {
                            source: self.source,
                            node,
                        }
                        .to_value(out_of_range)
                    })
                    .collect(),
            ),
            NodeData::Map(entries) => {
                let mut map = Map::with_capacity(entries.list.len());
                for entry in &entries.list {
                    let value = NodeRef {
                        source: self.source,
                        node: &entry.value,
                    };
                    map.insert(
                        entry.key.text(&self.source.text).to_owned(),
                        value.to_value(out_of_range),
                    );
                }
                Value::Object(map)
            }
        }
    }

    /// The span of the node itself, shown on one line.
    #[must_use]
    pub fn span(self) -> Span {
        self.source
            .span_at(self.node.start as usize, self.node.end as usize)
    }
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PathSegment::{Index, Key};

    fn path<'a>(segments: &[PathSegment<'a>]) -> DocPath<'a> {
        let mut path = DocPath::default();
        for segment in segments {
            path.push(*segment);
        }
        path
    }

    fn span(text: &str, segments: &[PathSegment<'_>]) -> (usize, usize, String) {
        let source = Source::read(text, &ReadLimits::default()).unwrap();
        let span = source.span_of(&path(segments));
        (span.line, span.column, text[span.range()].to_owned())
    }

    #[test]
    fn points_at_scalars_keys_and_nearest_ancestors() {
        let text = "a:\n  b: \"x y\"\n  c:\n    - d: 1\n      e: 2\n    - ü: [1, zwei]\n";
        assert_eq!(span(text, &[Key("a"), Key("b")]), (2, 6, "\"x y\"".into()));
        assert_eq!(span(text, &[Key("a")]), (1, 1, "a".into()));
        assert_eq!(
            span(text, &[Key("a"), Key("c"), Index(0)]),
            (4, 7, "d".into())
        );
        assert_eq!(
            span(text, &[Key("a"), Key("c"), Index(0), Key("zz")]),
            (4, 7, "d".into())
        );
        assert_eq!(
            span(text, &[Key("a"), Key("c"), Index(1), Key("ü"), Index(1)]),
            (6, 14, "zwei".into())
        );
        assert_eq!(span(text, &[Key("nope"), Index(3)]), (1, 1, String::new()));
    }

    #[test]
    fn a_span_never_leaves_its_first_line() {
        let text = "a: |\n  one\n  two\n";
        let (line, _, shown) = span(text, &[Key("a")]);
        assert_eq!((line, shown.as_str()), (2, "one"));
    }

    #[test]
    fn points_inside_a_scalar_that_stands_as_it_is() {
        let text = "a: \"ab[c\"\nb: \"\\x41[c\"\nc: plain\n";
        let source = Source::read(text, &ReadLimits::default()).unwrap();
        let within = source.span_within(&path(&[Key("a")]), 2, 4);
        assert_eq!(&text[within.range()], "[c");
        let escaped = source.span_within(&path(&[Key("b")]), 1, 2);
        assert_eq!(&text[escaped.range()], "\"\\x41[c\"");
        let beyond = source.span_within(&path(&[Key("c")]), 2, 99);
        assert_eq!(&text[beyond.range()], "plain");
    }

    #[test]
    fn points_at_keys() {
        let text = "a:\n  bee: 12\n";
        let source = Source::read(text, &ReadLimits::default()).unwrap();
        assert_eq!(
            &text[source.key_span_of(&path(&[Key("a"), Key("bee")])).range()],
            "bee"
        );
        assert_eq!(
            &text[source.key_span_of(&path(&[Key("a"), Key("zz")])).range()],
            "a"
        );
    }

    #[test]
    fn large_mappings_are_looked_up_like_small_ones() {
        for count in [1, 16, 17, 300] {
            let text: String = (0..count).rev().map(|n| format!("k{n}: {n}\n")).collect();
            let source = Source::read(&text, &ReadLimits::default()).unwrap();
            for n in 0..count {
                let node = source.root().get(&format!("k{n}")).unwrap();
                assert_eq!(node.raw_text(), Some(n.to_string().as_str()));
            }
            assert!(source.root().get("k").is_none() && source.root().get("z").is_none());
        }
    }

    #[test]
    fn becomes_json_in_source_order() {
        let source = Source::read(
            "b: [1, -2, 1.5, yes]\na: {x: null, y: 18446744073709551615}\n",
            &ReadLimits::default(),
        )
        .unwrap();
        let mut odd = 0;
        let value = source.root().to_value(&mut |_| odd += 1);
        assert_eq!(
            value.to_string(),
            r#"{"b":[1,-2,1.5,"yes"],"a":{"x":null,"y":18446744073709551615}}"#
        );
        assert_eq!(odd, 0);
        let source = Source::read(
            "[.nan, 1e999, 99999999999999999999]",
            &ReadLimits::default(),
        )
        .unwrap();
        assert_eq!(
            source.root().to_value(&mut |_| odd += 1).to_string(),
            "[null,null,null]"
        );
        assert_eq!(odd, 3);
    }

    #[test]
    fn describes_nodes() {
        let source = Source::read(
            "a: [1]\nb: {}\nc:\nd: true\ne: 1.5\nf: .inf\ng: \"text\"\n",
            &ReadLimits::default(),
        )
        .unwrap();
        let described: Vec<String> = source
            .root()
            .entries()
            .unwrap()
            .map(|(_, node)| node.describe())
            .collect();
        assert_eq!(
            described,
            [
                "a sequence",
                "a mapping",
                "nothing",
                "the boolean true",
                "the number 1.5",
                "the number .inf",
                "the string \"text\""
            ]
        );
    }
}
