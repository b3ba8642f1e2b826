//! The questions of `proofhouse init`, and what it does with what was found.

pub(crate) mod ask;
pub(crate) mod choose;

/// A text that is no program with its arguments.
#[derive(Debug, thiserror::Error)]
#[error("write a command; quotes and backslashes must be closed")]
pub(crate) struct NotACommand;

/// Whether a text can be split into a program and its arguments.
pub(crate) fn is_command(text: &str) -> Result<(), NotACommand> {
    let words = shlex::split(text).unwrap_or_default();
    if words.first().is_some_and(|word| !word.is_empty()) && !text.contains('\0') {
        Ok(())
    } else {
        Err(NotACommand)
    }
}
