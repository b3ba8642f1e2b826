//! RE2 regular expressions: one dialect, one engine and one budget of time for the patterns of documents, their
//! extractors and predicates, and for `matches` in CEL.

mod budget;
mod everyday;
mod pattern;
mod stepped;
mod translate;

pub use budget::{MatchBudget, RegexTimeout};
#[cfg(feature = "cel")]
pub(crate) use pattern::ParsedPattern;
pub use pattern::Re2Pattern;
pub use translate::{Re2Error, Re2ErrorKind, check, has_captures, translate};
