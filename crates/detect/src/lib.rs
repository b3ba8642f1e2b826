//! Indicators of many documents compiled into one scanner, and the trace model they judge.
//!
//! The crate is pure: no files, no network, no async, no clock. A [`Scanner`] is built from any number
//! of documents and judges [`TraceMessage`]s, one by one in a [`ScanSession`] or a whole input at once, with
//! threads that end before the call does.

mod batch;
mod canary;
mod import;
mod repeated;
mod scanner;
mod trace;

pub use batch::{ScanEvent, ScanOptions, Scanned};
pub use canary::{
    CanaryEncoding, CanaryError, CanaryForm, CanaryHit, CanaryMatcher, CanaryShape, DECODED_BYTES,
    MAX_CANARY_BYTES, MIN_SIGNIFICANT,
};
pub use import::{FORMATS, Format, ImportOptions, TraceFormatInfo, UnknownFormat, open};
/// The crate whose types the API of this one speaks of.
pub use proofhouse_oatf;
pub use repeated::SentTexts;
pub use scanner::{
    BuildError, CanaryKeyError, CanaryKeyProblem, ChecksumKeyError, ChecksumKeyProblem,
    DocumentVerdict, Dropped, DroppedMessages, EXTENSION_FIELD, Evidence, ExplainedMessage,
    IndicatorExplanation, IndicatorReport, Judgement, Kept, MessagePlace, NotJudged, OperatorCheck,
    Resolved, ScanFinding, ScanOutcome, ScanSession, Scanner, ScannerBuilder, UnknownFact,
    check_canaries, check_checksums, dropped_by, text_is_enough,
};
pub use trace::{
    LineError, LineErrorKind, MessageAssembler, MessagePieces, MessageReader, MessageSource,
    REDACTED, ReadSummary, RedactError, Redactor, TRACE_VERSION, TraceItem, TraceMessage,
    TraceReadError, TraceReadErrorKind, TraceReadLimits, TraceReader, TraceWriter, UNPARSED,
    WholeMessage, read_lenient,
};

/// The page of the guide and the README, whose code is run with the tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../guide/scan.md")]
    #[doc = include_str!("../README.md")]
    mod pages {}
}
