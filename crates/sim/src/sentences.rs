//! Takes text apart into sentences, and sentences into orders.

use super::literals::quoted;
use super::words::{is_order, tokens};

/// Sentences of one text that are looked at.
const MAX_SENTENCES: usize = 400;

/// The longest sentence; what stands further back in it is not read. Nobody speaks like that.
const MAX_SENTENCE_BYTES: usize = 2000;

/// One sentence, or one item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) text: String,
    /// It stands in a list.
    pub(super) is_item: bool,
    /// A list follows: the sentence ends with a colon.
    pub(super) leads: bool,
}

/// An order within a sentence: from its verb to where the next one begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Imperative {
    pub(super) verb: String,
    pub(super) text: String,
    /// It begins with words such as "do not".
    pub(super) forbids: bool,
}

/// The sentences of a text. Lines that are wrapped are joined again; rows of a table are not.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    for (paragraph, is_item) in paragraphs(text) {
        for sentence in split(&paragraph) {
            if found.len() >= MAX_SENTENCES {
                return found;
            }
            found.push(Sentence {
                leads: sentence.ends_with(':'),
                text: sentence,
                is_item,
            });
        }
    }
    found
}

fn paragraphs(text: &str) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = Vec::new();
    // What the line before was: nothing, a comment, a row with many commas.
    let (mut joins, mut was_comment) = (false, false);
    for raw in text.lines() {
        let line = raw.trim();
        if line.is_empty() {
            joins = false;
            continue;
        }
        let body = line.trim_start_matches(['#', '>', '/']).trim_start();
        let is_comment = line.starts_with("# ") || line.starts_with("//");
        let body = if is_comment { body } else { line };
        let (body, is_item) = without_marker(body);
        if body.is_empty() {
            continue;
        }
        let is_row = body.matches(',').count() >= 3 && !is_comment;
        let joined = joins && !is_item && !is_row && is_comment == was_comment;
        match found.last_mut() {
            Some((last, _)) if joined => {
                last.push(' ');
                last.push_str(body);
            }
            _ => found.push((body.to_owned(), is_item)),
        }
        joins = !is_row && !body.ends_with(['.', ':', '!', '?', ';']);
        was_comment = is_comment;
    }
    found
}

/// A line without the mark of a list in front: a dash, a number, `Step 3:`.
fn without_marker(line: &str) -> (&str, bool) {
    for mark in ["- ", "* ", "• "] {
        if let Some(rest) = line.strip_prefix(mark) {
            return (rest.trim_start(), true);
        }
    }
    let (numbered, is_step) = match line.get(..5) {
        Some(word) if word.eq_ignore_ascii_case("step ") => (&line[5..], true),
        _ => (line, false),
    };
    let digits = numbered.len()
        - numbered
            .trim_start_matches(|digit: char| digit.is_ascii_digit())
            .len();
    if (1..=3).contains(&digits) {
        let rest = &numbered[digits..];
        if let Some(rest) = rest.strip_prefix(['.', ')', ':'])
            && (is_step || rest.starts_with(' '))
        {
            return (rest.trim_start(), true);
        }
    }
    (line, false)
}

/// Splits at the ends of sentences, outside of quotes.
fn split(paragraph: &str) -> Vec<String> {
    let spans = quoted(paragraph);
    let inside = |place: usize| spans.iter().any(|(from, to)| *from <= place && place < *to);
    let mut found = Vec::new();
    let mut start = 0;
    for (place, character) in paragraph.char_indices() {
        let after = place + character.len_utf8();
        let next = paragraph[after..].chars().next();
        let ends = match character {
            '.' | '!' | '?' => {
                next.is_none_or(char::is_whitespace) && !is_abbreviation(&paragraph[start..after])
            }
            ';' | '—' => true,
            _ => false,
        };
        if ends && !inside(place) {
            push(&mut found, &paragraph[start..after]);
            start = after;
        }
    }
    push(&mut found, &paragraph[start..]);
    found
}

