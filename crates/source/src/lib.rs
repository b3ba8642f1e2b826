//! Documents as written: bounded YAML reading with places, canonical YAML writing, and the
//! diagnostics every reader of a document reports with.
//!
//! Threat documents and manifests are both YAML that a person wrote, so both want the same things:
//! one tree with the place of every node, one [`Diagnostic`] type, one canonical writer. This crate
//! is that common ground and knows nothing of either format.
//!
//! ```
//! use proofhouse_source::{ReadLimits, Source};
//!
//! let source = Source::read("tools:\n  - name: search\n", &ReadLimits::default()).unwrap();
//! let tools = source.root().get("tools").unwrap();
//! assert_eq!(tools.items().unwrap().len(), 1);
//! ```

mod diagnostic;
pub mod format;
mod invisible;
mod json;
mod path;
mod places;
mod plain;
mod printable;
mod suggest;
mod tree;
mod walk;
mod yaml;

pub use diagnostic::{Diagnostic, DiagnosticSeverity, Span};
pub use invisible::{is_invisible, is_variation_selector, tag_letter};
pub use json::ValueError;
pub use path::{DocPath, PathSegment};
pub use plain::plain_error;
pub use printable::{printable, printable_line, starred};
pub use suggest::did_you_mean;
pub use tree::{NodeRef, Source};
pub use walk::{DocumentWalk, ReplacedText, SpanShift};
pub use yaml::comments::Comments;
pub use yaml::emit::{to_inline_scalar, to_yaml};
pub use yaml::read::{ReadError, ReadErrorKind, ReadLimits};
pub use yaml::scalar::YamlScalar;
