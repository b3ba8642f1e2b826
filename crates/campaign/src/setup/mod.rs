//! How a project is set up: who of those that were found is tested, and the questions about it.

mod ask;
mod choose;
mod found;

pub use ask::Prompter;
pub use choose::Candidates;
pub use found::{found_lines, nobody_found, wrote};

/// A text that is no program with its arguments.
#[derive(Debug, thiserror::Error)]
#[error("write a command; quotes and backslashes must be closed")]
pub struct NotACommand;

/// Whether a text can be split into a program and its arguments.
///
/// # Errors
///
/// Returns an error when it cannot.
pub fn is_command(text: &str) -> Result<(), NotACommand> {
    let words = shlex::split(text).unwrap_or_default();
    if words.first().is_some_and(|word| !word.is_empty()) && !text.contains('\0') {
        Ok(())
    } else {
        Err(NotACommand)
    }
}
