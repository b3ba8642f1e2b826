//! The content of a message, with the evidence marked where it stands, and cut where it is long.

use std::fmt::Write;

use serde_json::Value;

use super::untrusted::push;
use crate::result::Evidence;

/// How much of one text is shown; around evidence, if there is any in it.
const MOST_OF_TEXT: usize = 1_500;

/// How much stands before evidence in a text that is cut.
const BEFORE_EVIDENCE: usize = 300;

/// How many bytes of a message are shown, beside its evidence.
const MOST_OF_MESSAGE: usize = 12_000;

/// Writes a value as indented JSON in HTML. Evidence is in `mark` elements; true if any was marked.
pub(super) fn write(content: &Value, evidence: &[&Evidence], out: &mut String) -> bool {
    let mut writer = Writer {
        evidence,
        end: out.len() + MOST_OF_MESSAGE,
        marked: false,
        out,
    };
    writer.value(content, &mut String::new(), 0);
    writer.marked
}

struct Writer<'a> {
    evidence: &'a [&'a Evidence],
    end: usize,
    marked: bool,
    out: &'a mut String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, path: &mut String, depth: usize) {
        let whole = !path.is_empty()
            && self
                .evidence
                .iter()
                .any(|evidence| evidence.path.as_deref() == Some(path));
        match value {
            Value::String(text) => self.text(text, path, whole),
            Value::Array(items) if !items.is_empty() => {
                self.open(whole);
                self.out.push('[');
                let mut left_out = 0;
                for (index, item) in items.iter().enumerate() {
                    let before = path.len();
                    let _ = write!(path, "[{index}]");
                    if self.has_room(path) {
                        self.line(depth + 1);
                        self.value(item, path, depth + 1);
                        self.out.push(',');
                    } else {
                        left_out += 1;
                    }
                    path.truncate(before);
                }
                self.close(']', left_out, depth, whole);
            }
            Value::Object(fields) if !fields.is_empty() => {
                self.open(whole);
                self.out.push('{');
                let mut left_out = 0;
                for (name, field) in fields {
                    let before = path.len();
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                    if self.has_room(path) {
                        self.line(depth + 1);
                        self.out.push_str("<span class=\"key\">");
                        self.quoted(&crate::report::text::cut(name, MOST_OF_TEXT));
                        self.out.push_str("</span>: ");
                        self.value(field, path, depth + 1);
                        self.out.push(',');
                    } else {
                        left_out += 1;
                    }
                    path.truncate(before);
                }
                self.close('}', left_out, depth, whole);
            }
            other => {
                self.open(whole);
                push(&other.to_string(), self.out);
                self.shut(whole);
            }
        }
    }

    /// Whether there is room for what stands at a path: for evidence there always is.
    fn has_room(&self, path: &str) -> bool {
        self.out.len() < self.end
            || self.evidence.iter().any(|evidence| {
                let rest = evidence
                    .path
                    .as_deref()
                    .and_then(|whole| whole.strip_prefix(path));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            })
    }

    fn line(&mut self, depth: usize) {
        self.out.push('\n');
        // Deeper than this, nobody reads the columns.
        for _ in 0..depth.min(20) {
            self.out.push_str("  ");
        }
    }

    fn open(&mut self, whole: bool) {
        if whole {
            self.out.push_str("<mark>");
            self.marked = true;
        }
    }

    fn shut(&mut self, whole: bool) {
        if whole {
            self.out.push_str("</mark>");
        }
    }

    fn close(&mut self, sign: char, left_out: usize, depth: usize, whole: bool) {
        if self.out.ends_with(',') {
            self.out.pop();
        }
        if left_out > 0 {
            self.line(depth + 1);
            let _ = write!(self.out, "<em class=\"cut\">{left_out} more left out</em>");
        }
        self.line(depth);
        self.out.push(sign);
        self.shut(whole);
    }

    fn text(&mut self, text: &str, path: &str, whole: bool) {
        let found = self.evidence.iter().find_map(|evidence| {
            // Without a path the words may be anywhere; what begins a text that was cut is enough.
            let here = evidence
                .path
                .as_deref()
                .is_none_or(|at| at.is_empty() || at == path);
            let words = evidence.text.as_deref()?.trim_end_matches('…');
            let start = text.find(words).filter(|_| here && !words.is_empty())?;
            Some(start..start + words.len())
        });
        let marked = match found {
            Some(found) => found,
            None if whole => 0..text.len(),
            None => 0..0,
        };
        let from = back(text, marked.start, BEFORE_EVIDENCE);
        let from = if text.len() <= MOST_OF_TEXT { 0 } else { from };
        let to = forth(text, from, MOST_OF_TEXT);
        let marked = marked.start.min(to)..marked.end.min(to);
        self.out.push('"');
        self.cut_note(text[..from].chars().count());
        self.inner(&text[from..marked.start.max(from)]);
        if !marked.is_empty() {
            self.open(true);
            self.inner(&text[marked.clone()]);
            self.shut(true);
        }
        self.inner(&text[marked.end.max(from)..to]);
        self.cut_note(text[to..].chars().count());
        self.out.push('"');
    }

    fn cut_note(&mut self, characters: usize) {
        if characters > 0 {
            let _ = write!(
                self.out,
                "<em class=\"cut\">[{characters} characters cut]</em>"
            );
        }
    }

    fn quoted(&mut self, text: &str) {
        self.out.push('"');
        self.inner(text);
        self.out.push('"');
    }

    /// A part of a text, as in JSON but for line ends: those stay, so that it can be read. Hidden
    /// characters are shown by their number.
    fn inner(&mut self, text: &str) {
        push(&text.replace('\\', "\\\\").replace('"', "\\\""), self.out);
    }
}

