//! Literals: the paths, addresses, numbers, names and quoted words that stand in a text.

/// What a literal looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiteralKind {
    Path,
    Url,
    Email,
    Quoted,
    Number,
    /// A word with digits, hyphens or underscores in it, such as `FIN-Q4-2025`.
    Identifier,
}

/// A literal and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) kind: LiteralKind,
    pub(super) text: String,
    pub(super) start: usize,
}

/// Literals of one text; more are not needed to obey an order.
const MAX_LITERALS: usize = 256;

/// Every literal of a text, in order. What is quoted is one, and what looks like something inside of it too.
pub(super) fn literals(text: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    for (start, end) in quoted(text) {
        let inner = &text[start..end];
        found.push(Literal {
            kind: kind_of(inner).unwrap_or(LiteralKind::Quoted),
            text: inner.to_owned(),
            start,
        });
        if kind_of(inner).is_none_or(|kind| kind == LiteralKind::Identifier)
            && found.len() < MAX_LITERALS
            && let Some(last) = found.last_mut()
        {
            last.kind = LiteralKind::Quoted;
        }
    }
    let spans = quoted(text);
    let mut place = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let start = place;
        place += word.len();
        let trimmed = trim(word);
        if trimmed.is_empty() || found.len() >= MAX_LITERALS {
            continue;
        }
        let start = start + word.find(trimmed).unwrap_or(0);
        if spans.iter().any(|(from, to)| *from <= start && start < *to) {
            continue;
        }
        // `key=value` and `key:value` hide a literal behind the sign.
        let value = match trimmed.split_once(['=', ':']) {
            Some((key, value))
                if !value.is_empty()
                    && !value.starts_with("//")
                    && key.chars().all(char::is_alphanumeric) =>
            {
                trim(value)
            }
            _ => trimmed,
        };
        if let Some(kind) = kind_of(value) {
            found.push(Literal {
                kind,
                text: value.to_owned(),
                start,
            });
        }
    }
    found.sort_by_key(|literal| literal.start);
    found
}

/// The first literal of a kind.
pub(super) fn first(text: &str, kind: LiteralKind) -> Option<String> {
    literals(text)
        .into_iter()
        .find(|literal| literal.kind == kind)
        .map(|literal| literal.text)
}

/// A number as people write it: `$50,000` is 50000.
pub(super) fn number(text: &str) -> Option<f64> {
    let plain = text
        .trim_start_matches(['$', '€', '£'])
        .trim_end_matches('%');
    if !plain.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        return None;
    }
    let digits = plain.replace(',', "");
    let value: f64 = digits.parse().ok()?;
    value.is_finite().then_some(value)
}

/// Where quoted text begins and ends, without its quotes. An apostrophe is not a quote.
pub(super) fn quoted(text: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    // A kind of quote that is not closed once is not closed later either.
    let mut unclosed = String::new();
    let mut rest = 0;
    while let Some((start, quote)) = next_quote(text, rest, &unclosed) {
        let inner = start + 1;
        match closing(text, inner, quote) {
            Some(end) if end > inner => {
                spans.push((inner, end));
                rest = end + 1;
            }
            Some(end) => rest = end + 1,
            None => {
                unclosed.push(quote);
                rest = inner;
            }
        }
        if spans.len() >= MAX_LITERALS {
            break;
        }
    }
    spans
}

fn next_quote(text: &str, from: usize, unclosed: &str) -> Option<(usize, char)> {
    let mut before = text[..from].chars().next_back();
    for (place, character) in text[from..].char_indices() {
        let opens = match character {
            '"' | '`' => true,
            '\'' => before.is_none_or(|before| !before.is_alphanumeric()),
            _ => false,
        };
        if opens && !unclosed.contains(character) {
            return Some((from + place, character));
        }
        before = Some(character);
    }
    None
}

fn closing(text: &str, from: usize, quote: char) -> Option<usize> {
    for (place, character) in text[from..].char_indices() {
        let after = text[from + place + character.len_utf8()..].chars().next();
        if character == quote
            && (quote != '\'' || after.is_none_or(|after| !after.is_alphanumeric()))
        {
            return Some(from + place);
        }
    }
    None
}

/// A word without the punctuation around it; a dot at its beginning may belong to a path.
fn trim(word: &str) -> &str {
    let word = word.trim();
    let word = word.trim_start_matches(['(', '[', '{', '"', '\'', '`', '<', ',', ';', ':']);
    word.trim_end_matches([
        '.', ',', ';', ':', ')', ']', '}', '"', '\'', '`', '>', '?', '!',
    ])
}

fn kind_of(word: &str) -> Option<LiteralKind> {
    if word.chars().any(char::is_whitespace) {
        return None;
    }
    if word.contains("://") {
        return Some(LiteralKind::Url);
    }
    if let Some((user, host)) = word.split_once('@')
        && !user.is_empty()
        && host.contains('.')
    {
        return Some(LiteralKind::Email);
    }
    let is_path = word.len() > 1
        && (word.starts_with('/')
            && word[1..].starts_with(|next: char| next.is_alphanumeric() || next == '.')
            || word.starts_with("~/")
            || word.starts_with("./")
            || word.starts_with("../")
            || word.starts_with(".env")
            || has_extension(word));
    if is_path {
        return Some(LiteralKind::Path);
    }
    if number(word).is_some() {
        return Some(LiteralKind::Number);
    }
    let has_letter = word.chars().any(char::is_alphanumeric);
    let inside = word.trim_matches(['-', '_']);
    let is_identifier = has_letter
        && !word.starts_with('-')
        && inside
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_'))
        && (inside.contains('_')
            || inside.contains('-')
            || inside.chars().any(|letter| letter.is_ascii_digit())
                && inside.chars().any(char::is_alphabetic));
    is_identifier.then_some(LiteralKind::Identifier)
}

fn has_extension(word: &str) -> bool {
    const EXTENSIONS: [&str; 22] = [
        "txt", "md", "json", "yaml", "yml", "csv", "pdf", "log", "env", "pem", "key", "cfg",
        "conf", "config", "ini", "toml", "xml", "py", "rs", "js", "html", "xlsx",
    ];
    word.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && !stem.contains('*') && EXTENSIONS.contains(&extension)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_what_they_look_like() {
        use LiteralKind::{Email, Identifier, Number, Path, Quoted, Url};
        for (text, expected) in [
            ("read ~/.ssh/id_rsa.", vec![(Path, "~/.ssh/id_rsa")]),
            (
                "see notes.txt, /etc/app/.env",
                vec![(Path, "notes.txt"), (Path, "/etc/app/.env")],
            ),
            (
                "to a@b.example (x@y.example)",
                vec![(Email, "a@b.example"), (Email, "x@y.example")],
            ),
            (
                "url=https://x.example/a?b=c",
                vec![(Url, "https://x.example/a?b=c")],
            ),
            (
                "$50,000 or 3.5%",
                vec![(Number, "$50,000"), (Number, "3.5%")],
            ),
            (
                "FIN-Q4-2025 and sales_data",
                vec![(Identifier, "FIN-Q4-2025"), (Identifier, "sales_data")],
            ),
            ("say 'it's fine' now", vec![(Quoted, "it's fine")]),
            ("path \"/tmp/x\"", vec![(Path, "/tmp/x")]),
            ("this week's news", vec![]),
            ("an \"open quote", vec![]),
        ] {
            let found = literals(text);
            let found: Vec<_> = found.iter().map(|it| (it.kind, it.text.as_str())).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(number("$1,250.5"), Some(1250.5));
        assert_eq!(number("v2"), None);
    }
}
