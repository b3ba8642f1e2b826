//! A walk through a document that collects what is wrong with it: what the readers of formats share.

use crate::diagnostic::{Diagnostic, DiagnosticSeverity, Span};
use crate::path::{DocPath, PathSegment};
use crate::suggest::did_you_mean;
use crate::tree::Source;

/// How many errors are kept unless a reader says otherwise, and how many warnings. A hostile text may break a
/// rule at every byte.
const MAX_FINDINGS: usize = 1_000;
/// How many findings may come with a suggestion, which takes longer to find than the finding itself.
const MAX_SUGGESTIONS: usize = 1_000;
/// How many characters of a key a message shows.
const MAX_SHOWN: usize = 60;

/// Where a reader is in a document, and what it has found so far.
///
/// ```
/// use proofhouse_source::{ReadLimits, PathSegment, Source, DocumentWalk};
///
/// let source = Source::read("name: x\nrepeats: many\n", &ReadLimits::default()).unwrap();
/// let mut walk = DocumentWalk::new(&source);
/// walk.enter(PathSegment::Key("repeats"));
/// walk.error("E-1", "write a number".to_owned(), None);
/// walk.leave();
/// assert_eq!(walk.into_findings()[0].to_string(), "error[E-1] 2:10 repeats: write a number");
/// ```
#[derive(Debug)]
pub struct DocumentWalk<'s> {
    source: &'s Source,
    path: DocPath<'s>,
    findings: Vec<Diagnostic>,
    /// How many of the findings are errors.
    errors: usize,
    /// How many errors are kept, and how many warnings.
    max: usize,
    /// Paths of the keys that misspelled ones were probably meant to be.
    misspelled: Vec<String>,
    /// How places of the document become places of its file.
    shift: SpanShift,
}

/// How places in a document become places in the file that it stands in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpanShift {
    /// Bytes of the file before the document.
    pub offset: usize,
    /// Lines of the file before the document.
    pub line: usize,
    /// What the document has in the place of something else in the file, from its start to its end.
    pub replaced: Vec<ReplacedText>,
}

/// A text without line ends that stands in the place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplacedText {
    /// Where it starts in the document, in bytes.
    pub offset: usize,
    /// The line of the document, from 1.
    pub line: usize,
    /// Its bytes and characters.
    pub put: (usize, usize),
    /// The bytes and characters of the text in the file.
    pub taken: (usize, usize),
}

impl SpanShift {
    /// The place in the file. A place within a text that was put in is where that text stands.
    ///
    /// ```
    /// use proofhouse_source::{ReplacedText, Span, SpanShift};
    ///
    /// // `a: {x} b` became `a: 12345 b`.
    /// let replaced = vec![ReplacedText { offset: 3, line: 1, put: (5, 5), taken: (3, 3) }];
    /// let shift = SpanShift { offset: 10, line: 2, replaced };
    /// let place = |offset, length| {
    ///     let span = shift.apply(Span { offset, length, line: 1, column: offset + 1 });
    ///     (span.offset, span.length, span.line, span.column)
    /// };
    /// assert_eq!(place(9, 1), (17, 1, 3, 8));
    /// assert_eq!(place(5, 2), (13, 3, 3, 4));
    /// assert_eq!(place(0, 10), (10, 8, 3, 1));
    /// ```
    #[must_use]
    pub fn apply(&self, span: Span) -> Span {
        let end = self.moved(span.offset.saturating_add(span.length), true);
        let offset = self.moved(span.offset, false);
        let mut column = span.column;
        for text in &self.replaced {
            if text.line == span.line && text.offset < span.offset {
                let into = span.offset - text.offset;
                if into < text.put.0 {
                    // Characters of what was put in are at most as many as its bytes.
                    column = column.saturating_sub(into.min(text.put.1)).max(1);
                } else {
                    column = (column + text.taken.1).saturating_sub(text.put.1);
                }
            }
        }
        Span {
            offset: offset + self.offset,
            length: end.saturating_sub(offset),
            line: span.line + self.line,
            column,
        }
    }

    /// Where a place of the document is in the text before the replacement; the ends of what was put in are those of
    /// what was taken.
    fn moved(&self, place: usize, is_end: bool) -> usize {
        let (mut put, mut taken) = (0, 0);
        for text in &self.replaced {
            if place <= text.offset {
                break;
            }
            if place < text.offset + text.put.0 {
                let start = (text.offset + taken).saturating_sub(put);
                return if is_end { start + text.taken.0 } else { start };
            }
            put += text.put.0;
            taken += text.taken.0;
        }
        (place + taken).saturating_sub(put)
    }
}

impl<'s> DocumentWalk<'s> {
    /// Begins at the root.
    #[must_use]
    pub fn new(source: &'s Source) -> Self {
        Self {
            source,
            path: DocPath::default(),
            findings: Vec::new(),
            errors: 0,
            max: MAX_FINDINGS,
            misspelled: Vec::new(),
            shift: SpanShift::default(),
        }
    }

    /// The same, but keeping as many errors and as many warnings.
    #[must_use]
    pub fn keeping(mut self, max: usize) -> Self {
        self.max = max;
        self
    }

