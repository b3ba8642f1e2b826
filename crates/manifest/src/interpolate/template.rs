//! Templates: text with `{…}` references in it, parsed once.

use std::fmt;
use std::ops::Range;

/// Where a reference looks for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Root {
    /// What the model gave, or an agent's binding, or a default.
    Parameters,
    /// What the operator configured.
    Settings,
    /// What a session's creation yielded.
    Session,
    /// The runtime: `version`, `dashboard_url`, `api_root`.
    Runtime,
    /// The agent: `name`, `namespace`.
    Agent,
    /// The task's context.
    Context,
    /// The agent's mount: `bucket`, `prefix`, `backend`.
    Mount,
    /// Tokens of registered providers.
    Auth,
    /// The push channel: `id`, `expires_at_ms`.
    Subscription,
    /// What the subscribe call answered.
    Subscribe,
    /// The event that arrived, and its aliases.
    Event,
}

impl Root {
    /// Every root, in the order of the pages.
    pub const ALL: [Self; 11] = [
        Self::Parameters,
        Self::Settings,
        Self::Session,
        Self::Runtime,
        Self::Agent,
        Self::Context,
        Self::Mount,
        Self::Auth,
        Self::Subscription,
        Self::Subscribe,
        Self::Event,
    ];

    /// The word it is written as.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Settings => "settings",
            Self::Session => "session",
            Self::Runtime => "runtime",
            Self::Agent => "agent",
            Self::Context => "context",
            Self::Mount => "mount",
            Self::Auth => "auth",
            Self::Subscription => "subscription",
            Self::Subscribe => "subscribe",
            Self::Event => "event",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|root| root.name() == name)
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One `{…}`: a root and the steps below it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TemplateReference {
    /// Where to look.
    pub root: Root,
    /// The steps below the root.
    pub path: Vec<String>,
    /// Whether the root was left out, as in `{city}` for `{parameters.city}`.
    pub bare: bool,
    /// Where it stands in the template, braces included.
    pub range: Range<usize>,
}

impl TemplateReference {
    /// Reads what stands between braces, if it is shaped like a reference.
    fn parse(inner: &str, range: Range<usize>) -> Option<Self> {
        let (names, called) = match inner.strip_suffix("()") {
            Some(names) => (names, true),
            None => (inner, false),
        };
        let segments: Vec<&str> = names.split('.').collect();
        let first = segments.first()?;
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        // A number in braces is a repetition in a regular expression, not a parameter.
        if !segments.iter().all(|name| is_name(name))
            || first.starts_with(|c: char| c.is_ascii_digit())
        {
            return None;
        }
        let root = Root::named(first);
        if called && !(root == Some(Root::Auth) && segments.len() == 2) {
            return None;
        }
        let (root, bare, steps) = match root {
            Some(root) => (root, false, &segments[1..]),
            None => (Root::Parameters, true, &segments[..]),
        };
        Some(Self {
            root,
            path: steps.iter().map(|&step| step.to_owned()).collect(),
            bare,
            range,
        })
    }
}

impl fmt::Display for TemplateReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root.name())?;
        for step in &self.path {
            write!(f, ".{step}")?;
        }
        Ok(())
    }
}

/// A piece of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TemplatePiece {
    /// Text as it is.
    Text(String),
    /// A value to be put in.
    Value(TemplateReference),
}

/// Text with references in it.
///
/// Only what is shaped like a reference is one: `{root.step.step}`, `{name}`, `{auth.provider()}`. All
/// other braces are text, so JSON and GraphQL can be written as they are. `{{name}}` is the text
/// `{name}`, and `{{{name}}}` is the value of `name` in braces.
///
/// ```
/// use proofhouse_manifest::interpolate::Template;
/// let template = Template::parse("repos/{parameters.owner}/{repo}");
/// let names: Vec<String> = template.references().map(ToString::to_string).collect();
/// assert_eq!(names, ["parameters.owner", "parameters.repo"]);
/// assert!(Template::parse(r#"{"a": {"b": 1}} and {{name}}"#).is_literal());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Template {
    source: String,
    parts: Vec<TemplatePiece>,
    odd: Vec<Range<usize>>,
}

impl Template {
    /// Parses a text. Every text is a template; [`Template::odd`] says what was probably meant
    /// otherwise.
    #[must_use]
    pub fn parse(source: &str) -> Self {
        let mut parts = Vec::new();
        let mut odd = Vec::new();
        let mut text = String::new();
        let mut at = 0;
        while let Some(found) = source[at..].find('{') {
            let open = at + found;
            text.push_str(&source[at..open]);
            if let Some((reference, end)) = braced(source, open, 3) {
                text.push('{');
                parts.push(TemplatePiece::Text(std::mem::take(&mut text)));
                parts.push(TemplatePiece::Value(reference));
                text.push('}');
                at = end;
            } else if let Some((_, end)) = braced(source, open, 2) {
                text.push_str(&source[open + 1..end - 1]);
                at = end;
            } else if let Some((reference, end)) = braced(source, open, 1) {
                if !text.is_empty() {
                    parts.push(TemplatePiece::Text(std::mem::take(&mut text)));
                }
                parts.push(TemplatePiece::Value(reference));
                at = end;
            } else {
                odd.extend(almost(source, open));
                text.push('{');
                at = open + 1;
            }
        }
        text.push_str(&source[at..]);
        if !text.is_empty() {
            parts.push(TemplatePiece::Text(text));
        }
        Self {
            source: source.to_owned(),
            parts,
            odd,
        }
    }

