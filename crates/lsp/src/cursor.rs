//! Where the cursor is in a document that may be half typed: the keys above it, by indentation alone.

use std::collections::BTreeSet;

use crate::text::TextBuffer;

/// How many lines are looked at in each direction.
const MAX_LINES: usize = 200_000;

/// A step from the top of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CursorStep {
    /// Into the value of a key.
    Key(String),
    /// Into an item of a list.
    Item,
}

/// What is at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CursorSpot {
    /// A key, or where one could be.
    Key {
        /// The keys that the mapping has beside it.
        siblings: BTreeSet<String>,
    },
    /// The value of the last key of the path, or an item of its list.
    Value,
}

/// The cursor in the structure of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The way to the mapping, or to the value.
    pub(crate) path: Vec<CursorStep>,
    /// What is there.
    pub(crate) spot: CursorSpot,
    /// The word at the cursor.
    pub(crate) word: String,
    /// The line where the part of the file begins that the cursor is in.
    pub(crate) part: usize,
}

/// A line, as far as indentation tells.
struct LineShape<'a> {
    /// The columns of the dashes before the content.
    dashes: Vec<usize>,
    /// The column of the content.
    column: usize,
    content: &'a str,
}

impl<'a> LineShape<'a> {
    fn of(line: &'a str) -> Self {
        let (mut column, mut dashes, mut content) = (0, Vec::new(), line);
        loop {
            let trimmed = content.trim_start_matches(' ');
            column += content.len() - trimmed.len();
            content = trimmed;
            let is_dash = content == "-" || content.starts_with("- ");
            if !is_dash || dashes.len() > 64 {
                return Self {
                    dashes,
                    column,
                    content,
                };
            }
            dashes.push(column);
            column += 1;
            content = &content[1..];
        }
    }

    fn is_blank(&self) -> bool {
        self.dashes.is_empty() && (self.content.is_empty() || self.content.starts_with('#'))
    }

    /// The key and what stands after its colon.
    fn entry(&self) -> Option<(&'a str, &'a str)> {
        entry(self.content)
    }

    /// The column where the line begins to say something.
    fn start(&self) -> usize {
        self.dashes.first().copied().unwrap_or(self.column)
    }
}

/// The key of a line and what stands after its colon.
pub(crate) fn entry(content: &str) -> Option<(&str, &str)> {
    let quote = content.chars().next().filter(|c| matches!(c, '"' | '\''));
    if let Some(quote) = quote {
        let (key, rest) = content[1..].split_once(quote)?;
        return Some((key, rest.trim_start().strip_prefix(':')?));
    }
    let at = content.match_indices(':').map(|(at, _)| at).find(|at| {
        let rest = &content[at + 1..];
        rest.is_empty() || rest.starts_with([' ', '\t'])
    })?;
    let key = content[..at].trim_end();
    let is_plain = !key.is_empty() && !key.starts_with(['{', '[', '#', '&', '*', '!', '|', '>']);
    is_plain.then_some((key, &content[at + 1..]))
}

/// What is at a place: a line and the bytes of it before the cursor.
pub(crate) fn cursor(buffer: &TextBuffer, line: usize, before: usize) -> Option<Cursor> {
    let text = buffer.line(line);
    let before = text.get(..before.min(text.len()))?;
    let shape = LineShape::of(before);
    if shape.content.starts_with('#') {
        return None;
    }
    let is_boundary = |number: usize| buffer.line(number).starts_with("---");
    let first = (0..=line)
        .rev()
        .take(MAX_LINES)
        .find(|number| is_boundary(*number));
    let part = first.map_or(0, |number| number + 1);
    let word_start = |text: &str| {
        let is_word = |c: char| c.is_alphanumeric() || "_-./$:".contains(c);
        text.rfind(|c| !is_word(c)).map_or(0, |at| {
            at + text[at..].chars().next().map_or(1, char::len_utf8)
        })
    };
    let mut way = Way {
        path: Vec::new(),
        column: shape.column,
        is_list: false,
        is_inner: true,
    };
    let mut siblings = BTreeSet::new();
    let mut spot_is_value = false;
    let mut word = shape.content;
    if let Some((key, value)) = shape.entry() {
        spot_is_value = true;
        let value = value.trim_start();
        if value.starts_with(['{', '|', '>', '&', '*', '!']) {
            return None;
        }
        if value.starts_with('[') {
            way.path.push(CursorStep::Item);
        }
        way.path.push(CursorStep::Key(key.to_owned()));
        word = &value[word_start(value)..];
    } else if shape.content.starts_with(['{', '[', '"', '\'']) {
        return None;
    }
    way.leave_items(&shape.dashes);
    for number in (part..line).rev().take(MAX_LINES) {
        let above = LineShape::of(buffer.line(number));
        if above.is_blank() {
            continue;
        }
        let is_beside = above.column == way.column && !way.is_list;
        if is_beside {
            if let Some((key, _)) = above.entry().filter(|_| way.is_inner) {
                siblings.insert(key.to_owned());
            }
            // Behind a dash, this is where the mapping begins.
            way.leave_items(&above.dashes);
            continue;
        }
        if way.is_list && above.dashes.contains(&way.column) {
            // An item before this one; the list may begin behind another dash.
            let outer: Vec<usize> = above
                .dashes
                .iter()
                .copied()
                .filter(|dash| *dash < way.column)
                .collect();
            way.leave_items(&outer);
            continue;
        }
        let is_parent = above.column < way.column || (way.is_list && above.column == way.column);
        if !is_parent {
            continue;
        }
        let (key, value) = above.entry()?;
        let value = value.trim();
        if !(value.is_empty() || value.starts_with('#')) {
            // A text over several lines, or something in brackets.
            return None;
        }
        way.path.push(CursorStep::Key(key.to_owned()));
        way.column = above.column;
        way.is_list = false;
        way.is_inner = false;
        way.leave_items(&above.dashes);
        if way.column == 0 && !way.is_list {
            break;
        }
    }
    let mut path = way.path;
    // The keys that come after the line.
    if !spot_is_value {
        for number in line + 1..buffer.line_count().min(line + MAX_LINES) {
            let below = LineShape::of(buffer.line(number));
            if below.is_blank() {
                continue;
            }
            if is_boundary(number) || below.start() < shape.column {
                break;
            }
            if below.column == shape.column
                && let Some((key, _)) = below.entry()
            {
                siblings.insert(key.to_owned());
            }
        }
    }
    path.reverse();
    let spot = if spot_is_value {
        CursorSpot::Value
    } else {
        CursorSpot::Key { siblings }
    };
    Some(Cursor {
        path,
        spot,
        word: word.trim_start().to_owned(),
        part,
    })
}

