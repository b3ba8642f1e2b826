//! The content of a message, with the evidence marked where it stands, and cut where it is long.

use maud::{Markup, PreEscaped, Render, html};
use serde_json::Value;

use super::untrusted::visible;
use crate::text::cut;
use proofhouse_campaign::result::RunEvidence;

/// How much of one text is shown; around evidence, if there is any in it.
const MOST_OF_TEXT: usize = 1_500;

/// How much is shown of a text beside the evidence, in an excerpt.
const MOST_ASIDE: usize = 120;

/// How much stands before evidence in a text that is cut.
const BEFORE_EVIDENCE: usize = 300;

/// How many bytes of a message are shown, beside its evidence.
const MOST_OF_MESSAGE: usize = 12_000;

/// What texts stand between. It needs no escape outside of attributes.
const QUOTE: PreEscaped<&str> = PreEscaped("\"");

/// A value as indented JSON. Evidence is in `mark` elements; true if any was marked.
pub(super) fn content(content: &Value, evidence: &[&RunEvidence]) -> (Markup, bool) {
    written(content, evidence, false)
}

/// The same, with everything folded that does not lead to the evidence: it is seen at once, however long the message is.
pub(super) fn excerpt(content: &Value, evidence: &RunEvidence) -> Markup {
    written(content, &[evidence], true).0
}

fn written(content: &Value, evidence: &[&RunEvidence], brief: bool) -> (Markup, bool) {
    let mut writer = ContentWriter {
        evidence,
        brief,
        marked: false,
        out: String::new(),
    };
    writer.value(content, &mut String::new(), 0);
    (PreEscaped(writer.out), writer.marked)
}

struct ContentWriter<'a> {
    evidence: &'a [&'a RunEvidence],
    /// Whether what does not lead to evidence is folded.
    brief: bool,
    marked: bool,
    /// Markup.
    out: String,
}

