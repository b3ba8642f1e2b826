//! A fast reader for the YAML that people mostly write.
//!
//! Nine documents in ten are block mappings and sequences with one-line scalars and literal blocks.
//! For those this reader builds the same tree as the full parser in a fraction of the time. The
//! moment it meets anything else (an anchor, a tab, a scalar over several lines, a mistake) it gives
//! up and the full parser reads the text from the start; so it never reports an error and never has
//! to be complete, only right. A property test holds it to that.

use crate::tree::{Entries, MappingEntry, NodeData, ScalarText, TreeNode};
use crate::yaml::read::ReadLimits;

/// Reads `text`, or gives up.
pub(crate) fn read(text: &str, limits: &ReadLimits) -> Option<TreeNode> {
    if text.len() > limits.max_bytes
        || u32::try_from(text.len()).is_err()
        || !text.bytes().all(|b| b == b'\n' || (b >= b' ' && b != 0x7f))
        || !(text.is_ascii() || text.chars().all(is_ordinary))
    {
        return None;
    }
    let mut reader = PlainReader {
        text,
        at: 0,
        nodes: 0,
        depth: 0,
        limits,
    };
    let first = reader.line()?;
    let root = reader.block(first, None)?;
    // Nothing but blank lines and comments may follow.
    if matches!(root.data, NodeData::Map(_)) && reader.line().is_none() && reader.at >= text.len() {
        Some(root)
    } else {
        None
    }
}

