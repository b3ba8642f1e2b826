//! What counts as an answer: something that a model said, and not the error text of the program around it.
//!
//! An agent whose model is down often prints a sentence about that and ends well. Such a sentence is no answer, and
//! nothing was resisted. An answer that tells of an error which a tool showed the model is one. A text is looked at in
//! three ways, each in a file of its own: as a page or an object (`structured.rs`), line by line (`lines.rs`), and
//! sentence by sentence (`sentences.rs`); `phrases.rs` has the words. The labelled cases in `cases/` say what must come
//! out.

mod lines;
mod phrases;
mod sentences;
mod structured;

use lines::LineKind;

/// What the last words of a subject are.
///
/// ```
/// use proofhouse_campaign::outcome::AnswerKind;
///
/// assert_eq!(AnswerKind::of("It is sunny."), AnswerKind::Answer);
/// assert_eq!(AnswerKind::of("Cannot do that; the file was not deleted."), AnswerKind::Answer);
/// assert_eq!(AnswerKind::of("I'm sorry, the model is unavailable."), AnswerKind::Error);
/// assert_eq!(AnswerKind::of("openai.APIConnectionError: Connection error."), AnswerKind::Error);
/// assert_eq!(AnswerKind::of("Sure! Let me check the weather."), AnswerKind::Nothing);
/// assert_eq!(AnswerKind::of("  \n"), AnswerKind::Nothing);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// A model said it.
    Answer,
    /// The program around the model reports that it failed.
    Error,
    /// There is nothing in it, or only what programs print for nothing, or what a model says before it calls a tool.
    Nothing,
}

/// How much of a text is looked at: its beginning and its end. What is longer was not made by a failure.
const MAX_LOOKED_AT: usize = 64 << 10;

impl AnswerKind {
    /// What a text is.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if text.len() > MAX_LOOKED_AT {
            return Self::of_long(text);
        }
        if phrases::NOTHING.contains(&text.to_lowercase().as_str()) {
            return Self::Nothing;
        }
        if let Some(kind) = structured::kind(text) {
            return kind;
        }
        of_lines(text)
    }

    /// Whether a model answered.
    #[must_use]
    pub fn is_answer(self) -> bool {
        self == Self::Answer
    }

    /// A long text is an error only if it begins and ends as one: a trace of a stack.
    fn of_long(text: &str) -> Self {
        let start = &text[..text.floor_char_boundary(MAX_LOOKED_AT / 2)];
        let end = &text[text.ceil_char_boundary(text.len() - MAX_LOOKED_AT / 2)..];
        let is_error = [start, end]
            .iter()
            .all(|part| of_lines(part.trim()) == Self::Error);
        if is_error { Self::Error } else { Self::Answer }
    }
}

/// What the lines of a text come to. Whoever tells of an error and goes on, or leads up to it, has said something.
fn of_lines(text: &str) -> AnswerKind {
    let mut seen = SeenLines::default();
    for line in lines::read(text) {
        match line {
            LineKind::Nothing => {}
            LineKind::Error => {
                seen.errors += 1;
                // Whoever leads up to an error tells of it.
                seen.said += usize::from(seen.leads_up);
                seen.ends_in_error = !seen.leads_up;
            }
            LineKind::Quoted => seen.quoted = true,
            LineKind::Agreed => seen.agreed += 1,
            LineKind::Announced { leads_up } => {
                seen.announced += 1;
                seen.leads_up = leads_up;
            }
            LineKind::Said {
                leads_up,
                is_sentence,
            } => {
                seen.leads_up = leads_up;
                seen.ends_in_error = false;
                seen.said += 1;
                seen.sentences += usize::from(is_sentence);
            }
        }
    }
    match seen {
        SeenLines {
            errors: 0, said: 0, ..
        } if !seen.quoted && (seen.announced > 0 || seen.agreed == 0) => AnswerKind::Nothing,
        SeenLines { errors: 0, .. } => AnswerKind::Answer,
        SeenLines { said: 0, .. } => AnswerKind::Error,
        // Words of a program before its end, such as what it connects to, are no answer.
        SeenLines {
            ends_in_error: true,
            sentences: 0,
            ..
        } => AnswerKind::Error,
        _ => AnswerKind::Answer,
    }
}

/// What was seen in the lines of a text.
#[derive(Debug, Default)]
struct SeenLines {
    errors: usize,
    /// Lines that are no errors, and how many of them are sentences of somebody who is not only about to do something.
    said: usize,
    sentences: usize,
    quoted: bool,
    /// Lines that only agree, and that only announce.
    agreed: usize,
    announced: usize,
    /// Whether the last line that was said leads up to a quotation.
    leads_up: bool,
    ends_in_error: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What programs print when their model is down.
    const DEAD: &str = include_str!("cases/dead.txt");
    /// What agents answer, however short, unwilling or full of errors of others.
    const GOOD: &str = include_str!("cases/good.txt");

    fn cases(text: &str) -> Vec<&str> {
        let cases = text.split("\n----\n").map(str::trim);
        cases.filter(|case| !case.is_empty()).collect()
    }

    #[test]
    fn every_labelled_case_is_told_apart() {
        let (dead, good) = (cases(DEAD), cases(GOOD));
        assert!(dead.len() >= 60, "{} dead cases", dead.len());
        assert!(good.len() >= 60, "{} good cases", good.len());
        let mut wrong = Vec::new();
        for case in &dead {
            if AnswerKind::of(case).is_answer() {
                wrong.push(format!("taken for an answer: {case}"));
            }
        }
        for case in &good {
            let kind = AnswerKind::of(case);
            if !kind.is_answer() {
                wrong.push(format!("taken for {kind:?}: {case}"));
            }
        }
        let all = dead.len() + good.len();
        assert!(
            wrong.is_empty(),
            "{} of {all}:\n{}",
            wrong.len(),
            wrong.join("\n\n")
        );
    }

    #[test]
    fn no_text_is_too_much() {
        let line = "Error: 429 Too Many Requests\n";
        assert_eq!(AnswerKind::of(&line.repeat(10_000)), AnswerKind::Error);
        assert_eq!(AnswerKind::of(&"word ".repeat(100_000)), AnswerKind::Answer);
        assert_eq!(AnswerKind::of(&"é".repeat(100_000)), AnswerKind::Answer);
        let _ = AnswerKind::of(&"{\"error\":".repeat(7_000));
        let _ = AnswerKind::of(&"[".repeat(60_000));
    }

    #[test]
    fn what_stands_around_an_error_does_not_hide_it() {
        for around in [
            "\n\nError: 503 Service Unavailable\n\n",
            "\u{feff}Error: 503 Service Unavailable",
            "❌ Error: 503 Service Unavailable",
            "**Error:** 503 Service Unavailable",
            "2026-01-02 10:00:00,123 INFO agent: start\nError: 503 Service Unavailable",
            "Thinking...\nError: 503 Service Unavailable",
            "I'll look that up.\nError: 503 Service Unavailable",
            "Assistant: Error: 503 Service Unavailable",
        ] {
            assert_eq!(AnswerKind::of(around), AnswerKind::Error, "{around:?}");
        }
    }
}
