//! A walk through a document that collects what is wrong with it: what the readers of formats share.

use crate::diagnostic::{Diagnostic, DiagnosticSeverity, Span};
use crate::path::{DocPath, Segment};
use crate::suggest::did_you_mean;
use crate::tree::{NodeRef, Source};

/// How many findings are kept. A hostile text may break a rule at every byte.
const MAX_FINDINGS: usize = 1_000;
/// How many characters of a key a message shows.
const MAX_SHOWN: usize = 60;

/// Where a reader is in a document, and what it has found so far.
///
/// ```
/// use proofhouse_source::{ReadLimits, Segment, Source, Walk};
///
/// let source = Source::read("name: x\nrepeats: many\n", &ReadLimits::default()).unwrap();
/// let mut walk = Walk::new(&source);
/// walk.enter(Segment::Key("repeats"));
/// walk.error("E-1", "write a number".to_owned(), None);
/// walk.leave();
/// assert_eq!(walk.into_findings()[0].to_string(), "error[E-1] 2:10 repeats: write a number");
/// ```
#[derive(Debug)]
pub struct Walk<'s> {
    source: &'s Source,
    path: DocPath<'s>,
    findings: Vec<Diagnostic>,
    /// Bytes and lines of the file before the document.
    before: (usize, usize),
}

impl<'s> Walk<'s> {
    /// Begins at the root.
    #[must_use]
    pub fn new(source: &'s Source) -> Self {
        Self {
            source,
            path: DocPath::default(),
            findings: Vec::new(),
            before: (0, 0),
        }
    }

    /// The same in a file that has this many bytes and lines before the document.
    #[must_use]
    pub fn after(mut self, bytes: usize, lines: usize) -> Self {
        self.before = (bytes, lines);
        self
    }

    /// The document.
    #[must_use]
    pub fn source(&self) -> &'s Source {
        self.source
    }

    /// Where the reader is.
    #[must_use]
    pub fn path(&self) -> &DocPath<'s> {
        &self.path
    }

    /// Steps into a field or an item.
    pub fn enter(&mut self, segment: Segment<'s>) {
        self.path.push(segment);
    }

    /// Steps back out.
    pub fn leave(&mut self) {
        self.path.pop();
    }

    /// What was found so far.
    #[must_use]
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// What was found.
    #[must_use]
    pub fn into_findings(self) -> Vec<Diagnostic> {
        self.findings
    }

    /// Where the reader is in the file.
    #[must_use]
    pub fn here(&self) -> Span {
        self.shift(self.source.span_of(&self.path))
    }

    fn shift(&self, span: Span) -> Span {
        Span {
            offset: span.offset + self.before.0,
            line: span.line + self.before.1,
            ..span
        }
    }

    /// Reports a finding at a place of the document.
    pub fn report(
        &mut self,
        severity: DiagnosticSeverity,
        code: &'static str,
        span: Span,
        message: String,
        help: Option<String>,
    ) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Diagnostic {
                severity,
                code,
                path: Some(self.path.to_string()).filter(|path| !path.is_empty()),
                span: Some(self.shift(span)),
                message,
                help,
            });
        }
    }

    /// Reports an error where the reader is.
    pub fn error(&mut self, code: &'static str, message: String, help: Option<String>) {
        let span = self.source.span_of(&self.path);
        self.report(DiagnosticSeverity::Error, code, span, message, help);
    }

    /// Reports a warning where the reader is.
    pub fn warn(&mut self, code: &'static str, message: String, help: Option<String>) {
        let span = self.source.span_of(&self.path);
        self.report(DiagnosticSeverity::Warning, code, span, message, help);
    }

    /// Reports an error at the key of the field the reader is in.
    pub fn error_at_key(&mut self, code: &'static str, message: String, help: Option<String>) {
        let span = self.source.key_span_of(&self.path);
        self.report(DiagnosticSeverity::Error, code, span, message, help);
    }

    /// Reports a warning at the key of the field the reader is in.
    pub fn warn_at_key(&mut self, code: &'static str, message: String, help: Option<String>) {
        let span = self.source.key_span_of(&self.path);
        self.report(DiagnosticSeverity::Warning, code, span, message, help);
    }

    /// Reports a key of the current mapping that means nothing there.
    pub fn unknown_key(&mut self, code: &'static str, key: &'s str, help: Option<String>) {
        self.enter(Segment::Key(key));
        self.error_at_key(code, format!("unknown key `{}`", shown(key)), help);
        self.leave();
    }

    /// Reports every key of a mapping that is not known; `help` gets the key and the known one that is
    /// near it.
    pub fn unknown_keys(
        &mut self,
        code: &'static str,
        node: NodeRef<'s>,
        known: &[&'static str],
        help: impl Fn(&str, Option<&'static str>) -> Option<String>,
    ) {
        for (key, _) in node.entries().into_iter().flatten() {
            // Past the limit nothing is kept, and suggestions take time.
            if !known.contains(&key) && self.findings.len() < MAX_FINDINGS {
                let near = did_you_mean(key, known.iter().copied());
                self.unknown_key(code, key, help(key, near));
            }
        }
    }

    /// How a message names the current place; `root` stands for the document as a whole.
    #[must_use]
    pub fn place(&self, root: &str) -> String {
        match self.path.segments() {
            [.., Segment::Key(key)] => format!("`{}`", shown(key)),
            [.., Segment::Key(list), Segment::Index(_)] => format!("an item of `{}`", shown(list)),
            _ => root.to_owned(),
        }
    }
}

fn shown(key: &str) -> &str {
    match key.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => &key[..end],
        None => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read::ReadLimits;

    #[test]
    fn findings_know_their_places() {
        let source = Source::read("a:\n  nmae: 1\nlist: [x]\n", &ReadLimits::default()).unwrap();
        let mut walk = Walk::new(&source).after(100, 7);
        assert_eq!(walk.place("the file"), "the file");
        walk.enter(Segment::Key("a"));
        let node = source.root().get("a").unwrap();
        walk.unknown_keys("E-2", node, &["name"], |_, near| near.map(str::to_owned));
        walk.leave();
        walk.enter(Segment::Key("list"));
        walk.enter(Segment::Index(0));
        assert_eq!(walk.place("the file"), "an item of `list`");
        walk.warn("W-1", "odd".to_owned(), None);
        let findings = walk.into_findings();
        assert_eq!(
            findings[0].to_string(),
            "error[E-2] 9:3 a.nmae: unknown key `nmae`"
        );
        assert_eq!(findings[0].help.as_deref(), Some("name"));
        assert_eq!(findings[0].span.map(|span| span.offset), Some(105));
        assert_eq!(findings[1].to_string(), "warning[W-1] 10:8 list[0]: odd");
    }

    #[test]
    fn a_hostile_text_has_no_more_findings_than_are_kept() {
        let text: String = (0..2_000).map(|n| format!("k{n}: 1\n")).collect();
        let source = Source::read(&text, &ReadLimits::default()).unwrap();
        let mut walk = Walk::new(&source);
        walk.unknown_keys("E-2", source.root(), &["name"], |_, _| None);
        walk.error("E-3", "more".to_owned(), None);
        assert_eq!(walk.findings().len(), MAX_FINDINGS);
    }
}