/// The way up from the cursor, as far as it is known.
struct Way {
    /// From the inside out.
    path: Vec<CursorStep>,
    /// The column of the mapping, or of the dashes of the list.
    column: usize,
    is_list: bool,
    /// Whether this is still the mapping of the cursor.
    is_inner: bool,
}

impl Way {
    /// Goes out of the items that these dashes begin.
    fn leave_items(&mut self, dashes: &[usize]) {
        for dash in dashes.iter().rev() {
            self.path.push(CursorStep::Item);
            self.column = *dash;
            self.is_list = true;
            self.is_inner = false;
        }
    }
}

/// The key that stands at a place, with the whole way to it; and where it stands in its line.
pub(crate) fn key_at(
    buffer: &TextBuffer,
    line: usize,
    byte: usize,
) -> Option<(Vec<CursorStep>, usize)> {
    let text = buffer.line(line);
    let shape = LineShape::of(text);
    let (key, _) = shape.entry()?;
    let start = text.len() - shape.content.len();
    if byte < start {
        return None;
    }
    let mut found = cursor(buffer, line, start)?;
    found.path.push(CursorStep::Key(key.to_owned()));
    Some((found.path, found.part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way to `»` in a text, and what is there.
    fn at(text: &str) -> Option<(String, CursorSpot, String)> {
        let place = text.find('»').expect("a mark");
        let clean = text.replace('»', "");
        let buffer = TextBuffer::new(&clean);
        let line = clean[..place].matches('\n').count();
        let start = buffer.line_start(line);
        let found = cursor(&buffer, line, place - start)?;
        let steps = found.path.iter().map(|step| match step {
            CursorStep::Key(key) => key.clone(),
            CursorStep::Item => "[]".to_owned(),
        });
        let path = steps.collect::<Vec<_>>().join(".");
        Some((path, found.spot, found.word))
    }

    fn check(text: &str, path: &str, siblings: Option<&[&str]>, word: &str) {
        let (found, spot, typed) = at(text).unwrap_or_else(|| panic!("nothing at {text:?}"));
        assert_eq!((found.as_str(), typed.as_str()), (path, word), "{text}");
        let expected = match siblings {
            None => CursorSpot::Value,
            Some(keys) => CursorSpot::Key {
                siblings: keys.iter().map(|key| (*key).to_owned()).collect(),
            },
        };
        assert_eq!(spot, expected, "{text}");
    }

    #[test]
    fn the_way_is_found_by_indentation() {
        check("»", "", Some(&[]), "");
        check("oatf: \"0.1\"\nat»", "", Some(&["oatf"]), "at");
        check(
            "attack:\n  id: A\n  sev»\n  name: x\n",
            "attack",
            Some(&["id", "name"]),
            "sev",
        );
        check("attack:\n  severity: hi»", "attack.severity", None, "hi");
        check("attack:\n  impact: [a, da»", "attack.impact.[]", None, "da");
        let phases = "attack:\n  execution:\n    phases:\n";
        check(
            &format!("{phases}      - name: a\n        tr»"),
            "attack.execution.phases.[]",
            Some(&["name"]),
            "tr",
        );
        check(
            &format!("{phases}      - na»"),
            "attack.execution.phases.[]",
            Some(&[]),
            "na",
        );
        check(
            &format!("{phases}    - name: a\n    - na»"),
            "attack.execution.phases.[]",
            Some(&[]),
            "na",
        );
        check(
            &format!("{phases}    - name: a\n      mode: »"),
            "attack.execution.phases.[].mode",
            None,
            "",
        );
        check(
            &format!(
                "{phases}      - name: a\n        state:\n          x: 1\n      - name: b\n        trigger:\n          ev»"
            ),
            "attack.execution.phases.[].trigger",
            Some(&[]),
            "ev",
        );
        check(
            "a:\n  - b:\n      - c: 1\n        »",
            "a.[].b.[]",
            Some(&["c"]),
            "",
        );
        check("kind: x\n---\nki»", "", Some(&[]), "ki");
    }

    #[test]
    fn inside_a_text_nothing_is_found() {
        assert_eq!(at("a: |\n  te»"), None);
        assert_eq!(at("# co»"), None);
        assert_eq!(at("a: {b: »"), None);
    }
}