/// Characters beyond ASCII that every YAML reader takes as text.
fn is_ordinary(c: char) -> bool {
    c.is_ascii()
        || !matches!(
            c,
            '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// A line that holds something.
#[derive(Clone, Copy)]
struct ContentLine {
    /// Column, and so indentation, of the first character.
    indent: usize,
    /// Offset of the first character.
    start: usize,
    /// Offset of the line break, or the end of the text.
    end: usize,
}

struct PlainReader<'t> {
    text: &'t str,
    /// Offset of the start of the next line.
    at: usize,
    nodes: usize,
    depth: usize,
    limits: &'t ReadLimits,
}

impl<'t> PlainReader<'t> {
    /// The next line that is neither blank nor a comment, without passing it.
    fn line(&mut self) -> Option<ContentLine> {
        let bytes = self.text.as_bytes();
        loop {
            if self.at >= bytes.len() {
                return None;
            }
            let end = newline(bytes, self.at);
            let start = self.at
                + bytes[self.at..end]
                    .iter()
                    .take_while(|b| **b == b' ')
                    .count();
            if start == end || bytes[start] == b'#' {
                self.at = (end + 1).min(bytes.len());
                continue;
            }
            return Some(ContentLine {
                indent: start - self.at,
                start,
                end,
            });
        }
    }

    fn pass(&mut self, line: ContentLine) {
        self.at = (line.end + 1).min(self.text.len());
    }

    fn node(&mut self, start: usize, end: usize, data: NodeData) -> Option<TreeNode> {
        self.nodes += 1;
        if self.nodes > self.limits.max_nodes {
            return None;
        }
        Some(TreeNode {
            start: offset(start),
            end: offset(end),
            data,
        })
    }

    /// A mapping or sequence that begins on `line`, deeper than `parent`.
    fn block(&mut self, line: ContentLine, parent: Option<usize>) -> Option<TreeNode> {
        if parent.is_some_and(|parent| line.indent <= parent) {
            return None;
        }
        self.collection(line, line.indent, line.start)
    }

    /// A mapping or sequence at `column` that begins at offset `start` of `line`.
    fn collection(&mut self, line: ContentLine, column: usize, start: usize) -> Option<TreeNode> {
        self.depth += 1;
        if self.depth > self.limits.max_depth {
            return None;
        }
        let node = if self.is_item(start, line.end) {
            self.sequence(line, column, start)
        } else {
            self.mapping(line, column, start)
        };
        self.depth -= 1;
        node
    }

    /// Whether a `-` that begins an item stands at `start`.
    fn is_item(&self, start: usize, end: usize) -> bool {
        let bytes = self.text.as_bytes();
        bytes[start] == b'-' && (start + 1 == end || bytes[start + 1] == b' ')
    }

    fn sequence(&mut self, mut line: ContentLine, column: usize, first: usize) -> Option<TreeNode> {
        let mut items = Vec::new();
        let mut start = first;
        loop {
            let inner = start + 1 + self.spaces(start + 1, line.end);
            let item = if self.is_blank(inner, line.end) {
                self.pass(line);
                match self.line() {
                    Some(next) if next.indent > column => self.block(next, Some(column))?,
                    _ => return None,
                }
            } else {
                let inner_column = column + (inner - start);
                if self.is_item(inner, line.end) || self.key(inner, line.end).is_some() {
                    self.collection(line, inner_column, inner)?
                } else {
                    self.scalar(line, inner, column)?
                }
            };
            items.push(item);
            match self.line() {
                Some(next) if next.indent == column && self.is_item(next.start, next.end) => {
                    line = next;
                    start = next.start;
                }
                Some(next) if next.indent > column => return None,
                _ => break,
            }
        }
        self.node(first, first, NodeData::Seq(items))
    }

    fn mapping(&mut self, mut line: ContentLine, column: usize, first: usize) -> Option<TreeNode> {
        let mut entries: Vec<MappingEntry> = Vec::new();
        let mut start = first;
        loop {
            let (key, after) = self.key(start, line.end)?;
            let (from, to) = (key.start as usize, key.end as usize);
            let name = key.text(self.text);
            // Repeated and overlong keys are for the full parser to judge.
            if to - from > 512 || entries.iter().any(|e| e.key.text(self.text) == name) {
                return None;
            }
            let key = self.node(from, to, key.data)?;
            let value = self.value(line, after, column)?;
            entries.push(MappingEntry { key, value });
            // Looking for repeated keys is quadratic; large mappings take the other way.
            if entries.len() > 64 {
                return None;
            }
            match self.line() {
                Some(next) if next.indent == column && !self.is_item(next.start, next.end) => {
                    line = next;
                    start = next.start;
                }
                Some(next) if next.indent > column => return None,
                _ => break,
            }
        }
        self.node(
            first,
            first,
            NodeData::Map(Entries::new(entries, self.text)),
        )
    }

    /// What follows a key's colon.
    fn value(&mut self, line: ContentLine, after: usize, column: usize) -> Option<TreeNode> {
        let start = after + self.spaces(after, line.end);
        if !self.is_blank(start, line.end) {
            return self.scalar(line, start, column);
        }
        self.pass(line);
        match self.line() {
            Some(next) if next.indent > column => self.block(next, Some(column)),
            Some(next) if next.indent == column && self.is_item(next.start, next.end) => {
                self.collection(next, column, next.start)
            }
            _ => None,
        }
    }

    /// A key and the offset after its colon, if `start` is one.
    fn key(&self, start: usize, end: usize) -> Option<(TreeNode, usize)> {
        let bytes = self.text.as_bytes();
        let (text, stop, plain) = match bytes[start] {
            quote @ (b'"' | b'\'') => {
                let close = start + 1 + bytes[start + 1..end].iter().position(|b| *b == quote)?;
                if bytes[start + 1..close].contains(&b'\\') || bytes.get(close + 1) == Some(&b'\'')
                {
                    return None;
                }
                ((start + 1, close), close + 1, false)
            }
            first if first.is_ascii_alphanumeric() || first == b'_' || first == b'$' => {
                let length = bytes[start..end]
                    .iter()
                    .take_while(|b| is_key_byte(**b))
                    .count();
                ((start, start + length), start + length, true)
            }
            _ => return None,
        };
        let ends = bytes.get(stop) == Some(&b':')
            && stop < end
            && (stop + 1 == end || bytes[stop + 1] == b' ')
            && bytes[stop - 1] != b' ';
        let text = ScalarText::Source(offset(text.0), offset(text.1));
        let data = NodeData::Scalar { text, plain };
        ends.then(|| {
            (
                TreeNode {
                    start: offset(start),
                    end: offset(stop),
                    data,
                },
                stop + 1,
            )
        })
    }

    /// A scalar or flow collection that begins at `start` and, but for block scalars, ends on its
    /// line. `parent` is the column that continuation lines would have to exceed.
    fn scalar(&mut self, line: ContentLine, start: usize, parent: usize) -> Option<TreeNode> {
        let bytes = self.text.as_bytes();
        let node = match bytes[start] {
            b'|' => return self.literal(line, start, parent),
            b'"' | b'\'' => {
                let (node, after) = self.quoted(start, line.end)?;
                if !self.is_blank(after + self.spaces(after, line.end), line.end)
                    || (after < line.end && bytes[after] != b' ')
                {
                    return None;
                }
                node
            }
            b'[' | b'{' => {
                let (node, after) = self.flow(start, line.end)?;
                if after != line.end {
                    return None;
                }
                node
            }
            _ => self.plain(start, line.end)?,
        };
        self.pass(line);
        // A deeper line would continue the scalar, or be a mistake.
        match self.line() {
            Some(next) if next.indent > parent => None,
            _ => Some(node),
        }
    }

    fn plain(&mut self, start: usize, end: usize) -> Option<TreeNode> {
        let mut rest = &self.text[start..end];
        if let Some(comment) = rest.find(" #") {
            rest = &rest[..comment];
        }
        let rest = rest.trim_end_matches(' ');
        let first = rest.bytes().next()?;
        let safe = !matches!(
            first,
            b'-' | b'?'
                | b':'
                | b','
                | b'['
                | b']'
                | b'{'
                | b'}'
                | b'#'
                | b'&'
                | b'*'
                | b'!'
                | b'|'
                | b'>'
                | b'\''
                | b'"'
                | b'%'
                | b'@'
                | b'`'
        ) && !rest.contains(": ")
            && !rest.ends_with(':');
        let end = start + rest.len();
        let data = NodeData::Scalar {
            text: ScalarText::Source(offset(start), offset(end)),
            plain: true,
        };
        if safe {
            self.node(start, end, data)
        } else {
            None
        }
    }

    /// A quoted scalar on one line, and the offset after it.
    fn quoted(&mut self, start: usize, end: usize) -> Option<(TreeNode, usize)> {
        let bytes = self.text.as_bytes();
        let quote = bytes[start];
        let mut at = start + 1;
        let mut owned: Option<String> = None;
        let mut copied = at;
        loop {
            if at >= end {
                return None;
            }
            let (escape, length) = match bytes[at] {
                b'\\' if quote == b'"' => {
                    let c = match bytes.get(at + 1)? {
                        b'"' => '"',
                        b'\\' => '\\',
                        b'/' => '/',
                        b'n' => '\n',
                        b't' => '\t',
                        b'r' => '\r',
                        _ => return None,
                    };
                    (c, 2)
                }
                b'\'' if quote == b'\'' && bytes.get(at + 1) == Some(&b'\'') => ('\'', 2),
                byte if byte == quote => break,
                _ => {
                    at += 1;
                    continue;
                }
            };
            let text = owned.get_or_insert_with(String::new);
            text.push_str(&self.text[copied..at]);
            text.push(escape);
            at += length;
            copied = at;
        }
        let text = match owned {
            Some(mut text) => {
                text.push_str(&self.text[copied..at]);
                ScalarText::Owned(text.into())
            }
            None => ScalarText::Source(offset(start + 1), offset(at)),
        };
        let node = self.node(start, at + 1, NodeData::Scalar { text, plain: false })?;
        Some((node, at + 1))
    }

    /// A flow collection on one line, and the offset after it.
    fn flow(&mut self, start: usize, end: usize) -> Option<(TreeNode, usize)> {
        self.depth += 1;
        if self.depth > self.limits.max_depth {
            return None;
        }
        let bytes = self.text.as_bytes();
        let is_map = bytes[start] == b'{';
        let close = if is_map { b'}' } else { b']' };
        let (mut items, mut entries) = (Vec::new(), Vec::<MappingEntry>::new());
        let mut at = start + 1;
        loop {
            at += self.spaces(at, end);
            if at < end && bytes[at] == close && items.is_empty() && entries.is_empty() {
                break;
            }
            let (node, after) = self.flow_item(at, end)?;
            at = after;
            if is_map {
                let name = node.text(self.text);
                let colon = bytes.get(at) == Some(&b':') && bytes.get(at + 1) == Some(&b' ');
                if !colon
                    || !matches!(node.data, NodeData::Scalar { .. })
                    || entries.len() > 32
                    || entries.iter().any(|e| e.key.text(self.text) == name)
                {
                    return None;
                }
                at += 1;
                at += self.spaces(at, end);
                let (value, after) = self.flow_item(at, end)?;
                at = after;
                entries.push(MappingEntry { key: node, value });
            } else {
                items.push(node);
            }
            at += self.spaces(at, end);
            match bytes.get(at).filter(|_| at < end)? {
                // A comma is followed by another item; a trailing one is left to the full parser.
                b',' if bytes.get(at + 1) == Some(&b' ') => at += 1,
                byte if *byte == close => break,
                _ => return None,
            }
        }
        self.depth -= 1;
        let data = if is_map {
            NodeData::Map(Entries::new(entries, self.text))
        } else {
            NodeData::Seq(items)
        };
        let node = self.node(start, at + 1, data)?;
        Some((node, at + 1))
    }

    fn flow_item(&mut self, start: usize, end: usize) -> Option<(TreeNode, usize)> {
        let bytes = self.text.as_bytes();
        if start >= end {
            return None;
        }
        match bytes[start] {
            b'[' | b'{' => self.flow(start, end),
            b'"' | b'\'' => self.quoted(start, end),
            first if first.is_ascii_alphanumeric() || first == b'_' || first == b'$' => {
                let length = bytes[start..end]
                    .iter()
                    .take_while(|b| is_key_byte(**b))
                    .count();
                let text = self.text[start..start + length].trim_end_matches(' ');
                let stop = start + text.len();
                let data = NodeData::Scalar {
                    text: ScalarText::Source(offset(start), offset(stop)),
                    plain: true,
                };
                let node = self.node(start, stop, data)?;
                Some((node, stop))
            }
            _ => None,
        }
    }

    /// A literal block scalar; its header stands at `start`.
    fn literal(&mut self, line: ContentLine, start: usize, parent: usize) -> Option<TreeNode> {
        let bytes = self.text.as_bytes();
        let header = self.text[start + 1..line.end].trim_end_matches(' ');
        if !matches!(header, "" | "-" | "+") {
            return None;
        }
        self.pass(line);
        let body_start = self.at;
        let mut indent = None;
        let mut first = body_start;
        let mut last = body_start;
        let mut text = String::new();
        // Line breaks that count only if more text follows.
        let mut breaks = 0;
        let mut started = false;
        while self.at < bytes.len() {
            let end = newline(bytes, self.at);
            let spaces = bytes[self.at..end]
                .iter()
                .take_while(|b| **b == b' ')
                .count();
            let blank = self.at + spaces == end;
            if blank {
                // Spaces beyond the indentation are content, or a mistake.
                if indent.is_none_or(|indent| spaces > indent) && spaces > 0 {
                    return None;
                }
                breaks += 1;
            } else {
                let indent = *indent.get_or_insert_with(|| {
                    first = self.at + spaces;
                    spaces
                });
                if spaces < indent || indent <= parent {
                    break;
                }
                text.extend(std::iter::repeat_n('\n', breaks));
                text.push_str(&self.text[self.at + indent..end]);
                breaks = 1;
                started = true;
                last = end;
            }
            self.at = (end + 1).min(bytes.len());
            if end == bytes.len() {
                // The last line has no break of its own.
                return None;
            }
        }
        // An empty block, and what its header means for it, is left to the full parser.
        if !started {
            return None;
        }
        match header {
            "-" => {}
            "+" => text.extend(std::iter::repeat_n('\n', breaks)),
            _ => text.push('\n'),
        }
        if self.line().is_some_and(|next| next.indent > parent) {
            return None;
        }
        let data = NodeData::Scalar {
            text: ScalarText::Owned(text.into()),
            plain: false,
        };
        self.node(first, last, data)
    }

    fn spaces(&self, from: usize, end: usize) -> usize {
        self.text.as_bytes()[from..end]
            .iter()
            .take_while(|b| **b == b' ')
            .count()
    }

    /// Whether only a comment, or nothing, stands from `at`, which a space or nothing precedes.
    fn is_blank(&self, at: usize, end: usize) -> bool {
        let bytes = self.text.as_bytes();
        at == end || (bytes[at] == b'#' && bytes[at - 1] == b' ')
    }
}

/// Bytes that a plain key may hold without any doubt.
fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'$' | b'+' | b' ')
}

