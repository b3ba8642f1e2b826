//! The lines of an answer: what programs write about themselves, errors with all that follows them, and what is said.

use super::phrases;
use super::sentences::{self, SentenceKind};
use super::structured::is_error_status;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Nobody said it: a log line, or what belongs to the line before.
    Nothing,
    /// It tells of a failure of the program.
    Error,
    /// It shows a text of others.
    Quoted,
    /// It says only that somebody agrees.
    Agreed,
    /// It says only that somebody is about to look for the answer.
    Announced {
        /// Whether what follows is quoted, or is what it is about.
        leads_up: bool,
    },
    /// Somebody said it.
    Said {
        /// Whether what follows is quoted, or is what it is about.
        leads_up: bool,
        /// Whether it is a sentence, of somebody who is not only about to do something.
        is_sentence: bool,
    },
}

/// The lines of a text.
pub(super) fn read(text: &str) -> impl Iterator<Item = LineKind> + use<'_> {
    let (mut in_fence, mut in_error) = (false, false);
    text.lines().map(move |line| {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            in_fence = !in_fence;
            return LineKind::Quoted;
        }
        if in_fence || trimmed.starts_with('>') && !is_chain_note(trimmed) {
            return LineKind::Quoted;
        }
        if trimmed.is_empty() {
            in_error = false;
            return LineKind::Nothing;
        }
        if is_note(trimmed) {
            return LineKind::Nothing;
        }
        let told = plain(trimmed);
        if is_error(&told, trimmed) {
            in_error = true;
            return LineKind::Error;
        }
        // Frames of a stack, what they show of the code, and further lines of a message.
        if in_error {
            return LineKind::Nothing;
        }
        match sentences::read(&told) {
            SentenceKind::Error => LineKind::Error,
            SentenceKind::Filler => LineKind::Nothing,
            SentenceKind::Agreed => LineKind::Agreed,
            SentenceKind::Announced => LineKind::Announced {
                leads_up: leads_up(&told),
            },
            SentenceKind::Said => LineKind::Said {
                leads_up: leads_up(&told),
                is_sentence: is_sentence(&told),
            },
        }
    })
}

/// The line in small letters, without what decorates it or says who speaks.
fn plain(line: &str) -> String {
    let is_decoration = |c: char| !c.is_alphanumeric() && !"{[('\"<`$/".contains(c);
    let mut line = line.trim_start_matches(is_decoration).trim_end();
    for speaker in phrases::SPEAKERS {
        let start = line.get(..speaker.len());
        if start.is_some_and(|start| start.eq_ignore_ascii_case(speaker)) {
            line = line[speaker.len()..].trim_start_matches(is_decoration);
            break;
        }
    }
    let line = line
        .replace(['\u{2019}', '\u{2018}'], "'")
        .replace("**", "");
    line.to_lowercase()
}

/// What LangChain writes around its chains.
fn is_chain_note(line: &str) -> bool {
    line.starts_with("> Entering new") || line.starts_with("> Finished chain")
}

/// What a program writes about its work, and no error: lines of a log, and of somebody who waits.
fn is_note(line: &str) -> bool {
    let small = line.to_lowercase();
    let is_waiting =
        (small.ends_with("...") || small.ends_with('…')) && small.split(' ').count() < 8;
    let after_time =
        line.trim_start_matches(|c: char| c.is_ascii_digit() || "[]-:.,/+TZ ".contains(c));
    let has_time = after_time.len() + 8 <= line.len();
    let word = after_time
        .split([' ', ':', ']', '|'])
        .next()
        .unwrap_or_default();
    let is_level = phrases::LOG_LEVELS.contains(&word);
    // `INFO:     Started`, `WARNING:root:…`; but a model may begin with `Warning: `.
    let rest = &after_time[word.len()..];
    let is_labelled = rest.starts_with(':')
        && (!rest.starts_with(": ") || !word.to_ascii_lowercase().starts_with("warn"));
    let is_logged = is_level && (has_time || line.starts_with('[') || is_labelled);
    is_logged
        || is_waiting
        || is_chain_note(line)
        || phrases::NOTES.iter().any(|start| small.starts_with(start))
}

