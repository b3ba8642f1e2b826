//! The few questions of `proofhouse init`, each with a default. At the end of the input, the defaults hold.

use std::io::{BufRead, Read, Write};

/// How often an answer that makes no sense is asked for again.
const TRIES: usize = 3;
/// How long an answer may be.
const MAX_LINE: u64 = 4096;

/// Somebody who is asked.
pub(crate) struct Asked<R, W> {
    pub(crate) input: R,
    pub(crate) output: W,
}

impl<R: BufRead, W: Write> Asked<R, W> {
    /// One of several; the first is the default.
    pub(crate) fn choice(&mut self, question: &str, choices: &[String]) -> usize {
        let _ = writeln!(self.output, "{question}");
        for (number, choice) in choices.iter().enumerate() {
            let _ = writeln!(self.output, "  {}) {choice}", number + 1);
        }
        for _ in 0..TRIES {
            match self.line("[1] ").as_deref() {
                None | Some("") => return 0,
                Some(answer) => match answer.parse::<usize>() {
                    Ok(number) if (1..=choices.len()).contains(&number) => return number - 1,
                    _ => {
                        let _ = writeln!(self.output, "write a number from 1 to {}", choices.len());
                    }
                },
            }
        }
        0
    }

    /// A text that `check` accepts.
    pub(crate) fn text(
        &mut self,
        question: &str,
        default: &str,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> String {
        let shown = match default {
            "" => format!("{question} "),
            default => format!("{question} [{default}] "),
        };
        for _ in 0..TRIES {
            match self.line(&shown) {
                Some(answer) if !answer.is_empty() => match check(&answer) {
                    Ok(()) => return answer,
                    Err(why) => {
                        let _ = writeln!(self.output, "{why}");
                    }
                },
                _ => break,
            }
        }
        default.to_owned()
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

    fn asked(input: &str) -> Asked<&[u8], Vec<u8>> {
        Asked {
            input: input.as_bytes(),
            output: Vec::new(),
        }
    }

    #[test]
    fn answers_that_make_no_sense_are_asked_for_again() {
        let choices = ["a".to_owned(), "b".to_owned()];
        for (input, expected) in [
            ("2\n", 1),
            ("\n", 0),
            ("", 0),
            ("9\nx\n2\n", 1),
            ("9\n9\n9\n2\n", 0),
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
            (" yes \n", "yes"),
            ("", "d"),
            ("no\nyes\n", "yes"),
            ("no\n\n", "d"),
        ] {
            assert_eq!(
                asked(input).text("What?", "d", check),
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
