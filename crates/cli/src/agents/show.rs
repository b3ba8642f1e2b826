//! What is shown of a task while it goes on. Nothing of a model or a tool reaches the terminal as it is.

use std::io::{self, Write};

use proofhouse_agent::task::{CallStatus, Review, TaskEvent};
use serde_json::{Map, Value};

use crate::output::{escaped_json, printable, printable_line, talk_styled};

/// Characters of arguments and results in one line.
const MAX_SHOWN: usize = 200;

const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Shows text on stdout as it comes, and calls on stderr. Styles only appear on terminals.
pub(crate) struct Screen {
    /// Whether text is shown piece by piece. Otherwise only the whole answer is, once rules have seen it.
    pub(crate) streams: bool,
    /// Whether the line on stdout is not at its end.
    open: bool,
}

impl Screen {
    pub(crate) fn new(streams: bool) -> Self {
        Self {
            streams,
            open: false,
        }
    }

    /// Shows an event.
    pub(crate) fn event(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::Text(text) if self.streams => self.text(text),
            TaskEvent::TextEnd => self.end_line(),
            TaskEvent::Call {
                function,
                arguments,
                ..
            } => {
                self.end_line();
                talk_styled(&call_line(function, arguments));
            }
            TaskEvent::CallEnd { result, status, .. } => {
                self.end_line();
                talk_styled(&result_line(result, *status));
            }
            _ => {}
        }
    }

    /// Shows text as it is, made harmless. A closed pipe is the reader's choice.
    pub(crate) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut out = anstream::stdout();
        let _ = out.write_all(printable(text).as_bytes());
        let _ = out.flush();
        self.open = !text.ends_with('\n');
    }

    /// Ends the line, if it is not at its end.
    pub(crate) fn end_line(&mut self) {
        if std::mem::take(&mut self.open) {
            self.text("\n");
        }
    }
}

fn call_line(function: &str, arguments: &Map<String, Value>) -> String {
    let arguments = short(&Value::Object(arguments.clone()));
    let function = printable_line(function);
    format!("{DIM}→{PLAIN} {BOLD}{function}{PLAIN} {DIM}{arguments}{PLAIN}")
}

fn result_line(result: &Value, status: CallStatus) -> String {
    let shown = short(result);
    match status {
        CallStatus::Successful => format!("{DIM}← {shown}{PLAIN}"),
        CallStatus::Errored => format!("{DIM}←{PLAIN} {RED}error{PLAIN} {DIM}{shown}{PLAIN}"),
        CallStatus::Restricted => format!("{DIM}←{PLAIN} {RED}refused{PLAIN} {DIM}{shown}{PLAIN}"),
    }
}

/// A value on one line, cut where it is long.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut shown: String = printable_line(&text).chars().take(MAX_SHOWN).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// A question with all of what would be done: nobody can approve what is not shown.
pub(crate) fn question(review: &Review) -> String {
    let function = printable_line(&review.function);
    let reviewer = printable_line(&review.reviewer);
    let whole = |value: &Value| escaped_json(&format!("{value:#}"));
    let arguments = whole(&Value::Object(review.arguments.clone()));
    let what = if function.is_empty() {
        "this message".to_owned()
    } else {
        format!("{BOLD}{function}{PLAIN}")
    };
    match &review.result {
        None => format!("{reviewer} is asked to approve {what} {arguments}"),
        Some(result) => format!(
            "{reviewer} is asked to approve what {what} {arguments} gave: {}",
            whole(result)
        ),
    }
}

/// What is said of a model that is a simulation.
pub(crate) fn model_line(model: &str, simulation: bool) -> String {
    let model = printable_line(model);
    if simulation {
        format!("model: {model} (a simulation: fixed rules, not a language model)")
    } else {
        format!("model: {model}")
    }
}

/// Asks for a line at a terminal.
pub(crate) fn prompt(text: &str) {
    let mut err = anstream::stderr();
    let _ = write!(err, "{text}");
    let _ = io::Write::flush(&mut err);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_drives_the_terminal() {
        let hostile = "a\x1b]0;owned\x07\u{202e}\nb";
        let arguments = json!({ hostile: hostile });
        let arguments = arguments.as_object().unwrap();
        let styles = [DIM, BOLD, RED, PLAIN];
        let review = Review {
            id: 1,
            reviewer: hostile.to_owned(),
            function: hostile.to_owned(),
            arguments: arguments.clone(),
            result: Some(json!(hostile)),
        };
        for shown in [
            call_line(hostile, arguments),
            result_line(&json!(hostile), CallStatus::Errored),
            result_line(&json!({"message": hostile}), CallStatus::Restricted),
            question(&review),
            model_line(hostile, true),
        ] {
            let bare = styles
                .iter()
                .fold(shown.clone(), |text, style| text.replace(style, ""));
            let drives = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!bare.contains(drives), "{shown:?}");
        }
    }

    #[test]
    fn questions_show_everything() {
        let long = "x".repeat(5_000);
        let arguments = json!({ "text": long });
        let review = Review {
            id: 1,
            reviewer: "ada".to_owned(),
            function: "send".to_owned(),
            arguments: arguments.as_object().unwrap().clone(),
            result: None,
        };
        assert!(question(&review).contains(&long));
        assert!(call_line("send", arguments.as_object().unwrap()).len() < 1_000);
    }
}