/// The start of a character at most `most` bytes before a place.
fn back(text: &str, place: usize, most: usize) -> usize {
    let mut from = place.saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    from
}

/// The end of a character at most `most` bytes after a place.
fn forth(text: &str, place: usize, most: usize) -> usize {
    let mut to = place.saturating_add(most).min(text.len());
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn evidence(path: Option<&str>, text: Option<&str>) -> Evidence {
        Evidence {
            seq: 1,
            path: path.map(str::to_owned),
            text: text.map(str::to_owned),
            detail: Value::Null,
        }
    }

    #[test]
    fn evidence_is_marked_where_it_stands() {
        let content = json!({"a": ["x SECRET y", {"b": "SECRET"}], "n": 7});
        for (path, text, expected) in [
            (Some("a[0]"), Some("SECRET"), "x <mark>SECRET</mark> y"),
            (Some("a[1].b"), Some("SECRET"), "\"<mark>SECRET</mark>\""),
            (Some("a[0]"), Some("SEC…"), "x <mark>SEC</mark>RET y"),
            (
                Some("a[0]"),
                Some("[redacted]"),
                "\"<mark>x SECRET y</mark>\"",
            ),
            (Some("n"), Some("7"), "<mark>7</mark>"),
            (Some("a[1]"), None, "<mark>{\n"),
            (None, Some("y"), "x SECRET <mark>y</mark>"),
        ] {
            let evidence = evidence(path, text);
            let mut out = String::new();
            assert!(write(&content, &[&evidence], &mut out), "{path:?}");
            assert!(out.contains(expected), "{path:?} {out}");
            assert_eq!(out.matches("<mark>").count(), 1, "{out}");
        }
    }

    #[test]
    fn long_contents_are_cut_but_never_their_evidence() {
        let mut items: Vec<Value> = (0..5_000).map(|n| json!(format!("item {n}"))).collect();
        items.push(json!(format!(
            "{}é NEEDLE {}",
            "é".repeat(9_000),
            "ü".repeat(9_000)
        )));
        let content = json!({"deep": {"items": items}});
        let evidence = evidence(Some("deep.items[5000]"), Some("NEEDLE"));
        let mut out = String::new();
        assert!(write(&content, &[&evidence], &mut out));
        assert!(out.contains("<mark>NEEDLE</mark>"));
        assert!(out.contains("characters cut"));
        assert!(out.contains("more left out"));
        assert!(out.len() < 2 * MOST_OF_MESSAGE, "{}", out.len());
    }

    #[test]
    fn nothing_in_a_message_is_markup() {
        let content = json!({"</pre><script>": "<img src=x onerror=alert(1)>\u{202e}\u{0}"});
        let mut out = String::new();
        assert!(!write(&content, &[], &mut out));
        assert!(!out.contains("<script") && !out.contains("<img"), "{out}");
        assert!(out.contains("U+202E") && out.contains("U+0000"), "{out}");
    }
}
