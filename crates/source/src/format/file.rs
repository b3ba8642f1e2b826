//! Reads a whole file of a format: what cannot be read as YAML and what a reader finds, in the order of the text.

use crate::diagnostic::{Diagnostic, DiagnosticSeverity};
use crate::{ReadErrorKind, ReadLimits, Source};

/// How the files of a format are read.
///
/// ```
/// use proofhouse_source::ReadLimits;
/// use proofhouse_source::format::FileFormat;
///
/// let format = FileFormat { limits: &ReadLimits::default(), unreadable: "E-1", may_be_empty: false };
/// let (keys, findings) = format.read("a: 1\nb: 2\n", |source| {
///     (source.root().entries().map(Iterator::count), Vec::new())
/// });
/// assert_eq!((keys, findings.len()), (Some(2), 0));
/// let (_, findings) = format.read("a: [", |_| (None::<()>, Vec::new()));
/// assert_eq!(findings[0].code, "E-1");
/// ```
#[derive(Debug)]
pub struct FileFormat<'l> {
    /// How large and how deep a file may be.
    pub limits: &'l ReadLimits,
    /// The code of what cannot be read at all.
    pub unreadable: &'static str,
    /// Whether a file without anything in it is right.
    pub may_be_empty: bool,
}

impl FileFormat<'_> {
    /// Reads a file with the reader of its format, which gives what it read and what it found. It is also asked about files with
    /// errors, as far as they can be read.
    pub fn read<T>(
        &self,
        text: &str,
        reader: impl FnOnce(&Source) -> (Option<T>, Vec<Diagnostic>),
    ) -> (Option<T>, Vec<Diagnostic>) {
        let (source, errors) = Source::read_leniently(text, self.limits);
        let unreadable = errors
            .into_iter()
            .filter(|error| !(self.may_be_empty && error.kind == ReadErrorKind::Empty))
            .map(|error| Diagnostic {
                severity: DiagnosticSeverity::Error,
                code: self.unreadable,
                path: None,
                span: Some(error.span),
                help: Some(error.help.to_owned()),
                message: error.message,
            });
        let mut findings: Vec<Diagnostic> = unreadable.collect();
        let mut read = None;
        if let Some(source) = &source {
            let (value, found) = reader(source);
            read = value;
            findings.extend(found);
        }
        findings.sort_by_key(|finding| finding.span.map_or(0, |span| span.offset));
        (read, findings)
    }
}
