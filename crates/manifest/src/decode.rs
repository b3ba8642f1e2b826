//! The common ground of the readers of manifests: findings with places, and the words of this format.

use proofhouse_source::format::{self, FormatReader, Wording};
use proofhouse_source::{DiagnosticSeverity, DocumentWalk, Source, Span, SpanShift};

use super::names::DeclaredNames;

/// Walks one document and collects what is wrong with it.
pub(super) struct ManifestDecoder<'s> {
    pub(super) walk: DocumentWalk<'s>,
    pub(super) names: DeclaredNames,
}

/// The fields of one mapping that is being read.
pub(super) type ManifestFields<'d, 's> = format::Fields<'d, 's, ManifestDecoder<'s>>;

impl<'s> FormatReader<'s> for ManifestDecoder<'s> {
    const WORDING: Wording = Wording {
        whole: "the document",
        text: "a string",
        list: "a sequence",
        mismatch: "TM-003",
        unknown_key: "TM-004",
        empty: "TM-018",
        refused: "TM-008",
        shows_values: true,
    };

    fn walk(&mut self) -> &mut DocumentWalk<'s> {
        &mut self.walk
    }

    fn outside(&mut self, wanted: &str) {
        let message = format!("{} must be {wanted}", self.place());
        self.walk.error(Self::WORDING.mismatch, message, None);
    }

    fn empty(&mut self, key: &'static str, _is_required: bool) {
        let message = format!("`{key}` is empty and counts as absent");
        let help = Some("give it a value or remove the key".to_owned());
        self.walk.warn(Self::WORDING.empty, message, help);
    }
}

impl<'s> ManifestDecoder<'s> {
    pub(super) fn new(source: &'s Source, shift: SpanShift) -> Self {
        Self {
            walk: DocumentWalk::new(source).shifted(shift),
            names: DeclaredNames::default(),
        }
    }

    /// Reports a finding at a place.
    pub(super) fn push(
        &mut self,
        severity: DiagnosticSeverity,
        code: &'static str,
        span: Span,
        message: String,
        help: Option<String>,
    ) {
        self.walk.report(severity, code, span, message, help);
    }

    /// Reports an error at the current path.
    pub(super) fn error(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.walk.error(code, message, help);
    }

    /// Reports that a manifest can be read and is of no use without a key, unless the key is there with a typo.
    pub(super) fn say_too_little(&mut self, message: &str, key: &str) {
        if !self.walk.was_misspelled(key) {
            let help = Some(format!("add `{key}`"));
            self.walk.warn("TM-037", message.to_owned(), help);
        }
    }

    /// Where the current path is in the file.
    pub(super) fn here(&self) -> Span {
        self.walk.here()
    }

    /// Reports a warning at the current path.
    pub(super) fn warn(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.walk.warn(code, message, help);
    }
}