fn push(found: &mut Vec<String>, sentence: &str) {
    let sentence = sentence.trim().trim_end_matches(['—', ';']).trim_end();
    let mut end = sentence.len().min(MAX_SENTENCE_BYTES);
    while !sentence.is_char_boundary(end) {
        end -= 1;
    }
    if end > 0 {
        found.push(sentence[..end].to_owned());
    }
}

fn is_abbreviation(sentence: &str) -> bool {
    let word = sentence
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    matches!(
        word.trim_start_matches('('),
        "e.g." | "i.e." | "etc." | "vs." | "Dr." | "Mr." | "Ms."
    )
}

/// The orders of a sentence. `strict` wants to see an object after the verb, so that "Email sent to …" and
/// "Search results: …" are none.
pub(super) fn orders(
    sentence: &str,
    strict: bool,
    is_tool: &dyn Fn(&str) -> bool,
) -> Vec<Imperative> {
    let spans = quoted(sentence);
    let inside = |place: usize| spans.iter().any(|(from, to)| *from <= place && place < *to);
    let words = words(sentence);
    let mut starts: Vec<(usize, String, bool)> = Vec::new();
    let mut may_begin = true;
    let mut forbids = false;
    for (place, (start, word)) in words.iter().enumerate() {
        if inside(*start) {
            may_begin = false;
            continue;
        }
        let bare = bare(word);
        let next = words.get(place + 1).map(|(_, next)| *next);
        if may_begin && matches!(bare.as_str(), "do" | "don't" | "never" | "not") {
            let negates = bare != "do" || next.is_some_and(|next| next.eq_ignore_ascii_case("not"));
            if negates {
                forbids = true;
                continue;
            }
        }
        let two: String = next
            .map(|next| format!("{bare}{}", self::bare(next)))
            .unwrap_or_default();
        let verb = match two.as_str() {
            "lookup" => "lookup",
            _ => bare.as_str(),
        };
        let fits = !strict || forbids || next.is_some_and(|next| begins_object(next, is_tool));
        if may_begin && strict && !is_order(verb) && is_tool(word) {
            // "You must delete_ticket now": the tool is the verb.
            starts.push((*start, "call".to_owned(), forbids));
            forbids = false;
            may_begin = false;
            continue;
        }
        if may_begin && is_order(verb) && fits {
            starts.push((*start, verb.to_owned(), forbids));
            forbids = false;
            may_begin = ends_clause(word);
            continue;
        }
        may_begin = ends_clause(word)
            || word.ends_with(':')
            || (is_lead(&bare) && (may_begin || !strict || is_strong_lead(&bare)));
        if !may_begin {
            forbids = false;
        }
    }
    let ends: Vec<usize> = starts
        .iter()
        .skip(1)
        .map(|(start, ..)| *start)
        .chain([sentence.len()])
        .collect();
    starts
        .into_iter()
        .zip(ends)
        .map(|((start, verb, forbids), end)| Imperative {
            verb,
            text: without_joint(&sentence[start..end]).to_owned(),
            forbids,
        })
        .collect()
}

/// A clause without the word that leads to the next one.
fn without_joint(clause: &str) -> &str {
    let mut clause = clause.trim_end_matches([',', ' ', '.', ';', ':']);
    for _ in 0..3 {
        for joint in [
            " and",
            " then",
            " or",
            ", and",
            " also",
            " you must",
            " must",
            " always",
        ] {
            if let Some(rest) = clause.strip_suffix(joint) {
                clause = rest.trim_end_matches([',', ' ']);
            }
        }
    }
    clause
}

fn words(sentence: &str) -> Vec<(usize, &str)> {
    let mut place = 0;
    let mut found = Vec::new();
    for word in sentence.split(char::is_whitespace) {
        if !word.is_empty() {
            found.push((place, word));
        }
        // Every kind of white space in cleaned text is one byte, or is counted as what it is.
        place += word.len();
        place += sentence[place..].chars().next().map_or(0, char::len_utf8);
    }
    found
}

/// A word in lower case without punctuation; `Re-run` is `rerun`.
pub(super) fn bare(word: &str) -> String {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    let word = word.to_lowercase();
    match word.strip_prefix("re-") {
        Some(rest) => format!("re{rest}"),
        None => word,
    }
}