    /// The same in a file whose places are these.
    #[must_use]
    pub fn shifted(mut self, shift: SpanShift) -> Self {
        self.shift = shift;
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
    pub fn enter(&mut self, segment: PathSegment<'s>) {
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

    /// The paths of the keys that misspelled ones were probably meant to be.
    #[must_use]
    pub fn misspelled(&self) -> &[String] {
        &self.misspelled
    }

    /// Whether an unknown key was probably meant to be this one of the current mapping.
    #[must_use]
    pub fn was_misspelled(&self, key: &str) -> bool {
        !self.misspelled.is_empty() && self.misspelled.contains(&self.path.key(key).to_string())
    }

    /// Whether no more errors are kept.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.keeps_no_more(DiagnosticSeverity::Error)
    }

    /// Warnings do not take the room of errors: a document with an error must never pass for one without.
    fn keeps_no_more(&self, severity: DiagnosticSeverity) -> bool {
        self.max
            <= match severity {
                DiagnosticSeverity::Error => self.errors,
                DiagnosticSeverity::Warning => self.findings.len() - self.errors,
            }
    }

    /// The known word nearest to a mistyped one, as long as there are few findings.
    pub fn near<'k>(
        &self,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Option<&'k str> {
        if self.findings.len() < MAX_SUGGESTIONS {
            did_you_mean(word, known)
        } else {
            None
        }
    }

    /// Where the reader is in the file.
    #[must_use]
    pub fn here(&self) -> Span {
        self.shift.apply(self.source.span_of(&self.path))
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
        if !self.keeps_no_more(severity) {
            self.errors += usize::from(severity == DiagnosticSeverity::Error);
            self.findings.push(Diagnostic {
                severity,
                code,
                path: Some(self.path.to_string()).filter(|path| !path.is_empty()),
                span: Some(self.shift.apply(span)),
                message,
                help,
            });
        }
    }

    /// Reports an error where the reader is.
    pub fn error(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.report_found(
            Source::span_of,
            DiagnosticSeverity::Error,
            code,
            message,
            help,
        );
    }

    /// Reports a warning where the reader is.
    pub fn warn(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.report_found(
            Source::span_of,
            DiagnosticSeverity::Warning,
            code,
            message,
            help,
        );
    }

    /// Reports an error at the key of the field the reader is in.
    pub fn error_at_key(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.report_found(
            Source::key_span_of,
            DiagnosticSeverity::Error,
            code,
            message,
            help,
        );
    }

    /// Reports a warning at the key of the field the reader is in.
    pub fn warn_at_key(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.report_found(
            Source::key_span_of,
            DiagnosticSeverity::Warning,
            code,
            message,
            help,
        );
    }

    /// Reports a finding whose place is still to be found.
    fn report_found(
        &mut self,
        find: fn(&Source, &DocPath<'_>) -> Span,
        severity: DiagnosticSeverity,
        code: &'static str,
        message: String,
        help: Option<String>,
    ) {
        // Finding a place takes time, which is wasted on what is not kept.
        if !self.keeps_no_more(severity) {
            let span = find(self.source, &self.path);
            self.report(severity, code, span, message, help);
        }
    }

    /// Reports a key of the current mapping that means nothing there. `near` is the known key that it was
    /// probably meant to be.
    pub fn unknown_key(
        &mut self,
        code: &'static str,
        key: &'s str,
        near: Option<&str>,
        help: Option<String>,
    ) {
        if let Some(near) = near {
            self.misspelled.push(self.path.key(near).to_string());
        }
        self.enter(PathSegment::Key(key));
        self.error_at_key(code, format!("unknown key `{}`", shown(key)), help);
        self.leave();
    }

    /// How a message names the current place; `root` stands for the document as a whole.
    #[must_use]
    pub fn place(&self, root: &str) -> String {
        match self.path.segments() {
            [.., PathSegment::Key(key)] => format!("`{}`", shown(key)),
            [.., PathSegment::Key(list), PathSegment::Index(_)] => {
                format!("an item of `{}`", shown(list))
            }
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
        let mut walk = DocumentWalk::new(&source).shifted(SpanShift {
            offset: 100,
            line: 7,
            replaced: Vec::new(),
        });
        assert_eq!(walk.place("the file"), "the file");
        walk.enter(PathSegment::Key("a"));
        let near = walk.near("nmae", ["name"]);
        walk.unknown_key("E-2", "nmae", near, near.map(str::to_owned));
        assert!(walk.was_misspelled("name") && !walk.was_misspelled("nmae"));
        walk.leave();
        walk.enter(PathSegment::Key("list"));
        walk.enter(PathSegment::Index(0));
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
        let source = Source::read("a: 1", &ReadLimits::default()).unwrap();
        let mut walk = DocumentWalk::new(&source).keeping(10);
        for _ in 0..20 {
            walk.warn("W-1", "odd".to_owned(), None);
        }
        assert_eq!(walk.findings().len(), 10);
        for _ in 0..20 {
            walk.error_at_key("E-3", "wrong".to_owned(), None);
        }
        assert_eq!(walk.findings().len(), 20);
        assert!(walk.is_full());
    }
}
