//! Lines from stdin, read beside everything else that goes on.

use std::io::{self, BufRead, Read};

use tokio::sync::mpsc;

/// The longest line that is taken; no message to a model is as long.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Why there is no next line.
#[derive(Debug, thiserror::Error)]
pub enum PromptLineError {
    /// Stdin failed.
    #[error("stdin cannot be read: {0}")]
    Io(io::Error),
    /// The line is too long.
    #[error("a line of stdin has more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// It is no text.
    #[error("stdin is not UTF-8")]
    NotUtf8,
}

/// The lines of stdin until its end. They are read by a thread that nobody waits for, because a terminal
/// may never give another line.
///
/// # Errors
///
/// Returns an error when there is no thread for it.
pub fn prompt_lines() -> io::Result<mpsc::Receiver<Result<String, PromptLineError>>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::Builder::new().spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Some(line) = next(&mut stdin) {
            let failed = line.is_err();
            if sender.blocking_send(line).is_err() || failed {
                return;
            }
        }
    })?;
    Ok(receiver)
}

fn next(input: &mut impl BufRead) -> Option<Result<String, PromptLineError>> {
    let mut bytes = Vec::new();
    let read = input.take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut bytes);
    match read {
        Err(error) => Some(Err(PromptLineError::Io(error))),
        Ok(0) => None,
        Ok(_) if bytes.len() as u64 > MAX_LINE_BYTES => Some(Err(PromptLineError::TooLong)),
        Ok(_) => Some(match String::from_utf8(bytes) {
            Ok(line) => Ok(line.trim_end_matches(['\n', '\r']).to_owned()),
            Err(_) => Err(PromptLineError::NotUtf8),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_their_end() {
        let mut input = "one\r\n\nthree".as_bytes();
        let mut read = || next(&mut input).map(Result::unwrap);
        assert_eq!(read(), Some("one".to_owned()));
        assert_eq!(read(), Some(String::new()));
        assert_eq!(read(), Some("three".to_owned()));
        assert_eq!(read(), None);
    }

    #[test]
    fn what_is_no_line_is_an_error() {
        let long = vec![b'a'; 2 << 20];
        assert!(matches!(
            next(&mut long.as_slice()),
            Some(Err(PromptLineError::TooLong))
        ));
        assert!(matches!(
            next(&mut b"\xff\n".as_slice()),
            Some(Err(PromptLineError::NotUtf8))
        ));
    }
}