/// Whether a line begins as programs begin to tell of an error. `told` is the line in small letters, `line` as it is.
fn is_error(told: &str, line: &str) -> bool {
    let bare = told.trim_start_matches(['[', '(']);
    let bare = bare.trim_end_matches(['.', '!']);
    let starts = |table: &[&str]| table.iter().any(|start| bare.starts_with(start));
    if starts(phrases::TRACES) || is_exception(line) || is_status_line(told) {
        return true;
    }
    // `API error: …`, `[ERROR] …`, `ERROR:root:…`, `error - …`.
    let mut words = told.split_whitespace();
    if phrases::ERROR_WORDS.contains(&bare) {
        return true;
    }
    for (place, word) in words.by_ref().take(4).enumerate() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_name = phrases::ERROR_WORDS.contains(&bare) || word.starts_with("error:");
        // `Failed: 2 of 10 tests` counts something.
        if place == 0 && bare.starts_with("fail") {
            return false;
        }
        if is_name {
            let rest = words.next().unwrap_or_default();
            return word.ends_with([':', ']', '!'])
                || word.starts_with("error:")
                || rest == "-"
                || rest == "–"
                || rest.starts_with('(')
                || rest.starts_with('[')
                || (is_error_status(rest.trim_end_matches([':', ',', '.']))
                    && !sentences::is_narrated(told));
        }
        if !phrases::ERROR_OWNERS.contains(&bare) {
            return false;
        }
    }
    false
}

/// Whether a line begins with the type of an exception: `openai.RateLimitError: …`.
fn is_exception(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let line = ["Uncaught ", "Unhandled ", "(in promise) "]
        .iter()
        .fold(line, |line, start| line.strip_prefix(start).unwrap_or(line));
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || "._$/".contains(c)))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let last = name.rsplit(['.', '/', '$', '_']).next().unwrap_or_default();
    let is_type = last.starts_with(|c: char| c.is_ascii_uppercase())
        && last.chars().any(|c| c.is_ascii_lowercase())
        && phrases::EXCEPTION_ENDS
            .iter()
            .any(|end| last.ends_with(end) && last.len() > end.len());
    let is_told = rest.is_empty()
        || rest.starts_with(':')
        || rest.starts_with('(')
        || rest.starts_with(" [")
        || rest.starts_with(" {")
        || rest.starts_with(" -");
    is_type && is_told
}

/// `HTTP/1.1 503 Service Unavailable`, `429 Too Many Requests`, `HTTP 500`, `Error code: 429`.
fn is_status_line(told: &str) -> bool {
    let rest = [
        "http/1.1 ",
        "http/2 ",
        "http/1.0 ",
        "http error ",
        "http ",
        "status code ",
        "status code: ",
        "status: ",
        "error code: ",
        "error ",
    ]
    .iter()
    .find_map(|start| told.strip_prefix(start));
    let mut words = rest.unwrap_or(told).split_whitespace();
    let Some(first) = words.next() else {
        return false;
    };
    if !is_error_status(first.trim_end_matches([':', ',', '.', ';'])) {
        return false;
    }
    // `Error 404 on the page means that it was moved`.
    if sentences::is_narrated(told) {
        return false;
    }
    let next: String = words.take(3).collect::<Vec<_>>().join(" ");
    let next = next.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '{' && c != '"');
    rest.is_some()
        || phrases::STATUS_WORDS
            .iter()
            .any(|start| next.starts_with(start))
        || next.starts_with("{\"")
}

/// Whether what follows is what the line speaks of.
fn leads_up(told: &str) -> bool {
    told.ends_with(':') || (is_sentence(told) && sentences::is_narrated(told))
}

/// Whether a line is a sentence, and not only the announcement of what comes.
fn is_sentence(told: &str) -> bool {
    let is_announced = phrases::ANNOUNCEMENTS
        .iter()
        .any(|start| told.starts_with(start));
    told.ends_with(['.', '!', '?', ')', '"', '|', '`']) && !is_announced
}