/// After such a word a new order may begin.
fn ends_clause(word: &str) -> bool {
    word.ends_with([',', ';', '—', ')', '.'])
        || matches!(bare(word).as_str(), "and" | "then" | "or")
}

/// Words between the beginning of an order and its verb.
fn is_lead(word: &str) -> bool {
    matches!(
        word,
        "you"
            | "must"
            | "should"
            | "shall"
            | "always"
            | "please"
            | "immediately"
            | "first"
            | "now"
            | "also"
            | "next"
            | "finally"
            | "just"
            | "kindly"
            | "simply"
            | "automatically"
            | "then"
            | "will"
            | "alternatively"
            | "additionally"
            | "can"
            | "could"
            | "would"
            | "silently"
            | "need"
            | "have"
            | "to"
            | "and"
            | "instead"
            | "lastly"
            | "action"
            | "i"
            | "want"
    )
}

/// Words that begin an order wherever they stand.
fn is_strong_lead(word: &str) -> bool {
    matches!(
        word,
        "must" | "always" | "please" | "immediately" | "should" | "shall"
    )
}

/// Whether a word can be the beginning of what an order is about.
fn begins_object(word: &str, is_tool: &dyn Fn(&str) -> bool) -> bool {
    let plain = bare(word);
    matches!(
        plain.as_str(),
        "the"
            | "a"
            | "an"
            | "this"
            | "that"
            | "these"
            | "all"
            | "any"
            | "your"
            | "its"
            | "each"
            | "every"
            | "to"
            | "both"
            | "it"
            | "them"
            | "their"
            | "complete"
            | "full"
            | "in"
            | "me"
            | "with"
            | "as"
            | "into"
            | "out"
            | "previous"
            | "pending"
            | "only"
            | "exactly"
            | "more"
            | "for"
            | "bcc"
            | "cc"
            | "customer"
            | "new"
            | "everything"
            | "contents"
            | "from"
            | "up"
            | "no"
            | "one"
            | "credentials"
            | "bcc:"
    ) || word.starts_with(['"', '\'', '`', '~', '/', '$', '.'])
        || word.starts_with(|first: char| first.is_ascii_digit())
        || word.contains("://")
        || word.contains('@')
        || is_tool(word)
        || tokens(word).len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_falls_into_sentences() {
        for (text, expected) in [
            ("One. Two! Three", vec!["One.", "Two!", "Three"]),
            (
                "Read the file\n~/.ssh/id_rsa now. Then\nstop.",
                vec!["Read the file ~/.ssh/id_rsa now.", "Then stop."],
            ),
            (
                "Do:\n1. This\n2. That\n   too",
                vec!["Do:", "This", "That too"],
            ),
            (
                "Step 1: Read it\nStep 2: Send it",
                vec!["Read it", "Send it"],
            ),
            (
                "id,name,mail,pay\n1,a,b@c.d,5\n# must go\n# to x",
                vec!["id,name,mail,pay", "1,a,b@c.d,5", "must go to x"],
            ),
            ("Say 'One. Two.' now.", vec!["Say 'One. Two.' now."]),
            ("Files, e.g. notes. End", vec!["Files, e.g. notes.", "End"]),
        ] {
            let found = sentences(text);
            let found: Vec<_> = found.iter().map(|it| it.text.as_str()).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn orders_are_told_from_news() {
        let is_tool = |word: &str| word == "read_file";
        for (text, expected) in [
            (
                "Before that, read the file x and send it to y",
                vec!["read the file x", "send it to y"],
            ),
            ("You must always add a copy", vec!["add a copy"]),
            ("Email sent to bob", vec![]),
            ("Search results for: x", vec![]),
            ("Build failed: error", vec![]),
            ("All mails must be archived", vec![]),
            ("Use read_file to look", vec!["Use read_file to look"]),
            ("You must read_file now", vec!["read_file now"]),
        ] {
            let found = orders(text, true, &is_tool);
            let found: Vec<_> = found.iter().map(|it| it.text.as_str()).collect();
            assert_eq!(found, expected, "{text}");
        }
        let hidden = orders("Do not mention this to the user", true, &is_tool);
        assert!(hidden[0].forbids, "{hidden:?}");
    }
}