    /// The text it was parsed from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its pieces, in order.
    #[must_use]
    pub fn parts(&self) -> &[TemplatePiece] {
        &self.parts
    }

    /// Its references, in order.
    pub fn references(&self) -> impl Iterator<Item = &TemplateReference> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePiece::Value(reference) => Some(reference),
            TemplatePiece::Text(_) => None,
        })
    }

    /// Whether nothing is put in.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.references().next().is_none()
    }

    /// The reference, if the template is exactly one.
    #[must_use]
    pub fn whole(&self) -> Option<&TemplateReference> {
        match self.parts.as_slice() {
            [TemplatePiece::Value(reference)] => Some(reference),
            _ => None,
        }
    }

    /// Places that start like a reference and are none, such as `{ parameters.x }` or an unclosed one.
    #[must_use]
    pub fn odd(&self) -> &[Range<usize>] {
        &self.odd
    }
}

/// A reference in `count` braces at `open`, and where it ends.
fn braced(source: &str, open: usize, count: usize) -> Option<(TemplateReference, usize)> {
    let (opening, closing) = (&"{{{"[..count], &"}}}"[..count]);
    let inner = source[open..].strip_prefix(opening)?;
    let length = inner.find(['{', '}'])?;
    if !inner[length..].starts_with(closing) {
        return None;
    }
    let end = open + count + length + count;
    let reference = TemplateReference::parse(&inner[..length], open..end)?;
    Some((reference, end))
}

/// The place of something at `open` that names a root but is no reference.
fn almost(source: &str, open: usize) -> Option<Range<usize>> {
    let rest = &source[open + 1..];
    let word = rest.trim_start();
    let named = Root::ALL.into_iter().any(|root| {
        word.strip_prefix(root.name())
            .is_some_and(|after| after.starts_with('.'))
    });
    if !named {
        return None;
    }
    // Up to the next brace only: every brace may be looked at like this, and each must be cheap.
    let length = match rest.find(['{', '}', '\n']) {
        Some(next) if rest[next..].starts_with('{') => next,
        Some(close) => close + 1,
        None => rest.len(),
    };
    Some(open..open + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A template's pieces, with references in angle brackets.
    fn shown(source: &str) -> String {
        Template::parse(source)
            .parts()
            .iter()
            .map(|part| match part {
                TemplatePiece::Text(text) => text.clone(),
                TemplatePiece::Value(reference) => format!("<{reference}>"),
            })
            .collect()
    }

    #[test]
    fn only_references_are_references() {
        for (source, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{parameters.a}", "<parameters.a>"),
            ("{a}", "<parameters.a>"),
            ("{a.b}", "<parameters.a.b>"),
            ("x{settings.github.token}y", "x<settings.github.token>y"),
            ("{settings.api-key}", "<settings.api-key>"),
            ("{auth.google()}{auth.google}", "<auth.google><auth.google>"),
            ("{context.input.0}", "<context.input.0>"),
            (
                "{\"a\": {\"b\": \"{x}\"}}",
                "{\"a\": {\"b\": \"<parameters.x>\"}}",
            ),
            ("query { viewer { login } }", "query { viewer { login } }"),
            ("{{a}}", "{a}"),
            ("{{{a}}}", "{<parameters.a>}"),
            ("[a-z]{3} {1,2} {} {", "[a-z]{3} {1,2} {} {"),
            ("{parameters.}", "{parameters.}"),
            ("{settings.x()}", "{settings.x()}"),
            ("ä{ö}ü{a}", "ä{ö}ü<parameters.a>"),
        ] {
            assert_eq!(shown(source), expected, "{source}");
        }
    }

    #[test]
    fn slips_are_noticed() {
        for (source, expected) in [
            ("a { parameters.x } b", Some("{ parameters.x }")),
            ("{settings.token", Some("{settings.token")),
            ("{parameters.}", Some("{parameters.}")),
            ("{settings.x()}", Some("{settings.x()}")),
            ("{\"parameters.x\": 1}", None),
            ("{{parameters.x}}", None),
        ] {
            let template = Template::parse(source);
            let odd = template.odd().first().map(|range| &source[range.clone()]);
            assert_eq!(odd, expected, "{source}");
        }
    }

    #[test]
    fn braces_without_end_are_read_in_one_pass() {
        // Looking for the end from each of them would take minutes.
        for opening in ["{", "{ ", "{auth."] {
            let template = Template::parse(&opening.repeat(50_000));
            assert!(template.is_literal());
        }
        let source = "{auth.a {settings.b }";
        let odd = Template::parse(source).odd().to_vec();
        assert_eq!(odd, [0..8, 8..source.len()]);
    }

    proptest! {
        #[test]
        fn any_text_is_a_template(source in r"[{}a.()ä\n ]{0,40}") {
            let template = Template::parse(&source);
            for reference in template.references() {
                prop_assert_eq!(source.as_bytes()[reference.range.start], b'\x7b');
            }
            for range in template.odd() {
                prop_assert!(source.get(range.clone()).is_some());
            }
        }

        #[test]
        fn text_without_braces_is_kept(source in "[^{}]{0,40}") {
            prop_assert_eq!(shown(&source), source);
        }
    }
}
