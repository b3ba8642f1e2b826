//! The format kit: from one table of fields come the reader, the JSON Schema, "did you mean" and the
//! reference page of a format.
//!
//! Threat documents, manifests, what the operator configures and `proofhouse.yaml` are four formats with one
//! idea of a field. Each has its table of [`TypeSpec`]s, a [`FormatReader`] with what it says in words of its
//! own, and nothing else that names keys.

mod duration;
mod file;
mod reader;
pub mod reference;
pub mod schema;
mod table;
#[cfg(test)]
mod tests;

pub use duration::{DurationError, Durations};
pub use file::FileFormat;
pub use reader::{Fields, FormatReader, Wording};
pub use schema::SchemaStyle;
pub use table::{Alias, FieldKind, FieldSpec, TypeSpec};
