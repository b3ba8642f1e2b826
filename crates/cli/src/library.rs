//! The threat library that the binary carries with it.

include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// The text of a file of the library.
pub(crate) fn text(path: &str) -> Option<&'static str> {
    FILES
        .iter()
        .find(|(name, _)| *name == path)
        .map(|(_, text)| *text)
}