impl ContentWriter<'_> {
    fn value(&mut self, value: &Value, path: &mut String, depth: usize) {
        let is_evidence = !path.is_empty()
            && self
                .evidence
                .iter()
                .any(|evidence| evidence.path.as_deref() == Some(path));
        match value {
            Value::String(text) => self.text(text, path, is_evidence),
            other if is_evidence => self.mark(|writer| writer.unmarked(other, path, depth)),
            other => self.unmarked(other, path, depth),
        }
    }

    /// A value that is no text, without a mark around it.
    fn unmarked(&mut self, value: &Value, path: &mut String, depth: usize) {
        match value {
            Value::Array(items) if !items.is_empty() => {
                let items = items.iter().enumerate();
                let items = items.map(|(index, item)| (format!("[{index}]"), None, item));
                self.members(('[', ']'), items, path, depth);
            }
            Value::Object(fields) if !fields.is_empty() => {
                let dot = if path.is_empty() { "" } else { "." };
                let fields = fields.iter();
                let fields = fields
                    .map(|(name, field)| (format!("{dot}{name}"), Some(name.as_str()), field));
                self.members(('{', '}'), fields, path, depth);
            }
            scalar => self.push(&visible(&scalar.to_string())),
        }
    }

    /// What an array or an object holds: what each adds to the path, its name if it has one, and its value.
    fn members<'v>(
        &mut self,
        (open, close): (char, char),
        members: impl Iterator<Item = (String, Option<&'v str>, &'v Value)>,
        path: &mut String,
        depth: usize,
    ) {
        self.out.push(open);
        let (mut shown, mut left_out) = (0, 0);
        for (step, name, value) in members {
            let before = path.len();
            path.push_str(&step);
            if self.has_room(path) {
                if shown > 0 {
                    self.out.push(',');
                }
                shown += 1;
                self.line(depth + 1);
                if let Some(name) = name {
                    let name = quoted(&cut(name, MOST_OF_TEXT));
                    self.push(&html! { span.key { (QUOTE) (name) (QUOTE) } ": " });
                }
                match value {
                    Value::Array(items) if !items.is_empty() && self.is_aside(path) => {
                        self.push(&html! { em.cut { "[…]" } });
                    }
                    Value::Object(fields) if !fields.is_empty() && self.is_aside(path) => {
                        self.push(&html! { em.cut { "{…}" } });
                    }
                    value => self.value(value, path, depth + 1),
                }
            } else {
                left_out += 1;
            }
            path.truncate(before);
        }
        if left_out > 0 {
            self.line(depth + 1);
            self.push(&html! { em.cut { (left_out) " more left out" } });
        }
        self.line(depth);
        self.out.push(close);
    }

    fn push(&mut self, markup: &Markup) {
        markup.render_to(&mut self.out);
    }

    /// Marks what is written as evidence.
    fn mark(&mut self, write: impl FnOnce(&mut Self)) {
        let start = self.out.len();
        write(self);
        let inner = PreEscaped(self.out.split_off(start));
        self.push(&html! { mark { (inner) } });
        self.marked = true;
    }

    /// Whether there is room for what stands at a path: for evidence there always is.
    fn has_room(&self, path: &str) -> bool {
        self.out.len() < MOST_OF_MESSAGE || self.leads_to_evidence(path)
    }

    /// Whether evidence stands at a path or below it.
    fn leads_to_evidence(&self, path: &str) -> bool {
        self.evidence.iter().any(|evidence| {
            let rest = evidence
                .path
                .as_deref()
                .and_then(|whole| whole.strip_prefix(path));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    /// Whether what stands at a path is folded: it is neither evidence nor around it nor in it.
    fn is_aside(&self, path: &str) -> bool {
        let mut places = self
            .evidence
            .iter()
            .map(|one| one.path.as_deref().unwrap_or(""));
        self.brief
            && !self.leads_to_evidence(path)
            && !places.any(|place| place.is_empty() || path.starts_with(place))
    }

    fn line(&mut self, depth: usize) {
        self.out.push('\n');
        // Deeper than this, nobody reads the columns.
        for _ in 0..depth.min(20) {
            self.out.push_str("  ");
        }
    }

    fn text(&mut self, text: &str, path: &str, is_evidence: bool) {
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
            None if is_evidence => 0..text.len(),
            None => 0..0,
        };
        let most = if marked.is_empty() && self.is_aside(path) {
            MOST_ASIDE
        } else {
            MOST_OF_TEXT
        };
        let from = back(text, marked.start, BEFORE_EVIDENCE);
        let from = if text.len() <= most { 0 } else { from };
        let to = forth(text, from, most);
        let marked = marked.start.min(to)..marked.end.min(to);
        let before = quoted(&text[from..marked.start.max(from)]);
        let evidence = quoted(&text[marked.clone()]);
        let after = quoted(&text[marked.end.max(from)..to]);
        self.marked |= !marked.is_empty();
        self.push(&html! {
            (QUOTE) (cut_note(text[..from].chars().count())) (before)
            @if !marked.is_empty() { mark { (evidence) } }
            (after) (cut_note(text[to..].chars().count())) (QUOTE)
        });
    }
}

fn cut_note(characters: usize) -> Markup {
    html! { @if characters > 0 { em.cut { "[" (characters) " characters cut]" } } }
}

/// A part of a text, as in JSON but for line ends: those stay, so that it can be read. Hidden
/// characters are shown by their number.
fn quoted(text: &str) -> Markup {
    visible(&text.replace('\\', "\\\\").replace('"', "\\\""))
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

    fn evidence(path: Option<&str>, text: Option<&str>) -> RunEvidence {
        RunEvidence {
            seq: 1,
            last_seq: None,
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
            let (PreEscaped(out), marked) = super::content(&content, &[&evidence]);
            assert!(marked, "{path:?}");
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
        let (PreEscaped(out), marked) = super::content(&content, &[&evidence]);
        assert!(marked);
        assert!(out.contains("<mark>NEEDLE</mark>"));
        assert!(out.contains("characters cut"));
        assert!(out.contains("more left out"));
        assert!(out.len() < 2 * MOST_OF_MESSAGE, "{}", out.len());
    }

    #[test]
    fn an_excerpt_folds_what_does_not_lead_to_the_evidence() {
        let content = json!({
            "messages": [{"content": "a question"}],
            "context": [{"note": "short", "value": "x NEEDLE y"}, {"other": {"deep": 1}}],
            "state": {},
            "text": "é".repeat(300),
        });
        let evidence = evidence(Some("context[0].value"), Some("NEEDLE"));
        let PreEscaped(out) = excerpt(&content, &evidence);
        assert!(out.contains("<mark>NEEDLE</mark>"), "{out}");
        assert!(
            out.contains("short") && !out.contains("a question"),
            "{out}"
        );
        assert!(
            !out.contains("deep") && out.contains("characters cut"),
            "{out}"
        );
        assert_eq!(out.matches("[…]").count(), 1, "{out}");
        assert_eq!(out.matches("{…}").count(), 1, "{out}");
        // Inside of evidence, and where nobody knows the place of it, nothing is folded.
        for path in [Some("context"), Some(""), None] {
            let evidence = super::tests::evidence(path, Some("NEEDLE"));
            let PreEscaped(out) = excerpt(&content, &evidence);
            assert!(out.contains("deep") && out.contains("NEEDLE"), "{out}");
        }
    }

    #[test]
    fn nothing_in_a_message_is_markup() {
        let content = json!({"</pre><script>": "<img src=x onerror=alert(1)>\u{202e}\u{0}"});
        let (PreEscaped(out), marked) = super::content(&content, &[]);
        assert!(!marked);
        assert!(!out.contains("<script") && !out.contains("<img"), "{out}");
        assert!(out.contains("U+202E") && out.contains("U+0000"), "{out}");
    }
}
