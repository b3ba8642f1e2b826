//! Pages as text: everything that comes from outside is escaped here.

use std::fmt::Write as _;

use axum::response::Html;
use serde_json::Value;

/// The longest JSON that a page shows of one thing.
const MAX_SHOWN: usize = 20_000;

/// Text in a page, in which nothing is markup.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters can hide what is there.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// JSON for reading, cut where it is long.
pub(super) fn json(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    if text.len() > MAX_SHOWN {
        let mut end = MAX_SHOWN;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    format!("<pre>{}</pre>", escape(&text))
}

/// A word with a colour of its own.
pub(super) fn badge(word: &str) -> String {
    let word = escape(word);
    format!("<span class=\"badge {word}\">{word}</span>")
}

/// A link within the dashboard; the last piece of the path is somebody else's text.
pub(super) fn link(base: &str, piece: &str, shown: &str) -> String {
    let mut path = String::new();
    for byte in piece.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                path.push(char::from(byte));
            }
            _ => {
                let _ = write!(path, "%{byte:02X}");
            }
        }
    }
    format!("<a href=\"{base}/{path}\">{}</a>", escape(shown))
}

/// A page that is being written.
pub(super) struct Page {
    title: String,
    body: String,
    signed_in: bool,
}

/// The pages that every page links to.
const PLACES: [(&str, &str); 3] = [
    ("/dashboard", "Tasks"),
    ("/dashboard/events", "Events"),
    ("/dashboard/manifests", "Manifests"),
];

impl Page {
    pub(super) fn new(title: &str) -> Self {
        Self {
            title: escape(title),
            body: String::new(),
            signed_in: true,
        }
    }

    /// A page for somebody who is not known yet.
    pub(super) fn outside(title: &str) -> Self {
        Self {
            signed_in: false,
            ..Self::new(title)
        }
    }

    /// Adds markup of ours.
    pub(super) fn markup(mut self, markup: &str) -> Self {
        self.body.push_str(markup);
        self
    }

    /// Adds a paragraph.
    pub(super) fn note(self, text: &str) -> Self {
        let paragraph = format!("<p>{}</p>", escape(text));
        self.markup(&paragraph)
    }

    /// Adds a table of markup cells, or a word about there being none.
    pub(super) fn table(self, caption: &str, heads: &[&str], rows: &[Vec<String>]) -> Self {
        if rows.is_empty() {
            return self.note(&format!("{caption}: none."));
        }
        let mut text = format!("<table><caption>{}</caption><thead><tr>", escape(caption));
        for head in heads {
            let _ = write!(text, "<th scope=\"col\">{}</th>", escape(head));
        }
        text.push_str("</tr></thead><tbody>");
        for row in rows {
            text.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                // Narrow windows show each cell with its name instead of the row of heads.
                let head = escape(heads.get(at).copied().unwrap_or_default());
                let _ = write!(text, "<td data-head=\"{head}\">{cell}</td>");
            }
            text.push_str("</tr>");
        }
        text.push_str("</tbody></table>");
        self.markup(&text)
    }

    /// Adds a link to older things.
    pub(super) fn older(self, href: Option<String>) -> Self {
        match href {
            Some(href) => self.markup(&format!(
                "<p><a rel=\"next\" href=\"{}\">Older</a></p>",
                escape(&href)
            )),
            None => self,
        }
    }

    pub(super) fn finish(self) -> Html<String> {
        let mut places = String::new();
        if self.signed_in {
            for (href, name) in PLACES {
                let _ = write!(places, "<a href=\"{href}\">{name}</a>");
            }
            places.push_str(
                "<form method=\"post\" action=\"/dashboard/sign-out\"><button>Sign out</button></form>",
            );
        }
        let (title, body) = (self.title, self.body);
        Html(format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <title>{title} · Proofhouse</title><link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/dashboard/style.css\"></head>\
             <body><a class=\"skip\" href=\"#main\">Skip to content</a><header><strong>Proofhouse</strong>\
             <nav aria-label=\"Dashboard\">{places}</nav></header><main id=\"main\"><h1>{title}</h1>{body}</main></body></html>"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        let nasty = "<script>alert('x')</script>\u{1b}[31m\"&";
        let Html(page) = Page::new(nasty)
            .note(nasty)
            .table(
                nasty,
                &[nasty],
                &[vec![link("/dashboard/tasks", nasty, nasty), badge(nasty)]],
            )
            .older(Some(nasty.to_owned()))
            .finish();
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains("alert('"), "{page}");
        assert!(!page.contains('\u{1b}'), "{page}");
    }

    #[test]
    fn long_json_is_cut_between_characters() {
        let long = Value::String("ä".repeat(MAX_SHOWN));
        assert!(json(&long).len() < MAX_SHOWN + 100);
    }
}
