//! The few questions of `proofhouse init`, each with a default. The end of the input ends it.

use std::fmt;
use std::io::{BufRead, Read, Write};

/// How often an answer that makes no sense is asked for again.
const TRIES: usize = 3;
/// How long an answer may be.
const MAX_LINE: u64 = 4096;

/// Somebody who is asked.
#[derive(Debug)]
pub struct Prompter<R, W> {
    /// What is answered.
    pub input: R,
    /// Where the questions go.
    pub output: W,
}

impl<R: BufRead, W: Write> Prompter<R, W> {
    /// One of several; the first is the default. `None` at the end of the input.
    pub fn choice(&mut self, question: &str, choices: &[String]) -> Option<usize> {
        let _ = writeln!(self.output, "{question}");
        for (number, choice) in choices.iter().enumerate() {
            let _ = writeln!(self.output, "  {}) {choice}", number + 1);
        }
        for _ in 0..TRIES {
            let answer = self.line("[1] ")?;
            if answer.is_empty() {
                break;
            }
            match answer.parse::<usize>() {
                Ok(number) if (1..=choices.len()).contains(&number) => return Some(number - 1),
                _ => {
                    let _ = writeln!(self.output, "write a number from 1 to {}", choices.len());
                }
            }
        }
        Some(0)
    }

    /// A text that `check` accepts. `None` at the end of the input.
    pub fn text<E: fmt::Display>(
        &mut self,
        question: &str,
        default: &str,
        check: impl Fn(&str) -> Result<(), E>,
    ) -> Option<String> {
        let shown = match default {
            "" => format!("{question} "),
            default => format!("{question} [{default}] "),
        };
        for _ in 0..TRIES {
            let answer = self.line(&shown)?;
            if answer.is_empty() {
                break;
            }
            match check(&answer) {
                Ok(()) => return Some(answer),
                Err(why) => {
                    let _ = writeln!(self.output, "{why}");
                }
            }
        }
        Some(default.to_owned())
    }

    /// What is answered, without blanks around it; `None` at the end of the input.
    fn line(&mut self, prompt: &str) -> Option<String> {
        let _ = write!(self.output, "{prompt}");
        let _ = self.output.flush();
        let mut line = String::new();
        match self.input.by_ref().take(MAX_LINE).read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(input: &str) -> Prompter<&[u8], Vec<u8>> {
        Prompter {
            input: input.as_bytes(),
            output: Vec::new(),
        }
    }

    #[test]
    fn answers_that_make_no_sense_are_asked_for_again() {
        let choices = ["a".to_owned(), "b".to_owned()];
        for (input, expected) in [
            ("2\n", Some(1)),
            ("\n", Some(0)),
            ("", None),
            ("9\n", None),
            ("9\nx\n2\n", Some(1)),
            ("9\n9\n9\n2\n", Some(0)),
        ] {
            assert_eq!(
                asked(input).choice("Which?", &choices),
                expected,
                "{input:?}"
            );
        }
        let check = |text: &str| match text {
            "no" => Err("not that".to_owned()),
            _ => Ok(()),
        };
        for (input, expected) in [
            (" yes \n", Some("yes")),
            ("", None),
            ("no\n", None),
            ("no\nyes\n", Some("yes")),
            ("no\n\n", Some("d")),
        ] {
            assert_eq!(
                asked(input).text("What?", "d", check).as_deref(),
                expected,
                "{input:?}"
            );
        }
        let mut one = asked("2\n");
        one.choice("Which?", &choices);
        assert_eq!(
            String::from_utf8(one.output).unwrap(),
            "Which?\n  1) a\n  2) b\n[1] "
        );
    }
}