fn newline(bytes: &[u8], from: usize) -> usize {
    memchr::memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |at| from + at)
}

fn offset(at: usize) -> u32 {
    // The size of the text was checked.
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read::read_fully;
    use proptest::prelude::*;

    /// A tree without what the two readers may do differently: where a value is kept.
    fn shape(node: &TreeNode, text: &str) -> String {
        match &node.data {
            NodeData::Scalar { plain, .. } => {
                format!(
                    "{}@{}{}",
                    node.text(text).escape_debug(),
                    node.start,
                    if *plain { "p" } else { "" }
                )
            }
            NodeData::Seq(items) => {
                format!(
                    "[{}]",
                    items
                        .iter()
                        .map(|n| shape(n, text))
                        .collect::<Vec<_>>()
                        .join(",")
                )
            }
            NodeData::Map(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|e| format!("{}:{}", shape(&e.key, text), shape(&e.value, text)))
                    .collect();
                format!("{{{}}}", entries.join(","))
            }
        }
    }

    /// Whatever the fast reader accepts, the full parser accepts and reads the same.
    fn check(text: &str) -> bool {
        let limits = ReadLimits::default();
        let Some(fast) = read(text, &limits) else {
            return false;
        };
        let (full, errors) = read_fully(text, &limits);
        assert_eq!(errors, [], "{text}");
        assert_eq!(shape(&fast, text), shape(&full.unwrap(), text), "{text}");
        true
    }

    #[test]
    fn reads_what_people_write() {
        for text in [
            "a: 1\n",
            "a: 1",
            "# head\n\na:   x y  # note\nb: \"q\"  # note\nc: 'it''s'\n",
            "a:\n  b:\n    - 1\n    - x: 2\n      y: 3\n    - - deep\n      - er\n  c: []\nd: {}\n",
            "a:\n- 1\n- b: 2\nc: 3\n",
            "a: |\n  one\n\n    two\nb: |-\n  x\nc: |+\n  y\n\n\nd: 1\n",
            "- a: 1\n",
            "\"k k\": [a, 'b', \"c\\n\", {d: e, f: [1, 2]}]\n",
            "a: http://x.example/y\nb: é ü 日本語 🙂\n",
            "a:\n    - b\n",
            "x-y: $z\n",
        ] {
            let read = check(text);
            assert_eq!(read, !text.starts_with("- "), "{text}");
        }
    }

    #[test]
    fn gives_up_on_everything_else() {
        for text in [
            "",
            "a",
            "- 1\n",
            "a: b\n c\n",
            "a: &x 1\n",
            "a: *x\n",
            "a: !t 1\n",
            "<<: 1\n",
            "? a\n: b\n",
            "a: \"x\n  y\"\n",
            "a: >\n  x\n",
            "a: |2\n   x\n",
            "a: [1,\n  2]\n",
            "a: {b}\n",
            "a: b: c\n",
            "a: 1\na: 2\n",
            "a: 1\n b: 2\n",
            "a:\tb\n",
            "a: 1\r\n",
            "---\na: 1\n",
            "a: 1\n...\n",
            "a:\n",
            "a: - b\n",
            "a: @x\n",
            "a: x:\n",
            "a: \"\\x41\"\n",
            "\u{feff}a: 1\n",
            "a: [x, ]\n",
            "a: [x,y]\n",
            "a: |\n",
            "a: |\n  x",
            "a: |\n    \n  x\n",
            "a : 1\n",
            "'a''b': 1\n",
            "a:\n  b\n",
            "a: {x:y}\n",
        ] {
            assert!(!check(text), "{text:?}");
        }
    }

    /// Real documents take the fast way and are read the same; they are data, not part of the
    /// project.
    #[test]
    fn takes_real_documents() {
        let directory = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../shared/vectors/oatf-scenarios/benchmark"
        );
        let Ok(entries) = std::fs::read_dir(directory) else {
            eprintln!("SKIPPED: ../shared/vectors is not here");
            return;
        };
        let (mut fast, mut slow) = (0, Vec::new());
        for entry in entries {
            let path = entry.unwrap().path();
            #[expect(clippy::disallowed_methods, reason = "files of known size")]
            let text = std::fs::read_to_string(&path).unwrap();
            if check(&text) {
                fast += 1;
            } else {
                slow.push(path);
            }
        }
        assert!(
            fast >= 9 * slow.len(),
            "too many documents take the slow way: {slow:?}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn never_disagrees_with_the_full_parser(text in "([a-c] ?: ?|- |  |\n|\n  |\n    |[a-c#'\"\\[\\]{},|>&*!%@`?-]| ){0,24}") {
            check(&text);
        }

        #[test]
        fn never_disagrees_on_blocks(text in "(a: \\|[-+]?\n|( {0,4}[a#-]{0,2}\n)|b: 1\n|  - ){0,12}") {
            check(&text);
        }

        #[test]
        fn never_disagrees_on_lines(lines in prop::collection::vec("( {0,2}){0,3}(- ){0,2}([a-c]{1,2}: ?)?([a-c0-9.:/ ]{0,6}|\"[^\"\\\\\n]{0,4}\"|'[a ']{0,4}'|\\[[a, ]{0,4}\\])( #x)?", 0..8)) {
            check(&lines.join("\n"));
        }
    }
}
